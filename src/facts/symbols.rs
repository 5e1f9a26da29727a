//! Names of dimensions: those that the file gives to its inputs, and those made up for dimensions that are not known.

use crate::ir::{Dim, Expr, GraphId, Model, Shape, Text, Type, ValueId};
use std::collections::BTreeSet;

/// Names that tools write for "some number", meaning nothing by using one twice.
const NAMELESS: &[&str] =
    &["", "-1", "?", "*", "None", "none", "null", "unknown", "dynamic", "Dynamic", "dyn"];

/// Names of dimensions of the main graph's inputs.
pub fn given(model: &Model) -> BTreeSet<Text> {
    let mut names = BTreeSet::new();
    for port in model.graph(model.main()).inputs.iter() {
        let Some(shape) = model.get_value(port.value).and_then(|v| v.ty.shape()) else { continue };
        for d in shape {
            if let Dim::Symbolic(e) = d {
                names.extend(e.symbols().into_iter().filter(|n| is_name(n)));
            }
        }
    }
    names
}

fn is_name(name: &str) -> bool {
    !NAMELESS.contains(&name) && !name.starts_with('?')
}

/// Type of a main input: dimensions without a name are called `input:axis`, as the command line names them; a name that
/// spells a sum or product of other inputs' names is that expression.
pub fn of_input(name: &str, ty: &Type, given: &BTreeSet<Text>) -> Type {
    let Type::Tensor { element, shape: Some(shape) } = ty else { return ty.clone() };
    let named = |(axis, d): (usize, &Dim)| match d {
        Dim::Symbolic(e) => match e.as_symbol() {
            Some(symbol) if !is_name(symbol) => Dim::symbol(&format!("{name}:{axis}")),
            Some(symbol) => parsed(symbol, given).map_or_else(|| d.clone(), Dim::from_expr),
            None => d.clone(),
        },
        Dim::Unknown => Dim::symbol(&format!("{name}:{axis}")),
        d => d.clone(),
    };
    let shape: Shape = shape.iter().enumerate().map(named).collect();
    Type::Tensor { element: *element, shape: Some(shape) }
}

/// `past_length + length`, `2*batch`: sums, differences and products of numbers and names of inputs.
fn parsed(text: &str, given: &BTreeSet<Text>) -> Option<Expr> {
    if !text.contains(['+', '-', '*']) {
        return None;
    }
    let factor = |t: &str| {
        let t = t.trim();
        match t.parse::<i64>() {
            Ok(n) => Some(Expr::constant(n)),
            Err(_) => given.contains(t).then(|| Expr::symbol(t)),
        }
    };
    let product = |t: &str| t.split('*').map(factor).try_fold(Expr::constant(1), |p, f| p.mul(&f?));
    let mut sum = Expr::constant(0);
    let mut rest = text;
    let mut sign = 1;
    loop {
        let end = rest.find(['+', '-']).unwrap_or(rest.len());
        let (term, after) = rest.split_at_checked(end)?;
        sum = sum.add(&product(term)?.mul(&Expr::constant(sign))?)?;
        let Some(operator) = after.chars().next() else { return Some(sum) };
        sign = if operator == '-' { -1 } else { 1 };
        rest = after.get(1..)?;
    }
}

/// A name for a dimension that is not known: `?value.axis`.
pub fn placeholder(value: ValueId, axis: usize) -> Dim {
    Dim::symbol(&format!("?{}.{axis}", value.0))
}

/// True for the name that [`placeholder`] gave to some dimension.
pub fn is_placeholder(name: &str) -> bool {
    owner(name).is_some()
}

fn owner(name: &str) -> Option<ValueId> {
    let (value, axis) = name.strip_prefix('?')?.split_once('.')?;
    axis.parse::<usize>().ok()?;
    value.parse().ok().map(ValueId)
}

/// True when an expression speaks of a dimension that is made anew each time a body runs, and so means nothing outside.
pub fn is_local(model: &Model, e: &Expr, body: GraphId) -> bool {
    e.symbols().iter().filter_map(|name| owner(name)).any(|value| match model.get_value(value) {
        Some(v) => model.enclosing_node(body, v.graph).is_some(),
        None => true,
    })
}

/// True for a name in a declaration that may be used for a dimension that is not known otherwise: not one of the
/// inputs' names, which a declaration may give to something else by mistake.
pub fn is_adoptable(d: &Dim, given: &BTreeSet<Text>) -> bool {
    match d {
        Dim::Symbolic(e) => e.symbols().iter().all(|name| is_name(name) && !given.contains(name)),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::ElementType;

    #[test]
    fn names_that_spell_expressions_are_those_expressions() {
        let given: BTreeSet<Text> = ["past".into(), "length".into(), "past + length".into()].into();
        let (past, length) = (Expr::symbol("past"), Expr::symbol("length"));
        assert_eq!(parsed("past + length", &given), past.add(&length));
        assert_eq!(parsed("2*past - 1", &given).unwrap().to_string(), "2*past - 1");
        assert_eq!(parsed("past + other", &given), None);
        assert_eq!(parsed("past", &given), None);
        assert_eq!(parsed("past+", &given), None);
    }

    #[test]
    fn inputs_without_names_are_called_by_input_and_axis() {
        let ty = Type::tensor(ElementType::FLOAT, [Dim::Unknown, Dim::symbol("None"), Dim::symbol("n")]);
        let named = of_input("x", &ty, &BTreeSet::new());
        assert_eq!(named.to_string(), "float[x:0, x:1, n]");
    }
}

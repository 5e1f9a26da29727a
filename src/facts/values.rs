//! Elements of small tensors of whole numbers, as shapes are computed with: Shape → Gather → Concat → Reshape chains.

use super::operators::Outputs;
use super::view::{Operator, of_node};
use super::{Elements, Fact, MAX_ELEMENTS, dims, operators::shape_bounds};
use crate::ir::{AttributeValue, Dim, ElementType, Expr, Tensor, Type};
use rustc_hash::FxHashMap;
use std::sync::LazyLock;

type List = Vec<Option<Expr>>;
/// Elements of the first output, which has the given fixed dimensions.
type Calculation = fn(&Operator, &[usize]) -> Option<List>;

static CALCULATIONS: LazyLock<FxHashMap<&'static str, Calculation>> = LazyLock::new(|| {
    const TABLE: &[(&str, Calculation)] = &[
        ("Abs", |op, d| {
            unary(op, d, |a| {
                if a.is_never_negative() { Some(a.clone()) } else { constant_of(a, i64::checked_abs) }
            })
        }),
        ("Add", |op, d| binary(op, d, |a, b| a.add(b))),
        ("And", |op, d| binary(op, d, |a, b| number2(a, b, |a, b| a & b))),
        ("Cast", cast),
        ("CastLike", cast),
        ("Ceil", |op, d| rounded(op, d, true)),
        ("Concat", concat),
        ("Constant", |op, _| of_tensor(&*of_node(op.node)?)),
        ("ConstantOfShape", constant_of_shape),
        ("Div", |op, d| binary(op, d, |a, b| quotient(op, a, b))),
        ("Equal", |op, d| binary(op, d, |a, b| truth(dims::equal(a, b)))),
        ("Expand", spread),
        ("Flatten", same),
        ("Floor", |op, d| rounded(op, d, false)),
        ("Gather", gather),
        ("Greater", |op, d| binary(op, d, |a, b| truth(dims::less(b, a)))),
        ("GreaterOrEqual", |op, d| binary(op, d, |a, b| truth(dims::less(a, b).map(|l| !l)))),
        ("Identity", same),
        ("Less", |op, d| binary(op, d, |a, b| truth(dims::less(a, b)))),
        ("LessOrEqual", |op, d| binary(op, d, |a, b| truth(dims::less(b, a).map(|l| !l)))),
        ("Max", |op, d| fold(op, d, |a, b| Some(dims::largest(a, b)))),
        ("Min", |op, d| fold(op, d, |a, b| Some(dims::smallest(a, b)))),
        ("Mod", |op, d| binary(op, d, |a, b| (a.is_never_negative() && positive(b)).then(|| a.modulo(b))?)),
        ("Mul", |op, d| binary(op, d, |a, b| a.mul(b))),
        ("Neg", |op, d| unary(op, d, |a| Expr::constant(0).sub(a))),
        ("NonZero", non_zero),
        ("Not", |op, d| unary(op, d, |a| constant_of(a, |n| Some(i64::from(n == 0))))),
        ("Or", |op, d| binary(op, d, |a, b| number2(a, b, |a, b| a | b))),
        ("Range", range),
        ("ReduceMax", |op, d| reduce(op, d, |a, b| Some(dims::largest(a, b)))),
        ("ReduceMin", |op, d| reduce(op, d, |a, b| Some(dims::smallest(a, b)))),
        ("ReduceProd", |op, d| reduce(op, d, |a, b| a.mul(b))),
        ("ReduceSum", |op, d| reduce(op, d, |a, b| a.add(b))),
        ("Relu", |op, d| unary(op, d, |a| Some(dims::not_negative(a)))),
        ("Reshape", same),
        ("Round", same),
        ("Shape", shape),
        ("Size", |op, _| Some(vec![dims::product(op.shape(0)?).expr()])),
        ("Slice", slice),
        ("Squeeze", same),
        ("Sub", |op, d| binary(op, d, |a, b| a.sub(b))),
        ("Sum", |op, d| fold(op, d, |a, b| a.add(b))),
        ("Tile", spread),
        ("Transpose", transpose),
        ("Unsqueeze", same),
        ("Where", choose),
    ];
    TABLE.iter().copied().collect()
});

/// Adds what can be known of the elements of a node's outputs.
pub(super) fn attach(op: &Operator, outputs: &mut Outputs) {
    if op.op_type() == "Split" {
        return attach_split(op, outputs);
    }
    let Some(first) = outputs.first_mut() else { return };
    let Some(sizes) = small(&first.ty) else { return };
    let Some(calculate) = CALCULATIONS.get(op.op_type()) else { return };
    first.elements = calculate(op, &sizes).and_then(|list| kept(list, first));
}

/// Elements as they are kept: of the right count, within the range of the type, and not all unknown.
fn kept(list: List, fact: &Fact) -> Option<Elements> {
    let element = fact.ty.element()?;
    let count: usize = small(&fact.ty)?.iter().product();
    let list: List = list.into_iter().map(|e| e.filter(|e| is_exact(element, e))).collect();
    (list.len() == count && list.iter().any(Option::is_some)).then(|| list.into())
}

/// True when an element type holds a number exactly. Sizes of named dimensions are taken to fit 24 bits where they
/// pass through float32, and 31 bits in int32.
fn is_exact(element: ElementType, e: &Expr) -> bool {
    let within = |low: i64, high: i64| e.as_constant().is_some_and(|n| (low..=high).contains(&n));
    match element {
        ElementType::INT64 => true,
        ElementType::UINT64 => e.is_never_negative(),
        ElementType::INT32 => e.as_constant().is_none() || within(i32::MIN.into(), i32::MAX.into()),
        ElementType::UINT32 => within(0, u32::MAX.into()),
        ElementType::FLOAT => e.as_constant().is_none() || within(-(1 << 24), 1 << 24),
        ElementType::DOUBLE => e.as_constant().is_none() || within(-(1 << 53), 1 << 53),
        ElementType::FLOAT16 => within(-2048, 2048),
        ElementType::BOOL => within(0, 1),
        ElementType::INT16 => within(i16::MIN.into(), i16::MAX.into()),
        ElementType::UINT16 => within(0, u16::MAX.into()),
        ElementType::INT8 => within(i8::MIN.into(), i8::MAX.into()),
        ElementType::UINT8 => within(0, u8::MAX.into()),
        _ => false,
    }
}

/// Fixed dimensions of a tensor with few elements of a type that can hold whole numbers.
fn small(ty: &Type) -> Option<Vec<usize>> {
    if !is_exact(ty.element()?, &Expr::constant(1)) {
        return None;
    }
    let sizes: Vec<usize> =
        ty.shape()?.iter().map(|d| usize::try_from(d.fixed()?).ok()).collect::<Option<_>>()?;
    let count = sizes.iter().try_fold(1usize, |n, d| n.checked_mul(*d))?;
    (count <= MAX_ELEMENTS).then_some(sizes)
}

/// Elements of constant data that are whole numbers.
pub(super) fn of_tensor(tensor: &Tensor) -> Option<List> {
    let count = tensor.element_count()?;
    if count > MAX_ELEMENTS as u64 {
        return None;
    }
    if let Some(integers) = tensor.integers() {
        return Some(integers.into_iter().map(|n| Some(Expr::constant(n))).collect());
    }
    // Weights are not what shapes are made of.
    if count > 64 {
        return None;
    }
    let whole = |v: f64| (v.fract() == 0.0 && v.abs() < 9e15).then(|| Expr::constant(v as i64));
    Some(tensor.approximate()?.into_iter().map(whole).collect())
}

/// Dimensions and elements of an input; elements that are not known are so one by one.
fn input(op: &Operator, index: usize) -> Option<(Vec<usize>, Elements)> {
    let sizes = small(op.ty(index))?;
    let count = sizes.iter().product();
    let elements = match op.elements(index) {
        Some(elements) if elements.len() == count => elements,
        _ => vec![None; count].into(),
    };
    Some((sizes, elements))
}

fn known(op: &Operator, index: usize) -> Option<(Vec<usize>, Elements)> {
    let (sizes, elements) = (small(op.ty(index))?, op.elements(index)?);
    (sizes.iter().product::<usize>() == elements.len()).then_some((sizes, elements))
}

fn constant_of(a: &Expr, f: impl Fn(i64) -> Option<i64>) -> Option<Expr> {
    f(a.as_constant()?).map(Expr::constant)
}

fn number2(a: &Expr, b: &Expr, f: impl Fn(i64, i64) -> i64) -> Option<Expr> {
    Some(Expr::constant(f(a.as_constant()?, b.as_constant()?)))
}

fn truth(t: Option<bool>) -> Option<Expr> {
    t.map(|t| Expr::constant(t.into()))
}

fn positive(e: &Expr) -> bool {
    dims::less(&Expr::constant(0), e) == Some(true)
}

fn same(op: &Operator, _: &[usize]) -> Option<List> {
    op.elements(0).map(|e| e.to_vec())
}

fn unary(op: &Operator, _: &[usize], f: impl Fn(&Expr) -> Option<Expr>) -> Option<List> {
    Some(op.elements(0)?.iter().map(|e| e.as_ref().and_then(&f)).collect())
}

/// Position in a row-major tensor of `sizes` that an index of a tensor broadcast over it reads.
fn broadcast_at(index: &[usize], sizes: &[usize]) -> usize {
    let skipped = index.len().saturating_sub(sizes.len());
    index.iter().skip(skipped).zip(sizes).fold(0, |at, (i, n)| at * n + if *n == 1 { 0 } else { *i })
}

/// Calls `f` for each index of a tensor, row-major.
fn each_index(sizes: &[usize], mut f: impl FnMut(&[usize])) {
    let count: usize = sizes.iter().product();
    let mut index = vec![0; sizes.len()];
    for _ in 0..count {
        f(&index);
        for (i, n) in index.iter_mut().zip(sizes).rev() {
            *i += 1;
            if *i < *n {
                break;
            }
            *i = 0;
        }
    }
}

/// Makes each element of the output from its index.
fn by_index(sizes: &[usize], mut f: impl FnMut(&[usize]) -> Option<Expr>) -> Option<List> {
    let mut list = Vec::with_capacity(sizes.iter().product());
    each_index(sizes, |index| list.push(f(index)));
    Some(list)
}

fn binary(op: &Operator, out: &[usize], f: impl Fn(&Expr, &Expr) -> Option<Expr>) -> Option<List> {
    if op.opset < 7 {
        return None;
    }
    let ((a_sizes, a), (b_sizes, b)) = (known(op, 0)?, known(op, 1)?);
    by_index(out, |index| {
        let a = a.get(broadcast_at(index, &a_sizes))?.as_ref()?;
        f(a, b.get(broadcast_at(index, &b_sizes))?.as_ref()?)
    })
}

fn fold(op: &Operator, out: &[usize], f: impl Fn(&Expr, &Expr) -> Option<Expr>) -> Option<List> {
    if op.opset < 8 {
        return None;
    }
    let all: Vec<_> = (0..op.node.inputs.len()).map(|i| known(op, i)).collect::<Option<_>>()?;
    by_index(out, |index| {
        let mut result: Option<Expr> = None;
        for (sizes, elements) in &all {
            let e = elements.get(broadcast_at(index, sizes))?.as_ref()?;
            result = Some(match result {
                None => e.clone(),
                Some(r) => f(&r, e)?,
            });
        }
        result
    })
}

/// Integer division truncates; a quotient of floats is kept only when it is whole.
fn quotient(op: &Operator, a: &Expr, b: &Expr) -> Option<Expr> {
    let integer = op.element(0)?.is_integer();
    match (a.as_constant(), b.as_constant()) {
        (_, Some(0)) => None,
        (Some(a), Some(b)) if integer || a.checked_rem(b)? == 0 => a.checked_div(b).map(Expr::constant),
        (Some(_), Some(_)) => None,
        _ => match a.exact_div(b) {
            Some(exact) if positive(b) => Some(exact),
            _ if integer && a.is_never_negative() && positive(b) => a.floor_div(b),
            _ => None,
        },
    }
}

/// Floor or Ceil: of whole numbers the same; of a quotient of whole numbers, as far as they are not negative.
fn rounded(op: &Operator, out: &[usize], up: bool) -> Option<List> {
    if let Some(elements) = op.elements(0) {
        return Some(elements.to_vec());
    }
    divided(op, out, up)
}

/// Rounds what the node before divided.
fn divided(op: &Operator, out: &[usize], up: bool) -> Option<List> {
    let (producer, _) = op.model.get_value(op.node.input(0)?)?.node()?;
    let division = Operator::new(op.model, op.facts, op.model.get_node(producer)?)?;
    if division.op_type() != "Div" || division.opset < 7 {
        return None;
    }
    let ((a_sizes, a), (b_sizes, b)) = (known(&division, 0)?, known(&division, 1)?);
    by_index(out, |index| {
        let a = a.get(broadcast_at(index, &a_sizes))?.as_ref()?;
        let b = b.get(broadcast_at(index, &b_sizes))?.as_ref()?;
        if !a.is_never_negative() || !positive(b) {
            return None;
        }
        let a = if up { a.add(b)?.sub(&Expr::constant(1))? } else { a.clone() };
        a.floor_div(b)
    })
}

fn cast(op: &Operator, out: &[usize]) -> Option<List> {
    let to = match op.op_type() {
        "CastLike" => op.element(1)?,
        _ => super::operators::cast_target(op)?,
    };
    let Some(elements) = op.elements(0) else {
        // A quotient that is not whole is truncated.
        return if to.is_integer() { divided(op, out, false) } else { None };
    };
    if to != ElementType::BOOL {
        return Some(elements.to_vec());
    }
    let zero = Expr::constant(0);
    Some(elements.iter().map(|e| truth(dims::equal(e.as_ref()?, &zero).map(|z| !z))).collect())
}

fn concat(op: &Operator, out: &[usize]) -> Option<List> {
    let axis = op.axis()?;
    let inputs: Vec<_> = (0..op.node.inputs.len()).map(|i| input(op, i)).collect::<Option<_>>()?;
    by_index(out, |index| {
        let mut at = *index.get(axis)?;
        for (sizes, elements) in &inputs {
            let size = *sizes.get(axis)?;
            if at < size {
                let mut inner = index.to_vec();
                *inner.get_mut(axis)? = at;
                return elements.get(broadcast_at(&inner, sizes))?.clone();
            }
            at -= size;
        }
        None
    })
}

fn constant_of_shape(op: &Operator, out: &[usize]) -> Option<List> {
    let fill = match op.node.attribute("value") {
        None => Some(Expr::constant(0)),
        Some(AttributeValue::Tensor(t)) => of_tensor(t)?.first()?.clone(),
        Some(_) => None,
    };
    Some(vec![fill; out.iter().product()])
}

fn spread(op: &Operator, out: &[usize]) -> Option<List> {
    let (sizes, elements) = known(op, 0)?;
    let tiled = op.op_type() == "Tile";
    if tiled && sizes.len() != out.len() {
        return None;
    }
    by_index(out, |index| {
        let at = match tiled {
            true => index.iter().zip(&sizes).fold(0, |at, (i, n)| at * n + i.checked_rem(*n).unwrap_or(0)),
            false => broadcast_at(index, &sizes),
        };
        elements.get(at)?.clone()
    })
}

fn gather(op: &Operator, out: &[usize]) -> Option<List> {
    let (sizes, data) = known(op, 0)?;
    let (index_sizes, indices) = known(op, 1)?;
    let axis = op.axis()?;
    let length = i64::try_from(*sizes.get(axis)?).ok()?;
    by_index(out, |index| {
        let (before, rest) = index.split_at_checked(axis)?;
        let (which, after) = rest.split_at_checked(index_sizes.len())?;
        let i = indices.get(broadcast_at(which, &index_sizes))?.as_ref()?.as_constant()?;
        let i = usize::try_from(if i < 0 { i.checked_add(length)? } else { i }).ok()?;
        let inner: Vec<usize> = before.iter().copied().chain([i]).chain(after.iter().copied()).collect();
        let at = inner.iter().zip(&sizes).try_fold(0usize, |at, (i, n)| (i < n).then_some(at * n + i))?;
        data.get(at)?.clone()
    })
}

fn shape(op: &Operator, _: &[usize]) -> Option<List> {
    let s = op.shape(0)?;
    let (start, end) = shape_bounds(op, i64::try_from(s.len()).ok()?)?;
    let dims = s.iter().skip(usize::try_from(start).ok()?).take(usize::try_from(end - start).unwrap_or(0));
    Some(dims.map(Dim::expr).collect())
}

fn slice(op: &Operator, out: &[usize]) -> Option<List> {
    let (sizes, data) = known(op, 0)?;
    let form = op.slice()?;
    let mut first_and_step = vec![(0i64, 1i64); sizes.len()];
    for (((axis, start), end), step) in form.axes.iter().zip(&form.starts).zip(&form.ends).zip(&form.steps) {
        let (start, end) = (start.as_ref()?.as_constant()?, end.as_ref()?.as_constant()?);
        let step = (*step).filter(|s| *s != 0)?;
        let (first, _) = dims::slice_bounds(i64::try_from(*sizes.get(*axis)?).ok()?, start, end, step)?;
        *first_and_step.get_mut(*axis)? = (first, step);
    }
    by_index(out, |index| {
        let mut at = 0usize;
        for ((i, n), (first, step)) in index.iter().zip(&sizes).zip(&first_and_step) {
            let i = usize::try_from(first.checked_add(step.checked_mul(*i as i64)?)?).ok()?;
            at = at * n + i;
        }
        data.get(at)?.clone()
    })
}

fn transpose(op: &Operator, out: &[usize]) -> Option<List> {
    let (sizes, data) = known(op, 0)?;
    let perm = op.perm()?;
    by_index(out, |index| {
        let mut inner = vec![0; sizes.len()];
        for (i, p) in index.iter().zip(&perm) {
            *inner.get_mut(*p)? = *i;
        }
        data.get(broadcast_at(&inner, &sizes))?.clone()
    })
}

fn range(op: &Operator, out: &[usize]) -> Option<List> {
    let scalar = |i| op.elements(i)?.first()?.clone();
    let (start, delta) = (scalar(0)?, scalar(2)?);
    (0..out.iter().product::<usize>())
        .map(|i| Some(delta.mul(&Expr::constant(i64::try_from(i).ok()?)).and_then(|d| start.add(&d))))
        .collect()
}

fn reduce(op: &Operator, out: &[usize], f: impl Fn(&Expr, &Expr) -> Option<Expr>) -> Option<List> {
    let elements = op.elements(0)?;
    // All into one; along one axis of several is not how shapes are computed.
    if out.iter().product::<usize>() != 1 || elements.is_empty() {
        return None;
    }
    let total = elements.iter().map(Clone::clone).reduce(|a, b| f(&a?, &b?))?;
    Some(vec![total])
}

fn non_zero(op: &Operator, out: &[usize]) -> Option<List> {
    let (sizes, elements) = known(op, 0)?;
    let [_, count] = out else { return None };
    let zero = Expr::constant(0);
    let mut found: Vec<Vec<usize>> = Vec::new();
    let mut at = 0;
    let mut certain = true;
    each_index(&sizes, |index| {
        match elements.get(at).and_then(|e| dims::equal(e.as_ref()?, &zero)) {
            Some(false) => found.push(index.to_vec()),
            Some(true) => {}
            None => certain = false,
        }
        at += 1;
    });
    if !certain || found.len() != *count {
        return None;
    }
    let coordinate = |axis: usize, index: &Vec<usize>| Some(Expr::constant(*index.get(axis)? as i64));
    Some((0..sizes.len()).flat_map(|axis| found.iter().map(move |index| coordinate(axis, index))).collect())
}

fn choose(op: &Operator, out: &[usize]) -> Option<List> {
    let ((c_sizes, c), (a_sizes, a), (b_sizes, b)) = (known(op, 0)?, input(op, 1)?, input(op, 2)?);
    by_index(out, |index| {
        let (a, b) = (a.get(broadcast_at(index, &a_sizes))?, b.get(broadcast_at(index, &b_sizes))?);
        match c.get(broadcast_at(index, &c_sizes))?.as_ref().and_then(Expr::as_constant) {
            Some(0) => b.clone(),
            Some(_) => a.clone(),
            None => a.clone().filter(|_| a == b),
        }
    })
}

fn attach_split(op: &Operator, outputs: &mut Outputs) {
    let Some((sizes, elements)) = known(op, 0) else { return };
    if sizes.len() != 1 {
        return;
    }
    let mut rest: &[Option<Expr>] = &elements;
    for fact in outputs.iter_mut() {
        let Some(count) = small(&fact.ty).and_then(|s| s.first().copied()) else { return };
        let Some((part, after)) = rest.split_at_checked(count) else { return };
        fact.elements = kept(part.to_vec(), fact);
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use crate::facts::Facts;
    use crate::ir::{Builder, Dim, ElementType, Tensor};

    #[test]
    fn a_reshape_target_computed_from_a_shape_is_known() {
        let mut b = Builder::new("chain", 17);
        let x = b.input("x", ElementType::FLOAT, &["batch".into(), "seq".into(), 48.into()]);
        let shape = b.op("Shape", &[x]).one();
        let zero = b.constant("zero", Tensor::from_i64(&[], &[0]));
        let batch = b.op("Gather", &[shape, zero]).one();
        let axis = b.constant("axis", Tensor::ints(&[0]));
        let batch = b.op("Unsqueeze", &[batch, axis]).one();
        let rest = b.constant("rest", Tensor::ints(&[-1, 4, 12]));
        let target = b.op("Concat", &[batch, rest]).attr("axis", 0i64).one();
        let y = b.op("Reshape", &[x, target]).one();
        b.output(y);
        let model = b.finish().unwrap();
        let facts = Facts::infer(&model);
        assert_eq!(facts.ty(&model, y).to_string(), "float[batch, seq, 4, 12]");
        let ints: Vec<String> =
            facts.ints(&model, target).unwrap().into_iter().map(|e| e.unwrap().to_string()).collect();
        assert_eq!(ints, ["batch", "-1", "4", "12"]);
    }

    #[test]
    fn large_integers_are_exact_and_narrow_ones_do_not_wrap() {
        let big = (1i64 << 53) + 1;
        let mut b = Builder::new("exact", 17);
        let a = b.constant("a", Tensor::ints(&[big]));
        let one = b.constant("one", Tensor::ints(&[1]));
        let sum = b.op("Add", &[a, one]).one();
        let narrow = b.op("Cast", &[sum]).attr("to", 6i64).one();
        let most = b.constant("most", Tensor::ints(&[i64::MAX]));
        let over = b.op("Add", &[most, one]).one();
        [sum, narrow, over].iter().for_each(|v| b.output(*v));
        let model = b.finish().unwrap();
        let facts = Facts::infer(&model);
        let only = |v| facts.ints(&model, v)?.first()?.as_ref()?.as_constant();
        assert_eq!(only(sum), Some(big + 1));
        assert_eq!(only(narrow), None);
        assert_eq!(only(over), None);
    }

    #[test]
    fn a_table_cut_to_the_length_of_the_input_is_broadcast_to_it() {
        let mut b = Builder::new("positions", 17);
        let x = b.input("x", ElementType::FLOAT, &["seq".into(), 2.into()]);
        let table = b.constant("table", Tensor::from_f32(&[16, 2], &[0.0; 32]));
        let shape = b.op("Shape", &[x]).attr("end", 1i64).one();
        let start = b.constant("start", Tensor::ints(&[0]));
        let rows = b.op("Slice", &[table, start, shape]).one();
        let y = b.op("Add", &[x, rows]).one();
        b.output(y);
        let model = b.finish().unwrap();
        assert_eq!(Facts::infer(&model).ty(&model, y).shape().unwrap()[0], Dim::symbol("seq"));
    }
}

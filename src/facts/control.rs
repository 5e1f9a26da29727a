//! Operators with bodies: If, Loop, Scan, SequenceMap. What a body carries around is joined until it no longer changes.

use super::infer::{Environment, Inference};
use super::operators::{Outputs, stacked};
use super::{Fact, dims, join};
use crate::ir::{Dim, ElementType, Expr, GraphId, Model, Node, Shape, Type, ValueId};

/// Loops nested deeper than this start from element types only, so that time does not double with each level.
const CAREFUL_DEPTH: usize = 2;
/// Deeper than this, from nothing.
const BLIND_DEPTH: usize = 5;

impl Inference<'_> {
    /// A node that holds graphs.
    pub(super) fn with_bodies(&mut self, node: &Node, environment: Environment) -> Outputs {
        let body = |name: &str| node.attribute(name).and_then(|a| a.graphs().first().copied());
        let opset = if node.is_standard() { self.model.opset(node.graph, "") } else { None };
        match (opset, &*node.op_type) {
            (Some(_), "If") => {
                if let (Some(then), Some(otherwise)) = (body("then_branch"), body("else_branch")) {
                    return self.branches(node, then, otherwise, environment);
                }
            }
            (Some(_), "Loop") => {
                if let Some(body) = body("body") {
                    return self.repeat(node, body, environment);
                }
            }
            (Some(opset), "Scan") if opset >= 9 => {
                if let Some(body) = body("body") {
                    return self.scan(node, body, environment).unwrap_or_default();
                }
            }
            (Some(_), "SequenceMap") => {
                if let Some(body) = body("body") {
                    return self.map(node, body, environment);
                }
            }
            _ => {}
        }
        self.foreign_bodies(node, environment)
    }

    /// Bodies of an operator that is not known: their inputs may be anything.
    fn foreign_bodies(&mut self, node: &Node, environment: Environment) -> Outputs {
        for (_, body) in node.bodies() {
            for value in inputs(self.model, body) {
                self.settle_input(value, Fact::default());
            }
            self.walk(body, environment);
        }
        Outputs::new()
    }

    fn branches(
        &mut self,
        node: &Node,
        then: GraphId,
        otherwise: GraphId,
        environment: Environment,
    ) -> Outputs {
        self.walk(then, environment);
        self.walk(otherwise, environment);
        let (a, b) = (self.results(then), self.results(otherwise));
        let condition =
            self.input(node, 0).elements.and_then(|e| e.first().cloned().flatten()?.as_constant());
        match condition {
            Some(0) => b.into(),
            Some(_) => a.into(),
            None => a.iter().zip(&b).map(|(a, b)| join::facts(a, b)).collect(),
        }
    }

    /// Walks a body with carried values until what is known of them holds for every iteration. `set` fills the inputs of
    /// the body from the state, `next` takes the state after an iteration from the body's results.
    fn fixpoint(
        &mut self,
        body: GraphId,
        mut state: Vec<Fact>,
        carried: &[ValueId],
        environment: Environment,
        next: impl Fn(&[Fact]) -> Vec<Fact>,
    ) -> (Vec<Fact>, Vec<Fact>) {
        self.depth += 1;
        let size = self.model.get_graph(body).map_or(0, |g| g.nodes.len());
        let mut round = match self.depth {
            d if d > BLIND_DEPTH || self.budget < size => 3,
            d if d > CAREFUL_DEPTH => 2,
            _ => 0,
        };
        if round > 0 {
            state.iter_mut().for_each(|f| *f = widened(f, round));
        }
        let results = loop {
            self.budget = self.budget.saturating_sub(size);
            for (value, fact) in carried.iter().zip(&state) {
                self.settle_input(*value, fact.clone());
            }
            self.walk(body, environment);
            let results = self.results(body);
            let after = next(&results);
            let unknown = Fact::default();
            let joined: Vec<Fact> = state
                .iter()
                .enumerate()
                .map(|(i, before)| {
                    let joined = join::facts(before, after.get(i).unwrap_or(&unknown));
                    if joined == *before || round < 2 { joined } else { widened(&joined, round) }
                })
                .collect();
            if joined == state {
                break results;
            }
            state = joined;
            round += 1;
            if round > 3 {
                // Nothing is assumed any longer: whatever an iteration gives, this holds.
                state.iter_mut().for_each(|f| *f = Fact::default());
            }
        };
        self.depth -= 1;
        (state, results)
    }

    fn repeat(&mut self, node: &Node, body: GraphId, environment: Environment) -> Outputs {
        let formal = inputs(self.model, body);
        let Some((&[iteration, condition], carried)) = formal.split_first_chunk::<2>() else {
            return Outputs::new();
        };
        let count = carried.len();
        let state: Vec<Fact> = (0..count).map(|i| self.input(node, i + 2)).collect();
        let scalar = |element, value: ValueId| {
            // Some files declare one-element vectors, and runtimes follow them.
            let declared = self.model.get_value(value).and_then(|v| v.ty.fixed_shape());
            let shape: Shape =
                declared.filter(|s| s.len() == 1).into_iter().flatten().map(Dim::Fixed).collect();
            Fact::of(Type::Tensor { element, shape: Some(shape) })
        };
        let (index, mut runs) = (scalar(ElementType::INT64, iteration), scalar(ElementType::BOOL, condition));
        // A body runs only while the condition holds.
        runs.elements = Some([Some(Expr::constant(1))].into());
        self.settle_input(iteration, index);
        self.settle_input(condition, runs);
        let next = |results: &[Fact]| results.iter().skip(1).take(count).cloned().collect();
        let (state, results) = self.fixpoint(body, state, carried, environment, next);
        let length = self.trip_count(node, results.first());
        let scans = results.iter().skip(1 + count).map(|f| stacked(&f.ty, 0, length.clone()));
        state.into_iter().chain(scans).collect()
    }

    /// Iterations of a Loop whose condition never becomes false.
    fn trip_count(&self, node: &Node, condition: Option<&Fact>) -> Dim {
        let only = |f: &Fact| f.elements.as_ref().and_then(|e| e.first().cloned().flatten());
        let holds = |f: &Fact| only(f).and_then(|e| e.as_constant()).is_some_and(|n| n != 0);
        let starts = node.input(1).is_none() || holds(&self.input(node, 1));
        if !starts || !condition.is_some_and(holds) {
            return Dim::Unknown;
        }
        dims::of(only(&self.input(node, 0)).map(|n| dims::not_negative(&n)))
    }

    fn scan(&mut self, node: &Node, body: GraphId, environment: Environment) -> Option<Outputs> {
        let formal = inputs(self.model, body);
        let scanned = usize::try_from(node.attribute("num_scan_inputs")?.int()?).ok()?;
        let states = formal.len().checked_sub(scanned)?;
        let axis_of = |name: &str, i: usize| match node.attribute(name) {
            None => Some(0),
            Some(v) => v.ints()?.get(i).copied(),
        };
        let mut length = Dim::Unknown;
        let mut slices = Vec::new();
        for i in 0..scanned {
            let fact = self.input(node, states + i);
            let axis = axis_of("scan_input_axes", i);
            let slice = match fact.ty {
                Type::Tensor { element, shape } => {
                    let cut = shape.zip(axis).and_then(|(mut s, axis)| {
                        let at = dims::axis(axis, Some(s.len()))?;
                        length = dims::same(&length, &s.remove(at));
                        Some(s)
                    });
                    Fact::of(Type::Tensor { element, shape: cut })
                }
                _ => Fact::default(),
            };
            slices.push(slice);
        }
        let (carried, rest) = formal.split_at_checked(states)?;
        for (value, slice) in rest.iter().zip(slices) {
            self.settle_input(*value, slice);
        }
        let state: Vec<Fact> = (0..states).map(|i| self.input(node, i)).collect();
        let next = |results: &[Fact]| results.iter().take(states).cloned().collect();
        let (state, results) = self.fixpoint(body, state, carried, environment, next);
        let scans = results.iter().skip(states).enumerate().map(|(i, f)| {
            let axis = axis_of("scan_output_axes", i);
            axis.map(|a| stacked(&f.ty, a, length.clone())).unwrap_or_default()
        });
        Some(state.into_iter().chain(scans).collect())
    }

    /// SequenceMap: sequences are taken apart, other inputs are given whole.
    fn map(&mut self, node: &Node, body: GraphId, environment: Environment) -> Outputs {
        for (i, value) in inputs(self.model, body).into_iter().enumerate() {
            let fact = match self.input(node, i) {
                Fact { ty: Type::Sequence(ty), .. } => Fact::of(*ty),
                fact => fact,
            };
            self.settle_input(value, fact);
        }
        self.walk(body, environment);
        let wrap = |f: Fact| match f.ty {
            Type::Unknown => Fact::default(),
            ty => Fact::of(Type::Sequence(Box::new(ty))),
        };
        self.results(body).into_iter().map(wrap).collect()
    }
}

/// Less is assumed of what keeps changing.
fn widened(fact: &Fact, round: usize) -> Fact {
    match (&fact.ty, round) {
        (Type::Tensor { element, .. }, ..=2) => Fact::of(Type::Tensor { element: *element, shape: None }),
        _ => Fact::default(),
    }
}

fn inputs(model: &Model, body: GraphId) -> Vec<ValueId> {
    model.get_graph(body).map(|g| g.inputs.iter().map(|p| p.value).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use crate::facts::Facts;
    use crate::ir::{Builder, Dim, ElementType, Model, Tensor, ValueId};

    fn text(model: &Model, value: ValueId) -> String {
        Facts::infer(model).ty(model, value).to_string()
    }

    /// A loop that carries one tensor through `step` and stacks it.
    fn looped(step: impl FnOnce(&mut Builder, ValueId) -> ValueId) -> (Model, Vec<ValueId>) {
        let mut b = Builder::new("loop", 17);
        let x = b.input("x", ElementType::FLOAT, &["n".into(), 4.into()]);
        let trips = b.constant("trips", Tensor::from_i64(&[], &[3]));
        let go = b.constant("go", Tensor::from_bool(&[], &[true]));
        let body = |b: &mut Builder| {
            b.input("i", ElementType::INT64, &[]);
            let c = b.input("c", ElementType::BOOL, &[]);
            let state = b.input("state", ElementType::FLOAT, &[1.into(), 4.into()]);
            let on = b.op("Identity", &[c]).one();
            let next = step(b, state);
            let scan = b.op("Relu", &[next]).one();
            for v in [on, next, scan] {
                b.output(v);
            }
        };
        let outputs = b.op("Loop", &[trips, go, x]).body("body", body).outputs(2);
        outputs.iter().for_each(|v| b.output(*v));
        (b.finish().unwrap(), outputs)
    }

    #[test]
    fn a_carried_shape_that_stays_is_known_after_the_loop() {
        let (model, outputs) = looped(|b, s| b.op("Tanh", &[s]).one());
        assert_eq!(text(&model, outputs[0]), "float[n, 4]");
        assert_eq!(text(&model, outputs[1]), "float[3, n, 4]");
    }

    #[test]
    fn a_carried_shape_that_grows_is_not() {
        let (model, outputs) = looped(|b, s| b.op("Concat", &[s, s]).attr("axis", 0i64).one());
        let facts = Facts::infer(&model);
        let shape = facts.ty(&model, outputs[0]).shape().unwrap();
        assert_eq!(shape[1], Dim::Fixed(4));
        assert!(!matches!(&shape[0], Dim::Fixed(_)) && shape[0] != Dim::symbol("n"), "{shape:?}");
    }

    #[test]
    fn a_carried_rank_that_grows_leaves_the_element_type() {
        let (model, outputs) = looped(|b, s| b.op("Unsqueeze", &[s]).attr("axes", [0i64]).one());
        assert_eq!(Facts::infer(&model).ty(&model, outputs[0]).rank(), None);
    }

    #[test]
    fn branches_agree_where_their_dimensions_do() {
        let mut b = Builder::new("if", 17);
        let x = b.input("x", ElementType::FLOAT, &["n".into(), 4.into()]);
        let c = b.input("c", ElementType::BOOL, &[]);
        let then = |b: &mut Builder| {
            let y = b.op("Relu", &[x]).one();
            b.output(y);
        };
        let otherwise = |b: &mut Builder| {
            let y = b.op("Concat", &[x, x]).attr("axis", 1i64).one();
            b.output(y);
        };
        let y = b.op("If", &[c]).body("then_branch", then).body("else_branch", otherwise).one();
        b.output(y);
        let model = b.finish().unwrap();
        let facts = Facts::infer(&model);
        let shape = facts.ty(&model, y).shape().unwrap();
        assert_eq!(shape[0], Dim::symbol("n"));
        assert!(shape[1].fixed().is_none());
    }
}

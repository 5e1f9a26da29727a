//! One walk over the graphs in the order in which nodes run: rules give types, declarations fill what rules leave open,
//! dimensions that are still not known get names, so that two tensors with the same one are seen to agree.

use super::operators::{self, Outputs};
use super::view::Operator;
use super::{Elements, Fact, Facts, Problem, join, symbols, values};
use crate::ir::{Attribute, AttributeValue, Dim, Expr, GraphId, Model, Node, Producer, Text, Type, ValueId};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Most numbers and names in the expression of one dimension: what is larger becomes a name of its own.
const MAX_EXPRESSION: usize = 40;

/// Attributes that a function's body may refer to: those of the call, then the function's defaults.
pub(super) type Environment<'e> = Option<&'e [Attribute]>;

/// Facts in the making.
pub(super) struct Inference<'m> {
    pub model: &'m Model,
    pub facts: Facts,
    pub problems: BTreeMap<ValueId, Problem>,
    functions: FxHashMap<(&'m str, &'m str, &'m str), usize>,
    /// Per function what holds in all calls so far; `None` when one of them could not be entered.
    called: BTreeMap<usize, Option<BTreeMap<ValueId, Fact>>>,
    /// Calls and loop bodies that are being walked.
    pub depth: usize,
    /// Node evaluations left for bodies and calls that are walked more than once.
    pub budget: usize,
}

impl<'m> Inference<'m> {
    pub fn new(model: &'m Model, facts: Facts) -> Inference<'m> {
        let standard = |d: &'m str| if d == "ai.onnx" { "" } else { d };
        let functions = model.header().functions.iter().enumerate();
        let functions = functions.map(|(i, f)| ((standard(&f.domain), &*f.name, &*f.overload), i)).collect();
        Inference {
            model,
            facts,
            problems: BTreeMap::new(),
            functions,
            called: BTreeMap::new(),
            depth: 0,
            budget: 400_000,
        }
    }

    /// Everything, from nothing.
    pub fn run(mut self) -> Facts {
        let model = self.model;
        let (_, values, _) = model.id_bounds();
        self.facts.given = Arc::new(symbols::given(model));
        let mut start: Vec<Option<Arc<Fact>>> = vec![None; values as usize];
        for (id, _) in model.values() {
            if let (Some(slot), Some(constant)) = (start.get_mut(id.index()), model.initializer(id)) {
                *slot = Some(Arc::new(Fact::of(constant.ty())));
            }
        }
        self.facts.facts = start.into_iter().collect();
        for port in model.graph(model.main()).inputs.iter() {
            self.source(port.value);
        }
        self.walk(model.main(), None);
        self.settle_functions();
        self.facts.problems = std::mem::take(&mut self.problems).into_values().collect();
        self.facts
    }

    /// The fact of an input of the main graph or of an initializer: what the file says.
    pub fn source(&mut self, value: ValueId) {
        let Some(v) = self.model.get_value(value) else { return };
        let fact = match self.model.initializer(value) {
            Some(constant) => {
                let fact = Fact::of(constant.ty());
                if matches!(v.producer, Producer::Input { .. }) {
                    self.check_declared(value, &fact.ty);
                }
                fact
            }
            None => Fact::of(symbols::of_input(&v.name, &v.ty, &self.facts.given)),
        };
        self.store(value, fact);
    }

    /// All nodes of a graph, whose inputs have their facts.
    pub fn walk(&mut self, graph: GraphId, environment: Environment) {
        let model = self.model;
        let Some(g) = model.get_graph(graph) else { return };
        for id in g.nodes.values() {
            let Some(node) = model.get_node(*id) else { continue };
            self.visit(node, environment);
        }
    }

    /// One node: its outputs get their facts.
    pub fn visit(&mut self, node: &Node, environment: Environment) {
        let facts = self.evaluate(node, environment);
        let mut facts = facts.into_iter();
        for output in &node.outputs {
            let fact = facts.next().unwrap_or_default();
            if let Some(value) = output {
                self.settle(*value, fact);
            }
        }
    }

    /// What a node gives, before declarations are looked at.
    pub fn evaluate(&mut self, node: &Node, environment: Environment) -> Outputs {
        let node = resolved(node, environment);
        if let Some(function) = self.function_of(&node) {
            return self.call(function, &node);
        }
        if node.bodies().next().is_some() {
            return self.with_bodies(&node, environment);
        }
        self.by_rule(&node).unwrap_or_default()
    }

    fn by_rule(&self, node: &Node) -> Option<Outputs> {
        if &*node.domain == "ai.onnx.ml" {
            let opset = self.model.opset(node.graph, "ai.onnx.ml")?;
            let op = Operator { model: self.model, facts: &self.facts, node, opset };
            return operators::ml_rule(&node.op_type)?(&op);
        }
        let op = Operator::new(self.model, &self.facts, node)?;
        let mut outputs = operators::rule(&node.op_type)?(&op)?;
        values::attach(&op, &mut outputs);
        Some(outputs)
    }

    /// What is known of a value so far.
    pub fn fact(&self, value: ValueId) -> Fact {
        match self.facts.facts.get(value.index()) {
            Some(Some(fact)) => Fact::clone(fact),
            _ => Fact::default(),
        }
    }

    /// What is known of a node's input; nothing of one that is not given.
    pub fn input(&self, node: &Node, index: usize) -> Fact {
        let Some(value) = node.input(index) else { return Fact::default() };
        let mut fact = self.fact(value);
        if fact.elements.is_none() {
            // Constants are read where they are needed; in a body or a function they are a plain input.
            fact.elements = self.facts.elements(self.model, value);
        }
        fact
    }

    /// Keeps what was inferred of a node's output, completed by what the file declares.
    pub fn settle(&mut self, value: ValueId, mut fact: Fact) {
        fact = self.completed(value, fact);
        self.store(value, fact);
    }

    /// Inferred and declared together; dimensions that nobody knows get names.
    pub fn completed(&mut self, value: ValueId, mut fact: Fact) -> Fact {
        let Some(v) = self.model.get_value(value) else { return fact };
        let main = v.graph == self.model.main();
        if v.ty != Type::Unknown {
            self.check_declared(value, &fact.ty);
            let given = &self.facts.given;
            // Names on outputs are what a person called them; others are those of a tool that derived them.
            let trusted = main && !v.uses.is_output();
            let names = |d: &Dim| trusted && symbols::is_adoptable(d, given);
            fact.ty = match main {
                true => join::filled(fact.ty, &v.ty, &names),
                // What exporters declare inside bodies is often true of one iteration only.
                false => join::filled(fact.ty, &without_shapes(&v.ty), &names),
            };
        }
        self.name_dims(value, &mut fact);
        fact
    }

    /// The same for a formal input of a body or function.
    pub fn settle_input(&mut self, value: ValueId, fact: Fact) {
        let mut fact = fact;
        if let Some(v) = self.model.get_value(value) {
            fact.ty = join::filled(fact.ty, &without_shapes(&v.ty), &|_| false);
        }
        self.name_dims(value, &mut fact);
        self.store(value, fact);
    }

    fn name_dims(&self, value: ValueId, fact: &mut Fact) {
        if let Type::Tensor { shape: Some(shape), .. } = &mut fact.ty {
            for (axis, d) in shape.iter_mut().enumerate() {
                let too_large = matches!(d, Dim::Symbolic(e) if !e.is_within(MAX_EXPRESSION));
                if too_large || *d == Dim::Unknown {
                    *d = symbols::placeholder(value, axis);
                }
            }
        }
        if let Some(elements) = &fact.elements
            && elements.iter().flatten().any(|e| !e.is_within(MAX_EXPRESSION))
        {
            let small = |e: &Option<Expr>| e.clone().filter(|e| e.is_within(MAX_EXPRESSION));
            fact.elements = Some(elements.iter().map(small).collect());
        }
    }

    pub fn store(&mut self, value: ValueId, fact: Fact) {
        let facts = &mut self.facts.facts;
        while facts.len() <= value.index() {
            facts.push_back(None);
        }
        facts.set(value.index(), Some(Arc::new(fact)));
    }

    /// A declaration that cannot be true is a problem.
    fn check_declared(&mut self, value: ValueId, inferred: &Type) {
        let Some(v) = self.model.get_value(value) else { return };
        let main = v.graph == self.model.main();
        let lies = join::contradict(inferred, &v.ty) || (main && narrower(&v.ty, inferred));
        if lies && self.depth == 0 {
            let (name, declared) = (&v.name, &v.ty);
            let message: Text = format!("'{name}' is declared as {declared}, but is {inferred}").into();
            self.problems.insert(value, Problem { value, message });
        }
    }

    /// Facts of a body's outputs, as far as they mean something outside of it.
    pub fn results(&self, body: GraphId) -> Vec<Fact> {
        let Some(g) = self.model.get_graph(body) else { return Vec::new() };
        g.outputs
            .iter()
            .map(|port| {
                let mut fact = self.fact(port.value);
                if fact.elements.is_none() {
                    fact.elements = self.facts.elements(self.model, port.value);
                }
                self.exported(fact, body)
            })
            .collect()
    }

    fn exported(&self, fact: Fact, body: GraphId) -> Fact {
        let ty = self.exported_type(&fact.ty, body);
        let keep = |e: &Option<Expr>| e.clone().filter(|e| !symbols::is_local(self.model, e, body));
        let elements: Option<Elements> = fact.elements.map(|list| list.iter().map(keep).collect());
        Fact { ty, elements: elements.filter(|list| list.iter().any(Option::is_some)) }
    }

    fn exported_type(&self, ty: &Type, body: GraphId) -> Type {
        match ty {
            Type::Tensor { element, shape: Some(s) } => {
                let dim = |d: &Dim| match d {
                    Dim::Symbolic(e) if symbols::is_local(self.model, e, body) => Dim::Unknown,
                    d => d.clone(),
                };
                Type::Tensor { element: *element, shape: Some(s.iter().map(dim).collect()) }
            }
            Type::Sequence(ty) => Type::Sequence(Box::new(self.exported_type(ty, body))),
            Type::Optional(ty) => Type::Optional(Box::new(self.exported_type(ty, body))),
            ty => ty.clone(),
        }
    }

    fn function_of(&self, node: &Node) -> Option<usize> {
        if self.functions.is_empty() {
            return None;
        }
        let domain = if node.is_standard() { "" } else { &*node.domain };
        self.functions.get(&(domain, &*node.op_type, &*node.overload)).copied()
    }

    /// A call of a model-local function: its body is walked with what the call gives.
    fn call(&mut self, index: usize, node: &Node) -> Outputs {
        let model = self.model;
        let Some(function) = model.header().functions.get(index) else { return Outputs::new() };
        let Some(graph) = model.get_graph(function.graph) else { return Outputs::new() };
        if self.depth > 40 || self.budget < graph.nodes.len() {
            self.called.insert(index, None);
            return Outputs::new();
        }
        self.budget -= graph.nodes.len();
        for (i, port) in graph.inputs.iter().enumerate() {
            let fact = self.input(node, i);
            self.settle_input(port.value, fact);
        }
        let given = node.attributes.iter();
        let defaults = function.defaults.iter().filter(|d| node.attribute(&d.name).is_none());
        let environment: Vec<Attribute> = given.chain(defaults).cloned().collect();
        self.depth += 1;
        self.walk(function.graph, Some(&environment));
        self.depth -= 1;
        let results = self.results(function.graph).into();
        self.note_call(index, function.graph);
        results
    }

    /// Joins what a call made known of a function's values with what earlier calls did.
    fn note_call(&mut self, index: usize, graph: GraphId) {
        let now: BTreeMap<ValueId, Fact> =
            values_inside(self.model, graph).into_iter().map(|v| (v, self.fact(v))).collect();
        let joined = match self.called.remove(&index) {
            None => Some(now),
            Some(None) => None,
            Some(Some(before)) => Some(
                before
                    .into_iter()
                    .map(|(v, fact)| {
                        let fact = now.get(&v).map(|n| join::facts(&fact, n)).unwrap_or_default();
                        (v, fact)
                    })
                    .collect(),
            ),
        };
        self.called.insert(index, joined);
    }

    /// What holds in all calls becomes what is known of the values of functions.
    fn settle_functions(&mut self) {
        let functions = &self.model.header().functions;
        for (index, known) in std::mem::take(&mut self.called) {
            let Some(function) = functions.get(index) else { continue };
            for value in values_inside(self.model, function.graph) {
                let mut fact = known.as_ref().and_then(|k| k.get(&value)).cloned().unwrap_or_default();
                self.name_dims(value, &mut fact);
                self.store(value, fact);
            }
        }
    }
}

/// Values that a graph and its bodies define by inputs and nodes.
fn values_inside(model: &Model, graph: GraphId) -> BTreeSet<ValueId> {
    let mut values = BTreeSet::new();
    let mut open = vec![graph];
    while let Some(graph) = open.pop() {
        let Some(g) = model.get_graph(graph) else { continue };
        values.extend(g.inputs.iter().map(|p| p.value));
        for node in g.nodes.values().filter_map(|id| model.get_node(*id)) {
            values.extend(node.outputs.iter().flatten());
            open.extend(node.bodies().map(|(_, g)| g));
        }
    }
    values
}

/// The node with references to its caller's attributes replaced by those.
fn resolved<'n>(node: &'n Node, environment: Environment) -> Cow<'n, Node> {
    let Some(attributes) = environment.filter(|_| node.has_attribute_references()) else {
        return Cow::Borrowed(node);
    };
    let mut node = node.clone();
    node.attributes.retain_mut(|a| {
        let AttributeValue::Reference { name, .. } = &a.value else { return true };
        let given = attributes.iter().find(|g| g.name == *name);
        given.is_some_and(|g| {
            a.value = g.value.clone();
            true
        })
    });
    Cow::Owned(node)
}

/// Element types only.
fn without_shapes(ty: &Type) -> Type {
    match ty {
        Type::Tensor { element, .. } => Type::Tensor { element: *element, shape: None },
        Type::Sequence(ty) => Type::Sequence(Box::new(without_shapes(ty))),
        Type::Optional(ty) => Type::Optional(Box::new(without_shapes(ty))),
        ty => ty.clone(),
    }
}

/// True when a declaration fixes a dimension that depends on the sizes of named ones.
fn narrower(declared: &Type, inferred: &Type) -> bool {
    let (Some(d), Some(i)) = (declared.shape(), inferred.shape()) else { return false };
    let varies =
        |d: &Dim| matches!(d, Dim::Symbolic(e) if !e.symbols().iter().any(|s| symbols::is_placeholder(s)));
    d.len() == i.len() && d.iter().zip(i).any(|(d, i)| d.fixed().is_some() && varies(i))
}

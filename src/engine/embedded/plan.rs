//! A graph made ready to run: steps in order, values in numbered slots, what is constant, what is read last where.

use super::call::{Attributes, Constants, Kernel, Packed};
use super::kernels;
use super::weights::{Weight, Weights};
use crate::engine::fault::EngineError;
use crate::engine::{CallPath, Settings};
use crate::ir::{
    Attribute, AttributeValue, Constant, ElementType, GraphId, Model, Node, NodeId, Producer, Text, Type,
    ValueId,
};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// Place of a value during a run of a plan.
pub type Slot = u32;

/// Where a node or a graph output gets a value from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    Slot(Slot),
    /// Position in [`Plan::weights`].
    Weight(u32),
}

/// A value that is read, and whether nobody reads it afterwards.
#[derive(Clone, Copy, Debug)]
pub struct Read {
    pub source: Source,
    pub last: bool,
}

/// A body of If, Loop or Scan, or a function, with the values it reads from around it.
pub struct Body {
    pub plan: Plan,
    /// Types of its outputs, for what no iteration gave.
    pub results: Vec<Type>,
    /// From the plan around it into slots of this one.
    pub captures: Vec<(Read, Slot)>,
}

/// How a step runs.
pub enum Action {
    /// With the position of the input that stands packed, if one does.
    Kernel(Kernel, Option<(usize, Packed)>),
    If {
        then: Body,
        otherwise: Body,
    },
    Loop(Body),
    Scan(Body),
    SequenceMap(Body),
    Function(Body),
}

/// One node in one place.
pub struct Step {
    pub node: NodeId,
    /// Number among all steps of all plans of the model.
    pub index: u32,
    pub op_type: Text,
    pub opset: i64,
    pub attributes: Arc<[Attribute]>,
    pub inputs: SmallVec<[Option<Read>; 4]>,
    pub outputs: SmallVec<[Option<Output>; 2]>,
    pub action: Action,
}

/// An output of a step.
#[derive(Clone, Debug)]
pub struct Output {
    pub slot: Slot,
    pub value: ValueId,
    /// Nobody reads it.
    pub unread: bool,
    /// What the file says its element type is: a kernel that gives another is at fault.
    pub element: Option<ElementType>,
}

/// A graph ready to run.
pub struct Plan {
    pub steps: Vec<Step>,
    pub slots: usize,
    /// Formal inputs that are fed, in order.
    pub inputs: Vec<Slot>,
    pub outputs: Vec<Option<Source>>,
    pub weights: Vec<Arc<Weight>>,
    /// Values of this graph by id.
    pub places: FxHashMap<ValueId, Source>,
}

/// Where each step stands, by [`Step::index`].
pub type Places = Vec<(CallPath, NodeId)>;

/// Makes plans.
pub struct Planner<'a> {
    model: &'a Model,
    settings: &'a Settings,
    weights: &'a Weights,
    path: CallPath,
    places: Places,
    /// Operators without a kernel, with the labels of their nodes.
    missing: Vec<(Text, Vec<Text>)>,
}

/// Attributes of the call around a function body.
type Bindings<'a> = Option<&'a [Attribute]>;

/// Function calls inside one another beyond this are taken for endless.
const MOST_CALLS: usize = 100;

impl<'a> Planner<'a> {
    pub fn new(model: &'a Model, settings: &'a Settings, weights: &'a Weights) -> Planner<'a> {
        Planner {
            model,
            settings,
            weights,
            path: CallPath::new(),
            places: Places::new(),
            missing: Vec::new(),
        }
    }

    /// The plan of the main graph.
    pub fn plan(mut self) -> Result<(Plan, Places), EngineError> {
        let main = self.graph(self.model.main(), None, true)?;
        debug_assert!(main.captures.is_empty(), "the main graph has nothing around it");
        if !self.missing.is_empty() {
            return Err(EngineError::NoKernel(self.missing));
        }
        Ok((main.plan, self.places))
    }

    fn graph(&mut self, id: GraphId, bindings: Bindings, main: bool) -> Result<Unbound, EngineError> {
        let graph = self.model.graph(id).clone();
        let mut making = Making::default();
        for port in graph.inputs.iter() {
            let constant = self.model.value(port.value).constant.as_ref();
            if main
                && self.model.is_constant_input(port.value)
                && let Some(constant) = constant
            {
                making.weight(port.value, self.weights.get(constant));
                continue;
            }
            let slot = making.slot(port.value);
            making.plan.inputs.push(slot);
        }
        let nodes: Vec<(NodeId, Arc<Node>)> =
            self.model.nodes_of(id).map(|(n, node)| (n, node.clone())).collect();
        for (node_id, node) in nodes {
            self.step(&mut making, id, node_id, &node, bindings)?;
        }
        for port in graph.outputs.iter() {
            let source = self.source(&mut making, id, port.value);
            making.plan.outputs.push(Some(source));
        }
        Ok(making.finish())
    }

    /// Where a value that is read in `graph` comes from.
    fn source(&self, making: &mut Making, graph: GraphId, value: ValueId) -> Source {
        if let Some(source) = making.plan.places.get(&value) {
            return *source;
        }
        let v = self.model.value(value);
        if v.producer == Producer::Initializer
            && let Some(constant) = &v.constant
        {
            return making.weight(value, self.weights.get(constant));
        }
        debug_assert!(v.graph != graph, "nodes stand after what they read");
        let slot = making.slot(value);
        making.captures.push((value, slot));
        Source::Slot(slot)
    }

    fn step(
        &mut self,
        making: &mut Making,
        graph: GraphId,
        id: NodeId,
        node: &Node,
        bindings: Bindings,
    ) -> Result<(), EngineError> {
        let attributes = resolved(&node.attributes, bindings);
        let inputs: SmallVec<[Option<Source>; 4]> =
            node.inputs.iter().map(|v| v.map(|v| self.source(making, graph, v))).collect();
        let opset = self.model.opset(graph, &node.domain).unwrap_or(1);
        let index = self.places.len() as u32;
        self.places.push((self.path.clone(), id));
        let mut missing: Option<String> = None;

        let action = if let Some(function) = self.model.function_of(node) {
            if self.path.len() >= MOST_CALLS {
                let message = format!("function {} calls itself", function.name);
                return Err(EngineError::Model(message));
            }
            let mut given: Vec<Attribute> = attributes.to_vec();
            for default in &function.defaults {
                if !given.iter().any(|a| a.name == default.name) {
                    given.push(default.clone());
                }
            }
            let body = self.inside(making, graph, id, function.graph, Some(&given))?;
            Some(Action::Function(body))
        } else if node.is_standard() && matches!(&*node.op_type, "If" | "Loop" | "Scan" | "SequenceMap") {
            let body = |name: &str| match attributes.iter().find(|a| &*a.name == name).map(|a| &a.value) {
                Some(AttributeValue::Graph(g)) => Ok(*g),
                _ => Err(EngineError::Model(format!(
                    "node {} ({}) has no graph attribute {name}",
                    self.model.node_label(id),
                    node.op_type
                ))),
            };
            match &*node.op_type {
                "If" => {
                    let (then, otherwise) = (body("then_branch")?, body("else_branch")?);
                    let then = self.inside(making, graph, id, then, bindings)?;
                    let otherwise = self.inside(making, graph, id, otherwise, bindings)?;
                    Some(Action::If { then, otherwise })
                }
                op => {
                    let inner = body("body")?;
                    let body = self.inside(making, graph, id, inner, bindings)?;
                    Some(match op {
                        "Loop" => Action::Loop(body),
                        "Scan" => Action::Scan(body),
                        _ => Action::SequenceMap(body),
                    })
                }
            }
        } else {
            match kernels::find(&node.domain, &node.op_type) {
                Some(kernel) => Some(Action::Kernel(kernel, None)),
                None => {
                    missing = Some(match &*node.domain {
                        "" | "ai.onnx" => node.op_type.to_string(),
                        domain => format!("{domain}.{}", node.op_type),
                    });
                    None
                }
            }
        };
        let Some(mut action) = action else {
            let operator: Text = missing.unwrap_or_default().into();
            let label: Text = self.model.node_label(id).into();
            match self.missing.iter_mut().find(|(o, _)| *o == operator) {
                Some((_, nodes)) => nodes.push(label),
                None => self.missing.push((operator, vec![label])),
            }
            // Its outputs are still given places, so that all missing operators are found.
            for value in node.outputs.iter().flatten() {
                making.slot(*value);
            }
            return Ok(());
        };
        if let Action::Kernel(kernel, packed) = &mut action
            && let Some(pack) = kernel.pack
            && !self.settings.wide
        {
            let constants = Constants {
                attributes: Attributes(&attributes),
                opset,
                inputs: inputs.iter().map(|s| s.and_then(|s| making.shape_of(s))).collect(),
            };
            if let Some(packing) = pack(&constants)
                && let Some(Some(Source::Weight(w))) = inputs.get(packing.input)
            {
                let input = packing.input;
                *packed = self.weights.packed(&making.plan.weights[*w as usize], packing).map(|p| (input, p));
            }
        }
        let packed_input = match &action {
            Action::Kernel(_, Some((input, _))) => Some(*input),
            _ => None,
        };
        let outputs = node
            .outputs
            .iter()
            .map(|v| {
                v.map(|value| Output {
                    slot: making.slot(value),
                    value,
                    unread: self.model.value(value).uses.is_empty(),
                    element: self.declared(value),
                })
            })
            .collect();
        let read = |source| Read { source, last: false };
        let inputs = inputs
            .into_iter()
            .enumerate()
            .map(|(i, s)| if packed_input == Some(i) { None } else { s.map(read) })
            .collect();
        making.plan.steps.push(Step {
            node: id,
            index,
            op_type: node.op_type.clone(),
            opset,
            attributes,
            inputs,
            outputs,
            action,
        });
        Ok(())
    }

    /// A graph inside a node, and what it reads from the plan around it.
    fn inside(
        &mut self,
        making: &mut Making,
        outer: GraphId,
        node: NodeId,
        inner: GraphId,
        bindings: Bindings,
    ) -> Result<Body, EngineError> {
        self.path.push(node);
        let unbound = self.graph(inner, bindings, false);
        self.path.pop();
        let Unbound { plan, captures } = unbound?;
        let captures = captures
            .into_iter()
            .map(|(value, slot)| {
                let source = self.source(making, outer, value);
                (Read { source, last: false }, slot)
            })
            .collect();
        let results = self.model.graph(inner).outputs.iter();
        let results = results.map(|p| self.model.value(p.value).ty.clone()).collect();
        Ok(Body { plan, results, captures })
    }

    fn declared(&self, value: ValueId) -> Option<ElementType> {
        if self.settings.wide {
            return None;
        }
        match &self.model.value(value).ty {
            Type::Tensor { element, .. } if *element != ElementType::UNDEFINED => Some(*element),
            _ => None,
        }
    }
}

/// Attributes with those of the call in place of references; what the call does not give is not given.
fn resolved(attributes: &[Attribute], bindings: Bindings) -> Arc<[Attribute]> {
    attributes
        .iter()
        .filter_map(|a| match &a.value {
            AttributeValue::Reference { name, .. } => {
                let given = bindings?.iter().find(|b| b.name == *name)?;
                Some(Attribute { name: a.name.clone(), value: given.value.clone(), ..a.clone() })
            }
            _ => Some(a.clone()),
        })
        .collect()
}

/// A plan whose captures are not yet tied to the plan around it.
struct Unbound {
    plan: Plan,
    captures: Vec<(ValueId, Slot)>,
}

/// A plan being made.
struct Making {
    plan: Plan,
    captures: Vec<(ValueId, Slot)>,
}

impl Default for Making {
    fn default() -> Making {
        let plan = Plan {
            steps: Vec::new(),
            slots: 0,
            inputs: Vec::new(),
            outputs: Vec::new(),
            weights: Vec::new(),
            places: FxHashMap::default(),
        };
        Making { plan, captures: Vec::new() }
    }
}

impl Making {
    fn slot(&mut self, value: ValueId) -> Slot {
        let slot = self.plan.slots as Slot;
        self.plan.slots += 1;
        self.plan.places.insert(value, Source::Slot(slot));
        slot
    }

    fn weight(&mut self, value: ValueId, weight: Arc<Weight>) -> Source {
        let source = Source::Weight(self.plan.weights.len() as u32);
        self.plan.weights.push(weight);
        self.plan.places.insert(value, source);
        source
    }

    fn shape_of(&self, source: Source) -> Option<(ElementType, SmallVec<[usize; 6]>)> {
        let Source::Weight(w) = source else { return None };
        match &self.plan.weights.get(w as usize)?.constant {
            Constant::Dense(t) => {
                let dims = t.dims.iter().map(|d| usize::try_from(*d).ok()).collect::<Option<_>>()?;
                Some((t.element, dims))
            }
            Constant::Sparse(_) => None,
        }
    }

    /// Marks the last reader of every slot, walking backwards.
    fn finish(mut self) -> Unbound {
        let mut read_later = vec![false; self.plan.slots];
        for output in self.plan.outputs.iter().flatten() {
            if let Source::Slot(s) = output {
                read_later[*s as usize] = true;
            }
        }
        let mut mark = |read: &mut Read| {
            if let Source::Slot(s) = read.source {
                read.last = !std::mem::replace(&mut read_later[s as usize], true);
            }
        };
        for step in self.plan.steps.iter_mut().rev() {
            // What a body reads is read after the node's own inputs were; the branches of an If exclude each other, so
            // only the one that is marked first may be marked last.
            match &mut step.action {
                Action::If { then, otherwise } => {
                    otherwise.captures.iter_mut().chain(&mut then.captures).for_each(|(read, _)| mark(read));
                }
                Action::Loop(body)
                | Action::Scan(body)
                | Action::SequenceMap(body)
                | Action::Function(body) => {
                    body.captures.iter_mut().for_each(|(read, _)| mark(read));
                }
                Action::Kernel(..) => {}
            }
            step.inputs.iter_mut().rev().flatten().for_each(&mut mark);
        }
        Unbound { plan: self.plan, captures: self.captures }
    }
}

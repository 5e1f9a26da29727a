//! What names mean while a model is read: graphs inside graphs, hidden names, the order in which nodes can run.

use super::import::{Importer, LISTED};
use super::proto::NodeProto;
use super::sort::stable_order;
use crate::formats::error::{Problem, Refusal, Severity};
use crate::ir::{Construction, GraphId, Producer, Text, Type, Value, ValueId};
use rustc_hash::FxHashMap;

/// The names of one graph.
pub(super) struct Frame {
    pub label: String,
    pub names: FxHashMap<Text, Name>,
    /// Position of the node that is being read.
    pub current: u32,
    /// Pairs (reader, producer) of node positions, captures by bodies included.
    reads: Vec<(u32, u32)>,
}

#[derive(Clone, Copy)]
pub(super) struct Name {
    pub value: ValueId,
    /// Position of the node that produces it.
    producer: Option<u32>,
}

impl Importer<'_> {
    /// A new value of the innermost graph.
    pub(super) fn define(
        &mut self,
        graph: GraphId,
        name: &str,
        ty: Type,
        producer: Option<(u32, &[NodeProto])>,
    ) -> Result<ValueId, Refusal> {
        let name = self.text(name);
        let mut hidden = false;
        if let Some((innermost, outer)) = self.frames.split_last() {
            hidden = outer.iter().any(|frame| frame.names.contains_key(&name));
            if let Some(known) = innermost.names.get(&name) {
                return Err(self.taken(&name, *known, producer));
            }
        }
        let id = self.c.add_value(Value::new(graph, name.clone(), ty));
        if hidden {
            self.shadowed += 1;
            if self.shadowed <= LISTED {
                let label = self.frames.last().map(|frame| frame.label.clone()).unwrap_or_default();
                let text = format!(
                    "'{name}' in {label} hides an outer value of the same name, which ONNX does not allow"
                );
                self.problems.push(Problem::new(Severity::Warning, text).at_value(id));
            }
        }
        if let Some(frame) = self.frames.last_mut() {
            frame.names.insert(name, Name { value: id, producer: producer.map(|(position, _)| position) });
        }
        Ok(id)
    }

    /// Two values of one graph with one name.
    fn taken(&self, name: &str, known: Name, producer: Option<(u32, &[NodeProto])>) -> Refusal {
        let place = |position: u32| {
            let node = producer.and_then(|(_, nodes)| nodes.get(position as usize));
            node.map(|node| node_place(position as usize, node))
                .unwrap_or_else(|| format!("node #{position}"))
        };
        let first = match (known.producer, self.c.value(known.value).producer) {
            (Some(position), _) => place(position),
            (None, Producer::Initializer) => "an initializer".to_owned(),
            (None, _) => "a graph input".to_owned(),
        };
        match producer {
            Some((position, _)) => {
                self.refuse(place(position), format!("it produces '{name}', which {first} gives already"))
            }
            None => self.refuse(format!("value '{name}'"), format!("{first} has this name already")),
        }
    }

    /// The value that a name means here: of the innermost graph that has it.
    pub(super) fn resolve(&mut self, name: &str) -> Option<ValueId> {
        for frame in self.frames.iter_mut().rev() {
            if let Some(known) = frame.names.get(name) {
                if let Some(producer) = known.producer
                    && frame.current != u32::MAX
                {
                    frame.reads.push((frame.current, producer));
                }
                return Some(known.value);
            }
        }
        None
    }

    pub(super) fn enter(&mut self, label: String, nodes: usize) {
        let names = FxHashMap::with_capacity_and_hasher(nodes, Default::default());
        self.frames.push(Frame { label, names, current: u32::MAX, reads: Vec::new() });
    }

    /// Closes the innermost graph: its nodes are brought into an order in which they can run.
    pub(super) fn leave(&mut self, graph: GraphId) -> Result<(), Refusal> {
        let Some(frame) = self.frames.pop() else { return Ok(()) };
        let Some(early) = frame.reads.iter().find(|(reader, producer)| producer >= reader) else {
            return Ok(());
        };
        let nodes = self.c.graph(graph).nodes.clone();
        let at = |position: u32| nodes.get(position as usize).copied();
        let label = |c: &Construction, position: u32| {
            let node = at(position).and_then(|id| c.node(id));
            node.map(|node| node_label(position as usize, &node.name, &node.op_type)).unwrap_or_default()
        };
        match stable_order(nodes.len(), &frame.reads) {
            Ok(order) => {
                let text = format!(
                    "the nodes of {} were not in an order in which they can run ({} stood before a node that it reads): sorted",
                    frame.label,
                    label(&self.c, early.0)
                );
                let mut problem = Problem::new(Severity::Warning, text);
                problem.node = at(early.0);
                self.problems.push(problem);
                self.c.graph_mut(graph).nodes = order.into_iter().filter_map(at).collect();
                Ok(())
            }
            Err(position) => {
                let place = format!("{} in {}", label(&self.c, position), frame.label);
                Err(Refusal::new(
                    place,
                    "it is part of a cycle: it reads, through other nodes, what it produces",
                ))
            }
        }
    }

    /// A sentence with its place in the graphs around.
    pub(super) fn refuse(&self, place: impl Into<String>, what: impl Into<String>) -> Refusal {
        let place = place.into();
        match self.frames.last() {
            Some(frame) if frame.label != "main" => Refusal::new(format!("{place} in {}", frame.label), what),
            _ => Refusal::new(place, what),
        }
    }

    /// Label of a body, for messages.
    pub(super) fn body_label(&self, node: &str, attribute: &str) -> String {
        let outer = self.frames.last().map(|frame| frame.label.as_str()).unwrap_or_default();
        if self.frames.len() > 3 {
            format!("…/{node}.{attribute}")
        } else {
            format!("{outer}/{node}.{attribute}")
        }
    }
}

pub(super) fn node_place(position: usize, node: &NodeProto) -> String {
    let name = node.name.as_deref().unwrap_or_default();
    node_label(position, name, node.op_type.as_deref().unwrap_or_default())
}

fn node_label(position: usize, name: &str, op_type: &str) -> String {
    match name.is_empty() {
        true => format!("node #{position} ({op_type})"),
        false => format!("node '{name}' ({op_type})"),
    }
}

//! Removes what nobody reads: nodes, initializers, and optional outputs at the end of a node's list.
//!
//! before: `{ d, mask = Dropout (x)  unused = Exp (d)  y = Relu (d) }`
//! after:  `{ d = Dropout (x)  y = Relu (d) }`
//!
//! Nodes that only feed each other go in one step. Kept are inputs and outputs of graphs, nodes of operators that are not
//! known (they may do more than compute), values that a quantization annotation or the training info names, unread outputs of If, Loop and Scan, and outputs whose mere presence changes what
//! a node does (BatchNormalization in training). Costs nothing. All opsets.

use crate::ir::{GraphId, Model, Node, NodeId, Patch, PatchBuilder, Producer, Use, ValueId};
use crate::passes::operators::Natures;
use crate::passes::{Anchor, Context, Declined, Findings, Pass, PassInfo, Risk, ShapeMode, Site, Stage};
use crate::passes::{known, matching};
use std::collections::{BTreeMap, BTreeSet};

/// See the module.
pub struct EliminateDeadCode;

static INFO: PassInfo = PassInfo {
    name: "eliminate_dead_code",
    stage: Stage::Clean,
    summary: "Removes nodes, initializers and optional outputs that nobody reads",
    risk: Risk::Exact,
    shapes: ShapeMode::Any,
    after: &[],
    default_on: true,
    example_before: r#"<ir_version: 8, opset_import: ["" : 17]>
g (float[N, 4] x) => (float[N, 4] y) {
   d, mask = Dropout (x)
   unused = Exp (d)
   y = Relu (d)
}
"#,
    example_after: r#"<ir_version: 8, opset_import: ["" : 17]>
g (float[N, 4] x) => (float[N, 4] y) {
   d = Dropout (x)
   y = Relu (d)
}
"#,
};

impl Pass for EliminateDeadCode {
    fn info(&self) -> &PassInfo {
        &INFO
    }

    fn find(&self, cx: &Context, graph: GraphId, around: Option<&[NodeId]>) -> Findings {
        let model = cx.model;
        let candidates = matching::candidates(cx, graph, around);
        let natures = Natures::new(cx);
        let (mut sites, mut blocked) = (Vec::new(), Vec::new());
        for group in dead_groups(model, &natures, &candidates) {
            let Some(first) = group.first() else { continue };
            let what = match group.len() {
                1 => model.node(*first).op_type.clone(),
                n => format!("{n} nodes that nobody reads").into(),
            };
            sites.push(Site { graph, anchor: Anchor::Node(*first), nodes: group, what });
        }
        let gone: BTreeSet<NodeId> = sites.iter().flat_map(|s| s.nodes.iter().copied()).collect();
        for id in candidates.iter().filter(|id| !gone.contains(id)) {
            let node = model.node(*id);
            let unread = readers_if_all(model, node, |_| false).is_some();
            if unread && !node.outputs.is_empty() && !natures.of(node).known {
                let condition = "what the operator does is not known: it may do more than compute";
                blocked.push(matching::blocked(model, *id, condition, *id));
            }
            let spoken = node.outputs.iter().flatten().find_map(|v| matching::spoken_of(model, *v));
            if unread && let Some(condition) = spoken {
                blocked.push(matching::blocked(model, *id, condition, *id));
            }
            if needed_outputs(cx, node) < node.outputs.len() {
                let what = format!("unread outputs of {}", node.op_type).into();
                sites.push(Site { graph, anchor: Anchor::Node(*id), nodes: vec![*id], what });
            }
        }
        sites.sort_by_key(|s| match s.anchor {
            Anchor::Node(n) => Some(model.node(n).order),
            Anchor::Value(_) => None,
        });
        if around.is_none() {
            for (id, value) in model.values() {
                if value.graph == graph
                    && value.producer == Producer::Initializer
                    && value.uses.is_empty()
                    && model.spoken_of(id).is_none()
                {
                    let what = "unused initializer".into();
                    sites.push(Site { graph, anchor: Anchor::Value(id), nodes: Vec::new(), what });
                }
            }
        }
        Findings { sites, blocked }
    }

    fn rewrite(&self, cx: &Context, site: &Site) -> Result<Patch, Declined> {
        let model = cx.model;
        let mut p = PatchBuilder::new(model);
        match site.anchor {
            Anchor::Value(id) => {
                let value = model.get_value(id).ok_or(Declined::Stale)?;
                if value.producer != Producer::Initializer || !value.uses.is_empty() {
                    return Err(Declined::Stale);
                }
                p.remove_value(id);
            }
            Anchor::Node(id) => {
                let node = model.get_node(id).ok_or(Declined::Stale)?;
                let dead = dead_among(model, &Natures::new(cx), &site.nodes);
                if !dead.is_empty() {
                    let inputs: Vec<ValueId> = dead.iter().flat_map(|n| reads_of(model, *n)).collect();
                    for n in dead.iter().rev() {
                        p.remove_node(*n);
                    }
                    matching::drop_constants(&mut p, inputs, &dead);
                } else {
                    let needed = needed_outputs(cx, node);
                    if needed == node.outputs.len() {
                        return Err(Declined::Stale);
                    }
                    p.set_outputs(id, node.outputs.iter().take(needed).copied());
                }
            }
        }
        Ok(p.finish())
    }
}

/// Values that a node reads itself; what its bodies capture is left to the next look.
fn reads_of(model: &Model, node: NodeId) -> impl Iterator<Item = ValueId> + '_ {
    model.get_node(node).into_iter().flat_map(|n| n.inputs.iter().flatten().copied())
}

fn may_go(model: &Model, natures: &Natures, node: &Node) -> bool {
    node.outputs.iter().any(Option::is_some)
        && natures.of(node).known
        && node.outputs.iter().flatten().all(|v| model.spoken_of(*v).is_none())
}

/// Nodes that nobody reads, with what only they read, as connected groups in graph order.
fn dead_groups(model: &Model, natures: &Natures, candidates: &[NodeId]) -> Vec<Vec<NodeId>> {
    let mut dead: BTreeMap<NodeId, usize> = BTreeMap::new();
    let mut open: Vec<NodeId> = candidates.to_vec();
    let mut roots: Vec<usize> = Vec::new();
    while let Some(id) = open.pop() {
        let Some(node) = model.get_node(id) else { continue };
        if dead.contains_key(&id) {
            continue;
        }
        let Some(readers) = readers_if_all(model, node, |r| dead.contains_key(&r)) else { continue };
        if !may_go(model, natures, node) {
            continue;
        }
        // Groups that this node feeds become one.
        let new = roots.len();
        roots.push(new);
        for reader in readers {
            if let Some(group) = dead.get(&reader) {
                let top = top_of(&mut roots, *group);
                roots[top] = new;
            }
        }
        dead.insert(id, new);
        let graph = node.graph;
        open.extend(
            node.inputs.iter().flatten().filter_map(|v| matching::producer(model, *v, graph)).map(|(n, _)| n),
        );
    }
    let mut groups: BTreeMap<usize, Vec<NodeId>> = BTreeMap::new();
    for (id, group) in &dead {
        groups.entry(top_of(&mut roots, *group)).or_default().push(*id);
    }
    let mut groups: Vec<Vec<NodeId>> = groups.into_values().collect();
    for group in &mut groups {
        group.sort_by_key(|n| model.node(*n).order);
    }
    groups
}

/// Representative of a group, halving the way there for the next time.
fn top_of(roots: &mut [usize], mut at: usize) -> usize {
    while let Some(up) = roots.get(at).copied().filter(|up| *up != at) {
        let next = roots.get(up).copied().unwrap_or(up);
        if let Some(slot) = roots.get_mut(at) {
            *slot = next;
        }
        at = next;
    }
    at
}

/// Readers of a node's results, when there are none but those accepted. A reader in a body counts as the node that
/// holds the body.
fn readers_if_all(model: &Model, node: &Node, accepted: impl Fn(NodeId) -> bool) -> Option<Vec<NodeId>> {
    let mut readers = Vec::new();
    for value in node.outputs.iter().flatten().filter_map(|v| model.get_value(*v)) {
        for u in value.uses.iter() {
            let (reader, inner) = match u {
                Use::Input { node: reader, .. } => (Some(reader), model.get_node(reader)?.graph),
                Use::Output { graph, .. } => (None, graph),
            };
            let reader = model.enclosing_node(node.graph, inner)?.or(reader)?;
            if !accepted(reader) {
                return None;
            }
            readers.push(reader);
        }
    }
    Some(readers)
}

/// The largest part of a group whose results only that part reads, in graph order.
fn dead_among(model: &Model, natures: &Natures, group: &[NodeId]) -> Vec<NodeId> {
    let mut there: Vec<NodeId> = group.iter().copied().filter(|n| model.get_node(*n).is_some()).collect();
    there.sort_by_key(|n| model.node(*n).order);
    let mut dead: BTreeSet<NodeId> = BTreeSet::new();
    for id in there.iter().rev() {
        let node = model.node(*id);
        if may_go(model, natures, node) && readers_if_all(model, node, |r| dead.contains(&r)).is_some() {
            dead.insert(*id);
        }
    }
    there.retain(|n| dead.contains(n));
    there
}

/// How many outputs a node has to list: those after it are optional and unread.
fn needed_outputs(cx: &Context, node: &Node) -> usize {
    let model = cx.model;
    let all = node.outputs.len();
    if !node.is_standard() || node.has_attribute_references() {
        return all;
    }
    let required = match &*node.op_type {
        "Dropout" | "MaxPool" | "LayerNormalization" | "Unique" | "SoftmaxCrossEntropyLoss" => 1,
        // In training the further outputs are part of what the node is asked for.
        "BatchNormalization" if known::infers(model, cx.facts, node) => 1,
        "LSTM" | "GRU" | "RNN" => 1,
        _ => return all,
    };
    let read = |v: &Option<ValueId>| {
        v.and_then(|v| model.get_value(v)).is_some_and(|v| !v.uses.is_empty())
            || v.is_some_and(|v| model.spoken_of(v).is_some())
    };
    let needed = node.outputs.iter().rposition(read).map_or(0, |last| last + 1).max(required).min(all);
    // A list that only ends in outputs left out already is as good as a shorter one.
    if node.outputs.iter().skip(needed).any(Option::is_some) { needed } else { all }
}

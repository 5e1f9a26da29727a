//! Computes once what several nodes compute alike, and keeps one of several equal initializers.
//!
//! before: `{ a = Exp (x)  b = Exp (x)  y = Add (a, b) }`
//! after:  `{ a = Exp (x)  y = Add (a, a) }`
//!
//! Alike are nodes of one graph with the same operator, domain, attributes (by kind and bits), inputs (skipped ones
//! included; constants by type, shape and bits) and list of wanted outputs. It does not fire for operators that draw
//! random numbers or train, for operators that are not known, for nodes with bodies, for QuantizeLinear and
//! DequantizeLinear (runtimes look for one beside each reader), and where both results are outputs of the graph. It costs
//! nothing but that a result may live longer. All opsets.

use crate::ir::{
    Attribute, AttributeValue, Constant, GraphId, Model, Node, NodeId, Patch, PatchBuilder, Producer, Tensor,
    Use, ValueId,
};
use crate::passes::operators::Natures;
use crate::passes::{
    Anchor, Blocked, Context, Declined, Findings, Pass, PassInfo, Risk, ShapeMode, Site, Stage, matching,
};
use rustc_hash::{FxHashMap, FxHasher};
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};

/// See the module.
pub struct EliminateCommonSubexpressions;

static INFO: PassInfo = PassInfo {
    name: "eliminate_common_subexpressions",
    stage: Stage::Eliminate,
    summary: "Computes once what several nodes compute alike, and keeps one of several equal constants",
    risk: Risk::Exact,
    shapes: ShapeMode::Any,
    after: &["eliminate_identity"],
    default_on: true,
    example_before: r#"<ir_version: 8, opset_import: ["" : 17]>
g (float[N] x) => (float[N] y) {
   a = Exp (x)
   b = Exp (x)
   y = Add (a, b)
}
"#,
    example_after: r#"<ir_version: 8, opset_import: ["" : 17]>
g (float[N] x) => (float[N] y) {
   a = Exp (x)
   y = Add (a, a)
}
"#,
};

/// After a rewrite, a value with more readers than this is not searched for alike ones; the next round sees them.
const MANY_READERS: usize = 256;

impl Pass for EliminateCommonSubexpressions {
    fn info(&self) -> &PassInfo {
        &INFO
    }

    fn find(&self, cx: &Context, graph: GraphId, around: Option<&[NodeId]>) -> Findings {
        let nodes = matching::candidates(cx, graph, around);
        match around {
            None => everywhere(cx, graph, &nodes),
            Some(_) => beside(cx, graph, &nodes),
        }
    }

    fn rewrite(&self, cx: &Context, site: &Site) -> Result<Patch, Declined> {
        let model = cx.model;
        let mut p = PatchBuilder::new(model);
        match site.anchor {
            Anchor::Value(kept) => {
                let copies = equal_initializers(model, kept);
                if copies.is_empty() {
                    return Err(Declined::Stale);
                }
                for copy in copies {
                    p.replace_uses(copy, kept);
                    p.remove_value(copy);
                }
            }
            Anchor::Node(kept) => {
                let &[_, copy] = site.nodes.as_slice() else { return Err(Declined::Stale) };
                let (Some(a), Some(b)) = (model.get_node(kept), model.get_node(copy)) else {
                    return Err(Declined::Stale);
                };
                if a.order >= b.order || !alike(model, a, b, |x, y| same_value(model, x, y)) {
                    return Err(Declined::Stale);
                }
                if let Some(blocked) = obstacle(model, &Natures::new(cx), kept, copy) {
                    return Err(Declined::Blocked(blocked));
                }
                merge(&mut p, kept, copy);
            }
        }
        Ok(p.finish())
    }
}

/// All sites of a graph, by numbering values: results of alike nodes get one number, so that what reads them is alike too.
fn everywhere(cx: &Context, graph: GraphId, nodes: &[NodeId]) -> Findings {
    let model = cx.model;
    let natures = Natures::new(cx);
    let mut findings = Findings::default();
    let mut numbers = Numbers { model, known: FxHashMap::default(), constants: FxHashMap::default() };
    let mut seen: FxHashMap<u64, Vec<NodeId>> = FxHashMap::default();
    let mut kept_initializers: BTreeSet<ValueId> = BTreeSet::new();
    for id in nodes {
        let node = model.node(*id);
        for v in node.inputs.iter().flatten() {
            let number = numbers.of(*v);
            if number != *v && may_merge(model, graph, number) && may_merge(model, graph, *v) {
                kept_initializers.insert(number);
            }
        }
        if node.bodies().next().is_some() {
            continue;
        }
        let alike_before = seen.entry(key(node, &mut numbers)).or_default();
        let first = alike_before
            .iter()
            .copied()
            .find(|other| alike(model, model.node(*other), node, |x, y| numbers.of(x) == numbers.of(y)));
        let Some(first) = first else {
            alike_before.push(*id);
            continue;
        };
        match obstacle(model, &natures, first, *id) {
            Some(blocked) => findings.blocked.push(blocked),
            None => {
                let earlier = model.node(first).clone();
                for (a, b) in earlier.outputs.iter().zip(&node.outputs) {
                    if let (Some(a), Some(b)) = (a, b) {
                        let number = numbers.of(*a);
                        numbers.known.insert(*b, number);
                    }
                }
                findings.sites.push(site(model, graph, first, *id));
            }
        }
    }
    // What is kept comes before what is merged into it, so earlier keepers make later nodes alike.
    findings.sites.sort_by_key(|s| match s.anchor {
        Anchor::Node(n) => Some(model.node(n).order),
        Anchor::Value(_) => None,
    });
    let values = kept_initializers.into_iter().map(|v| Site {
        graph,
        anchor: Anchor::Value(v),
        nodes: model.readers(v),
        what: "equal constants".into(),
    });
    findings.sites.splice(0..0, values);
    findings
}

/// Sites among the neighbours of a rewrite: nodes that read the same value as one of them.
fn beside(cx: &Context, graph: GraphId, nodes: &[NodeId]) -> Findings {
    let model = cx.model;
    let natures = Natures::new(cx);
    let mut findings = Findings::default();
    let mut pairs: BTreeSet<(NodeId, NodeId)> = BTreeSet::new();
    for id in nodes {
        let node = model.node(*id);
        if node.bodies().next().is_some() {
            continue;
        }
        let fewest = node.inputs.iter().flatten().min_by_key(|v| model.value(**v).uses.len());
        let Some(shared) = fewest.filter(|v| model.value(**v).uses.len() <= MANY_READERS) else { continue };
        for other in model.readers(*shared) {
            let Some(o) = model.get_node(other).filter(|o| other != *id && o.graph == graph) else {
                continue;
            };
            let (first, second) = if o.order < node.order { (other, *id) } else { (*id, other) };
            if alike(model, node, o, |x, y| same_value(model, x, y)) && pairs.insert((first, second)) {
                match obstacle(model, &natures, first, second) {
                    Some(blocked) => findings.blocked.push(blocked),
                    None => findings.sites.push(site(model, graph, first, second)),
                }
            }
        }
    }
    findings.sites.sort_by_key(|s| s.nodes.iter().map(|n| model.node(*n).order).collect::<Vec<_>>());
    findings
}

fn site(model: &Model, graph: GraphId, kept: NodeId, copy: NodeId) -> Site {
    let what = model.node(kept).op_type.clone();
    Site { graph, anchor: Anchor::Node(kept), nodes: vec![kept, copy], what }
}

/// Why two alike nodes may not become one.
fn obstacle(model: &Model, natures: &Natures, kept: NodeId, copy: NodeId) -> Option<Blocked> {
    let (a, b) = (model.get_node(kept)?, model.get_node(copy)?);
    let no = |condition: &str| Some(matching::blocked(model, copy, condition, kept));
    let nature = natures.of(a);
    if !nature.known {
        return no("what the operator does is not known");
    }
    if !nature.repeatable {
        return no("each of the two draws its own random numbers");
    }
    if a.is("DequantizeLinear") || a.is("QuantizeLinear") {
        return no("runtimes look for a quantizing node beside each reader");
    }
    let both = |x: &Option<ValueId>, y: &Option<ValueId>| {
        x.is_some_and(|v| model.is_output(v)) && y.is_some_and(|v| model.is_output(v))
    };
    if a.outputs.iter().zip(&b.outputs).any(|(x, y)| both(x, y)) {
        return no("both results are outputs of the graph and have to keep their names");
    }
    let foreign = |v: &ValueId| {
        let value = model.value(*v);
        value.uses.iter().any(|u| matches!(u, Use::Output { graph, .. } if graph != value.graph))
            || model.graph(value.graph).annotations.iter().any(|(name, _)| *name == value.name)
    };
    if a.outputs.iter().chain(&b.outputs).flatten().any(foreign) {
        return no("a result is known by its name elsewhere");
    }
    None
}

/// The kept node takes over the copy's readers; where a result of the copy is an output of the graph, the name with them.
fn merge(p: &mut PatchBuilder, kept: NodeId, copy: NodeId) {
    let model = p.model();
    let (Some(a), Some(b)) = (model.get_node(kept), model.get_node(copy)) else { return };
    let mut outputs = a.outputs.clone();
    p.remove_node(copy);
    for (slot, theirs) in outputs.iter_mut().zip(&b.outputs) {
        let (Some(ours), Some(theirs)) = (*slot, *theirs) else { continue };
        if model.is_output(theirs) {
            *slot = Some(theirs);
        } else {
            p.replace_uses(theirs, ours);
        }
    }
    if outputs != a.outputs {
        p.set_outputs(kept, outputs.clone());
        for (old, new) in a.outputs.iter().zip(&outputs) {
            if let (Some(old), Some(new)) = (old, new)
                && old != new
            {
                p.replace_uses(*old, *new);
            }
        }
    }
    let kept_inputs: BTreeSet<ValueId> = a.inputs.iter().flatten().copied().collect();
    let inputs = b.inputs.iter().flatten().copied().filter(|v| !kept_inputs.contains(v));
    matching::drop_constants(p, inputs, &[copy]);
}

/// Same operator, attributes, wanted outputs, and inputs that `same` holds equal.
fn alike(model: &Model, a: &Node, b: &Node, mut same: impl FnMut(ValueId, ValueId) -> bool) -> bool {
    let domain = |n: &Node| if n.is_standard() { "".into() } else { n.domain.clone() };
    let wanted = |n: &Node| n.outputs.iter().rposition(Option::is_some).map_or(0, |i| i + 1);
    a.op_type == b.op_type
        && domain(a) == domain(b)
        && a.overload == b.overload
        && a.graph == b.graph
        && a.inputs.len() == b.inputs.len()
        && a.attributes.len() == b.attributes.len()
        && a.bodies().next().is_none()
        && wanted(a) == wanted(b)
        && wanted(a) > 0
        && a.outputs.iter().zip(&b.outputs).all(|(x, y)| x.is_some() == y.is_some())
        && a.attributes.iter().all(|x| {
            let mut named = b.attributes.iter().filter(|y| y.name == x.name);
            let twin = named.next();
            named.next().is_none() && twin.is_some_and(|y| x.same(y)) && !opaque(x)
        })
        && a.inputs.iter().zip(&b.inputs).all(|(x, y)| match (x, y) {
            (None, None) => true,
            (Some(x), Some(y)) => same(*x, *y) && model.get_value(*x).is_some(),
            _ => false,
        })
}

fn opaque(attribute: &Attribute) -> bool {
    matches!(attribute.value, AttributeValue::Unknown(_))
}

/// The same value, or two constants with the same type, shape and bits.
fn same_value(model: &Model, a: ValueId, b: ValueId) -> bool {
    a == b
        || match (model.dense_initializer(a), model.dense_initializer(b)) {
            (Some(x), Some(y)) => x.same_content(y),
            _ => false,
        }
}

/// True for an initializer of the graph that may be merged with another one.
fn may_merge(model: &Model, graph: GraphId, v: ValueId) -> bool {
    let Some(value) = model.get_value(v) else { return false };
    value.graph == graph
        && value.producer == Producer::Initializer
        && matches!(value.constant, Some(Constant::Dense(_)))
        && !value.uses.is_output()
        && !model.graph(graph).annotations.iter().any(|(name, _)| *name == value.name)
}

/// Other initializers of the same graph that are read and have the same type, shape and bits.
fn equal_initializers(model: &Model, kept: ValueId) -> Vec<ValueId> {
    let (Some(value), Some(data)) = (model.get_value(kept), model.dense_initializer(kept)) else {
        return Vec::new();
    };
    if !may_merge(model, value.graph, kept) {
        return Vec::new();
    }
    let same = |id: ValueId| model.dense_initializer(id).is_some_and(|t| t.same_content(data));
    model
        .values()
        .filter(|(id, v)| *id != kept && v.graph == value.graph && v.producer == Producer::Initializer)
        .filter(|(id, v)| !v.uses.is_empty() && may_merge(model, value.graph, *id) && same(*id))
        .map(|(id, _)| id)
        .collect()
}

/// One value for each class of values known to be equal.
struct Numbers<'m> {
    model: &'m Model,
    known: FxHashMap<ValueId, ValueId>,
    /// Constants seen so far by a digest of type, shape and a few bytes.
    constants: FxHashMap<u64, Vec<ValueId>>,
}

impl Numbers<'_> {
    fn of(&mut self, v: ValueId) -> ValueId {
        if let Some(number) = self.known.get(&v) {
            return *number;
        }
        let Some(tensor) = self.model.dense_initializer(v) else { return v };
        let same = self.constants.entry(digest(tensor)).or_default();
        let equal = same
            .iter()
            .find(|other| self.model.dense_initializer(**other).is_some_and(|t| t.same_content(tensor)));
        let number = match equal {
            Some(other) => *other,
            None => {
                same.push(v);
                v
            }
        };
        self.known.insert(v, number);
        number
    }
}

/// Type, shape and some bytes: enough to keep most different tensors from being compared whole.
fn digest(tensor: &Tensor) -> u64 {
    const SAMPLE: usize = 256;
    let mut h = FxHasher::default();
    (tensor.element, &tensor.dims).hash(&mut h);
    if let Some(bytes) = tensor.bytes() {
        bytes.len().hash(&mut h);
        for at in [0, bytes.len() / 2, bytes.len().saturating_sub(SAMPLE)] {
            bytes.iter().skip(at).take(SAMPLE).for_each(|b| b.hash(&mut h));
        }
    }
    h.finish()
}

/// Equal for nodes that are alike. Attributes count in any order.
fn key(node: &Node, numbers: &mut Numbers) -> u64 {
    let mut h = FxHasher::default();
    node.op_type.hash(&mut h);
    (node.inputs.len(), node.attributes.len()).hash(&mut h);
    for v in &node.inputs {
        v.map(|v| numbers.of(v)).hash(&mut h);
    }
    let attributes = node.attributes.iter().map(|a| {
        let mut h = FxHasher::default();
        a.name.hash(&mut h);
        match &a.value {
            AttributeValue::Int(n) => n.hash(&mut h),
            AttributeValue::Float(x) => x.to_bits().hash(&mut h),
            AttributeValue::String(s) => s.hash(&mut h),
            AttributeValue::Ints(n) => n.hash(&mut h),
            AttributeValue::Tensor(t) => digest(t).hash(&mut h),
            other => std::mem::discriminant(other).hash(&mut h),
        }
        h.finish()
    });
    attributes.fold(0u64, u64::wrapping_add).hash(&mut h);
    h.finish()
}

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
                let node = model.get_node(kept).ok_or(Declined::Stale)?;
                let natures = Natures::new(cx);
                let mut group = Group::new(model, &natures, kept);
                for copy in site.nodes.iter().filter(|n| **n != kept) {
                    let later = model.get_node(*copy).filter(|n| n.order > node.order);
                    if later.is_some_and(|n| alike(model, node, n, |x, y| same_value(model, x, y))) {
                        group.add(*copy);
                    }
                }
                if group.copies.is_empty() {
                    return Err(group.blocked.pop().map_or(Declined::Stale, Declined::Blocked));
                }
                merge(&mut p, kept, &group.copies);
            }
        }
        Ok(p.finish())
    }
}

/// All sites of a graph, by numbering values: results of alike nodes get one number, so that what reads them is alike too.
fn everywhere(cx: &Context, graph: GraphId, nodes: &[NodeId]) -> Findings {
    let model = cx.model;
    let natures = Natures::new(cx);
    let mut groups: Vec<Group> = Vec::new();
    let mut numbers = Numbers { model, known: FxHashMap::default(), constants: FxHashMap::default() };
    let mut seen: FxHashMap<u64, Vec<usize>> = FxHashMap::default();
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
        let before = seen.entry(key(node, &mut numbers)).or_default();
        let first = before.iter().copied().find(|g| {
            let kept = groups.get(*g).map(|g| model.node(g.kept));
            kept.is_some_and(|kept| alike(model, kept, node, |x, y| numbers.of(x) == numbers.of(y)))
        });
        match first.and_then(|g| groups.get_mut(g)) {
            None => {
                before.push(groups.len());
                groups.push(Group::new(model, &natures, *id));
            }
            Some(group) => {
                if group.add(*id) {
                    for (a, b) in model.node(group.kept).outputs.iter().zip(&node.outputs) {
                        if let (Some(a), Some(b)) = (a, b) {
                            let number = numbers.of(*a);
                            numbers.known.insert(*b, number);
                        }
                    }
                }
            }
        }
    }
    let values = kept_initializers.into_iter().map(|v| Site {
        graph,
        anchor: Anchor::Value(v),
        nodes: model.readers(v),
        what: "equal constants".into(),
    });
    let mut findings = Findings { sites: values.collect(), blocked: Vec::new() };
    // Groups are in the order of what is kept: what makes later nodes alike comes first.
    groups.into_iter().for_each(|g| g.tell(model, graph, &mut findings));
    findings
}

/// Sites among the neighbours of a rewrite: nodes that read the same value as one of them.
fn beside(cx: &Context, graph: GraphId, nodes: &[NodeId]) -> Findings {
    let model = cx.model;
    let natures = Natures::new(cx);
    let mut findings = Findings::default();
    let mut done: BTreeSet<NodeId> = BTreeSet::new();
    for id in nodes {
        let node = model.node(*id);
        if node.bodies().next().is_some() || done.contains(id) {
            continue;
        }
        let fewest = node.inputs.iter().flatten().min_by_key(|v| model.value(**v).uses.len());
        let Some(shared) = fewest.filter(|v| model.value(**v).uses.len() <= MANY_READERS) else { continue };
        let mut same: Vec<NodeId> = model
            .readers(*shared)
            .into_iter()
            .filter(|other| {
                let other = model.get_node(*other).filter(|o| o.graph == graph);
                other.is_some_and(|o| alike(model, node, o, |x, y| same_value(model, x, y)))
            })
            .collect();
        same.sort_by_key(|n| model.node(*n).order);
        done.extend(&same);
        if let Some((kept, copies)) = same.split_first() {
            let mut group = Group::new(model, &natures, *kept);
            for copy in copies {
                group.add(*copy);
            }
            group.tell(model, graph, &mut findings);
        }
    }
    findings
}

/// Nodes that become one.
struct Group<'a> {
    model: &'a Model,
    kept: NodeId,
    copies: Vec<NodeId>,
    blocked: Vec<Blocked>,
    /// Per output of what is kept: whether its result is an output of the graph.
    named: Vec<bool>,
    natures: &'a Natures<'a>,
}

impl<'a> Group<'a> {
    fn new(model: &'a Model, natures: &'a Natures<'a>, kept: NodeId) -> Group<'a> {
        let named = model.node(kept).outputs.iter().map(|v| v.is_some_and(|v| model.is_output(v))).collect();
        Group { model, kept, copies: Vec::new(), blocked: Vec::new(), named, natures }
    }

    /// Adds a node that is alike, unless something speaks against it.
    fn add(&mut self, copy: NodeId) -> bool {
        if let Some(condition) = self.obstacle(copy) {
            self.blocked.push(matching::blocked(self.model, copy, condition, self.kept));
            return false;
        }
        let outputs = &self.model.node(copy).outputs;
        for (named, v) in self.named.iter_mut().zip(outputs) {
            *named |= v.is_some_and(|v| self.model.is_output(v));
        }
        self.copies.push(copy);
        true
    }

    /// Why a node may not become one with what is kept.
    fn obstacle(&self, copy: NodeId) -> Option<&'static str> {
        let model = self.model;
        let (a, b) = (model.node(self.kept), model.node(copy));
        let nature = self.natures.of(a);
        if !nature.known {
            return Some("what the operator does is not known");
        }
        if !nature.repeatable {
            return Some("each of the two draws its own random numbers");
        }
        if a.is("DequantizeLinear") || a.is("QuantizeLinear") {
            return Some("runtimes look for a quantizing node beside each reader");
        }
        if self.named.iter().zip(&b.outputs).any(|(named, v)| *named && v.is_some_and(|v| model.is_output(v)))
        {
            return Some("both results are outputs of the graph and have to keep their names");
        }
        let foreign = |v: &ValueId| {
            let value = model.value(*v);
            value.uses.iter().any(|u| matches!(u, Use::Output { graph, .. } if graph != value.graph))
                || model.spoken_of(*v).is_some()
        };
        let elsewhere = a.outputs.iter().chain(&b.outputs).flatten().any(foreign);
        elsewhere.then_some("a result is known by its name elsewhere")
    }

    fn tell(self, model: &Model, graph: GraphId, findings: &mut Findings) {
        findings.blocked.extend(self.blocked);
        if !self.copies.is_empty() {
            let op = &model.node(self.kept).op_type;
            let what = format!("{} × {op}", self.copies.len() + 1).into();
            let nodes = std::iter::once(self.kept).chain(self.copies).collect();
            findings.sites.push(Site { graph, anchor: Anchor::Node(self.kept), nodes, what });
        }
    }
}

/// The kept node takes over the copies' readers; where a result of a copy is an output of the graph, the name with them.
fn merge(p: &mut PatchBuilder, kept: NodeId, copies: &[NodeId]) {
    let model = p.model();
    let node = model.node(kept);
    copies.iter().for_each(|c| p.remove_node(*c));
    let given = |n: &NodeId, i: usize| model.node(*n).output(i);
    let results: Vec<Option<ValueId>> = (0..node.outputs.len())
        .map(|i| {
            let output = copies.iter().filter_map(|c| given(c, i)).find(|v| model.is_output(*v));
            node.output(i).map(|own| output.unwrap_or(own))
        })
        .collect();
    if !results.iter().eq(node.outputs.iter()) {
        p.set_outputs(kept, results.iter().copied());
    }
    for (i, result) in results.iter().enumerate() {
        let Some(result) = result else { continue };
        let all = std::iter::once(&kept).chain(copies).filter_map(|n| given(n, i));
        all.filter(|v| v != result).for_each(|v| p.replace_uses(v, *result));
    }
    let kept_inputs: BTreeSet<ValueId> = node.inputs.iter().flatten().copied().collect();
    let inputs = copies.iter().flat_map(|c| model.node(*c).inputs.iter().flatten().copied());
    matching::drop_constants(p, inputs.filter(|v| !kept_inputs.contains(v)).collect::<Vec<_>>(), copies);
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
        && model.spoken_of(v).is_none()
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

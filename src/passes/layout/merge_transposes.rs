//! Composes two Transposes in a row into one, or into none when they cancel.
//!
//! before: `{ t = Transpose <perm = [0, 2, 3, 1]> (x)  y = Transpose <perm = [0, 2, 1, 3]> (t) }`
//! after:  `{ y = Transpose <perm = [0, 3, 2, 1]> (x) }`
//!
//! The second one stays. It does not fire when something else reads the first result, unless that is another Transpose
//! or the two cancel; nor for permutations that are not known or not valid. Costs nothing. All opsets.

use crate::ir::{Attribute, GraphId, Model, Node, NodeId, Patch, PatchBuilder, Use, ValueId};
use crate::passes::{
    Anchor, Blocked, Context, Declined, Findings, Pass, PassInfo, Risk, ShapeMode, Site, Stage, bypass,
    matching,
};

/// See the module.
pub struct MergeTransposes;

static INFO: PassInfo = PassInfo {
    name: "merge_transposes",
    stage: Stage::Layout,
    summary: "Composes two Transposes in a row into one, or into none when they cancel",
    risk: Risk::Exact,
    shapes: ShapeMode::Any,
    after: &["eliminate_identity"],
    default_on: true,
    example_before: r#"<ir_version: 8, opset_import: ["" : 17]>
g (float[N, 3, H, W] x) => (float[N, W, H, 3] y) {
   t = Transpose <perm = [0, 2, 3, 1]> (x)
   y = Transpose <perm = [0, 2, 1, 3]> (t)
}
"#,
    example_after: r#"<ir_version: 8, opset_import: ["" : 17]>
g (float[N, 3, H, W] x) => (float[N, W, H, 3] y) {
   y = Transpose <perm = [0, 3, 2, 1]> (x)
}
"#,
};

/// Two Transposes in a row.
struct Pair {
    first: NodeId,
    source: ValueId,
    middle: ValueId,
    result: ValueId,
    /// The two as one; empty when they cancel.
    perm: Vec<i64>,
}

impl Pass for MergeTransposes {
    fn info(&self) -> &PassInfo {
        &INFO
    }

    fn find(&self, cx: &Context, graph: GraphId, around: Option<&[NodeId]>) -> Findings {
        let mut findings = Findings::default();
        for second in matching::candidates(cx, graph, around) {
            let Some(pair) = pair(cx.model, second) else { continue };
            match obstacle(cx.model, second, &pair) {
                Some(blocked) => findings.blocked.push(blocked),
                None => findings.sites.push(Site {
                    graph,
                    anchor: Anchor::Node(second),
                    nodes: vec![pair.first, second],
                    what: if pair.perm.is_empty() {
                        "Transposes that cancel"
                    } else {
                        "Transpose + Transpose"
                    }
                    .into(),
                }),
            }
        }
        findings
    }

    fn rewrite(&self, cx: &Context, site: &Site) -> Result<Patch, Declined> {
        let model = cx.model;
        let Anchor::Node(second) = site.anchor else { return Err(Declined::Stale) };
        model.get_node(second).ok_or(Declined::Stale)?;
        let pair = pair(model, second).ok_or(Declined::Stale)?;
        if let Some(blocked) = obstacle(model, second, &pair) {
            return Err(Declined::Blocked(blocked));
        }
        let mut p = PatchBuilder::new(model);
        let read_elsewhere = matching::other_reader(model, pair.middle, second).is_some();
        if pair.perm.is_empty() {
            match bypass::route(cx, second, pair.result, pair.source) {
                Ok(route) => bypass::replace(&mut p, route, second, pair.result, pair.source),
                // Some node has to give the output its name; an Identity is the least.
                Err(_) => {
                    p.set_operator(second, "Identity");
                    p.remove_attributes(second, &["perm"]);
                    p.set_inputs(second, [Some(pair.source)]);
                }
            }
        } else {
            p.set_inputs(second, [Some(pair.source)]);
            p.set_attribute(second, Attribute::new("perm", pair.perm));
        }
        if read_elsewhere {
            p.read(pair.first);
        } else {
            p.remove_node(pair.first);
        }
        Ok(p.finish())
    }
}

/// The Transpose before a Transpose, when both permutations are known.
fn pair(model: &Model, second: NodeId) -> Option<Pair> {
    let node = model.get_node(second).filter(|n| n.is("Transpose"))?;
    let (middle, result) = (node.input(0)?, node.output(0)?);
    let (first, before) = matching::producer(model, middle, node.graph).filter(|(_, n)| n.is("Transpose"))?;
    let source = before.input(0)?;
    let (p, q) = (perm(before)?, perm(node)?);
    let perm = match (p, q) {
        // Twice the reversal.
        (None, None) => Vec::new(),
        (p, q) => {
            let rank = p.as_ref().or(q.as_ref())?.len();
            let reversed = || (0..rank).rev().collect();
            let (p, q): (Vec<usize>, Vec<usize>) = (p.unwrap_or_else(reversed), q.unwrap_or_else(reversed));
            if p.len() != q.len() {
                return None;
            }
            let both: Vec<i64> = q.iter().map(|i| p.get(*i).map(|v| *v as i64)).collect::<Option<_>>()?;
            if both.iter().enumerate().all(|(i, v)| i as i64 == *v) { Vec::new() } else { both }
        }
    };
    Some(Pair { first, source, middle, result, perm })
}

/// The permutation of a Transpose: `Some(None)` reverses all axes; `None` when it is not valid.
fn perm(node: &Node) -> Option<Option<Vec<usize>>> {
    let Some(attribute) = node.attribute("perm") else { return Some(None) };
    let perm: Vec<usize> =
        attribute.ints()?.iter().map(|v| usize::try_from(*v).ok()).collect::<Option<_>>()?;
    let mut sorted = perm.clone();
    sorted.sort_unstable();
    sorted.into_iter().eq(0..perm.len()).then_some(Some(perm))
}

/// Merging with a first Transpose that stays is worth it only when the second one goes, or when all its readers merge.
fn obstacle(model: &Model, second: NodeId, pair: &Pair) -> Option<Blocked> {
    if pair.perm.is_empty() {
        return None;
    }
    let merges = |u: Use| match u {
        Use::Input { node, .. } => model
            .get_node(node)
            .is_some_and(|n| n.graph == model.node(second).graph && n.is("Transpose") && perm(n).is_some()),
        Use::Output { .. } => false,
    };
    if model.value(pair.middle).uses.iter().all(merges) {
        return None;
    }
    let other = model.value(pair.middle).uses.iter().find(|u| !merges(*u))?;
    let other = match other {
        Use::Input { node, .. } => matching::OtherReader::Node(node),
        Use::Output { .. } => matching::OtherReader::Output,
    };
    Some(other.blocked(model, second, pair.first))
}

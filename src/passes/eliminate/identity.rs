//! Removes nodes whose result equals an input to the bit.
//!
//! before: `{ a = Identity (x)  b = Transpose <perm = [0, 1]> (a)  y = Relu (b) }`
//! after:  `{ y = Relu (x) }`
//!
//! Identity; Dropout in inference; and Cast, Transpose, Reshape, Flatten, Squeeze, Unsqueeze, Pad, Slice, Concat, Split,
//! Expand, Tile, Resize, Sum, Max, Min, Mean, Mul, Div, Add, Sub, Pow, And, Or, Xor where [`super::no_op`] is certain
//! that neither value, type nor shape changes. It does not fire when the result is an output of the graph and the input
//! cannot take its name (a graph input, an initializer, another output), when a Dropout may train or its mask is read,
//! for `x + 0.0` (-0.0 becomes +0.0), and for names that hold a quantization annotation. Costs nothing. All opsets.

use super::no_op::{self, Verdict};
use crate::ir::{GraphId, NodeId, Patch, PatchBuilder};
use crate::passes::{Anchor, Context, Declined, Findings, Pass, PassInfo, Risk, ShapeMode, Site, Stage};
use crate::passes::{bypass, matching};

/// See the module.
pub struct EliminateIdentity;

static INFO: PassInfo = PassInfo {
    name: "eliminate_identity",
    stage: Stage::Eliminate,
    summary: "Removes nodes whose result equals an input to the bit",
    risk: Risk::Exact,
    shapes: ShapeMode::Symbolic,
    after: &[],
    default_on: true,
    example_before: r#"<ir_version: 8, opset_import: ["" : 17]>
g (float[N, 4] x) => (float[N, 4] y) {
   a = Identity (x)
   b = Transpose <perm = [0, 1]> (a)
   y = Relu (b)
}
"#,
    example_after: r#"<ir_version: 8, opset_import: ["" : 17]>
g (float[N, 4] x) => (float[N, 4] y) {
   y = Relu (x)
}
"#,
};

impl Pass for EliminateIdentity {
    fn info(&self) -> &PassInfo {
        &INFO
    }

    fn find(&self, cx: &Context, graph: GraphId, around: Option<&[NodeId]>) -> Findings {
        let mut findings = Findings::default();
        for id in matching::candidates(cx, graph, around) {
            let node = cx.model.node(id);
            match no_op::judge(cx, id) {
                Verdict::Different => {}
                Verdict::NearMiss(blocked) => findings.blocked.push(blocked),
                Verdict::Equals(source) => {
                    let Some(result) = node.output(0) else { continue };
                    if cx.model.value(result).uses.is_empty() {
                        continue;
                    }
                    match bypass::route(cx, id, result, source) {
                        Ok(_) => findings.sites.push(Site {
                            graph,
                            anchor: Anchor::Node(id),
                            nodes: vec![id],
                            what: node.op_type.clone(),
                        }),
                        Err(blocked) => findings.blocked.push(blocked),
                    }
                }
            }
        }
        findings
    }

    fn rewrite(&self, cx: &Context, site: &Site) -> Result<Patch, Declined> {
        let model = cx.model;
        let Anchor::Node(id) = site.anchor else { return Err(Declined::Stale) };
        let node = model.get_node(id).ok_or(Declined::Stale)?;
        let (result, source) = match no_op::judge(cx, id) {
            Verdict::Equals(source) => (node.output(0).ok_or(Declined::Stale)?, source),
            Verdict::NearMiss(blocked) => return Err(Declined::Blocked(blocked)),
            Verdict::Different => return Err(Declined::Stale),
        };
        let route = bypass::route(cx, id, result, source).map_err(Declined::Blocked)?;
        let mut p = PatchBuilder::new(model);
        bypass::replace(&mut p, route, id, result, source);
        let constants = node.inputs.iter().flatten().copied().filter(|v| *v != source);
        matching::drop_constants(&mut p, constants, &[id]);
        Ok(p.finish())
    }
}

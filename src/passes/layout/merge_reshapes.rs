//! Merges Reshape, Squeeze, Unsqueeze and Flatten in a row into the last of them, or into none when they cancel.
//!
//! before: `{ r = Reshape (x, {6, 4})  y = Unsqueeze (r, {0}) }` for `x` of shape `[2, 3, 4]`
//! after:  `{ y = Reshape (x, {1, 6, 4}) }`
//!
//! None of them moves data, so only the last shape counts; it is written anew where it was said relative to the shape
//! between (0 copies a dimension, axes count them). It does not fire when something else reads the shape between (unless
//! that merges too, or the two cancel), and where the last shape cannot be said with certainty for all sizes, 0 included.
//! Costs nothing. All opsets; a new target shape needs opset 5, one with a dimension of 0 opset 14.

use super::reshape_plan::{self, Plan, Step};
use crate::ir::{Attribute, GraphId, Model, NodeId, Patch, PatchBuilder, Tensor, Use};
use crate::passes::{
    Anchor, Blocked, Context, Declined, Findings, Pass, PassInfo, Risk, ShapeMode, Site, Stage, bypass,
    known, matching,
};

/// See the module.
pub struct MergeReshapes;

static INFO: PassInfo = PassInfo {
    name: "merge_reshapes",
    stage: Stage::Layout,
    summary: "Merges Reshape, Squeeze, Unsqueeze and Flatten in a row into one, or into none when they cancel",
    risk: Risk::Exact,
    shapes: ShapeMode::Symbolic,
    after: &["eliminate_identity"],
    default_on: true,
    example_before: r#"<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 3, 4] x) => (float[8, 3] y)
   <int64[2] rows = {6, 4}, int64[2] target = {8, 3}>
{
   r = Reshape (x, rows)
   y = Reshape (r, target)
}
"#,
    example_after: r#"<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 3, 4] x) => (float[8, 3] y)
   <int64[2] target = {8, 3}>
{
   y = Reshape (x, target)
}
"#,
};

impl Pass for MergeReshapes {
    fn info(&self) -> &PassInfo {
        &INFO
    }

    fn find(&self, cx: &Context, graph: GraphId, around: Option<&[NodeId]>) -> Findings {
        let mut findings = Findings::default();
        for second in matching::candidates(cx, graph, around) {
            let Some(step) = reshape_plan::step(cx.model, second) else { continue };
            match plan(cx, second, &step) {
                Ok(plan) => findings.sites.push(Site {
                    graph,
                    anchor: Anchor::Node(second),
                    nodes: vec![step.first, second],
                    what: match plan {
                        Plan::Cancel => "reshapes that cancel".into(),
                        _ => {
                            let (a, b) = (&cx.model.node(step.first).op_type, &cx.model.node(second).op_type);
                            format!("{a} + {b}").into()
                        }
                    },
                }),
                Err(blocked) => findings.blocked.push(blocked),
            }
        }
        findings
    }

    fn rewrite(&self, cx: &Context, site: &Site) -> Result<Patch, Declined> {
        let model = cx.model;
        let Anchor::Node(second) = site.anchor else { return Err(Declined::Stale) };
        let node = model.get_node(second).ok_or(Declined::Stale)?;
        let step = reshape_plan::step(model, second).ok_or(Declined::Stale)?;
        let plan = plan(cx, second, &step).map_err(Declined::Blocked)?;
        let first = model.get_node(step.first).ok_or(Declined::Stale)?;
        let mut p = PatchBuilder::new(model);
        let old_target = node.input(1);
        let mut left = Vec::new();
        let keeps = plan == Plan::Keep;
        match plan {
            Plan::Cancel => {
                match bypass::route(cx, second, step.result, step.source) {
                    Ok(route) => bypass::replace(&mut p, route, second, step.result, step.source),
                    // Some node has to give the output its name; an Identity is the least.
                    Err(_) => {
                        p.set_operator(second, "Identity");
                        p.remove_attributes(second, &["axes", "axis", "allowzero", "shape"]);
                        p.set_inputs(second, [Some(step.source)]);
                    }
                }
                left.extend(old_target);
            }
            Plan::Keep => {
                let rest = node.inputs.iter().skip(1).copied();
                p.set_inputs(second, std::iter::once(Some(step.source)).chain(rest));
            }
            Plan::Axes(axes) => {
                left.extend(old_target);
                if known::opset(model, node) >= 13 {
                    let axes = matching::place_constant(
                        &mut p,
                        second,
                        &name(model, second, "axes"),
                        Tensor::ints(&axes),
                    )?;
                    p.set_inputs(second, [Some(step.source), Some(axes)]);
                } else {
                    p.set_inputs(second, [Some(step.source)]);
                    p.set_attribute(second, Attribute::new("axes", axes));
                }
            }
            Plan::Target { shape, allow_zero } => {
                left.extend(old_target);
                let shape = matching::place_constant(
                    &mut p,
                    second,
                    &name(model, second, "shape"),
                    Tensor::ints(&shape),
                )?;
                p.set_operator(second, "Reshape");
                p.set_inputs(second, [Some(step.source), Some(shape)]);
                if allow_zero {
                    p.set_attribute(second, Attribute::new("allowzero", 1));
                    p.remove_attributes(second, &["axes", "axis"]);
                } else {
                    p.remove_attributes(second, &["axes", "axis", "allowzero"]);
                }
            }
        }
        // With its own target kept, the second one goes on reading it.
        let mut gone: Vec<NodeId> = if keeps { Vec::new() } else { vec![second] };
        if matching::other_reader(model, step.middle, second).is_none() {
            p.remove_node(step.first);
            left.extend(first.input(1));
            gone.push(step.first);
        } else {
            p.read(step.first);
        }
        matching::drop_constants(&mut p, left.into_iter().filter(|v| *v != step.source), &gone);
        Ok(p.finish())
    }
}

fn name(model: &Model, node: NodeId, what: &str) -> String {
    match &*model.node(node).name {
        "" => what.to_owned(),
        name => format!("{name}_{what}"),
    }
}

/// What the two become, or why they stay two.
fn plan(cx: &Context, second: NodeId, step: &Step) -> Result<Plan, Blocked> {
    let model = cx.model;
    let plan = reshape_plan::plan(cx, second, step)
        .map_err(|condition| matching::blocked(model, second, condition, step.first))?;
    if plan == Plan::Cancel {
        return Ok(plan);
    }
    // Merging with a first one that stays gains nothing, unless everything that reads it merges.
    let graph = model.node(second).graph;
    for u in model.value(step.middle).uses.iter() {
        let other = match u {
            Use::Input { node, .. } if node == second => continue,
            Use::Input { node, .. } => {
                let merges = model.get_node(node).is_some_and(|n| n.graph == graph)
                    && reshape_plan::step(model, node)
                        .is_some_and(|s| s.first == step.first && reshape_plan::plan(cx, node, &s).is_ok());
                if merges {
                    continue;
                }
                matching::OtherReader::Node(node)
            }
            Use::Output { .. } => matching::OtherReader::Output,
        };
        return Err(other.blocked(model, second, step.first));
    }
    Ok(plan)
}

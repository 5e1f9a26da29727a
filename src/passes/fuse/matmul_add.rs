//! Fuses a MatMul of matrices and the Add after it into a Gemm.
//!
//! before: `{ m = MatMul (x, w)  y = Add (m, b) }`
//! after:  `{ y = Gemm (x, w, b) }`
//!
//! It fires only where both operands of the MatMul surely have rank 2 and the addend surely broadcasts into the product
//! without making it larger: never by adding Reshapes. It does not fire when something else reads the product; for
//! integers (runtimes have no such Gemm); beside quantizing nodes, where runtimes look for MatMul; and for the projections
//! of an attention, which runtimes recognise as MatMul + Add: those whose result is split into heads (by way of Reshape,
//! Split or Slice to a Transpose of four axes), whose input was joined from heads the same way, or that stand in a block
//! recognised as attention. Costs nothing. From opset 7 (bfloat16 from 13).

use crate::blocks::BlockKind;
use crate::ir::{Dim, ElementType, GraphId, Model, NodeId, Patch, PatchBuilder, Use, ValueId};
use crate::passes::{
    Anchor, Blocked, Context, Declined, Findings, Pass, PassInfo, Risk, ShapeMode, Site, Stage, known,
    matching,
};

/// See the module.
pub struct FuseMatMulAdd;

static INFO: PassInfo = PassInfo {
    name: "fuse_matmul_add",
    stage: Stage::Fuse,
    summary: "Fuses a MatMul of matrices and the Add after it into a Gemm",
    risk: Risk::Rounding,
    shapes: ShapeMode::Symbolic,
    after: &["eliminate_identity", "fuse_conv_batch_norm"],
    default_on: true,
    example_before: r#"<ir_version: 8, opset_import: ["" : 17]>
g (float[N, 2] x) => (float[N, 3] y)
   <float[2, 3] w = {1, 2, 3, 4, 5, 6}, float[3] b = {1, 2, 3}>
{
   m = MatMul (x, w)
   y = Add (m, b)
}
"#,
    example_after: r#"<ir_version: 8, opset_import: ["" : 17]>
g (float[N, 2] x) => (float[N, 3] y)
   <float[2, 3] w = {1, 2, 3, 4, 5, 6}, float[3] b = {1, 2, 3}>
{
   y = Gemm (x, w, b)
}
"#,
};

/// What becomes of an Add.
struct Match {
    product: NodeId,
    left: ValueId,
    right: ValueId,
    addend: ValueId,
}

impl Pass for FuseMatMulAdd {
    fn info(&self) -> &PassInfo {
        &INFO
    }

    fn find(&self, cx: &Context, graph: GraphId, around: Option<&[NodeId]>) -> Findings {
        let mut findings = Findings::default();
        for add in matching::candidates(cx, graph, around) {
            match matched(cx, add) {
                None => {}
                Some(Ok(found)) => findings.sites.push(Site {
                    graph,
                    anchor: Anchor::Node(add),
                    nodes: vec![found.product, add],
                    what: "MatMul + Add".into(),
                }),
                Some(Err(blocked)) => findings.blocked.push(blocked),
            }
        }
        findings
    }

    fn rewrite(&self, cx: &Context, site: &Site) -> Result<Patch, Declined> {
        let Anchor::Node(add) = site.anchor else { return Err(Declined::Stale) };
        let found = matched(cx, add).ok_or(Declined::Stale)?.map_err(Declined::Blocked)?;
        let mut p = PatchBuilder::new(cx.model);
        p.set_operator(add, "Gemm");
        p.set_inputs(add, [Some(found.left), Some(found.right), Some(found.addend)]);
        p.remove_node(found.product);
        Ok(p.finish())
    }
}

/// The MatMul before an Add, with everything that a Gemm needs; `None` when there is none of rank 2.
fn matched(cx: &Context, add: NodeId) -> Option<Result<Match, Blocked>> {
    let model = cx.model;
    let node = model.get_node(add).filter(|n| n.is("Add"))?;
    let sides = [(node.input(0)?, node.input(1)?), (node.input(1)?, node.input(0)?)];
    let (product, middle, addend) = sides.into_iter().find_map(|(middle, addend)| {
        let (id, before) = matching::producer(model, middle, node.graph)?;
        before.is("MatMul").then_some((id, middle, addend))
    })?;
    let before = model.node(product);
    let (left, right) = (before.input(0)?, before.input(1)?);
    let shape = |v: ValueId| cx.facts.ty(model, v).shape();
    let (rows, columns) = match (shape(left)?.as_slice(), shape(right)?.as_slice()) {
        ([rows, _], [_, columns]) => (rows, columns),
        _ => return None,
    };
    let no = |condition: &str, blame: NodeId| Some(Err(matching::blocked(model, add, condition, blame)));
    if addend == middle {
        return no("the product is added to itself", add);
    }
    if let Some(other) = matching::other_reader(model, middle, add) {
        return Some(Err(other.blocked(model, add, product)));
    }
    if !has_gemm(cx, left, known::opset(model, node)) {
        return no("the operator set or the runtime has no Gemm of this element type", product);
    }
    if cx.facts.ty(model, left).shape()?.iter().any(|d| d.fixed() == Some(0)) {
        return no("the matrices have no elements", product);
    }
    if !shape(addend).is_some_and(|s| fits_into(s, rows, columns)) {
        return no("the addend may broadcast the product to another shape", add);
    }
    for v in [left, right, addend] {
        if let Some((by, n)) = matching::producer(model, v, node.graph)
            && n.is("DequantizeLinear")
        {
            return no("runtimes look for a MatMul between quantizing nodes", by);
        }
    }
    if let Some(by) = in_attention(cx, add, left) {
        return no("runtimes recognise this projection of an attention as MatMul + Add", by);
    }
    Some(Ok(Match { product, left, right, addend }))
}

/// Types that both the standard's Gemm and runtimes take.
fn has_gemm(cx: &Context, operand: ValueId, opset: i64) -> bool {
    match cx.facts.ty(cx.model, operand).element() {
        Some(ElementType::FLOAT | ElementType::DOUBLE | ElementType::FLOAT16) => opset >= 7,
        Some(ElementType::BFLOAT16) => opset >= 13,
        _ => false,
    }
}

/// True when a shape surely broadcasts into `[rows, columns]` and does not enlarge it.
fn fits_into(shape: &[Dim], rows: &Dim, columns: &Dim) -> bool {
    let fits = |d: &Dim, of: &Dim| d.fixed() == Some(1) || d.surely_equals(of);
    match shape {
        [] => true,
        [c] => fits(c, columns),
        [r, c] => fits(r, rows) && fits(c, columns),
        _ => false,
    }
}

/// The node that shows that a projection belongs to an attention.
fn in_attention(cx: &Context, add: NodeId, input: ValueId) -> Option<NodeId> {
    let model = cx.model;
    let graph = model.node(add).graph;
    let recognised = cx.blocks.block_of(add).is_some_and(|b| {
        cx.blocks
            .ancestors(b)
            .filter_map(|b| cx.blocks.get(b))
            .any(|b| matches!(&b.kind, BlockKind::Module(name) if name.contains("attention")))
    });
    if recognised {
        return Some(add);
    }
    heads_after(model, graph, add, 3).or_else(|| heads_before(model, graph, input, 3))
}

fn swaps_heads(model: &Model, id: NodeId) -> bool {
    let node = model.node(id);
    node.is("Transpose")
        && node
            .attribute("perm")
            .and_then(|p| p.ints())
            .is_some_and(|p| matches!(p, [0, 2, 1, 3] | [0, 2, 3, 1]))
}

fn divides(model: &Model, id: NodeId) -> bool {
    let node = model.node(id);
    ["Reshape", "Split", "Slice"].iter().any(|op| node.is(op))
}

fn heads_after(model: &Model, graph: GraphId, from: NodeId, steps: usize) -> Option<NodeId> {
    for v in model.node(from).outputs.iter().flatten() {
        for u in model.value(*v).uses.iter().take(16) {
            let Use::Input { node, index: 0 } = u else { continue };
            if model.get_node(node).is_none_or(|n| n.graph != graph) {
                continue;
            }
            if swaps_heads(model, node) {
                return Some(node);
            }
            if steps > 1
                && divides(model, node)
                && let Some(found) = heads_after(model, graph, node, steps - 1)
            {
                return Some(found);
            }
        }
    }
    None
}

fn heads_before(model: &Model, graph: GraphId, mut value: ValueId, steps: usize) -> Option<NodeId> {
    for _ in 0..steps {
        let (id, node) = matching::producer(model, value, graph)?;
        if swaps_heads(model, id) {
            return Some(id);
        }
        if !divides(model, id) {
            return None;
        }
        value = node.input(0)?;
    }
    None
}

//! Folds a BatchNormalization into the weights and bias of the convolution before it.
//!
//! before: `{ c = Conv (x, w)  y = BatchNormalization (c, scale, shift, mean, variance) }`
//! after:  `{ y = Conv (x, w2, b2) }`
//!
//! Per output channel `k = scale / sqrt(variance + epsilon)`; then `w2 = w * k` and `b2 = (b - mean) * k + shift`
//! (Ioffe and Szegedy 2015, inference). Computed in float64, rounded once. Conv and ConvTranspose, all groupings. It does not
//! fire when something else reads the convolution's result, when a weight or parameter is not constant (a default that a
//! caller may override, a dequantized weight), for training mode and per-activation statistics (`spatial = 0`), for negative
//! variances, and when a result leaves the element type's range. Shared weights are copied, never changed in place.
//! All opsets; before opset 7 only with `is_test = 1`.

use crate::facts::view;
use crate::ir::{
    Constant, Edit, GraphId, Model, Node, NodeId, Patch, PatchBuilder, Producer, Tensor, Type, ValueId,
};
use crate::passes::{
    Anchor, Blocked, Context, Declined, Findings, Pass, PassInfo, Risk, ShapeMode, Site, Stage, known,
    matching,
};
use std::sync::Arc;

/// See the module.
pub struct FuseConvBatchNorm;

static INFO: PassInfo = PassInfo {
    name: "fuse_conv_batch_norm",
    stage: Stage::Fuse,
    summary: "Folds a BatchNormalization into the weights and bias of the convolution before it",
    risk: Risk::Rounding,
    shapes: ShapeMode::Any,
    after: &["eliminate_identity"],
    default_on: true,
    example_before: r#"<ir_version: 8, opset_import: ["" : 17]>
g (float[N, 1, 4, 4] x) => (float[N, 2, 4, 4] y)
   <float[2, 1, 1, 1] w = {1, 2}, float[2] scale = {4, 9}, float[2] shift = {1, -1}, float[2] mean = {0.5, 1},
    float[2] variance = {4, 9}>
{
   c = Conv (x, w)
   y = BatchNormalization <epsilon = 0.0> (c, scale, shift, mean, variance)
}
"#,
    example_after: r#"<ir_version: 8, opset_import: ["" : 17]>
g (float[N, 1, 4, 4] x) => (float[N, 2, 4, 4] y)
   <float[2, 1, 1, 1] w = {2, 6}, float[2] shift = {0, -4}>
{
   y = Conv (x, w, shift)
}
"#,
};

/// A convolution and what is to be folded into it.
struct Match {
    conv: NodeId,
    weight: ValueId,
    bias: Option<ValueId>,
    /// Scale, shift, mean and variance.
    parameters: [ValueId; 4],
    new_weight: Tensor,
    new_bias: Tensor,
}

impl Pass for FuseConvBatchNorm {
    fn info(&self) -> &PassInfo {
        &INFO
    }

    fn find(&self, cx: &Context, graph: GraphId, around: Option<&[NodeId]>) -> Findings {
        let mut findings = Findings::default();
        for norm in matching::candidates(cx, graph, around) {
            let Some(conv) = conv_before(cx.model, norm) else { continue };
            match conditions(cx, norm, conv) {
                Ok(_) => findings.sites.push(Site {
                    graph,
                    anchor: Anchor::Node(conv),
                    nodes: vec![conv, norm],
                    what: format!("{} + BatchNormalization", cx.model.node(conv).op_type).into(),
                }),
                Err(blocked) => findings.blocked.push(blocked),
            }
        }
        findings.sites.sort_by_key(|s| s.nodes.first().map(|n| cx.model.node(*n).order));
        findings
    }

    fn rewrite(&self, cx: &Context, site: &Site) -> Result<Patch, Declined> {
        let model = cx.model;
        let &[conv, norm] = site.nodes.as_slice() else { return Err(Declined::Stale) };
        if conv_before(model, norm) != Some(conv) {
            return Err(Declined::Stale);
        }
        let found = conditions(cx, norm, conv).and_then(|c| fold(cx, norm, c)).map_err(Declined::Blocked)?;
        let (conv_node, norm_node) = (model.node(conv), model.node(norm));
        let mut p = PatchBuilder::new(model);
        let own = |v: ValueId| is_own(model, v, conv_node.graph, &[conv, norm]);
        let weight = if own(found.weight) {
            p.edit(set_constant(found.weight, found.new_weight));
            found.weight
        } else {
            let base = format!("{}_folded", model.value(found.weight).name);
            matching::place_constant(&mut p, found.conv, &base, found.new_weight)?
        };
        // A place for the bias that needs no new name: the old bias, else the normalization's shift.
        let shift = found.parameters[1];
        let place = [found.bias, Some(shift)]
            .into_iter()
            .flatten()
            .find(|v| own(*v) && fits(model, *v, &found.new_bias));
        let bias = match place {
            Some(v) => {
                p.edit(set_constant(v, found.new_bias));
                v
            }
            None => {
                let base = match found.bias {
                    Some(b) => format!("{}_folded", model.value(b).name),
                    None => format!("{}_folded", model.value(shift).name),
                };
                matching::place_constant(&mut p, found.conv, &base, found.new_bias)?
            }
        };
        p.remove_node(norm);
        p.set_inputs(conv, [conv_node.input(0), Some(weight), Some(bias)]);
        p.set_outputs(conv, [norm_node.output(0)]);
        let old = found.parameters.into_iter().chain([found.weight]).chain(found.bias);
        let unused: Vec<ValueId> = old.filter(|v| *v != weight && *v != bias).collect();
        matching::drop_constants(&mut p, unused, &[conv, norm]);
        Ok(p.finish())
    }
}

/// The convolution whose result a BatchNormalization reads.
fn conv_before(model: &Model, norm: NodeId) -> Option<NodeId> {
    let node = model.get_node(norm).filter(|n| n.is("BatchNormalization") && n.output(0).is_some())?;
    let (conv, before) = matching::producer(model, node.input(0)?, node.graph)?;
    (before.is("Conv") || before.is("ConvTranspose")).then_some(conv)
}

/// Constant data of a match, its sizes checked.
struct Constants {
    conv: NodeId,
    weight: (ValueId, Arc<Tensor>),
    bias: Option<(ValueId, Arc<Tensor>)>,
    parameters: [(ValueId, Arc<Tensor>); 4],
    epsilon: f64,
    group: usize,
    transposed: bool,
    channels: usize,
}

/// All conditions that do not need arithmetic.
fn conditions(cx: &Context, norm: NodeId, conv: NodeId) -> Result<Constants, Blocked> {
    let model = cx.model;
    let (node, before) = (model.node(norm), model.node(conv));
    let no = |condition: String, blame: NodeId| matching::blocked(model, norm, condition, blame);
    if node.has_attribute_references() || before.has_attribute_references() {
        return Err(no("an attribute is set by the caller of the function".into(), norm));
    }
    if !known::infers(model, cx.facts, node) {
        return Err(no("the BatchNormalization works in training mode".into(), norm));
    }
    if node.outputs.iter().skip(1).flatten().any(|v| !model.value(*v).uses.is_empty()) {
        return Err(no("the statistics are read as well".into(), norm));
    }
    if node.int_or("spatial", 1) != Some(1) {
        return Err(no("the statistics are per activation (spatial = 0)".into(), norm));
    }
    let middle = node.input(0).ok_or_else(|| no("the BatchNormalization has no input".into(), norm))?;
    if let Some(other) = matching::other_reader(model, middle, norm) {
        return Err(other.blocked(model, norm, conv));
    }
    let constant = |v: Option<ValueId>, of: &Node, at: NodeId, index: usize, what: &str| {
        let v = v.ok_or_else(|| no(format!("{} has no {what}", of.op_type), at))?;
        match view::constant(model, v) {
            Some(t) if known::is_computable(t.element) && t.bytes().is_some() => Ok((v, t)),
            Some(_) => Err(no(
                format!("the {what} '{}' is not floating-point data at hand", model.value(v).name),
                at,
            )),
            None => {
                let blame = model.value(v).node().map_or(at, |(n, _)| n);
                Err(no(
                    format!("the {what} '{}' (input {index}) is not constant", model.value(v).name),
                    blame,
                ))
            }
        }
    };
    let weight = constant(before.input(1), before, conv, 1, "weight")?;
    let bias = match before.input(2) {
        None => None,
        some => Some(constant(some, before, conv, 2, "bias")?),
    };
    let parameters = [
        constant(node.input(1), node, norm, 1, "scale")?,
        constant(node.input(2), node, norm, 2, "shift")?,
        constant(node.input(3), node, norm, 3, "mean")?,
        constant(node.input(4), node, norm, 4, "variance")?,
    ];
    let sizes = || -> Option<(usize, usize)> {
        let group = usize::try_from(before.int_or("group", 1)?).ok().filter(|g| *g > 0)?;
        let dims = &weight.1.dims;
        let (first, second) = (usize::try_from(*dims.first()?).ok()?, usize::try_from(*dims.get(1)?).ok()?);
        let channels = if before.is("ConvTranspose") { second.checked_mul(group)? } else { first };
        let fits = |t: &Tensor| t.dims.as_slice() == [channels as u64];
        let all = parameters.iter().all(|(_, t)| fits(t)) && bias.as_ref().is_none_or(|(_, t)| fits(t));
        (all && first % group == 0).then_some((group, channels))
    };
    let (group, channels) = sizes()
        .ok_or_else(|| no("the sizes of weight, bias and statistics do not fit together".into(), norm))?;
    let epsilon = match node.attribute("epsilon") {
        None => 1e-5f32,
        Some(a) => a.float().ok_or_else(|| no("epsilon is not a number".into(), norm))?,
    };
    if let Some(v) = known::floats(&parameters[3].1)
        && v.iter().any(|v| !(*v >= 0.0 && *v + epsilon as f64 > 0.0 && v.is_finite()))
    {
        return Err(no("a variance is negative, zero without epsilon, or not a number".into(), norm));
    }
    let transposed = before.is("ConvTranspose");
    Ok(Constants { conv, weight, bias, parameters, epsilon: epsilon as f64, group, transposed, channels })
}

/// The arithmetic.
fn fold(cx: &Context, norm: NodeId, c: Constants) -> Result<Match, Blocked> {
    let no = |condition: &str| matching::blocked(cx.model, norm, condition, norm);
    let numbers = |t: &Tensor| known::floats(t).ok_or_else(|| no("the weights are not at hand"));
    let [scale, shift, mean, variance] = &c.parameters;
    let (scale, shift) = (numbers(&scale.1)?, numbers(&shift.1)?);
    let (mean, variance) = (numbers(&mean.1)?, numbers(&variance.1)?);
    let factors: Vec<f64> = scale.iter().zip(&variance).map(|(s, v)| s / (v + c.epsilon).sqrt()).collect();
    let bias = match &c.bias {
        Some((_, b)) => numbers(b)?,
        None => vec![0.0; c.channels],
    };
    let new_bias: Vec<f64> = (0..c.channels).map(|i| (bias[i] - mean[i]) * factors[i] + shift[i]).collect();
    let (_, tensor) = &c.weight;
    let mut weight = numbers(tensor)?;
    let dims = &tensor.dims;
    let kernel: usize = dims.iter().skip(2).map(|d| *d as usize).product();
    let (rows, columns) = (dims[0] as usize, dims[1] as usize);
    // Conv: [output, input / group, kernel]; ConvTranspose: [input, output / group, kernel].
    for (k, slice) in weight.chunks_exact_mut(kernel.max(1)).enumerate() {
        let (row, column) = (k / columns.max(1), k % columns.max(1));
        let channel = if c.transposed { row / (rows / c.group) * columns + column } else { row };
        slice.iter_mut().for_each(|w| *w *= factors[channel]);
    }
    let element = tensor.element;
    let rounded = |dims: &[u64], list: &[f64]| {
        known::from_floats(element, dims, list)
            .filter(|_| list.iter().all(|v| v.is_finite()))
            .ok_or_else(|| no("a folded number leaves the range of the element type"))
    };
    let (new_weight, new_bias) = (rounded(dims, &weight)?, rounded(&[c.channels as u64], &new_bias)?);
    let parameters = c.parameters.map(|(v, _)| v);
    Ok(Match {
        conv: c.conv,
        weight: c.weight.0,
        bias: c.bias.map(|b| b.0),
        parameters,
        new_weight,
        new_bias,
    })
}

/// True for an initializer of the same graph that only these nodes read, each at one place: it may get other data.
fn is_own(model: &Model, v: ValueId, graph: GraphId, readers: &[NodeId]) -> bool {
    let Some(value) = model.get_value(v) else { return false };
    let initializer = value.producer == Producer::Initializer || model.is_constant_input(v);
    initializer
        && value.graph == graph
        && value.uses.len() == 1
        && !value.uses.is_output()
        && model.readers(v).iter().all(|n| readers.contains(n))
}

/// True when a value's declared type holds for other data as well.
fn fits(model: &Model, v: ValueId, tensor: &Tensor) -> bool {
    matches!(&model.value(v).ty, Type::Tensor { element, .. } if *element == tensor.element)
}

fn set_constant(value: ValueId, tensor: Tensor) -> Edit {
    Edit::SetConstant { value, constant: Some(Constant::Dense(Arc::new(tensor))) }
}

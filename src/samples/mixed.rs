//! Parallel branches, squeeze-and-excite, weights normalised in the graph, and an If between two heads.

use super::{Convolution, Weights, apply, convolution_and_norm};
use crate::ir::{Builder, ElementType, Model, Tensor, ValueId};

const CHANNELS: u64 = 16;

pub(super) fn build() -> Model {
    let mut b = Builder::new("branches", 17);
    let mut w = Weights::new(37);
    let x = b.input("image", ElementType::FLOAT, &["batch".into(), 3.into(), 24.into(), 24.into()]);
    let detailed = b.input("detailed", ElementType::BOOL, &[]);
    let stem = Convolution { scope: "/stem", from: 3, to: CHANNELS, kernel: 3, stride: 2 };
    let mut y = convolution_and_norm(&mut b, &mut w, x, stem);
    y = apply(&mut b, "Relu", &[y], "/stem/act");
    for module in 0..4 {
        let scope = format!("/branches.{module}");
        y = branches(&mut b, &mut w, y, &scope);
        y = squeeze_and_excite(&mut b, &mut w, y, &format!("{scope}/se"));
    }
    y = normalised_weights(&mut b, &mut w, y, "/projection");
    y = scaled_by_constants(&mut b, y, "/scale");
    let pooled = apply(&mut b, "GlobalAveragePool", &[y], "/pool");
    let flat = b.op("Flatten", &[pooled]).attr("axis", 1).named("/flatten/Flatten").one();
    let scores = two_heads(&mut b, &mut w, detailed, flat);
    b.output_as(scores, "scores", ElementType::FLOAT, &["batch".into(), 5.into()]);
    b.finish().unwrap_or_else(|faults| unreachable!("the sample is sound: {faults:?}"))
}

/// Four ways through, joined by Concat: 1×1, 3×3, twice 3×3, and pooling.
fn branches(b: &mut Builder, w: &mut Weights, x: ValueId, scope: &str) -> ValueId {
    let quarter = CHANNELS / 4;
    let mut unit = |b: &mut Builder, x, path: &str, from, to, kernel| {
        let scope = format!("{scope}/{path}");
        let y = convolution_and_norm(b, w, x, Convolution { scope: &scope, from, to, kernel, stride: 1 });
        apply(b, "Relu", &[y], &format!("{scope}/act"))
    };
    let one = unit(b, x, "one", CHANNELS, quarter, 1);
    let three = unit(b, x, "three/reduce", CHANNELS, quarter, 1);
    let three = unit(b, three, "three/conv", quarter, quarter, 3);
    let double = unit(b, x, "double/reduce", CHANNELS, quarter, 1);
    let double = unit(b, double, "double/conv1", quarter, quarter, 3);
    let double = unit(b, double, "double/conv2", quarter, quarter, 3);
    let pooled = b
        .op("AveragePool", &[x])
        .attr("kernel_shape", [3, 3])
        .attr("pads", [1, 1, 1, 1])
        .attr("strides", [1, 1])
        .attr("count_include_pad", 1)
        .named(&format!("{scope}/pool/AveragePool"))
        .one();
    let pooled = unit(b, pooled, "pool/project", CHANNELS, quarter, 1);
    b.op("Concat", &[one, three, double, pooled]).attr("axis", 1).named(&format!("{scope}/Concat")).one()
}

fn squeeze_and_excite(b: &mut Builder, w: &mut Weights, x: ValueId, scope: &str) -> ValueId {
    let mut pointwise = |b: &mut Builder, x: ValueId, name: &str, from: u64, to: u64| {
        let dotted = format!("{}.{name}", scope.trim_start_matches('/').replace('/', "."));
        let weight = b.constant(&format!("{dotted}.weight"), w.normal(&[to, from, 1, 1], 0.4));
        let bias = b.constant(&format!("{dotted}.bias"), w.normal(&[to], 0.1));
        b.op("Conv", &[x, weight, bias])
            .attr("kernel_shape", [1, 1])
            .named(&format!("{scope}/{name}/Conv"))
            .one()
    };
    let squeezed = apply(b, "GlobalAveragePool", &[x], scope);
    let reduced = pointwise(b, squeezed, "reduce", CHANNELS, 4);
    let active = apply(b, "Relu", &[reduced], scope);
    let expanded = pointwise(b, active, "expand", 4, CHANNELS);
    let gate = apply(b, "Sigmoid", &[expanded], scope);
    apply(b, "Mul", &[x, gate], scope)
}

/// A convolution whose weight is v · g / |v|, computed at every run though nothing in it changes (weight normalisation,
/// Salimans and Kingma 2016).
fn normalised_weights(b: &mut Builder, w: &mut Weights, x: ValueId, scope: &str) -> ValueId {
    let v = b.constant("projection.weight_v", w.normal(&[CHANNELS, CHANNELS, 1, 1], 0.3));
    let g = b.constant("projection.weight_g", w.between(&[CHANNELS, 1, 1, 1], 0.8, 1.2));
    let squares = apply(b, "Mul", &[v, v], scope);
    let axes = b.constant("projection.axes", Tensor::ints(&[1, 2, 3]));
    let sum = apply(b, "ReduceSum", &[squares, axes], scope);
    let norm = apply(b, "Sqrt", &[sum], scope);
    let direction = apply(b, "Div", &[v, norm], scope);
    let weight = b.op("Mul", &[direction, g]).named(&format!("{scope}/Mul_1")).one();
    b.op("Conv", &[x, weight]).attr("kernel_shape", [1, 1]).named(&format!("{scope}/Conv")).one()
}

/// Multiplies by a number that constants add up to.
fn scaled_by_constants(b: &mut Builder, x: ValueId, scope: &str) -> ValueId {
    let steps = b.constant("scale.steps", Tensor::from_f32(&[4], &[0.125, 0.25, 0.125, 0.5]));
    let axes = b.constant("scale.axes", Tensor::ints(&[0]));
    let sum =
        b.op("ReduceSum", &[steps, axes]).attr("keepdims", 0).named(&format!("{scope}/ReduceSum")).one();
    let half = b.constant("scale.half", Tensor::scalar_f32(0.5));
    let factor = b.op("Add", &[sum, half]).named(&format!("{scope}/Add")).one();
    let same = apply(b, "Identity", &[factor], scope);
    apply(b, "Mul", &[x, same], scope)
}

/// A short head or a long one; both read what was computed outside.
fn two_heads(b: &mut Builder, w: &mut Weights, detailed: ValueId, x: ValueId) -> ValueId {
    let short_weight = b.constant("heads.short.weight", w.normal(&[CHANNELS, 5], 0.3));
    let short_bias = b.constant("heads.short.bias", w.normal(&[5], 0.1));
    let long_first = b.constant("heads.long.0.weight", w.normal(&[CHANNELS, 32], 0.3));
    let long_second = b.constant("heads.long.1.weight", w.normal(&[32, 5], 0.3));
    let long = move |b: &mut Builder| {
        let hidden = apply(b, "MatMul", &[x, long_first], "/heads/long/0");
        let active = apply(b, "Relu", &[hidden], "/heads/long/0/act");
        let dropped = apply(b, "Dropout", &[active], "/heads/long/0/dropout");
        let scores = apply(b, "MatMul", &[dropped, long_second], "/heads/long/1");
        let shifted = apply(b, "Add", &[scores, short_bias], "/heads/long/1");
        b.output(shifted);
    };
    let short = move |b: &mut Builder| {
        let product = apply(b, "MatMul", &[x, short_weight], "/heads/short");
        let scores = apply(b, "Add", &[product, short_bias], "/heads/short");
        let same = apply(b, "Identity", &[scores], "/heads/short");
        b.output(same);
    };
    b.op("If", &[detailed]).body("then_branch", long).body("else_branch", short).named("/heads/If").one()
}

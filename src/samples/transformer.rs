//! A transformer encoder as exporters write it: nothing fused, shapes computed at every Reshape, batch and sequence free.

use super::{Weights, apply};
use crate::ir::{Builder, ElementType, Model, Tensor, ValueId};

const HIDDEN: u64 = 32;
const HEADS: i64 = 4;
const INNER: u64 = 64;
const WORDS: u64 = 60;
const POSITIONS: u64 = 64;
const LAYERS: usize = 4;

pub(super) fn build() -> Model {
    let mut b = Builder::new("transformer_encoder", 17);
    let mut w = Weights::new(23);
    let dims = ["batch".into(), "sequence".into()];
    let ids = b.input("input_ids", ElementType::INT64, &dims);
    let mask = b.input("attention_mask", ElementType::INT64, &dims);
    let mut x = embeddings(&mut b, &mut w, ids);
    let mask = extended_mask(&mut b, mask);
    for layer in 0..LAYERS {
        let scope = format!("/encoder/layer.{layer}");
        let attended = attention(&mut b, &mut w, x, mask, &format!("{scope}/attention"));
        let sum = apply(&mut b, "Add", &[attended, x], &format!("{scope}/attention/output"));
        let normed = layer_norm(&mut b, &mut w, sum, &format!("{scope}/attention/output/LayerNorm"));
        let inner = linear(&mut b, &mut w, normed, &format!("{scope}/intermediate/dense"), HIDDEN, INNER);
        let active = gelu(&mut b, inner, &format!("{scope}/intermediate/act"));
        let outer = linear(&mut b, &mut w, active, &format!("{scope}/output/dense"), INNER, HIDDEN);
        let sum = apply(&mut b, "Add", &[outer, normed], &format!("{scope}/output"));
        x = layer_norm(&mut b, &mut w, sum, &format!("{scope}/output/LayerNorm"));
    }
    let shape = ["batch".into(), "sequence".into(), HIDDEN.into()];
    b.output_as(x, "last_hidden_state", ElementType::FLOAT, &shape);
    b.finish().unwrap_or_else(|faults| unreachable!("the sample is sound: {faults:?}"))
}

fn embeddings(b: &mut Builder, w: &mut Weights, ids: ValueId) -> ValueId {
    let scope = "/embeddings";
    let words = b.constant("embeddings.word_embeddings.weight", w.normal(&[WORDS, HIDDEN], 0.5));
    let word = apply(b, "Gather", &[words, ids], &format!("{scope}/word_embeddings"));
    // The first `sequence` positions, cut out of a table by a computed length.
    let table = b.constant(
        "embeddings.position_ids",
        Tensor::from_i64(&[1, POSITIONS], &(0..POSITIONS as i64).collect::<Vec<_>>()),
    );
    let length = dimension(b, ids, 1, scope, 0);
    let zero = b.constant("embeddings.start", Tensor::ints(&[0]));
    let end = apply_axes(b, "Unsqueeze", length, &[0], &format!("{scope}/Unsqueeze"));
    let axis = b.constant("embeddings.axis", Tensor::ints(&[1]));
    let positions = b.op("Slice", &[table, zero, end, axis]).named(&format!("{scope}/Slice")).one();
    let weights = b.constant("embeddings.position_embeddings.weight", w.normal(&[POSITIONS, HIDDEN], 0.5));
    let position = apply(b, "Gather", &[weights, positions], &format!("{scope}/position_embeddings"));
    let sum = apply(b, "Add", &[word, position], scope);
    let normed = layer_norm(b, w, sum, &format!("{scope}/LayerNorm"));
    apply(b, "Dropout", &[normed], &format!("{scope}/dropout"))
}

/// 0 where a token counts and a large negative number where it does not, shaped to be added to scores.
fn extended_mask(b: &mut Builder, mask: ValueId) -> ValueId {
    let two = apply_axes(b, "Unsqueeze", mask, &[1], "/mask/Unsqueeze");
    let four = apply_axes(b, "Unsqueeze", two, &[2], "/mask/Unsqueeze_1");
    let float = b.op("Cast", &[four]).attr("to", ElementType::FLOAT.0 as i64).named("/mask/Cast").one();
    let one = b.constant("mask.one", Tensor::scalar_f32(1.0));
    let rest = b.op("Sub", &[one, float]).named("/mask/Sub").one();
    let large = b.constant("mask.large", Tensor::scalar_f32(-10_000.0));
    b.op("Mul", &[rest, large]).named("/mask/Mul").one()
}

fn attention(b: &mut Builder, w: &mut Weights, x: ValueId, mask: ValueId, scope: &str) -> ValueId {
    let own = format!("{scope}/self");
    let mut chain = 0;
    let mut heads = |b: &mut Builder, w: &mut Weights, name: &str, perm: [i64; 4]| {
        let y = linear(b, w, x, &format!("{own}/{name}"), HIDDEN, HIDDEN);
        let split = shaped(b, y, &own, chain, &[HEADS, HIDDEN as i64 / HEADS]);
        chain += 1;
        let suffix = suffix(chain - 1);
        b.op("Transpose", &[split]).attr("perm", perm).named(&format!("{own}/Transpose{suffix}")).one()
    };
    let query = heads(b, w, "query", [0, 2, 1, 3]);
    let key = heads(b, w, "key", [0, 2, 3, 1]);
    let value = heads(b, w, "value", [0, 2, 1, 3]);
    let scores = b.op("MatMul", &[query, key]).named(&format!("{own}/MatMul")).one();
    let root = b.constant(
        &format!("{}.scale", dotted(&own)),
        Tensor::scalar_f32((HIDDEN as f32 / HEADS as f32).sqrt()),
    );
    let scaled = apply(b, "Div", &[scores, root], &own);
    let masked = apply(b, "Add", &[scaled, mask], &own);
    let weights = b.op("Softmax", &[masked]).attr("axis", -1).named(&format!("{own}/Softmax")).one();
    let dropped = apply(b, "Dropout", &[weights], &format!("{own}/dropout"));
    let mixed = b.op("MatMul", &[dropped, value]).named(&format!("{own}/MatMul_1")).one();
    let back =
        b.op("Transpose", &[mixed]).attr("perm", [0, 2, 1, 3]).named(&format!("{own}/Transpose_3")).one();
    let joined = shaped(b, back, &own, 3, &[HIDDEN as i64]);
    linear(b, w, joined, &format!("{scope}/output/dense"), HIDDEN, HIDDEN)
}

/// Reshape to (batch, sequence, …) with both read from the value, the way tracing exporters write `view`.
fn shaped(b: &mut Builder, x: ValueId, scope: &str, chain: usize, rest: &[i64]) -> ValueId {
    // After the heads were moved, the sequence is still the second dimension from the front once transposed back.
    let batch = dimension(b, x, 0, scope, 2 * chain);
    let sequence = dimension(b, x, 1, scope, 2 * chain + 1);
    let batch = apply_axes(b, "Unsqueeze", batch, &[0], &format!("{scope}/Unsqueeze{}", suffix(2 * chain)));
    let sequence =
        apply_axes(b, "Unsqueeze", sequence, &[0], &format!("{scope}/Unsqueeze{}", suffix(2 * chain + 1)));
    let rest = b.constant(&format!("{}.rest", dotted(scope)), Tensor::ints(rest));
    let suffix = suffix(chain);
    let target = b
        .op("Concat", &[batch, sequence, rest])
        .attr("axis", 0)
        .named(&format!("{scope}/Concat{suffix}"))
        .one();
    b.op("Reshape", &[x, target]).named(&format!("{scope}/Reshape{suffix}")).one()
}

/// One dimension of a value as a scalar.
fn dimension(b: &mut Builder, x: ValueId, axis: i64, scope: &str, number: usize) -> ValueId {
    let suffix = suffix(number);
    let shape = b.op("Shape", &[x]).named(&format!("{scope}/Shape{suffix}")).one();
    let index = b.constant(&format!("{}.axis_{axis}", dotted(scope)), Tensor::from_i64(&[], &[axis]));
    b.op("Gather", &[shape, index]).attr("axis", 0).named(&format!("{scope}/Gather{suffix}")).one()
}

fn apply_axes(b: &mut Builder, operator: &str, x: ValueId, axes: &[i64], name: &str) -> ValueId {
    let axes = b.constant(&format!("{}.axes", dotted(name)), Tensor::ints(axes));
    b.op(operator, &[x, axes]).named(name).one()
}

fn linear(b: &mut Builder, w: &mut Weights, x: ValueId, scope: &str, from: u64, to: u64) -> ValueId {
    let weight =
        b.constant(&format!("{}.weight", dotted(scope)), w.normal(&[from, to], (1.0 / from as f32).sqrt()));
    let bias = b.constant(&format!("{}.bias", dotted(scope)), w.normal(&[to], 0.05));
    let product = apply(b, "MatMul", &[x, weight], scope);
    apply(b, "Add", &[bias, product], scope)
}

fn layer_norm(b: &mut Builder, w: &mut Weights, x: ValueId, scope: &str) -> ValueId {
    let mean = b.op("ReduceMean", &[x]).attr("axes", [-1]).named(&format!("{scope}/ReduceMean")).one();
    let centred = apply(b, "Sub", &[x, mean], scope);
    let two = b.constant(&format!("{}.two", dotted(scope)), Tensor::scalar_f32(2.0));
    let square = apply(b, "Pow", &[centred, two], scope);
    let variance =
        b.op("ReduceMean", &[square]).attr("axes", [-1]).named(&format!("{scope}/ReduceMean_1")).one();
    let epsilon = b.constant(&format!("{}.epsilon", dotted(scope)), Tensor::scalar_f32(1e-12));
    let kept = apply(b, "Add", &[variance, epsilon], scope);
    let root = apply(b, "Sqrt", &[kept], scope);
    let normed = apply(b, "Div", &[centred, root], scope);
    let weight = b.constant(&format!("{}.weight", dotted(scope)), w.between(&[HIDDEN], 0.8, 1.2));
    let bias = b.constant(&format!("{}.bias", dotted(scope)), w.normal(&[HIDDEN], 0.05));
    let scaled = apply(b, "Mul", &[normed, weight], scope);
    b.op("Add", &[scaled, bias]).named(&format!("{scope}/Add_1")).one()
}

/// x/2 · (1 + erf(x/√2)), the exact form (Hendrycks and Gimpel, "Gaussian Error Linear Units").
fn gelu(b: &mut Builder, x: ValueId, scope: &str) -> ValueId {
    let root =
        b.constant(&format!("{}.root_two", dotted(scope)), Tensor::scalar_f32(std::f32::consts::SQRT_2));
    let one = b.constant(&format!("{}.one", dotted(scope)), Tensor::scalar_f32(1.0));
    let half = b.constant(&format!("{}.half", dotted(scope)), Tensor::scalar_f32(0.5));
    let scaled = apply(b, "Div", &[x, root], scope);
    let erf = apply(b, "Erf", &[scaled], scope);
    let shifted = apply(b, "Add", &[erf, one], scope);
    let product = apply(b, "Mul", &[x, shifted], scope);
    b.op("Mul", &[product, half]).named(&format!("{scope}/Mul_1")).one()
}

fn dotted(scope: &str) -> String {
    scope.trim_start_matches('/').replace('/', ".")
}

/// Exporters number the second and later of a name.
fn suffix(number: usize) -> String {
    if number == 0 { String::new() } else { format!("_{number}") }
}

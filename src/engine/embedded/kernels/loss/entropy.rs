//! NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss. Sums are in float64 and rounded once.

use crate::engine::array::{Array, Storage, Value};
use crate::engine::embedded::call::{Call, Outputs, one};
use crate::engine::fault::Fault;
use crate::ir::ElementType;
use half::{bf16, f16};
use smallvec::smallvec;

/// NegativeLogLikelihoodLoss (12-22).
pub fn negative_log_likelihood_loss(call: &mut Call) -> Result<Outputs, Fault> {
    let input = call.input(0)?;
    let scores = numbers(input)?;
    one(loss(call, &scores, input)?)
}

/// SoftmaxCrossEntropyLoss (12, 13); the second output is the log of the softmax over axis 1.
pub fn softmax_cross_entropy_loss(call: &mut Call) -> Result<Outputs, Fault> {
    let input = call.input(0)?;
    let mut scores = numbers(input)?;
    let (_, classes, inner) = classes(input.dims())?;
    if inner > 0 && classes > 0 {
        for image in scores.chunks_exact_mut(classes * inner) {
            for k in 0..inner {
                let each = || (0..classes).map(move |c| c * inner + k);
                let most = each().map(|i| image[i]).fold(f64::NEG_INFINITY, f64::max);
                let sum: f64 = each().map(|i| (image[i] - most).exp()).sum();
                let log = sum.ln();
                for i in each() {
                    image[i] -= most + log;
                }
            }
        }
    }
    let loss = loss(call, &scores, input)?;
    let logarithms = match call.wants(1) {
        true => Some(Value::Array(rounded(input.element(), input.dims(), scores)?)),
        false => None,
    };
    Ok(smallvec![Some(Value::Array(loss)), logarithms])
}

/// Batch, classes, and the product of the axes behind.
fn classes(dims: &[usize]) -> Result<(usize, usize, usize), Fault> {
    match dims {
        [batch, classes, rest @ ..] => Ok((*batch, *classes, rest.iter().product())),
        _ => Err(Fault::Invalid(format!("shape {dims:?} has no axis of classes"))),
    }
}

/// The loss from logarithms of probabilities.
fn loss(call: &Call, scores: &[f64], input: &Array) -> Result<Array, Fault> {
    let (batch, classes, inner) = classes(input.dims())?;
    let target = call.input(1)?;
    let expected: Vec<usize> =
        input.dims().iter().enumerate().filter(|(i, _)| *i != 1).map(|(_, d)| *d).collect();
    if target.dims() != expected {
        return Err(Fault::Invalid(format!("the labels have shape {:?}, not {expected:?}", target.dims())));
    }
    let weights = call.optional(2)?.map(numbers).transpose()?;
    if weights.as_ref().is_some_and(|w| w.len() != classes) {
        return Err(Fault::Invalid(format!("there must be a weight for each of {classes} classes")));
    }
    let ignored = call.attributes.optional_int("ignore_index")?;
    let labels = target.integers()?;
    let mut losses = Vec::with_capacity(batch * inner);
    let mut total_weight = 0.0;
    for (i, label) in labels.iter().enumerate() {
        if Some(*label) == ignored {
            losses.push(0.0);
            continue;
        }
        let Some(class) = usize::try_from(*label).ok().filter(|c| *c < classes) else {
            return Err(Fault::Invalid(format!("label {label} is none of {classes} classes")));
        };
        let weight = weights.as_ref().map_or(1.0, |w| w[class]);
        total_weight += weight;
        let score = scores[(i / inner * classes + class) * inner + i % inner];
        losses.push(-score * weight);
    }
    let (dims, values) = match call.attributes.text("reduction", "mean")? {
        "none" => (expected, losses),
        "sum" => (Vec::new(), vec![losses.iter().sum()]),
        // The mean counts only what has weight: labels to be ignored have none.
        "mean" => (Vec::new(), vec![losses.iter().sum::<f64>() / total_weight]),
        other => return Err(Fault::Invalid(format!("reduction {other:?} is unknown"))),
    };
    rounded(input.element(), &dims, values)
}

fn numbers(array: &Array) -> Result<Vec<f64>, Fault> {
    match array.storage() {
        Storage::F32(_) | Storage::F64(_) | Storage::F16(_) | Storage::BF16(_) => {
            array.approximate().ok_or_else(|| Fault::element(array.element()))
        }
        _ => Err(Fault::element(array.element())),
    }
}

fn rounded(element: ElementType, dims: &[usize], values: Vec<f64>) -> Result<Array, Fault> {
    Ok(match element {
        ElementType::DOUBLE => Array::new(dims, values),
        ElementType::FLOAT => Array::new(dims, values.into_iter().map(|v| v as f32).collect()),
        ElementType::FLOAT16 => Array::new(dims, values.into_iter().map(f16::from_f64).collect()),
        ElementType::BFLOAT16 => Array::new(dims, values.into_iter().map(bf16::from_f64).collect()),
        other => return Err(Fault::element(other)),
    })
}

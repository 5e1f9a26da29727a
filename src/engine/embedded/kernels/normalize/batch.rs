//! BatchNormalization.

use super::super::real::{Real, in_real};
use crate::engine::Fault;
use crate::engine::embedded::call::{Call, Outputs, one};
use rayon::prelude::*;
use smallvec::smallvec;

/// BatchNormalization (all opsets): with the statistics given; since opset 14 with those of the batch as well, when
/// `training_mode` is set. Scale, bias and statistics may be of another float type than the input.
pub fn batch_normalization(call: &mut Call) -> Result<Outputs, Fault> {
    in_real!(call, 0, normalize)
}

fn normalize<T: Real>(call: &mut Call) -> Result<Outputs, Fault> {
    let epsilon = f64::from(call.attributes.float("epsilon", 1e-5)?);
    if call.opset < 9 && call.attributes.int("spatial", 1)? == 0 {
        return call.unsupported("spatial=0");
    }
    let training = match call.opset {
        14.. => call.attributes.int("training_mode", 0)? != 0,
        7.. => (1..5).any(|i| call.wants(i)),
        _ => call.attributes.int("is_test", 0)? == 0,
    };
    if training && call.opset < 14 {
        return call.unsupported("training before opset 14");
    }
    let x = call.take(0)?;
    let (element, dims) = (x.element(), x.dims().to_vec());
    let Some(&channels) = dims.get(1) else {
        return Err(Fault::Invalid(format!("an input of shape {dims:?} has no channels")));
    };
    let plane = dims[2..].iter().product::<usize>();
    let mut values = T::take_from(x)?;
    let scale = parameter(call, 1, channels)?;
    let bias = parameter(call, 2, channels)?;
    let mut mean = parameter(call, 3, channels)?;
    let mut variance = parameter(call, 4, channels)?;
    let mut running = None;
    if training {
        let batch = statistics(&values, channels, plane);
        let momentum = f64::from(call.attributes.float("momentum", 0.9)?);
        let mix = |old: &[f64], new: &[f64]| -> Vec<f64> {
            old.iter().zip(new).map(|(o, n)| o * momentum + n * (1.0 - momentum)).collect()
        };
        running = Some([mix(&mean, &batch.0), mix(&variance, &batch.1)]);
        (mean, variance) = batch;
    }
    // y = factor · x + shift
    let lines: Vec<(T, T)> = (0..channels)
        .map(|c| {
            let factor = scale[c] / (variance[c] + epsilon).sqrt();
            (T::from_f64(factor), T::from_f64(bias[c] - mean[c] * factor))
        })
        .collect();
    let change = |(i, plane): (usize, &mut [T])| {
        let (factor, shift) = lines[i % channels];
        plane.iter_mut().for_each(|v| *v = *v * factor + shift);
    };
    if call.threads > 1 && values.len() > 1 << 16 {
        values.par_chunks_mut(plane.max(1)).enumerate().for_each(change);
    } else {
        values.chunks_mut(plane.max(1)).enumerate().for_each(change);
    }
    let y = T::array(element, &dims, values);
    let Some(running) = running else { return one(y) };
    let mut outputs: Outputs = smallvec![Some(y.into())];
    for (i, values) in running.into_iter().enumerate() {
        outputs.push(Some(f64::array(call.input(3 + i)?.element(), &[channels], values).into()));
    }
    Ok(outputs)
}

/// A number for each channel.
fn parameter(call: &Call, index: usize, channels: usize) -> Result<Vec<f64>, Fault> {
    let array = call.input(index)?;
    if array.dims() != [channels] {
        return Err(Fault::Invalid(format!(
            "input {index} has shape {:?} where there are {channels} channels",
            array.dims()
        )));
    }
    Ok(f64::load(array)?.into_owned())
}

/// Mean and population variance of each channel.
fn statistics<T: Real>(values: &[T], channels: usize, plane: usize) -> (Vec<f64>, Vec<f64>) {
    let count = (values.len() / channels.max(1)) as f64;
    let mut mean = vec![0.0; channels];
    for (i, plane) in values.chunks(plane.max(1)).enumerate() {
        mean[i % channels] += plane.iter().map(|v| v.wide()).sum::<f64>() / count;
    }
    let mut variance = vec![0.0; channels];
    for (i, plane) in values.chunks(plane.max(1)).enumerate() {
        let mean = mean[i % channels];
        let squares = plane.iter().map(|v| (v.wide() - mean) * (v.wide() - mean));
        variance[i % channels] += squares.sum::<f64>() / count;
    }
    (mean, variance)
}

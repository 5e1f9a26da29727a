//! BatchNormalization.

use crate::engine::Fault;
use crate::engine::array::{Array, Storage};
use crate::engine::embedded::call::{Call, Outputs, one};
use crate::engine::embedded::kernels::product::{rounded, single};
use rayon::prelude::*;
use smallvec::smallvec;

/// BatchNormalization (all opsets): with the statistics given; since opset 14 with those of the batch as well, when
/// `training_mode` is set. Scale, bias and statistics may be of another float type than the input.
pub fn batch_normalization(call: &mut Call) -> Result<Outputs, Fault> {
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
    let mut x = call.take(0)?;
    let dims = x.dims().to_vec();
    let Some(&channels) = dims.get(1) else {
        return Err(Fault::Invalid(format!("an input of shape {dims:?} has no channels")));
    };
    let [scale, bias, mut mean, mut variance] = [1, 2, 3, 4].map(|i| parameter(call, i, channels));
    let plane = dims[2..].iter().product::<usize>();
    let mut running = None;
    if training {
        let batch = statistics(&x, channels, plane)?;
        let momentum = f64::from(call.attributes.float("momentum", 0.9)?);
        let mix = |old: Result<Vec<f64>, Fault>, new: &[f64]| -> Result<Vec<f64>, Fault> {
            Ok(old?.iter().zip(new).map(|(o, n)| o * momentum + n * (1.0 - momentum)).collect())
        };
        running = Some([mix(mean, &batch.0)?, mix(variance, &batch.1)?]);
        (mean, variance) = (Ok(batch.0), Ok(batch.1));
    }
    let (scale, bias, mean, variance) = (scale?, bias?, mean?, variance?);
    // y = factor · x + shift
    let lines: Vec<(f64, f64)> = (0..channels)
        .map(|c| {
            let factor = scale[c] / (variance[c] + epsilon).sqrt();
            (factor, bias[c] - mean[c] * factor)
        })
        .collect();
    let element = x.element();
    let y = if let Storage::F64(_) = x.storage() {
        let mut values = x.take::<f64>()?;
        for (i, plane) in values.chunks_mut(plane.max(1)).enumerate() {
            let (factor, shift) = lines[i % channels];
            plane.iter_mut().for_each(|v| *v = *v * factor + shift);
        }
        Array::new(&dims, values)
    } else {
        if !matches!(x.storage(), Storage::F32(_)) {
            x = Array::new(&dims, single(&x)?.into_owned());
        }
        let mut values = x.take::<f32>()?;
        let lines: Vec<(f32, f32)> = lines.iter().map(|(f, s)| (*f as f32, *s as f32)).collect();
        let change = |(i, plane): (usize, &mut [f32])| {
            let (factor, shift) = lines[i % channels];
            plane.iter_mut().for_each(|v| *v = *v * factor + shift);
        };
        if call.threads > 1 && values.len() > 1 << 16 {
            values.par_chunks_mut(plane.max(1)).enumerate().for_each(change);
        } else {
            values.chunks_mut(plane.max(1)).enumerate().for_each(change);
        }
        rounded(element, &dims, values)
    };
    let Some(running) = running else { return one(y) };
    let mut outputs: Outputs = smallvec![Some(y.into())];
    for (i, values) in running.into_iter().enumerate() {
        let like = call.input(3 + i)?;
        outputs.push(Some(match like.storage() {
            Storage::F64(_) => Array::new(&[channels], values).into(),
            _ => rounded(like.element(), &[channels], values.iter().map(|v| *v as f32).collect()).into(),
        }));
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
    match array.storage() {
        Storage::F64(v) => Ok(v.to_vec()),
        _ => Ok(single(array)?.iter().map(|v| f64::from(*v)).collect()),
    }
}

/// Mean and population variance of each channel.
fn statistics(x: &Array, channels: usize, plane: usize) -> Result<(Vec<f64>, Vec<f64>), Fault> {
    let values = match x.storage() {
        Storage::F64(v) => v.to_vec(),
        _ => single(x)?.iter().map(|v| f64::from(*v)).collect(),
    };
    let count = (values.len() / channels.max(1)) as f64;
    let mut mean = vec![0.0; channels];
    for (i, plane) in values.chunks(plane.max(1)).enumerate() {
        mean[i % channels] += plane.iter().sum::<f64>() / count;
    }
    let mut variance = vec![0.0; channels];
    for (i, plane) in values.chunks(plane.max(1)).enumerate() {
        let mean = mean[i % channels];
        variance[i % channels] += plane.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / count;
    }
    Ok((mean, variance))
}

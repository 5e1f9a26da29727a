//! Normalizations along one axis: LpNormalization, LRN.

use super::super::real::{Real, in_real};
use crate::engine::Fault;
use crate::engine::embedded::call::{Call, Outputs, one};

/// LpNormalization for p = 1 and 2; where the norm is 0 the result is 0.
pub fn lp_normalization(call: &mut Call) -> Result<Outputs, Fault> {
    in_real!(call, 0, lp)
}

fn lp<T: Real>(call: &mut Call) -> Result<Outputs, Fault> {
    let p = call.attributes.int("p", 2)?;
    if p != 1 && p != 2 {
        return Err(Fault::Invalid(format!("p={p} is neither 1 nor 2")));
    }
    let x = call.take(0)?;
    let (element, dims) = (x.element(), x.dims().to_vec());
    let axis = call.axis(call.attributes.int("axis", -1)?, dims.len())?;
    let inner = dims[axis + 1..].iter().product::<usize>();
    let mut values = T::take_from(x)?;
    let mut norms = vec![0.0; inner];
    for block in values.chunks_mut((dims[axis] * inner).max(1)) {
        norms.fill(0.0);
        for line in block.chunks(inner) {
            for (norm, v) in norms.iter_mut().zip(line) {
                *norm += if p == 1 { v.wide().abs() } else { v.wide() * v.wide() };
            }
        }
        if p == 2 {
            norms.iter_mut().for_each(|norm| *norm = norm.sqrt());
        }
        for line in block.chunks_mut(inner) {
            for (norm, v) in norms.iter().zip(line) {
                *v = if *norm == 0.0 { T::default() } else { T::from_f64(v.wide() / norm) };
            }
        }
    }
    one(T::array(element, &dims, values))
}

/// LRN: over `size` neighbouring channels, of which the larger half of an even number comes after.
pub fn local_response_normalization(call: &mut Call) -> Result<Outputs, Fault> {
    in_real!(call, 0, local_response)
}

fn local_response<T: Real>(call: &mut Call) -> Result<Outputs, Fault> {
    let alpha = f64::from(call.attributes.float("alpha", 1e-4)?);
    let beta = f64::from(call.attributes.float("beta", 0.75)?);
    let bias = f64::from(call.attributes.float("bias", 1.0)?);
    let size = match call.attributes.optional_int("size")?.map(usize::try_from) {
        Some(Ok(size)) if size > 0 => size,
        _ => return Err(Fault::Invalid("size is not positive".into())),
    };
    let x = call.input(0)?;
    let [_, channels, space @ ..] = x.dims() else {
        return Err(Fault::Invalid(format!("an input of shape {:?} has no channels", x.dims())));
    };
    let plane = space.iter().product::<usize>();
    let values = T::load(x)?;
    let mut out = call.vec::<T>(x.dims())?;
    let (before, after) = ((size - 1) / 2, size / 2);
    let mut sums = vec![0.0; plane];
    for image in values.chunks((channels * plane).max(1)) {
        for c in 0..*channels {
            let (from, to) = (c.saturating_sub(before), c.saturating_add(after + 1).min(*channels));
            sums.fill(0.0);
            for line in image[from * plane..to * plane].chunks(plane) {
                sums.iter_mut().zip(line).for_each(|(sum, v)| *sum += v.wide() * v.wide());
            }
            let line = &image[c * plane..(c + 1) * plane];
            let scaled = line.iter().zip(&sums);
            out.extend(
                scaled.map(|(v, sum)| T::from_f64(v.wide() / (bias + alpha / size as f64 * sum).powf(beta))),
            );
        }
    }
    one(T::array(x.element(), x.dims(), out))
}

//! Operators with chance in them. The same seed gives the same numbers; other engines give others.

use super::cast;
use crate::engine::array::{Array, Element};
use crate::engine::embedded::call::{Call, Outputs, one};
use crate::engine::fault::Fault;
use crate::ir::ElementType;
use smallvec::smallvec;

/// A stream of numbers without visible order (SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number
/// generators", 2014).
struct Stream(u64);

impl Stream {
    fn of(call: &Call) -> Result<Stream, Fault> {
        Ok(Stream(match call.attributes.get("seed") {
            None => call.seed,
            Some(_) => u64::from(call.attributes.float("seed", 0.0)?.to_bits()),
        }))
    }

    /// From 0 up to, but not including, 1.
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Of the standard normal distribution (Box and Muller, 1958).
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// Numbers of a shape, of the type that `dtype` names, or another one.
fn drawn(
    call: &Call,
    dims: &[usize],
    otherwise: ElementType,
    mut draw: impl FnMut(&mut Stream) -> f64,
) -> Result<Outputs, Fault> {
    let element = call.attributes.element("dtype")?.unwrap_or(otherwise);
    let mut stream = Stream::of(call)?;
    let mut numbers = call.vec::<f64>(dims)?;
    let count: usize = dims.iter().product();
    numbers.extend((0..count).map(|_| draw(&mut stream)));
    one(cast::to(call, &Array::new(dims, numbers), element)?)
}

/// The shape that an attribute gives.
fn shape(call: &Call) -> Result<Vec<usize>, Fault> {
    let shape = call.attributes.ints("shape")?.unwrap_or(&[]);
    let dims = shape.iter().map(|d| usize::try_from(*d).ok()).collect::<Option<Vec<_>>>();
    dims.ok_or_else(|| Fault::Invalid(format!("shape {shape:?} has a negative dimension")))
}

fn normal(call: &Call, dims: &[usize], element: ElementType) -> Result<Outputs, Fault> {
    let mean = f64::from(call.attributes.float("mean", 0.0)?);
    let scale = f64::from(call.attributes.float("scale", 1.0)?);
    drawn(call, dims, element, |stream| mean + scale * stream.normal())
}

fn uniform(call: &Call, dims: &[usize], element: ElementType) -> Result<Outputs, Fault> {
    let low = f64::from(call.attributes.float("low", 0.0)?);
    let high = f64::from(call.attributes.float("high", 1.0)?);
    drawn(call, dims, element, |stream| low + (high - low) * stream.uniform())
}

/// RandomNormal.
pub fn random_normal(call: &mut Call) -> Result<Outputs, Fault> {
    normal(call, &shape(call)?, ElementType::FLOAT)
}

/// RandomNormalLike.
pub fn random_normal_like(call: &mut Call) -> Result<Outputs, Fault> {
    let like = call.input(0)?;
    normal(call, like.dims(), like.element())
}

/// RandomUniform.
pub fn random_uniform(call: &mut Call) -> Result<Outputs, Fault> {
    uniform(call, &shape(call)?, ElementType::FLOAT)
}

/// RandomUniformLike.
pub fn random_uniform_like(call: &mut Call) -> Result<Outputs, Fault> {
    let like = call.input(0)?;
    uniform(call, like.dims(), like.element())
}

/// Bernoulli.
pub fn bernoulli(call: &mut Call) -> Result<Outputs, Fault> {
    let array = call.input(0)?;
    let Some(chances) = array.approximate() else { return call.unsupported(array.element()) };
    if let Some(bad) = chances.iter().find(|p| !(0.0..=1.0).contains(*p)) {
        return Err(Fault::Invalid(format!("{bad} is no probability")));
    }
    let mut chances = chances.into_iter();
    drawn(call, array.dims(), array.element(), |stream| {
        f64::from(u8::from(stream.uniform() < chances.next().unwrap_or(0.0)))
    })
}

/// Multinomial: classes drawn by their logarithmic weights.
pub fn multinomial(call: &mut Call) -> Result<Outputs, Fault> {
    let array = call.input(0)?;
    let [batch, classes] = *array.dims() else {
        return Err(Fault::Invalid(format!("its input has shape {:?}, not [batch, classes]", array.dims())));
    };
    let Some(weights) = array.approximate() else { return call.unsupported(array.element()) };
    let samples = call.attributes.int("sample_size", 1)?;
    let samples = usize::try_from(samples).map_err(|_| Fault::Invalid(format!("sample_size={samples}")))?;
    if classes == 0 && batch * samples > 0 {
        return Err(Fault::Invalid("there is no class to draw".into()));
    }
    let mut place = 0;
    let mut sums: Vec<f64> = Vec::new();
    drawn(call, &[batch, samples], ElementType::INT32, |stream| {
        if place % samples == 0 {
            let row = &weights[place / samples * classes..][..classes];
            let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            sums.clear();
            let mut total = 0.0;
            sums.extend(row.iter().map(|w| {
                total += (w - most).exp();
                total
            }));
        }
        place += 1;
        let at = stream.uniform() * sums.last().copied().unwrap_or(0.0);
        sums.partition_point(|sum| *sum <= at).min(classes - 1) as f64
    })
}

/// Dropout: outside training its input, with a mask of ones. In training it needs a seed of its own: what it drops
/// otherwise is left to chance.
pub fn dropout(call: &mut Call) -> Result<Outputs, Fault> {
    let array = call.take(0)?;
    let (ratio, training) = match call.opset {
        // Training was the default of the first versions.
        ..7 => (call.attributes.float("ratio", 0.5)?, call.attributes.int("is_test", 0)? == 0),
        7..12 => (0.0, false),
        _ => {
            let ratio = call.optional(1)?.map(Array::approximate);
            let ratio = ratio.flatten().and_then(|r| r.first().copied()).unwrap_or(0.5) as f32;
            (ratio, call.optional(2)?.map_or(Ok(false), Array::truth)?)
        }
    };
    if !(0.0..1.0).contains(&ratio) && training {
        return Err(Fault::Invalid(format!("ratio={ratio} is not from 0 up to 1")));
    }
    let dims = array.dims();
    let kept = if training && ratio > 0.0 {
        if call.attributes.get("seed").is_none() {
            return call.unsupported("training without a seed");
        }
        let mut stream = Stream::of(call)?;
        let mut kept = call.vec::<u8>(dims)?;
        kept.extend((0..array.len()).map(|_| u8::from(stream.uniform() >= f64::from(ratio))));
        kept
    } else if call.wants(1) {
        let mut kept = call.vec::<u8>(dims)?;
        kept.resize(array.len(), 1);
        kept
    } else {
        return one(array);
    };
    let mask = Array::of(ElementType::BOOL, dims, u8::store(kept));
    // The mask had the type of the data before it was bool.
    let mask_element = if call.opset < 10 { array.element() } else { ElementType::BOOL };
    let output = match training && ratio > 0.0 {
        true => {
            let factor = cast::to(call, &mask, array.element())?;
            let scale = cast::to(call, &Array::scalar(1.0 / (1.0 - ratio)), array.element())?;
            super::arithmetic::scaled(call, array, factor, scale)?
        }
        false => array,
    };
    let mask = cast::to(call, &mask, mask_element)?;
    Ok(smallvec![Some(output.into()), Some(mask.into())])
}

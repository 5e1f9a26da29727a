//! Gelu in its forms, and sums with a bias.

use crate::engine::array::Array;
use crate::engine::embedded::call::{Call, Outputs, one};
use crate::engine::embedded::kernels::real::{Real, in_real};
use crate::engine::embedded::kernels::standard;
use crate::engine::fault::Fault;

/// Gelu (com.microsoft 1): the exact form.
pub fn gelu(call: &mut Call) -> Result<Outputs, Fault> {
    call.opset = 20;
    match standard("Gelu") {
        Some(kernel) => (kernel.run)(call),
        None => call.unsupported("any type"),
    }
}

/// BiasGelu (com.microsoft 1): Gelu of a sum with a vector.
pub fn bias_gelu(call: &mut Call) -> Result<Outputs, Fault> {
    let sum = in_real!(call, 0, summed)?;
    call.inputs = smallvec::smallvec![Some(sum.into())];
    gelu(call)
}

/// The first input plus the second along the last axis, where there is a second.
fn summed<T: Real>(call: &mut Call) -> Result<Array, Fault> {
    let x = call.take(0)?;
    let (element, dims) = (x.element(), x.dims().to_vec());
    let mut values = T::take_from(x)?;
    if let Some(bias) = call.optional(1)? {
        let bias = T::load(bias)?;
        if dims.last() != Some(&bias.len()) {
            return Err(Fault::Invalid(format!("a bias of {} elements does not fit {dims:?}", bias.len())));
        }
        for row in values.chunks_mut(bias.len().max(1)) {
            row.iter_mut().zip(bias.iter()).for_each(|(v, b)| *v += *b);
        }
    }
    Ok(T::array(element, &dims, values))
}

/// FastGelu (com.microsoft 1): the form with tanh, of a sum with an optional vector.
pub fn fast_gelu(call: &mut Call) -> Result<Outputs, Fault> {
    fn run<T: Real>(call: &mut Call) -> Result<Outputs, Fault> {
        let half = T::from_f64(0.5);
        let (linear, cubic) = (T::from_f64(0.797_884_560_802_865_4), T::from_f64(0.035_677_408_136_300_125));
        let unit = T::from_f64(1.0);
        let f = |x: T| half * x * (unit + (x * (linear + cubic * x * x)).tanh());
        mapped(summed::<T>(call)?, f)
    }
    in_real!(call, 0, run)
}

/// QuickGelu (com.microsoft 1): x · sigmoid(alpha · x).
pub fn quick_gelu(call: &mut Call) -> Result<Outputs, Fault> {
    fn run<T: Real>(call: &mut Call) -> Result<Outputs, Fault> {
        let alpha = T::from_f64(f64::from(call.attributes.float("alpha", 1.702)?));
        let unit = T::from_f64(1.0);
        mapped(call.take(0)?, |x: T| x / (unit + (-(alpha * x)).exp()))
    }
    in_real!(call, 0, run)
}

/// A function of every element.
pub fn mapped<T: Real>(x: Array, f: impl Fn(T) -> T) -> Result<Outputs, Fault> {
    let (element, dims) = (x.element(), x.dims().to_vec());
    let mut values = T::take_from(x)?;
    values.iter_mut().for_each(|v| *v = f(*v));
    one(T::array(element, &dims, values))
}

/// BiasAdd (com.microsoft 1): a sum with a vector and with a tensor of the same shape.
pub fn bias_add(call: &mut Call) -> Result<Outputs, Fault> {
    fn run<T: Real>(call: &mut Call) -> Result<Outputs, Fault> {
        let sum = summed::<T>(call)?;
        let skip = T::load(call.input(2)?)?;
        if skip.len() != sum.len() {
            return Err(Fault::Invalid(format!("{} elements cannot be added to {}", skip.len(), sum.len())));
        }
        let (element, dims) = (sum.element(), sum.dims().to_vec());
        let mut values = T::take_from(sum)?;
        values.iter_mut().zip(skip.iter()).for_each(|(v, s)| *v += *s);
        one(T::array(element, &dims, values))
    }
    in_real!(call, 0, run)
}

/// BiasSoftmax (com.microsoft 1): softmax over all axes from `axis` on, of a sum that broadcasts the bias.
pub fn bias_softmax(call: &mut Call) -> Result<Outputs, Fault> {
    fn run<T: Real>(call: &mut Call) -> Result<Outputs, Fault> {
        let (x, bias) = (call.take(0)?, call.input(1)?);
        let axis = call.axis(call.attributes.int("axis", 1)?, x.rank())?;
        let fits =
            bias.rank() == x.rank() && bias.dims().iter().zip(x.dims()).all(|(b, d)| *b == 1 || b == d);
        if !fits {
            let (bias, x) = (bias.dims(), x.dims());
            return call.unsupported(format_args!("a bias of shape {bias:?} on {x:?}"));
        }
        let (element, dims) = (x.element(), x.dims().to_vec());
        let length: usize = dims[axis..].iter().product();
        let mut strides = vec![0; dims.len()];
        let mut stride = 1;
        for (i, d) in bias.dims().iter().enumerate().rev() {
            strides[i] = if *d == 1 { 0 } else { stride };
            stride *= d;
        }
        let bias = T::load(bias)?;
        let mut values = T::take_from(x)?;
        for (i, v) in values.iter_mut().enumerate() {
            let (mut rest, mut at) = (i, 0);
            for (d, s) in dims.iter().zip(&strides).rev() {
                at += rest % d * s;
                rest /= d;
            }
            *v += bias[at];
        }
        values.chunks_mut(length.max(1)).for_each(softmax);
        one(T::array(element, &dims, values))
    }
    in_real!(call, 0, run)
}

/// Softmax of a row. A row that is -∞ throughout becomes NaN, as its quotient is.
pub fn softmax<T: Real>(row: &mut [T]) {
    let most = row.iter().fold(T::NEG_INFINITY, |most, v| if *v > most { *v } else { most });
    let mut sum = T::default();
    for v in row.iter_mut() {
        *v = (*v - most).exp();
        sum += *v;
    }
    row.iter_mut().for_each(|v| *v = *v / sum);
}

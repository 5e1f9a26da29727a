//! Products and convolutions with what ONNX Runtime fuses into them: transposes, factors, activations.

use crate::engine::array::{Array, Value};
use crate::engine::embedded::call::{Call, Kernel, Outputs, one};
use crate::engine::embedded::kernels::quantized::shapes::Shapes;
use crate::engine::embedded::kernels::real::{Real, in_real, is_double};
use crate::engine::embedded::kernels::standard;
use crate::engine::embedded::products::Matrix;
use crate::engine::fault::Fault;
use smallvec::smallvec;
use std::borrow::Cow;

/// A function that is applied to every element of a result.
enum Activation<T> {
    None,
    Relu,
    Tanh,
    Sigmoid,
    LeakyRelu(T),
    Clip(T, T),
    HardSigmoid(T, T),
}

impl<T: Real> Activation<T> {
    /// From its name and its parameters, of which those left out are ONNX's defaults.
    fn of(call: &Call, name: &str, parameters: &[f32]) -> Result<Activation<T>, Fault> {
        let parameter =
            |at: usize, default: f32| T::from_f64(f64::from(parameters.get(at).copied().unwrap_or(default)));
        Ok(match name {
            "" => Activation::None,
            "Relu" => Activation::Relu,
            "Tanh" => Activation::Tanh,
            "Sigmoid" => Activation::Sigmoid,
            "LeakyRelu" => Activation::LeakyRelu(parameter(0, 0.01)),
            "Clip" => Activation::Clip(parameter(0, f32::MIN), parameter(1, f32::MAX)),
            "HardSigmoid" => Activation::HardSigmoid(parameter(0, 0.2), parameter(1, 0.5)),
            other => return call.unsupported(format_args!("the activation {other}")),
        })
    }

    fn apply(&self, x: T) -> T {
        let (zero, unit) = (T::default(), T::from_f64(1.0));
        // Comparisons are such that NaN stays.
        let within = |x: T, low: T, high: T| {
            let x = if x < low { low } else { x };
            if x > high { high } else { x }
        };
        match *self {
            Activation::None => x,
            Activation::Relu => {
                if x < zero {
                    zero
                } else {
                    x
                }
            }
            Activation::Tanh => x.tanh(),
            Activation::Sigmoid => unit / (unit + (-x).exp()),
            Activation::LeakyRelu(alpha) => {
                if x < zero {
                    alpha * x
                } else {
                    x
                }
            }
            Activation::Clip(low, high) => within(x, low, high),
            Activation::HardSigmoid(alpha, beta) => within(alpha * x + beta, zero, unit),
        }
    }
}

/// Runs the standard's operator at an opset on the node's own inputs and attributes.
fn inner(call: &mut Call, name: &'static str, opset: i64) -> Result<Array, Fault> {
    let Some(Kernel { run, .. }) = standard(name) else { return call.unsupported(name) };
    call.opset = opset;
    let mut outputs = run(call)?;
    match outputs.first_mut().and_then(Option::take) {
        Some(value) => value.into_array(),
        None => Err(Fault::Invalid(format!("{name} gave nothing"))),
    }
}

fn activated(call: &Call, result: Array, parameters: &[f32], added: Option<Array>) -> Result<Outputs, Fault> {
    fn run<T: Real>(
        call: &Call,
        result: Array,
        parameters: &[f32],
        added: Option<Array>,
    ) -> Result<Outputs, Fault> {
        let activation = Activation::<T>::of(call, call.attributes.text("activation", "")?, parameters)?;
        if matches!(activation, Activation::None) && added.is_none() {
            return one(result);
        }
        let (element, dims) = (result.element(), result.dims().to_vec());
        let mut values = T::take_from(result)?;
        if let Some(added) = added {
            if added.dims() != dims {
                return Err(Fault::Invalid(format!("shape {:?} cannot be added to {dims:?}", added.dims())));
            }
            values.iter_mut().zip(T::load(&added)?.iter()).for_each(|(v, a)| *v += *a);
        }
        values.iter_mut().for_each(|v| *v = activation.apply(*v));
        one(T::array(element, &dims, values))
    }
    match is_double(&result) {
        true => run::<f64>(call, result, parameters, added),
        false => run::<f32>(call, result, parameters, added),
    }
}

/// FusedConv (com.microsoft 1): Conv, a sum with the fourth input, an activation.
pub fn conv(call: &mut Call) -> Result<Outputs, Fault> {
    let added = if call.has(3) { Some(call.take(3)?) } else { None };
    call.inputs.truncate(3);
    let result = inner(call, "Conv", 22)?;
    let parameters = call.attributes.floats("activation_params")?.unwrap_or(&[]);
    activated(call, result, parameters, added)
}

/// FusedGemm (com.microsoft 1): Gemm and an activation.
pub fn gemm(call: &mut Call) -> Result<Outputs, Fault> {
    let result = inner(call, "Gemm", 13)?;
    let mut parameters = Vec::new();
    for name in ["activation_alpha", "activation_beta", "activation_gamma"] {
        match call.attributes.get(name) {
            Some(_) => parameters.push(call.attributes.float(name, 0.0)?),
            None => break,
        }
    }
    activated(call, result, &parameters, None)
}

/// An operand of FusedMatMul.
struct Operand<'a, T: Real> {
    values: Cow<'a, [T]>,
    /// Dimensions after all exchanges.
    dims: Vec<usize>,
    /// True when the last two axes of the elements are still to be exchanged.
    turned: bool,
}

impl<'a, T: Real> Operand<'a, T> {
    fn of(call: &'a Call, index: usize, batch: &str, last: &str) -> Result<Operand<'a, T>, Fault> {
        let array = call.input(index)?;
        let (mut values, mut dims) = (T::load(array)?, array.dims().to_vec());
        let rank = dims.len();
        // The first axis goes behind those of the batch: (first, batch, last) becomes (batch, first, last).
        if call.attributes.int(batch, 0)? != 0 && rank > 2 {
            let (first, width) = (dims[0], dims[rank - 1]);
            let between: usize = dims[1..rank - 1].iter().product();
            let mut moved = call.vec::<T>(&dims)?;
            for (m, f) in (0..between).flat_map(|m| (0..first).map(move |f| (m, f))) {
                moved.extend_from_slice(&values[(f * between + m) * width..][..width]);
            }
            dims[..rank - 1].rotate_left(1);
            values = Cow::Owned(moved);
        }
        let turned = call.attributes.int(last, 0)? != 0 && rank > 1;
        if turned {
            dims.swap(rank - 2, rank - 1);
        }
        Ok(Operand { values, dims, turned })
    }
}

/// FusedMatMul (com.microsoft 1): MatMul of operands whose first axis may be moved behind the batch and whose last two
/// may be exchanged, times a factor.
pub fn matmul(call: &mut Call) -> Result<Outputs, Fault> {
    fn run<T: Real>(call: &mut Call) -> Result<Outputs, Fault> {
        let (a, b) = (
            Operand::<T>::of(call, 0, "transBatchA", "transA")?,
            Operand::of(call, 1, "transBatchB", "transB")?,
        );
        let element = call.input(0)?.element();
        let shapes = Shapes::of(&a.dims, &b.dims)?;
        let Shapes { rows, depth, columns, .. } = shapes;
        let alpha = T::from_f64(f64::from(call.attributes.float("alpha", 1.0)?));
        let mut out = call.vec::<T>(&shapes.dims)?;
        let matrix = |data, turned: bool, rows: usize, columns: usize| match turned {
            true => Matrix::new(data, columns, rows).transposed(),
            false => Matrix::new(data, rows, columns),
        };
        for i in 0..shapes.batch.iter().product() {
            let l = shapes.matrix(&shapes.left_batch, i) * rows * depth;
            let r = shapes.matrix(&shapes.right_batch, i) * depth * columns;
            let left = matrix(&a.values[l..], a.turned, rows, depth);
            T::product(&mut out, left, matrix(&b.values[r..], b.turned, depth, columns))?;
        }
        if alpha != T::from_f64(1.0) {
            out.iter_mut().for_each(|v| *v *= alpha);
        }
        one(T::array(element, &shapes.dims, out))
    }
    in_real!(call, 0, run)
}

/// NhwcConv (com.microsoft 1): Conv of data whose channels are last.
pub fn nhwc_conv(call: &mut Call) -> Result<Outputs, Fault> {
    fn moved<T: Real>(array: Array, to_front: bool) -> Result<Array, Fault> {
        let (element, dims) = (array.element(), array.dims().to_vec());
        let (&[batch, first, ..], Some(&last)) = (dims.as_slice(), dims.last()) else {
            return Err(Fault::Invalid(format!("shape {dims:?} has no channels")));
        };
        let channels = if to_front { last } else { first };
        let plane = array.len().checked_div(batch * channels).unwrap_or(0);
        let values = T::load(&array)?;
        let (outer, inner) = if to_front { (channels, plane) } else { (plane, channels) };
        let mut out = Vec::with_capacity(values.len());
        for image in values.chunks((outer * inner).max(1)) {
            for o in 0..outer {
                out.extend((0..inner).map(|i| image[i * outer + o]));
            }
        }
        let mut to: Vec<usize> = dims.clone();
        match to_front {
            true => to[1..].rotate_right(1),
            false => to[1..].rotate_left(1),
        }
        Ok(T::array(element, &to, out))
    }
    fn run<T: Real>(call: &mut Call) -> Result<Outputs, Fault> {
        let x = call.take(0)?;
        call.elements(x.dims(), size_of::<T>())?;
        call.inputs[0] = Some(Value::Array(moved::<T>(x, true)?));
        let result = inner(call, "Conv", 22)?;
        Ok(smallvec![Some(Value::Array(moved::<T>(result, false)?))])
    }
    in_real!(call, 0, run)
}

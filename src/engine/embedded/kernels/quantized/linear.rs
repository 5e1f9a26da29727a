//! QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear.

use super::granularity::{Granularity, Parameters};
use super::real::{Real, narrowed, reals};
use crate::engine::array::{Array, Element, Storage, Value};
use crate::engine::embedded::call::{Call, Outputs, one};
use crate::engine::fault::Fault;
use crate::engine::narrow;
use crate::ir::ElementType;
use half::{bf16, f16};
use smallvec::smallvec;
use std::borrow::Cow;

/// QuantizeLinear (10-25, and com.microsoft's): one scale, one an index of `axis` since 13, one a block since 21; the
/// type of the scale, or `precision` since 23, is the precision of the division.
pub fn quantize_linear(call: &mut Call) -> Result<Outputs, Fault> {
    let (data, scale, zero_point) = (call.input(0)?, call.input(1)?, call.optional(2)?);
    let asked = call.attributes.element("output_dtype")?.filter(|e| *e != ElementType::UNDEFINED);
    let target = match (zero_point.map(Array::element), asked) {
        (Some(z), Some(asked)) if z != asked => {
            return Err(Fault::Invalid(format!("output_dtype is {asked}, but the zero point is {z}")));
        }
        (Some(z), _) => z,
        (None, asked) => asked.unwrap_or(ElementType::UINT8),
    };
    let precision = call.attributes.element("precision")?.filter(|e| *e != ElementType::UNDEFINED);
    let precision = match precision.unwrap_or(scale.element()) {
        ElementType::FLOAT8E8M0 => ElementType::FLOAT,
        other => other,
    };
    let division = Division { data, scale, zero_point, target, precision };
    let quantized = match precision {
        ElementType::FLOAT if !call.wide => division.quantized::<f32>(call, |q| q),
        ElementType::FLOAT16 if !call.wide => {
            // A quotient of two float16 is the same rounded through float32 (24 bits are more than 2 · 11 + 1).
            let short = |v: f32| f16::from_f32(v).to_f32();
            division.quantized::<f32>(call, short)
        }
        ElementType::BFLOAT16 if !call.wide => {
            let short = |v: f32| bf16::from_f32(v).to_f32();
            division.quantized::<f32>(call, short)
        }
        ElementType::FLOAT
        | ElementType::FLOAT16
        | ElementType::BFLOAT16
        | ElementType::DOUBLE
        | ElementType::INT32 => division.quantized::<f64>(call, |q| q),
        other => call.unsupported(format_args!("division in {other}")),
    };
    one(quantized?)
}

struct Division<'a> {
    data: &'a Array,
    scale: &'a Array,
    zero_point: Option<&'a Array>,
    target: ElementType,
    precision: ElementType,
}

impl Division<'_> {
    /// Quotients are brought to the precision by `short`, which is also how operands of another type come to it.
    fn quantized<R: Real>(&self, call: &Call, short: impl Fn(R) -> R + Copy) -> Result<Array, Fault> {
        let Division { data, scale, zero_point, target, precision } = *self;
        let granularity = Granularity::of(call, data, scale)?;
        let data_values = in_precision::<R>(data, precision, short)?;
        let scales = in_precision::<R>(scale, precision, short)?;
        let zeros = zero_points(zero_point, scale, granularity.count)?;
        let dims = data.dims();
        macro_rules! integers {
        ($t:ty, $low:expr, $high:expr) => {{
            let (low, high): (i32, i32) = ($low, $high);
            // The zero point is added after rounding: the clamp is on the quotient, so that no sum is inexact.
            let level = |x: R, scale: R, zero: i32| {
                let q = short(x / scale).nearest(R::int(low - zero), R::int(high - zero));
                (q + zero) as $t
            };
            let mut out = call.vec::<$t>(dims)?;
            let zeros: Vec<i32> = zeros.iter().map(|z| *z as i32).collect();
            granularity.runs(|range, parameters| {
                let x = &data_values[range];
                match parameters {
                    Parameters::One(at) => {
                        let (scale, zero) = (scales[at], zeros[at]);
                        out.extend(x.iter().map(|x| level(*x, scale, zero)));
                    }
                    Parameters::From(at) => {
                        let parameters = scales[at..].iter().zip(&zeros[at..]);
                        out.extend(x.iter().zip(parameters).map(|(x, (s, z))| level(*x, *s, *z)));
                    }
                }
            });
            <$t>::store(out)
        }};
    }
        let storage = match target {
            ElementType::UINT8 => integers!(u8, 0, 255),
            ElementType::INT8 => integers!(i8, -128, 127),
            ElementType::UINT16 => integers!(u16, 0, 65535),
            ElementType::INT16 => integers!(i16, -32768, 32767),
            ElementType::UINT4 => integers!(u8, 0, 15),
            ElementType::INT4 => masked(integers!(u8, -8, 7), 0x0f),
            ElementType::UINT2 => integers!(u8, 0, 3),
            ElementType::INT2 => masked(integers!(u8, -2, 1), 0x03),
            _ => {
                let saturate = call.attributes.int("saturate", 1)? != 0;
                if narrow::nearest(target, 0.0, saturate).is_none() {
                    return call.unsupported(format_args!("quantization to {target}"));
                }
                // float8 has no use for a zero point, and the standard's formula no unambiguous rounding of the sum.
                if target != ElementType::FLOAT4E2M1 && zeros.iter().any(|z| *z != 0.0) {
                    return call.unsupported(format_args!("a zero point of {target} other than 0"));
                }
                let mut out = call.vec::<u8>(dims)?;
                let mut push = |x: R, scale: R, zero: f64| {
                    let number = short(x / scale).wide() + zero;
                    out.push(narrow::nearest(target, number, saturate).unwrap_or_default());
                };
                granularity.runs(|range, parameters| {
                    for (i, x) in data_values[range].iter().enumerate() {
                        let at = match parameters {
                            Parameters::One(at) => at,
                            Parameters::From(at) => at + i,
                        };
                        push(*x, scales[at], zeros[at]);
                    }
                });
                u8::store(out)
            }
        };
        Ok(Array::of(target, dims, storage))
    }
}

/// Numbers brought to the precision of the division.
fn in_precision<R: Real>(
    array: &Array,
    precision: ElementType,
    short: impl Fn(R) -> R,
) -> Result<Cow<'_, [R]>, Fault> {
    let mut values = reals::<R>(array)?;
    if array.element() != precision && R::TYPE == ElementType::FLOAT {
        values.to_mut().iter_mut().for_each(|v| *v = short(*v));
    }
    Ok(values)
}

/// The low bits of a signed integer are its pattern.
fn masked(storage: Storage, mask: u8) -> Storage {
    match storage {
        Storage::U8(mut v) => {
            std::sync::Arc::make_mut(&mut v).iter_mut().for_each(|v| *v &= mask);
            Storage::U8(v)
        }
        other => other,
    }
}

/// Zero points as numbers, as many as there are scales.
fn zero_points(array: Option<&Array>, scale: &Array, count: usize) -> Result<Vec<f64>, Fault> {
    let Some(array) = array else { return Ok(vec![0.0; count]) };
    if array.len() != scale.len() {
        return Err(Fault::Invalid(format!(
            "the zero point has shape {:?} where the scale has {:?}",
            array.dims(),
            scale.dims()
        )));
    }
    array.approximate().ok_or_else(|| Fault::element(array.element()))
}

/// DequantizeLinear (10-25, and com.microsoft's): like QuantizeLinear; `output_dtype` since 23. The difference is exact,
/// the product is in float32 and rounded once to the type of the output.
pub fn dequantize_linear(call: &mut Call) -> Result<Outputs, Fault> {
    let (data, scale, zero_point) = (call.input(0)?, call.input(1)?, call.optional(2)?);
    if let Some(z) = zero_point
        && z.element() != data.element()
    {
        return Err(Fault::Invalid(format!(
            "the data is {}, its zero point {}",
            data.element(),
            z.element()
        )));
    }
    let asked = call.attributes.element("output_dtype")?.filter(|e| *e != ElementType::UNDEFINED);
    let target = match asked.unwrap_or(scale.element()) {
        ElementType::FLOAT8E8M0 => ElementType::FLOAT,
        other => other,
    };
    one(if call.wide || target == ElementType::DOUBLE || scale.element() == ElementType::DOUBLE {
        dequantized::<f64>(call, data, scale, zero_point, target)?
    } else {
        dequantized::<f32>(call, data, scale, zero_point, target)?
    })
}

fn dequantized<R: Real>(
    call: &Call,
    data: &Array,
    scale: &Array,
    zero_point: Option<&Array>,
    target: ElementType,
) -> Result<Array, Fault> {
    let granularity = Granularity::of(call, data, scale)?;
    let scales = reals::<R>(scale)?;
    let zeros = zero_points(zero_point, scale, granularity.count)?;
    let zeros: Vec<R> = zeros.into_iter().map(R::of).collect();
    let mut out = call.vec::<R>(data.dims())?;
    match data.storage() {
        Storage::U8(v) if data.element() == ElementType::UINT8 => {
            product(v, |v| R::int(i32::from(v)), &granularity, &scales, &zeros, &mut out)
        }
        Storage::U8(v) if data.element() != ElementType::BOOL => {
            let float8 = data.element().bits() == 8;
            if float8 && zeros.iter().any(|z| *z != R::of(0.0)) {
                return Err(Fault::Invalid(format!("a zero point of {} must be 0", data.element())));
            }
            let table: [R; 256] = std::array::from_fn(|p| R::of(narrow::number(data.element(), p as u8)));
            product(v, |v| table[usize::from(v)], &granularity, &scales, &zeros, &mut out)
        }
        Storage::I8(v) => product(v, |v| R::int(i32::from(v)), &granularity, &scales, &zeros, &mut out),
        Storage::U16(v) => product(v, |v| R::int(i32::from(v)), &granularity, &scales, &zeros, &mut out),
        Storage::I16(v) => product(v, |v| R::int(i32::from(v)), &granularity, &scales, &zeros, &mut out),
        Storage::I32(v) => product(v, R::int, &granularity, &scales, &zeros, &mut out),
        _ => return call.unsupported(format_args!("{} data", data.element())),
    }
    narrowed(target, data.dims(), out)
}

fn product<S: Copy, R: Real>(
    data: &[S],
    number: impl Fn(S) -> R,
    granularity: &Granularity,
    scales: &[R],
    zeros: &[R],
    out: &mut Vec<R>,
) {
    granularity.runs(|range, parameters| {
        let x = &data[range];
        match parameters {
            Parameters::One(at) => {
                let (scale, zero) = (scales[at], zeros[at]);
                out.extend(x.iter().map(|x| (number(*x) - zero) * scale));
            }
            Parameters::From(at) => {
                let parameters = scales[at..].iter().zip(&zeros[at..]);
                out.extend(x.iter().zip(parameters).map(|(x, (s, z))| (number(*x) - *z) * *s));
            }
        }
    });
}

/// Elements as uint8, with scale and zero point chosen so that the range of the elements and 0 fit.
pub fn dynamically_quantized<R: Real>(x: &[R]) -> (Vec<u8>, R, u8) {
    let zero = R::of(0.0);
    let (mut low, mut high) = (zero, zero);
    for v in x {
        low = if *v < low { *v } else { low };
        high = if *v > high { *v } else { high };
    }
    // Nothing but zeros: any scale serves, and a quotient by 0 would not.
    let scale = if high == low { R::of(1.0) } else { (high - low) / R::of(255.0) };
    let zero_point = (zero - low / scale).nearest(zero, R::of(255.0));
    let (least, most) = (R::int(-zero_point), R::int(255 - zero_point));
    let levels = x.iter().map(|v| ((*v / scale).nearest(least, most) + zero_point) as u8).collect();
    (levels, scale, zero_point as u8)
}

/// DynamicQuantizeLinear (11).
pub fn dynamic_quantize_linear(call: &mut Call) -> Result<Outputs, Fault> {
    fn outputs<R: Real>(call: &Call) -> Result<Outputs, Fault> {
        let data = call.input(0)?;
        call.elements(data.dims(), 1)?;
        let (levels, scale, zero_point) = dynamically_quantized::<R>(data.view()?);
        Ok(smallvec![
            Some(Value::Array(Array::new(data.dims(), levels))),
            Some(Value::Array(Array::scalar(scale))),
            Some(Value::Array(Array::scalar(zero_point))),
        ])
    }
    if call.wide { outputs::<f64>(call) } else { outputs::<f32>(call) }
}

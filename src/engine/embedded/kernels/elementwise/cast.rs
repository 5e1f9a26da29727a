//! Cast, CastLike, BitCast: every element type into every other.

use super::number::Half;
use super::produce::convert;
use crate::engine::array::{Array, Element, Storage};
use crate::engine::embedded::call::{Call, Outputs, one};
use crate::engine::fault::Fault;
use crate::engine::narrow;
use crate::ir::ElementType;
use bytes::Bytes;
use half::{bf16, f16};

/// What becomes of numbers that a type with few bits cannot hold.
#[derive(Clone, Copy)]
struct Rounding<'a> {
    saturate: bool,
    mode: &'a str,
}

/// Cast.
pub fn cast(call: &mut Call) -> Result<Outputs, Fault> {
    let to = match call.opset {
        // The type was a text in the first version.
        ..6 => ElementType::from_name(&call.attributes.text("to", "")?.to_lowercase()),
        _ => call.attributes.element("to")?,
    };
    let to = to.ok_or_else(|| Fault::Invalid("attribute to names no element type".into()))?;
    one(rounded_cast(call, call.input(0)?, to)?)
}

/// CastLike.
pub fn cast_like(call: &mut Call) -> Result<Outputs, Fault> {
    let to = call.input(1)?.element();
    one(rounded_cast(call, call.input(0)?, to)?)
}

fn rounded_cast(call: &Call, array: &Array, to: ElementType) -> Result<Array, Fault> {
    let rounding = Rounding {
        saturate: call.attributes.int("saturate", 1)? != 0,
        mode: call.attributes.text("round_mode", "up")?,
    };
    let to = if call.wide && to.is_float() { ElementType::DOUBLE } else { to };
    if array.element() == to {
        return Ok(array.clone());
    }
    into(call, array, to, rounding)
}

/// An array as another type, with the rounding that Cast has by default.
pub fn to(call: &Call, array: &Array, to: ElementType) -> Result<Array, Fault> {
    if array.element() == to {
        return Ok(array.clone());
    }
    into(call, array, to, Rounding { saturate: true, mode: "up" })
}

/// A number to be cast.
trait Source: Element + Copy {
    /// As float64; an integer that does not fit has a last bit that keeps what is lost from looking like a tie.
    fn wide(self) -> f64;
    /// As float32, rounded once.
    fn single(self) -> f32;
    /// Low bits of an integer; `None` for floating point.
    fn low(self) -> Option<i64>;
}

macro_rules! integer_sources {
    ($($t:ty)*) => {
        $(impl Source for $t {
            #[inline(always)]
            fn wide(self) -> f64 {
                const { assert!(size_of::<$t>() < 8) };
                self as f64
            }

            #[inline(always)]
            fn single(self) -> f32 {
                self as f32
            }

            #[inline(always)]
            fn low(self) -> Option<i64> {
                Some(self as i64)
            }
        })*
    };
}
integer_sources! { i8 i16 i32 u8 u16 u32 }

macro_rules! long_sources {
    ($($t:ty)*) => {
        $(impl Source for $t {
            fn wide(self) -> f64 {
                match self.unsigned_abs_bits() >> 53 {
                    0 => self as f64,
                    _ => ((self >> 11) | <$t>::from(self & 0x7ff != 0)) as f64 * 2048.0,
                }
            }

            #[inline(always)]
            fn single(self) -> f32 {
                self as f32
            }

            #[inline(always)]
            fn low(self) -> Option<i64> {
                Some(self as i64)
            }
        })*
    };
}

trait Magnitude {
    fn unsigned_abs_bits(self) -> u64;
}

impl Magnitude for i64 {
    fn unsigned_abs_bits(self) -> u64 {
        self.unsigned_abs()
    }
}

impl Magnitude for u64 {
    fn unsigned_abs_bits(self) -> u64 {
        self
    }
}
long_sources! { i64 u64 }

macro_rules! float_sources {
    ($($t:ty: |$x:ident| $wide:expr, $single:expr;)*) => {
        $(impl Source for $t {
            #[inline(always)]
            fn wide(self) -> f64 {
                let $x = self;
                $wide
            }

            #[inline(always)]
            fn single(self) -> f32 {
                let $x = self;
                $single
            }

            #[inline(always)]
            fn low(self) -> Option<i64> {
                None
            }
        })*
    };
}
float_sources! {
    f32: |x| f64::from(x), x;
    f64: |x| x, x as f32;
    f16: |x| x.to_f64(), x.to_f32();
    bf16: |x| x.to_f64(), x.to_f32();
}

/// A number that is cast to.
trait Target: Element + Copy {
    fn of<S: Source>(source: S) -> Self;
}

/// The whole part of a number, as x86-64 machines and so ONNX Runtime give it: out of range it is the least number.
/// The standard leaves these cases open.
#[inline(always)]
fn whole32(x: f64) -> i32 {
    if x > -2_147_483_649.0 && x < 2_147_483_648.0 { x as i32 } else { i32::MIN }
}

/// See [`whole32`].
#[inline(always)]
fn whole64(x: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&x) { x as i64 } else { i64::MIN }
}

/// See [`whole32`]; the upper half of the range is brought down and its bit set afterwards.
fn whole_unsigned64(x: f64) -> u64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    match x >= LIMIT {
        true => (whole64(x - LIMIT) as u64) ^ (1 << 63),
        false => whole64(x) as u64,
    }
}

macro_rules! targets {
    ($($t:ty: |$x:ident| $whole:expr;)*) => {
        $(impl Target for $t {
            #[inline(always)]
            fn of<S: Source>(source: S) -> Self {
                match source.low() {
                    Some(low) => low as $t,
                    None => {
                        let $x = source.wide();
                        $whole as $t
                    }
                }
            }
        })*
    };
}
targets! {
    i8: |x| whole32(x);
    i16: |x| whole32(x);
    i32: |x| whole32(x);
    i64: |x| whole64(x);
    u8: |x| whole32(x);
    u16: |x| whole32(x);
    u32: |x| whole64(x);
    u64: |x| whole_unsigned64(x);
}

impl Target for f32 {
    #[inline(always)]
    fn of<S: Source>(source: S) -> Self {
        source.single()
    }
}

impl Target for f64 {
    #[inline(always)]
    fn of<S: Source>(source: S) -> Self {
        source.wide()
    }
}

impl Target for f16 {
    fn of<S: Source>(source: S) -> Self {
        <f16 as Half>::from_f64(source.wide())
    }
}

impl Target for bf16 {
    fn of<S: Source>(source: S) -> Self {
        <bf16 as Half>::from_f64(source.wide())
    }
}

fn into(call: &Call, array: &Array, to: ElementType, rounding: Rounding) -> Result<Array, Fault> {
    let element = array.element();
    match array.storage() {
        Storage::F32(_) => from::<f32>(call, array, to, rounding),
        Storage::F64(_) => from::<f64>(call, array, to, rounding),
        Storage::F16(_) => from::<f16>(call, array, to, rounding),
        Storage::BF16(_) => from::<bf16>(call, array, to, rounding),
        Storage::I8(_) => from::<i8>(call, array, to, rounding),
        Storage::I16(_) => from::<i16>(call, array, to, rounding),
        Storage::I32(_) => from::<i32>(call, array, to, rounding),
        Storage::I64(_) => from::<i64>(call, array, to, rounding),
        Storage::U16(_) => from::<u16>(call, array, to, rounding),
        Storage::U32(_) => from::<u32>(call, array, to, rounding),
        Storage::U64(_) => from::<u64>(call, array, to, rounding),
        Storage::U8(_) => match element {
            ElementType::UINT8 | ElementType::BOOL => from::<u8>(call, array, to, rounding),
            // Every number of these types is one of float32, or of int8.
            _ if element.is_float() => {
                let numbers = convert(call, array, |x: u8| narrow::number(element, x) as f32)?;
                from::<f32>(call, &Array::new(array.dims(), numbers), to, rounding)
            }
            _ if element.is_integer() => {
                let numbers = convert(call, array, |x: u8| narrow::number(element, x) as i8)?;
                from::<i8>(call, &Array::new(array.dims(), numbers), to, rounding)
            }
            _ => call.unsupported(element),
        },
        Storage::Strings(_) => from_strings(call, array, to, rounding),
        Storage::C64(_) | Storage::C128(_) => call.unsupported(element),
    }
}

fn from<S: Source>(call: &Call, array: &Array, to: ElementType, rounding: Rounding) -> Result<Array, Fault> {
    fn plain<S: Source, T: Target>(call: &Call, array: &Array) -> Result<Storage, Fault> {
        Ok(T::store(convert(call, array, T::of::<S>)?))
    }
    let patterns = |f: &(dyn Fn(S) -> u8 + Sync)| Ok::<_, Fault>(u8::store(convert(call, array, f)?));
    let storage = match to {
        ElementType::FLOAT => plain::<S, f32>(call, array),
        ElementType::DOUBLE => plain::<S, f64>(call, array),
        ElementType::FLOAT16 => plain::<S, f16>(call, array),
        ElementType::BFLOAT16 => plain::<S, bf16>(call, array),
        ElementType::INT8 => plain::<S, i8>(call, array),
        ElementType::INT16 => plain::<S, i16>(call, array),
        ElementType::INT32 => plain::<S, i32>(call, array),
        ElementType::INT64 => plain::<S, i64>(call, array),
        ElementType::UINT8 => plain::<S, u8>(call, array),
        ElementType::UINT16 => plain::<S, u16>(call, array),
        ElementType::UINT32 => plain::<S, u32>(call, array),
        ElementType::UINT64 => plain::<S, u64>(call, array),
        // NaN is not 0.
        ElementType::BOOL => patterns(&|x| u8::from(x.wide() != 0.0)),
        ElementType::INT4 | ElementType::UINT4 => patterns(&|x| u8::of(x) & 0x0f),
        ElementType::INT2 | ElementType::UINT2 => patterns(&|x| u8::of(x) & 0x03),
        ElementType::FLOAT8E8M0 => {
            if !["up", "down", "nearest"].contains(&rounding.mode) {
                return Err(Fault::Invalid(format!("round_mode={} is not known", rounding.mode)));
            }
            patterns(&|x| power_of_two(x.single(), rounding))
        }
        ElementType::STRING => {
            // Texts are at most some twenty bytes beside their handle.
            call.elements(array.dims(), size_of::<Bytes>() + 24)?;
            let integer = |low: i64| match array.element() {
                ElementType::UINT64 => Bytes::from((low as u64).to_string()),
                _ => low.to_string().into(),
            };
            let text = |x: &S| x.low().map_or_else(|| decimal(x.wide()), integer);
            Ok(Bytes::store(array.view::<S>()?.iter().map(text).collect()))
        }
        _ if narrow::nearest(to, 0.0, true).is_some() => {
            patterns(&|x| narrow::nearest(to, x.wide(), rounding.saturate).unwrap_or(0))
        }
        _ => call.unsupported(format!("{} to {to}", array.element())),
    };
    Ok(Array::of(to, array.dims(), storage?))
}

/// The exponent alone, as float8e8m0 has it; the sign does not count (ONNX, Cast-24).
fn power_of_two(x: f32, rounding: Rounding) -> u8 {
    const LARGEST: u32 = 0xfe;
    const NAN: u8 = 0xff;
    let magnitude = x.abs();
    let bits = magnitude.to_bits();
    let (exponent, fraction) = (bits >> 23, bits & 0x007f_ffff);
    if x.is_nan() {
        return NAN;
    }
    if magnitude.is_infinite() {
        return if rounding.saturate { LARGEST as u8 } else { NAN };
    }
    // The least power, 2^-127, is no normal float32.
    let least = exponent == 0 && fraction < 0x0040_0000;
    if least && !rounding.saturate {
        return NAN;
    }
    let up = match rounding.mode {
        "up" => fraction > if exponent == 0 { 0x0040_0000 } else { 0 },
        "nearest" if exponent == 0 => fraction >= 0x0060_0000,
        "nearest" => fraction >= 0x0040_0000,
        _ => false,
    };
    match exponent + u32::from(up) {
        e if e <= LARGEST => e as u8,
        _ if rounding.saturate => LARGEST as u8,
        _ => NAN,
    }
}

/// A number as ONNX Runtime writes it: eight significant digits, an exponent where it is below -4 or above 7.
fn decimal(x: f64) -> Bytes {
    if x.is_nan() {
        return Bytes::from_static(b"NaN");
    }
    if x.is_infinite() {
        return Bytes::from_static(if x > 0.0 { b"INF" } else { b"-INF" });
    }
    let scientific = format!("{x:.7e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let without_zeros = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-4..8).contains(&exponent) {
        return without_zeros(&format!("{x:.*}", (7 - exponent) as usize)).into();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", without_zeros(digits), exponent.abs()).into()
}

fn from_strings(call: &Call, array: &Array, to: ElementType, rounding: Rounding) -> Result<Array, Fault> {
    let texts = array.view::<Bytes>()?;
    let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).trim().to_owned();
    if to.is_float() {
        let mut numbers = call.vec::<f64>(array.dims())?;
        for bytes in texts {
            let text = text(bytes);
            numbers.push(text.parse::<f64>().map_err(|_| no_number(&text))?);
        }
        if to == ElementType::FLOAT {
            // Read as float32, since rounding twice may give another number.
            let singles =
                texts.iter().map(|b| text(b).parse::<f32>().unwrap_or(f32::NAN)).collect::<Vec<_>>();
            return Ok(Array::new(array.dims(), singles));
        }
        return match to {
            ElementType::DOUBLE => Ok(Array::new(array.dims(), numbers)),
            _ => from::<f64>(call, &Array::new(array.dims(), numbers), to, rounding),
        };
    }
    let mut numbers = call.vec::<i64>(array.dims())?;
    for bytes in texts {
        let text = text(bytes);
        let whole = text.parse::<i64>().ok().or_else(|| text.parse::<u64>().ok().map(|n| n as i64));
        numbers.push(match (whole, text.parse::<f64>()) {
            (Some(n), _) => n,
            (None, Ok(x)) if x.is_finite() => whole64(x),
            _ => return Err(no_number(&text)),
        });
    }
    let numbers = Array::new(array.dims(), numbers);
    match to {
        ElementType::INT64 => Ok(numbers),
        _ => from::<i64>(call, &numbers, to, rounding),
    }
}

fn no_number(text: &str) -> Fault {
    let shown: String = text.chars().take(40).collect();
    Fault::Invalid(format!("the text {shown:?} is no number of the type it is cast to"))
}

/// BitCast: the same bits under another type of as many bits.
pub fn bit_cast(call: &mut Call) -> Result<Outputs, Fault> {
    let to = call.attributes.element("to")?;
    let to = to.ok_or_else(|| Fault::Invalid("attribute to is missing".into()))?;
    let array = call.take(0)?;
    let from = array.element();
    if call.wide && (from.is_float() || to.is_float()) {
        return call.unsupported("bits of floating-point numbers that are all held in float64");
    }
    if from.bits() != to.bits() || from.bits() == 0 {
        return Err(Fault::Invalid(format!("{from} has not as many bits as {to}")));
    }
    let (_, dims, storage) = array.into_parts();
    let bytes: &[u8] = match &storage {
        Storage::Strings(_) => return call.unsupported(from),
        Storage::F32(v) => bytemuck::cast_slice(v),
        Storage::F64(v) => bytemuck::cast_slice(v),
        Storage::F16(v) => bytemuck::cast_slice(v),
        Storage::BF16(v) => bytemuck::cast_slice(v),
        Storage::I8(v) => bytemuck::cast_slice(v),
        Storage::I16(v) => bytemuck::cast_slice(v),
        Storage::I32(v) => bytemuck::cast_slice(v),
        Storage::I64(v) => bytemuck::cast_slice(v),
        Storage::U8(v) => v,
        Storage::U16(v) => bytemuck::cast_slice(v),
        Storage::U32(v) => bytemuck::cast_slice(v),
        Storage::U64(v) => bytemuck::cast_slice(v),
        Storage::C64(v) => bytemuck::cast_slice(v),
        Storage::C128(v) => bytemuck::cast_slice(v),
    };
    call.elements(&dims, (from.bits() as usize).div_ceil(8))?;
    fn read<T: Element + bytemuck::Pod>(bytes: &[u8]) -> Storage {
        T::store(bytemuck::pod_collect_to_vec(bytes))
    }
    let storage = match to {
        ElementType::FLOAT => read::<f32>(bytes),
        ElementType::DOUBLE => read::<f64>(bytes),
        ElementType::FLOAT16 => read::<f16>(bytes),
        ElementType::BFLOAT16 => read::<bf16>(bytes),
        ElementType::INT8 => read::<i8>(bytes),
        ElementType::INT16 => read::<i16>(bytes),
        ElementType::INT32 => read::<i32>(bytes),
        ElementType::INT64 => read::<i64>(bytes),
        ElementType::UINT16 => read::<u16>(bytes),
        ElementType::UINT32 => read::<u32>(bytes),
        ElementType::UINT64 => read::<u64>(bytes),
        ElementType::COMPLEX64 => read::<[f32; 2]>(bytes),
        ElementType::COMPLEX128 => read::<[f64; 2]>(bytes),
        // A bool is 0 or 1 whatever its bits were.
        ElementType::BOOL => u8::store(bytes.iter().map(|b| u8::from(*b != 0)).collect()),
        _ => read::<u8>(bytes),
    };
    one(Array::of(to, &dims, storage))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_onnx_runtime_writes_them() {
        for (x, text) in [
            (1.0, "1"),
            (f64::from(0.1f32), "0.1"),
            (1e20, "1e+20"),
            (1e-7, "1e-07"),
            (-0.0, "-0"),
            (123_456_789.0, "1.2345679e+08"),
            (16_777_216.0, "16777216"),
            (1.0 / 3.0, "0.33333333"),
            (f64::from(123_456.79_f32), "123456.79"),
            (99_999_999.9, "1e+08"),
        ] {
            assert_eq!(decimal(x), text.as_bytes(), "{x}");
        }
    }

    #[test]
    fn long_integers_are_rounded_once() {
        // Halfway between two numbers of bfloat16, and a little more than float64 can tell.
        let more = (0x101i64 << 54) + 1;
        assert_eq!(bf16::of(more).to_f64(), f64::from(0x102) * 2f64.powi(54));
        assert_eq!(bf16::of(more - 1).to_f64(), f64::from(0x100) * 2f64.powi(54));
        assert_eq!(f16::of(1.0 + 2f64.powi(-11) + 2f64.powi(-40)).to_f64(), 1.0 + 2f64.powi(-10));
    }

    #[test]
    fn numbers_out_of_range_become_what_the_machine_gives() {
        assert_eq!([u8::of(300.7f32), u8::of(-1.5f32), u8::of(3e9f32)], [44, 255, 0]);
        assert_eq!([i32::of(3e9f32), i32::of(f32::NAN)], [i32::MIN; 2]);
        assert_eq!(
            [u64::of(1e20f64), u64::of(-1e20f64), u64::of(1e19f64)],
            [0, 1 << 63, 10_000_000_000_000_000_000]
        );
        assert_eq!(i8::of(200i16), -56);
    }

    #[test]
    fn powers_of_two_are_rounded_as_asked() {
        let with = |x, mode, saturate| power_of_two(x, Rounding { saturate, mode });
        assert_eq!(
            [with(3.0, "up", true), with(3.0, "down", true), with(2.9, "nearest", true)],
            [129, 128, 128]
        );
        assert_eq!([with(3.0, "nearest", true), with(f32::MAX, "up", true)], [129, 0xfe]);
        assert_eq!([with(f32::INFINITY, "up", true), with(f32::MAX, "up", false)], [0xfe, 0xff]);
        assert_eq!([with(0.0, "up", true), with(0.0, "nearest", false)], [0, 0xff]);
    }
}

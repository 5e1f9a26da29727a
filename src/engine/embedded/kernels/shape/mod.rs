//! Operators that look at shapes or pass values on.

use crate::engine::array::Array;
use crate::engine::embedded::call::{Call, Outputs, one};
use crate::engine::fault::Fault;

kernels! {
    "Constant" => Kernel::plain(constant),
    "Identity" => Kernel::plain(identity),
    "Shape" => Kernel::plain(shape),
    "Size" => Kernel::plain(size),
}

/// Constant (all spellings since opset 1).
fn constant(call: &mut Call) -> Result<Outputs, Fault> {
    use crate::ir::AttributeValue as V;
    for attribute in call.attributes.0 {
        return match (&*attribute.name, &attribute.value) {
            ("value", V::Tensor(t)) => one(Array::try_from(&**t)?),
            ("sparse_value", V::Sparse(s)) => one(Array::try_from(&crate::ir::Constant::Sparse(s.clone()))?),
            ("value_float", V::Float(v)) => one(Array::scalar(*v)),
            ("value_floats", V::Floats(v)) => one(Array::new(&[v.len()], v.to_vec())),
            ("value_int", V::Int(v)) => one(Array::scalar(*v)),
            ("value_ints", V::Ints(v)) => one(Array::ints(v.to_vec())),
            ("value_string", V::String(v)) => one(Array::scalar(v.clone())),
            ("value_strings", V::Strings(v)) => one(Array::new(&[v.len()], v.to_vec())),
            _ => continue,
        };
    }
    Err(Fault::Invalid("no attribute gives its value".into()))
}

/// Identity of anything.
fn identity(call: &mut Call) -> Result<Outputs, Fault> {
    Ok(smallvec::smallvec![Some(call.value(0)?.clone())])
}

/// Shape; `start` and `end` since opset 15 are clamped, not refused.
fn shape(call: &mut Call) -> Result<Outputs, Fault> {
    let dims: Vec<i64> = call.input(0)?.dims().iter().map(|d| *d as i64).collect();
    let rank = dims.len() as i64;
    let clamp = |at: i64| if at < 0 { at + rank } else { at }.clamp(0, rank) as usize;
    let start = clamp(call.attributes.int("start", 0)?);
    let end = clamp(call.attributes.int("end", rank)?);
    one(Array::ints(dims.get(start..end).unwrap_or(&[]).to_vec()))
}

/// Size.
fn size(call: &mut Call) -> Result<Outputs, Fault> {
    one(Array::scalar(call.input(0)?.len() as i64))
}

//! Values in float64, for the run that referees between two float32 answers.

use crate::engine::array::{Array, Element, Storage, Value};
use crate::ir::ElementType;
use std::sync::Arc;

/// The same value with every floating-point element held in float64.
pub fn widened(value: Value) -> Value {
    match value {
        Value::Array(a) => Value::Array(widened_array(a)),
        Value::Sequence(items) => Value::Sequence(Arc::new(items.iter().cloned().map(widened).collect())),
        Value::Optional(item) => Value::Optional(item.map(|v| Arc::new(widened((*v).clone())))),
        Value::Map(keys, items) => Value::Map(keys, Arc::new(items.iter().cloned().map(widened).collect())),
    }
}

fn widened_array(array: Array) -> Array {
    let elements: Vec<f64> = match array.storage() {
        Storage::F32(v) => v.iter().map(|v| f64::from(*v)).collect(),
        Storage::F16(v) => v.iter().map(|v| v.to_f64()).collect(),
        Storage::BF16(v) => v.iter().map(|v| v.to_f64()).collect(),
        _ => return array,
    };
    Array::of(ElementType::DOUBLE, array.dims(), f64::store(elements))
}

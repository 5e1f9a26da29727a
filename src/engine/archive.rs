//! Inputs and outputs of a run as `.npz` files.
//!
//! Element `k` of a sequence `NAME` stands under `NAME[k]`; an optional that is absent is not stored.

use super::Inputs;
use super::array::{Array, Value};
use crate::formats::{FormatError, npz};
use crate::ir::{ElementType, Model, Tensor, Text, Type};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Why values were not read or written.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error(transparent)]
    File(#[from] FormatError),
    #[error("{file}: array '{name}': {message}")]
    Array { file: String, name: String, message: String },
}

/// Inputs of a model from a file. Arrays that are no input of the model are an error that names those it has; inputs
/// that are not in the file are left out.
pub fn read_inputs(model: &Model, path: &Path) -> Result<Inputs, ArchiveError> {
    let ports = model.graph(model.main()).inputs.iter().filter(|port| !model.is_constant_input(port.value));
    let wanted: Vec<(Text, Type)> = ports
        .map(|port| model.value(port.value))
        .map(|value| (value.name.clone(), value.ty.clone()))
        .collect();
    let (values, rest) = read_values(path, &wanted)?;
    if let Some(name) = rest.into_iter().next() {
        let known: Vec<&str> = wanted.iter().map(|(name, _)| &**name).collect();
        let message = format!("the model has no input of that name; it has {}", known.join(", "));
        return Err(ArchiveError::Array { file: path.display().to_string(), name, message });
    }
    Ok(values)
}

/// Values of known types from a file, and the names of the arrays that are none of them. A value that is not there is
/// left out; a sequence is there with its first element, an empty one is not.
pub fn read_values(
    path: &Path,
    wanted: &[(Text, Type)],
) -> Result<(BTreeMap<Text, Value>, Vec<String>), ArchiveError> {
    let types: BTreeMap<&str, &Type> = wanted.iter().map(|(name, ty)| (&**name, ty)).collect();
    let element = |name: &str| -> Option<ElementType> {
        let ty = types.get(name).or_else(|| types.get(item_of(name)?.0))?;
        element_of(ty)
    };
    let mut arrays = npz::read_as(path, &element)?;
    let mut found = BTreeMap::new();
    for (name, ty) in wanted {
        let mut array = |name: &str| -> Result<Option<Value>, ArchiveError> {
            let Some(tensor) = arrays.remove(name) else { return Ok(None) };
            let array = Array::try_from(&tensor).map_err(|fault| ArchiveError::Array {
                file: path.display().to_string(),
                name: name.to_owned(),
                message: fault.to_string(),
            })?;
            Ok(Some(array.into()))
        };
        let (sequence, optional) = match ty {
            Type::Optional(inner) => (matches!(**inner, Type::Sequence(_)), true),
            other => (matches!(other, Type::Sequence(_)), false),
        };
        let value = if sequence {
            let mut items = Vec::new();
            while let Some(item) = array(&format!("{name}[{}]", items.len()))? {
                items.push(item);
            }
            (!items.is_empty()).then(|| Value::Sequence(Arc::new(items)))
        } else {
            array(name)?
        };
        if let Some(value) = value {
            let value = if optional { Value::Optional(Some(Arc::new(value))) } else { value };
            found.insert(name.clone(), value);
        }
    }
    Ok((found, arrays.into_keys().collect()))
}

/// Writes values. Maps are not written; neither are sequences in sequences.
pub fn write<'a>(
    path: &Path,
    values: impl IntoIterator<Item = (&'a Text, &'a Value)>,
) -> Result<(), ArchiveError> {
    let mut arrays: Vec<(String, Tensor)> = Vec::new();
    for (name, value) in values {
        let mut inner = value;
        if let Value::Optional(optional) = value {
            match optional.as_deref() {
                Some(present) => inner = present,
                None => continue,
            }
        }
        let refused = |kind: &str| ArchiveError::Array {
            file: path.display().to_string(),
            name: name.to_string(),
            message: format!("a {kind} cannot be stored"),
        };
        match inner {
            Value::Array(array) => arrays.push((name.to_string(), array.into())),
            Value::Sequence(items) => {
                for (k, item) in items.iter().enumerate() {
                    let array = item.array().map_err(|_| refused("sequence of anything but tensors"))?;
                    arrays.push((format!("{name}[{k}]"), array.into()));
                }
            }
            other => return Err(refused(other.kind())),
        }
    }
    Ok(npz::write(path, &arrays)?)
}

/// `NAME[k]` as name and number.
fn item_of(name: &str) -> Option<(&str, u64)> {
    let (name, number) = name.strip_suffix(']')?.rsplit_once('[')?;
    Some((name, number.parse().ok()?))
}

/// Element type of the arrays inside a value.
fn element_of(ty: &Type) -> Option<ElementType> {
    match ty {
        Type::Sequence(inner) | Type::Optional(inner) => element_of(inner),
        other => other.element(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_and_optionals_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npz");
        let float = Type::tensor(ElementType::FLOAT, [2.into()]);
        let half = Type::tensor(ElementType::BFLOAT16, [1.into()]);
        let wanted: Vec<(Text, Type)> = vec![
            ("x".into(), float.clone()),
            ("many".into(), Type::Sequence(Box::new(half.clone()))),
            ("here".into(), Type::Optional(Box::new(float.clone()))),
            ("gone".into(), Type::Optional(Box::new(float))),
        ];
        let item = |v: f32| Value::from(Array::new(&[1], vec![half::bf16::from_f32(v)]));
        let x = Value::from(Array::new(&[2], vec![1.0f32, 2.0]));
        let values: BTreeMap<Text, Value> = BTreeMap::from([
            ("x".into(), x.clone()),
            ("many".into(), Value::Sequence(Arc::new(vec![item(1.5), item(-2.0)]))),
            ("here".into(), Value::Optional(Some(Arc::new(x)))),
        ]);
        write(&path, values.iter().chain([(&"gone".into(), &Value::Optional(None))])).unwrap();
        let (back, rest) = read_values(&path, &wanted).unwrap();
        assert!(rest.is_empty() && back.len() == values.len(), "{back:?}");
        assert!(values.iter().all(|(name, value)| value.same_bits(&back[name])));
    }
}

//! Values as bytes and back, for messages.

use super::message::{Form, Named};
use crate::engine::array::{Array, Value};
use crate::engine::fault::Fault;
use crate::ir::{Data, ElementType, Tensor};
use bytes::Bytes;
use std::sync::Arc;

/// A value's form; its bytes are added to `body`.
pub fn form(value: &Value, body: &mut Vec<Bytes>) -> Result<Form, Fault> {
    Ok(match value {
        Value::Array(array) => {
            let tensor = Tensor::from(array);
            let dims = tensor.dims.to_vec();
            match tensor.data {
                Data::Strings(strings) => {
                    let lengths = strings.iter().map(|s| s.len() as u64).collect();
                    body.extend(strings.iter().cloned());
                    Form::Strings { dims, lengths }
                }
                Data::Bytes(bytes) => {
                    let form = Form::Tensor { element: tensor.element.0, dims, bytes: bytes.len() as u64 };
                    body.push(bytes);
                    form
                }
                Data::Missing(why) => return Err(Fault::Invalid(format!("its data is missing: {why}"))),
            }
        }
        Value::Sequence(items) => {
            Form::Sequence(items.iter().map(|v| form(v, body)).collect::<Result<_, _>>()?)
        }
        Value::Optional(None) => Form::Absent,
        Value::Optional(Some(value)) => form(value, body)?,
        Value::Map(keys, values) => {
            let keys = form(&Value::Array(keys.clone()), body)?;
            let values = values.iter().map(|v| form(v, body)).collect::<Result<_, _>>()?;
            Form::Map { keys: Box::new(keys), values: Box::new(Form::Sequence(values)) }
        }
    })
}

/// Values of an answer, in its order.
pub fn values(named: Vec<Named>, body: Vec<u8>) -> Result<Vec<(String, Value)>, Fault> {
    let body = Bytes::from(body);
    let mut at = 0;
    named.into_iter().map(|n| Ok((n.name, value(n.form, &body, &mut at)?))).collect()
}

fn value(form: Form, body: &Bytes, at: &mut usize) -> Result<Value, Fault> {
    let mut next = |length: u64| {
        let end = usize::try_from(length).ok().and_then(|n| at.checked_add(n)).filter(|e| *e <= body.len());
        let end = end.ok_or_else(|| Fault::Invalid("an answer has fewer bytes than it announces".into()))?;
        let part = body.slice(*at..end);
        *at = end;
        Ok::<Bytes, Fault>(part)
    };
    Ok(match form {
        Form::Tensor { element, dims, bytes } => {
            let tensor = Tensor::new(ElementType(element), dims, next(bytes)?);
            Value::Array(Array::try_from(&tensor)?)
        }
        Form::Strings { dims, lengths } => {
            let strings: Result<Vec<Bytes>, Fault> = lengths.into_iter().map(&mut next).collect();
            let mut tensor = Tensor::new(ElementType::STRING, dims, Bytes::new());
            tensor.data = Data::Strings(strings?.into());
            Value::Array(Array::try_from(&tensor)?)
        }
        Form::Sequence(items) => Value::Sequence(Arc::new(
            items.into_iter().map(|item| value(item, body, at)).collect::<Result<_, _>>()?,
        )),
        Form::Absent => Value::Optional(None),
        Form::Map { keys, values } => {
            let keys = value(*keys, body, at)?.into_array()?;
            match value(*values, body, at)? {
                Value::Sequence(items) => Value::Map(keys, items),
                one => Value::Map(keys, Arc::new(vec![one])),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_survive_the_way_through_a_message() {
        let numbers = Value::from(Array::new(&[2, 2], vec![1.0f32, -0.0, f32::NAN, 3.0]));
        let text = Value::from(Array::new(&[2], vec![Bytes::from_static(b"a\0"), Bytes::new()]));
        let all = [
            numbers.clone(),
            Value::Sequence(Arc::new(vec![numbers.clone(), Array::bools(&[1], [true]).into()])),
            Value::Optional(None),
            Value::Map(Array::ints(vec![1, 2]), Arc::new(vec![numbers, text.clone()])),
            text,
        ];
        let mut body = Vec::new();
        let named: Vec<Named> =
            all.iter().map(|v| Named { name: "v".into(), form: form(v, &mut body).unwrap() }).collect();
        let back = values(named, body.concat()).unwrap();
        assert!(all.iter().zip(&back).all(|(a, (_, b))| a.same_bits(b)));
    }
}

//! Constant data behind a value, however the file spells it.

use crate::ir::Constant;
use crate::ir::{AttributeValue, Data, Dims, ElementType, Model, Node, SparseTensor, Tensor, ValueId};
use std::sync::Arc;

/// Largest sparse tensor that is written out densely.
const MAX_DENSE_BYTES: u64 = 1 << 28;

/// Data that a value has at every run: of an initializer that no caller can override, or of a `Constant` node in any
/// spelling. Sparse data comes out dense; `None` when it would be larger than 256 MB or is malformed.
///
/// An initializer whose file could not be read gives a tensor with [`Data::Missing`].
pub fn constant(model: &Model, value: ValueId) -> Option<Arc<Tensor>> {
    match model.initializer(value) {
        Some(Constant::Dense(t)) => return Some(t.clone()),
        Some(Constant::Sparse(s)) => return densify(s),
        None => {}
    }
    let (producer, 0) = model.get_value(value)?.node()? else { return None };
    of_node(model.get_node(producer)?)
}

/// Data of a `Constant` node; `None` for any other node, and in a function body where the attribute is the caller's.
pub fn of_node(node: &Node) -> Option<Arc<Tensor>> {
    if !node.is("Constant") {
        return None;
    }
    let spelled =
        node.attributes.iter().find(|a| a.name.starts_with("value") || &*a.name == "sparse_value")?;
    Some(match (&*spelled.name, &spelled.value) {
        ("value", AttributeValue::Tensor(t)) => t.clone(),
        ("sparse_value", AttributeValue::Sparse(s)) => return densify(s),
        ("value_int", AttributeValue::Int(v)) => Arc::new(Tensor::from_i64(&[], &[*v])),
        ("value_ints", AttributeValue::Ints(v)) => Arc::new(Tensor::ints(v)),
        ("value_float", AttributeValue::Float(v)) => Arc::new(Tensor::scalar_f32(*v)),
        ("value_floats", AttributeValue::Floats(v)) => Arc::new(Tensor::from_f32(&[v.len() as u64], v)),
        ("value_string", AttributeValue::String(v)) => Arc::new(strings(Dims::new(), vec![v.clone()])),
        ("value_strings", AttributeValue::Strings(v)) => {
            Arc::new(strings([v.len() as u64].into_iter().collect(), v.to_vec()))
        }
        _ => return None,
    })
}

fn strings(dims: Dims, elements: Vec<bytes::Bytes>) -> Tensor {
    let mut t = Tensor::new(ElementType::STRING, dims, bytes::Bytes::new());
    t.data = Data::Strings(elements.into());
    t
}

/// The dense tensor that a sparse one stands for (ONNX IR, `SparseTensorProto`): indices are either linear, one a
/// value, or one row of coordinates a value. Elements not named are zero.
fn densify(sparse: &SparseTensor) -> Option<Arc<Tensor>> {
    let count = sparse.dims.iter().try_fold(1u64, |n, d| n.checked_mul(*d))?;
    let width = (sparse.values.element.bits() / 8) as usize;
    let bytes = count.checked_mul(width as u64).filter(|b| *b <= MAX_DENSE_BYTES && width > 0)?;
    let values = sparse.values.bytes()?;
    let indices = sparse.indices.as_i64()?;
    let given = values.len().checked_div(width)?;
    let rank = sparse.dims.len();
    let linear: Vec<u64> = match sparse.indices.dims.as_slice() {
        [n] if *n == given as u64 => indices.iter().map(|i| u64::try_from(*i).ok()).collect::<Option<_>>()?,
        [n, r] if *n == given as u64 && *r == rank as u64 && rank > 0 => indices
            .chunks_exact(rank)
            .map(|row| {
                row.iter().zip(&sparse.dims).try_fold(0u64, |at, (i, d)| {
                    let i = u64::try_from(*i).ok().filter(|i| i < d)?;
                    at.checked_mul(*d)?.checked_add(i)
                })
            })
            .collect::<Option<_>>()?,
        _ => return None,
    };
    let mut dense = vec![0u8; bytes as usize];
    for (at, element) in linear.into_iter().zip(values.chunks_exact(width)) {
        let start = usize::try_from(at).ok()?.checked_mul(width)?;
        dense.get_mut(start..start.checked_add(width)?)?.copy_from_slice(element);
    }
    Some(Arc::new(Tensor::new(sparse.values.element, sparse.dims.iter().copied(), dense)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Builder, Dim};

    fn spelled(name: &str, value: impl Into<AttributeValue>) -> Option<Arc<Tensor>> {
        let mut b = Builder::new("constants", 13);
        let c = b.op("Constant", &[]).attr(name, value).one();
        let y = b.op("Identity", &[c]).one();
        b.output(y);
        constant(&b.finish().unwrap(), c)
    }

    #[test]
    fn every_spelling_of_constant_is_read() {
        assert_eq!(spelled("value", Tensor::ints(&[3, 4])).unwrap().as_i64(), Some(vec![3, 4]));
        let beyond = (1i64 << 53) + 1;
        let t = spelled("value_int", beyond).unwrap();
        assert_eq!((t.dims.len(), t.as_i64()), (0, Some(vec![beyond])));
        assert_eq!(spelled("value_ints", [1i64, 2]).unwrap().dims.as_slice(), [2]);
        assert_eq!(spelled("value_float", 0.5f32).unwrap().as_f32(), Some(vec![0.5]));
        assert_eq!(spelled("value_floats", vec![1.0f32, -0.0]).unwrap().dims.as_slice(), [2]);
        assert_eq!(spelled("value_string", "a").unwrap().element, ElementType::STRING);
        assert!(spelled("value_ints", 3i64).is_none());
    }

    #[test]
    fn a_sparse_value_comes_out_dense_by_either_kind_of_index() {
        let sparse = |indices: Tensor| SparseTensor {
            values: Tensor::from_f32(&[2], &[5.0, 7.0]),
            indices,
            dims: [2u64, 3].into_iter().collect(),
            extra: None,
        };
        let want = Some(vec![0.0, 5.0, 0.0, 0.0, 0.0, 7.0]);
        assert_eq!(densify(&sparse(Tensor::ints(&[1, 5]))).unwrap().as_f32(), want);
        let rows = Tensor::from_i64(&[2, 2], &[0, 1, 1, 2]);
        assert_eq!(densify(&sparse(rows)).unwrap().as_f32(), want);
        assert!(densify(&sparse(Tensor::ints(&[1, 6]))).is_none());
        assert!(densify(&sparse(Tensor::ints(&[1, -1]))).is_none());
    }

    #[test]
    fn a_default_that_a_caller_may_override_is_no_constant() {
        let mut b = Builder::new("defaults", 13);
        let x = b.input("x", ElementType::FLOAT, &[Dim::Fixed(1)]);
        let w = b.constant("w", Tensor::from_f32(&[1], &[2.0]));
        let y = b.op("Add", &[x, w]).one();
        b.output(y);
        let model = b.finish().unwrap();
        assert!(constant(&model, w).is_some());
        assert!(constant(&model, x).is_none());
        assert!(constant(&model, y).is_none());
    }
}

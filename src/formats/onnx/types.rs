//! Types and declarations: `TypeProto` and `ValueInfoProto` to the model's types and back.

use bytes::Bytes;

use super::extra::{self, Kept, Remainder};
use super::field;
use super::proto::{TensorShapeProto, TypeProto, ValueInfoProto, tensor_shape_proto, type_proto};
use super::schema::MessageKind;
use super::wire::Unknown;
use crate::ir::{Declaration, Dim, ElementType, Expr, Shape, Type};

/// A type; what it cannot say (denotations, negative sizes) is left out.
pub fn read_type(message: &TypeProto) -> Type {
    use type_proto::Value;
    let inner = |of: &Option<Box<TypeProto>>| Box::new(of.as_deref().map(read_type).unwrap_or_default());
    match &message.value {
        None => Type::Unknown,
        Some(Value::TensorType(t)) => Type::Tensor {
            element: ElementType(t.elem_type.unwrap_or_default()),
            shape: t.shape.as_ref().map(read_shape),
        },
        Some(Value::SparseTensorType(t)) => Type::Sparse {
            element: ElementType(t.elem_type.unwrap_or_default()),
            shape: t.shape.as_ref().map(read_shape),
        },
        Some(Value::SequenceType(s)) => Type::Sequence(inner(&s.elem_type)),
        Some(Value::OptionalType(o)) => Type::Optional(inner(&o.elem_type)),
        Some(Value::MapType(m)) => {
            Type::Map { key: ElementType(m.key_type.unwrap_or_default()), value: inner(&m.value_type) }
        }
        Some(Value::OpaqueType(o)) => Type::Opaque {
            domain: o.domain.as_deref().unwrap_or_default().into(),
            name: o.name.as_deref().unwrap_or_default().into(),
        },
    }
}

fn read_shape(message: &TensorShapeProto) -> Shape {
    use tensor_shape_proto::dimension::Value;
    let read = |dim: &tensor_shape_proto::Dimension| match &dim.value {
        Some(Value::DimValue(n)) => u64::try_from(*n).map(Dim::Fixed).unwrap_or(Dim::Unknown),
        Some(Value::DimParam(name)) if !name.is_empty() => Dim::Symbolic(Expr::symbol(name)),
        _ => Dim::Unknown,
    };
    message.dim.iter().map(read).collect()
}

/// The message for a type; `None` for an unknown one.
pub fn write_type(ty: &Type) -> Option<TypeProto> {
    use type_proto::Value;
    let inner = |of: &Type| Some(Box::new(write_type(of).unwrap_or_default()));
    let value = match ty {
        Type::Unknown => return None,
        Type::Tensor { element, shape } => Value::TensorType(type_proto::Tensor {
            elem_type: Some(element.0),
            shape: shape.as_ref().map(write_shape),
        }),
        Type::Sparse { element, shape } => Value::SparseTensorType(type_proto::SparseTensor {
            elem_type: Some(element.0),
            shape: shape.as_ref().map(write_shape),
        }),
        Type::Sequence(of) => Value::SequenceType(Box::new(type_proto::Sequence { elem_type: inner(of) })),
        Type::Optional(of) => Value::OptionalType(Box::new(type_proto::Optional { elem_type: inner(of) })),
        Type::Map { key, value } => {
            Value::MapType(Box::new(type_proto::Map { key_type: Some(key.0), value_type: inner(value) }))
        }
        Type::Opaque { domain, name } => Value::OpaqueType(type_proto::Opaque {
            domain: Some(domain.to_string()),
            name: Some(name.to_string()),
        }),
    };
    Some(TypeProto { value: Some(value), denotation: None })
}

fn write_shape(shape: &Shape) -> TensorShapeProto {
    use tensor_shape_proto::dimension::Value;
    let write = |dim: &Dim| {
        let value = match dim {
            Dim::Fixed(n) => i64::try_from(*n).ok().map(Value::DimValue),
            Dim::Symbolic(expression) => Some(Value::DimParam(expression.to_string())),
            Dim::Unknown => None,
        };
        tensor_shape_proto::Dimension { value, denotation: None }
    };
    TensorShapeProto { dim: shape.iter().map(write).collect() }
}

/// A type together with the message as it stood, when writing the type anew would lose something.
pub fn read_typed(message: Option<&TypeProto>, tree: Unknown) -> (Type, Option<Bytes>) {
    let Some(message) = message else { return (Type::Unknown, None) };
    let ty = read_type(message);
    let same = tree.is_empty() && write_type(&ty).as_ref() == Some(message);
    let raw = (!same).then(|| extra::encode(message, MessageKind::Type, &tree));
    (ty, raw)
}

/// The message for a declaration's type: as it stood when it still says the same.
pub fn write_typed(declaration: &Declaration) -> (Option<TypeProto>, Unknown) {
    if let Some(raw) = &declaration.raw
        && let Some((message, tree)) = extra::decode::<TypeProto>(raw, MessageKind::Type)
        && read_type(&message) == declaration.ty
    {
        return (Some(message), tree);
    }
    (write_type(&declaration.ty), Unknown::default())
}

/// What a file declares about a value; the name is the caller's business.
pub fn read_declaration(message: &ValueInfoProto, mut tree: Unknown, position: u32) -> Declaration {
    let mut rest = Remainder::new(&mut tree);
    rest.text(field::value_info::NAME, &message.name, true);
    let metadata = rest.pairs(field::value_info::METADATA_PROPS, &message.metadata_props, &mut tree);
    let (ty, raw) = read_typed(message.r#type.as_ref(), tree.take(field::value_info::TYPE, 0));
    let doc = message.doc_string.as_deref().map(Into::into);
    Declaration { ty, raw, doc, metadata, extra: rest.finish(), position }
}

/// The message for a declaration about the value `name`.
pub fn write_declaration(name: &str, declaration: &Declaration) -> (ValueInfoProto, Unknown) {
    let mut kept = Kept::<ValueInfoProto>::of(&declaration.extra, MessageKind::ValueInfo);
    let (ty, tree) = write_typed(declaration);
    let message = ValueInfoProto {
        name: kept.text(field::value_info::NAME, name, true),
        r#type: ty,
        doc_string: declaration.doc.as_deref().map(str::to_owned),
        metadata_props: kept
            .pairs(field::value_info::METADATA_PROPS, &declaration.metadata, |m| &mut m.metadata_props),
    };
    kept.tree.put(field::value_info::TYPE, 0, tree);
    (message, kept.tree)
}

/// Reads a `TypeProto` attribute as a declaration of nothing but a type.
pub fn read_type_attribute(message: &TypeProto, tree: Unknown) -> Declaration {
    let (ty, raw) = read_typed(Some(message), tree);
    Declaration { ty, raw, ..Declaration::default() }
}

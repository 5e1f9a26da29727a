//! Ports, declarations, initializers and tensor data: parsed.

use super::lex::{At, Token};
use super::notes::{ITEM, Notes, SPARSE, TENSOR};
use super::parse::{Item, Parser, Result};
use super::reference::{MAIN, Reference, digest};
use crate::ir::ids::Text;
use crate::ir::node::Declaration;
use crate::ir::tensor::{Constant, Data, Dims, Encoding, SparseTensor, Tensor};
use crate::ir::types::{Shape, Type};
use std::sync::Arc;

/// Data of a tensor with what its place in a file says about it.
struct Loaded {
    data: Data,
    encoding: Encoding,
}

impl Parser<'_, '_> {
    /// `(type name, …)`. In a function a type that stands here declares an inner value, as ONNX has it.
    pub(super) fn ports(&mut self, function: bool, place: &str) -> Result<Vec<Item>> {
        self.expect('(', place)?;
        let mut ports = Vec::new();
        while !self.eat(')')? {
            if !ports.is_empty() {
                self.expect(',', "between two inputs or outputs")?;
            }
            let mut item = self.item()?;
            if !function && item.declaration.is_none() {
                item.declaration = Some(Declaration::default());
            }
            ports.push(item);
        }
        Ok(ports)
    }

    /// `type? name notes? (= data)?`.
    pub(super) fn item(&mut self) -> Result<Item> {
        let at = self.at()?;
        let ty = if self.at_type()? { Some(self.ty()?) } else { None };
        let name: Text = self.quotable("a type or a name")?.into();
        let mut notes = self.notes(ITEM)?;
        let (position, value_type, stray) = (notes.position, notes.value_type.take(), notes.stray);
        if self.eat('=')? {
            let constant = match ty {
                Some(ty) => self.constant(at, &ty, notes)?,
                None => return Err(self.error(at, "data needs a type with its dimensions before the name")),
            };
            return Ok(Item {
                at,
                name,
                declaration: None,
                constant: Some(constant),
                position,
                value_type,
                stray,
            });
        }
        let extra = notes.extra();
        let noted = extra.is_some()
            || notes.doc.is_some()
            || !notes.metadata.is_empty()
            || notes.type_proto.is_some()
            || position.is_some();
        let declared = (ty.is_some() || noted).then(|| Declaration {
            ty: ty.unwrap_or_default(),
            raw: notes.type_proto,
            doc: notes.doc,
            metadata: notes.metadata,
            extra,
            position: position.unwrap_or(0),
        });
        Ok(Item { at, name, declaration: declared, constant: None, position, value_type, stray })
    }

    fn constant(&mut self, at: At, ty: &Type, notes: Notes) -> Result<Constant> {
        match ty {
            Type::Tensor { .. } => {
                let dims = self.fixed_dims(at, ty)?;
                Ok(Constant::Dense(Arc::new(self.tensor_data(ty, dims, "".into(), notes)?)))
            }
            Type::Sparse { .. } => Ok(Constant::Sparse(Arc::new(self.sparse_data(at, ty, notes)?))),
            _ => Err(self.error(at, "only tensors and sparse tensors can have data")),
        }
    }

    pub(super) fn fixed_dims(&self, at: At, ty: &Type) -> Result<Dims> {
        let shape = match ty {
            Type::Tensor { shape, .. } | Type::Sparse { shape, .. } => shape.as_ref(),
            _ => None,
        };
        let fixed = |shape: &Shape| shape.iter().map(|d| d.fixed()).collect::<Option<Dims>>();
        shape.and_then(fixed).ok_or_else(|| self.error(at, "data needs a type whose dimensions are numbers"))
    }

    /// A tensor of a type that stood already: `name? notes? =? data`.
    pub(super) fn tensor_after_type(&mut self, at: At, ty: &Type) -> Result<Tensor> {
        let dims = self.fixed_dims(at, ty)?;
        let named = matches!(self.peek(0)?, Token::Word(_) | Token::Quoted(_));
        let name = if named { self.quotable("the tensor's name")? } else { String::new() };
        let notes = self.notes(TENSOR)?;
        self.eat('=')?;
        self.tensor_data(ty, dims, name.into(), notes)
    }

    fn tensor_data(&mut self, ty: &Type, dims: Dims, name: Text, mut notes: Notes) -> Result<Tensor> {
        let at = self.at()?;
        let element = ty.element().unwrap_or(crate::ir::ElementType::UNDEFINED);
        let Some(count) = dims.iter().try_fold(1u64, |n, d| n.checked_mul(*d)) else {
            return Err(self.error(at, "the dimensions are more elements than 64 bits can count"));
        };
        let loaded = match self.peek(0)? {
            Token::Mark('[') => {
                let entries = self.pairs()?;
                self.loaded(at, ty, &dims, entries)?
            }
            _ => Loaded { data: self.elements(element, count)?, encoding: Encoding::Raw },
        };
        Ok(Tensor {
            element,
            dims,
            data: loaded.data,
            encoding: notes.encoding.take().unwrap_or(loaded.encoding),
            name: notes.tensor_name.take().unwrap_or(name),
            extra: notes.extra(),
            doc: notes.doc.unwrap_or_default(),
            metadata: notes.metadata,
        })
    }

    /// A sparse tensor of a type that stood already: `notes? (values, indices)`.
    pub(super) fn sparse_after_type(&mut self, at: At, ty: &Type) -> Result<SparseTensor> {
        let notes = self.notes(SPARSE)?;
        self.sparse_data(at, ty, notes)
    }

    fn sparse_data(&mut self, at: At, ty: &Type, mut notes: Notes) -> Result<SparseTensor> {
        let dims = self.fixed_dims(at, ty)?;
        let extra = notes.extra();
        self.in_parentheses(|p| {
            let values = p.whole_tensor()?;
            p.expect(',', "between values and indices of the sparse tensor")?;
            let indices = p.whole_tensor()?;
            Ok(SparseTensor { values, indices, dims, extra })
        })
    }

    fn whole_tensor(&mut self) -> Result<Tensor> {
        let at = self.at()?;
        let ty = self.ty()?;
        self.tensor_after_type(at, &ty)
    }

    /// Data that stands elsewhere: in a model file (`"model"`), nowhere (`"missing"`), or in an external file, which a
    /// text on its own does not read.
    fn loaded(&mut self, at: At, ty: &Type, dims: &Dims, entries: Vec<(Text, Text)>) -> Result<Loaded> {
        let get = |key: &str| entries.iter().find(|(k, _)| &**k == key).map(|(_, v)| v.clone());
        if let Some(reason) = get("missing") {
            return Ok(Loaded { data: Data::Missing(reason), encoding: Encoding::Raw });
        }
        let Some(file) = get("model") else {
            let location = get("location").unwrap_or_default();
            let reason =
                format!("the text names data in '{location}' without saying which model it belongs to");
            return Ok(Loaded {
                data: Data::Missing(reason.into()),
                encoding: Encoding::External(entries.into()),
            });
        };
        let index = match get("index") {
            None => 0,
            Some(n) => n.parse().map_err(|_| self.error(at, format!("'{n}' is no position in a list")))?,
        };
        let reference = Reference {
            graph: get("graph").unwrap_or_else(|| MAIN.into()),
            value: get("value").unwrap_or_default(),
            attribute: get("attribute").map(|name| (name, index)),
            indices: get("part").map(|part| &*part == "indices"),
        };
        let path = self.base.join(&*file);
        let label = format!("'{}' of {file}", reference.value);
        let fetched =
            (self.fetch)(&path, &reference).map_err(|what| self.error(at, format!("{label}: {what}")))?;
        if ty.element() != Some(fetched.element) || *dims != fetched.dims {
            let found = super::types::type_text(&fetched.ty());
            let wanted = super::types::type_text(ty);
            return Err(self.error(at, format!("{label} is {found}, the text says {wanted}")));
        }
        let (said, found) = (get("xxh3"), digest(&fetched));
        if let (Some(said), Some(found)) = (said, found)
            && *said != *found
        {
            return Err(
                self.error(at, format!("{label} has other data: digest {found}, the text says {said}"))
            );
        }
        Ok(Loaded { data: fetched.data.clone(), encoding: fetched.encoding.clone() })
    }
}

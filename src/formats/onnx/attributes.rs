//! Attributes: `AttributeProto` to the model's attribute values and back.

use std::sync::Arc;

use super::export::Exporter;
use super::extra::{self, Kept, Remainder};
use super::import::Importer;
use super::proto::attribute_proto::AttributeType;
use super::proto::{AttributeProto, GraphProto, SparseTensorProto, TensorProto};
use super::schema::MessageKind;
use super::wire::Unknown;
use super::{field, tensors, types};
use crate::formats::error::Refusal;
use crate::ir::tensor::{SparseTensor, Tensor};
use crate::ir::{Attribute, AttributeValue, GraphId, GraphKind, NodeId};

/// The kinds whose value fields are filled.
fn filled(a: &AttributeProto) -> Vec<AttributeType> {
    let fields = [
        (a.f.is_some(), AttributeType::Float),
        (a.i.is_some(), AttributeType::Int),
        (a.s.is_some(), AttributeType::String),
        (a.t.is_some(), AttributeType::Tensor),
        (a.g.is_some(), AttributeType::Graph),
        (a.sparse_tensor.is_some(), AttributeType::SparseTensor),
        (a.tp.is_some(), AttributeType::TypeProto),
        (!a.floats.is_empty(), AttributeType::Floats),
        (!a.ints.is_empty(), AttributeType::Ints),
        (!a.strings.is_empty(), AttributeType::Strings),
        (!a.tensors.is_empty(), AttributeType::Tensors),
        (!a.graphs.is_empty(), AttributeType::Graphs),
        (!a.sparse_tensors.is_empty(), AttributeType::SparseTensors),
        (!a.type_protos.is_empty(), AttributeType::TypeProtos),
    ];
    fields.into_iter().filter(|(present, _)| *present).map(|(_, kind)| kind).collect()
}

/// The kind as which the attribute can be read, and whether it states it; `None` when it is kept as it stands.
fn kind_of(a: &AttributeProto, has_owner: bool) -> Option<(AttributeType, bool)> {
    let filled = filled(a);
    let stated = a.r#type.map(AttributeType::try_from).transpose().ok()?;
    let kind = match (stated, filled.as_slice()) {
        (Some(AttributeType::Undefined), _) => return None,
        (Some(kind), []) if !needs_message(kind) => kind,
        (Some(kind), [only]) if kind == *only => kind,
        // IR version 1 had no type field: the value that is there says it.
        (None, [only]) => *only,
        _ => return None,
    };
    let body = matches!(kind, AttributeType::Graph | AttributeType::Graphs);
    (has_owner || !body).then_some((kind, stated.is_some()))
}

fn needs_message(kind: AttributeType) -> bool {
    use AttributeType::{Graph, SparseTensor, Tensor, TypeProto};
    matches!(kind, Tensor | Graph | SparseTensor | TypeProto)
}

impl Importer<'_> {
    /// An attribute of a node (`owner`), or a default of a function (no owner); `place` names what holds it.
    pub(super) fn attribute(
        &mut self,
        owner: Option<NodeId>,
        graph: GraphId,
        a: AttributeProto,
        mut tree: Unknown,
        place: &str,
    ) -> Result<Attribute, Refusal> {
        let reference = a.ref_attr_name.as_deref().unwrap_or_default();
        let kind = match reference.is_empty() {
            true => kind_of(&a, owner.is_some()),
            false => None,
        };
        if kind.is_none() && (reference.is_empty() || !filled(&a).is_empty()) {
            let value = AttributeValue::Unknown(extra::encode(&a, MessageKind::Attribute, &tree));
            let name = self.text(a.name.as_deref().unwrap_or_default());
            return Ok(Attribute { name, value, doc: "".into(), extra: None });
        }
        let mut rest = Remainder::new(&mut tree);
        let name = self.text(rest.text(field::attribute::NAME, &a.name, true));
        let doc = self.text(rest.text(field::attribute::DOC_STRING, &a.doc_string, false));
        rest.text(field::attribute::REF_ATTR_NAME, &a.ref_attr_name, false);
        let Some((kind, stated)) = kind else {
            let kind = rest.int(field::attribute::TYPE, a.r#type.map(i64::from), true) as i32;
            let value = AttributeValue::Reference { name: self.text(reference), kind };
            return Ok(Attribute { name, value, doc, extra: rest.finish() });
        };
        rest.presence(field::attribute::TYPE, stated, true, true);
        let value = match kind {
            AttributeType::Float => {
                let v = a.f.unwrap_or_default();
                rest.presence(field::attribute::F, a.f.is_some(), v.to_bits() == 0, true);
                AttributeValue::Float(v)
            }
            AttributeType::Int => AttributeValue::Int(rest.int(field::attribute::I, a.i, true)),
            AttributeType::String => {
                let v = a.s.clone().unwrap_or_default();
                rest.presence(field::attribute::S, a.s.is_some(), v.is_empty(), true);
                AttributeValue::String(v)
            }
            AttributeType::Tensor => {
                let tensor = a.t.map(|t| *t).unwrap_or_default();
                AttributeValue::Tensor(self.tensor(
                    owner,
                    tensor,
                    tree.take(field::attribute::T, 0),
                    &name,
                    place,
                )?)
            }
            AttributeType::Graph => {
                let body = a.g.map(|g| *g).unwrap_or_default();
                let tree = tree.take(field::attribute::G, 0);
                AttributeValue::Graph(self.body(owner, graph, body, tree, &name, 0, place)?)
            }
            AttributeType::SparseTensor => {
                let sparse = a.sparse_tensor.map(|s| *s).unwrap_or_default();
                AttributeValue::Sparse(self.sparse(
                    owner,
                    sparse,
                    tree.take(field::attribute::SPARSE_TENSOR, 0),
                    &name,
                    place,
                )?)
            }
            AttributeType::TypeProto => {
                let ty = a.tp.map(|t| *t).unwrap_or_default();
                AttributeValue::Type(
                    types::read_type_attribute(&ty, tree.take(field::attribute::TP, 0)).into(),
                )
            }
            AttributeType::Floats => AttributeValue::Floats(a.floats.into()),
            AttributeType::Ints => AttributeValue::Ints(a.ints.into()),
            AttributeType::Strings => AttributeValue::Strings(a.strings.into()),
            AttributeType::Tensors => {
                let mut tensors = Vec::with_capacity(a.tensors.len());
                for (index, tensor) in a.tensors.into_iter().enumerate() {
                    tensors.push(self.tensor(
                        owner,
                        tensor,
                        tree.take(field::attribute::TENSORS, index),
                        &name,
                        place,
                    )?);
                }
                AttributeValue::Tensors(tensors.into())
            }
            AttributeType::Graphs => {
                let mut bodies = Vec::with_capacity(a.graphs.len());
                for (index, body) in a.graphs.into_iter().enumerate() {
                    let tree = tree.take(field::attribute::GRAPHS, index);
                    bodies.push(self.body(owner, graph, body, tree, &name, index, place)?);
                }
                AttributeValue::Graphs(bodies.into())
            }
            AttributeType::SparseTensors => {
                let mut tensors = Vec::with_capacity(a.sparse_tensors.len());
                for (index, tensor) in a.sparse_tensors.into_iter().enumerate() {
                    tensors.push(self.sparse(
                        owner,
                        tensor,
                        tree.take(field::attribute::SPARSE_TENSORS, index),
                        &name,
                        place,
                    )?);
                }
                AttributeValue::Sparses(tensors.into())
            }
            AttributeType::TypeProtos => {
                let read = |(index, ty)| {
                    Arc::new(types::read_type_attribute(ty, tree.take(field::attribute::TYPE_PROTOS, index)))
                };
                AttributeValue::Types(a.type_protos.iter().enumerate().map(read).collect())
            }
            // `kind_of` never gives it.
            AttributeType::Undefined => AttributeValue::Unknown(Default::default()),
        };
        Ok(Attribute { name, value, doc, extra: rest.finish() })
    }

    fn tensor(
        &mut self,
        owner: Option<NodeId>,
        message: TensorProto,
        tree: Unknown,
        attribute: &str,
        place: &str,
    ) -> Result<Arc<Tensor>, Refusal> {
        let at = || format!("attribute '{attribute}' of {place}");
        let tensor =
            tensors::read_tensor(message, tree, self.files).map_err(|what| self.refuse(at(), what))?;
        self.note_missing(owner, &at(), &tensor.data);
        Ok(tensor.into())
    }

    fn sparse(
        &mut self,
        owner: Option<NodeId>,
        message: SparseTensorProto,
        tree: Unknown,
        attribute: &str,
        place: &str,
    ) -> Result<Arc<SparseTensor>, Refusal> {
        let at = format!("attribute '{attribute}' of {place}");
        let read = tensors::read_sparse(message, tree, self.files);
        let tensor = read.map_err(|what| self.refuse(at.as_str(), what))?;
        for part in [&tensor.values, &tensor.indices] {
            self.note_missing(owner, &at, &part.data);
        }
        Ok(tensor.into())
    }

    #[expect(clippy::too_many_arguments, reason = "all that a body needs to know about where it stands")]
    fn body(
        &mut self,
        owner: Option<NodeId>,
        outer: GraphId,
        message: GraphProto,
        tree: Unknown,
        attribute: &str,
        index: usize,
        place: &str,
    ) -> Result<GraphId, Refusal> {
        let Some(owner) = owner else {
            // `kind_of` keeps graphs without an owning node as they stand.
            return Ok(outer);
        };
        let kind = GraphKind::Body { owner, attribute: attribute.into(), index: index as u32 };
        let id = self.c.add_graph(kind);
        let label = self.body_label(place, attribute);
        self.graph(id, message, tree, label)?;
        Ok(id)
    }
}

impl Exporter<'_> {
    /// The message for an attribute.
    pub(super) fn attribute(&mut self, attribute: &Attribute) -> Result<(AttributeProto, Unknown), Refusal> {
        if let AttributeValue::Unknown(raw) = &attribute.value {
            let kept = extra::decode::<AttributeProto>(raw, MessageKind::Attribute);
            let what = "the bytes that it was kept as are no attribute";
            return kept.ok_or_else(|| Refusal::new(format!("attribute '{}'", attribute.name), what));
        }
        let mut kept = Kept::<AttributeProto>::of(&attribute.extra, MessageKind::Attribute);
        let mut a = AttributeProto {
            name: kept.text(field::attribute::NAME, &attribute.name, true),
            doc_string: kept.text(field::attribute::DOC_STRING, &attribute.doc, false),
            ref_attr_name: kept.text(field::attribute::REF_ATTR_NAME, "", false),
            ..AttributeProto::default()
        };
        let kind = self.attribute_value(attribute, &mut kept, &mut a)?;
        if let Some(kind) = kind {
            a.r#type = kept.present(field::attribute::TYPE, true, true).then_some(kind as i32);
        }
        Ok((a, kept.tree))
    }

    /// Fills the value; gives its kind, none for a reference, which has stated its own.
    fn attribute_value(
        &mut self,
        attribute: &Attribute,
        kept: &mut Kept<AttributeProto>,
        a: &mut AttributeProto,
    ) -> Result<Option<AttributeType>, Refusal> {
        let refuse = |what: String| Refusal::new(format!("attribute '{}'", attribute.name), what);
        let kind = match &attribute.value {
            AttributeValue::Float(v) => {
                a.f = kept.present(field::attribute::F, v.to_bits() == 0, true).then_some(*v);
                AttributeType::Float
            }
            AttributeValue::Int(v) => {
                a.i = kept.int(field::attribute::I, *v, true);
                AttributeType::Int
            }
            AttributeValue::String(v) => {
                a.s = kept.present(field::attribute::S, v.is_empty(), true).then(|| v.clone());
                AttributeType::String
            }
            AttributeValue::Tensor(tensor) => {
                let (tensor, tree) = tensors::write_tensor(tensor, self.placement).map_err(refuse)?;
                kept.tree.put(field::attribute::T, 0, tree);
                a.t = Some(tensor.into());
                AttributeType::Tensor
            }
            AttributeValue::Graph(body) => {
                let (body, tree) = self.graph(*body)?;
                kept.tree.put(field::attribute::G, 0, tree);
                a.g = Some(body.into());
                AttributeType::Graph
            }
            AttributeValue::Sparse(tensor) => {
                let (tensor, tree) = tensors::write_sparse(tensor, None, self.placement).map_err(refuse)?;
                kept.tree.put(field::attribute::SPARSE_TENSOR, 0, tree);
                a.sparse_tensor = Some(tensor.into());
                AttributeType::SparseTensor
            }
            AttributeValue::Type(declaration) => {
                let (ty, tree) = types::write_typed(declaration);
                kept.tree.put(field::attribute::TP, 0, tree);
                a.tp = Some(ty.unwrap_or_default().into());
                AttributeType::TypeProto
            }
            AttributeValue::Floats(v) => {
                a.floats = v.to_vec();
                AttributeType::Floats
            }
            AttributeValue::Ints(v) => {
                a.ints = v.to_vec();
                AttributeType::Ints
            }
            AttributeValue::Strings(v) => {
                a.strings = v.to_vec();
                AttributeType::Strings
            }
            AttributeValue::Tensors(tensors) => {
                for (index, tensor) in tensors.iter().enumerate() {
                    let (tensor, tree) = tensors::write_tensor(tensor, self.placement).map_err(refuse)?;
                    kept.tree.put(field::attribute::TENSORS, index, tree);
                    a.tensors.push(tensor);
                }
                AttributeType::Tensors
            }
            AttributeValue::Graphs(bodies) => {
                for (index, body) in bodies.iter().enumerate() {
                    let (body, tree) = self.graph(*body)?;
                    kept.tree.put(field::attribute::GRAPHS, index, tree);
                    a.graphs.push(body);
                }
                AttributeType::Graphs
            }
            AttributeValue::Sparses(sparses) => {
                for (index, sparse) in sparses.iter().enumerate() {
                    let (sparse, tree) =
                        tensors::write_sparse(sparse, None, self.placement).map_err(refuse)?;
                    kept.tree.put(field::attribute::SPARSE_TENSORS, index, tree);
                    a.sparse_tensors.push(sparse);
                }
                AttributeType::SparseTensors
            }
            AttributeValue::Types(declarations) => {
                for (index, declaration) in declarations.iter().enumerate() {
                    let (ty, tree) = types::write_typed(declaration);
                    kept.tree.put(field::attribute::TYPE_PROTOS, index, tree);
                    a.type_protos.push(ty.unwrap_or_default());
                }
                AttributeType::TypeProtos
            }
            AttributeValue::Reference { name, kind } => {
                a.ref_attr_name = Some(name.to_string());
                a.r#type = kept.int(field::attribute::TYPE, (*kind).into(), true).map(|v| v as i32);
                return Ok(None);
            }
            // Written by the caller as it was kept.
            AttributeValue::Unknown(_) => return Ok(None),
        };
        Ok(Some(kind))
    }
}

//! Weights by reference: the place of a tensor in a model, and its digest.

use super::{PrintOptions, Weights};
use crate::ir::attribute::AttributeValue;
use crate::ir::ids::{GraphId, Text};
use crate::ir::model::Model;
use crate::ir::tensor::{Constant, Data, Encoding, SparseTensor, Tensor};
use std::collections::BTreeMap;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_128;

/// Path of the graph that a reference without one means.
pub(super) const MAIN: &str = "main";

/// Place of a tensor in a model.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    /// As [`Model::graph_path`] gives it.
    pub graph: Text,
    /// The initializer, or with an attribute the first output of the node that has it.
    pub value: Text,
    /// Name of the node's attribute, and position in its list when it has one.
    pub attribute: Option<(Text, u32)>,
    /// `Some(true)` for the indices, `Some(false)` for the values of a sparse tensor.
    pub indices: Option<bool>,
}

impl Reference {
    /// The tensor in a model, `None` when there is none at that place.
    pub fn find(&self, model: &Model) -> Option<Arc<Tensor>> {
        let at_path = |id: &GraphId| model.graph_path(*id) == *self.graph;
        self.find_in(model, model.live_graphs().into_iter().find(at_path)?)
    }

    fn find_in(&self, model: &Model, graph: GraphId) -> Option<Arc<Tensor>> {
        let value = model.get_value(model.find_value(graph, &self.value)?)?;
        if value.graph != graph {
            return None;
        }
        let part = |sparse: &SparseTensor| {
            Some(Arc::new(if self.indices? { sparse.indices.clone() } else { sparse.values.clone() }))
        };
        let whole = self.indices.is_none();
        match &self.attribute {
            None => match value.constant.as_ref()? {
                Constant::Dense(t) => whole.then(|| t.clone()),
                Constant::Sparse(s) => part(s),
            },
            Some((name, index)) => match model.get_node(value.node()?.0)?.attribute(name)? {
                AttributeValue::Tensor(t) => whole.then(|| t.clone()),
                AttributeValue::Tensors(list) => list.get(*index as usize).filter(|_| whole).cloned(),
                AttributeValue::Sparse(s) => part(s),
                AttributeValue::Sparses(list) => part(list.get(*index as usize)?),
                _ => None,
            },
        }
    }
}

/// xxh3-128 of a tensor's bytes; `None` for strings and missing data.
pub(super) fn digest(tensor: &Tensor) -> Option<String> {
    tensor.bytes().map(|b| format!("{:032x}", xxh3_128(b)))
}

/// The file that references name, opened.
pub(super) struct Source<'a> {
    file: &'a str,
    model: &'a Model,
    graphs: BTreeMap<String, GraphId>,
}

impl<'a> Source<'a> {
    pub fn new(options: &PrintOptions<'a>) -> Option<Source<'a>> {
        let (file, model) = options.source?;
        let graphs = model.live_graphs().into_iter().map(|id| (model.graph_path(id), id)).collect();
        Some(Source { file, model, graphs })
    }
}

/// The reference to print for a tensor, with the encoding that the tensor has in the file it names; `None` when the data
/// goes into the text.
pub(super) fn reference_text(
    tensor: &Tensor,
    place: &Reference,
    weights: Weights,
    source: Option<&Source<'_>>,
) -> Option<(String, Encoding)> {
    let source = source?;
    let inline = match weights {
        Weights::Inline => true,
        Weights::Small(limit) => tensor.element_count().is_some_and(|n| n <= limit),
        Weights::Reference => false,
    };
    if inline || !matches!(tensor.data, Data::Bytes(_)) {
        return None;
    }
    // What a pass made is not in the file, even where it kept a name.
    let found = place.find_in(source.model, *source.graphs.get(&*place.graph)?)?;
    found.same_content(tensor).then_some(())?;
    let quoted = super::write::quoted;
    let mut entries = vec![("model", quoted(source.file))];
    if &*place.graph != MAIN {
        entries.push(("graph", quoted(&place.graph)));
    }
    entries.push(("value", quoted(&place.value)));
    if let Some((name, index)) = &place.attribute {
        entries.push(("attribute", quoted(name)));
        if *index != 0 {
            entries.push(("index", quoted(&index.to_string())));
        }
    }
    if let Some(indices) = place.indices {
        entries.push(("part", quoted(if indices { "indices" } else { "values" })));
    }
    entries.push(("xxh3", quoted(&digest(tensor)?)));
    let entries: Vec<String> = entries.into_iter().map(|(k, v)| format!("\"{k}\": {v}")).collect();
    Some((format!("[{}]", entries.join(", ")), found.encoding.clone()))
}

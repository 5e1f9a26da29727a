//! A copy of a model for a runtime to load: nodes named as the caller wishes, further values given out.

use super::export::{Exported, export};
use super::external::{DataWriter, Inline, Placement, Selection};
use super::proto::ValueInfoProto;
use super::schema::MessageKind;
use super::wire;
use crate::formats::error::{FormatError, Refusal};
use crate::formats::file;
use crate::ir::{Constant, Model, NodeId, Text};
use prost::Message;
use std::collections::BTreeMap;
use std::path::Path;

/// Weights beyond this go into a file of their own: protobuf readers refuse messages of 2 GiB.
const INLINE_BYTES: u64 = 1 << 30;

/// Smaller tensors stay in the model even then.
const SMALL_TENSOR: u64 = 1024;

/// Writes `model` to `path`, nodes named as `names` says, and `outputs` (values of the main graph, by name) given out
/// after the model's own. Unlike [`super::save::save`] it does not read the file back: the copy is for one run, and a
/// runtime that cannot read it says so.
pub fn write(
    model: &Model,
    path: &Path,
    names: &BTreeMap<NodeId, Text>,
    outputs: &[Text],
) -> Result<(), FormatError> {
    let refused = |refusal: Refusal| refusal.unwritable(path);
    let weights: u64 = model
        .values()
        .filter_map(|(_, value)| match &value.constant {
            Some(Constant::Dense(tensor)) => Some(tensor.byte_count()),
            _ => None,
        })
        .sum();
    let mut writer = None;
    let placement: &mut dyn Placement = match weights > INLINE_BYTES {
        true => {
            let location = format!("{}.data", path.file_name().unwrap_or_default().to_string_lossy());
            let target = file::folder_of(path).join(&location);
            writer.insert(DataWriter::new(&target, &location, Selection::FromBytes(SMALL_TENSOR)))
        }
        false => &mut Inline,
    };
    let Exported { mut message, unknown } = export(model, placement, names).map_err(refused)?;
    if let Some(graph) = &mut message.graph {
        let more = outputs
            .iter()
            .map(|name| ValueInfoProto { name: Some(name.to_string()), ..ValueInfoProto::default() });
        graph.output.extend(more);
    }
    let plain = message.encode_to_vec();
    let bytes = match unknown.is_empty() {
        true => plain,
        false => wire::restore(&plain, MessageKind::Model, &unknown)
            .map_err(|error| Refusal::new("model", error.to_string()).unwritable(path))?,
    };
    if let Some(writer) = writer {
        let written = writer.finish().map_err(|error| FormatError::write(path, error))?;
        if let Some(data) = written {
            data.file.put_in_place().map_err(|error| FormatError::write(path, error))?;
        }
    }
    file::replace(path, &bytes).map_err(|error| FormatError::write(path, error))
}

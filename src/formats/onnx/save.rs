//! Saving: written beside, read back by two readers, then renamed, so that an existing file is only ever replaced whole.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use prost::Message;
use xxhash_rust::xxh3::xxh3_64;

use super::export::{Exported, export};
use super::external::{DataWriter, Entries, Placement, Selection, WrittenData, goes_out};
use super::proto::{AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto};
use super::schema::MessageKind;
use super::wire::Unknown;
use super::{second_reader, wire};
use crate::formats::error::{FormatError, Refusal};
use crate::formats::file::{self, NewFile};
use crate::formats::{DataPlacement, Renamed, SaveOptions, SaveReport};
use crate::ir::tensor::{Encoding, Tensor};
use crate::ir::{Constant, Model, NodeId, Text};

/// Protobuf readers refuse messages of 2 GiB and more.
const LARGEST_MESSAGE: usize = i32::MAX as usize;

/// Smaller tensors stay in the model when the others leave it: runtimes read them while they load the structure.
const SMALL_TENSOR: u64 = 1024;

/// Writes `model` to `path`.
pub fn save(model: &Model, path: &Path, options: &SaveOptions) -> Result<SaveReport, FormatError> {
    let Some(file_name) = path.file_name().and_then(|name| name.to_str()).filter(|_| !path.is_dir()) else {
        let source = std::io::Error::other("it is not a file's name");
        return Err(FormatError::write(path, source));
    };
    let renamed = if options.unique_node_names { unique_names(model) } else { BTreeMap::new() };
    let (exported, data) = place_and_export(model, path, file_name, options, &renamed)?;
    let Exported { message, unknown } = exported;
    if let Some(place) = foreign_data(&message, data.as_ref().map(|data| data.location.as_str())) {
        let what = "its data is in an external file that would not be next to the saved model";
        return Err(Refusal::new(place, what).unwritable(path));
    }
    let plain = message.encode_to_vec();
    // The digest stands for it from here on: what is read back needs the room.
    drop(message);
    let plain_digest = xxh3_64(&plain);
    let bytes = if unknown.is_empty() {
        plain
    } else {
        let restored = wire::restore(&plain, MessageKind::Model, &unknown);
        restored.map_err(|error| FormatError::Verify { path: path.to_owned(), what: error.to_string() })?
    };
    let mut beside = NewFile::beside(path).map_err(|error| FormatError::write(path, error))?;
    let written = beside.write_all(&bytes).and_then(|()| beside.file().sync_all());
    written.map_err(|error| FormatError::write(path, error))?;
    let (length, digest) = (bytes.len() as u64, xxh3_64(&bytes));
    drop(bytes);
    verify(beside.path(), digest, plain_digest, &unknown, data.as_ref())
        .map_err(|what| FormatError::Verify { path: path.to_owned(), what })?;
    let data_file = data.as_ref().map(|data| (data.path.clone(), data.written.bytes));
    put_in_place(beside, data).map_err(|error| FormatError::write(path, error))?;
    let renamed =
        renamed.into_iter().map(|(node, to)| Renamed { node, from: model.node(node).name.clone(), to });
    Ok(SaveReport { path: path.to_owned(), bytes: length, data_file, renamed: renamed.collect() })
}

/// The data file of a model that is being saved, not yet in its place.
struct PlacedData {
    path: PathBuf,
    location: String,
    written: WrittenData,
}

fn place_and_export(
    model: &Model,
    path: &Path,
    file_name: &str,
    options: &SaveOptions,
    renamed: &BTreeMap<NodeId, Text>,
) -> Result<(Exported, Option<PlacedData>), FormatError> {
    let refused = |refusal: Refusal| refusal.unwritable(path);
    let mut selection = match options.data {
        DataPlacement::Inline => None,
        DataPlacement::AsImported => Some(Selection::Imported),
        DataPlacement::OneFile => Some(Selection::FromBytes(SMALL_TENSOR)),
    };
    let mut measure = Measure { selection, external: false };
    let measured = export(model, &mut measure, renamed).map_err(refused)?;
    let mut external = measure.external;
    if measured.message.encoded_len() > LARGEST_MESSAGE {
        selection = Some(Selection::FromBytes(SMALL_TENSOR));
        external = true;
    }
    let Some(selection) = selection.filter(|_| external) else { return Ok((measured, None)) };
    let (data_path, location) = data_path(model, path, file_name, options);
    let mut writer = DataWriter::new(&data_path, &location, selection);
    let exported = export(model, &mut writer, renamed).map_err(refused)?;
    let written = writer.finish().map_err(|error| FormatError::write(&data_path, error))?;
    if exported.message.encoded_len() > LARGEST_MESSAGE {
        let what = "without its tensors it is still larger than the 2 GiB that protobuf readers accept";
        return Err(refused(Refusal::new("model", what)));
    }
    Ok((exported, written.map(|written| PlacedData { path: data_path, location, written })))
}

/// A dry run: which tensors would leave the model.
struct Measure {
    selection: Option<Selection>,
    external: bool,
}

impl Placement for Measure {
    fn place(&mut self, tensor: &Tensor) -> Result<Option<Entries>, String> {
        let Some(selection) = self.selection else { return Ok(None) };
        if goes_out(selection, tensor).is_none() {
            return Ok(None);
        }
        self.external = true;
        Ok(Some(Vec::new()))
    }
}

/// Where the data goes: `OUT.data`, unless that file belongs to something else than the model that is replaced.
fn data_path(model: &Model, path: &Path, file_name: &str, options: &SaveOptions) -> (PathBuf, String) {
    let folder = file::folder_of(path);
    let mut location = format!("{file_name}.data");
    let mut number = 1;
    while folder.join(&location).symlink_metadata().is_ok() && !may_replace(model, path, &location, options) {
        location = format!("{file_name}.{number}.data");
        number += 1;
    }
    (folder.join(&location), location)
}

/// True when the data file `location` beside `path` belongs to the model file at `path`, and not to the model that is
/// being saved under another name.
fn may_replace(model: &Model, path: &Path, location: &str, options: &SaveOptions) -> bool {
    let target = file::folder_of(path).join(location);
    let Ok(target) = target.canonicalize() else { return false };
    let same_file = options.source.as_ref().is_some_and(|source| {
        matches!((source.canonicalize(), path.canonicalize()), (Ok(source), Ok(path)) if source == path)
    });
    if let Some(source) = options.source.as_ref().filter(|_| !same_file) {
        let folder = file::folder_of(source);
        let locations = external_locations(model);
        if locations.iter().any(|l| folder.join(&**l).canonicalize().is_ok_and(|file| file == target)) {
            return false;
        }
    }
    let Ok(old) = file::read(path) else { return false };
    let Ok(old) = ModelProto::decode(old) else { return false };
    let mut found = false;
    each_tensor(&old, &mut |_, tensor| found |= location_of(tensor) == Some(location));
    found
}

fn external_locations(model: &Model) -> BTreeSet<Text> {
    let mut found = BTreeSet::new();
    for (_, value) in model.values() {
        if let Some(Constant::Dense(tensor)) = &value.constant
            && let Encoding::External(entries) = &tensor.encoding
        {
            found.extend(
                entries.iter().filter(|(key, _)| &**key == "location").map(|(_, value)| value.clone()),
            );
        }
    }
    found
}

/// The place of a tensor that refers to another data file than `ours`.
fn foreign_data(message: &ModelProto, ours: Option<&str>) -> Option<String> {
    let mut found = None;
    each_tensor(message, &mut |place, tensor| {
        if location_of(tensor).is_some_and(|location| Some(location) != ours) && found.is_none() {
            found = Some(format!("tensor '{}' in {place}", tensor.name.as_deref().unwrap_or_default()));
        }
    });
    found
}

fn location_of(tensor: &TensorProto) -> Option<&str> {
    if tensor.data_location != Some(super::proto::tensor_proto::DataLocation::External as i32) {
        return None;
    }
    let entry = tensor.external_data.iter().find(|entry| entry.key.as_deref() == Some("location"));
    Some(entry.and_then(|entry| entry.value.as_deref()).unwrap_or_default())
}

/// Visits all tensors of a model, those kept unread included.
fn each_tensor(model: &ModelProto, visit: &mut dyn FnMut(&str, &TensorProto)) {
    if let Some(graph) = &model.graph {
        in_graph(graph, "the graph", visit);
    }
    for training in &model.training_info {
        for graph in training.initialization.iter().chain(&training.algorithm) {
            in_graph(graph, "the training info", visit);
        }
    }
    for function in &model.functions {
        in_attributes(&function.attribute_proto, "a function", visit);
        in_nodes(&function.node, "a function", visit);
    }
}

fn in_graph(graph: &GraphProto, place: &str, visit: &mut dyn FnMut(&str, &TensorProto)) {
    let sparse = graph.sparse_initializer.iter().flat_map(|s| s.values.iter().chain(&s.indices));
    graph.initializer.iter().chain(sparse).for_each(|tensor| visit(place, tensor));
    in_nodes(&graph.node, place, visit);
}

fn in_nodes(nodes: &[NodeProto], place: &str, visit: &mut dyn FnMut(&str, &TensorProto)) {
    nodes.iter().for_each(|node| in_attributes(&node.attribute, place, visit));
}

fn in_attributes(attributes: &[AttributeProto], place: &str, visit: &mut dyn FnMut(&str, &TensorProto)) {
    for a in attributes {
        let sparse = a.sparse_tensor.iter().map(|s| &**s).chain(&a.sparse_tensors);
        let sparse = sparse.flat_map(|s| s.values.iter().chain(&s.indices));
        a.t.iter().map(|t| &**t).chain(&a.tensors).chain(sparse).for_each(|tensor| visit(place, tensor));
        a.g.iter().map(|g| &**g).chain(&a.graphs).for_each(|graph| in_graph(graph, place, visit));
    }
}

/// Reads the new files back: by their digests, by our own reader, and in structure and weights by the second one.
fn verify(
    model: &Path,
    digest: u64,
    plain_digest: u64,
    unknown: &Unknown,
    data: Option<&PlacedData>,
) -> Result<(), String> {
    let bytes = file::read(model).map_err(|error| error.to_string())?;
    if xxh3_64(&bytes) != digest {
        return Err("the bytes on disk are not those that were written".to_owned());
    }
    let tree = wire::scan(&bytes, MessageKind::Model).map_err(|error| error.to_string())?;
    if tree != *unknown {
        return Err("the fields kept unread are not those that were written".to_owned());
    }
    let message = ModelProto::decode(bytes.clone()).map_err(|error| error.to_string())?;
    if xxh3_64(&message.encode_to_vec()) != plain_digest {
        return Err("our own reader sees other fields than were written".to_owned());
    }
    second_reader::compare(&bytes, &message)?;
    if let Some(data) = data {
        let read = file::digest(data.written.file.path()).map_err(|error| error.to_string())?;
        if read != (data.written.digest, data.written.bytes) {
            return Err("the bytes of the data file are not those that were written".to_owned());
        }
    }
    Ok(())
}

/// Renames the new files to their places. Should the second rename fail, the old data file comes back.
fn put_in_place(model: NewFile, data: Option<PlacedData>) -> std::io::Result<()> {
    let Some(data) = data else { return model.put_in_place() };
    let old_data = match data.path.symlink_metadata() {
        Ok(_) => Some(file::set_aside(&data.path)?),
        Err(_) => None,
    };
    let placed = data.written.file.put_in_place().and_then(|()| model.put_in_place());
    if placed.is_err() {
        match old_data {
            Some(backup) => fs::rename(&backup, &data.path)?,
            // A data file that no model refers to helps nobody.
            None => drop(fs::remove_file(&data.path)),
        }
    }
    placed
}

/// New names for nodes so that in the main graph with its bodies, and in each function with its, no two are called the
/// same; the first of equal ones keeps its name, and nodes without one stay without.
pub fn unique_names(model: &Model) -> BTreeMap<NodeId, Text> {
    let mut taken: BTreeSet<Text> = model.all_nodes().iter().map(|id| model.node(*id).name.clone()).collect();
    let mut renamed = BTreeMap::new();
    let mut seen: BTreeSet<Text> = BTreeSet::new();
    for graph in model.live_graphs() {
        if model.owner_of(graph).is_none() {
            seen.clear();
        }
        for (id, node) in model.nodes_of(graph) {
            if node.name.is_empty() || seen.insert(node.name.clone()) {
                continue;
            }
            let fresh =
                (1u64..).map(|k| Text::from(format!("{}_{k}", node.name))).find(|name| !taken.contains(name));
            if let Some(name) = fresh {
                taken.insert(name.clone());
                renamed.insert(id, name);
            }
        }
    }
    renamed
}

//! Opening and saving changes nothing, on every shared model and case; hostile files are each refused in one sentence.

use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use passlens::formats::onnx::proto::ModelProto;
use passlens::formats::onnx::schema::MessageKind;
use passlens::formats::onnx::{second_reader, wire};
use passlens::formats::{self, DataPlacement, SaveOptions};
use passlens::ir::check::check;
use passlens::ir::{Constant, Model};
use prost::Message;

/// The folder with models and cases beside the package; tests that walk it say so and pass where it is not there.
fn shared() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared");
    if !folder.is_dir() {
        eprintln!("skipped: {} is not there", folder.display());
        return None;
    }
    Some(folder)
}

fn onnx_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|e| e == "onnx")).collect();
    files.sort();
    files
}

/// Cases that must be refused, by the `checks` column of the index.
fn hostile(shared: &Path) -> Vec<PathBuf> {
    let index = fs::read_to_string(shared.join("cases/index.tsv")).unwrap();
    let hostile = index.lines().filter(|line| line.contains("\"hostile\":true"));
    hostile.map(|line| shared.join("cases").join(line.split('\t').nth(1).unwrap())).collect()
}

fn decode(path: &Path) -> (ModelProto, wire::Unknown) {
    let bytes = Bytes::from(fs::read(path).unwrap());
    let unknown = wire::scan(&bytes, MessageKind::Model).unwrap();
    (ModelProto::decode(bytes).unwrap(), unknown)
}

/// Without the fields of external tensors that a save must change.
fn without_places(mut model: ModelProto) -> ModelProto {
    for tensor in model.graph.iter_mut().flat_map(|graph| &mut graph.initializer) {
        if tensor.data_location == Some(1) {
            tensor.external_data.clear();
        }
    }
    model
}

fn weights(model: &Model) -> Vec<&Constant> {
    model.values().filter_map(|(_, value)| value.constant.as_ref()).collect()
}

fn save(model: &Model, out: &Path, source: &Path) {
    let options = SaveOptions { source: Some(source.to_owned()), ..SaveOptions::default() };
    let report = formats::save(model, out, &options).unwrap_or_else(|error| panic!("{error}"));
    assert!(report.renamed.is_empty());
}

fn assert_identity(path: &Path, out: &Path) {
    let opened = formats::open(path).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(check(&opened.model), [], "{}", path.display());
    save(&opened.model, out, path);
    if path.ends_with("unsorted_nodes.onnx") {
        assert!(opened.problems.iter().any(|problem| problem.text.contains("sorted")));
        return;
    }
    let (before, after) = (decode(path), decode(out));
    assert_eq!(before.1, after.1, "unknown fields of {}", path.display());
    let (before, after) = (without_places(before.0), without_places(after.0));
    assert!(before.encode_to_vec() == after.encode_to_vec(), "{} changed", path.display());
    second_reader::compare(&fs::read(path).unwrap(), &decode(path).0).unwrap();
    let again = formats::open(out).unwrap();
    let (old, new) = (weights(&opened.model), weights(&again.model));
    assert_eq!(old.len(), new.len());
    for (old, new) in old.into_iter().zip(new) {
        let same = match (old, new) {
            (Constant::Dense(old), Constant::Dense(new)) => old.same_content(new),
            (Constant::Sparse(old), Constant::Sparse(new)) => old.same_content(new),
            _ => false,
        };
        assert!(same, "a weight of {} changed", path.display());
    }
    let json = out.with_extension("json");
    save(&opened.model, &json, path);
    let through_json = formats::open(&json).unwrap_or_else(|error| panic!("{error}"));
    let inline = SaveOptions { data: DataPlacement::Inline, ..SaveOptions::default() };
    for (model, name) in [(&opened.model, "direct.onnx"), (&through_json.model, "through_json.onnx")] {
        formats::save(model, &out.with_file_name(name), &inline).unwrap();
    }
    let both = ["direct.onnx", "through_json.onnx"].map(|name| fs::read(out.with_file_name(name)).unwrap());
    assert!(both[0] == both[1], "{} changed by way of JSON", path.display());
    let first = fs::read(out).unwrap();
    save(&again.model, out, out);
    assert!(fs::read(out).unwrap() == first, "{} is not byte-stable", path.display());
}

#[test]
fn shared_models_come_out_as_they_went_in() {
    let Some(shared) = shared() else { return };
    let folder = tempfile::tempdir().unwrap();
    let files = onnx_files(&shared.join("models"));
    assert!(files.len() > 40);
    for path in files {
        assert_identity(&path, &folder.path().join(path.file_name().unwrap()));
    }
}

#[test]
fn valid_cases_come_out_as_they_went_in() {
    let Some(shared) = shared() else { return };
    let folder = tempfile::tempdir().unwrap();
    let hostile = hostile(&shared);
    let files = [onnx_files(&shared.join("cases")), onnx_files(&shared.join("cases/ext"))].concat();
    for path in files.into_iter().filter(|path| !hostile.contains(path)) {
        assert_identity(&path, &folder.path().join(path.file_name().unwrap()));
    }
}

#[test]
fn hostile_cases_are_refused_in_one_sentence() {
    let Some(shared) = shared() else { return };
    let hostile = hostile(&shared);
    assert!(hostile.len() >= 8);
    for path in hostile {
        let error = formats::open(&path).map(|_| ()).expect_err(&path.display().to_string()).to_string();
        println!("{error}");
        assert!(error.contains(path.file_name().unwrap().to_str().unwrap()), "{error}");
        assert!(!error.contains('\n') && error.len() < 400, "{error}");
    }
}

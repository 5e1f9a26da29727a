//! Files as people have them: external data, saving over things, odd presence and newer fields, and files that are bad.

use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use passlens::formats::onnx::export::export;
use passlens::formats::onnx::external::Inline;
use passlens::formats::onnx::proto::{
    GraphProto, ModelProto, NodeProto, OperatorSetIdProto, StringStringEntryProto, TensorProto,
    ValueInfoProto,
};
use passlens::formats::onnx::schema::MessageKind;
use passlens::formats::onnx::wire;
use passlens::formats::{self, DataPlacement, FormatError, Imported, SaveOptions, Severity, json, onnx};
use passlens::ir::tensor::Data;
use passlens::ir::{Constant, Tensor};
use prost::Message;
use tempfile::TempDir;

const FLOAT: i32 = 1;

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn node(name: &str, op_type: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect();
    NodeProto {
        name: text(name),
        op_type: text(op_type),
        input: names(inputs),
        output: names(outputs),
        ..NodeProto::default()
    }
}

fn port(name: &str) -> ValueInfoProto {
    ValueInfoProto { name: text(name), ..ValueInfoProto::default() }
}

/// A model with input `x`, output `y` and these nodes.
fn model(nodes: Vec<NodeProto>) -> ModelProto {
    ModelProto {
        ir_version: Some(8),
        opset_import: vec![OperatorSetIdProto { domain: text(""), version: Some(17) }],
        graph: Some(GraphProto {
            name: text("g"),
            input: vec![port("x")],
            output: vec![port("y")],
            node: nodes,
            ..GraphProto::default()
        }),
        ..ModelProto::default()
    }
}

fn float_tensor(name: &str, elements: &[f32]) -> TensorProto {
    TensorProto {
        name: text(name),
        dims: vec![elements.len() as i64],
        data_type: Some(FLOAT),
        raw_data: Some(elements.iter().flat_map(|v| v.to_le_bytes()).collect()),
        ..TensorProto::default()
    }
}

fn external_tensor(name: &str, elements: i64, entries: &[(&str, &str)]) -> TensorProto {
    let entry = |(key, value): &(&str, &str)| StringStringEntryProto { key: text(key), value: text(value) };
    TensorProto {
        name: text(name),
        dims: vec![elements],
        data_type: Some(FLOAT),
        data_location: Some(1),
        external_data: entries.iter().map(entry).collect(),
        ..TensorProto::default()
    }
}

fn with_weights(weights: Vec<TensorProto>) -> ModelProto {
    let mut model = model(vec![node("add", "Add", &["x", "w"], &["y"])]);
    if let Some(graph) = &mut model.graph {
        graph.initializer = weights;
    }
    model
}

fn read(model: &ModelProto) -> Result<Imported, FormatError> {
    onnx::read(model.encode_to_vec().into(), Path::new("model.onnx"), None)
}

fn refusal(model: &ModelProto) -> String {
    read(model).map(|_| ()).unwrap_err().to_string()
}

fn write(folder: &TempDir, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    path
}

fn save(imported: &Imported, path: &Path, source: &Path) -> formats::SaveReport {
    let options = SaveOptions { source: Some(source.to_owned()), ..SaveOptions::default() };
    formats::save(&imported.model, path, &options).unwrap()
}

fn weight(path: &Path) -> Vec<f32> {
    let model = formats::open(path).unwrap().model;
    let found = model.values().find(|(_, value)| &*value.name == "w").unwrap().1.constant.clone();
    found.as_ref().and_then(Constant::dense).and_then(|tensor| tensor.as_f32()).unwrap()
}

fn names_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Every kind of attribute and element type, fields set to their defaults, entries without keys, value_info about
/// nothing, annotations, training info, device configurations, and fields of a newer schema in every message.
#[test]
fn what_files_may_hold_survives() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["attributes", "presence", "dtypes", "unknown"] {
        let document = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/formats/{name}.json"));
        let text = fs::read(&document).unwrap();
        let original: Bytes = json::to_protobuf(&text).unwrap().into();
        let source = write(&folder, "source.onnx", &original);
        let imported = formats::open(&source).unwrap();
        let (saved, again) = (folder.path().join("saved.onnx"), folder.path().join("again.json"));
        save(&imported, &saved, &source);
        let bytes = Bytes::from(fs::read(&saved).unwrap());
        let fields = |bytes: &Bytes| ModelProto::decode(bytes.clone()).unwrap().encode_to_vec();
        assert!(fields(&bytes) == fields(&original), "{name}");
        let unknown = |bytes: &Bytes| wire::scan(bytes, MessageKind::Model).unwrap();
        assert_eq!(unknown(&bytes), unknown(&original), "{name}");
        assert_eq!(name == "unknown", !unknown(&bytes).is_empty());
        save(&formats::open(&saved).unwrap(), &again, &saved);
        assert!(fs::read(&again).unwrap() == text, "{name} by way of JSON");
    }
}

#[test]
fn external_data_is_read_where_it_lies() {
    let folder = tempfile::tempdir().unwrap();
    let bytes: Vec<u8> = [0.0f32, 1.0, 2.0, 3.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    write(&folder, "data.bin", bytes);
    for (entries, expected) in [
        (vec![("location", "data.bin")], [0.0, 1.0]),
        (vec![("location", "./data.bin"), ("offset", "8"), ("length", "8")], [2.0, 3.0]),
    ] {
        let path =
            write(&folder, "m.onnx", with_weights(vec![external_tensor("w", 2, &entries)]).encode_to_vec());
        assert_eq!(weight(&path), expected);
    }
}

#[test]
fn external_data_outside_the_folder_or_the_file_is_refused() {
    let outer = tempfile::tempdir().unwrap();
    write(&outer, "outside.bin", [0u8; 64]);
    let inner = outer.path().join("inner");
    fs::create_dir(&inner).unwrap();
    fs::write(inner.join("data.bin"), [0u8; 16]).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("../outside.bin", inner.join("link.bin")).unwrap();
    let absolute = outer.path().join("outside.bin").display().to_string();
    let cases: [(&[(&str, &str)], &str); 9] = [
        (&[("location", "../outside.bin")], "leads out of the folder by '..'"),
        (&[("location", "a/../../outside.bin")], "leads out of the folder by '..'"),
        (&[("location", &absolute)], "is an absolute path"),
        (&[("location", "")], "is empty"),
        (&[], "without a location"),
        (
            &[("location", "data.bin"), ("offset", "12"), ("length", "8")],
            "beyond the end of 'data.bin' (16 bytes)",
        ),
        (&[("location", "data.bin"), ("offset", "18446744073709551615"), ("length", "8")], "beyond the end"),
        (&[("location", "data.bin"), ("offset", "-4")], "offset '-4' is not a number"),
        (&[("location", "data.bin"), ("length", "4")], "has length 4, the dims need 8 bytes"),
    ];
    let linked: [(&[(&str, &str)], &str); 1] = [(&[("location", "link.bin")], "is a link out of the folder")];
    for (entries, expected) in cases.into_iter().chain(linked.into_iter().filter(|_| cfg!(unix))) {
        let path = inner.join("m.onnx");
        fs::write(&path, with_weights(vec![external_tensor("w", 2, entries)]).encode_to_vec()).unwrap();
        let error = formats::open(&path).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("m.onnx: initializer 'w': ") && error.contains(expected), "{error}");
    }
}

#[test]
fn a_model_without_its_data_file_can_be_looked_at_but_not_saved() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(
        &folder,
        "m.onnx",
        with_weights(vec![external_tensor("w", 2, &[("location", "gone.bin")])]).encode_to_vec(),
    );
    let imported = formats::open(&path).unwrap();
    let problem = imported.unusable().unwrap();
    assert_eq!(problem.severity, Severity::Error);
    assert!(
        problem.text.starts_with("initializer 'w': the data file 'gone.bin' cannot be read"),
        "{}",
        problem.text
    );
    let constant = imported.model.value(problem.value.unwrap()).constant.clone().unwrap();
    assert!(matches!(constant.dense().unwrap().data, Data::Missing(_)));
    for name in ["out.onnx", "out.json"] {
        let error =
            formats::save(&imported.model, &folder.path().join(name), &SaveOptions::default()).unwrap_err();
        assert!(error.to_string().contains("initializer 'w': the data file 'gone.bin'"), "{error}");
    }
    assert_eq!(names_in(folder.path()), ["m.onnx"]);
}

#[test]
fn data_stays_external_and_next_to_the_saved_model() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write(&folder, "weights.bin", [0u8, 0, 128, 63, 0, 0, 0, 64]);
    let entries = [("location", "weights.bin"), ("offset", "0"), ("length", "8")];
    // Two tensors in the same bytes share them in the new file as well.
    let weights = vec![external_tensor("w", 2, &entries), external_tensor("v", 2, &entries)];
    let path = write(&folder, "m.onnx", with_weights(weights).encode_to_vec());
    let out = other.path().join("out.onnx");
    let report = save(&formats::open(&path).unwrap(), &out, &path);
    assert_eq!(report.data_file, Some((other.path().join("out.onnx.data"), 8)));
    assert_eq!(names_in(other.path()), ["out.onnx", "out.onnx.data"]);
    assert_eq!(weight(&out), [1.0, 2.0]);
    let inline = SaveOptions { data: DataPlacement::Inline, ..SaveOptions::default() };
    let alone = folder.path().join("alone.onnx");
    assert_eq!(formats::save(&formats::open(&out).unwrap().model, &alone, &inline).unwrap().data_file, None);
    fs::remove_file(folder.path().join("weights.bin")).unwrap();
    assert_eq!(weight(&alone), [1.0, 2.0]);
}

#[test]
fn saving_over_the_input_and_its_data_is_safe() {
    let folder = tempfile::tempdir().unwrap();
    // The input's data file has the name that a save would choose.
    write(&folder, "m.onnx.data", [9u8, 9, 9, 9, 0, 0, 128, 63, 0, 0, 0, 64]);
    let entries = [("location", "m.onnx.data"), ("offset", "4"), ("length", "8")];
    let path =
        write(&folder, "m.onnx", with_weights(vec![external_tensor("w", 2, &entries)]).encode_to_vec());
    let imported = formats::open(&path).unwrap();
    save(&imported, &path, &path);
    assert_eq!(names_in(folder.path()), ["m.onnx", "m.onnx.data"]);
    assert_eq!(fs::read(folder.path().join("m.onnx.data")).unwrap(), [0, 0, 128, 63, 0, 0, 0, 64]);
    assert_eq!(weight(&path), [1.0, 2.0]);
}

#[test]
fn a_data_file_of_somebody_else_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "out.onnx.data", [0u8, 0, 128, 63, 0, 0, 0, 64]);
    let entries = [("location", "out.onnx.data")];
    let path =
        write(&folder, "in.onnx", with_weights(vec![external_tensor("w", 2, &entries)]).encode_to_vec());
    let out = folder.path().join("out.onnx");
    let report = save(&formats::open(&path).unwrap(), &out, &path);
    assert_eq!(report.data_file.unwrap().0, folder.path().join("out.onnx.1.data"));
    assert_eq!((weight(&path), weight(&out)), (vec![1.0, 2.0], vec![1.0, 2.0]));
}

#[test]
fn large_tensors_can_be_put_into_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let large: Vec<f32> = (0..1000).map(|k| k as f32).collect();
    let weights = vec![float_tensor("w", &large), float_tensor("small", &[1.0])];
    let imported = read(&with_weights(weights)).unwrap();
    let out = folder.path().join("out.onnx");
    let options = SaveOptions { data: DataPlacement::OneFile, ..SaveOptions::default() };
    let report = formats::save(&imported.model, &out, &options).unwrap();
    assert_eq!(report.data_file, Some((folder.path().join("out.onnx.data"), 4000)));
    assert_eq!(weight(&out), large);
    formats::save(&imported.model, &out, &options).unwrap();
    assert_eq!(names_in(folder.path()), ["out.onnx", "out.onnx.data"]);
}

#[test]
fn a_failed_save_leaves_nothing_and_replaces_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut broken = with_weights(vec![float_tensor("w", &[1.0, 2.0])]);
    broken.training_info = vec![Default::default()];
    broken.training_info[0].algorithm = Some(GraphProto {
        initializer: vec![external_tensor("t", 2, &[("location", "t.bin")])],
        ..Default::default()
    });
    let imported = read(&broken).unwrap();
    let out = write(&folder, "out.onnx", "before");
    let error = formats::save(&imported.model, &out, &SaveOptions::default()).unwrap_err().to_string();
    assert!(error.contains("tensor 't' in the training info"), "{error}");
    assert_eq!(fs::read(&out).unwrap(), b"before");
    assert_eq!(names_in(folder.path()), ["out.onnx"]);
    for bad in [folder.path().to_owned(), folder.path().join("none/out.onnx")] {
        let error = formats::save(&imported.model, &bad, &SaveOptions::default()).unwrap_err();
        assert!(matches!(error, FormatError::Write { .. } | FormatError::Unwritable { .. }), "{error}");
    }
}

#[test]
fn equal_node_names_are_made_unique_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let nodes = vec![
        node("a", "Relu", &["x"], &["p"]),
        node("a", "Relu", &["p"], &["q"]),
        node("", "Relu", &["q"], &["r"]),
        node("a_1", "Relu", &["r"], &["s"]),
        node("", "Relu", &["s"], &["y"]),
    ];
    let imported = read(&model(nodes)).unwrap();
    let out = folder.path().join("out.onnx");
    let names = |path: &Path| -> Vec<String> {
        let model = formats::open(path).unwrap().model;
        model.nodes_of(model.main()).map(|(_, node)| node.name.to_string()).collect()
    };
    assert!(formats::save(&imported.model, &out, &SaveOptions::default()).unwrap().renamed.is_empty());
    assert_eq!(names(&out), ["a", "a", "", "a_1", ""]);
    let options = SaveOptions { unique_node_names: true, ..SaveOptions::default() };
    let report = formats::save(&imported.model, &out, &options).unwrap();
    assert_eq!(names(&out), ["a", "a_2", "", "a_1", ""]);
    let renamed: Vec<_> = report.renamed.iter().map(|r| (&*r.from, &*r.to)).collect();
    assert_eq!(renamed, [("a", "a_2")]);
}

#[test]
fn nodes_out_of_order_are_sorted_and_it_is_said() {
    let nodes = vec![node("second", "Relu", &["p"], &["y"]), node("first", "Relu", &["x"], &["p"])];
    let imported = read(&model(nodes)).unwrap();
    let order: Vec<String> =
        imported.model.nodes_of(imported.model.main()).map(|(_, node)| node.name.to_string()).collect();
    assert_eq!(order, ["first", "second"]);
    let problem = &imported.problems[0];
    assert_eq!(problem.severity, Severity::Warning);
    assert!(problem.text.contains("node 'second' (Relu)"), "{}", problem.text);
    assert_eq!(&*imported.model.node(problem.node.unwrap()).name, "second");
}

#[test]
fn broken_graphs_are_refused_with_place_and_reason() {
    let cases = [
        (
            model(vec![node("a", "Relu", &["nowhere"], &["y"])]),
            "model.onnx: node 'a' (Relu): input 0 is 'nowhere', which nothing produces",
        ),
        (model(vec![]), "model.onnx: output 0: it is 'y', which nothing produces"),
        (
            model(vec![node("a", "Relu", &["x"], &["y"]), node("", "Exp", &["x"], &["y"])]),
            "model.onnx: node #1 (Exp): it produces 'y', which node 'a' (Relu) gives already",
        ),
        (
            model(vec![node("a", "Relu", &["y"], &["x"])]),
            "model.onnx: node 'a' (Relu): it produces 'x', which a graph input gives already",
        ),
        (
            model(vec![node("a", "Relu", &["y"], &["y"])]),
            "model.onnx: node 'a' (Relu) in main: it is part of a cycle: it reads, through other nodes, what it produces",
        ),
        (
            with_weights(vec![float_tensor("w", &[1.0]), float_tensor("w", &[1.0])]),
            "model.onnx: initializer 'w': two initializers have this name",
        ),
        (
            with_weights(vec![TensorProto { dims: vec![-1], ..float_tensor("w", &[1.0]) }]),
            "model.onnx: initializer 'w': dims [-1] have a negative number",
        ),
        (
            with_weights(vec![TensorProto { float_data: vec![1.0], ..float_tensor("w", &[1.0]) }]),
            "model.onnx: initializer 'w': data stands twice, in raw_data and float_data",
        ),
        (
            with_weights(vec![TensorProto {
                raw_data: None,
                int64_data: vec![1],
                ..float_tensor("w", &[1.0])
            }]),
            "model.onnx: initializer 'w': elements of float stand in int64_data, not in float_data",
        ),
        (
            with_weights(vec![TensorProto { raw_data: None, ..float_tensor("w", &[1.0]) }]),
            "model.onnx: initializer 'w': float_data has 0 entries, 1 elements of float need 1",
        ),
    ];
    for (model, expected) in cases {
        assert_eq!(refusal(&model), expected);
    }
}

/// `If` in `If` in …, `depth` of them; each body gives out what the one inside does.
fn nested(depth: usize) -> GraphProto {
    use passlens::formats::onnx::proto::AttributeProto;
    let output = format!("o{depth}");
    let inner = match depth {
        0 => node("", "Identity", &["x"], &[&output]),
        _ => {
            let branch = |name: &str, body: GraphProto| AttributeProto {
                name: text(name),
                r#type: Some(5),
                g: Some(Box::new(body)),
                ..AttributeProto::default()
            };
            let other = format!("e{depth}");
            let otherwise = GraphProto {
                node: vec![node("", "Identity", &["x"], &[&other])],
                output: vec![port(&other)],
                ..GraphProto::default()
            };
            let bodies = vec![branch("then_branch", nested(depth - 1)), branch("else_branch", otherwise)];
            NodeProto { attribute: bodies, ..node(&format!("if{depth}"), "If", &["x"], &[&output]) }
        }
    };
    GraphProto { node: vec![inner], output: vec![port(&output)], ..GraphProto::default() }
}

/// As deep as protobuf readers go, on the small stack of a test's thread; one deeper is refused.
#[test]
fn bodies_nest_as_deep_as_protobuf_allows() {
    let folder = tempfile::tempdir().unwrap();
    let deep = |depth| {
        let graph = GraphProto { input: vec![port("x")], ..nested(depth) };
        ModelProto { graph: Some(graph), ..model(vec![]) }
    };
    let imported = read(&deep(32)).unwrap();
    assert_eq!(imported.model.live_graphs().len(), 65);
    for name in ["deep.onnx", "deep.json"] {
        let path = folder.path().join(name);
        formats::save(&imported.model, &path, &SaveOptions::default()).unwrap();
        assert_eq!(formats::open(&path).unwrap().model.node_count(), imported.model.node_count());
    }
    assert!(refusal(&deep(33)).contains("nested more than 100 levels deep"));
}

#[test]
fn a_name_with_line_breaks_makes_one_line() {
    let error = refusal(&model(vec![node("a\nb", "Relu", &[&"x\r\n".repeat(1000)], &["y"])]));
    assert!(!error.contains('\n') && error.len() < 700, "{error}");
    assert!(error.contains("node 'a\\nb' (Relu)"), "{error}");
}

#[test]
fn files_that_are_no_model_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let cases: [(&[u8], &str); 8] = [
        (b"", "the file is empty"),
        (b"PK\x03\x04rest", "zip archive"),
        (b"version https://git-lfs.github.com/spec/v1", "Git LFS pointer"),
        (b"\x89HDF\r\n\x1a\n", "HDF5"),
        (b"<!DOCTYPE html>", "web page"),
        (b"just some text that is no model", "it is text, but not the text form of a model (line 1, "),
        (b"{\"nodes\": []}", "not a JSON graph, or damaged: unknown field `nodes`"),
        (
            b"{\"format\": \"passlens-graph\", \"version\": 9}",
            "its version is 9; this program reads version 1",
        ),
    ];
    for (bytes, expected) in cases {
        let path = write(&folder, "file", bytes);
        let error = formats::open(&path).map(|_| ()).unwrap_err().to_string();
        assert!(error.starts_with(&path.display().to_string()) && error.contains(expected), "{error}");
    }
    let none = formats::open(&folder.path().join("none.onnx")).map(|_| ()).unwrap_err();
    assert!(matches!(none, FormatError::Read { .. }));
    assert!(matches!(formats::open(folder.path()), Err(FormatError::Read { .. })));
}

#[test]
fn a_tensor_in_typed_form_with_odd_numbers_keeps_them_until_it_changes() {
    let tensor = TensorProto {
        data_type: Some(2), // uint8
        raw_data: None,
        int32_data: vec![300, -1],
        ..float_tensor("w", &[0.0, 0.0])
    };
    let imported = read(&with_weights(vec![tensor.clone()])).unwrap();
    let written = export(&imported.model, &mut Inline, &Default::default()).unwrap().message;
    assert_eq!(written.graph.unwrap().initializer[0].int32_data, [300, -1]);
    let value = imported.model.values().find(|(_, value)| value.constant.is_some()).unwrap().1;
    let dense: &Tensor = value.constant.as_ref().and_then(Constant::dense).unwrap();
    assert_eq!(dense.bytes().unwrap().as_ref(), [44, 255]);
    let changed = Tensor { data: Data::Bytes(Bytes::from_static(&[1, 2])), ..dense.clone() };
    let (anew, _) = onnx::tensors::write_tensor(&changed, &mut Inline).unwrap();
    assert_eq!(anew.int32_data, [1, 2]);
}

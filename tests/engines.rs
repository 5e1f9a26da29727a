//! ONNX Runtime in its child process, and programs of a user's, as engines. What needs ONNX Runtime is passed over, with
//! a message, where there is none.

use passlens::engine::onnxruntime::{Choice, Level, OnnxRuntime};
use passlens::engine::{
    Array, Engine, EngineError, Inputs, Outcome, Request, Settings, Value, archive, choose, command,
};
use passlens::ir::{ElementType, Model, NodeId, ValueId, text};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn choice() -> Choice {
    Choice { program: Some(env!("CARGO_BIN_EXE_passlens").into()), ..Choice::default() }
}

/// The engine, when its library is on this machine.
fn found(choice: Choice) -> Option<OnnxRuntime> {
    let engine = OnnxRuntime::new(choice);
    match engine.found() {
        Ok(_) => Some(engine),
        Err(error) => {
            eprintln!("passed over: {error}");
            None
        }
    }
}

fn model(source: &str) -> Model {
    text::parse(source, Path::new(".")).unwrap_or_else(|error| panic!("{error}\n{source}"))
}

fn floats(dims: &[usize], values: &[f32]) -> Value {
    Array::new(dims, values.to_vec()).into()
}

fn inputs<const N: usize>(values: [(&str, Value); N]) -> Inputs {
    values.into_iter().map(|(name, value)| (name.into(), value)).collect()
}

fn run(engine: &dyn Engine, model: &Model, inputs: &Inputs, values: &[ValueId], times: bool) -> Outcome {
    let cancel = AtomicBool::new(false);
    let mut prepared = engine.prepare(model, &Settings::default()).unwrap_or_else(|error| panic!("{error}"));
    let mut request = Request { values, times, ..Request::outputs(&cancel) };
    prepared.run(inputs, &mut request).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(engine: &dyn Engine, model: &Model, inputs: &Inputs) -> EngineError {
    let cancel = AtomicBool::new(false);
    match engine.prepare(model, &Settings::default()) {
        Ok(mut prepared) => prepared.run(inputs, &mut Request::outputs(&cancel)).unwrap_err(),
        Err(error) => error,
    }
}

fn elements(value: &Value) -> Vec<f64> {
    value.array().unwrap().approximate().unwrap()
}

fn node(model: &Model, operator: &str) -> NodeId {
    *model.all_nodes().iter().find(|id| &*model.node(**id).op_type == operator).unwrap()
}

const LINEAR: &str = "<ir_version: 8, opset_import: [\"\" : 17]> g (float[n, 2] x) => (float[n, 2] y)
    <float[2, 2] w = {1, 2, 3, 4}, float[2] b = {-5, 0}> {
    [same] product = MatMul (x, w)
    [same] sum = Add (product, b)
    y = Relu (sum)
}";

#[test]
fn outputs_values_and_times_come_back() {
    let Some(engine) = found(choice()) else { return };
    let model = model(LINEAR);
    let find = |name: &str| model.find_value(model.main(), name).unwrap();
    let asked = [find("product"), find("b"), find("x"), find("y")];
    let fed = inputs([("x", floats(&[1, 2], &[1.0, 1.0]))]);
    let outcome = run(&engine, &model, &fed, &asked, true);
    assert_eq!(elements(&outcome.outputs[0].1), [0.0, 6.0]);
    let values: Vec<Vec<f64>> = asked.iter().map(|id| elements(&outcome.values[id])).collect();
    assert_eq!(values, [vec![4.0, 6.0], vec![-5.0, 0.0], vec![1.0, 1.0], vec![0.0, 6.0]]);
    let timed: Vec<NodeId> = outcome.nodes.iter().map(|time| time.node).collect();
    assert_eq!(timed, ["MatMul", "Add", "Relu"].map(|op| node(&model, op)));
    let sum: f64 = outcome.nodes.iter().map(|time| time.seconds).sum();
    assert!(sum <= outcome.seconds, "{outcome:?}");
    // A second size with the same session.
    let cancel = AtomicBool::new(false);
    let mut prepared = engine.prepare(&model, &Settings::default()).unwrap();
    for rows in [3usize, 0] {
        let fed = inputs([("x", floats(&[rows, 2], &vec![2.0; rows * 2]))]);
        let outcome = prepared.run(&fed, &mut Request::outputs(&cancel)).unwrap();
        assert_eq!(elements(&outcome.outputs[0].1), [3.0, 12.0].repeat(rows));
    }
    let mut request = Request { times: true, ..Request::outputs(&cancel) };
    let many = prepared.run_many(&fed, &mut request, 4).unwrap();
    assert!(many.len() == 4 && many.iter().all(|outcome| outcome.nodes.len() == 3));
}

#[test]
fn times_of_bodies_functions_and_expanded_operators_find_their_nodes() {
    let Some(engine) = found(choice()) else { return };
    let model = model(
        "<ir_version: 8, opset_import: [\"\" : 17, \"own\" : 1]> g (bool c, float[2] x) => (float[2] y) {
            h = HardSwish (x)
            f = own.Twice (h)
            y = If (c) <then_branch = t () => (float[2] a) { a = Neg (f) },
                        else_branch = e () => (float[2] b) { b = Exp (f) }>
        }
        <domain: \"own\", opset_import: [\"\" : 17]> Twice (p) => (q) { q = Add (p, p) }",
    );
    let fed = inputs([("c", Array::bools(&[], [true]).into()), ("x", floats(&[2], &[3.0, -3.0]))]);
    let outcome = run(&engine, &model, &fed, &[], true);
    assert_eq!(elements(&outcome.outputs[0].1), [-6.0, 0.0]);
    let place = |op: &str| {
        let id = node(&model, op);
        outcome.nodes.iter().find(|time| time.node == id).map(|time| (time.path.to_vec(), time.calls))
    };
    assert_eq!(place("HardSwish"), Some((vec![], 1)), "{:?}", outcome.nodes);
    assert_eq!(place("Add"), Some((vec![node(&model, "Twice")], 1)), "{:?}", outcome.nodes);
    assert_eq!(place("Neg"), Some((vec![node(&model, "If")], 1)));
    assert_eq!(place("If"), Some((vec![], 1)));
    assert_eq!(place("Exp"), None);
}

#[test]
fn element_types_pass_through_exactly() {
    let Some(engine) = found(choice()) else { return };
    let types = [
        ElementType::FLOAT,
        ElementType::DOUBLE,
        ElementType::FLOAT16,
        ElementType::BFLOAT16,
        ElementType::INT8,
        ElementType::INT16,
        ElementType::INT32,
        ElementType::INT64,
        ElementType::UINT8,
        ElementType::UINT16,
        ElementType::UINT32,
        ElementType::UINT64,
        ElementType::BOOL,
        ElementType::FLOAT8E4M3FN,
        ElementType::FLOAT8E5M2,
        ElementType::INT4,
        ElementType::UINT4,
    ];
    for element in types {
        // It copies no four-bit integers, but casts them.
        let node = match element.bits() {
            4 => format!("e = Cast <to = 3> (x)\n y = Cast <to = {}> (e)", element.0),
            _ => "y = Identity (x)".into(),
        };
        let source = format!(
            "<ir_version: 10, opset_import: [\"\" : 21]> g ({element}[5] x) => ({element}[5] y) {{ {node} }}"
        );
        let bytes = element.packed_bytes(5).unwrap() as u8;
        let data: Vec<u8> = match element {
            ElementType::BOOL => vec![1, 0, 1, 1, 0],
            // The last four bits are no element.
            _ if element.bits() == 4 => vec![0x21, 0x73, 0x05],
            _ => (0..bytes).map(|i| i.wrapping_mul(29).wrapping_add(3)).collect(),
        };
        let tensor = passlens::ir::Tensor::new(element, [5], data);
        let value = Value::from(Array::try_from(&tensor).unwrap());
        let outcome = run(&engine, &model(&source), &inputs([("x", value.clone())]), &[], false);
        assert!(outcome.outputs[0].1.same_bits(&value), "{element}: {:?}", outcome.outputs);
    }
    let words: Value = Array::new(&[2], vec!["straße\0x".into(), bytes::Bytes::new()]).into();
    let strings = model(
        "<ir_version: 8, opset_import: [\"\" : 17]> g (string[2] x) => (string[2] y) { y = Identity (x) }",
    );
    let outcome = run(&engine, &strings, &inputs([("x", words.clone())]), &[], false);
    assert!(outcome.outputs[0].1.same_bits(&words), "{:?}", outcome.outputs);
    let sequence = Value::Sequence(Arc::new(vec![floats(&[1], &[1.0]), floats(&[2], &[2.0, 3.0])]));
    let sequences = model(
        "<ir_version: 8, opset_import: [\"\" : 17]> g (seq(float[?]) x) => (seq(float[?]) y) { y = Identity (x) }",
    );
    let outcome = run(&engine, &sequences, &inputs([("x", sequence.clone())]), &[], false);
    assert!(outcome.outputs[0].1.same_bits(&sequence), "{:?}", outcome.outputs);
}

#[test]
fn what_cannot_run_is_said_in_one_sentence() {
    let Some(engine) = found(choice()) else { return };
    let unknown = model(
        "<ir_version: 8, opset_import: [\"\" : 17, \"own\" : 1]> g (float[1] x) => (float[1] y) { [odd] y = own.Odd (x) }",
    );
    let error = refused(&engine, &unknown, &inputs([("x", floats(&[1], &[1.0]))]));
    assert!(error.is_unsupported() && error.to_string().contains("Odd"), "{error}");
    let linear = model(LINEAR);
    let error = refused(&engine, &linear, &inputs([("x", floats(&[1, 3], &[1.0; 3]))]));
    assert!(error.to_string().contains("same") || error.to_string().contains('x'), "{error}");
    let error = refused(&engine, &linear, &inputs([]));
    assert_eq!(error.to_string(), "input x: no value is given");
    let error = refused(&engine, &linear, &inputs([("z", floats(&[1], &[0.0]))]));
    assert!(error.to_string().contains("it has x"), "{error}");
    let error = refused(&engine, &linear, &inputs([("x", Array::ints(vec![1, 2]).into())]));
    assert_eq!(error.to_string(), "input x: it is float, and int64 was given");
    let wide = Settings { wide: true, ..Settings::default() };
    assert!(engine.prepare(&linear, &wide).is_err_and(|error| error.to_string().contains("embedded")));
}

/// Runs for minutes.
const ENDLESS: &str =
    "<ir_version: 8, opset_import: [\"\" : 17]> g (int64 n, float[1000] x) => (float[1000] y) {
    c = Constant <value = bool {1}> ()
    y = Loop (n, c, x) <body = b (int64 i, bool a, float[1000] s) => (bool k, float[1000] t) {
        k = Identity (a)
        t = Sin (s)
    }>
}";

#[test]
fn a_run_that_takes_too_long_ends_and_the_engine_stays() {
    let Some(engine) = found(Choice { time_limit: Duration::from_millis(700), ..choice() }) else { return };
    let model = model(ENDLESS);
    let fed = |n: i64| inputs([("n", Array::scalar(n).into()), ("x", floats(&[1000], &[1.0; 1000]))]);
    let mut prepared = engine.prepare(&model, &Settings::default()).unwrap();
    let cancel = AtomicBool::new(false);
    let error = prepared.run(&fed(1 << 40), &mut Request::outputs(&cancel)).unwrap_err();
    assert!(error.to_string().contains("did not answer within"), "{error}");
    let start = Instant::now();
    let stopped = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(100));
            cancel.store(true, Ordering::Relaxed);
        });
        prepared.run(&fed(1 << 40), &mut Request::outputs(&cancel))
    });
    assert_eq!(stopped.unwrap_err(), EngineError::Cancelled);
    assert!(start.elapsed() < Duration::from_secs(60));
    let calm = AtomicBool::new(false);
    let outcome = prepared.run(&fed(1), &mut Request::outputs(&calm)).unwrap();
    assert!((elements(&outcome.outputs[0].1)[7] - 1f64.sin()).abs() < 1e-6);
}

#[test]
fn too_little_memory_is_an_error_and_the_engine_stays() {
    if !cfg!(target_os = "linux") {
        return;
    }
    let Some(engine) = found(choice()) else { return };
    let big = model(
        "<ir_version: 8, opset_import: [\"\" : 17]> g (int64[1] n) => (float[?] y) { y = ConstantOfShape (n) }",
    );
    let fed = |n: i64| inputs([("n", Array::ints(vec![n]).into())]);
    let settings = Settings { memory_limit: 1 << 30, ..Settings::default() };
    let mut prepared = engine.prepare(&big, &settings).unwrap();
    let cancel = AtomicBool::new(false);
    let error = prepared.run(&fed(3 << 30), &mut Request::outputs(&cancel)).unwrap_err();
    assert!(!error.to_string().contains('\n'), "{error}");
    let outcome = prepared.run(&fed(2), &mut Request::outputs(&cancel)).unwrap();
    assert_eq!(elements(&outcome.outputs[0].1), [0.0, 0.0]);
}

#[test]
fn the_runtimes_own_graph_is_had_at_every_level() {
    let Some(engine) = found(choice()) else { return };
    let model = model(LINEAR);
    let operators = |level: Level| -> Vec<String> {
        let optimized = engine.optimized(&model, level).unwrap();
        let nodes = optimized.nodes_of(optimized.main());
        nodes.map(|(_, node)| node.op_type.to_string()).collect()
    };
    assert_eq!(operators(Level::Off), ["MatMul", "Add", "Relu"]);
    assert_eq!(operators(Level::All).len(), 1, "{:?}", operators(Level::All));
    let all = found(Choice { level: Level::All, ..choice() }).unwrap();
    let outcome = run(&all, &model, &inputs([("x", floats(&[1, 2], &[1.0, 1.0]))]), &[], true);
    assert_eq!(elements(&outcome.outputs[0].1), [0.0, 6.0]);
    assert_eq!(outcome.nodes.len(), 1, "{:?}", outcome.nodes);
}

#[test]
fn a_broken_library_is_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("libonnxruntime.so");
    std::fs::write(&text, "no library").unwrap();
    let mut broken = vec![text, folder.path().join("missing.so")];
    if let Some(engine) = found(choice()) {
        // Headers are whole, pages are not there: loading it ends the process that tries.
        let whole = std::fs::read(&engine.found().unwrap().library).unwrap();
        let cut = folder.path().join("libcut.so");
        std::fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
        broken.push(cut);
    }
    for library in broken {
        let engine = OnnxRuntime::new(Choice { library: Some(library.clone()), ..choice() });
        let error = engine.found().unwrap_err().to_string();
        let shown = library.display().to_string();
        assert!(error.starts_with("ONNX Runtime cannot be used: ") && error.contains(&shown), "{error}");
        assert!(!error.contains('\n') && error.matches(". ").count() == 0, "{error}");
        assert_eq!(engine.describe().place, None);
    }
}

/// A script that stands for another machine.
#[cfg(unix)]
fn script(folder: &Path, body: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join("far away.sh");
    std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[cfg(unix)]
#[test]
fn a_program_of_the_users_is_an_engine() {
    let folder = tempfile::tempdir().unwrap();
    let model = model(LINEAR);
    let answers = folder.path().join("answers.npz");
    let (y, product) = (floats(&[1, 2], &[0.0, 6.0]), floats(&[1, 2], &[4.0, 6.0]));
    archive::write(&answers, [(&"y".into(), &y), (&"product".into(), &product)]).unwrap();
    let body = format!(
        "test -s \"$2\" && test -s \"$3\" || exit 9\nsleep 0.2\ncp '{}' \"$4\"\n\
         echo '{{\"runs\": [0.3, 0.1, 0.2], \"nodes\": {{\"same\": 0.15, \"other\": 1}}}}' > \"$5\"",
        answers.display()
    );
    let path = script(folder.path(), &body);
    let places = choose::Places::default();
    let engine = choose::by_name(&format!("cmd:'{}' -v", path.display()), &places).unwrap();
    let fed = inputs([("x", floats(&[1, 2], &[1.0, 1.0]))]);
    let find = |name: &str| model.find_value(model.main(), name).unwrap();
    let start = Instant::now();
    let outcome = run(&*engine, &model, &fed, &[find("product"), find("w")], true);
    assert!(start.elapsed() >= Duration::from_millis(200));
    assert!(outcome.outputs[0].1.same_bits(&y) && outcome.values[&find("product")].same_bits(&product));
    assert_eq!(elements(&outcome.values[&find("w")]), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(outcome.seconds, 0.2);
    // Of two nodes called `same` the first keeps its name.
    let nodes: Vec<(NodeId, f64)> = outcome.nodes.iter().map(|time| (time.node, time.seconds)).collect();
    assert_eq!(nodes, [(node(&model, "MatMul"), 0.15)]);
}

#[cfg(unix)]
#[test]
fn a_program_that_fails_or_hangs_is_said_so() {
    let folder = tempfile::tempdir().unwrap();
    let model = model(LINEAR);
    let fed = inputs([("x", floats(&[1, 2], &[1.0, 1.0]))]);
    for (body, says) in [
        ("echo 'no route to board' >&2; exit 3", "ended with exit status 3: no route to board"),
        ("kill -SEGV $$", "SIGSEGV"),
        ("exit 0", "wrote no outputs"),
        ("echo x > \"$3\"", "neither as .npz nor as .npy"),
        ("cp \"$2\" \"$3\"", "did not write the value y"),
    ] {
        let path = script(folder.path(), body);
        let engine = command::Command::new(&path.display().to_string()).unwrap();
        let error = refused(&engine, &model, &fed).to_string();
        assert!(error.contains(says) && !error.contains('\n'), "{body}: {error}");
    }
    let path = script(folder.path(), "sleep 100 & sleep 100");
    let mut engine = command::Command::new(&path.display().to_string()).unwrap();
    engine.time_limit = Duration::from_millis(200);
    let start = Instant::now();
    assert!(refused(&engine, &model, &fed).to_string().contains("did not end within 0.2 s"));
    engine.time_limit = Duration::from_secs(100);
    let mut prepared = engine.prepare(&model, &Settings::default()).unwrap();
    let cancel = AtomicBool::new(true);
    assert_eq!(prepared.run(&fed, &mut Request::outputs(&cancel)).unwrap_err(), EngineError::Cancelled);
    assert!(start.elapsed() < Duration::from_secs(30));
}

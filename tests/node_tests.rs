//! ONNX's own node tests, in the embedded engine.
//!
//! The tests are not part of the repository: a folder of them (`NAME/model.onnx`, `NAME/input_K.pb`,
//! `NAME/output_K.pb`, see tests/make_node_tests.py) is named by the variable `PASSLENS_NODE_TESTS`. Those that pass are
//! listed in tests/engine/node_tests_passing.txt; the list only grows. With `PASSLENS_REFRESH` set it is written anew.

use passlens::engine::{Array, Embedded, EngineError, Inputs, Prepared, Request, Settings, Value};
use passlens::formats;
use passlens::ir::{ElementType, Model, Type};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// Outputs are random, or depend on what the standard leaves open.
const NOT_COMPARABLE: &[&str] = &[
    "test_bernoulli",
    "test_bernoulli_double",
    "test_bernoulli_seed",
    // Sums that the reference rounds to bfloat16 after every term; here they are summed in float32 and rounded once,
    // which may differ in the last bit of the eight, more than the tests' tolerance.
    "test_attention_3d_causal_bf16",
    "test_attention_4d_attn_mask_causal_bf16",
    "test_attention_4d_causal_bf16",
    "test_attention_4d_causal_padded_kv_bf16",
    "test_attention_4d_padded_kv_bf16",
    "test_training_dropout",
    "test_training_dropout_default",
    "test_training_dropout_default_mask",
    "test_training_dropout_mask",
];

enum Outcome {
    Pass,
    Refused(String),
    Wrong(String),
}

#[test]
fn node_tests_pass_or_are_refused_by_name() {
    let Some(folder) = std::env::var_os("PASSLENS_NODE_TESTS").map(PathBuf::from) else {
        eprintln!("skipped: PASSLENS_NODE_TESTS names no folder of node tests");
        return;
    };
    let only = std::env::var("PASSLENS_ONLY").ok();
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/engine/node_tests_passing.txt");
    let listed: BTreeSet<String> =
        std::fs::read_to_string(&list).unwrap_or_default().lines().map(str::to_owned).collect();
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .expect("the folder of node tests can be read")
        .map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|n| folder.join(n).join("model.onnx").exists())
        .filter(|n| only.as_ref().is_none_or(|o| o.split(',').any(|o| n.contains(o))))
        .collect();
    names.sort();
    assert!(!names.is_empty(), "no node tests in {}", folder.display());
    let mut passed = BTreeSet::new();
    let mut wrong = Vec::new();
    let mut refused: BTreeMap<String, usize> = BTreeMap::new();
    for name in &names {
        if NOT_COMPARABLE.iter().any(|n| n == name || Some(*n) == name.strip_suffix("_expanded")) {
            continue;
        }
        match run(&folder.join(name)) {
            Outcome::Pass => {
                passed.insert(name.clone());
            }
            Outcome::Refused(why) => {
                if only.is_some() {
                    println!("refused {name}: {why}");
                }
                *refused.entry(why).or_default() += 1;
            }
            Outcome::Wrong(why) => wrong.push(format!("{name}: {why}")),
        }
    }
    println!(
        "{} passed, {} wrong, {} refused of {}",
        passed.len(),
        wrong.len(),
        refused.values().sum::<usize>(),
        names.len()
    );
    let mut by_count: Vec<_> = refused.iter().collect();
    by_count.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
    for (why, count) in by_count {
        println!("  {count:4} {why}");
    }
    for line in &wrong {
        println!("  WRONG {line}");
    }
    if std::env::var_os("PASSLENS_REFRESH").is_some() && only.is_none() {
        let mut text: String = passed.iter().map(|n| format!("{n}\n")).collect();
        text.shrink_to_fit();
        std::fs::write(&list, text).expect("the list can be written");
    } else if only.is_none() {
        let lost: Vec<&String> =
            listed.iter().filter(|n| names.contains(n) && !passed.contains(*n)).collect();
        assert!(lost.is_empty(), "node tests that passed before: {lost:?}");
    }
    assert!(wrong.is_empty(), "{} node tests gave wrong values", wrong.len());
}

fn run(folder: &Path) -> Outcome {
    let model = match formats::open(&folder.join("model.onnx")) {
        Ok(imported) => imported.model,
        Err(e) => {
            return Outcome::Refused(format!("not opened: {e}").replace(&folder.display().to_string(), ""));
        }
    };
    let mut inputs = Inputs::new();
    let ports: Vec<_> = model.graph(model.main()).inputs.iter().map(|p| p.value).collect();
    for (k, value) in ports.iter().enumerate() {
        let Ok(bytes) = std::fs::read(folder.join(format!("input_{k}.pb"))) else { break };
        match datum(bytes, &model.value(*value).ty) {
            Ok(v) => inputs.insert(model.value(*value).name.clone(), v),
            Err(e) => return Outcome::Refused(format!("input not read: {e}")),
        };
    }
    let settings = Settings::default();
    let mut prepared = match Embedded::new().ready(&model, &settings) {
        Ok(prepared) => prepared,
        Err(EngineError::NoKernel(missing)) => {
            let names: Vec<&str> = missing.iter().map(|(o, _)| &**o).collect();
            return Outcome::Refused(format!("no kernel: {}", names.join(", ")));
        }
        Err(e) => return Outcome::Wrong(e.to_string()),
    };
    let cancel = AtomicBool::new(false);
    match prepared.run(&inputs, &mut Request::outputs(&cancel)) {
        Ok(outcome) => compare_all(folder, &model, &outcome.outputs),
        Err(e) if e.is_unsupported() => Outcome::Refused(format!("variant: {e}")),
        Err(e) => Outcome::Wrong(e.to_string()),
    }
}

fn datum(bytes: Vec<u8>, ty: &Type) -> Result<Value, String> {
    let datum = formats::onnx::datum::read(bytes.into(), ty)?;
    Value::try_from(&datum).map_err(|e| e.to_string())
}

fn compare_all(folder: &Path, model: &Model, outputs: &[(passlens::ir::Text, Value)]) -> Outcome {
    let tolerance = std::fs::read_to_string(folder.join("tolerance")).unwrap_or_default();
    let mut tolerance = tolerance.split_whitespace().filter_map(|t| t.parse::<f64>().ok());
    let relative = tolerance.next().unwrap_or(1e-3);
    let absolute = tolerance.next().unwrap_or(1e-7);
    let ports = model.graph(model.main()).outputs.clone();
    for (k, ((name, ours), port)) in outputs.iter().zip(ports.iter()).enumerate() {
        let Ok(bytes) = std::fs::read(folder.join(format!("output_{k}.pb"))) else { continue };
        let right = match datum(bytes, &model.value(port.value).ty) {
            Ok(v) => v,
            Err(e) => return Outcome::Refused(format!("output not read: {e}")),
        };
        if let Err(why) = same(ours, &right, relative, absolute) {
            return Outcome::Wrong(format!("{name}: {why}"));
        }
    }
    Outcome::Pass
}

fn same(ours: &Value, right: &Value, relative: f64, absolute: f64) -> Result<(), String> {
    match (ours, right) {
        (Value::Array(a), Value::Array(b)) => same_array(a, b, relative, absolute),
        (Value::Sequence(a), Value::Sequence(b)) => {
            if a.len() != b.len() {
                return Err(format!("{} items where {} are right", a.len(), b.len()));
            }
            a.iter().zip(b.iter()).try_for_each(|(a, b)| same(a, b, relative, absolute))
        }
        (Value::Optional(a), Value::Optional(b)) => match (a, b) {
            (None, None) => Ok(()),
            (Some(a), Some(b)) => same(a, b, relative, absolute),
            _ => Err("absent where present is right, or the other way round".into()),
        },
        _ => Err(format!("a {} where a {} is right", ours.kind(), right.kind())),
    }
}

fn same_array(a: &Array, b: &Array, relative: f64, absolute: f64) -> Result<(), String> {
    if a.element() != b.element() || a.dims() != b.dims() {
        return Err(format!("{}{:?} where {}{:?} is right", a.element(), a.dims(), b.element(), b.dims()));
    }
    if a.same_bits(b) {
        return Ok(());
    }
    let parts = |array: &Array| -> Option<Vec<f64>> {
        match array.element() {
            ElementType::COMPLEX64 => {
                array.view::<[f32; 2]>().ok().map(|v| v.iter().flatten().map(|x| f64::from(*x)).collect())
            }
            ElementType::COMPLEX128 => {
                array.view::<[f64; 2]>().ok().map(|v| v.iter().flatten().copied().collect())
            }
            _ => array.approximate(),
        }
    };
    let (Some(x), Some(y)) = (parts(a), parts(b)) else { return Err("strings differ".into()) };
    let exact =
        !(a.element().is_float() || matches!(a.element(), ElementType::COMPLEX64 | ElementType::COMPLEX128));
    let mut worst = (0.0f64, 0usize);
    for (i, (x, y)) in x.iter().zip(&y).enumerate() {
        let bad = match (x.is_nan(), y.is_nan()) {
            (true, true) => false,
            (true, false) | (false, true) => true,
            _ if exact => x != y,
            _ => x != y && ((x - y).abs() > absolute + relative * y.abs() || (x - y).is_nan()),
        };
        if bad {
            let off = if (x - y).is_nan() { f64::INFINITY } else { (x - y).abs() };
            if off >= worst.0 {
                worst = (off, i + 1);
            }
        }
    }
    match worst {
        (_, 0) => Ok(()),
        (off, at) => {
            Err(format!("element {} is {} where {} is right, off by {off:e}", at - 1, x[at - 1], y[at - 1]))
        }
    }
}

//! Names that a model's file uses beside the nodes that read values: in quantization annotations, in training info, and
//! twice over in bodies that hide outer names. Passes keep them meaning what they meant.

use passlens::formats;
use passlens::ir::{Model, check};
use passlens::pipeline::{Config, Options, Registry, Run, Runner};
use std::sync::atomic::AtomicBool;

fn open(name: &str, text: &str) -> Model {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    formats::open(&path).unwrap().model
}

/// All passes over a model; nothing may fail, and the result is sound.
fn run(model: Model) -> Run {
    let cancel = AtomicBool::new(false);
    let mut options = Options { stop_at: None, cancel: &cancel, progress: &mut |_| {} };
    let run = Runner::new(model).run(&Registry::builtin(), &Config::default(), &mut options);
    for pass in &run.passes {
        assert!(pass.failures.is_empty(), "{}: {:?}", pass.pass, pass.failures);
    }
    assert_eq!(check::check(&run.last_state().model), []);
    run
}

fn names(model: &Model) -> Vec<String> {
    model.values().map(|(_, v)| v.name.to_string()).collect()
}

fn blocked(run: &Run, condition: &str) -> bool {
    run.passes.iter().flat_map(|p| &p.blocked).any(|b| b.condition.contains(condition))
}

/// An initializer and a result that only an annotation names, and a fusion that would give other weights.
#[test]
fn what_an_annotation_names_stays() {
    let model = r#"{"format": "passlens-graph", "version": 1, "model": {"ir_version": 8, "opset_import": [{"domain": "", "version": 17}],
     "graph": {"name": "g",
      "node": [
       {"input": ["x"], "output": ["measured"], "op_type": "Exp"},
       {"input": ["x"], "output": ["unread"], "op_type": "Log"},
       {"input": ["x"], "output": ["same"], "op_type": "Identity"},
       {"input": ["same"], "output": ["y"], "op_type": "Relu"}],
      "initializer": [
       {"dims": [1], "data_type": "FLOAT", "name": "scale", "raw_data": "AACAPw=="},
       {"dims": [1], "data_type": "FLOAT", "name": "unused", "raw_data": "AACAPw=="}],
      "input": [{"name": "x", "type": {"tensor_type": {"elem_type": "FLOAT", "shape": {"dim": [{"dim_value": 2}]}}}}],
      "output": [{"name": "y", "type": {"tensor_type": {"elem_type": "FLOAT", "shape": {"dim": [{"dim_value": 2}]}}}}],
      "quantization_annotation": [
       {"tensor_name": "measured", "quant_parameter_tensor_names": [{"key": "SCALE_TENSOR", "value": "scale"}]},
       {"tensor_name": "same"}]}}}"#;
    let run = run(open("annotated.json", model));
    let left = names(&run.last_state().model);
    for kept in ["measured", "scale", "same"] {
        assert!(left.contains(&kept.to_owned()), "{kept} is gone: {left:?}");
    }
    for gone in ["unread", "unused"] {
        assert!(!left.contains(&gone.to_owned()), "{gone} is there: {left:?}");
    }
    assert!(blocked(&run, "a quantization annotation of the model speaks of 'measured'"));
    assert!(blocked(&run, "a quantization annotation of the model speaks of 'same'"));
}

/// The training info updates the weight of a MatMul that could become a Gemm, and that of a Conv before a
/// BatchNormalization; its algorithm reads a result that nothing else reads.
#[test]
fn what_the_training_info_names_stays() {
    let model = r#"{"format": "passlens-graph", "version": 1, "model": {"ir_version": 8, "opset_import": [{"domain": "", "version": 17}],
     "graph": {"name": "g",
      "node": [
       {"input": ["x", "w"], "output": ["c"], "op_type": "Conv"},
       {"input": ["c", "s", "s", "s", "s"], "output": ["y"], "op_type": "BatchNormalization"},
       {"input": ["x"], "output": ["seen"], "op_type": "Exp"}],
      "initializer": [
       {"dims": [1, 1, 1, 1], "data_type": "FLOAT", "name": "w", "raw_data": "AACAPw=="},
       {"dims": [1], "data_type": "FLOAT", "name": "s", "raw_data": "AACAPw=="}],
      "input": [{"name": "x", "type": {"tensor_type": {"elem_type": "FLOAT", "shape": {"dim": [{"dim_value": 1}, {"dim_value": 1}, {"dim_value": 2}, {"dim_value": 2}]}}}}],
      "output": [{"name": "y", "type": {"tensor_type": {"elem_type": "FLOAT", "shape": {"dim": [{"dim_value": 1}, {"dim_value": 1}, {"dim_value": 2}, {"dim_value": 2}]}}}}]},
     "training_info": [{
      "algorithm": {"name": "step", "node": [{"input": ["seen", "w"], "output": ["w_new"], "op_type": "Add"}],
       "output": [{"name": "w_new"}]},
      "update_binding": [{"key": "w", "value": "w_new"}]}]}}"#;
    let with = run(open("training.json", model));
    let left = names(&with.last_state().model);
    for kept in ["w", "seen", "c"] {
        assert!(left.contains(&kept.to_owned()), "{kept} is gone: {left:?}");
    }
    assert!(blocked(&with, "the training info of the model speaks of 'w'"), "{:?}", with.passes);
    assert!(blocked(&with, "the training info of the model speaks of 'seen'"));
    // Without it, both go.
    let (graph, _) = model.split_once("\"training_info\"").unwrap();
    let without = run(open("plain.json", &format!("{}}}}}", graph.trim_end().trim_end_matches(','))));
    let left = names(&without.last_state().model);
    assert!(!left.contains(&"c".to_owned()) && !left.contains(&"seen".to_owned()), "{left:?}");
}

const HIDING: &str = r#"<ir_version: 8, opset_import: ["" : 17]>
g (float[2] x, bool b) => (float[2] y) {
   t = Exp (x)
   same = Identity (t)
   y = If (b) <
      then_branch = then () => (float[2] r) {
         t = Log (x)
         u = Identity (t)
         r = Relu (u)
      },
      else_branch = otherwise () => (float[2] r) {
         r = Neg (same)
      }
   >
}
"#;

#[test]
fn passes_work_in_bodies_that_hide_outer_names() {
    let model = open("hiding.txt", HIDING);
    assert_eq!(check::check(&model), []);
    let run = run(model);
    let last = run.last_state().model;
    let count = |op: &str| last.all_nodes().iter().filter(|n| last.node(**n).is(op)).count();
    assert_eq!((count("Identity"), count("Exp"), count("Log"), count("Relu")), (0, 1, 1, 1));
    // Written down by names, it is still the same.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.onnx");
    formats::save(&last, &path, &Default::default()).unwrap();
    let again = formats::open(&path).unwrap().model;
    for id in again.all_nodes() {
        let node = again.node(id);
        let input = node.input(0).map(|v| again.value(v));
        match &*node.op_type {
            "Relu" => assert!(input.is_some_and(|v| &*v.name == "t" && v.graph == node.graph)),
            "Neg" => assert!(input.is_some_and(|v| &*v.name == "t" && v.graph == again.main())),
            _ => {}
        }
    }
}

/// In the first body the reader of `same` would have to read the outer `t`, which the body hides.
#[test]
fn a_rewrite_that_names_could_not_tell_is_a_near_miss() {
    let hidden = HIDING.replace("r = Relu (u)", "v = Add (u, same)\n         r = Relu (v)");
    let run = run(open("hidden.txt", &hidden));
    assert!(blocked(&run, "reads the 't' of an outer graph"), "{:?}", run.passes);
    let last = run.last_state().model;
    assert_eq!(last.all_nodes().iter().filter(|n| last.node(**n).is("Identity")).count(), 1);
}

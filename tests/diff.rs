//! Two models side by side: states of one session by id, files by matching.

use passlens::diff::{Diff, Mark, Rule, What, align, by_id, by_matching, sentence};
use passlens::formats;
use passlens::ir::{Builder, ElementType, Model, Tensor};
use passlens::pipeline::{Config, Options, Registry, Run, Runner};
use std::sync::atomic::AtomicBool;

/// Relu → Mul by a constant → Identity → If (Neg of the product, or Abs) → Add of one.
fn sample(prefix: &str, factor: f32, extra: bool) -> Model {
    let mut b = Builder::new("sample", 17);
    let name = |n: &str| format!("{prefix}{n}");
    let x = b.input("x", ElementType::FLOAT, &[2.into()]);
    let on = b.input("on", ElementType::BOOL, &[]);
    let w = b.constant(&name("w"), Tensor::from_f32(&[2], &[1.0, factor]));
    let a = b.op("Relu", &[x]).named(&name("a")).one();
    let m = b.op("Mul", &[a, w]).named(&name("m")).one();
    let same = b.op("Identity", &[m]).named(&name("same")).one();
    let inner = name("inner");
    let chosen = b
        .op("If", &[on])
        .named(&name("choice"))
        .body("then_branch", |b| {
            let t = b.op("Neg", &[same]).named(&inner).one();
            b.output(t);
        })
        .body("else_branch", |b| {
            let e = b.op("Abs", &[a]).named(&name("other")).one();
            b.output(e);
        })
        .one();
    let last = if extra { b.op("Tanh", &[chosen]).named(&name("extra")).one() } else { chosen };
    let y = b.op("Add", &[last, w]).named(&name("sum")).one();
    b.output_as(y, "y", ElementType::FLOAT, &[2.into()]);
    b.finish().unwrap()
}

fn optimized(model: Model) -> Run {
    let cancel = AtomicBool::new(false);
    let mut options = Options { stop_at: None, cancel: &cancel, progress: &mut |_| {} };
    Runner::new(model).run(&Registry::builtin(), &Config::default(), &mut options)
}

#[test]
fn a_run_is_seen_by_id_with_its_removed_and_rewired_nodes() {
    let run = optimized(sample("", 2.0, false));
    let (before, after) = (&run.initial.model, &run.last_state().model);
    let diff = by_id(before, after);
    let named = |mark: Mark| -> Vec<String> {
        let nodes = diff.nodes.iter().filter(|change| change.mark == mark);
        nodes.map(|change| before.node_label(change.before.unwrap())).collect()
    };
    assert_eq!((named(Mark::Removed), named(Mark::Rewired)), (vec!["same".into()], vec!["inner".into()]));
    assert_eq!(diff.count(Mark::Added) + diff.count(Mark::Changed), 0);
    let removed = diff.nodes.iter().find(|c| c.mark == Mark::Removed).and_then(|c| c.before).unwrap();
    assert_eq!((diff.mark_before(removed), diff.mark_after(removed)), (Some(Mark::Removed), None));
    assert!(by_id(before, &before.clone()).is_empty());
    let back = by_id(after, before);
    assert_eq!((back.count(Mark::Added), back.count(Mark::Rewired)), (1, 1));
}

#[test]
fn a_body_goes_and_comes_with_its_owner() {
    let before = sample("", 2.0, false);
    let mut after = before.clone();
    let choice = before.nodes_of(before.main()).find(|(_, n)| n.is("If")).unwrap().0;
    let (input, output) =
        (before.find_value(before.main(), "x").unwrap(), before.node(choice).output(0).unwrap());
    let mut patch = passlens::ir::PatchBuilder::new(&before);
    patch.replace_uses(output, input);
    patch.remove_node(choice);
    after.apply(&patch.finish()).unwrap();
    let diff = by_id(&before, &after);
    assert_eq!((diff.count(Mark::Removed), diff.count(Mark::Rewired)), (3, 1));
}

#[test]
fn other_names_are_no_other_nodes() {
    let diff = by_matching(&sample("", 2.0, false), &sample("renamed.", 2.0, false));
    assert!(diff.nodes.is_empty() && diff.constants.is_empty(), "{:?}", diff.nodes);
    assert_eq!(diff.renamed.len(), 7);
    assert_eq!(diff.matched.get(&Rule::Structure).copied().unwrap_or(0), 6);
    assert!(!diff.is_empty());
}

#[test]
fn an_added_node_and_another_weight_are_found_under_other_names() {
    let (before, after) = (sample("", 2.0, false), sample("renamed.", 3.0, true));
    let diff = by_matching(&before, &after);
    let added: Vec<String> = diff
        .nodes
        .iter()
        .filter(|change| change.mark == Mark::Added)
        .map(|change| after.node_label(change.after.unwrap()))
        .collect();
    assert_eq!(added, ["renamed.extra"]);
    assert_eq!(diff.count(Mark::Removed), 0, "{:?}", diff.nodes);
    assert_eq!(diff.constants.len(), 1);
    let product = diff
        .nodes
        .iter()
        .find(|change| change.before.is_some_and(|id| before.node(id).is("Mul")))
        .expect("the product reads another weight");
    assert_eq!(product.mark, Mark::Changed);
    assert!(matches!(product.what.as_slice(), [What::Constant { index: 1, .. }]), "{:?}", product.what);
}

#[test]
fn inputs_outputs_and_operator_sets_are_compared() {
    let make = |opset: i64, element: ElementType| {
        let mut b = Builder::new("tiny", opset);
        let x = b.input("x", element, &["n".into()]);
        let y = b.op("Relu", &[x]).named("r").one();
        b.output_as(y, "y", element, &["n".into()]);
        b.finish().unwrap()
    };
    let diff = by_matching(&make(13, ElementType::FLOAT), &make(17, ElementType::DOUBLE));
    assert_eq!(
        diff.model,
        ["operator set '': 13 → 17", "input 'x': float[n] → double[n]", "output 'y': float[n] → double[n]"]
    );
    assert!(diff.nodes.is_empty());
}

/// Numbers of nodes by mark: added, removed, changed, rewired.
fn counts(diff: &Diff) -> [usize; 4] {
    [Mark::Added, Mark::Removed, Mark::Changed, Mark::Rewired].map(|mark| diff.count(mark))
}

/// The model as a reader of its file gets it.
fn through_a_file(model: &Model) -> Model {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.onnx");
    formats::save(model, &path, &Default::default()).unwrap();
    formats::open(&path).unwrap().model
}

/// Conv → BatchNormalization → Relu, the Conv's node with a name or without.
fn normalized(name: &str) -> Model {
    let mut b = Builder::new("normalized", 17);
    let x = b.input("x", ElementType::FLOAT, &[1.into(), 1.into(), 4.into(), 4.into()]);
    let w = b.constant("w", Tensor::from_f32(&[1, 1, 1, 1], &[2.0]));
    let of = |b: &mut Builder, name: &str, v: f32| b.constant(name, Tensor::from_f32(&[1], &[v]));
    let [scale, bias, mean, var] =
        [("scale", 2.0), ("bias", 1.0), ("mean", 0.5), ("var", 4.0)].map(|(n, v)| of(&mut b, n, v));
    let c = b.op("Conv", &[x, w]).named(name).one();
    let n = b.op("BatchNormalization", &[c, scale, bias, mean, var]).named("norm").one();
    let y = b.op("Relu", &[n]).named("act").one();
    let z = b.op("Tanh", &[n]).named("other").one();
    b.output_as(y, "y", ElementType::FLOAT, &[1.into(), 1.into(), 4.into(), 4.into()]);
    b.output_as(z, "z", ElementType::FLOAT, &[1.into(), 1.into(), 4.into(), 4.into()]);
    b.finish().unwrap()
}

#[test]
fn who_reads_a_value_that_another_node_gives_now_is_not_rewired() {
    let run = optimized(normalized("conv"));
    let (before, after) = (&run.initial.model, &through_a_file(&run.last_state().model));
    let diff = by_matching(before, after);
    assert_eq!(counts(&diff), [0, 1, 1, 0], "{:?}", diff.nodes);
    let conv = diff.nodes.iter().find(|change| change.mark == Mark::Changed).unwrap();
    let texts: Vec<String> = conv.what.iter().map(|what| sentence(before, after, what)).collect();
    let gives = texts.iter().any(|text| text.starts_with("output 0: "));
    assert!(gives && texts.iter().any(|text| text.starts_with("constant at input 1: ")), "{texts:?}");
}

#[test]
fn another_constant_with_the_same_elements_is_no_rewiring() {
    let make = |twice: bool| {
        let mut b = Builder::new("constants", 17);
        let x = b.input("x", ElementType::FLOAT, &[2.into()]);
        let w = b.constant("w", Tensor::from_f32(&[2], &[1.0, 2.0]));
        let v = if twice { b.constant("v", Tensor::from_f32(&[2], &[1.0, 2.0])) } else { w };
        let a = b.op("Mul", &[x, w]).named("a").one();
        let y = b.op("Add", &[a, v]).named("b").one();
        b.output_as(y, "y", ElementType::FLOAT, &[2.into()]);
        b.finish().unwrap()
    };
    let diff = by_matching(&make(true), &make(false));
    assert!(diff.nodes.is_empty() && diff.constants.len() == 1, "{:?}", diff.nodes);
    let run = optimized(make(true));
    let diff = by_id(&run.initial.model, &run.last_state().model);
    assert!(diff.nodes.is_empty(), "{:?}", diff.nodes);
}

#[test]
fn the_order_of_independent_nodes_is_no_difference() {
    let make = |turned: bool| {
        let mut b = Builder::new("two", 17);
        let x = b.input("x", ElementType::FLOAT, &[2.into()]);
        let relu = |b: &mut Builder| b.op("Relu", &[x]).named("a").one();
        let tanh = |b: &mut Builder| b.op("Tanh", &[x]).named("b").one();
        let (a, t) = if turned {
            let t = tanh(&mut b);
            (relu(&mut b), t)
        } else {
            let a = relu(&mut b);
            (a, tanh(&mut b))
        };
        let y = b.op("Add", &[a, t]).named("sum").one();
        b.output_as(y, "y", ElementType::FLOAT, &[2.into()]);
        b.finish().unwrap()
    };
    let diff = by_matching(&make(false), &make(true));
    assert!(diff.is_empty(), "{diff:?}");
}

/// Every shared model against itself and against its optimized self, for which the session knows which node is which.
#[test]
fn files_are_compared_as_the_session_compares_its_states() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/models");
    let Ok(files) = std::fs::read_dir(&folder) else {
        println!("skipped: there is no {}", folder.display());
        return;
    };
    for path in files.map(|f| f.unwrap().path()).filter(|p| p.extension().is_some_and(|e| e == "onnx")) {
        let open = || formats::open(&path).unwrap_or_else(|e| panic!("{e}")).model;
        assert!(by_matching(&open(), &open()).is_empty(), "{}", path.display());
        let run = optimized(open());
        let (before, after) = (&run.initial.model, &run.last_state().model);
        let (known, found) = (by_id(before, after), by_matching(before, &through_a_file(after)));
        assert_eq!(counts(&found), counts(&known), "{}", path.display());
        // Put beside the first model, the second one is a state of the same session: ids tell the same.
        let aligned = align(before, &through_a_file(after));
        let faults = passlens::ir::check::check(&aligned.model);
        assert!(faults.is_empty(), "{}: {faults:?}", path.display());
        assert_eq!(counts(&aligned.diff), counts(&known), "{}", path.display());
        assert_eq!(counts(&by_id(before, &aligned.model)), counts(&known), "{}", path.display());
    }
}

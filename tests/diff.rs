//! Two models side by side: states of one session by id, files by matching.

use passlens::diff::{Mark, Rule, What, by_id, by_matching};
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

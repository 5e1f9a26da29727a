//! A session driven by commands, as the window and scripts drive it.

use passlens::formats;
use passlens::ir::{Builder, ElementType, Model, Tensor};
use passlens::pipeline::Registry;
use passlens::scene::{Item, Mark};
use passlens::session::{Command, Session, SiteState, Target, ViewMode};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

/// Conv, BatchNormalization, Identity, Transpose there and back, Relu.
fn model() -> Model {
    let mut b = Builder::new("small", 17);
    let x = b.input("x", ElementType::FLOAT, &["n".into(), 2.into(), 4.into(), 4.into()]);
    let w = b.constant("w", Tensor::from_f32(&[3, 2, 1, 1], &[1.0, -2.0, 0.5, 3.0, 0.25, -1.0]));
    let c = b.op("Conv", &[x, w]).attr("kernel_shape", [1, 1]).named("conv").one();
    let of = |b: &mut Builder, name: &str, v: [f32; 3]| b.constant(name, Tensor::from_f32(&[3], &v));
    let scale = of(&mut b, "scale", [1.0, 2.0, 0.5]);
    let bias = of(&mut b, "bias", [0.0, 1.0, -1.0]);
    let mean = of(&mut b, "mean", [0.1, 0.2, 0.3]);
    let var = of(&mut b, "var", [1.0, 2.0, 3.0]);
    let n = b.op("BatchNormalization", &[c, scale, bias, mean, var]).named("norm").one();
    let i = b.op("Identity", &[n]).named("skip").one();
    let t = b.op("Transpose", &[i]).attr("perm", [0, 2, 3, 1]).named("there").one();
    let u = b.op("Transpose", &[t]).attr("perm", [0, 3, 1, 2]).named("back").one();
    let y = b.op("Relu", &[u]).named("act").one();
    b.output_as(y, "y", ElementType::FLOAT, &["n".into(), 3.into(), 4.into(), 4.into()]);
    b.finish().unwrap()
}

struct Desk {
    session: Session,
    folder: tempfile::TempDir,
}

impl Desk {
    fn new() -> Desk {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("small.onnx");
        formats::save(&model(), &path, &Default::default()).unwrap();
        let mut desk = Desk { session: Session::new(Registry::builtin(), Arc::new(|| {})), folder };
        desk.go(Command::Open { path });
        desk
    }

    fn go(&mut self, command: Command) {
        self.session.apply(command.clone()).unwrap_or_else(|e| panic!("{command:?}: {e}"));
        assert!(self.session.wait_idle(LIMIT), "{command:?} does not end");
    }

    fn nodes(&self) -> usize {
        self.session.shown().unwrap().state.model.node_count()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

#[test]
fn opening_runs_the_pipeline_and_shows_the_result() {
    let desk = Desk::new();
    let document = desk.session.document().unwrap();
    assert_eq!(document.name, "small.onnx");
    assert_eq!(desk.nodes(), 2, "a Conv and a Relu are left");
    assert!(document.step_count() >= 3 && !document.is_stale());
    let shown = desk.session.shown().unwrap();
    assert!(shown.marks.values().filter(|m| **m == Mark::Removed).count() == 4, "{:?}", shown.marks);
    let picture = shown.after.as_ref().unwrap();
    assert!(
        picture.boxes.iter().any(|b| &*b.title == "Conv" && b.badge.is_some()),
        "the Conv bears its pass"
    );
}

#[test]
fn steps_can_be_walked_and_pictures_follow() {
    let mut desk = Desk::new();
    desk.go(Command::GoToStep { step: 0 });
    assert_eq!((desk.session.step(), desk.nodes()), (0, 6));
    let last = desk.session.document().unwrap().step_count();
    let mut counts = vec![desk.nodes()];
    for _ in 0..last {
        desk.go(Command::NextStep);
        counts.push(desk.nodes());
    }
    assert_eq!(desk.session.step(), last);
    assert_eq!(counts.last(), Some(&2));
    assert!(counts.windows(2).all(|w| w[1] <= w[0]));
    desk.go(Command::PreviousStep);
    assert_eq!(desk.session.step(), last - 1);
    for view in [ViewMode::Before, ViewMode::SideBySide, ViewMode::Difference, ViewMode::After] {
        desk.go(Command::SetView { view });
        let shown = desk.session.shown().unwrap();
        assert_eq!(shown.view, view);
        assert_eq!(shown.before.is_some(), matches!(view, ViewMode::Before | ViewMode::SideBySide));
        assert_eq!(shown.after.is_some(), view != ViewMode::Before);
    }
    desk.go(Command::SetView { view: ViewMode::Difference });
    let shown = desk.session.shown().unwrap();
    let marks: Vec<Mark> = shown.after.as_ref().unwrap().boxes.iter().map(|b| b.mark).collect();
    assert!(marks.contains(&Mark::Removed) && marks.contains(&Mark::Changed), "{marks:?}");
}

#[test]
fn switching_excluding_undo_and_redo() {
    let mut desk = Desk::new();
    let with_all = desk.session.document().unwrap().step_count();
    desk.go(Command::SetPass { pass: "fuse_conv_batch_norm".into(), on: false });
    assert_eq!(desk.nodes(), 3);
    assert_eq!(desk.session.document().unwrap().undo_name(), Some("switch off fuse_conv_batch_norm"));
    desk.go(Command::Undo);
    assert_eq!((desk.nodes(), desk.session.document().unwrap().step_count()), (2, with_all));
    desk.go(Command::Redo);
    assert_eq!(desk.nodes(), 3);
    desk.go(Command::Preview { pass: "fuse_conv_batch_norm".into() });
    let rows = desk.session.document().unwrap().site_rows("fuse_conv_batch_norm");
    assert_eq!(rows.iter().filter(|r| r.state == SiteState::Found).count(), 1, "{rows:?}");
    desk.go(Command::Undo);
    let rows = desk.session.document().unwrap().site_rows("fuse_conv_batch_norm");
    let key = rows.iter().find(|r| matches!(r.state, SiteState::Applied(_))).unwrap().key.clone().unwrap();
    desk.go(Command::ExcludeSite { key: key.clone(), exclude: true });
    assert_eq!(desk.nodes(), 3);
    let rows = desk.session.document().unwrap().site_rows("fuse_conv_batch_norm");
    assert!(rows.iter().any(|r| r.state == SiteState::Excluded && r.key.as_ref() == Some(&key)), "{rows:?}");
    let file = desk.path("recipe.toml");
    desk.go(Command::SavePipeline { path: file.clone() });
    desk.go(Command::ResetPipeline);
    assert_eq!(desk.nodes(), 2);
    desk.go(Command::LoadPipeline { path: file });
    assert_eq!(desk.nodes(), 3);
    assert!(desk.session.apply(Command::SetPass { pass: "fuse_conv_bn".into(), on: false }).is_err());
}

#[test]
fn choosing_searching_and_the_inspector() {
    let mut desk = Desk::new();
    desk.go(Command::Select { target: Some(Target::node("conv")) });
    let Some(Item::Node(conv)) = desk.session.selected().map(|p| p.item) else { panic!("nothing is chosen") };
    let card = desk.session.node_card(conv).unwrap();
    assert_eq!((card.operator.as_str(), card.removed), ("Conv", false));
    assert!(
        card.story.iter().any(|s| &*s.pass == "fuse_conv_batch_norm" && s.verb == "changed by"),
        "{:?}",
        card.story
    );
    assert_eq!(card.origins.len(), 2, "the Conv and the normalization it took in");
    let weights = desk.session.weights();
    assert!(weights[0].now.is_some() && weights[0].before.is_some(), "the pass rewrote the weight");
    desk.go(Command::Select { target: Some(Target::node("norm")) });
    assert_eq!(desk.session.view(), ViewMode::Difference, "a removed node is seen where both are drawn");
    let Some(Item::Node(norm)) = desk.session.selected().map(|p| p.item) else { panic!("nothing is chosen") };
    assert!(desk.session.node_card(norm).unwrap().removed);
    desk.go(Command::Back);
    assert_eq!(desk.session.selected().map(|p| p.item), Some(Item::Node(conv)));
    desk.go(Command::Forward);
    desk.go(Command::Search { query: "op:conv".into() });
    assert_eq!(desk.session.hits().total, 1);
    desk.go(Command::NextHit);
    assert_eq!(desk.session.selected().map(|p| p.item), Some(Item::Node(conv)));
    desk.go(Command::NextChange);
    assert!(desk.session.selected().is_some());
}

#[test]
fn what_goes_wrong_stays_on_screen_and_the_last_good_state_too() {
    let mut desk = Desk::new();
    let bad = desk.path("bad.onnx");
    std::fs::write(&bad, b"PK\x03\x04 this is no model").unwrap();
    desk.session.apply(Command::Open { path: bad }).unwrap();
    assert!(desk.session.wait_idle(LIMIT));
    assert_eq!(desk.session.cards().len(), 1);
    assert!(desk.session.cards()[0].title.contains("bad.onnx"));
    assert_eq!(desk.session.document().unwrap().name, "small.onnx");
    assert_eq!(desk.nodes(), 2);
    let card = desk.session.cards()[0].id;
    desk.go(Command::Dismiss { card });
    assert!(desk.session.cards().is_empty());
}

#[test]
fn what_is_saved_is_what_is_shown() {
    let mut desk = Desk::new();
    let (all, half) = (desk.path("all.onnx"), desk.path("half.onnx"));
    desk.go(Command::Save { path: all.clone() });
    assert!(desk.session.notice().unwrap().contains("all.onnx"));
    desk.go(Command::GoToStep { step: 1 });
    let shown = desk.nodes();
    desk.go(Command::Save { path: half.clone() });
    assert_eq!(formats::open(&all).unwrap().model.node_count(), 2);
    assert_eq!(formats::open(&half).unwrap().model.node_count(), shown);
}

/// [`model`] without the Transposes, with a Tanh at its end in place of the Relu, and another weight.
fn second() -> Model {
    let mut b = Builder::new("small", 17);
    let x = b.input("x", ElementType::FLOAT, &["n".into(), 2.into(), 4.into(), 4.into()]);
    let w = b.constant("w", Tensor::from_f32(&[3, 2, 1, 1], &[1.0, -2.0, 0.5, 3.0, 0.25, 7.0]));
    let c = b.op("Conv", &[x, w]).attr("kernel_shape", [1, 1]).named("conv").one();
    let of = |b: &mut Builder, name: &str, v: [f32; 3]| b.constant(name, Tensor::from_f32(&[3], &v));
    let scale = of(&mut b, "scale", [1.0, 2.0, 0.5]);
    let bias = of(&mut b, "bias", [0.0, 1.0, -1.0]);
    let mean = of(&mut b, "mean", [0.1, 0.2, 0.3]);
    let var = of(&mut b, "var", [1.0, 2.0, 3.0]);
    let n = b.op("BatchNormalization", &[c, scale, bias, mean, var]).named("norm").one();
    let i = b.op("Identity", &[n]).named("skip").one();
    let t = b.op("Tanh", &[i]).named("new").one();
    let y = b.op("Relu", &[t]).named("act").one();
    b.output_as(y, "y", ElementType::FLOAT, &["n".into(), 3.into(), 4.into(), 4.into()]);
    b.finish().unwrap()
}

#[test]
fn a_second_file_is_compared_and_the_way_back_leads_to_where_one_was() {
    let mut desk = Desk::new();
    let path = desk.path("second.onnx");
    formats::save(&second(), &path, &Default::default()).unwrap();
    desk.go(Command::GoToStep { step: 1 });
    desk.go(Command::Select { target: Some(Target::node("conv")) });
    let (left, step) = (desk.session.selected().cloned(), desk.session.step());
    let steps = desk.session.document().unwrap().step_count();

    desk.go(Command::Compare { path: path.clone() });
    let comparison = desk.session.comparison().unwrap();
    assert_eq!(comparison.name, "second.onnx");
    assert_eq!(comparison.summary(), "1 added, 2 removed, 1 changed, 1 rewired");
    assert_eq!((desk.session.view(), desk.nodes()), (ViewMode::Difference, 5));
    let shown = desk.session.shown().unwrap();
    let rows: Vec<(Mark, &str)> = shown.changes.iter().map(|c| (c.mark, c.name.as_str())).collect();
    let (added, removed) = ((Mark::Added, "new"), [(Mark::Removed, "there"), (Mark::Removed, "back")]);
    assert_eq!(rows, [(Mark::Changed, "conv"), removed[0], removed[1], added, (Mark::Rewired, "act")]);
    assert!(shown.changes[0].detail.contains("constant at input 1"), "{}", shown.changes[0].detail);
    assert!(shown.changes.iter().all(|c| c.pass.is_none()) && shown.badges.is_empty());
    let titles: Vec<&str> = shown.after.as_ref().unwrap().boxes.iter().map(|b| &*b.title).collect();
    assert!(titles.contains(&"Transpose") && titles.contains(&"Tanh"), "{titles:?}");

    // Both models can be looked at, searched and gone about in.
    for (view, before, after) in
        [(ViewMode::Before, true, false), (ViewMode::After, false, true), (ViewMode::SideBySide, true, true)]
    {
        desk.go(Command::SetView { view });
        let shown = desk.session.shown().unwrap();
        assert_eq!((shown.before.is_some(), shown.after.is_some()), (before, after));
    }
    desk.go(Command::Select { target: Some(Target::node("there")) });
    desk.go(Command::Select { target: Some(Target::node("new")) });
    let Some(Item::Node(new)) = desk.session.selected().map(|p| p.item) else { panic!("nothing is chosen") };
    assert_eq!(desk.session.node_card(new).unwrap().operator, "Tanh");
    desk.go(Command::Select { target: Some(Target::node("conv")) });
    let Some(Item::Node(conv)) = desk.session.selected().map(|p| p.item) else { panic!("nothing is chosen") };
    assert!(desk.session.node_card(conv).unwrap().story.is_empty(), "the pipeline is another story");
    let weights = desk.session.weights();
    assert!(weights[0].now.is_some() && weights[0].before.is_some(), "the second file has another weight");
    desk.go(Command::Search { query: "op:tanh".into() });
    assert_eq!(desk.session.hits().total, 1);
    desk.go(Command::NextChange);

    // What is not of the comparison is refused, and the pipeline goes on as ever.
    for command in [Command::NextStep, Command::Save { path: desk.path("never.onnx") }] {
        let error = desk.session.apply(command).unwrap_err();
        assert!(error.contains("close the comparison"), "{error}");
    }
    desk.go(Command::SetPass { pass: "fuse_conv_batch_norm".into(), on: false });
    assert_eq!(desk.nodes(), 5, "the second file is shown still");
    desk.go(Command::Undo);

    desk.go(Command::CloseComparison);
    assert!(desk.session.comparison().is_none());
    assert_eq!((desk.session.selected().cloned(), desk.session.step()), (left, step));
    assert_eq!(
        (desk.session.view(), desk.session.document().unwrap().step_count()),
        (ViewMode::After, steps)
    );
    assert!(desk.session.apply(Command::Select { target: Some(Target::node("new")) }).is_err());
    assert!(desk.session.apply(Command::CloseComparison).is_err());

    // Compared with itself nothing differs; another file ends the comparison.
    let itself = desk.path("small.onnx");
    desk.go(Command::Compare { path: itself.clone() });
    assert_eq!(desk.session.comparison().unwrap().summary(), "no node differs");
    assert!(desk.session.shown().unwrap().changes.is_empty());
    desk.go(Command::Open { path });
    assert!(desk.session.comparison().is_none());
}

#[test]
fn a_second_file_that_cannot_be_read_leaves_the_open_model_alone() {
    let mut desk = Desk::new();
    let bad = desk.path("bad.onnx");
    std::fs::write(&bad, b"PK\x03\x04 this is no model").unwrap();
    desk.go(Command::Compare { path: bad });
    assert_eq!(desk.session.cards().len(), 1);
    assert!(
        desk.session.cards()[0].title.starts_with("Comparing with ") && desk.session.comparison().is_none()
    );
    assert_eq!((desk.nodes(), desk.session.view()), (2, ViewMode::After));
    let mut nothing = Session::new(Registry::builtin(), Arc::new(|| {}));
    assert!(nothing.apply(Command::Compare { path: desk.path("small.onnx") }).is_err());
}

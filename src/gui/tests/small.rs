//! The window at its smallest: nothing is cut without a sign, nothing covers what is needed.

use egui::{Rect, pos2, vec2};
use egui_kittest::kittest::Queryable;

use super::Window;
use crate::session::{Command, Target, ViewMode};

const SMALL: egui::Vec2 = vec2(900.0, 600.0);

impl Window<'_> {
    /// A small window with a sample open.
    fn small(sample: &str) -> Self {
        let mut window = Window::sized(SMALL);
        window.app().command(Command::OpenSample { name: sample.to_owned() }).expect("opening starts");
        window.rest();
        window
    }

    fn place(&self, label: &str) -> Rect {
        self.harness.get_by_label(label).rect()
    }
}

#[test]
fn the_way_to_a_deep_node_keeps_its_ends_in_sight() {
    let mut window = Window::small("transformer");
    let deepest = {
        let document = window.app().session.document().expect("open");
        let state = &document.initial;
        let nodes = state.model.nodes_of(state.model.main());
        let depth = |id| state.blocks.block_of(id).map_or(0, |b| state.blocks.ancestors(b).count());
        nodes.max_by_key(|(id, _)| depth(*id)).map(|(id, _)| state.model.node_label(id)).expect("nodes")
    };
    let target = Some(Target::node(&deepest));
    window.app().command(Command::Select { target }).expect("chosen");
    window.rest();
    let crumbs = window.app().sheet().crumbs.clone();
    assert!(crumbs.len() > 3, "{}", crumbs.len());
    let inspector = window.place("Copy").min.x;
    let ends = [&crumbs[0], &crumbs[crumbs.len() - 1]].map(|c| format!("Go to {}", c.text));
    for end in &ends {
        let place = window.place(end);
        assert!(
            place.width() > 30.0 && place.max.x < inspector,
            "{end}: {place:?}, inspector at {inspector}"
        );
    }
}

#[test]
fn a_failure_covers_none_of_the_bars() {
    let mut window = Window::small("mixed");
    let bad = window.folder.path().join("bad.onnx");
    std::fs::write(&bad, b"not a model").expect("written");
    window.app().command(Command::Open { path: bad }).expect("opening starts");
    window.rest();
    let close = window.place("Close");
    let first = window.app().sheet().crumbs[0].text.clone();
    let (above, below) = (window.place(&format!("Go to {first}")), window.place("First rewrite"));
    assert!(close.min.y > above.max.y && close.max.y < below.min.y, "{above:?} {close:?} {below:?}");
}

#[test]
fn overview_and_legend_leave_boxes_free() {
    for sample in ["transformer", "convolutional", "mixed"] {
        let mut window = Window::small(sample);
        for view in [ViewMode::After, ViewMode::Difference] {
            window.app().command(Command::SetView { view }).expect("a view");
            window.app().command(Command::OpenAll { target: None }).expect("it can be done");
            window.rest();
            let Some(map) = window.harness.query_by_label("Overview of the model") else { continue };
            let map = map.rect();
            assert!(!window.harness.state().shell.main.covers(map), "{sample}, {view:?}: {map:?}");
        }
    }
}

#[test]
fn rows_end_inside_their_table() {
    let mut window = Window::small("convolutional");
    window.app().command(Command::NextChange).expect("a change");
    window.rest();
    let sheet = window.app().sheet();
    let pass = sheet.changes.iter().find_map(|c| c.pass.clone()).expect("a pass");
    let right = window.place("Copy").min.x;
    let table = Rect::from_min_max(pos2(0.0, window.place("First rewrite").max.y), pos2(right, SMALL.y));
    let cells = window.harness.query_all_by_label_contains(&pass).map(|n| n.rect());
    let cells: Vec<Rect> = cells
        .filter(|cell| cell.min.y > table.min.y && cell.min.x > 250.0 && cell.min.x < right - 150.0)
        .collect();
    assert!(cells.iter().all(|cell| cell.max.x <= table.max.x), "{cells:?} in {table:?}");
}

#[test]
fn a_wrong_expression_is_said_under_the_search() {
    let mut window = Window::small("mixed");
    let wrong = window.app().command(Command::Search { query: "/conv(/".into() });
    assert!(wrong.expect_err("wrong").contains("no regular expression"));
    window.rest();
    assert!(window.harness.query_by_label_contains("/conv(/ is no regular expression").is_some());
    assert_eq!(window.app().session.cards(), [], "it is said where it is typed");
    window.app().command(Command::Search { query: "/^conv$/".into() }).expect("right");
    window.rest();
    assert!(window.harness.query_by_label_contains("no regular expression").is_none());
    assert!(window.app().session.hits().total > 0);
}

//! The window as a person uses it: clicks by label, keys, typed text; what counts is the session's state afterwards.

mod small;

use std::path::PathBuf;
use std::time::Duration;

use egui::{Key, Modifiers, vec2};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;

use super::app::App;
use crate::formats::{self, SaveOptions};
use crate::ir::{Builder, ElementType, Model, Tensor};
use crate::pipeline::Registry;
use crate::session::{Command, ViewMode};

/// Two convolution steps with leftovers that passes remove: an Identity, a Dropout and a pair of transposes.
fn model() -> Model {
    let mut b = Builder::new("small", 17);
    let x = b.input("x", ElementType::FLOAT, &[2.into(), 3.into()]);
    let a = b.op("Identity", &[x]).named("/stem/skip").one();
    let c = b.op("Relu", &[a]).named("/stem/act").one();
    let d = b.op("Dropout", &[c]).named("/head/drop").one();
    let t = b.op("Transpose", &[d]).attr("perm", vec![1i64, 0]).named("/head/turn").one();
    let u = b.op("Transpose", &[t]).attr("perm", vec![1i64, 0]).named("/head/back").one();
    let y = b.op("Sigmoid", &[u]).named("/head/out").one();
    b.output(y);
    b.finish().expect("a sound model")
}

/// Constant nodes that say the same, of which one is removed: it is no box in any picture.
fn constants() -> Model {
    let mut b = Builder::new("constants", 17);
    let mut x = b.input("x", ElementType::FLOAT, &[1.into()]);
    for name in ["/a", "/b"] {
        let c = b.op("Constant", &[]).attr("value", Tensor::from_f32(&[1], &[2.0]));
        let c = c.named(&format!("{name}/two")).one();
        x = b.op("Mul", &[x, c]).named(&format!("{name}/twice")).one();
        x = b.op("Relu", &[x]).named(&format!("{name}/act")).one();
    }
    b.output(x);
    b.finish().expect("a sound model")
}

struct Window<'a> {
    harness: Harness<'a, App>,
    folder: tempfile::TempDir,
}

impl Window<'_> {
    /// A window on the start page, with a folder that holds the model as `small.onnx`.
    fn new() -> Self {
        Window::sized(vec2(1500.0, 900.0))
    }

    fn sized(size: egui::Vec2) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        formats::save(&model(), &folder.path().join("small.onnx"), &SaveOptions::default()).expect("saved");
        let ctx = egui::Context::default();
        super::theme::install(&ctx);
        let mut app = App::quiet(&ctx, Registry::builtin());
        app.settings.folder = Some(folder.path().to_path_buf());
        let harness = Harness::builder()
            .with_size(size)
            .with_step_dt(1.0 / 60.0)
            .with_max_steps(300)
            .build_ui_state(|ui, app: &mut App| app.ui(ui), app);
        let mut window = Window { harness, folder };
        window.rest();
        window
    }

    /// The same with the model open.
    fn opened() -> Self {
        let mut window = Window::new();
        let path = window.path();
        window.app().command(Command::Open { path }).expect("opening starts");
        window.rest();
        assert_eq!(window.app().session.cards(), [], "no failures");
        window
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("small.onnx")
    }

    fn app(&mut self) -> &mut App {
        self.harness.state_mut()
    }

    /// Until nothing runs and nothing moves.
    fn rest(&mut self) {
        for _ in 0..50 {
            assert!(self.app().session.wait_idle(Duration::from_secs(60)), "background work ends");
            self.harness.run_steps(12);
            if self.app().session.is_idle() && self.harness.state().sheet().jobs.is_empty() {
                return;
            }
        }
        panic!("the window never comes to rest");
    }

    fn click(&mut self, label: &str) {
        self.harness.get_by_label(label).click();
        self.rest();
    }

    fn press(&mut self, modifiers: Modifiers, key: Key) {
        self.harness.key_press_modifiers(modifiers, key);
        self.rest();
    }

    fn type_text(&mut self, text: &str) {
        self.harness.event(egui::Event::Text(text.to_owned()));
        self.rest();
    }

    fn chosen(&self) -> String {
        self.harness.state().sheet().facts.subtitle.clone()
    }

    /// Something of every picture is on the screen.
    fn check_sight(&self, what: &str) {
        let app = self.harness.state();
        let (main, second) = (&app.shell.main, &app.shell.second);
        assert!(main.sees_anything(main.view()), "{what}: nothing in sight");
        if app.session.view() == ViewMode::SideBySide {
            assert!(second.sees_anything(second.view()), "{what}: nothing in sight after");
        }
    }

    /// What stands for the chosen thing is lit and on the screen, in one of the pictures.
    fn check_chosen(&self, what: &str) {
        let app = self.harness.state();
        let sheet = app.sheet();
        let seen = |lit: &Option<super::lit::Lit>, canvas: &super::canvas::Canvas| {
            let rect = lit.as_ref().and_then(|lit| canvas.rect_of(&lit.place));
            rect.is_some_and(|rect| canvas.view().visible(canvas.size()).intersects(rect))
        };
        let second = app.session.view() == ViewMode::SideBySide && seen(&sheet.second_lit, &app.shell.second);
        assert!(second || seen(&sheet.lit, &app.shell.main), "{what}: {:?} is not lit", sheet.facts.subtitle);
    }

    fn steps(&self) -> u32 {
        self.harness.state().session.document().map_or(0, |d| d.step_count())
    }
}

#[test]
fn a_model_is_opened_through_the_file_browser() {
    let mut window = Window::new();
    window.click("Open…");
    for _ in 0..200 {
        if window.harness.query_by_label_contains("small.onnx").is_some() {
            break;
        }
        // The folder is read in a thread of its own.
        std::thread::sleep(Duration::from_millis(5));
        window.harness.run_steps(2);
    }
    window.harness.get_by_label_contains("small.onnx").click();
    window.rest();
    window.click("Open");
    let path = window.path().canonicalize().expect("a path");
    assert_eq!(window.app().session.path(), Some(&path));
    assert_eq!(window.app().settings.recent, [path]);
    assert!(window.steps() >= 3, "passes ran on their own");
}

#[test]
fn a_pass_is_switched_off_and_the_switch_is_undone() {
    let mut window = Window::opened();
    let all = window.steps();
    window.click("Switch eliminate_identity");
    assert!(window.steps() < all);
    let undo = window.app().sheet().undo.clone();
    assert_eq!(undo.as_deref(), Some("switch off eliminate_identity"));
    window.press(Modifiers::COMMAND, Key::Z);
    assert_eq!(window.steps(), all);
    window.press(Modifiers::COMMAND | Modifiers::SHIFT, Key::Z);
    assert!(window.steps() < all);
}

#[test]
fn a_site_is_ticked_off_in_the_list_of_its_pass() {
    let mut window = Window::opened();
    let all = window.steps();
    window.click("Pass merge_transposes");
    let pass = |window: &mut Window| {
        let rows = window.app().sheet().passes.clone();
        rows.into_iter().find(|p| &*p.name == "merge_transposes").expect("the pass")
    };
    let site = pass(&mut window).sites.first().cloned().expect("its site");
    window.click(&format!("Apply {}", site.key));
    assert_eq!(window.steps(), all - 1);
    assert!(pass(&mut window).sites.iter().any(|s| s.excluded && s.key == site.key));
    window.click(&format!("Apply {}", site.key));
    assert_eq!(window.steps(), all);
}

#[test]
fn badges_of_one_pass_are_shown_alone_and_risky_passes_are_allowed() {
    let mut window = Window::opened();
    window.harness.get_by_label("Pass eliminate_identity").click_secondary();
    window.rest();
    window.click("Show only badges of this pass");
    assert_eq!(window.app().session.badges_of(), Some("eliminate_identity"));
    window.press(Modifiers::COMMAND | Modifiers::SHIFT, Key::P);
    window.type_text("allow risky");
    window.press(Modifiers::NONE, Key::Enter);
    assert!(window.app().sheet().aggressive);
}

#[test]
fn the_four_views_and_the_steps() {
    let mut window = Window::opened();
    for (label, view) in [
        ("Before", ViewMode::Before),
        ("Side by side", ViewMode::SideBySide),
        ("Difference", ViewMode::Difference),
        ("After", ViewMode::After),
    ] {
        window.click(label);
        assert_eq!(window.app().session.view(), view);
    }
    let last = window.steps();
    window.click("First rewrite");
    assert_eq!(window.app().session.step(), 0);
    window.click("Next rewrite");
    assert_eq!(window.app().session.step(), 1);
    assert!(!window.chosen().is_empty(), "the step's node is chosen");
    window.click("Last rewrite");
    assert_eq!(window.app().session.step(), last);
    window.click("Rewrites");
    window.click("Rewrite 2");
    assert_eq!(window.app().session.step(), 2);
}

#[test]
fn search_finds_goes_there_and_closes() {
    let mut window = Window::opened();
    window.press(Modifiers::COMMAND, Key::F);
    window.type_text("op:Sigmoid");
    assert_eq!(window.app().session.hits().total, 1);
    window.press(Modifiers::NONE, Key::Enter);
    assert_eq!(window.chosen(), "/head/out");
    window.press(Modifiers::NONE, Key::Escape);
    assert!(window.app().shell.search.is_none());
    assert_eq!(window.app().session.hits().total, 0);
}

#[test]
fn changes_are_walked_and_back_leads_back() {
    let mut window = Window::opened();
    window.click("Difference");
    window.press(Modifiers::NONE, Key::N);
    let first = window.chosen();
    window.press(Modifiers::NONE, Key::N);
    let second = window.chosen();
    assert!(!first.is_empty() && first != second);
    window.press(Modifiers::NONE, Key::P);
    assert_eq!(window.chosen(), first);
    window.press(Modifiers::ALT, Key::ArrowLeft);
    assert_eq!(window.chosen(), second);
}

#[test]
fn the_palette_does_what_it_names_and_says_why_it_cannot() {
    let mut window = Window::opened();
    window.press(Modifiers::COMMAND | Modifiers::SHIFT, Key::P);
    window.type_text("side by side");
    window.press(Modifiers::NONE, Key::Enter);
    assert_eq!(window.app().session.view(), ViewMode::SideBySide);
    window.press(Modifiers::COMMAND | Modifiers::SHIFT, Key::P);
    window.type_text("undo");
    assert!(window.harness.query_by_label_contains("nothing to undo").is_some());
    window.press(Modifiers::NONE, Key::Escape);
    window.press(Modifiers::NONE, Key::Questionmark);
    // Once as the heading, once as the verb that opens the sheet.
    assert_eq!(window.harness.query_all_by_label("Keyboard shortcuts").count(), 2);
}

#[test]
fn panels_are_hidden_and_shown_by_keys() {
    let mut window = Window::opened();
    window.press(Modifiers::COMMAND, Key::B);
    window.press(Modifiers::COMMAND, Key::J);
    let settings = window.app().settings.clone();
    assert!(!settings.pipeline_shown && !settings.bottom_shown && settings.inspector_shown);
    assert!(window.harness.query_by_label("Switch eliminate_identity").is_none());
    window.press(Modifiers::COMMAND, Key::B);
    assert!(window.harness.query_by_label("Switch eliminate_identity").is_some());
}

#[test]
fn a_file_that_cannot_be_read_leaves_a_card_and_the_open_model() {
    let mut window = Window::opened();
    let bad = window.folder.path().join("bad.onnx");
    std::fs::write(&bad, b"not a model at all").expect("written");
    window.app().command(Command::Open { path: bad }).expect("opening starts");
    window.rest();
    assert_eq!(window.app().session.cards().len(), 1);
    assert!(window.app().session.document().is_some(), "the last good state stays");
    window.click("Close");
    assert_eq!(window.app().session.cards(), []);
}

#[test]
fn the_optimized_model_is_saved_and_opens_again() {
    let mut window = Window::opened();
    window.press(Modifiers::COMMAND, Key::S);
    let nodes = window.app().sheet().nodes_after;
    window.click("Save");
    let path = window.folder.path().join("small.optimized.onnx");
    let saved = formats::open(&path).expect("a model");
    assert_eq!(saved.model.node_count(), nodes);
}

#[test]
fn there_is_something_to_see_after_every_change_of_the_picture() {
    for sample in ["transformer", "convolutional", "mixed"] {
        let mut window = Window::new();
        let name = sample.to_owned();
        window.app().command(Command::OpenSample { name }).expect("opening starts");
        window.rest();
        let view = |view| Command::SetView { view };
        let (all, none) = (Command::OpenAll { target: None }, Command::CloseAll { target: None });
        let round = [
            all.clone(),
            none.clone(),
            view(ViewMode::SideBySide),
            all.clone(),
            Command::NextChange,
            view(ViewMode::Before),
            Command::PreviousChange,
            none.clone(),
            Command::GoToStep { step: 1 },
            view(ViewMode::SideBySide),
            Command::GoToEnd,
            Command::Select { target: None },
            all,
            view(ViewMode::After),
            none,
            view(ViewMode::Difference),
            Command::GoToStep { step: 0 },
            Command::GoToEnd,
        ];
        // Twice: from the start, and from the end of a model opened up.
        for turn in 0..2 {
            for (i, command) in round.iter().enumerate() {
                window.app().command(command.clone()).expect("it can be done");
                window.rest();
                window.check_sight(&format!("{sample}, turn {turn}, {i}: {command:?}"));
            }
            window.app().command(Command::OpenAll { target: None }).expect("it can be done");
            window.rest();
            let end = window.app().shell.main.rect_of_last();
            let size = window.app().shell.main.size();
            window.app().shell.main.set_view(super::canvas::View::centred(end.center(), size, 1.0));
            window.rest();
        }
    }
}

#[test]
fn every_change_is_lit_somewhere_in_every_view() {
    for sample in ["transformer", "convolutional", "mixed", "constants"] {
        let mut window = Window::new();
        let path = window.folder.path().join("constants.onnx");
        formats::save(&constants(), &path, &SaveOptions::default()).expect("saved");
        let name = sample.to_owned();
        let open = if sample == "constants" { Command::Open { path } } else { Command::OpenSample { name } };
        window.app().command(open).expect("opening starts");
        window.rest();
        let count = window.app().sheet().changes.len();
        assert!(count > 0);
        for view in [ViewMode::After, ViewMode::Before, ViewMode::SideBySide, ViewMode::Difference] {
            for i in 0..count {
                window.app().command(Command::SetView { view }).expect("a view");
                window.app().command(Command::NextChange).expect("a change");
                window.rest();
                window.check_chosen(&format!("{sample}, {view:?}, change {i}"));
            }
        }
    }
}

#[test]
fn a_second_file_is_compared_through_the_file_browser_and_closed_again() {
    let mut window = Window::opened();
    let optimized = window.app().session.shown().expect("a picture").state.model.clone();
    formats::save(&optimized, &window.folder.path().join("second.onnx"), &SaveOptions::default())
        .expect("saved");
    window.press(Modifiers::COMMAND | Modifiers::SHIFT, Key::O);
    for _ in 0..200 {
        if window.harness.query_by_label_contains("second.onnx").is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
        window.harness.run_steps(2);
    }
    window.harness.get_by_label_contains("second.onnx").click();
    window.rest();
    window.click("Open");
    let compared = window.app().sheet().compared.clone().expect("two files are compared");
    assert_eq!(compared.name, "second.onnx");
    assert!(window.harness.query_by_label(&compared.summary).is_some(), "the banner says what differs");
    assert!(!window.app().sheet().changes.is_empty() && window.app().sheet().steps.is_empty());
    window.press(Modifiers::NONE, Key::Num3);
    assert_eq!(window.app().session.view(), ViewMode::SideBySide);
    window.press(Modifiers::NONE, Key::N);
    assert!(window.app().session.selected().is_some(), "the changes can be walked");
    window.click("Close comparison");
    assert_eq!(window.app().sheet().compared, None);
    assert!(window.harness.query_by_label("Close comparison").is_none());
    assert_eq!(window.app().session.view(), ViewMode::After);
    assert!(!window.app().sheet().steps.is_empty(), "the pipeline's rewrites are there again");
}

//! The canvas driven as a person would: looks at actions, camera and what was drawn, not at pixels.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use egui::{Key, Modifiers, pos2, vec2};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable;

use super::{Action, Canvas, Request};
use crate::blocks::BlockId;
use crate::ir::{NodeId, ValueId};
use crate::scene::{BoxKind, Family, Item, Line, Mark, Picture, PictureBox, Place, Point, Rect, Tag};

fn a_box(item: Item, kind: BoxKind, title: &str, rect: Rect) -> PictureBox {
    PictureBox {
        place: Place::of(item),
        kind,
        rect,
        depth: 0,
        parent: None,
        title: title.into(),
        subtitle: format!("/{title}_1").into(),
        lines: Vec::new(),
        tags: Vec::new(),
        family: Family::Convolution,
        mark: Mark::Same,
        badge: None,
        repeat: "".into(),
        hits: 0,
        label: format!("{title} /{title}_1").into(),
    }
}

fn line(from: u32, to: u32, boxes: &[PictureBox]) -> Line {
    let (a, b) = (&boxes[from as usize].rect, &boxes[to as usize].rect);
    let start = Point { x: a.center().x, y: a.max.y };
    let end = Point { x: b.center().x, y: b.min.y };
    Line {
        from,
        to,
        points: vec![start, end],
        values: [ValueId(from)].into_iter().collect(),
        count: 1,
        label: "1×64×56×56".into(),
        label_at: Some(Point { x: (start.x + end.x) / 2.0, y: (start.y + end.y) / 2.0 }),
        mark: Mark::Same,
    }
}

/// An input, an open block with two nodes side by side, a closed block and an output.
pub fn sample() -> Picture {
    let node = |n: u32| Item::Node(NodeId(n));
    let mut open =
        a_box(Item::Block(BlockId(1)), BoxKind::OpenBlock, "stem", Rect::new(0.0, 80.0, 480.0, 170.0));
    open.subtitle = "2 nodes".into();
    let mut conv = a_box(node(1), BoxKind::Node, "Conv", Rect::new(20.0, 130.0, 200.0, 100.0));
    conv.lines = vec!["kernel 3×3, stride 2".into()];
    conv.tags = vec![Tag {
        value: ValueId(9),
        text: "W [64,3,7,7]".into(),
        constant: true,
        rect: Rect::new(30.0, 204.0, 90.0, 18.0),
    }];
    conv.badge = Some("fuse_conv_batch_norm".into());
    let mut relu = a_box(node(2), BoxKind::Node, "Relu", Rect::new(260.0, 130.0, 200.0, 60.0));
    relu.family = Family::Activation;
    (conv.depth, relu.depth, conv.parent, relu.parent) = (1, 1, Some(1), Some(1));
    let mut closed =
        a_box(Item::Block(BlockId(2)), BoxKind::ClosedBlock, "layer.0", Rect::new(120.0, 320.0, 240.0, 60.0));
    closed.repeat = "×12".into();
    closed.subtitle = "attention · 41 nodes".into();
    let boxes = vec![
        a_box(Item::Input(ValueId(0)), BoxKind::Input, "image", Rect::new(140.0, 0.0, 200.0, 34.0)),
        open,
        conv,
        relu,
        closed,
        a_box(Item::Output(0, ValueId(5)), BoxKind::Output, "scores", Rect::new(140.0, 440.0, 200.0, 34.0)),
    ];
    let lines = [(0, 2), (0, 3), (2, 4), (3, 4), (4, 5)].map(|(a, b)| line(a, b, &boxes)).into();
    Picture { boxes, lines, far: Vec::new(), bounds: Rect::new(0.0, 0.0, 480.0, 474.0) }
}

struct State {
    canvas: Canvas,
    picture: Arc<Picture>,
    chosen: Option<Place>,
    anchor: Option<Place>,
    actions: Vec<Action>,
}

fn harness<'a>(picture: Picture) -> Harness<'a, Rc<RefCell<State>>> {
    let state = State {
        canvas: Canvas::new("test"),
        picture: Arc::new(picture),
        chosen: None,
        anchor: None,
        actions: Vec::new(),
    };
    let ui = |ui: &mut egui::Ui, state: &mut Rc<RefCell<State>>| {
        let state = &mut *state.borrow_mut();
        let request = Request {
            picture: &state.picture,
            chosen: state.chosen.as_ref(),
            lit: &[],
            linked: false,
            anchor: state.anchor.as_ref(),
            compares: false,
            waiting: false,
            still: false,
            wheel_zooms: true,
            card: &|ui, b| {
                ui.label(format!("card of {}", b.title));
            },
        };
        let actions = state.canvas.ui(ui, &request);
        for action in &actions {
            if let Action::Choose(place) = action {
                state.chosen = place.clone();
            }
        }
        state.actions.extend(actions);
    };
    let mut harness = Harness::builder()
        .with_size(vec2(900.0, 700.0))
        .with_step_dt(1.0 / 60.0)
        .with_max_steps(200)
        .build_ui_state(ui, Rc::new(RefCell::new(state)));
    harness.run();
    harness
}

fn take(harness: &Harness<'_, Rc<RefCell<State>>>) -> Vec<Action> {
    std::mem::take(&mut harness.state().borrow_mut().actions)
}

fn node(n: u32) -> Place {
    Place::of(Item::Node(NodeId(n)))
}

#[test]
fn an_idle_canvas_neither_repaints_nor_draws() {
    let mut harness = harness(sample());
    let before = harness.state().borrow().canvas.draws();
    harness.run_steps(10);
    assert_eq!(harness.state().borrow().canvas.draws(), before, "kept shapes are used again");
    assert!(before <= 4, "drawn {before} times for one picture");
}

#[test]
fn everything_is_seen_at_first_and_can_be_clicked_by_label() {
    let mut harness = harness(sample());
    for label in ["image /image_1", "stem /stem_1", "Conv /Conv_1", "layer.0 /layer.0_1", "scores /scores_1"]
    {
        assert!(harness.query_by_label(label).is_some(), "{label}");
    }
    harness.get_by_label("Conv /Conv_1").click();
    harness.run();
    assert_eq!(take(&harness), [Action::Choose(Some(node(1)))]);
}

#[test]
fn a_double_click_opens_and_a_click_on_the_ground_chooses_nothing() {
    let mut harness = harness(sample());
    let at = harness.get_by_label("layer.0 /layer.0_1").rect().center();
    for _ in 0..2 {
        harness.drag_at(at);
        harness.drop_at(at);
        harness.step();
    }
    harness.run();
    let block = Place::of(Item::Block(BlockId(2)));
    assert!(take(&harness).contains(&Action::Toggle(block)));
    harness.drag_at(pos2(12.0, 12.0));
    harness.drop_at(pos2(12.0, 12.0));
    harness.run();
    assert_eq!(take(&harness).last(), Some(&Action::Choose(None)));
}

#[test]
fn arrows_walk_along_lines_enter_opens_and_backspace_goes_up() {
    let mut harness = harness(sample());
    harness.get_by_label("Conv /Conv_1").click();
    harness.run();
    take(&harness);
    for (key, wanted) in [
        (Key::ArrowRight, Action::Choose(Some(node(2)))),
        (Key::ArrowDown, Action::Choose(Some(Place::of(Item::Block(BlockId(2)))))),
        (Key::Enter, Action::Toggle(Place::of(Item::Block(BlockId(2))))),
        (Key::Backspace, Action::Up),
    ] {
        harness.key_press_modifiers(Modifiers::NONE, key);
        harness.run();
        assert_eq!(take(&harness), [wanted], "{key:?}");
    }
}

#[test]
fn dragging_pans_and_the_wheel_zooms_at_the_pointer() {
    let mut harness = harness(sample());
    let before = harness.state().borrow().canvas.view();
    harness.drag_at(pos2(20.0, 20.0));
    harness.run();
    harness.hover_at(pos2(60.0, 50.0));
    harness.run();
    harness.drop_at(pos2(60.0, 50.0));
    harness.run();
    let moved = harness.state().borrow().canvas.view();
    assert!((moved.pan[0] - before.pan[0] - 40.0).abs() < 0.5, "{before:?} {moved:?}");
    harness.hover_at(pos2(300.0, 200.0));
    harness.run();
    harness.event(egui::Event::MouseWheel {
        unit: egui::MouseWheelUnit::Point,
        delta: vec2(0.0, 60.0),
        phase: egui::TouchPhase::Move,
        modifiers: Modifiers::NONE,
    });
    harness.run();
    assert!(harness.state().borrow().canvas.view().zoom > moved.zoom);
}

#[test]
fn what_was_opened_stays_under_the_pointer() {
    let mut harness = harness(sample());
    let place = Place::of(Item::Block(BlockId(2)));
    let before = harness.get_by_label("layer.0 /layer.0_1").rect();
    let mut larger = sample();
    // The block opens: it grows, moves, and everything below it gives way.
    larger.boxes[4].rect = Rect::new(0.0, 350.0, 600.0, 400.0);
    larger.boxes[4].kind = BoxKind::OpenBlock;
    larger.boxes[5].rect = Rect::new(200.0, 820.0, 200.0, 34.0);
    larger.bounds = Rect::new(0.0, 0.0, 600.0, 860.0);
    {
        let mut state = harness.state().borrow_mut();
        state.picture = Arc::new(larger);
        state.anchor = Some(place);
    }
    harness.run();
    let after = harness.get_by_label("layer.0 /layer.0_1").rect();
    assert!((after.left_top() - before.left_top()).length() < 1.0, "{before:?} {after:?}");
}

#[test]
fn the_card_of_a_resting_pointer_appears() {
    let mut harness = harness(sample());
    let at = harness.get_by_label("Conv /Conv_1").rect().center();
    harness.hover_at(at);
    for _ in 0..60 {
        harness.step();
    }
    assert!(harness.query_by_label("card of Conv").is_some());
}

/// Something of the picture is on the screen.
fn sees(harness: &Harness<'_, Rc<RefCell<State>>>) -> bool {
    let canvas = &harness.state().borrow().canvas;
    canvas.sees_anything(canvas.view())
}

#[test]
fn a_picture_of_another_size_is_never_out_of_sight() {
    let far = |shift: f32, scale: f32| {
        let mut picture = sample();
        for b in &mut picture.boxes {
            let r = &b.rect;
            b.rect = Rect::new(r.min.x * scale + shift, r.min.y * scale + shift, r.width(), r.height());
        }
        picture.bounds = Rect::new(shift, shift, 600.0 * scale, 600.0 * scale);
        picture
    };
    // Without anything in common, with everything, with only what is out of sight in common, and back again.
    let strangers = {
        let mut picture = far(90_000.0, 1.0);
        picture.boxes.iter_mut().enumerate().for_each(|(i, b)| b.place = node(700 + i as u32));
        picture
    };
    let mut harness = harness(sample());
    for (i, picture) in
        [far(50_000.0, 80.0), sample(), strangers, far(-7_000.0, 300.0), sample()].into_iter().enumerate()
    {
        {
            let mut state = harness.state().borrow_mut();
            state.anchor = (i % 2 == 0).then(|| node(2));
            state.picture = Arc::new(picture);
        }
        harness.run();
        assert!(sees(&harness), "picture {i}");
    }
}

#[test]
fn what_was_moved_out_of_sight_is_brought_back_by_a_button() {
    let mut harness = harness(sample());
    harness.state().borrow_mut().canvas.set_view(super::View { zoom: 1.0, pan: [9_000.0, 9_000.0] });
    harness.run();
    assert!(!sees(&harness));
    harness.get_by_label("Nothing here; show all").click();
    harness.run();
    assert!(sees(&harness));
    assert!(harness.query_by_label("Nothing here; show all").is_none());
}

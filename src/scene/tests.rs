//! Pictures of small models made by hand.

use super::*;
use crate::blocks::{Block, BlockId, BlockKind, BlockTree, Child};
use crate::ir::{Builder, ElementType, NodeId, Patch, PatchBuilder, Tensor, Text};

fn run(scene: &mut Scene, view: &View) -> Picture {
    scene.picture(view, &AtomicBool::new(false)).expect("not cancelled")
}

/// Two blocks of two nodes each, a mask read in both, a skip around the second; one node outside.
fn model() -> Model {
    let mut b = Builder::new("two", 17);
    let x = b.input("x", ElementType::FLOAT, &["batch".into(), 8.into()]);
    let mask = b.input("mask", ElementType::FLOAT, &[8.into()]);
    let w = b.constant("encoder.weight", Tensor::from_f32(&[8, 8], &[0.5; 64]));
    let one = b.constant("one", Tensor::scalar_f32(1.0));
    let a = b.op("MatMul", &[x, w]).named("/first/MatMul").one();
    let a = b.op("Add", &[a, mask]).named("/first/Add").one();
    let c = b.op("Relu", &[a]).named("/second/Relu").one();
    let c = b.op("Mul", &[c, mask]).named("/second/Mul").one();
    let y = b.op("Add", &[c, a]).named("join").one();
    let y = b.op("Mul", &[y, one]).named("scale").one();
    b.output(y);
    b.finish().expect("a sound model")
}

fn block(model: &Model, parent: Option<u32>, name: &str, children: Vec<Child>, nodes: u32) -> Block {
    let kind = if parent.is_none() { BlockKind::Graph } else { BlockKind::Scope };
    let parent = parent.map(BlockId);
    Block {
        graph: model.main(),
        parent,
        kind,
        name: name.into(),
        note: "".into(),
        children,
        nodes,
        repeat: None,
    }
}

fn blocks(model: &Model) -> BlockTree {
    let n: Vec<Child> = model.graph(model.main()).nodes.values().map(|n| Child::Node(*n)).collect();
    let first = block(model, Some(0), "first", n[0..2].to_vec(), 2);
    let second = block(model, Some(0), "second", n[2..4].to_vec(), 2);
    let top = vec![Child::Block(BlockId(1)), Child::Block(BlockId(2)), n[4], n[5]];
    BlockTree::new(vec![block(model, None, "main", top, 6), first, second])
}

fn places(items: &[Item]) -> BTreeSet<Place> {
    items.iter().map(|i| Place::of(*i)).collect()
}

fn titles(picture: &Picture) -> Vec<&str> {
    picture.boxes.iter().map(|b| &*b.title).collect()
}

/// Members lie inside their containers, siblings apart from each other, lines begin and end on their boxes.
fn sound(picture: &Picture) {
    for (i, b) in picture.boxes.iter().enumerate() {
        let outer = b.parent.map_or(picture.bounds, |p| {
            assert!((p as usize) < i, "a container comes before its members");
            picture.boxes[p as usize].rect
        });
        assert!(
            b.rect.min.x >= outer.min.x && b.rect.max.x <= outer.max.x,
            "{} sticks out of its container",
            b.title
        );
        assert!(
            b.rect.min.y >= outer.min.y && b.rect.max.y <= outer.max.y,
            "{} sticks out of its container",
            b.title
        );
        for other in picture.boxes[..i].iter().filter(|o| o.parent == b.parent) {
            assert!(!other.rect.intersects(&b.rect), "{} and {} overlap", other.title, b.title);
        }
    }
    for line in &picture.lines {
        let (from, to) = (&picture.boxes[line.from as usize].rect, &picture.boxes[line.to as usize].rect);
        let (first, last) = (line.points[0], line.points[line.points.len() - 1]);
        assert!((first.y - from.max.y).abs() < 0.5 && first.x >= from.min.x && first.x <= from.max.x);
        assert!((last.y - to.min.y).abs() < 0.5 && last.x >= to.min.x && last.x <= to.max.x);
        assert!(line.points.windows(2).all(|p| p[1].y >= p[0].y - 0.5), "a line turns upward");
    }
}

#[test]
fn closed_open_and_closed_again() {
    let model = model();
    let (facts, blocks, overlay) = (Facts::infer(&model), blocks(&model), Overlay::default());
    let closed = places(&[]);
    let view = View {
        model: &model,
        facts: &facts,
        blocks: &blocks,
        graph: model.main(),
        open: &closed,
        overlay: &overlay,
        before: None,
    };
    let mut scene = Scene::new();
    let before = run(&mut scene, &view);
    sound(&before);
    assert_eq!(titles(&before)[..4], ["x", "mask", "first", "second"]);
    assert_eq!(&*before.boxes[2].subtitle, "2 nodes");
    assert_eq!(&*before.boxes[2].label, "block first, 2 nodes, closed");
    // The first block reads both inputs; it gives one value to the second block and to the node after it.
    let ends: Vec<(&str, &str)> = before
        .lines
        .iter()
        .map(|l| (&*before.boxes[l.from as usize].title, &*before.boxes[l.to as usize].title))
        .collect();
    assert!(ends.contains(&("first", "second")) && ends.contains(&("first", "Add")));

    let open = places(&[Item::Block(BlockId(2))]);
    let opened = run(&mut scene, &View { open: &open, ..view });
    sound(&opened);
    let relu = opened.boxes.iter().find(|b| &*b.title == "Relu").expect("the block's node is seen");
    assert_eq!((relu.depth, &*relu.label), (1, "node Relu /second/Relu"));
    let container = &opened.boxes[relu.parent.expect("in the block") as usize];
    assert_eq!((container.kind, &*container.label), (BoxKind::OpenBlock, "block second, 2 nodes, open"));
    let place = Place::of(Item::Block(BlockId(2)));
    let shift = shift_of(&before, &opened, &place).expect("seen in both");
    let (old, new) =
        (before.find(&place).expect("seen") as usize, opened.find(&place).expect("seen") as usize);
    assert_eq!(before.boxes[old].rect.min.x + shift.x, opened.boxes[new].rect.min.x);
    // Closing gives the first picture again.
    assert_eq!(run(&mut scene, &view), before);
}

#[test]
fn constants_are_tags_at_their_readers() {
    let model = model();
    let (facts, blocks, overlay) = (Facts::infer(&model), blocks(&model), Overlay::default());
    let open = places(&[Item::Block(BlockId(1))]);
    let view = View {
        model: &model,
        facts: &facts,
        blocks: &blocks,
        graph: model.main(),
        open: &open,
        overlay: &overlay,
        before: None,
    };
    let picture = run(&mut Scene::new(), &view);
    sound(&picture);
    let tags = |title: &str, subtitle: &str| -> Vec<String> {
        let b = picture.boxes.iter().find(|b| &*b.title == title && &*b.subtitle == subtitle).expect("seen");
        b.tags.iter().map(|t| t.text.to_string()).collect()
    };
    assert_eq!(tags("MatMul", "first/MatMul"), ["B [8, 8]"]);
    assert_eq!(tags("Mul", "scale"), ["1"]);
    assert!(!titles(&picture).contains(&"encoder.weight"));
}

#[test]
fn widely_read_values_are_tags() {
    let mut b = Builder::new("mask", 17);
    let mut x = b.input("x", ElementType::FLOAT, &[8.into()]);
    let mask = b.input("mask", ElementType::FLOAT, &[8.into()]);
    for _ in 0..9 {
        x = b.op("Add", &[x, mask]).one();
    }
    b.output(x);
    let model = b.finish().expect("sound");
    let (facts, overlay, open) = (Facts::infer(&model), Overlay::default(), BTreeSet::new());
    let blocks = BlockTree::default();
    let view = View {
        model: &model,
        facts: &facts,
        blocks: &blocks,
        graph: model.main(),
        open: &open,
        overlay: &overlay,
        before: None,
    };
    let picture = run(&mut Scene::new(), &view);
    sound(&picture);
    assert_eq!(picture.lines.len(), 10, "only the chain has lines");
    assert_eq!(picture.far.len(), 1);
    assert_eq!(picture.far[0].readers.len(), 9);
    let tagged = picture.boxes.iter().filter(|b| b.tags.iter().any(|t| &*t.text == "mask →" && !t.constant));
    assert_eq!(tagged.count(), 9);
}

#[test]
fn a_skip_over_forty_nodes_is_a_tag() {
    let mut b = Builder::new("long", 17);
    let x = b.input("x", ElementType::FLOAT, &[8.into()]);
    let start = b.op("Relu", &[x]).named("start").one();
    let mut y = start;
    for _ in 0..40 {
        y = b.op("Relu", &[y]).one();
    }
    let y = b.op("Add", &[y, start]).named("end").one();
    b.output(y);
    let model = b.finish().expect("sound");
    let (facts, overlay, open) = (Facts::infer(&model), Overlay::default(), BTreeSet::new());
    let blocks = BlockTree::default();
    let view = View {
        model: &model,
        facts: &facts,
        blocks: &blocks,
        graph: model.main(),
        open: &open,
        overlay: &overlay,
        before: None,
    };
    let picture = run(&mut Scene::new(), &view);
    sound(&picture);
    let end = picture.boxes.iter().find(|b| &*b.subtitle == "end").expect("seen");
    assert_eq!(end.tags.len(), 1);
    assert!(!end.tags[0].constant && end.tags[0].rect.max.y <= end.rect.max.y);
    assert_eq!(picture.far.len(), 1);
}

/// A body that reads an outer value, opened and closed.
#[test]
fn bodies_open_in_their_node() {
    let mut b = Builder::new("branches", 17);
    let x = b.input("x", ElementType::FLOAT, &[8.into()]);
    let choose = b.input("choose", ElementType::BOOL, &[]);
    let r = b.op("Relu", &[x]).named("outer").one();
    let y = b
        .op("If", &[choose])
        .named("pick")
        .body("then_branch", |b| {
            let v = b.op("Neg", &[r]).named("minus").one();
            b.output(v);
        })
        .body("else_branch", |b| {
            let v = b.op("Abs", &[r]).named("size").one();
            b.output(v);
        })
        .one();
    b.output(y);
    let model = b.finish().expect("sound");
    let facts = Facts::infer(&model);
    let blocks = crate::blocks::build(&model, &facts);
    let overlay = Overlay::default();
    let (_, pick) = model.nodes_of(model.main()).nth(1).map(|(id, n)| (n.name.clone(), id)).expect("there");
    let closed = BTreeSet::new();
    let view = View {
        model: &model,
        facts: &facts,
        blocks: &blocks,
        graph: model.main(),
        open: &closed,
        overlay: &overlay,
        before: None,
    };
    let mut scene = Scene::new();
    let picture = run(&mut scene, &view);
    sound(&picture);
    let node = picture.find(&Place::of(Item::Node(pick))).expect("seen");
    assert_eq!(picture.boxes[node as usize].kind, BoxKind::ClosedNode);
    assert_eq!(
        picture.lines.iter().filter(|l| l.to == node).count(),
        2,
        "the condition and the captured value"
    );

    let open = places(&[Item::Node(pick)]);
    let picture = run(&mut scene, &View { open: &open, ..view });
    sound(&picture);
    let bodies: Vec<&str> =
        picture.boxes.iter().filter(|b| b.kind == BoxKind::Body).map(|b| &*b.title).collect();
    assert_eq!(bodies, ["then_branch", "else_branch"]);
    let captured = |title: &str| {
        picture.lines.iter().any(|l| {
            &*picture.boxes[l.from as usize].subtitle == "outer"
                && &*picture.boxes[l.to as usize].title == title
        })
    };
    assert!(captured("Neg") && captured("Abs"));
}

/// What a change took away stays to be seen, marked.
#[test]
fn merged_pictures_show_what_was_removed() {
    let before = model();
    let blocks = blocks(&before);
    let node = |name: &str| -> NodeId {
        before.nodes_of(before.main()).find(|(_, n)| &*n.name == name).map(|(id, _)| id).expect("there")
    };
    let (relu, mul) = (node("/second/Relu"), node("/second/Mul"));
    let mut after = before.clone();
    let mut patch = PatchBuilder::new(&before);
    patch.replace_uses(
        before.node(relu).outputs[0].expect("given"),
        before.node(relu).inputs[0].expect("given"),
    );
    patch.remove_node(relu);
    let patch: Patch = patch.finish();
    after.apply(&patch).expect("applies");
    let facts = Facts::infer(&after);
    let overlay = Overlay {
        badges: [(mul, Text::from("eliminate_identity"))].into(),
        hits: [mul].into(),
        ..Overlay::default()
    };
    let open = places(&[Item::Block(BlockId(2))]);
    let view = View {
        model: &after,
        facts: &facts,
        blocks: &blocks,
        graph: after.main(),
        open: &open,
        overlay: &overlay,
        before: Some(&before),
    };
    let mut scene = Scene::new();
    let picture = run(&mut scene, &view);
    sound(&picture);
    let ghost = &picture.boxes[picture.find(&Place::of(Item::Node(relu))).expect("still seen") as usize];
    assert_eq!(ghost.mark, Mark::Removed);
    let at = picture.find(&Place::of(Item::Node(mul))).expect("seen");
    assert_eq!(picture.boxes[at as usize].badge.as_deref(), Some("eliminate_identity"));
    assert_eq!(picture.boxes[at as usize].hits, 1);
    let marks: Vec<Mark> = picture.lines.iter().filter(|l| l.to == at).map(|l| l.mark).collect();
    assert!(marks.contains(&Mark::Removed) && marks.contains(&Mark::Rewired), "{marks:?}");
    // Without the model before, the node is gone.
    let picture = run(&mut scene, &View { before: None, ..view });
    assert_eq!(picture.find(&Place::of(Item::Node(relu))), None);
    // Closed, the block says that something in it changed.
    let closed = BTreeSet::new();
    let picture = run(&mut scene, &View { open: &closed, ..view });
    let block = &picture.boxes[picture.find(&Place::of(Item::Block(BlockId(2)))).expect("seen") as usize];
    assert_eq!((block.mark, block.badge.as_deref(), block.hits), (Mark::Changed, Some("1 rewritten"), 1));
}

#[test]
fn the_svg_holds_every_title_and_the_png_has_ink() {
    let model = model();
    let (facts, blocks, overlay) = (Facts::infer(&model), blocks(&model), Overlay::default());
    let open = places(&[Item::Block(BlockId(1))]);
    let view = View {
        model: &model,
        facts: &facts,
        blocks: &blocks,
        graph: model.main(),
        open: &open,
        overlay: &overlay,
        before: None,
    };
    let picture = run(&mut Scene::new(), &view);
    for dark in [false, true] {
        let style = svg::Style { dark, size: None };
        let text = svg::svg(&picture, &style);
        for b in &picture.boxes {
            assert!(text.contains(&format!(">{}</text>", b.title)), "{} is not written", b.title);
        }
        assert!(text.contains(">matrix product, attention</text>"), "the legend names the families");
        let with = svg::png(&picture, &style).expect("drawn");
        let mut wordless = picture.clone();
        for b in &mut wordless.boxes {
            b.title = "".into();
        }
        let without = svg::png(&wordless, &style).expect("drawn");
        assert!(with.len() > without.len() + 500, "titles leave ink: the font was found");
    }
    let small = svg::png(&picture, &svg::Style { dark: false, size: Some((200, 100)) }).expect("drawn");
    assert_eq!(&small[16..24], [0, 0, 0, 200, 0, 0, 0, 100], "width and height of the PNG header");
}

//! Fills a picture from places and words: boxes with their marks, badges and tags, lines with their labels.

use super::compose::Composed;
use super::describe;
use super::font::text_width;
use super::measure::{self, Measured, SMALL_SIZE, Words};
use super::overlay::Overlay;
use super::picture::{BoxKind, Family, Far, Line, Mark, Picture, PictureBox, Point, Rect};
use super::source::Source;
use super::visible::{Scenery, Visible, What};
use super::wires::{Wire, Wires};
use crate::blocks::{BlockKind, BlockTree};
use crate::facts::Facts;
use crate::ir::{NodeId, Text};

/// Space around everything.
const MARGIN: f32 = 24.0;
/// A merged line lists no more values than this.
const MOST_VALUES: usize = 16;

/// Where words and marks come from.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    pub(super) source: Source<'a>,
    pub(super) facts: &'a Facts,
    pub(super) blocks: &'a BlockTree,
    pub(super) overlay: &'a Overlay,
}

/// Words of every box, and its size when closed (when open, of its title bar).
pub(super) fn words(
    known: &Known,
    scenery: &Scenery,
    wires: &Wires,
    far: &[bool],
) -> (Vec<Words>, Vec<Measured>) {
    let (source, facts) = (&known.source, known.facts);
    let mut words: Vec<Words> = scenery.boxes.iter().map(|b| words_of(known, b)).collect();
    for held in &wires.held {
        let holder = &scenery.boxes[held.holder as usize];
        let node = match holder.what {
            What::Node(id) => source.node(id).map(|n| &**n),
            _ => None,
        };
        let tag = describe::constant_tag(source, facts, node, held.value);
        words[held.holder as usize].tags.push((held.value, tag, true));
    }
    for (wire, _) in wires.wires.iter().zip(far).filter(|(_, far)| **far) {
        if scenery.boxes[wire.to as usize].kind == BoxKind::Output {
            // The output's own name is that of the value.
            continue;
        }
        let tags = &mut words[wire.to as usize].tags;
        tags.push((wire.value, describe::far_tag(source, wire.value), false));
    }
    let sizes = scenery
        .boxes
        .iter()
        .zip(&mut words)
        .map(|(b, words)| if b.is_container() { measure::bar(words) } else { measure::closed(b.kind, words) })
        .collect();
    (words, sizes)
}

fn words_of(known: &Known, b: &Visible) -> Words {
    let Known { source, facts, blocks, .. } = known;
    match &b.what {
        What::Node(id) => {
            let Some(node) = source.node(*id) else { return Words::default() };
            Words {
                title: node.op_type.clone(),
                subtitle: describe::node_subtitle(node),
                lines: if b.is_container() { Vec::new() } else { describe::attribute_lines(node) },
                ..Words::default()
            }
        }
        What::Block(id, nodes, count) => {
            let Some(block) = blocks.get(*id) else { return Words::default() };
            let kind = match &block.kind {
                BlockKind::Module(kind) if **kind != *block.name => &**kind,
                _ => &*block.note,
            };
            let count = describe::node_count(*count as usize);
            let counted = if kind.is_empty() { count } else { format!("{kind} · {count}") };
            Words {
                title: block.name.clone(),
                subtitle: counted.into(),
                lines: if b.is_container() {
                    Vec::new()
                } else {
                    describe::operators(source, nodes).into_iter().collect()
                },
                repeat: block.repeat.as_ref().map_or_else(|| "".into(), |r| format!("×{}", r.of).into()),
                ..Words::default()
            }
        }
        What::Body(name) => Words { title: name.clone(), ..Words::default() },
        What::Input(value, _) | What::Output(value, _) => {
            let name = source.value(*value).map_or_else(|| "".into(), |v| v.name.clone());
            let ty = facts.ty(source.model_of(*value), *value);
            Words { title: name, subtitle: describe::shape_label(ty), ..Words::default() }
        }
    }
}

/// The finished picture.
pub(super) fn picture(
    known: &Known,
    scenery: &Scenery,
    wires: &Wires,
    far: &[bool],
    (words, sizes): (Vec<Words>, Vec<Measured>),
    composed: Composed,
) -> Picture {
    let Known { source, facts, overlay, .. } = known;
    let mut boxes: Vec<PictureBox> = Vec::with_capacity(scenery.boxes.len());
    for (((b, words), measured), (corner, [width, height])) in
        scenery.boxes.iter().zip(words).zip(sizes).zip(&composed.places)
    {
        let mut tags = measured.tags;
        for tag in &mut tags {
            measure::shift(&mut tag.rect, corner.x, corner.y);
        }
        let over = Over::of(source, overlay, b);
        boxes.push(PictureBox {
            place: b.place.clone(),
            kind: b.kind,
            rect: Rect::new(corner.x, corner.y, *width, *height),
            depth: b.depth,
            parent: b.parent,
            label: label(source, b, &words),
            title: words.title,
            subtitle: words.subtitle,
            lines: words.lines,
            tags,
            family: family(source, b),
            mark: over.mark,
            badge: over.badge,
            repeat: words.repeat,
            hits: over.hits,
        });
    }
    let mut lines: Vec<Line> =
        composed.paths.into_iter().map(|path| line(source, facts, &boxes, &wires.wires, path)).collect();
    place_labels(&boxes, &mut lines);
    let bounds = bounds(&boxes, &lines);
    let far = far_values(&wires.wires, far);
    Picture { boxes, lines, far, bounds }
}

/// What the overlay says of a box.
#[derive(Default)]
struct Over {
    mark: Mark,
    badge: Option<Text>,
    hits: u32,
}

impl Over {
    fn of(source: &Source, overlay: &Overlay, b: &Visible) -> Over {
        let mark_of = |id: NodeId| match overlay.marks.get(&id) {
            Some(mark) => *mark,
            None if source.is_removed(id) => Mark::Removed,
            None => Mark::Same,
        };
        match &b.what {
            What::Node(id) => Over {
                mark: mark_of(*id),
                badge: overlay.badges.get(id).cloned(),
                hits: u32::from(overlay.hits.contains(id)),
            },
            What::Block(_, nodes, _) if b.kind == BoxKind::ClosedBlock => {
                let mut marks = nodes.iter().map(|n| mark_of(*n));
                let first = marks.next().unwrap_or_default();
                // One thing said of all members is said of the block; else something in it changed, or nothing did.
                let mark = if marks.clone().all(|m| m == first) { first } else { Mark::Changed };
                let rewritten = nodes.iter().filter(|n| overlay.badges.contains_key(n)).count();
                Over {
                    mark,
                    badge: (rewritten > 0).then(|| format!("{rewritten} rewritten").into()),
                    hits: nodes.iter().filter(|n| overlay.hits.contains(n)).count() as u32,
                }
            }
            What::Input(_, mark) | What::Output(_, mark) => Over { mark: *mark, ..Over::default() },
            _ => Over::default(),
        }
    }
}

fn label(source: &Source, b: &Visible, words: &Words) -> Text {
    let open = if b.is_container() { "open" } else { "closed" };
    match &b.what {
        What::Node(id) => match source.node(*id) {
            Some(node) => describe::node_label(source.after, *id, node),
            None => "node".into(),
        },
        What::Block(..) => format!("block {}, {}, {open}", words.title, words.subtitle).into(),
        What::Body(name) => format!("body {name}").into(),
        What::Input(..) => format!("input {} {}", words.title, words.subtitle).into(),
        What::Output(..) => format!("output {} {}", words.title, words.subtitle).into(),
    }
}

/// Of a block: the family that most of its work belongs to.
fn family(source: &Source, b: &Visible) -> Family {
    match &b.what {
        What::Node(id) => source.node(*id).map_or(Family::Other, |n| Family::of(n)),
        What::Block(_, nodes, _) => {
            let mut weight: std::collections::BTreeMap<Family, u32> = Default::default();
            for node in nodes.iter().filter_map(|n| source.node(*n)) {
                let family = Family::of(node);
                *weight.entry(family).or_default() += match family {
                    // One of these is worth more than the small operators around it.
                    Family::Convolution | Family::Matrix | Family::Recurrent | Family::Control => 12,
                    Family::Shape | Family::Layout | Family::Conversion => 1,
                    _ => 3,
                };
            }
            weight
                .into_iter()
                .max_by_key(|&(family, w)| (w, std::cmp::Reverse(family)))
                .map_or(Family::Other, |f| f.0)
        }
        _ => Family::Other,
    }
}

fn line(
    source: &Source,
    facts: &Facts,
    boxes: &[PictureBox],
    wires: &[Wire],
    path: super::compose::Path,
) -> Line {
    let of_path = || path.wires.iter().map(|w| &wires[*w as usize]);
    let first = &wires[path.wires[0] as usize];
    let ends = [boxes[first.from as usize].mark, boxes[first.to as usize].mark];
    let mark = match first.mark {
        _ if ends.contains(&Mark::Removed) && first.mark != Mark::Same => Mark::Removed,
        Mark::Same | Mark::Removed => first.mark,
        _ if ends.contains(&Mark::Added) => Mark::Added,
        mark => mark,
    };
    let count = path.wires.len() as u32;
    let label = match count {
        1 => describe::shape_label(facts.ty(source.model_of(first.value), first.value)),
        _ => format!("{count} values").into(),
    };
    Line {
        from: first.from,
        to: first.to,
        values: of_path().map(|w| w.value).take(MOST_VALUES).collect(),
        count,
        label,
        label_at: None,
        mark,
        points: path.points,
    }
}

/// Writes a value's shape once, just below its producer, beside the line and where no other line turns.
fn place_labels(boxes: &[PictureBox], lines: &mut [Line]) {
    let mut leaving = vec![Leaving::default(); boxes.len()];
    for line in lines.iter() {
        let [start, next, ..] = line.points.as_slice() else { continue };
        let sides = &mut leaving[line.from as usize];
        sides.lines += 1;
        sides.left |= next.x < start.x - 1.0;
        sides.right |= next.x > start.x + 1.0;
    }
    let mut labelled: Option<(u32, crate::ir::ValueId)> = None;
    let mut last: Vec<Rect> = Vec::new();
    for line in lines.iter_mut().filter(|l| !l.label.is_empty()) {
        let value = (line.from, line.values.first().copied().unwrap_or(crate::ir::ValueId(u32::MAX)));
        let sides = leaving[line.from as usize];
        let bundle = line.count > 1 && sides.lines > 3;
        if labelled == Some(value) || boxes[line.from as usize].kind == BoxKind::Input || bundle {
            // An input's own box says its shape; where many bundles leave a box there is no room for their counts.
            continue;
        }
        let [start, next, ..] = line.points.as_slice() else { continue };
        let run = next.y - start.y;
        let width = text_width(&line.label, SMALL_SIZE) + 8.0;
        if run < 26.0 || width > 150.0 || (sides.left && sides.right) {
            continue;
        }
        if labelled.map(|l| l.0) != Some(line.from) {
            last.clear();
        }
        // On the side to which no line turns.
        let sideways = if sides.right { -(width / 2.0 + 3.0) } else { width / 2.0 + 3.0 };
        let at = Point { x: start.x + sideways, y: start.y + run.min(36.0) / 2.0 };
        let rect = Rect::new(at.x - width / 2.0, at.y - 6.5, width, 13.0);
        let inside = boxes[line.from as usize].parent.is_none_or(|p| {
            let outer = boxes[p as usize].rect;
            rect.min.x >= outer.min.x && rect.max.x <= outer.max.x && rect.max.y <= outer.max.y
        });
        if inside && last.iter().all(|other| !other.intersects(&rect)) {
            line.label_at = Some(at);
            last.push(rect);
            labelled = Some(value);
        }
    }
}

/// Lines that leave a box: how many, and to which sides they turn.
#[derive(Clone, Copy, Default)]
struct Leaving {
    lines: u32,
    left: bool,
    right: bool,
}

fn bounds(boxes: &[PictureBox], lines: &[Line]) -> Rect {
    let mut bounds: Option<Rect> = None;
    let points = lines.iter().flat_map(|l| &l.points).map(|p| Rect { min: *p, max: *p });
    for rect in boxes.iter().map(|b| b.rect).chain(points) {
        let all = bounds.get_or_insert(rect);
        all.min = Point { x: all.min.x.min(rect.min.x), y: all.min.y.min(rect.min.y) };
        all.max = Point { x: all.max.x.max(rect.max.x), y: all.max.y.max(rect.max.y) };
    }
    let all = bounds.unwrap_or_default();
    Rect::new(all.min.x - MARGIN, all.min.y - MARGIN, all.width() + 2.0 * MARGIN, all.height() + 2.0 * MARGIN)
}

/// Values that are tags at their readers, with the boxes at both ends.
fn far_values(wires: &[Wire], far: &[bool]) -> Vec<Far> {
    let mut found: Vec<Far> = Vec::new();
    for (wire, _) in wires.iter().zip(far).filter(|(_, far)| **far) {
        match found.last_mut() {
            Some(last) if last.from == wire.from && last.value == wire.value => last.readers.push(wire.to),
            _ => found.push(Far { value: wire.value, from: wire.from, readers: vec![wire.to] }),
        }
    }
    found
}

//! Sizes of boxes from their words, and where a box's words and tags stand: every painter follows these.

use super::font::{shorten, text_width};
use super::picture::{BoxKind, Rect, Tag};
use crate::ir::{Text, ValueId};

/// Font sizes in points.
pub const TITLE_SIZE: f32 = 13.5;
pub const DETAIL_SIZE: f32 = 11.0;
pub const SMALL_SIZE: f32 = 10.0;
/// Height of the first and of each further line of text in a box.
pub const TITLE_HEIGHT: f32 = 19.0;
pub const LINE_HEIGHT: f32 = 15.0;
/// Space between a box's border and its text.
pub const PAD: f32 = 10.0;
/// Where the text begins in a box that can be opened: a chevron stands before it.
pub const CHEVRON: f32 = 22.0;
/// Height of an open block's title bar.
pub const BAR_HEIGHT: f32 = 26.0;
/// Space between an open block's border and what is in it.
pub const CONTAINER_PAD: f32 = 16.0;

const TAG_HEIGHT: f32 = 16.0;
const TAG_GAP: f32 = 4.0;
/// Text of a box is at most this wide.
const TEXT_WIDTH: f32 = 190.0;
const TAG_WIDTH: f32 = 170.0;
/// No more tags than this; the last one counts the rest.
const MOST_TAGS: usize = 8;

/// What stands in a box, before it has a place.
#[derive(Clone, Debug, Default)]
pub(super) struct Words {
    pub(super) title: Text,
    pub(super) subtitle: Text,
    pub(super) lines: Vec<Text>,
    pub(super) repeat: Text,
    /// Value, text, constant data or not.
    pub(super) tags: Vec<(ValueId, Text, bool)>,
}

/// A box's size with its tags placed relative to its corner.
#[derive(Clone, Debug, Default)]
pub(super) struct Measured {
    pub(super) width: f32,
    pub(super) height: f32,
    pub(super) tags: Vec<Tag>,
}

/// Size of a closed box. Shortens the words that are too wide.
pub(super) fn closed(kind: BoxKind, words: &mut Words) -> Measured {
    let left = if matches!(kind, BoxKind::ClosedBlock | BoxKind::ClosedNode) { CHEVRON } else { PAD };
    let taken = if words.repeat.is_empty() { 0.0 } else { text_width(&words.repeat, DETAIL_SIZE) + 10.0 };
    fit(&mut words.title, TITLE_SIZE, TEXT_WIDTH);
    fit(&mut words.subtitle, DETAIL_SIZE, TEXT_WIDTH);
    words.lines.iter_mut().for_each(|line| fit(line, DETAIL_SIZE, TEXT_WIDTH));
    let mut width = text_width(&words.title, TITLE_SIZE) + taken;
    let rest = || words.lines.iter().chain((!words.subtitle.is_empty()).then_some(&words.subtitle));
    width = rest().map(|line| text_width(line, DETAIL_SIZE)).fold(width, f32::max);
    let lines = rest().count();
    let mut tags = chips(&mut words.tags);
    let widest = tags.iter().map(|t| t.rect.width()).fold(0.0, f32::max);
    let inner =
        width.max(widest).max(if matches!(kind, BoxKind::Input | BoxKind::Output) { 40.0 } else { 56.0 });
    let rows = wrap(&mut tags, inner.max(120.0));
    let extent = tags.iter().map(|t| t.rect.max.x).fold(inner, f32::max);
    let text_height = TITLE_HEIGHT + lines as f32 * LINE_HEIGHT;
    let tag_top = 5.0 + text_height + 3.0;
    for tag in &mut tags {
        shift(&mut tag.rect, left, tag_top);
    }
    let height = if rows == 0 {
        text_height + if lines == 0 { 11.0 } else { 10.0 }
    } else {
        tag_top + rows as f32 * (TAG_HEIGHT + TAG_GAP) + 3.0
    };
    Measured { width: (extent + left + PAD).ceil(), height: height.ceil(), tags }
}

/// Least width of an open box: that of its title bar, in which the tags stand at the right.
pub(super) fn bar(words: &mut Words) -> Measured {
    fit(&mut words.title, TITLE_SIZE, 2.0 * TEXT_WIDTH);
    fit(&mut words.subtitle, DETAIL_SIZE, TEXT_WIDTH);
    let text = text_width(&words.title, TITLE_SIZE) + 8.0 + text_width(&words.subtitle, DETAIL_SIZE);
    let repeat = if words.repeat.is_empty() { 0.0 } else { text_width(&words.repeat, DETAIL_SIZE) + 12.0 };
    let mut tags = chips(&mut words.tags);
    let mut x = CHEVRON + text + repeat + 14.0;
    for tag in &mut tags {
        shift(&mut tag.rect, x, (BAR_HEIGHT - TAG_HEIGHT) / 2.0);
        x = tag.rect.max.x + TAG_GAP;
    }
    Measured { width: (x + PAD).ceil(), height: BAR_HEIGHT, tags }
}

fn fit(text: &mut Text, size: f32, width: f32) {
    if text_width(text, size) > width {
        *text = shorten(text, size, width).into();
    }
}

/// One tag a text, all at the origin; too many are counted in the last.
fn chips(tags: &mut Vec<(ValueId, Text, bool)>) -> Vec<Tag> {
    if tags.len() > MOST_TAGS {
        let rest = tags.len() - (MOST_TAGS - 1);
        tags.truncate(MOST_TAGS);
        if let Some(last) = tags.last_mut() {
            last.1 = format!("{rest} more").into();
        }
    }
    tags.iter_mut()
        .map(|(value, text, constant)| {
            fit(text, SMALL_SIZE, TAG_WIDTH);
            let rect = Rect::new(0.0, 0.0, text_width(text, SMALL_SIZE) + 11.0, TAG_HEIGHT);
            Tag { value: *value, text: text.clone(), constant: *constant, rect }
        })
        .collect()
}

/// Puts tags side by side into rows of at most this width; the number of rows.
fn wrap(tags: &mut [Tag], width: f32) -> usize {
    let (mut x, mut rows) = (0.0f32, usize::from(!tags.is_empty()));
    for tag in tags {
        let own = tag.rect.width();
        if x > 0.0 && x + own > width {
            x = 0.0;
            rows += 1;
        }
        shift(&mut tag.rect, x, (rows - 1) as f32 * (TAG_HEIGHT + TAG_GAP));
        x += own + TAG_GAP;
    }
    rows
}

/// Moves a rectangle.
pub(super) fn shift(rect: &mut Rect, x: f32, y: f32) {
    rect.min.x += x;
    rect.max.x += x;
    rect.min.y += y;
    rect.max.y += y;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_tags_fit_into_their_box() {
        let tag = |k: u32, text: &str| (ValueId(k), Text::from(text), true);
        let mut words = Words {
            title: "Conv".into(),
            subtitle: "features.0/Conv".into(),
            lines: vec!["3×3 · stride 2 · pad 1".into()],
            tags: vec![
                tag(0, "W [32, 3, 3, 3]"),
                tag(1, "B [32]"),
                tag(2, "a name that is far too long for a tag to be written out"),
            ],
            ..Words::default()
        };
        let measured = closed(BoxKind::Node, &mut words);
        for (k, tag) in measured.tags.iter().enumerate() {
            assert!(tag.rect.max.x <= measured.width - PAD + 0.5 && tag.rect.max.y < measured.height);
            assert!(tag.rect.min.y >= 5.0 + TITLE_HEIGHT + 2.0 * LINE_HEIGHT);
            assert!(measured.tags[..k].iter().all(|other| !other.rect.intersects(&tag.rect)));
        }
        assert!(text_width(&words.lines[0], DETAIL_SIZE) + 2.0 * PAD <= measured.width);
        let mut many = Words { tags: (0..20).map(|k| tag(k, "x")).collect(), ..Words::default() };
        let measured = closed(BoxKind::Node, &mut many);
        assert_eq!(measured.tags.len(), 8);
        assert_eq!(&*measured.tags[7].text, "13 more");
    }
}

//! Which box of a picture stands for what is chosen: itself, the reader that shows a constant as a tag, or what holds it.

use std::collections::HashMap;

use super::gather::chain;
use crate::ir::ValueId;
use crate::pipeline::State;
use crate::scene::{BoxKind, Item, Picture, PictureBox, Place};

/// A box that is lit, and the tags at it that are meant.
#[derive(Debug, Clone, PartialEq)]
pub struct Lit {
    pub place: Place,
    pub tags: Vec<ValueId>,
}

/// The box that stands for a place of `state` in a picture; `None` when nothing of it can be seen.
pub fn lit(picture: &Picture, state: &State, place: &Place) -> Option<Lit> {
    let own = innermost(picture, &chain(state, place));
    let alone = |place: &Place| Lit { place: place.clone(), tags: Vec::new() };
    if let Some(own) = own
        && own.place == *place
    {
        return Some(alone(place));
    }
    let Item::Node(id) = place.item else { return own.map(|b| alone(&b.place)) };
    let node = state.model.get_node(id)?;
    let outputs: Vec<ValueId> = node.outputs.iter().flatten().copied().collect();
    let closed = |b: &&PictureBox| matches!(b.kind, BoxKind::ClosedBlock | BoxKind::ClosedNode);
    if own.filter(closed).is_some() && !node.is("Constant") {
        return own.map(|b| alone(&b.place));
    }
    // Constants are drawn as tags at their readers; a removed one is not drawn, what read it is.
    let tagged = picture
        .boxes
        .iter()
        .find(|b| b.place.calls == place.calls && b.tags.iter().any(|tag| outputs.contains(&tag.value)));
    if let Some(reader) = tagged.filter(|_| node.is("Constant")) {
        return Some(Lit { place: reader.place.clone(), tags: outputs });
    }
    let readers: Vec<&PictureBox> = outputs
        .iter()
        .flat_map(|value| state.model.readers(*value))
        .filter_map(|reader| {
            let reader = Place { calls: place.calls.clone(), item: Item::Node(reader) };
            innermost(picture, &chain(state, &reader))
        })
        .collect();
    let shut = |b: &&&PictureBox| closed(&&***b);
    let itself = readers.iter().find(|b| matches!(b.place.item, Item::Node(_)) && b.kind == BoxKind::Node);
    let found = itself
        .copied()
        .or(own.filter(closed))
        .or_else(|| readers.iter().find(shut).copied())
        .or(own)
        .or_else(|| readers.first().copied());
    found.map(|b| alone(&b.place))
}

/// The last of a chain of places, from the outermost inward, that is a box of the picture.
fn innermost<'p>(picture: &'p Picture, chain: &[Place]) -> Option<&'p PictureBox> {
    let rank: HashMap<&Place, usize> = chain.iter().enumerate().map(|(i, place)| (place, i)).collect();
    let boxes = picture.boxes.iter().filter(|b| b.kind != BoxKind::Body);
    boxes.filter_map(|b| Some((*rank.get(&b.place)?, b))).max_by_key(|(rank, _)| *rank).map(|(_, b)| b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Builder, ElementType, Tensor};
    use crate::scene::{Family, Mark, Rect, Tag};

    fn a_box(item: Item, kind: BoxKind) -> PictureBox {
        PictureBox {
            place: Place::of(item),
            kind,
            rect: Rect::new(0.0, 0.0, 100.0, 40.0),
            depth: 0,
            parent: None,
            title: "".into(),
            subtitle: "".into(),
            lines: Vec::new(),
            tags: Vec::new(),
            family: Family::Other,
            mark: Mark::Same,
            badge: None,
            repeat: "".into(),
            hits: 0,
            label: "".into(),
        }
    }

    #[test]
    fn a_constant_is_lit_at_its_tag_or_else_at_its_reader() {
        let mut b = Builder::new("g", 17);
        let x = b.input("x", ElementType::FLOAT, &[1.into()]);
        let c = b.op("Constant", &[]).attr("value", Tensor::from_f32(&[1], &[2.0])).one();
        let y = b.op("Add", &[x, c]).one();
        b.output(y);
        let state = State::new(b.finish().expect("a sound model"));
        let nodes: Vec<_> = state.model.nodes_of(state.model.main()).map(|(id, _)| id).collect();
        let (constant, add) = (Place::of(Item::Node(nodes[0])), Place::of(Item::Node(nodes[1])));
        let mut reader = a_box(add.item, BoxKind::Node);
        let bare = Picture { boxes: vec![reader.clone()], ..Picture::default() };
        let found = lit(&bare, &state, &constant).expect("its reader");
        assert_eq!((&found.place, found.tags.len()), (&add, 0));
        let tag = Tag { value: c, text: "2".into(), constant: true, rect: Rect::default() };
        reader.tags.push(tag);
        let tagged = Picture { boxes: vec![reader], ..Picture::default() };
        let found = lit(&tagged, &state, &constant).expect("its tag");
        assert_eq!((found.place, found.tags), (add.clone(), vec![c]));
        assert_eq!(lit(&tagged, &state, &add).map(|l| l.tags.len()), Some(0), "itself");
        assert_eq!(lit(&Picture::default(), &state, &constant), None);
    }
}

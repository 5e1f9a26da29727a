//! Modules that are recognised by their operators: normalisations and activations spelled out, convolutions with what
//! follows them, residuals, attention, feed-forward, and the blocks of well-known convolutional networks.

use super::content::{Class, Content};
use super::level::{Group, Level, Member, Work};

/// Note of a block that no exporter named.
pub(super) const FOUND: &str = "found by pattern";

pub(super) const CONVOLUTION: &str = "convolution";
pub(super) const GELU: &str = "GELU";
pub(super) const SILU: &str = "SiLU";
pub(super) const HARD_SWISH: &str = "hard-swish";
pub(super) const MISH: &str = "Mish";
pub(super) const LAYER_NORM: &str = "layer norm";
pub(super) const RMS_NORM: &str = "RMS norm";
/// First half of a layer norm: not kept on its own.
pub(super) const CENTRED: &str = "centred";
pub(super) const DOT_PRODUCT: &str = "dot-product attention";
pub(super) const ATTENTION: &str = "attention";
pub(super) const FEED_FORWARD: &str = "feed-forward";
pub(super) const RESIDUAL: &str = "residual";
pub(super) const BOTTLENECK: &str = "bottleneck";
pub(super) const INVERTED_RESIDUAL: &str = "inverted residual";
pub(super) const RESIDUAL_GROUP: &str = "residual group";
pub(super) const SEPARABLE: &str = "depthwise separable";
pub(super) const SQUEEZE_EXCITE: &str = "squeeze-excite";
pub(super) const BRANCHES: &str = "branches";
pub(super) const FIRE: &str = "fire";
pub(super) const SHUFFLE_UNIT: &str = "shuffle unit";

const ACTIVATIONS: [&str; 4] = [GELU, SILU, HARD_SWISH, MISH];
const NORMS: [&str; 2] = [LAYER_NORM, RMS_NORM];

/// True for modules that are shown on their own only where the level around them is crowded.
pub(super) fn is_minor(label: &str) -> bool {
    [CONVOLUTION, CENTRED, BRANCHES].contains(&label) || ACTIVATIONS.contains(&label)
}

/// A region that ends where branches meet.
pub(super) struct Join {
    /// Of the node where they meet.
    pub class: Class,
    pub content: Content,
    /// Of blocks inside.
    pub labels: Vec<&'static str>,
    /// One branch is the forked value itself, or has at most one layer.
    pub shortcut: bool,
}

/// Recognises a spelled-out activation or normalisation.
pub(super) fn elementwise(work: &Work, join: &Join, groups: &[u32], level: &Level) -> Option<&'static str> {
    use Class::*;
    let c = join.content;
    let arithmetic =
        [Add, Sub, Mul, Div, Pow, Sqrt, Erf, Tanh, Sigmoid, Clip, Mean, Activation, Layout, Other];
    if !c.only(&arithmetic) || c.of(Other) > 1 || c.of(Layout) > 2 {
        return None;
    }
    if c.has(Mean) {
        let scaled = c.has(Sqrt) || c.of(Pow) > 1;
        return match (scaled, c.has(Sub)) {
            (true, true) => Some(LAYER_NORM),
            (true, false) => Some(RMS_NORM),
            (false, true) if c.main == 2 => Some(CENTRED),
            _ => None,
        };
    }
    if join.class != Mul && !(join.class == Div && c.has(Clip)) {
        return None;
    }
    let op = |name: &str| {
        groups.iter().any(|g| work.only_node(level.items[*g as usize].member).is_some_and(|n| n.is(name)))
    };
    if c.has(Erf) || (c.has(Tanh) && (c.has(Pow) || c.of(Mul) >= 4)) {
        Some(GELU)
    } else if c.has(Tanh) && c.has(Activation) {
        Some(MISH)
    } else if c.has(Sigmoid) && c.main <= 4 && !c.has(Tanh) {
        Some(if op("HardSigmoid") { HARD_SWISH } else { SILU })
    } else if c.has(Clip) && c.has(Add) {
        Some(HARD_SWISH)
    } else {
        None
    }
}

/// Recognises a module that ends where its branches meet.
pub(super) fn joined(join: &Join) -> Option<&'static str> {
    use Class::*;
    let c = join.content;
    let label = |l: &str| join.labels.contains(&l);
    let attends = c.has(Attention) || label(DOT_PRODUCT) || (c.has(Softmax) && c.of(MatMul) >= 2);
    match join.class {
        MatMul if c.has(Softmax) && c.of(MatMul) >= 2 && c.of(MatMul) <= 8 => Some(DOT_PRODUCT),
        Mul if (c.has(GlobalPool) || c.has(Mean))
            && c.has(Sigmoid)
            && c.of(Conv) + c.of(MatMul) >= 1
            && c.main <= 24 =>
        {
            Some(SQUEEZE_EXCITE)
        }
        Add if join.shortcut => {
            let inner = join.labels.iter().filter(|l| [RESIDUAL, BOTTLENECK, INVERTED_RESIDUAL].contains(*l));
            // Modules hold a bounded number of layers, so that they do not nest without end.
            if label(RESIDUAL_GROUP) {
                None
            } else if inner.count() >= 2 {
                Some(RESIDUAL_GROUP)
            } else if label(ATTENTION) || label(FEED_FORWARD) {
                None
            } else if attends && c.of(MatMul) <= 64 {
                Some(ATTENTION)
            } else if (2..=8).contains(&c.of(MatMul)) && !c.has(Conv) && c.has_activation() {
                Some(FEED_FORWARD)
            } else if c.of(Conv) > 8 || c.of(MatMul) > 8 {
                None
            } else if c.has(Depthwise) && c.has(Pointwise) {
                Some(INVERTED_RESIDUAL)
            } else if c.of(Conv) >= 3 && c.of(Pointwise) >= 2 {
                Some(BOTTLENECK)
            } else {
                (c.has(Conv) || c.has(MatMul)).then_some(RESIDUAL)
            }
        }
        Concat if c.has(Conv) && c.main <= 40 && !label(BRANCHES) => Some(BRANCHES),
        _ => None,
    }
}

/// Groups chains that finish a spelled-out normalisation or activation: scale, shift, halving.
pub(super) fn finish_elementwise(work: &Work, level: &Level) -> Vec<Group> {
    let mut groups = Vec::new();
    let mut taken = vec![false; level.items.len()];
    for i in 0..level.items.len() as u32 {
        if taken[i as usize] {
            continue;
        }
        let mut items = vec![i];
        let mut label = level.items[i as usize].label;
        let mut at = i;
        if label == CENTRED
            && let Some(next) = level.next_in_chain(i)
            && level.items[next as usize].label == RMS_NORM
        {
            items.push(next);
            at = next;
            label = LAYER_NORM;
        }
        let wanted: &[Class] = match label {
            LAYER_NORM | RMS_NORM => &[Class::Mul, Class::Add],
            HARD_SWISH if !level.items[i as usize].content.has(Class::Div) => &[Class::Div],
            GELU if level.items[i as usize].content.of(Class::Mul) < 2 => &[Class::Mul],
            _ => continue,
        };
        for class in wanted {
            if let Some(next) = level.next_in_chain(at)
                && work.class(&level.items[next as usize]) == Some(*class)
            {
                items.push(next);
                at = next;
            }
        }
        if items.len() > 1 {
            items.iter().for_each(|i| taken[*i as usize] = true);
            groups.push(Group { flat: true, ..Group::module(label, items) });
        }
    }
    groups
}

fn is_activation(work: &Work, level: &Level, item: u32) -> bool {
    let item = &level.items[item as usize];
    let single =
        [Class::Activation, Class::Sigmoid, Class::Tanh, Class::Clip].map(Some).contains(&work.class(item));
    single || ACTIVATIONS.contains(&item.label)
}

fn is_norm(work: &Work, level: &Level, item: u32) -> bool {
    let item = &level.items[item as usize];
    work.class(item) == Some(Class::Norm) || NORMS.contains(&item.label)
}

/// Groups a convolution with the normalisation and the activation that follow it.
pub(super) fn convolutions(work: &Work, level: &Level) -> Vec<Group> {
    let mut groups = Vec::new();
    for i in 0..level.items.len() as u32 {
        if work.class(&level.items[i as usize]) != Some(Class::Conv) {
            continue;
        }
        let mut items = vec![i];
        let mut at = i;
        while let Some(next) = level.next_in_chain(at) {
            let norm = is_norm(work, level, next);
            let stays = ["QuantizeLinear", "DequantizeLinear", "Identity", "Dropout", "Cast"];
            let passes = work
                .only_node(level.items[next as usize].member)
                .is_some_and(|n| stays.iter().any(|s| n.is(s)));
            let activates = is_activation(work, level, next);
            if !(norm || passes || activates) {
                break;
            }
            items.push(next);
            at = next;
            if activates {
                break;
            }
        }
        if items.len() > 1 {
            groups.push(Group::module(CONVOLUTION, items));
        }
    }
    groups
}

/// Groups chains of convolutions and branches that are the blocks of well-known networks.
pub(super) fn chains(work: &Work, level: &Level) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut taken = vec![false; level.items.len()];
    for i in 0..level.items.len() as u32 {
        if taken[i as usize] {
            continue;
        }
        let group = inverted_residual(work, level, i)
            .or_else(|| separable(work, level, i))
            .or_else(|| fire(work, level, i))
            .or_else(|| shuffle_unit(work, level, i));
        if let Some(group) = group
            && group.items.iter().all(|i| !taken[*i as usize])
        {
            group.items.iter().for_each(|i| taken[*i as usize] = true);
            groups.push(group);
        }
    }
    groups
}

/// Content of a convolution with what follows it, as one item.
fn convolution(work: &Work, level: &Level, item: u32) -> Option<Content> {
    let it = &level.items[item as usize];
    (it.label == CONVOLUTION || work.class(it) == Some(Class::Conv)).then_some(it.content)
}

/// A depthwise convolution, maybe squeeze-excite, and a pointwise one; the items and whether the last one activates.
fn separable_tail(work: &Work, level: &Level, item: u32) -> Option<(Vec<u32>, bool)> {
    convolution(work, level, item).filter(|c| c.has(Class::Depthwise))?;
    let mut items = vec![item];
    let mut project = level.next_in_chain(item)?;
    loop {
        let between = &level.items[project as usize];
        let passes = work.only_node(between.member).is_some_and(|n| n.is("Identity"));
        if !passes && between.label != SQUEEZE_EXCITE {
            break;
        }
        items.push(project);
        project = level.next_in_chain(project)?;
    }
    let content = convolution(work, level, project).filter(|c| c.has(Class::Pointwise))?;
    items.push(project);
    Some((items, content.has_activation()))
}

fn inverted_residual(work: &Work, level: &Level, item: u32) -> Option<Group> {
    let content = convolution(work, level, item)?;
    let (mut items, activates) = if content.has(Class::Pointwise) {
        let (tail, activates) = separable_tail(work, level, level.next_in_chain(item)?)?;
        (std::iter::once(item).chain(tail).collect::<Vec<u32>>(), activates)
    } else {
        separable_tail(work, level, item)?
    };
    items.sort_unstable();
    (!activates).then(|| Group::module(INVERTED_RESIDUAL, items))
}

fn separable(work: &Work, level: &Level, item: u32) -> Option<Group> {
    let (items, activates) = separable_tail(work, level, item)?;
    activates.then(|| Group::module(SEPARABLE, items))
}

/// Squeeze (a pointwise convolution), then a pointwise and a wider one side by side (SqueezeNet).
fn fire(work: &Work, level: &Level, item: u32) -> Option<Group> {
    convolution(work, level, item).filter(|c| c.has(Class::Pointwise))?;
    let next = level.next_in_chain(item)?;
    let expand = &level.items[next as usize];
    let c = expand.content;
    let fits = expand.label == BRANCHES && c.of(Class::Conv) == 2 && c.of(Class::Pointwise) == 1;
    fits.then(|| Group::module(FIRE, vec![item, next]))
}

/// Branches with depthwise convolutions, then a reshape, transpose, reshape that shuffles channels (ShuffleNet).
fn shuffle_unit(work: &Work, level: &Level, item: u32) -> Option<Group> {
    let branches = &level.items[item as usize];
    if branches.label != BRANCHES || !branches.content.has(Class::Depthwise) {
        return None;
    }
    let mut items = vec![item];
    for class in [Class::Layout, Class::Transpose, Class::Layout] {
        let next = level.next_in_chain(*items.last()?)?;
        if work.class(&level.items[next as usize]) != Some(class) {
            return None;
        }
        items.push(next);
    }
    Some(Group::module(SHUFFLE_UNIT, items))
}

/// Moves the activation or normalisation behind residuals into them, where most of them have one.
pub(super) fn take_followers(work: &mut Work, level: Level) -> Level {
    type Wanted = fn(&Work, &Level, u32) -> bool;
    let sets: [(&[&str], Wanted); 2] =
        [(&[RESIDUAL, BOTTLENECK, INVERTED_RESIDUAL], is_activation), (&[ATTENTION, FEED_FORWARD], is_norm)];
    let mut moved: Vec<(u32, u32)> = Vec::new();
    for (labels, wanted) in sets {
        let all: Vec<u32> = (0..level.items.len() as u32)
            .filter(|i| labels.contains(&level.items[*i as usize].label))
            .collect();
        let followed: Vec<(u32, u32)> = all
            .iter()
            .filter_map(|i| Some((*i, level.next_in_chain(*i).filter(|n| wanted(work, &level, *n))?)))
            .collect();
        if followed.len() * 2 > all.len() {
            moved.extend(followed);
        }
    }
    if moved.is_empty() {
        return level;
    }
    let mut gone = vec![false; level.items.len()];
    for (into, item) in moved {
        if let Member::Draft(draft) = level.items[into as usize].member {
            work.absorb(draft, level.items[item as usize].member);
            gone[item as usize] = true;
        }
    }
    let members = level.items.iter().enumerate().filter(|(i, _)| !gone[*i]).map(|(_, i)| i.member).collect();
    work.level(members)
}

/// In a layer whose exporter scopes hold an attention: puts the scopes that together are the feed-forward part into one.
pub(super) fn feed_forward_scopes(level: &Level) -> Option<Group> {
    let items = &level.items;
    let is_draft = |i: &usize| matches!(items[*i].member, Member::Draft(_));
    // At most self-attention and cross-attention: more are several layers.
    let attends = |c: &Content| {
        c.has(Class::Attention) || ((1..=2).contains(&c.of(Class::Softmax)) && c.of(Class::MatMul) >= 2)
    };
    let attention = (0..items.len()).rfind(|i| is_draft(i) && attends(&items[*i].content))?;
    let products: Vec<usize> =
        (attention + 1..items.len()).filter(|i| items[*i].content.has(Class::MatMul)).collect();
    let (first, last) = (*products.first()?, *products.last()?);
    let range: Vec<u32> = (first..=last).filter(|i| level.main.active[*i]).map(|i| i as u32).collect();
    let mut content = Content::NOTHING;
    range.iter().for_each(|i| content.add(&items[*i as usize].content));
    let fits = products.len() >= 2
        && products.iter().any(is_draft)
        && (2..=3).contains(&content.of(Class::MatMul))
        && content.has_activation()
        && !content.has(Class::Softmax)
        && range.len() < level.crowd();
    fits.then(|| Group { note: "scopes that belong together".into(), ..Group::module(FEED_FORWARD, range) })
}

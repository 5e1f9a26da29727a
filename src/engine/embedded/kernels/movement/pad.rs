//! Pad in all its modes.

use super::words::{Word, with_word};
use crate::engine::array::{Array, Dims, Storage};
use crate::engine::embedded::call::{Call, Outputs, one};
use crate::engine::fault::Fault;

/// What stands where there was nothing.
#[derive(Clone, Copy, PartialEq)]
pub enum Mode {
    Constant,
    Edge,
    Reflect,
    Wrap,
}

/// Pad; amounts are the attribute `paddings` in opset 1, `pads` before 11, an input since; axes come with opset 18, the
/// mode wrap with 19. A negative amount takes away, before anything is added.
pub fn pad(call: &mut Call) -> Result<Outputs, Fault> {
    let mode = match call.attributes.text("mode", "constant")? {
        "constant" => Mode::Constant,
        "edge" => Mode::Edge,
        "reflect" => Mode::Reflect,
        "wrap" => Mode::Wrap,
        other => return Err(Fault::Invalid(format!("mode {other} is not one the standard knows"))),
    };
    let array = call.input(0)?;
    let amounts = match call.optional(1)? {
        Some(pads) => pads.integers()?,
        None => {
            let name = if call.opset < 2 { "paddings" } else { "pads" };
            let missing = || Fault::Invalid("no amounts are given".into());
            call.attributes.ints(name)?.ok_or_else(missing)?.to_vec()
        }
    };
    let value = match call.optional(2)? {
        Some(value) if value.len() == 1 && value.element() == array.element() => Some(value.clone()),
        Some(value) if value.is_empty() => None,
        Some(value) => {
            return Err(Fault::Invalid(format!(
                "the constant is {} of shape {:?} for data of {}",
                value.element(),
                value.dims(),
                array.element()
            )));
        }
        None => match (call.attributes.float("value", 0.0)?, array.storage()) {
            (0.0, _) => None,
            (value, Storage::F32(_)) => Some(Array::scalar(value)),
            (value, Storage::F64(_)) => Some(Array::scalar(f64::from(value))),
            (value, Storage::F16(_)) => Some(Array::scalar(half::f16::from_f32(value))),
            (value, Storage::BF16(_)) => Some(Array::scalar(half::bf16::from_f32(value))),
            (value, _) => return call.unsupported(format_args!("the value {value} in {}", array.element())),
        },
    };
    let axes: Vec<usize> = match call.optional(3)? {
        Some(axes) => {
            axes.integers()?.iter().map(|a| call.axis(*a, array.rank())).collect::<Result<_, _>>()?
        }
        None => (0..array.rank()).collect(),
    };
    if amounts.len() != 2 * axes.len() {
        return Err(Fault::Invalid(format!("{} amounts are given for {} axes", amounts.len(), axes.len())));
    }
    let mut pads = vec![(0, 0); array.rank()];
    for (at, axis) in axes.iter().enumerate() {
        pads[*axis] = (amounts[at], amounts[axes.len() + at]);
    }
    if pads.iter().all(|p| *p == (0, 0)) {
        return one(call.take(0)?);
    }
    one(padded(call, array, &pads, mode, value.as_ref())?)
}

/// An array with so much more before and after each axis.
pub fn padded(
    call: &Call,
    array: &Array,
    pads: &[(i64, i64)],
    mode: Mode,
    value: Option<&Array>,
) -> Result<Array, Fault> {
    let mut dims = Dims::new();
    for (length, (before, after)) in array.dims().iter().zip(pads) {
        let padded = *length as i128 + i128::from(*before) + i128::from(*after);
        let kept = *length as i128 + i128::from(*before).min(0) + i128::from(*after).min(0);
        if kept < 0 {
            return Err(Fault::Invalid(format!(
                "{before} and {after} take more than the axis of {length} has"
            )));
        }
        if kept == 0 && padded > 0 && mode != Mode::Constant {
            return Err(Fault::Invalid("an empty axis has no elements to pad with".into()));
        }
        dims.push(usize::try_from(padded).map_err(|_| super::TOO_MANY)?);
    }
    with_word!(array, W => {
        let count = call.elements(&dims, size_of::<W>())?;
        let value = match value {
            Some(value) => W::of(value)?.first().cloned().unwrap_or_default(),
            None => W::default(),
        };
        let from = W::of(array)?;
        let mut to = Vec::new();
        if count > 0 {
            let sources: Vec<Vec<Option<usize>>> = array
                .dims()
                .iter()
                .zip(pads)
                .map(|(length, (before, after))| sources(*length as i64, *before, *after, mode))
                .collect();
            to.reserve_exact(count);
            fill(&sources, array.dims(), from, Some(0), &value, &mut to);
        }
        W::array(array, &dims, to)
    })
}

/// For each place of a padded axis the place that it shows; `None` for the constant. Amounts fit the axis.
fn sources(length: i64, before: i64, after: i64, mode: Mode) -> Vec<Option<usize>> {
    // What negative amounts leave is what the modes look at.
    let first = (-before).max(0);
    let kept = length - first - (-after).max(0);
    let source = |at: i64| {
        if (0..kept).contains(&at) {
            return Some((first + at) as usize);
        }
        let at = match mode {
            Mode::Constant => return None,
            Mode::Edge => at.clamp(0, kept - 1),
            Mode::Wrap => at.rem_euclid(kept),
            // There and back again without showing the ends twice.
            Mode::Reflect if kept > 1 => {
                let at = at.rem_euclid(2 * (kept - 1));
                at.min(2 * (kept - 1) - at)
            }
            Mode::Reflect => 0,
        };
        Some((first + at) as usize)
    };
    (-before.max(0)..kept + after.max(0)).map(source).collect()
}

/// Appends what the sources of the axes show, from the row that starts at `start`, or the constant. Recursion is as
/// deep as the array has axes.
pub fn fill<W: Word>(
    sources: &[Vec<Option<usize>>],
    dims: &[usize],
    from: &[W],
    start: Option<usize>,
    value: &W,
    to: &mut Vec<W>,
) {
    let ([axis, rest @ ..], [_, inner @ ..]) = (sources, dims) else {
        to.push(start.map_or_else(|| value.clone(), |s| from[s].clone()));
        return;
    };
    let Some(start) = start else {
        let count: usize = sources.iter().map(Vec::len).product();
        to.resize(to.len() + count, value.clone());
        return;
    };
    let width: usize = inner.iter().product();
    // Axes inside that stay as they are move as one block.
    let whole = rest
        .iter()
        .zip(inner)
        .all(|(s, d)| s.len() == *d && s.iter().enumerate().all(|(i, s)| *s == Some(i)));
    if !whole {
        let mut before: Option<(Option<usize>, std::ops::Range<usize>)> = None;
        for source in axis {
            let begin = to.len();
            match &before {
                Some((same, block)) if same == source => to.extend_from_within(block.clone()),
                _ => fill(rest, inner, from, source.map(|s| start + s * width), value, to),
            }
            before = Some((*source, begin..to.len()));
        }
        return;
    }
    if width == 1 && axis.first() == axis.get(1) && axis.len() > 1 {
        // Elements shown several times: nothing to be had from looking for runs.
        to.extend(axis.iter().map(|s| s.map_or_else(|| value.clone(), |s| from[start + s].clone())));
        return;
    }
    let mut at = 0;
    while let Some(source) = axis.get(at) {
        let run = axis[at..]
            .iter()
            .enumerate()
            .take_while(|(i, s)| match source {
                Some(first) => **s == Some(first + i),
                None => s.is_none(),
            })
            .count();
        match source {
            Some(first) => {
                let place = start + first * width;
                to.extend_from_slice(&from[place..place + run * width]);
            }
            None => to.resize(to.len() + run * width, value.clone()),
        }
        at += run;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_shown_as_the_modes_say() {
        let shown = |mode, before, after| -> Vec<Option<usize>> { sources(3, before, after, mode) };
        let some = |v: &[usize]| v.iter().map(|v| Some(*v)).collect::<Vec<_>>();
        assert_eq!(shown(Mode::Reflect, 3, 5), some(&[1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1]));
        assert_eq!(shown(Mode::Wrap, 2, 4), some(&[1, 2, 0, 1, 2, 0, 1, 2, 0]));
        assert_eq!(shown(Mode::Edge, -1, 2), some(&[1, 2, 2, 2]));
        assert_eq!(shown(Mode::Reflect, 2, -1), some(&[0, 1, 0, 1]));
        assert_eq!(shown(Mode::Constant, 1, -2), vec![None, Some(0)]);
    }
}

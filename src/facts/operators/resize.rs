//! Changes of resolution, and sampling at computed places.

use super::{Outputs, Rule, one, shape};
use crate::facts::dims;
use crate::facts::view::Operator;
use crate::ir::{Dim, Expr, Shape};

pub(super) const RULES: &[(&str, Rule)] = &[
    ("AffineGrid", affine_grid),
    ("GridSample", grid_sample),
    ("Resize", |op| one(op.element(0), resize(op))),
    ("Upsample", |op| one(op.element(0), upsample(op))),
];

fn unknown(op: &Operator) -> Option<Shape> {
    Some(vec![Dim::Unknown; op.rank(0)?].into())
}

/// A dimension times a factor, as runtimes compute it: in float32, rounded toward zero.
fn scaled(d: &Dim, factor: f32) -> Dim {
    if !(factor.is_finite() && factor > 0.0) {
        return Dim::Unknown;
    }
    match d {
        // Up to 2^24 every dimension is a float32.
        Dim::Fixed(n) if *n <= 1 << 24 => {
            let size = *n as f32 * factor;
            if size < 9e15 { Dim::Fixed(size as u64) } else { Dim::Unknown }
        }
        Dim::Symbolic(_) if factor.fract() == 0.0 && factor < 1e6 => dims::times(d, factor as u64),
        Dim::Symbolic(e) => {
            // 1/2, 1/4, … are exact in float32.
            let inverse = 1.0 / factor;
            let power_of_two = inverse.fract() == 0.0 && inverse < 1e6 && (inverse as u64).is_power_of_two();
            dims::of(if power_of_two { e.floor_div(&Expr::constant(inverse as i64)) } else { None })
        }
        _ => Dim::Unknown,
    }
}

fn upsample(op: &Operator) -> Option<Shape> {
    let input = op.shape(0)?;
    let scales: Vec<f32> = match (op.opset, op.node.attribute("scales")) {
        (..7, _) => {
            let (h, w) = (op.float("height_scale", f32::NAN)?, op.float("width_scale", f32::NAN)?);
            vec![1.0, 1.0, h, w]
        }
        (7..9, Some(crate::ir::AttributeValue::Floats(f))) => f.to_vec(),
        (9.., _) => match op.tensor(1).and_then(|t| t.as_f32()) {
            Some(scales) => scales,
            None => return unknown(op),
        },
        _ => return unknown(op),
    };
    if scales.len() != input.len() {
        return unknown(op);
    }
    shape(input.iter().zip(scales).map(|(d, s)| scaled(d, s)))
}

fn resize(op: &Operator) -> Option<Shape> {
    let input = op.shape(0)?;
    let (scales, sizes) = if op.opset < 11 { (1, usize::MAX) } else { (2, 3) };
    let axes: Vec<usize> = match op.list("axes")? {
        Some(axes) => axes.iter().map(|a| dims::axis(*a, Some(input.len()))).collect::<Option<_>>()?,
        None => (0..input.len()).collect(),
    };
    let mut result = input.clone();
    let mut set = |of: &dyn Fn(usize, &Dim) -> Dim| {
        for (k, axis) in axes.iter().enumerate() {
            let slot = result.get_mut(*axis)?;
            *slot = of(k, slot);
        }
        Some(())
    };
    // Both may be given when one is an empty tensor.
    let sized = op.has(sizes) && op.dim(sizes, 0) != Dim::Fixed(0);
    if sized {
        // Other policies keep the aspect ratio and change the sizes asked for.
        let exact = op.text("keep_aspect_ratio_policy", "stretch")? == "stretch";
        let given = op.ints(sizes).filter(|_| exact);
        set(&|k, _| dims::of(given.as_ref().and_then(|g| g.get(k)?.clone())))?;
        return Some(result);
    }
    let factors = op.tensor(scales).and_then(|t| t.as_f32()).filter(|f| f.len() == axes.len());
    let whole = op.elements(scales).filter(|f| f.len() == axes.len());
    let cropped = op.text("coordinate_transformation_mode", "half_pixel")? == "tf_crop_and_resize";
    set(&|k, d| {
        if cropped {
            return Dim::Unknown;
        }
        if let Some(f) = factors.as_ref().and_then(|f| f.get(k)) {
            return scaled(d, *f);
        }
        match whole.as_ref().and_then(|w| w.get(k)).and_then(|e| e.as_ref()?.as_constant()) {
            Some(f) => u64::try_from(f).map_or(Dim::Unknown, |f| dims::times(d, f)),
            None => Dim::Unknown,
        }
    })?;
    Some(result)
}

fn grid_sample(op: &Operator) -> Option<Outputs> {
    let s = || {
        let input = op.shape(0)?;
        // Grid: (batch, spatial dimensions of the result, coordinates).
        let (_, grid) = op.shape(1)?.split_last()?;
        let spatial = grid.get(1..)?;
        (spatial.len() + 2 == input.len()).then(|| input.iter().take(2).chain(spatial).cloned().collect())
    };
    one(op.element(0), s())
}

fn affine_grid(op: &Operator) -> Option<Outputs> {
    let s = || {
        let size = op.ints(1)?;
        let coordinates = u64::try_from(size.len().checked_sub(2)?).ok()?;
        let batch = size.first()?.clone();
        let spatial = size.get(2..)?.iter().cloned();
        shape([batch].into_iter().chain(spatial).map(dims::of).chain([Dim::Fixed(coordinates)]))
    };
    one(op.element(0), s())
}

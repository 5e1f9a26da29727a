//! Arithmetic on dimensions. Whatever leaves int64, or is not certain, is unknown.

use crate::ir::{Dim, Expr, Shape};

/// An axis counted from the front; `None` when out of range, or negative while the rank is not known.
pub fn axis(axis: i64, rank: Option<usize>) -> Option<usize> {
    let rank = match (rank, axis) {
        (Some(r), _) => i64::try_from(r).ok()?,
        (None, 0..) => return usize::try_from(axis).ok(),
        (None, _) => return None,
    };
    let at = if axis < 0 { axis.checked_add(rank)? } else { axis };
    (0..rank).contains(&at).then_some(at as usize)
}

/// Axes counted from the front, ascending, each once.
pub fn normalized(axes: &[i64], rank: Option<usize>) -> Option<Vec<i64>> {
    let mut list: Vec<i64> = axes.iter().map(|a| axis(*a, rank).map(|a| a as i64)).collect::<Option<_>>()?;
    list.sort_unstable();
    list.dedup();
    Some(list)
}

/// From an expression that may not be known.
pub fn of(e: Option<Expr>) -> Dim {
    e.map_or(Dim::Unknown, Dim::from_expr)
}

/// Sum.
pub fn add(a: &Dim, b: &Dim) -> Dim {
    of(a.expr().zip(b.expr()).and_then(|(a, b)| a.add(&b)))
}

/// Sum with a number, which may be negative.
pub fn plus(a: &Dim, n: i64) -> Dim {
    if n == 0 { a.clone() } else { of(a.expr().and_then(|a| a.add(&Expr::constant(n)))) }
}

/// Product.
pub fn mul(a: &Dim, b: &Dim) -> Dim {
    match (a, b) {
        (Dim::Fixed(1), x) | (x, Dim::Fixed(1)) => x.clone(),
        (Dim::Fixed(0), _) | (_, Dim::Fixed(0)) => Dim::Fixed(0),
        _ => of(a.expr().zip(b.expr()).and_then(|(a, b)| a.mul(&b))),
    }
}

/// Product with a number.
pub fn times(a: &Dim, n: u64) -> Dim {
    mul(a, &Dim::Fixed(n))
}

/// Product of all.
pub fn product<'a>(all: impl IntoIterator<Item = &'a Dim>) -> Dim {
    all.into_iter().fold(Dim::Fixed(1), |p, d| mul(&p, d))
}

/// Quotient of a division that has no remainder at run time.
pub fn exact_div(a: &Dim, n: u64) -> Dim {
    match (a, i64::try_from(n)) {
        (_, Err(_) | Ok(0)) => Dim::Unknown,
        (Dim::Fixed(a), _) => {
            if a % n == 0 {
                Dim::Fixed(a / n)
            } else {
                Dim::Unknown
            }
        }
        (_, Ok(n)) => of(a.expr().and_then(|a| a.floor_div(&Expr::constant(n)))),
    }
}

/// The dimension of the result where two are broadcast together (numpy's rule).
pub fn broadcast(a: &Dim, b: &Dim) -> Dim {
    match (a, b) {
        (Dim::Fixed(1), x) | (x, Dim::Fixed(1)) => x.clone(),
        (Dim::Fixed(a), Dim::Fixed(b)) if a != b => Dim::Unknown,
        // The other is 1 or the same, else the run fails.
        (Dim::Fixed(n), _) | (_, Dim::Fixed(n)) => Dim::Fixed(*n),
        _ if a.surely_equals(b) => a.clone(),
        // A table cut to a length: where min(length, rows) is not the length, the run fails.
        (Dim::Symbolic(x), Dim::Symbolic(y)) if is_cut(x, y) => b.clone(),
        (Dim::Symbolic(x), Dim::Symbolic(y)) if is_cut(y, x) => a.clone(),
        // The larger of a dimension and 0 is the dimension.
        (Dim::Symbolic(x), Dim::Symbolic(y)) if is_held_up(x, y) => b.clone(),
        (Dim::Symbolic(x), Dim::Symbolic(y)) if is_held_up(y, x) => a.clone(),
        _ => Dim::Unknown,
    }
}

/// True when `cut` is the smaller of `whole` and a number of at least 2.
fn is_cut(cut: &Expr, whole: &Expr) -> bool {
    let of = |x: &Expr, n: &Expr| x == whole && n.as_constant().is_some_and(|n| n >= 2);
    cut.as_min().is_some_and(|(a, b)| of(a, b) || of(b, a))
}

/// True when `held` is the larger of `whole` and 0.
fn is_held_up(held: &Expr, whole: &Expr) -> bool {
    let zero = |n: &Expr| n.as_constant() == Some(0);
    held.as_max().is_some_and(|(a, b)| (a == whole && zero(b)) || (b == whole && zero(a)))
}

/// Shape of several broadcast together.
pub fn broadcast_shapes<'a>(shapes: impl IntoIterator<Item = &'a [Dim]>) -> Shape {
    let mut result = Shape::new();
    for shape in shapes {
        if shape.len() > result.len() {
            result.insert_many(0, std::iter::repeat_n(Dim::Fixed(1), shape.len() - result.len()));
        }
        let skipped = result.len() - shape.len();
        for (r, d) in result.iter_mut().skip(skipped).zip(shape) {
            *r = broadcast(r, d);
        }
    }
    result
}

/// Two dimensions that are equal at run time: the better known of them.
pub fn same(a: &Dim, b: &Dim) -> Dim {
    match (a, b) {
        (Dim::Fixed(_), _) | (_, Dim::Unknown) => a.clone(),
        (_, Dim::Fixed(_)) | (Dim::Unknown, _) => b.clone(),
        _ => a.clone(),
    }
}

/// Sizes of `parts` parts of a whole; with `uneven`, the last one may be smaller (operator set 18).
pub fn even_parts(whole: &Dim, parts: i64, uneven: bool) -> Vec<Dim> {
    let count = parts as u64;
    let part = match whole {
        Dim::Fixed(n) if uneven && n % count != 0 => {
            let size = n.div_ceil(count);
            let last = n.checked_sub(size * (count - 1)).map_or(Dim::Unknown, Dim::Fixed);
            return (1..count).map(|_| Dim::Fixed(size)).chain([last]).collect();
        }
        Dim::Symbolic(e) if uneven && e.exact_div(&Expr::constant(parts)).is_none() => Dim::Unknown,
        _ => exact_div(whole, count),
    };
    vec![part; parts as usize]
}

/// Shape of a reshaped tensor: 0 copies (unless `allow_zero`), -1 takes what is left.
pub fn reshaped(input: Option<&[Dim]>, target: &[Option<Expr>], allow_zero: bool) -> Shape {
    let number = |e: &Option<Expr>| e.as_ref().and_then(Expr::as_constant);
    let mut shape: Shape = Shape::new();
    let mut inferred = None;
    let is_dimension =
        |e: &Expr| input.is_some_and(|s| s.iter().any(|d| matches!(d, Dim::Symbolic(d) if d == e)));
    // An element that is not a number could be 0 or -1 at run time; a product of dimensions is at least 0, and 0 would
    // copy. It is taken as a dimension only when the copied one is the same or the element is 1 or more.
    for (i, e) in target.iter().enumerate() {
        shape.push(match (number(e), e) {
            (Some(-1), _) => {
                inferred = Some(i);
                Dim::Unknown
            }
            (Some(0), _) if !allow_zero => input.and_then(|s| s.get(i)).cloned().unwrap_or(Dim::Unknown),
            (Some(n), _) => u64::try_from(n).map_or(Dim::Unknown, Dim::Fixed),
            (None, Some(e)) if e.is_never_negative() || is_dimension(e) => Dim::from_expr(e.clone()),
            (None, _) => Dim::Unknown,
        });
    }
    let Some(input) = input else { return shape };
    if let Some(at) = inferred
        && let Some(rest) =
            quotient(input, shape.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, d)| d))
        && let Some(slot) = shape.get_mut(at)
    {
        *slot = rest;
    }
    shape
}

/// What is left of the number of elements when the other dimensions are taken out. Dimensions that stand on both sides
/// cancel first, so that one that is not known does not hide the rest.
fn quotient<'a>(input: &'a [Dim], others: impl Iterator<Item = &'a Dim>) -> Option<Dim> {
    let mut above: Vec<&Dim> = input.iter().collect();
    let mut below = Vec::new();
    for d in others {
        match above.iter().position(|a| a.surely_equals(d)) {
            Some(at) => {
                above.swap_remove(at);
            }
            None => below.push(d),
        }
    }
    let (above, below) = (product(above), product(below));
    match (&above, &below) {
        (Dim::Fixed(_), Dim::Fixed(0)) => None,
        (Dim::Fixed(a), Dim::Fixed(b)) => (a % b == 0).then(|| Dim::Fixed(a / b)),
        _ => {
            // Elements are conserved, so the division has no remainder at run time.
            let (a, b) = (above.expr()?, below.expr()?);
            Some(of(a.exact_div(&b).or_else(|| match b.as_constant() {
                Some(1..) => a.floor_div(&b),
                _ => None,
            })))
        }
    }
}

/// Larger of an expression and 0.
pub fn not_negative(e: &Expr) -> Expr {
    largest(e, &Expr::constant(0))
}

/// Smaller of two, decided where the difference has a certain sign.
pub fn smallest(a: &Expr, b: &Expr) -> Expr {
    match sign_of_difference(a, b) {
        Some(false) => b.clone(),
        Some(true) => a.clone(),
        None => Expr::min(a, b),
    }
}

/// Larger of two, decided where the difference has a certain sign.
pub fn largest(a: &Expr, b: &Expr) -> Expr {
    match sign_of_difference(a, b) {
        Some(false) => a.clone(),
        Some(true) => b.clone(),
        None => Expr::max(a, b),
    }
}

/// True when surely a <= b, false when surely a >= b.
fn sign_of_difference(a: &Expr, b: &Expr) -> Option<bool> {
    if b.sub(a)?.is_never_negative() {
        return Some(true);
    }
    a.sub(b)?.is_never_negative().then_some(false)
}

/// True when surely equal, false when surely different, whatever the sizes of the named dimensions.
pub fn equal(a: &Expr, b: &Expr) -> Option<bool> {
    let difference = a.sub(b)?;
    match difference.as_constant() {
        Some(n) => Some(n == 0),
        None => (less(a, b) == Some(true) || less(b, a) == Some(true)).then_some(false),
    }
}

/// True when surely a < b, false when surely a >= b.
pub fn less(a: &Expr, b: &Expr) -> Option<bool> {
    let difference = b.sub(a)?;
    if difference.add(&Expr::constant(-1))?.is_never_negative() {
        return Some(true);
    }
    a.sub(b)?.is_never_negative().then_some(false)
}

/// True when surely below zero, false when surely not.
fn negative(e: &Expr) -> Option<bool> {
    less(e, &Expr::constant(0))
}

/// Numbers from here on, either sign, say "to the end" in Slice; no dimension is as large.
const FAR: i64 = i32::MAX as i64;

/// Size of a dimension after Slice; starts and ends as given.
pub fn sliced(dim: &Dim, start: &Expr, end: &Expr, step: i64) -> Dim {
    let exact = |d: u64| {
        let numbers = start.as_constant().zip(end.as_constant());
        let (start, end) = numbers.filter(|_| step != 0)?;
        slice_bounds(i64::try_from(d).ok()?, start, end, step)
    };
    match dim {
        Dim::Fixed(d) if exact(*d).is_some() => match exact(*d) {
            Some((_, count)) => Dim::Fixed(count),
            None => Dim::Unknown,
        },
        // The whole of a dimension that is not known is not known; one element of it is one.
        _ => of(sliced_expr(dim.expr().as_ref(), start, end, step)),
    }
}

/// First index and number of elements that a slice takes of `d` (`step` is not 0).
pub fn slice_bounds(d: i64, start: i64, end: i64, step: i64) -> Option<(i64, u64)> {
    let from_end = |n: i64| if n < 0 { n.saturating_add(d) } else { n };
    let (start, end) = (from_end(start), from_end(end));
    let (start, end) = match step > 0 {
        true => (start.clamp(0, d), end.clamp(0, d)),
        false => (start.clamp(-1, d - 1), end.clamp(-1, d - 1)),
    };
    let length = if step > 0 { end - start } else { start - end }.max(0) as u64;
    Some((start, length.div_ceil(step.unsigned_abs())))
}

fn sliced_expr(d: Option<&Expr>, start: &Expr, end: &Expr, step: i64) -> Option<Expr> {
    let far =
        |e: &Expr, sign: i64| e.as_constant().is_some_and(|n| n.checked_mul(sign).is_none_or(|n| n >= FAR));
    let steps =
        |length: &Expr, step: i64| length.add(&Expr::constant(step - 1))?.floor_div(&Expr::constant(step));
    if step < 0 {
        // Only the reversal of the whole.
        let from_last = far(start, 1) || start.as_constant() == Some(-1);
        return if from_last && far(end, -1) { steps(d?, step.checked_neg()?) } else { None };
    }
    if step == 0 {
        return None;
    }
    let clamp = |e: &Expr| {
        let d = d?;
        if far(e, 1) {
            return Some(d.clone());
        }
        if far(e, -1) {
            return Some(Expr::constant(0));
        }
        let from_end = d.add(e)?;
        // The dimension's own size, counted from the end: the first element, also when that size is 0.
        if from_end.as_constant() == Some(0) {
            return Some(from_end);
        }
        // A dimension is 0 or more, also where its expression does not show it.
        Some(if negative(e)? { not_negative(&from_end) } else { smallest(e, d) })
    };
    steps(&not_negative(&clamp(end)?.sub(&clamp(start)?)?), step)
}

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
        _ => Dim::Unknown,
    }
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
            (None, Some(e)) if e.is_never_negative() => Dim::from_expr(e.clone()),
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

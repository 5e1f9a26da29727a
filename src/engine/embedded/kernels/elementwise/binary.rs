//! Operators of two arrays with broadcasting: the driver, and loops over rows.

use super::broadcast::Broadcast;
use super::number::{Half, Integer};
use super::produce::{Filling, PIECE, in_stretches, produce};
use crate::engine::array::{Array, Element, Storage};
use crate::engine::embedded::call::{Call, Outputs, one};
use crate::engine::embedded::vector_math::widest;
use crate::engine::fault::Fault;
use crate::ir::ElementType;

/// An operator on numbers of every type.
pub trait Arithmetic: Copy + Send + Sync {
    fn single(self, a: f32, b: f32) -> f32;
    fn double(self, a: f64, b: f64) -> f64;
    fn integer<T: Integer>(self, a: T, b: T) -> T;
}

/// Loops of an operator over rows.
pub trait Rows<T>: Sync {
    /// a[i] = a[i] ∘ b[i]
    fn left(&self, a: &mut [T], b: &[T]);
    /// b[i] = a[i] ∘ b[i]
    fn right(&self, a: &[T], b: &mut [T]);
    /// a[i] = a[i] ∘ b
    fn left_by(&self, a: &mut [T], b: T);
    /// b[i] = a ∘ b[i]
    fn right_by(&self, a: T, b: &mut [T]);
}

/// Loops made from a function of two elements.
pub struct Plain<F>(pub F);

impl<T: Copy, F: Fn(T, T) -> T + Sync> Rows<T> for Plain<F> {
    fn left(&self, a: &mut [T], b: &[T]) {
        a.iter_mut().zip(b).for_each(|(a, b)| *a = (self.0)(*a, *b));
    }

    fn right(&self, a: &[T], b: &mut [T]) {
        b.iter_mut().zip(a).for_each(|(b, a)| *b = (self.0)(*a, *b));
    }

    fn left_by(&self, a: &mut [T], b: T) {
        a.iter_mut().for_each(|a| *a = (self.0)(*a, b));
    }

    fn right_by(&self, a: T, b: &mut [T]) {
        b.iter_mut().for_each(|b| *b = (self.0)(a, *b));
    }
}

/// The same, with the widest vector instructions. The function must be `#[inline(always)]`.
pub struct Vector<F>(pub F);

impl<F: Fn(f32, f32) -> f32 + Sync> Rows<f32> for Vector<F> {
    fn left(&self, a: &mut [f32], b: &[f32]) {
        widest(
            #[inline(always)]
            || a.iter_mut().zip(b).for_each(|(a, b)| *a = (self.0)(*a, *b)),
        );
    }

    fn right(&self, a: &[f32], b: &mut [f32]) {
        widest(
            #[inline(always)]
            || b.iter_mut().zip(a).for_each(|(b, a)| *b = (self.0)(*a, *b)),
        );
    }

    fn left_by(&self, a: &mut [f32], b: f32) {
        widest(
            #[inline(always)]
            || a.iter_mut().for_each(|a| *a = (self.0)(*a, b)),
        );
    }

    fn right_by(&self, a: f32, b: &mut [f32]) {
        widest(
            #[inline(always)]
            || b.iter_mut().for_each(|b| *b = (self.0)(a, *b)),
        );
    }
}

/// The two inputs. Before opset 7 broadcasting had to be asked for, and `axis` said where the shape of the second array
/// stands in that of the first.
pub fn operands(call: &mut Call) -> Result<(Array, Array), Fault> {
    let (a, b) = (call.take(0)?, call.take(1)?);
    if a.element() != b.element() {
        return Err(Fault::Invalid(format!("its inputs are {} and {}", a.element(), b.element())));
    }
    if call.opset < 7 {
        return aligned(call, a, b);
    }
    Ok((a, b))
}

/// See [`operands`].
pub fn aligned(call: &Call, a: Array, b: Array) -> Result<(Array, Array), Fault> {
    if call.attributes.int("broadcast", 0)? == 0 {
        return match a.dims() == b.dims() {
            true => Ok((a, b)),
            false => Err(Fault::Invalid(format!("shapes {:?} and {:?} differ", a.dims(), b.dims()))),
        };
    }
    let Some(axis) = call.attributes.optional_int("axis")? else { return Ok((a, b)) };
    let axis = call.axis(axis, a.rank() + 1)?;
    let mut dims: crate::engine::array::Dims = b.dims().into();
    while axis + dims.len() < a.rank() {
        dims.push(1);
    }
    Ok((a, b.reshaped(&dims)))
}

/// An operator on numbers.
pub fn arithmetic(call: &mut Call, op: impl Arithmetic) -> Result<Outputs, Fault> {
    let (a, b) = operands(call)?;
    one(compute(call, a, b, op)?)
}

/// An operator on two arrays of numbers of one type.
pub fn compute(call: &Call, a: Array, b: Array, op: impl Arithmetic) -> Result<Array, Fault> {
    let element = a.element();
    if let Storage::F32(_) = a.storage() {
        return combine(call, a, b, &floats(op));
    }
    match element {
        ElementType::DOUBLE => combine(call, a, b, &Plain(move |a, b| op.double(a, b))),
        ElementType::FLOAT16 => combine_halves::<half::f16>(call, &a, &b, &floats(op)),
        ElementType::BFLOAT16 => combine_halves::<half::bf16>(call, &a, &b, &floats(op)),
        ElementType::INT8 => combine(call, a, b, &Plain(move |a: i8, b| op.integer(a, b))),
        ElementType::INT16 => combine(call, a, b, &Plain(move |a: i16, b| op.integer(a, b))),
        ElementType::INT32 => combine(call, a, b, &Plain(move |a: i32, b| op.integer(a, b))),
        ElementType::INT64 => combine(call, a, b, &Plain(move |a: i64, b| op.integer(a, b))),
        ElementType::UINT8 => combine(call, a, b, &Plain(move |a: u8, b| op.integer(a, b))),
        ElementType::UINT16 => combine(call, a, b, &Plain(move |a: u16, b| op.integer(a, b))),
        ElementType::UINT32 => combine(call, a, b, &Plain(move |a: u32, b| op.integer(a, b))),
        ElementType::UINT64 => combine(call, a, b, &Plain(move |a: u64, b| op.integer(a, b))),
        _ => call.unsupported(element),
    }
}

/// The float32 loops of an operator.
pub fn floats(op: impl Arithmetic) -> impl Rows<f32> {
    Vector(
        #[inline(always)]
        move |a, b| op.single(a, b),
    )
}

/// Result of an operator on two arrays of one type, in place of one of them when nobody else has it.
pub fn combine<T: Element + Copy>(
    call: &Call,
    a: Array,
    b: Array,
    rows: &dyn Rows<T>,
) -> Result<Array, Fault> {
    let (element, a_dims, a) = a.into_parts();
    let (b_element, b_dims, b) = b.into_parts();
    let a = T::alone(a).ok_or_else(|| Fault::element(element))?;
    let b = T::alone(b).ok_or_else(|| Fault::element(b_element))?;
    let plan = match a_dims == b_dims {
        true => None,
        false => Some(Broadcast::of([&a_dims, &b_dims])?),
    };
    let dims = plan.as_ref().map_or(&a_dims, |p| &p.dims);
    let whole = |f: &mut dyn FnMut([usize; 2], usize), start: usize, count: usize| match &plan {
        None => f([start; 2], count),
        Some(plan) => plan.runs(start, count, f),
    };
    let steps = plan.as_ref().map_or([1, 1], Broadcast::steps);
    let elements = match (a, b) {
        (Ok(mut a), b) if a_dims == *dims => {
            let b: &[T] = b.as_ref().map_or_else(|b| b.as_slice(), |b| b.as_slice());
            in_stretches(call, &mut a, &|start, part| {
                let count = part.len();
                whole(
                    &mut |[at_a, at_b], n| {
                        let a = &mut part[at_a - start..][..n];
                        match steps[1] {
                            0 => rows.left_by(a, b[at_b]),
                            _ => rows.left(a, &b[at_b..][..n]),
                        }
                    },
                    start,
                    count,
                );
            });
            a
        }
        (a, Ok(mut b)) if b_dims == *dims => {
            let a: &[T] = a.as_ref().map_or_else(|a| a.as_slice(), |a| a.as_slice());
            in_stretches(call, &mut b, &|start, part| {
                let count = part.len();
                whole(
                    &mut |[at_a, at_b], n| {
                        let b = &mut part[at_b - start..][..n];
                        match steps[0] {
                            0 => rows.right_by(a[at_a], b),
                            _ => rows.right(&a[at_a..][..n], b),
                        }
                    },
                    start,
                    count,
                );
            });
            b
        }
        (a, b) => {
            let a: &[T] = a.as_ref().map_or_else(|a| a.as_slice(), |a| a.as_slice());
            let b: &[T] = b.as_ref().map_or_else(|b| b.as_slice(), |b| b.as_slice());
            let short = plan.as_ref().filter(|p| p.run() < SHORT);
            produce(call, dims, &|start, out| match short {
                Some(plan) => short_runs(plan, [a, b], start, out, rows),
                None => {
                    let count = out.left();
                    whole(&mut |places, n| long_run([a, b], steps, places, n, out, rows), start, count);
                }
            })?
        }
    };
    Ok(Array::of(element, dims, T::store(elements)))
}

/// Runs shorter than this are laid out before they are computed.
const SHORT: usize = 32;

/// One run of results, piece by piece.
fn long_run<T: Copy>(
    [a, b]: [&[T]; 2],
    steps: [usize; 2],
    [mut at_a, mut at_b]: [usize; 2],
    mut left: usize,
    out: &mut Filling<T>,
    rows: &dyn Rows<T>,
) {
    while left > 0 {
        let n = left.min(PIECE);
        match steps {
            [1, 1] => rows.left(out.copy(&a[at_a..][..n]), &b[at_b..][..n]),
            [1, _] => rows.left_by(out.copy(&a[at_a..][..n]), b[at_b]),
            [_, 1] => rows.right_by(a[at_a], out.copy(&b[at_b..][..n])),
            _ => rows.left_by(out.copy(&vec![a[at_a]; n]), b[at_b]),
        }
        at_a += n * steps[0];
        at_b += n * steps[1];
        left -= n;
    }
}

/// Many short runs: both sides are laid out over a piece of the result first.
fn short_runs<T: Element + Copy>(
    plan: &Broadcast<2>,
    arrays: [&[T]; 2],
    start: usize,
    out: &mut Filling<T>,
    rows: &dyn Rows<T>,
) {
    laid_out(plan, arrays, start, out.left(), &mut |a, b| rows.left(out.copy(a), b));
}

/// Calls `f` with the elements of both arrays that meet in the results `start..start + count`, piece by piece.
pub fn laid_out<T: Copy>(
    plan: &Broadcast<2>,
    arrays: [&[T]; 2],
    start: usize,
    count: usize,
    f: &mut dyn FnMut(&[T], &[T]),
) {
    let steps = plan.steps();
    let mut pieces = [Vec::with_capacity(PIECE.min(count)), Vec::with_capacity(PIECE.min(count))];
    let mut done = 0;
    while done < count {
        let n = (count - done).min(PIECE);
        for (k, piece) in pieces.iter_mut().enumerate() {
            piece.clear();
            plan.runs(start + done, n, |places, n| match steps[k] {
                0 => piece.extend(std::iter::repeat_n(arrays[k][places[k]], n)),
                _ => piece.extend_from_slice(&arrays[k][places[k]..][..n]),
            });
        }
        f(&pieces[0], &pieces[1]);
        done += n;
    }
}

/// Result of a float32 operator on two arrays of a 16-bit type.
pub fn combine_halves<H: Half>(
    call: &Call,
    a: &Array,
    b: &Array,
    rows: &dyn Rows<f32>,
) -> Result<Array, Fault> {
    let (from_a, from_b) = (a.view::<H>()?, b.view::<H>()?);
    let plan = Broadcast::of([a.dims(), b.dims()])?;
    let elements = produce(call, &plan.dims, &|start, out: &mut Filling<H>| {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        laid_out(&plan, [from_a, from_b], start, out.left(), &mut |a, b| {
            left.clear();
            right.clear();
            left.extend(a.iter().map(|x| x.widen()));
            right.extend(b.iter().map(|x| x.widen()));
            rows.left(&mut left, &right);
            out.extend(left.iter().map(|x| H::round(*x)));
        });
    })?;
    Ok(Array::of(a.element(), &plan.dims, H::store(elements)))
}

//! Writing by index: ScatterElements, ScatterND, TensorScatter.

use super::gather::{element_places, tuple_places};
use super::words::{Word, with_word};
use crate::engine::array::{Array, Element, Storage};
use crate::engine::embedded::call::{Call, Outputs, one};
use crate::engine::fault::Fault;
use crate::ir::ElementType;
use half::{bf16, f16};

/// What becomes of an element and the update that meets it.
#[derive(Clone, Copy, PartialEq)]
enum Reduction {
    Replace,
    Add,
    Multiply,
    Least,
    Greatest,
}

/// `reduction` comes with opset 16, its min and max with opset 18.
fn reduction(call: &Call) -> Result<Reduction, Fault> {
    Ok(match call.attributes.text("reduction", "none")? {
        "none" => Reduction::Replace,
        "add" => Reduction::Add,
        "mul" => Reduction::Multiply,
        "min" => Reduction::Least,
        "max" => Reduction::Greatest,
        other => return Err(Fault::Invalid(format!("reduction {other} is not one the standard knows"))),
    })
}

/// Elements that can be reduced: integers wrap around, a NaN stays one.
trait Reduced: Element + Copy {
    fn reduce(self, update: Self, how: Reduction) -> Self;
}

macro_rules! reduced_integers {
    ($($t:ty)*) => {
        $(impl Reduced for $t {
            fn reduce(self, update: Self, how: Reduction) -> Self {
                match how {
                    Reduction::Replace => update,
                    Reduction::Add => self.wrapping_add(update),
                    Reduction::Multiply => self.wrapping_mul(update),
                    Reduction::Least => self.min(update),
                    Reduction::Greatest => self.max(update),
                }
            }
        })*
    };
}

macro_rules! reduced_floats {
    ($($t:ty)*) => {
        $(impl Reduced for $t {
            fn reduce(self, update: Self, how: Reduction) -> Self {
                match how {
                    Reduction::Replace => update,
                    Reduction::Add => self + update,
                    Reduction::Multiply => self * update,
                    Reduction::Least if update < self || update.is_nan() => update,
                    Reduction::Greatest if update > self || update.is_nan() => update,
                    Reduction::Least | Reduction::Greatest => self,
                }
            }
        })*
    };
}

reduced_integers!(i8 i16 i32 i64 u8 u16 u32 u64);
reduced_floats!(f32 f64 f16 bf16);

/// Writes blocks of `width` elements of the updates to their places in the data, first to last.
fn scattered(call: &mut Call, places: &[usize], width: usize, how: Reduction) -> Result<Array, Fault> {
    let data = call.take(0)?;
    let updates = call.input(2)?;
    if updates.element() != data.element() {
        return Err(Fault::Invalid(format!(
            "data is {} and the updates are {}",
            data.element(),
            updates.element()
        )));
    }
    call.elements(data.dims(), data.bytes() / data.len().max(1))?;
    if how == Reduction::Replace {
        return with_word!(data, W => {
            let from = W::of(updates)?;
            W::edited(data, |to| {
                for (place, from) in places.iter().zip(from.chunks(width.max(1))) {
                    to[place * width..(place + 1) * width].clone_from_slice(from);
                }
            })
        });
    }
    macro_rules! reduced {
        ($how:expr; $($variant:ident $t:ty,)*) => {
            match data.storage() {
                $(Storage::$variant(_) => {
                    let from = updates.view::<$t>()?;
                    let (element, dims) = (data.element(), data.dims().to_vec());
                    let mut to = data.take::<$t>()?;
                    for (place, from) in places.iter().zip(from.chunks(width.max(1))) {
                        for (to, from) in to[place * width..(place + 1) * width].iter_mut().zip(from) {
                            *to = to.reduce(*from, $how);
                        }
                    }
                    Ok(Array::of(element, &dims, Element::store(to)))
                })*
                _ => call.unsupported(format_args!("reductions of {}", data.element())),
            }
        };
    }
    match data.element() {
        // Sum and greatest of truth values are "or", product and least are "and".
        ElementType::BOOL => {
            let how = match how {
                Reduction::Add => Reduction::Greatest,
                Reduction::Multiply => Reduction::Least,
                other => other,
            };
            reduced!(how; U8 u8,)
        }
        ElementType::UINT8 => reduced!(how; U8 u8,),
        _ => reduced!(
            how; F32 f32, F64 f64, F16 f16, BF16 bf16, I8 i8, I16 i16, I32 i32, I64 i64, U16 u16, U32 u32, U64 u64,
        ),
    }
}

/// ScatterElements, and Scatter of opset 9 and 10.
pub fn scatter_elements(call: &mut Call) -> Result<Outputs, Fault> {
    let (data, indices, updates) = (call.input(0)?, call.input(1)?, call.input(2)?);
    let axis = call.axis(call.attributes.int("axis", 0)?, data.rank())?;
    if indices.dims() != updates.dims() {
        return Err(Fault::Invalid(format!(
            "indices of shape {:?} for updates of shape {:?}",
            indices.dims(),
            updates.dims()
        )));
    }
    let places = element_places(call, data.dims(), indices, axis)?;
    let how = reduction(call)?;
    one(scattered(call, &places, 1, how)?)
}

/// ScatterND.
pub fn scatter_nd(call: &mut Call) -> Result<Outputs, Fault> {
    let (data, indices, updates) = (call.input(0)?, call.input(1)?, call.input(2)?);
    let refused = || {
        Fault::Invalid(format!(
            "indices of shape {:?} and updates of shape {:?} do not fit data of shape {:?}",
            indices.dims(),
            updates.dims(),
            data.dims()
        ))
    };
    let (depth, rows) = indices.dims().split_last().ok_or_else(refused)?;
    if *depth > data.rank() {
        return Err(refused());
    }
    let (walked, inner) = data.dims().split_at(*depth);
    if !rows.iter().chain(inner).eq(updates.dims()) {
        return Err(refused());
    }
    let width = inner.iter().product();
    let places = match depth {
        0 => vec![0; rows.iter().product()],
        _ => tuple_places(&indices.integers()?, walked)?,
    };
    let how = reduction(call)?;
    one(scattered(call, &places, width, how)?)
}

/// TensorScatter: updates of a cache along one axis, from a place of its own for each batch.
pub fn tensor_scatter(call: &mut Call) -> Result<Outputs, Fault> {
    let (cache, update) = (call.input(0)?, call.input(1)?);
    let circular = match call.attributes.text("mode", "linear")? {
        "linear" => false,
        "circular" => true,
        other => return Err(Fault::Invalid(format!("mode {other} is neither linear nor circular"))),
    };
    let axis = call.axis(call.attributes.int("axis", -2)?, cache.rank())?;
    let dims = cache.dims();
    let fits = update.rank() == dims.len()
        && update.element() == cache.element()
        && update.dims().iter().zip(dims).enumerate().all(|(a, (u, d))| u == d || (a == axis && u < d));
    if axis == 0 || !fits {
        return Err(Fault::Invalid(format!(
            "an update of shape {:?} does not fit a cache of shape {dims:?} along axis {axis}",
            update.dims()
        )));
    }
    let (length, new) = (dims[axis], update.dims()[axis]);
    let starts = match call.optional(2)? {
        Some(starts) => starts.integers()?,
        None => vec![0; dims[0]],
    };
    let last = if circular { length.saturating_sub(1) } else { length - new };
    if starts.len() != dims[0] || !starts.iter().all(|s| (0..=last as i64).contains(s)) {
        return Err(Fault::Invalid(format!("write indices {starts:?} do not fit a cache of shape {dims:?}")));
    }
    let width: usize = dims[axis + 1..].iter().product();
    // Rows between the batch axis and the written one.
    let middle: usize = dims[1..axis].iter().product();
    let cache = call.take(0)?;
    let update = call.input(1)?;
    call.elements(cache.dims(), cache.bytes() / cache.len().max(1))?;
    one(with_word!(cache, W => {
        let from = W::of(update)?;
        W::edited(cache, |to| {
            for (batch, start) in starts.iter().enumerate() {
                for row in batch * middle..(batch + 1) * middle {
                    for step in 0..new {
                        let place = (row * length + (*start as usize + step) % length) * width;
                        let from_place = (row * new + step) * width;
                        to[place..place + width].clone_from_slice(&from[from_place..from_place + width]);
                    }
                }
            }
        })?
    }))
}

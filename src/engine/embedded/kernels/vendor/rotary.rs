//! RotaryEmbedding.

use crate::engine::array::Array;
use crate::engine::embedded::call::{Call, Outputs, one};
use crate::engine::embedded::kernels::real::{Real, in_real};
use crate::engine::fault::Fault;

/// Cosines and sines of positions: a row for each position, half as long as what is rotated.
pub struct Rotation<T> {
    cos: Vec<T>,
    sin: Vec<T>,
    positions: usize,
    half: usize,
    interleaved: bool,
}

impl<T: Real> Rotation<T> {
    /// From the caches.
    pub fn of(cos: &Array, sin: &Array, interleaved: bool) -> Result<Rotation<T>, Fault> {
        match *cos.dims() {
            [positions, half] if sin.dims() == cos.dims() => {
                let (cos, sin) = (T::load(cos)?.into_owned(), T::load(sin)?.into_owned());
                Ok(Rotation { cos, sin, positions, half, interleaved })
            }
            _ => Err(Fault::Invalid(format!(
                "the caches have shapes {:?} and {:?}, not positions and halves",
                cos.dims(),
                sin.dims()
            ))),
        }
    }

    /// Elements that are rotated.
    pub fn width(&self) -> usize {
        2 * self.half
    }

    /// Rotates the head of a position in place; what is behind the rotated width stays.
    pub fn rotate(&self, head: &mut [T], position: i64) -> Result<(), Fault> {
        let Some(at) = usize::try_from(position).ok().filter(|p| *p < self.positions) else {
            return Err(Fault::Invalid(format!("position {position} is not one of {}", self.positions)));
        };
        if head.len() < self.width() {
            return Err(Fault::Invalid(format!(
                "a head of {} cannot be rotated by {}",
                head.len(),
                self.width()
            )));
        }
        let (cos, sin) = (&self.cos[at * self.half..][..self.half], &self.sin[at * self.half..][..self.half]);
        for (i, (cos, sin)) in cos.iter().zip(sin).enumerate() {
            let (a, b) = if self.interleaved { (2 * i, 2 * i + 1) } else { (i, i + self.half) };
            let (x, y) = (head[a], head[b]);
            head[a] = x * *cos - y * *sin;
            head[b] = x * *sin + y * *cos;
        }
        Ok(())
    }
}

/// RotaryEmbedding (com.microsoft 1) of (batch, length, hidden) or (batch, heads, length, width).
pub fn rotary_embedding(call: &mut Call) -> Result<Outputs, Fault> {
    fn run<T: Real>(call: &mut Call) -> Result<Outputs, Fault> {
        if call.attributes.int("is_packed_batching", 0)? != 0 || call.attributes.float("scale", 1.0)? != 1.0 {
            return call.unsupported("packed batches or a scale");
        }
        let x = call.take(0)?;
        let interleaved = call.attributes.int("interleaved", 0)? != 0;
        let rotation = Rotation::<T>::of(call.input(2)?, call.input(3)?, interleaved)?;
        let (element, dims) = (x.element(), x.dims().to_vec());
        let heads = usize::try_from(call.attributes.int("num_heads", 0)?).unwrap_or_default();
        let invalid = || Fault::Invalid(format!("shape {dims:?} does not fit the caches"));
        // Heads follow one another within a position, or positions within a head.
        let (batch, length, heads, width, by_head) = match *dims {
            [b, n, s, w] => (b, s, n, w, true),
            [b, s, hidden] => {
                let width = hidden.checked_div(heads).unwrap_or(rotation.width());
                if width == 0 || hidden % width != 0 {
                    return Err(invalid());
                }
                (b, s, hidden / width, width, false)
            }
            _ => return Err(invalid()),
        };
        let ids = call.input(1)?;
        let positions = ids.integers()?;
        let position = |b: usize, s: usize| match positions.as_slice() {
            [offset] => offset + s as i64,
            many => many.get(b * length + s).copied().unwrap_or(-1),
        };
        let mut values = T::take_from(x)?;
        for (i, head) in values.chunks_mut(width.max(1)).enumerate() {
            let (b, s) = match by_head {
                true => (i / (heads * length), i % length),
                false => (i / (heads * length), i / heads % length),
            };
            rotation.rotate(head, position(b.min(batch), s))?;
        }
        one(T::array(element, &dims, values))
    }
    in_real!(call, 0, run)
}

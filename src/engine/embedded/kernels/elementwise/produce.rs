//! New arrays filled piece by piece, and arrays changed in place, on several threads when they are large.

use crate::engine::array::{Array, Element};
use crate::engine::embedded::call::Call;
use crate::engine::fault::Fault;
use rayon::prelude::*;
use std::mem::MaybeUninit;

/// Elements that are copied and changed before going on: they stay in the nearest cache.
pub const PIECE: usize = 4096;
/// Below so many elements one thread is faster.
const MANY: usize = 1 << 16;
/// Elements that one thread takes at a time.
const SHARE: usize = 1 << 15;

/// A stretch of a new array, filled from its start.
pub struct Filling<'a, T> {
    slots: &'a mut [MaybeUninit<T>],
    filled: usize,
}

impl<T: Copy> Filling<'_, T> {
    /// Elements that are still missing.
    pub fn left(&self) -> usize {
        self.slots.len() - self.filled
    }

    /// The next elements, as a copy that can be changed.
    #[inline]
    pub fn copy(&mut self, elements: &[T]) -> &mut [T] {
        let from = self.filled;
        self.filled += elements.len();
        self.slots[from..self.filled].write_copy_of_slice(elements)
    }

    /// The next elements.
    #[inline(always)]
    pub fn extend(&mut self, elements: impl ExactSizeIterator<Item = T>) {
        let from = self.filled;
        self.filled += elements.len();
        let slots = &mut self.slots[from..self.filled];
        let mut written = 0;
        for (slot, element) in slots.iter_mut().zip(elements) {
            slot.write(element);
            written += 1;
        }
        assert_eq!(written, slots.len(), "an iterator gave fewer elements than it said");
    }
}

/// Elements of a new array of shape `dims`. `fill` is given the place of a stretch and fills it wholly; which stretches
/// there are depends on the number of threads.
pub fn produce<T: Element + Copy>(
    call: &Call,
    dims: &[usize],
    fill: &(dyn Fn(usize, &mut Filling<T>) + Sync),
) -> Result<Vec<T>, Fault> {
    let mut elements = call.vec::<T>(dims)?;
    let count: usize = dims.iter().product();
    let whole = |start: usize, slots: &mut [MaybeUninit<T>]| {
        let mut filling = Filling { slots, filled: 0 };
        fill(start, &mut filling);
        assert_eq!(filling.left(), 0, "a new array was not filled");
    };
    let slots = &mut elements.spare_capacity_mut()[..count];
    if call.threads > 1 && count >= MANY {
        slots.par_chunks_mut(SHARE).enumerate().for_each(|(i, slots)| whole(i * SHARE, slots));
    } else {
        whole(0, slots);
    }
    // SAFETY: every slot was written: `Filling` counts what it writes, and each count was compared above.
    unsafe { elements.set_len(count) };
    Ok(elements)
}

/// Calls `change` for stretches of elements with their places, which together are all of them.
pub fn in_stretches<T: Send>(call: &Call, elements: &mut [T], change: &(dyn Fn(usize, &mut [T]) + Sync)) {
    if call.threads > 1 && elements.len() >= MANY {
        elements.par_chunks_mut(SHARE).enumerate().for_each(|(i, part)| change(i * SHARE, part));
    } else {
        change(0, elements);
    }
}

/// An array of the same type and shape with every element changed: in place when nobody else has the array.
pub fn map<T: Element + Copy>(
    call: &Call,
    array: Array,
    change: &(dyn Fn(&mut [T]) + Sync),
) -> Result<Array, Fault> {
    let (element, dims, storage) = array.into_parts();
    let elements = match T::alone(storage).ok_or_else(|| Fault::element(element))? {
        Ok(mut own) => {
            in_stretches(call, &mut own, &|_, part| change(part));
            own
        }
        Err(shared) => produce(call, &dims, &|start, out| {
            let end = start + out.left();
            shared[start..end].chunks(PIECE).for_each(|piece| change(out.copy(piece)));
        })?,
    };
    Ok(Array::of(element, &dims, T::store(elements)))
}

/// A new array of another type, each element from one.
pub fn convert<T: Element + Copy, U: Element + Copy>(
    call: &Call,
    array: &Array,
    f: impl Fn(T) -> U + Sync,
) -> Result<Vec<U>, Fault> {
    let from = array.view::<T>()?;
    produce(call, array.dims(), &|start, out| {
        let end = start + out.left();
        out.extend(from[start..end].iter().map(|x| f(*x)));
    })
}

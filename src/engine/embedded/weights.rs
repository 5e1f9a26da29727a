//! Constant data in the form that kernels read: made once per content, shared by all prepared models.

use super::call::{Packed, Packing};
use crate::engine::array::Array;
use crate::engine::fault::Fault;
use crate::ir::{Constant, Data};
use rustc_hash::FxHashMap;
use std::any::Any;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// A constant of a model; its array is made when it is first read.
pub struct Weight {
    pub constant: Constant,
    array: OnceLock<Result<Array, Fault>>,
    digest: OnceLock<Option<u128>>,
}

impl Weight {
    /// The array; a fault when the file's data is missing or does not fit.
    pub fn array(&self) -> Result<&Array, Fault> {
        self.array.get_or_init(|| Array::try_from(&self.constant)).as_ref().map_err(Clone::clone)
    }

    /// Bytes held, when the array was made.
    pub fn resident_bytes(&self) -> u64 {
        self.array.get().and_then(|a| a.as_ref().ok()).map_or(0, |a| a.bytes() as u64)
    }

    /// Digest of type, shape and bytes; `None` for what has no plain bytes.
    fn digest(&self) -> Option<u128> {
        *self.digest.get_or_init(|| {
            let Constant::Dense(t) = &self.constant else { return None };
            let Data::Bytes(bytes) = &t.data else { return None };
            let mut hash = xxhash_rust::xxh3::Xxh3::new();
            hash.update(&t.element.0.to_le_bytes());
            for d in &t.dims {
                hash.update(&d.to_le_bytes());
            }
            hash.update(bytes);
            Some(hash.digest128())
        })
    }
}

/// Digest of the content, and the form it is packed in.
type PackKey = (u128, &'static str, [u64; 2]);

/// A packed form while somebody holds it, and its bytes.
type PackedWeight = (Weak<dyn Any + Send + Sync>, usize);

/// Weights and their packed forms, for as long as some prepared model holds them.
#[derive(Default)]
pub struct Weights {
    /// By address of the constant's data, which each entry keeps alive.
    known: Mutex<FxHashMap<usize, Weak<Weight>>>,
    packed: Mutex<FxHashMap<PackKey, PackedWeight>>,
}

impl Weights {
    /// The weight of a constant.
    pub fn get(&self, constant: &Constant) -> Arc<Weight> {
        let address = match constant {
            Constant::Dense(t) => Arc::as_ptr(t) as usize,
            Constant::Sparse(s) => Arc::as_ptr(s) as usize,
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(weight) = known.get(&address).and_then(Weak::upgrade) {
            return weight;
        }
        // A table full of what is gone is cleared when it would grow.
        if known.len() == known.capacity() {
            known.retain(|_, w| w.strong_count() > 0);
        }
        let weight =
            Arc::new(Weight { constant: constant.clone(), array: OnceLock::new(), digest: OnceLock::new() });
        known.insert(address, Arc::downgrade(&weight));
        weight
    }

    /// The packed form of a weight; `None` when its data cannot be had.
    pub fn packed(&self, weight: &Weight, packing: Packing) -> Option<Packed> {
        let key = (weight.digest()?, packing.form.0, packing.form.1);
        {
            let packed = self.packed.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(form) = packed.get(&key).and_then(|(p, _)| p.upgrade()) {
                return Some(form);
            }
        }
        // Not by way of `weight.array()`: that copy would stay.
        let array = Array::try_from(&weight.constant).ok()?;
        let (form, bytes) = (packing.make)(&array);
        let mut packed = self.packed.lock().unwrap_or_else(PoisonError::into_inner);
        if packed.len() == packed.capacity() {
            packed.retain(|_, (p, _)| p.strong_count() > 0);
        }
        packed.insert(key, (Arc::downgrade(&form), bytes));
        Some(form)
    }

    /// Bytes of all packed forms that are in use.
    pub fn packed_bytes(&self) -> u64 {
        let packed = self.packed.lock().unwrap_or_else(PoisonError::into_inner);
        packed.values().filter(|(p, _)| p.strong_count() > 0).map(|(_, bytes)| *bytes as u64).sum()
    }
}

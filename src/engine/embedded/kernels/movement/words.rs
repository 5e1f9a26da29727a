//! Elements seen by their width alone: what only moves elements needs one copy of its code a width, not one a type.

use crate::engine::array::{Array, Storage};
use crate::engine::fault::Fault;
use bytes::Bytes;
use std::sync::Arc;

/// Something of the width of an element.
pub trait Word: Clone + Default + Send + Sync + 'static {
    /// The elements of a storage of this width.
    fn view(storage: &Storage) -> Option<&[Self]>;
    /// The elements to be changed, copied first when somebody else shares them.
    fn edit(storage: &mut Storage) -> Option<&mut [Self]>;
    /// Elements as a storage of the same variant as `like`.
    fn store(like: &Storage, words: Vec<Self>) -> Option<Storage>;

    /// The elements of an array of this width.
    fn of(array: &Array) -> Result<&[Self], Fault> {
        Self::view(array.storage()).ok_or_else(|| Fault::element(array.element()))
    }

    /// An array of the element type of `like`.
    fn array(like: &Array, dims: &[usize], words: Vec<Self>) -> Result<Array, Fault> {
        let storage = Self::store(like.storage(), words).ok_or_else(|| Fault::element(like.element()))?;
        Ok(Array::of(like.element(), dims, storage))
    }

    /// An array with its elements changed, in place when nobody else shares them.
    fn edited(array: Array, change: impl FnOnce(&mut [Self])) -> Result<Array, Fault> {
        let (element, dims, mut storage) = array.into_parts();
        change(Self::edit(&mut storage).ok_or_else(|| Fault::element(element))?);
        Ok(Array::of(element, &dims, storage))
    }
}

macro_rules! words {
    ($($word:ty: $($variant:ident)*;)*) => {
        $(impl Word for $word {
            fn view(storage: &Storage) -> Option<&[Self]> {
                match storage {
                    $(Storage::$variant(v) => Some(bytemuck::cast_slice(v)),)*
                    _ => None,
                }
            }

            fn edit(storage: &mut Storage) -> Option<&mut [Self]> {
                match storage {
                    $(Storage::$variant(v) => Some(bytemuck::cast_slice_mut(Arc::make_mut(v).as_mut_slice())),)*
                    _ => None,
                }
            }

            fn store(like: &Storage, words: Vec<Self>) -> Option<Storage> {
                match like {
                    $(Storage::$variant(_) => {
                        Some(Storage::$variant(Arc::new(bytemuck::allocation::cast_vec(words))))
                    })*
                    _ => None,
                }
            }
        })*
    };
}

words! {
    u8: U8 I8;
    u16: U16 I16 F16 BF16;
    u32: U32 I32 F32;
    u64: U64 I64 F64;
    [f32; 2]: C64;
    [f64; 2]: C128;
}

impl Word for Bytes {
    fn view(storage: &Storage) -> Option<&[Self]> {
        match storage {
            Storage::Strings(v) => Some(v),
            _ => None,
        }
    }

    fn edit(storage: &mut Storage) -> Option<&mut [Self]> {
        match storage {
            Storage::Strings(v) => Some(Arc::make_mut(v).as_mut_slice()),
            _ => None,
        }
    }

    fn store(like: &Storage, words: Vec<Self>) -> Option<Storage> {
        matches!(like, Storage::Strings(_)).then(|| Storage::Strings(Arc::new(words)))
    }
}

/// Runs an expression with `W` as the [`Word`] of an array's elements: `with_word!(array, W => expression)`.
macro_rules! with_word {
    ($array:expr, $w:ident => $body:expr) => {{
        use $crate::engine::array::Storage as S;
        match $array.storage() {
            #[allow(clippy::clone_on_copy, reason = "strings are among the elements")]
            S::U8(_) | S::I8(_) => {
                type $w = u8;
                $body
            }
            #[allow(clippy::clone_on_copy, reason = "strings are among the elements")]
            S::U16(_) | S::I16(_) | S::F16(_) | S::BF16(_) => {
                type $w = u16;
                $body
            }
            #[allow(clippy::clone_on_copy, reason = "strings are among the elements")]
            S::U32(_) | S::I32(_) | S::F32(_) => {
                type $w = u32;
                $body
            }
            #[allow(clippy::clone_on_copy, reason = "strings are among the elements")]
            S::U64(_) | S::I64(_) | S::F64(_) => {
                type $w = u64;
                $body
            }
            #[allow(clippy::clone_on_copy, reason = "strings are among the elements")]
            S::C64(_) => {
                type $w = [f32; 2];
                $body
            }
            #[allow(clippy::clone_on_copy, reason = "strings are among the elements")]
            S::C128(_) => {
                type $w = [f64; 2];
                $body
            }
            #[allow(clippy::clone_on_copy, reason = "strings are among the elements")]
            S::Strings(_) => {
                type $w = bytes::Bytes;
                $body
            }
        }
    }};
}
pub(crate) use with_word;

/// An array without elements, of the element type of `like`.
pub fn empty(like: &Array, dims: &[usize]) -> Result<Array, Fault> {
    with_word!(like, W => W::array(like, dims, Vec::new()))
}

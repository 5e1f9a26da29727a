//! What a kernel gets to see of the node it runs, and what it gives back.

use crate::engine::array::{Array, Element, Value};
use crate::engine::fault::Fault;
use crate::ir::{Attribute, AttributeValue, ElementType, Tensor};
use smallvec::{SmallVec, smallvec};
use std::any::Any;
use std::sync::Arc;

/// Results of a node, by output position; `None` for an output that is not wanted.
pub type Outputs = SmallVec<[Option<Value>; 2]>;

/// The only result of a node.
pub fn one(array: Array) -> Result<Outputs, Fault> {
    Ok(smallvec![Some(Value::Array(array))])
}

/// A weight in the form that a kernel reads fastest, made once per content.
pub type Packed = Arc<dyn Any + Send + Sync>;

/// How a kernel wants a constant input packed.
pub struct Packing {
    /// Position of the input; the kernel does not get the plain array then.
    pub input: usize,
    /// What tells two forms of the same content apart.
    pub form: (&'static str, [u64; 2]),
    pub make: MakePacked,
}

/// Makes a packed form of a constant, and says how many bytes it holds.
pub type MakePacked = Box<dyn FnOnce(&Array) -> (Packed, usize)>;

/// Code for an operator.
#[derive(Clone, Copy)]
pub struct Kernel {
    pub run: fn(&mut Call) -> Result<Outputs, Fault>,
    /// Looks at the constant inputs and says which one to pack, if any. Not asked in wide runs.
    pub pack: Option<fn(&Constants) -> Option<Packing>>,
}

impl Kernel {
    /// A kernel that takes its inputs as they are.
    pub const fn plain(run: fn(&mut Call) -> Result<Outputs, Fault>) -> Kernel {
        Kernel { run, pack: None }
    }
}

/// What is known of a node before it runs.
pub struct Constants<'a> {
    pub attributes: Attributes<'a>,
    pub opset: i64,
    /// Constant inputs by position: element type and dimensions; `None` for what only a run knows.
    pub inputs: SmallVec<[Option<ConstantType>; 4]>,
}

/// Element type and dimensions of a constant.
pub type ConstantType = (ElementType, SmallVec<[usize; 6]>);

/// Attributes of a node by name.
#[derive(Clone, Copy)]
pub struct Attributes<'a>(pub &'a [Attribute]);

impl<'a> Attributes<'a> {
    /// Value of an attribute.
    pub fn get(&self, name: &str) -> Option<&'a AttributeValue> {
        self.0.iter().find(|a| &*a.name == name).map(|a| &a.value)
    }

    /// An integer, or what the standard takes when it is not given.
    pub fn int(&self, name: &str, default: i64) -> Result<i64, Fault> {
        match self.get(name) {
            None => Ok(default),
            Some(v) => v.int().ok_or_else(|| kind(name, "an integer")),
        }
    }

    /// An integer that may be left out.
    pub fn optional_int(&self, name: &str) -> Result<Option<i64>, Fault> {
        self.get(name).map(|v| v.int().ok_or_else(|| kind(name, "an integer"))).transpose()
    }

    /// A number, or what the standard takes when it is not given.
    pub fn float(&self, name: &str, default: f32) -> Result<f32, Fault> {
        match self.get(name) {
            None => Ok(default),
            Some(v) => v.float().ok_or_else(|| kind(name, "a float")),
        }
    }

    /// A list of integers that may be left out.
    pub fn ints(&self, name: &str) -> Result<Option<&'a [i64]>, Fault> {
        self.get(name).map(|v| v.ints().ok_or_else(|| kind(name, "a list of integers"))).transpose()
    }

    /// A list of numbers that may be left out.
    pub fn floats(&self, name: &str) -> Result<Option<&'a [f32]>, Fault> {
        match self.get(name) {
            None => Ok(None),
            Some(AttributeValue::Floats(v)) => Ok(Some(v)),
            Some(_) => Err(kind(name, "a list of floats")),
        }
    }

    /// A text, or what the standard takes when it is not given.
    pub fn text(&self, name: &str, default: &'a str) -> Result<&'a str, Fault> {
        match self.get(name) {
            None => Ok(default),
            Some(v) => v.text().ok_or_else(|| kind(name, "a text")),
        }
    }

    /// A list of texts that may be left out.
    pub fn texts(&self, name: &str) -> Result<Option<&'a [bytes::Bytes]>, Fault> {
        match self.get(name) {
            None => Ok(None),
            Some(AttributeValue::Strings(v)) => Ok(Some(v)),
            Some(_) => Err(kind(name, "a list of strings")),
        }
    }

    /// A tensor that may be left out.
    pub fn tensor(&self, name: &str) -> Result<Option<&'a Tensor>, Fault> {
        match self.get(name) {
            None => Ok(None),
            Some(AttributeValue::Tensor(t)) => Ok(Some(t)),
            Some(_) => Err(kind(name, "a tensor")),
        }
    }

    /// An element type by its number, as `to` and `dtype` give it.
    pub fn element(&self, name: &str) -> Result<Option<ElementType>, Fault> {
        match self.optional_int(name)? {
            None => Ok(None),
            Some(n) => match i32::try_from(n) {
                Ok(n) if ElementType(n).known_name().is_some() => Ok(Some(ElementType(n))),
                _ => Err(Fault::Invalid(format!("attribute {name}={n} is no element type"))),
            },
        }
    }
}

fn kind(name: &str, wanted: &str) -> Fault {
    Fault::Invalid(format!("attribute {name} is not {wanted}"))
}

/// One node, about to run.
pub struct Call<'a> {
    pub op_type: &'a str,
    /// Version of the operator's domain that the model imports.
    pub opset: i64,
    pub attributes: Attributes<'a>,
    /// By position; `None` is a skipped optional input, or one that was packed. An array that nobody reads later is the
    /// kernel's alone, so that it can be changed in place.
    pub inputs: SmallVec<[Option<Value>; 4]>,
    /// Which outputs are wanted, by position.
    pub wanted: SmallVec<[bool; 2]>,
    pub packed: Option<&'a Packed>,
    /// Threads that may be used (`rayon` inside a kernel runs on as many).
    pub threads: usize,
    /// Floating-point values are all held in float64, see [`crate::engine::Settings::wide`].
    pub wide: bool,
    /// Bytes that may still be taken.
    pub room: u64,
    /// Most bytes of working space that the kernel held beside its outputs; the kernel says so.
    pub working_space: u64,
    /// Seed of random operators without a seed of their own: differs from node to node, not from run to run.
    pub seed: u64,
}

impl Call<'_> {
    /// An input that must be there, as an array.
    pub fn input(&self, index: usize) -> Result<&Array, Fault> {
        self.value(index)?.array()
    }

    /// An input that must be there.
    pub fn value(&self, index: usize) -> Result<&Value, Fault> {
        self.inputs.get(index).and_then(Option::as_ref).ok_or_else(|| missing(index))
    }

    /// An input that may be skipped.
    pub fn optional(&self, index: usize) -> Result<Option<&Array>, Fault> {
        self.inputs.get(index).and_then(Option::as_ref).map(Value::array).transpose()
    }

    /// Takes an input out, so that its elements can be changed in place when nobody else has them.
    pub fn take(&mut self, index: usize) -> Result<Array, Fault> {
        self.inputs.get_mut(index).and_then(Option::take).ok_or_else(|| missing(index))?.into_array()
    }

    /// True when an input is given.
    pub fn has(&self, index: usize) -> bool {
        self.inputs.get(index).is_some_and(Option::is_some)
    }

    /// True when an output is wanted.
    pub fn wants(&self, index: usize) -> bool {
        self.wanted.get(index).copied().unwrap_or(false)
    }

    /// The packed weight, when it is of this form.
    pub fn packed<T: Any>(&self) -> Option<&T> {
        self.packed.and_then(|p| p.downcast_ref::<T>())
    }

    /// Product of dimensions, checked against what may be taken when each element has so many bytes.
    pub fn elements(&self, dims: &[usize], bytes_each: usize) -> Result<usize, Fault> {
        let count = dims.iter().try_fold(1u64, |n, d| n.checked_mul(*d as u64));
        let needed = count.and_then(|n| n.checked_mul(bytes_each as u64));
        match (count, needed) {
            (Some(count), Some(needed)) if needed <= self.room => Ok(count as usize),
            (_, needed) => Err(Fault::TooLarge { needed: needed.unwrap_or(u64::MAX), limit: self.room }),
        }
    }

    /// An empty vector with room for the elements of `dims`, once it is known that they may be taken.
    pub fn vec<T: Element>(&self, dims: &[usize]) -> Result<Vec<T>, Fault> {
        Ok(Vec::with_capacity(self.elements(dims, size_of::<T>())?))
    }

    /// Default elements of `dims`, once it is known that they may be taken.
    pub fn zeros<T: Element>(&self, dims: &[usize]) -> Result<Vec<T>, Fault> {
        Ok(vec![T::default(); self.elements(dims, size_of::<T>())?])
    }

    /// An axis in 0…rank-1 (or up to `rank` inclusive with `rank + 1` given), from one that may count from the end.
    pub fn axis(&self, axis: i64, rank: usize) -> Result<usize, Fault> {
        let at = if axis < 0 { axis + rank as i64 } else { axis };
        if (0..rank as i64).contains(&at) {
            Ok(at as usize)
        } else {
            Err(Fault::Invalid(format!("axis {axis} is not an axis of rank {rank}")))
        }
    }

    /// That this variant has no code here.
    pub fn unsupported<T>(&self, what: impl std::fmt::Display) -> Result<T, Fault> {
        Err(Fault::Unsupported(format!("{} has no kernel for {what}", self.op_type)))
    }
}

fn missing(index: usize) -> Fault {
    Fault::Invalid(format!("input {index} is missing"))
}

//! Which scale and zero point belong to which elements: one for all, one an index of an axis, one a block.

use crate::engine::array::Array;
use crate::engine::embedded::call::Call;
use crate::engine::fault::Fault;
use std::ops::Range;

/// Where the scale of an element is found: the elements seen as outer × axis × inner.
pub struct Granularity {
    outer: usize,
    axis: usize,
    inner: usize,
    form: Form,
    /// Number of scales.
    pub count: usize,
}

enum Form {
    Whole,
    Axis,
    /// So many elements along the axis share a scale; the last block may be short.
    Block(usize),
}

/// Scales of a run of consecutive elements.
pub enum Parameters {
    /// One for the whole run.
    One(usize),
    /// One for each element, from this on.
    From(usize),
}

impl Granularity {
    /// Told from the shapes of data and scale and the attributes `axis` and `block_size` (QuantizeLinear-25).
    pub fn of(call: &Call, data: &Array, scale: &Array) -> Result<Granularity, Fault> {
        let dims = data.dims();
        let whole = Granularity { outer: 1, axis: 1, inner: data.len(), form: Form::Whole, count: 1 };
        if scale.rank() <= 1 && scale.len() == 1 {
            return Ok(whole);
        }
        let axis = call.axis(call.attributes.int("axis", 1)?, data.rank())?;
        let outer = dims[..axis].iter().product();
        let inner = dims[axis + 1..].iter().product();
        let block = call.attributes.int("block_size", 0)?;
        let form = match usize::try_from(block) {
            Ok(0) if scale.dims() == [dims[axis]] => Form::Axis,
            Ok(block) if block > 0 => {
                let mut expected = dims.to_vec();
                expected[axis] = dims[axis].div_ceil(block);
                if scale.dims() != expected {
                    return Err(Fault::Invalid(format!(
                        "the scale has shape {:?} where blocks of {block} along axis {axis} of {dims:?} need {expected:?}",
                        scale.dims()
                    )));
                }
                Form::Block(block)
            }
            _ => {
                return Err(Fault::Invalid(format!(
                    "the scale has shape {:?}, which fits neither axis {axis} of {dims:?} nor blocks of {block}",
                    scale.dims()
                )));
            }
        };
        Ok(Granularity { outer, axis: dims[axis], inner, form, count: scale.len() })
    }

    /// Calls with each run of elements and its scales, in order.
    pub fn runs(&self, mut each: impl FnMut(Range<usize>, Parameters)) {
        let (axis, inner) = (self.axis, self.inner);
        if inner == 0 {
            return;
        }
        match self.form {
            Form::Whole => each(0..inner, Parameters::One(0)),
            Form::Axis if inner == 1 => {
                for o in 0..self.outer {
                    each(o * axis..(o + 1) * axis, Parameters::From(0));
                }
            }
            Form::Axis => {
                for row in 0..self.outer * axis {
                    each(row * inner..(row + 1) * inner, Parameters::One(row % axis));
                }
            }
            Form::Block(block) if inner == 1 => {
                let blocks = axis.div_ceil(block);
                for o in 0..self.outer {
                    for b in 0..blocks {
                        let start = o * axis + b * block;
                        let end = (start + block).min((o + 1) * axis);
                        each(start..end, Parameters::One(o * blocks + b));
                    }
                }
            }
            Form::Block(block) => {
                let blocks = axis.div_ceil(block);
                for o in 0..self.outer {
                    for i in 0..axis {
                        let row = o * axis + i;
                        let from = (o * blocks + i / block) * inner;
                        each(row * inner..(row + 1) * inner, Parameters::From(from));
                    }
                }
            }
        }
    }
}

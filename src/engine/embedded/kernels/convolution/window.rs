//! A window that slides over up to three spatial axes: sizes, steps and padding of convolutions and pools.

use crate::engine::Fault;
use crate::engine::embedded::call::Attributes;

/// Sizes along depth, height and width; axes that are not there come first and have size 1.
pub type Space = [usize; 3];

/// Largest size, step or padding that is taken from a file, so that sums and products of two cannot overflow.
const LARGEST: i64 = 1 << 31;

/// Where a window stands on its input.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    pub input: Space,
    pub kernel: Space,
    pub strides: Space,
    pub dilations: Space,
    pub begin: Space,
    pub end: Space,
    pub output: Space,
    /// How many of the three axes are there.
    pub rank: usize,
}

/// Whether a window that reaches over the end counts.
#[derive(Clone, Copy, PartialEq)]
pub enum Rounding {
    Down,
    Up,
}

impl Window {
    /// From the attributes `strides`, `dilations`, `pads` and `auto_pad` of convolutions and pools.
    pub fn new(
        attributes: &Attributes,
        input: &[usize],
        kernel: &[usize],
        rounding: Rounding,
    ) -> Result<Window, Fault> {
        let mut window = Window::before_output(attributes, input, kernel)?;
        let same = match attributes.text("auto_pad", "NOTSET")? {
            "NOTSET" | "" => None,
            "VALID" => {
                (window.begin, window.end) = ([0; 3], [0; 3]);
                None
            }
            "SAME_UPPER" => Some(false),
            "SAME_LOWER" => Some(true),
            other => return Err(Fault::Invalid(format!("auto_pad={other} is not known"))),
        };
        for axis in 0..3 {
            let (size, stride) = (window.input[axis], window.strides[axis]);
            let reach = window.reach(axis);
            if let Some(lower) = same {
                let output = size.div_ceil(stride);
                let padding = (output.saturating_sub(1) * stride + reach).saturating_sub(size);
                let smaller = padding / 2;
                (window.begin[axis], window.end[axis]) =
                    if lower { (padding - smaller, smaller) } else { (smaller, padding - smaller) };
                window.output[axis] = output;
                continue;
            }
            let padded = size + window.begin[axis] + window.end[axis];
            let Some(free) = padded.checked_sub(reach) else {
                return Err(Fault::Invalid(format!(
                    "a window of {reach} does not fit {size} elements with padding {} and {}",
                    window.begin[axis], window.end[axis]
                )));
            };
            let mut output = match rounding {
                Rounding::Down => free / stride + 1,
                Rounding::Up => free.div_ceil(stride) + 1,
            };
            // A window that would start in the padding at the end is left out.
            if rounding == Rounding::Up && (output - 1) * stride >= size + window.begin[axis] && output > 1 {
                output -= 1;
            }
            window.output[axis] = output;
        }
        Ok(window)
    }

    /// Everything but the output's sizes and what `auto_pad` makes of the padding.
    pub fn before_output(
        attributes: &Attributes,
        input: &[usize],
        kernel: &[usize],
    ) -> Result<Window, Fault> {
        let rank = input.len();
        if rank == 0 {
            return Err(Fault::Invalid("its input has no spatial axes".into()));
        }
        if rank > 3 {
            return Err(Fault::Unsupported(format!("there is no kernel for {rank} spatial axes")));
        }
        if let Some(declared) = attributes.ints("kernel_shape")? {
            let same = declared.len() == kernel.len()
                && declared.iter().zip(kernel).all(|(d, k)| usize::try_from(*d) == Ok(*k));
            if !same {
                return Err(Fault::Invalid(format!(
                    "kernel_shape={declared:?} where the window is {kernel:?}"
                )));
            }
        }
        if kernel.len() != rank {
            return Err(Fault::Invalid(format!("a window {kernel:?} on {rank} spatial axes")));
        }
        let sizes = |dims: &[usize], what: &str| -> Result<Space, Fault> {
            if dims.iter().any(|d| *d as u64 > LARGEST as u64) {
                return Err(Fault::Invalid(format!("{what} {dims:?} is too large")));
            }
            let mut space = [1; 3];
            space[3 - rank..].copy_from_slice(dims);
            Ok(space)
        };
        if kernel.contains(&0) {
            return Err(Fault::Invalid(format!("a window {kernel:?} is empty")));
        }
        let list = |name: &str, least: i64, missing: usize, count: usize| -> Result<Vec<usize>, Fault> {
            match attributes.ints(name)? {
                None => Ok(vec![missing; count]),
                Some([]) if name != "kernel_shape" => Ok(vec![missing; count]),
                Some(v) if v.len() == count && v.iter().all(|v| (least..=LARGEST).contains(v)) => {
                    Ok(v.iter().map(|v| *v as usize).collect())
                }
                Some(v) => {
                    Err(Fault::Invalid(format!("{name}={v:?} is not {count} integers from {least} on")))
                }
            }
        };
        let pads = list("pads", 0, 0, 2 * rank)?;
        let mut window = Window {
            input: sizes(input, "the input")?,
            kernel: sizes(kernel, "the window")?,
            strides: sizes(&list("strides", 1, 1, rank)?, "strides")?,
            dilations: sizes(&list("dilations", 1, 1, rank)?, "dilations")?,
            begin: [0; 3],
            end: [0; 3],
            output: [1; 3],
            rank,
        };
        window.begin[3 - rank..].copy_from_slice(&pads[..rank]);
        window.end[3 - rank..].copy_from_slice(&pads[rank..]);
        Ok(window)
    }

    /// Elements from the first to the last that a window touches along an axis.
    pub fn reach(&self, axis: usize) -> usize {
        (self.kernel[axis] - 1) * self.dilations[axis] + 1
    }

    /// Sizes of the output along the axes that are there.
    pub fn output_dims(&self) -> &[usize] {
        &self.output[3 - self.rank..]
    }

    /// Elements of one plane of the input.
    pub fn input_count(&self) -> usize {
        self.input.iter().product()
    }

    /// Elements of one plane of the output.
    pub fn output_count(&self) -> usize {
        self.output.iter().product()
    }

    /// Elements of the window.
    pub fn taps(&self) -> usize {
        self.kernel.iter().product()
    }

    /// True when every output element stands on exactly its own input element.
    pub fn is_pointwise(&self) -> bool {
        self.kernel == [1; 3] && self.strides == [1; 3] && self.begin == [0; 3] && self.end == [0; 3]
    }

    /// Where a tap of the window falls on the input when the window stands at an output place; `None` in the padding.
    #[inline]
    pub fn place(&self, axis: usize, output: usize, tap: usize) -> Option<usize> {
        (output * self.strides[axis] + tap * self.dilations[axis])
            .checked_sub(self.begin[axis])
            .filter(|place| *place < self.input[axis])
    }
}

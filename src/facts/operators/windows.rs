//! How many places a sliding window takes: shared by convolution and pooling.

use crate::facts::dims;
use crate::facts::view::Operator;
use crate::ir::{Dim, Expr};

/// Attributes of an operator with a sliding window, one entry a spatial axis.
pub(super) struct Windows {
    pub kernel: Vec<i64>,
    pub strides: Vec<i64>,
    pub dilations: Vec<i64>,
    pub begin: Vec<i64>,
    pub end: Vec<i64>,
    pub auto: Auto,
    pub ceil: bool,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Auto {
    Explicit,
    Same,
    Valid,
}

impl Windows {
    /// Reads the attributes; the kernel is given where it is not an attribute.
    pub fn of(op: &Operator, kernel: Option<Vec<i64>>) -> Option<Windows> {
        let kernel = match op.list("kernel_shape")? {
            Some(k) if !k.is_empty() => k.to_vec(),
            _ => kernel?,
        };
        let axes = kernel.len();
        let list = |name: &str, length: usize, default: i64| match op.list(name)? {
            Some(given) if given.len() == length => Some(given.to_vec()),
            // An empty list is as none.
            None | Some([]) => Some(vec![default; length]),
            Some(_) => None,
        };
        let pads = list("pads", axes.checked_mul(2)?, 0)?;
        let auto = match op.text("auto_pad", "NOTSET")? {
            "NOTSET" | "" => Auto::Explicit,
            "SAME_UPPER" | "SAME_LOWER" => Auto::Same,
            "VALID" => Auto::Valid,
            _ => return None,
        };
        let (begin, end) = if auto == Auto::Explicit { pads.split_at(axes) } else { (&[][..], &[][..]) };
        let pad = |p: &[i64]| if p.is_empty() { vec![0; axes] } else { p.to_vec() };
        let w = Windows {
            strides: list("strides", axes, 1)?,
            dilations: list("dilations", axes, 1)?,
            begin: pad(begin),
            end: pad(end),
            ceil: op.int("ceil_mode", 0)? != 0,
            kernel,
            auto,
        };
        let positive = |l: &[i64]| l.iter().all(|n| *n > 0);
        (positive(&w.strides) && positive(&w.dilations)).then_some(w)
    }

    /// Elements that one window spans along an axis, holes included.
    pub fn span(&self, axis: usize) -> Option<i64> {
        self.kernel.get(axis)?.checked_sub(1)?.checked_mul(*self.dilations.get(axis)?)?.checked_add(1)
    }

    /// Number of windows along a spatial axis.
    pub fn count(&self, axis: usize, input: &Dim) -> Dim {
        self.try_count(axis, input).unwrap_or(Dim::Unknown)
    }

    fn try_count(&self, axis: usize, input: &Dim) -> Option<Dim> {
        let input = input.expr()?;
        let (stride, span) = (*self.strides.get(axis)?, self.span(axis)?);
        let by = Expr::constant(stride);
        let plus = |e: &Expr, n: i64| e.add(&Expr::constant(n));
        if self.auto == Auto::Same {
            return Some(dims::of(plus(&input, stride - 1)?.floor_div(&by)));
        }
        let (begin, end) = (*self.begin.get(axis)?, *self.end.get(axis)?);
        let room = plus(&input, begin.checked_add(end)?.checked_sub(span)?)?;
        if room.as_constant().is_some_and(|n| n < 0) {
            return None;
        }
        let floor = plus(&room.floor_div(&by)?, 1)?;
        if !self.ceil {
            return Some(dims::of(Some(floor)));
        }
        let ceil = plus(&plus(&room, stride - 1)?.floor_div(&by)?, 1)?;
        // A window that would start in the padding after the input does not count; runtimes came to agree on that only
        // late, so a size where it matters stays unknown.
        let certain = match (room.as_constant(), ceil.as_constant()) {
            (Some(room), Some(count)) => {
                let last = count.checked_sub(1)?.checked_mul(stride)?;
                last < room.checked_add(span)?.checked_sub(end)?
            }
            _ => stride.checked_add(end)? <= span,
        };
        certain.then(|| dims::of(Some(ceil)))
    }
}

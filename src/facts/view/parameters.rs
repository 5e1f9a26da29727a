//! Parameters of operators that moved between attributes and inputs, or whose defaults changed, over the operator sets.

use super::operator::Operator;
use crate::facts::dims;
use crate::ir::{Dim, Expr, Shape, ValueId};

/// A bound of Clip.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Bound {
    /// No bound on this side.
    Open,
    /// A number (before operator set 11).
    Number(f32),
    /// A scalar input (from 11 on).
    Input(ValueId),
}

/// Both bounds of Clip. With `min` above `max` the result is `max` everywhere.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ClipBounds {
    pub min: Bound,
    pub max: Bound,
}

/// What Pad fills with.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Fill {
    /// Zero of the element type (for strings, the empty one).
    Zero,
    /// A number (before operator set 11).
    Number(f32),
    /// A scalar input (from 11 on).
    Input(ValueId),
}

/// Pad, spread over all axes; negative numbers crop.
#[derive(Clone, PartialEq, Debug)]
pub struct PadForm {
    /// Elements before the first, one an axis.
    pub begin: Vec<Option<Expr>>,
    /// Elements after the last, one an axis.
    pub end: Vec<Option<Expr>>,
    /// `constant`, `reflect`, `edge` or `wrap`.
    pub mode: String,
    pub fill: Fill,
}

impl PadForm {
    /// Begins and ends when all are numbers.
    pub fn numbers(&self) -> Option<(Vec<i64>, Vec<i64>)> {
        let all = |list: &[Option<Expr>]| {
            list.iter().map(|e| e.as_ref()?.as_constant()).collect::<Option<Vec<_>>>()
        };
        Some((all(&self.begin)?, all(&self.end)?))
    }
}

/// Slice: the lists run in parallel. Starts and ends as given: negative ones count from the end, out of range is clamped.
#[derive(Clone, PartialEq, Debug)]
pub struct SliceForm {
    pub starts: Vec<Option<Expr>>,
    pub ends: Vec<Option<Expr>>,
    pub axes: Vec<usize>,
    pub steps: Vec<Option<i64>>,
}

/// Dropout.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DropoutForm {
    /// `None` when it is computed at run time.
    pub ratio: Option<f32>,
    /// True when elements are dropped at run time; `None` when that is decided there.
    pub training: Option<bool>,
}

/// BatchNormalization.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BatchNormForm {
    /// Uses the given mean and variance, and gives nothing but the normalized tensor.
    pub inference: bool,
    /// Statistics per channel (axis 1); false (possible before operator set 9) is one per position of axes 1 and on.
    pub spatial: bool,
    pub epsilon: f32,
}

/// Operators that reduce over `axes`.
pub(crate) fn is_reduction(op: &str) -> bool {
    op.starts_with("Reduce")
}

impl Operator<'_> {
    /// Axes of Squeeze, Unsqueeze, a reduction or MeanVarianceNormalization, ascending and not negative; of an operator
    /// with one axis, that one. `None` when they are not known, or negative while the rank is not known.
    ///
    /// Squeeze without axes needs fixed dimensions; a reduction without axes gives all of them, or none with
    /// `noop_with_empty_axes`. Unsqueeze's axes are those of its result.
    pub fn axes(&self) -> Option<Vec<i64>> {
        let op = self.op_type();
        if op == "MeanVarianceNormalization" {
            let axes = self.list("axes")?.unwrap_or(&[0, 2, 3]).to_vec();
            return dims::normalized(&axes, self.rank(0));
        }
        let since = match op {
            "Squeeze" | "Unsqueeze" | "ReduceSum" => 13,
            _ if is_reduction(op) => 18,
            _ => return Some(vec![self.axis()? as i64]),
        };
        let given: Option<Vec<i64>> = if self.opset < since {
            self.list("axes")?.map(<[i64]>::to_vec)
        } else if self.has(1) {
            Some(self.numbers(1)?)
        } else {
            None
        };
        match (op, given) {
            ("Unsqueeze", Some(axes)) => {
                let count = axes.len();
                let axes = dims::normalized(&axes, self.rank(0).map(|r| r + count))?;
                (axes.len() == count).then_some(axes)
            }
            ("Unsqueeze", None) => None,
            // An empty list is read as "none" by some runtimes and as "all of size 1" by others.
            ("Squeeze", Some(axes)) if axes.is_empty() => None,
            ("Squeeze", None) => {
                let shape = self.ty(0).fixed_shape()?;
                Some((0..).zip(shape).filter(|(_, n)| *n == 1).map(|(i, _)| i).collect())
            }
            (_, Some(axes)) if !axes.is_empty() => dims::normalized(&axes, self.rank(0)),
            _ if self.opset >= since && self.int("noop_with_empty_axes", 0)? != 0 => Some(Vec::new()),
            _ => Some((0..self.rank(0)? as i64).collect()),
        }
    }

    /// The axis of an operator that has one, not negative. Softmax and its kin before operator set 13, and Flatten,
    /// treat everything from it on as one.
    pub fn axis(&self) -> Option<usize> {
        let (default, rank) = match self.op_type() {
            "Softmax" | "LogSoftmax" | "Hardmax" if self.opset < 13 => (Some(1), self.rank(0)),
            "Softmax" | "LogSoftmax" | "Hardmax" => (Some(-1), self.rank(0)),
            "Concat" => (if self.opset < 4 { Some(1) } else { None }, self.any_rank()),
            "Flatten" => (Some(1), self.rank(0).map(|r| r + 1)),
            "Gather" | "GatherElements" | "ScatterElements" | "Scatter" | "Split" | "ArgMax" | "ArgMin"
            | "SplitToSequence" => (Some(0), self.rank(0)),
            "LayerNormalization" | "RMSNormalization" | "TopK" | "LpNormalization" => {
                (Some(-1), self.rank(0))
            }
            "OneHot" => (Some(-1), self.rank(0).map(|r| r + 1)),
            "QuantizeLinear" | "DequantizeLinear" => (Some(1), self.rank(0)),
            "TensorScatter" => (Some(-2), self.rank(0)),
            "Compress" | "Unique" => (None, self.rank(0)),
            _ => return None,
        };
        let axis = match (self.node.attribute("axis"), default) {
            (Some(v), _) => v.int()?,
            (None, d) => d?,
        };
        if self.op_type() == "Flatten" && axis < 0 {
            // The highest axis of Flatten is the rank itself, but -1 still means the last dimension.
            return usize::try_from(axis.checked_add(self.rank(0)? as i64)?).ok();
        }
        dims::axis(axis, rank)
    }

    fn any_rank(&self) -> Option<usize> {
        (0..self.node.inputs.len()).find_map(|i| self.rank(i))
    }

    /// Permutation of Transpose: result axis i is input axis `perm[i]`. Without the attribute, reversed.
    pub fn perm(&self) -> Option<Vec<usize>> {
        if self.op_type() != "Transpose" {
            return None;
        }
        let rank = self.rank(0);
        let Some(perm) = self.list("perm")? else { return Some((0..rank?).rev().collect()) };
        let perm: Vec<usize> = perm.iter().map(|p| usize::try_from(*p).ok()).collect::<Option<_>>()?;
        let mut sorted = perm.clone();
        sorted.sort_unstable();
        let sound = sorted.iter().copied().eq(0..perm.len()) && rank.is_none_or(|r| r == perm.len());
        sound.then_some(perm)
    }

    /// Bounds of Clip.
    pub fn clip(&self) -> Option<ClipBounds> {
        if self.op_type() != "Clip" {
            return None;
        }
        let attribute = |name| match self.node.attribute(name) {
            None => Some(Bound::Open),
            Some(v) => v.float().map(Bound::Number),
        };
        if self.opset < 11 {
            return Some(ClipBounds { min: attribute("min")?, max: attribute("max")? });
        }
        let input = |i| self.node.input(i).map_or(Bound::Open, Bound::Input);
        Some(ClipBounds { min: input(1), max: input(2) })
    }

    /// Pad over all axes. `None` when the number of pads, or the rank when only some axes are given, is not known.
    pub fn pad(&self) -> Option<PadForm> {
        if self.op_type() != "Pad" {
            return None;
        }
        let mode = self.text("mode", "constant")?.to_owned();
        let number = |n: &i64| Some(Expr::constant(*n));
        let (pads, fill): (Vec<Option<Expr>>, Fill) = if self.opset < 11 {
            let name = if self.opset < 2 { "paddings" } else { "pads" };
            let value = self.float("value", 0.0)?;
            let fill = if value.to_bits() == 0 { Fill::Zero } else { Fill::Number(value) };
            (self.list(name)??.iter().map(number).collect(), fill)
        } else {
            (self.ints(1)?, self.node.input(2).map_or(Fill::Zero, Fill::Input))
        };
        let half = pads.len() / 2;
        let (begin, end) = (pads.get(..half)?.to_vec(), pads.get(half..)?.to_vec());
        if begin.len() != end.len() {
            return None;
        }
        if self.opset < 18 || !self.has(3) {
            return self.rank(0).is_none_or(|r| r == half).then_some(PadForm { begin, end, mode, fill });
        }
        let rank = self.rank(0)?;
        let zeros = vec![Some(Expr::constant(0)); rank];
        let mut form = PadForm { begin: zeros.clone(), end: zeros, mode, fill };
        let axes = self.numbers(3)?;
        if axes.len() != half {
            return None;
        }
        for ((axis, b), e) in axes.iter().zip(begin).zip(end) {
            let axis = dims::axis(*axis, Some(rank))?;
            *form.begin.get_mut(axis)? = b;
            *form.end.get_mut(axis)? = e;
        }
        Some(form)
    }

    /// Starts, ends, axes and steps of Slice. `None` when their number or the axes are not known.
    pub fn slice(&self) -> Option<SliceForm> {
        if self.op_type() != "Slice" {
            return None;
        }
        let number = |n: &i64| Some(Expr::constant(*n));
        let constants = |list: &[i64]| list.iter().map(number).collect::<Vec<_>>();
        let (starts, ends, axes, steps);
        if self.opset < 10 {
            starts = constants(self.list("starts")??);
            ends = constants(self.list("ends")??);
            axes = self.list("axes")?.map(<[i64]>::to_vec);
            steps = None;
        } else {
            let length = |i: usize| self.shape(i).filter(|s| s.len() == 1).and_then(|s| s.first()?.fixed());
            let unknown = |i: usize| Some(vec![None; usize::try_from(length(i)?).ok().filter(|n| *n <= 64)?]);
            starts = self.ints(1).or_else(|| unknown(1))?;
            ends = self.ints(2).or_else(|| unknown(2))?;
            axes = if self.has(3) { Some(self.numbers(3)?) } else { None };
            steps = if self.has(4) { Some(self.ints(4).or_else(|| unknown(4))?) } else { None };
        }
        let count = starts.len();
        let rank = self.rank(0);
        let axes: Vec<usize> = match axes {
            None => (0..count).collect(),
            Some(axes) => axes.iter().map(|a| dims::axis(*a, rank)).collect::<Option<_>>()?,
        };
        let steps: Vec<Option<i64>> = match steps {
            None => vec![Some(1); count],
            Some(steps) => steps.iter().map(|s| s.as_ref()?.as_constant()).collect(),
        };
        let parallel = ends.len() == count && axes.len() == count && steps.len() == count;
        parallel.then_some(SliceForm { starts, ends, axes, steps })
    }

    /// Sizes of Split's results along its axis, one an output; `None` when they are not known at all.
    pub fn split(&self) -> Option<Vec<Dim>> {
        if self.op_type() != "Split" {
            return None;
        }
        let outputs = self.node.outputs.len();
        let given: Option<Vec<Option<Expr>>> = if self.opset < 13 {
            match self.list("split")? {
                Some(list) => Some(list.iter().map(|n| Some(Expr::constant(*n))).collect()),
                // Operator set 1 could also have them as an input.
                None if self.has(1) => Some(self.ints(1)?),
                None => None,
            }
        } else if self.has(1) {
            Some(self.ints(1)?)
        } else {
            None
        };
        if let Some(sizes) = given {
            let sizes: Vec<Dim> = sizes.into_iter().map(|e| e.map_or(Dim::Unknown, Dim::from_expr)).collect();
            return (sizes.len() == outputs).then_some(sizes);
        }
        let whole = self.dim(0, self.axis()?);
        let parts = match self.opset {
            18.. => self.int("num_outputs", outputs as i64)?,
            _ => outputs as i64,
        };
        if parts <= 0 || parts as usize != outputs {
            return None;
        }
        Some(dims::even_parts(&whole, parts, self.opset >= 18))
    }

    /// Ratio of Dropout and whether it drops at all.
    pub fn dropout(&self) -> Option<DropoutForm> {
        if self.op_type() != "Dropout" {
            return None;
        }
        if self.opset < 12 {
            let ratio = Some(self.float("ratio", 0.5)?);
            // `is_test` came to an end with operator set 7, which defines the operator for inference.
            let training = self.opset < 7 && self.int("is_test", 0)? == 0;
            return Some(DropoutForm { ratio, training: Some(training) });
        }
        let ratio = match self.node.input(1) {
            None => Some(0.5),
            Some(v) => super::constant(self.model, v)
                .and_then(|t| t.approximate())
                .and_then(|r| r.first().map(|r| *r as f32)),
        };
        let training = match self.node.input(2) {
            None => Some(false),
            Some(_) => self.number(2).map(|t| t != 0),
        };
        Some(DropoutForm { ratio, training })
    }

    /// Mode of BatchNormalization.
    pub fn batch_norm(&self) -> Option<BatchNormForm> {
        if self.op_type() != "BatchNormalization" {
            return None;
        }
        let more_outputs = self.node.outputs.iter().skip(1).any(Option::is_some);
        let training = match self.opset {
            ..7 => self.int("is_test", 0)? == 0,
            7..14 => false,
            _ => self.int("training_mode", 0)? != 0,
        };
        let spatial = self.opset >= 9 || self.int("spatial", 1)? != 0;
        let epsilon = self.float("epsilon", 1e-5)?;
        Some(BatchNormForm { inference: !training && !more_outputs, spatial, epsilon })
    }

    /// Shape that Reshape gives, with 0 and -1 resolved as far as is known; `None` when not even its rank is.
    pub fn reshape_target(&self) -> Option<Shape> {
        if self.op_type() != "Reshape" {
            return None;
        }
        let target: Vec<Option<Expr>> = if self.opset < 5 {
            self.list("shape")??.iter().map(|n| Some(Expr::constant(*n))).collect()
        } else {
            match self.ints(1) {
                Some(target) => target,
                None => {
                    let rank = self.shape(1).filter(|s| s.len() == 1)?.first()?.fixed()?;
                    return (rank <= 64).then(|| (0..rank).map(|_| Dim::Unknown).collect());
                }
            }
        };
        let allow_zero = self.opset >= 14 && self.int("allowzero", 0)? != 0;
        Some(dims::reshaped(self.shape(0).map(|s| s.as_slice()), &target, allow_zero))
    }

    /// Shapes of all inputs of a broadcasting operator, filled up with ones to the rank of the result.
    /// Before operator set 7 the second input is placed at `axis`.
    pub fn aligned(&self) -> Option<Vec<Shape>> {
        let shapes: Vec<&Shape> =
            (0..self.node.inputs.len()).map(|i| self.shape(i)).collect::<Option<_>>()?;
        let rank = shapes.iter().map(|s| s.len()).max()?;
        if self.opset < 7 && shapes.len() == 2 && self.int("broadcast", 0)? != 0 {
            let (a, b) = (shapes.first()?, shapes.get(1)?);
            let at = match self.node.attribute("axis") {
                Some(v) => dims::axis(v.int()?, Some(a.len()))?,
                None => a.len().checked_sub(b.len())?,
            };
            let after = a.len().checked_sub(at.checked_add(b.len())?)?;
            let ones = |n: usize| std::iter::repeat_n(Dim::Fixed(1), n);
            return Some(vec![(*a).clone(), ones(at).chain(b.iter().cloned()).chain(ones(after)).collect()]);
        }
        let fill =
            |s: &Shape| std::iter::repeat_n(Dim::Fixed(1), rank - s.len()).chain(s.iter().cloned()).collect();
        Some(shapes.into_iter().map(fill).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{axes, clip, dropout, perm, split};
    use super::*;
    use crate::facts::Facts;
    use crate::ir::{Builder, ElementType, Model, NodeId, Tensor};

    fn last(build: impl FnOnce(&mut Builder, ValueId) -> ValueId, opset: i64) -> (Model, NodeId) {
        let mut b = Builder::new("view", opset);
        let x = b.input("x", ElementType::FLOAT, &["n".into(), 4.into(), 6.into()]);
        let y = build(&mut b, x);
        b.output(y);
        let model = b.finish().unwrap();
        let id = model.nodes_of(model.main()).next_back().unwrap().0;
        (model, id)
    }

    #[test]
    fn axes_are_found_in_either_place_and_counted_from_the_front() {
        let (m, n) = last(|b, x| b.op("ReduceMean", &[x]).attr("axes", [-1i64]).one(), 13);
        assert_eq!(axes(&m, &Facts::infer(&m), m.node(n)), Some(vec![2]));
        let with_input = |b: &mut Builder, x| {
            let a = b.constant("a", Tensor::ints(&[-1, 0]));
            b.op("ReduceMean", &[x, a]).one()
        };
        let (m, n) = last(with_input, 18);
        assert_eq!(axes(&m, &Facts::infer(&m), m.node(n)), Some(vec![0, 2]));
        let (m, n) = last(|b, x| b.op("ReduceSum", &[x]).attr("noop_with_empty_axes", 1i64).one(), 13);
        assert_eq!(axes(&m, &Facts::infer(&m), m.node(n)), Some(vec![]));
        let (m, n) = last(|b, x| b.op("Softmax", &[x]).one(), 11);
        assert_eq!(axes(&m, &Facts::infer(&m), m.node(n)), Some(vec![1]));
        let (m, n) = last(|b, x| b.op("Unsqueeze", &[x]).attr("axes", [-1i64, 0]).one(), 11);
        assert_eq!(axes(&m, &Facts::infer(&m), m.node(n)), Some(vec![0, 4]));
        let (m, n) = last(|b, x| b.op("Squeeze", &[x]).one(), 11);
        assert_eq!(axes(&m, &Facts::infer(&m), m.node(n)), None);
    }

    #[test]
    fn bounds_pads_and_parts() {
        let (m, n) = last(|b, x| b.op("Clip", &[x]).attr("max", 6.0f32).one(), 6);
        let bounds = clip(&m, &Facts::infer(&m), m.node(n)).unwrap();
        assert_eq!(bounds, ClipBounds { min: Bound::Open, max: Bound::Number(6.0) });
        let (m, n) = last(|b, x| b.op("Transpose", &[x]).one(), 13);
        assert_eq!(perm(&m, &Facts::infer(&m), m.node(n)), Some(vec![2, 1, 0]));
        let (m, n) = last(|b, x| b.op("Split", &[x]).attr("axis", -1i64).outputs(3)[0], 13);
        assert_eq!(split(&m, &Facts::infer(&m), m.node(n)), Some(vec![Dim::Fixed(2); 3]));
        let (m, n) = last(|b, x| b.op("Dropout", &[x]).one(), 10);
        let form = dropout(&m, &Facts::infer(&m), m.node(n)).unwrap();
        assert_eq!(form, DropoutForm { ratio: Some(0.5), training: Some(false) });
        let with_axes = |b: &mut Builder, x| {
            let pads = b.constant("pads", Tensor::ints(&[1, 2]));
            let axes = b.constant("axes", Tensor::ints(&[-1]));
            b.op("Pad", &[x, pads]).skip_then(1, axes).one()
        };
        let (m, n) = last(with_axes, 18);
        let form = super::super::pads(&m, &Facts::infer(&m), m.node(n)).unwrap();
        assert_eq!(form.numbers(), Some((vec![0, 0, 1], vec![0, 0, 2])));
        assert_eq!(form.fill, Fill::Zero);
    }
}

//! What all recurrent layers share: shapes, layouts, directions, sequences of different lengths.

use super::super::real::Real;
use crate::engine::Fault;
use crate::engine::array::Array;
use crate::engine::embedded::call::{Call, Outputs};
use crate::engine::embedded::products::Matrix;
use smallvec::smallvec;
use std::borrow::Cow;

/// Shapes and inputs of a layer with so many gates.
pub struct Layer<'a, T: Real> {
    pub steps: usize,
    pub batch: usize,
    pub inputs: usize,
    pub hidden: usize,
    /// True for each direction that runs backwards.
    pub reverse: &'static [bool],
    gates: usize,
    /// Batch comes before time.
    batch_first: bool,
    lengths: Vec<usize>,
    x: Cow<'a, [T]>,
    w: Cow<'a, [T]>,
    r: Cow<'a, [T]>,
    b: Option<Cow<'a, [T]>>,
    clip: Option<T>,
}

/// The weights of one direction.
pub struct Weights<'a, T> {
    /// hidden × (gates · hidden), transposed.
    pub recurrence: Matrix<'a, T>,
    /// What is added to the state's part of each gate.
    pub recurrence_bias: Vec<T>,
    /// X·W + bias of every step and every batch entry.
    projected: Vec<T>,
}

impl<'a, T: Real> Layer<'a, T> {
    /// Reads and checks what does not depend on the kind of cell.
    pub fn of(call: &'a Call, gates: usize) -> Result<Layer<'a, T>, Fault> {
        let batch_first = match call.attributes.int("layout", 0)? {
            0 => false,
            1 => true,
            other => return Err(Fault::Invalid(format!("layout={other} is neither 0 nor 1"))),
        };
        let reverse: &[bool] = match call.attributes.text("direction", "forward")? {
            "forward" => &[false],
            "reverse" => &[true],
            "bidirectional" => &[false, true],
            other => return Err(Fault::Invalid(format!("direction={other} is not known"))),
        };
        let (x, w, r) = (call.input(0)?, call.input(1)?, call.input(2)?);
        let (&[first, second, inputs], &[_, _, hidden]) = (x.dims(), r.dims()) else {
            return Err(Fault::Invalid(format!(
                "shapes {:?} and {:?} where three axes are needed",
                x.dims(),
                r.dims()
            )));
        };
        let (steps, batch) = if batch_first { (second, first) } else { (first, second) };
        let rows = gates * hidden;
        let directions = reverse.len();
        expect(w, "W", &[directions, rows, inputs])?;
        expect(r, "R", &[directions, rows, hidden])?;
        if let Some(declared) = call.attributes.optional_int("hidden_size")?
            && usize::try_from(declared) != Ok(hidden)
        {
            return Err(Fault::Invalid(format!("hidden_size={declared} where R has {hidden}")));
        }
        let b = call.optional(3)?;
        if let Some(b) = b {
            expect(b, "B", &[directions, 2 * rows])?;
        }
        let lengths = match call.optional(4)? {
            None => vec![steps; batch],
            Some(lengths) => {
                expect(lengths, "sequence_lens", &[batch])?;
                let lengths = lengths.integers()?;
                let fit = |l: &i64| usize::try_from(*l).ok().filter(|l| *l <= steps);
                let fitting: Option<Vec<usize>> = lengths.iter().map(fit).collect();
                fitting.ok_or_else(|| {
                    Fault::Invalid(format!("sequence_lens {lengths:?} are not within {steps} steps"))
                })?
            }
        };
        let clip = call.attributes.get("clip").is_some().then(|| call.attributes.float("clip", 0.0));
        let clip = clip.transpose()?.map(|c| T::from_f64(f64::from(c)));
        Ok(Layer {
            steps,
            batch,
            inputs,
            hidden,
            reverse,
            gates,
            batch_first,
            lengths,
            x: T::load(x)?,
            w: T::load(w)?,
            r: T::load(r)?,
            b: b.map(T::load).transpose()?,
            clip,
        })
    }

    /// What goes into an activation.
    pub fn clipped(&self, x: T) -> T {
        match self.clip {
            Some(clip) => super::activation::bounded(x, -clip, clip),
            None => x,
        }
    }

    /// An initial state, one row a batch entry for each direction; 0 when the input is not there.
    pub fn state(&self, call: &Call, index: usize) -> Result<Vec<Vec<T>>, Fault> {
        let (directions, batch, hidden) = (self.reverse.len(), self.batch, self.hidden);
        let Some(array) = call.optional(index)? else {
            call.elements(&[directions, batch, hidden], size_of::<T>())?;
            return Ok(vec![vec![T::default(); batch * hidden]; directions]);
        };
        let dims = if self.batch_first { [batch, directions, hidden] } else { [directions, batch, hidden] };
        expect(array, "an initial state", &dims)?;
        let values = T::load(array)?;
        let row = |direction: usize, entry: usize| {
            let row =
                if self.batch_first { entry * directions + direction } else { direction * batch + entry };
            &values[row * hidden..(row + 1) * hidden]
        };
        Ok((0..directions).map(|d| (0..batch).flat_map(|e| row(d, e)).copied().collect()).collect())
    }

    /// Weights of a direction, the input already multiplied by its part of them.
    pub fn weights(&self, call: &Call, direction: usize) -> Result<Weights<'_, T>, Fault> {
        let rows = self.gates * self.hidden;
        let count = self.steps * self.batch;
        let mut projected = call.vec::<T>(&[count, rows])?;
        let w = Matrix::new(&self.w[direction * rows * self.inputs..], rows, self.inputs);
        T::product(&mut projected, Matrix::new(&self.x, count, self.inputs), w.transposed())?;
        let mut recurrence_bias = vec![T::default(); rows];
        if let Some(b) = &self.b {
            let b = &b[direction * 2 * rows..][..2 * rows];
            for line in projected.chunks_mut(rows.max(1)) {
                line.iter_mut().zip(b).for_each(|(v, b)| *v += *b);
            }
            recurrence_bias.copy_from_slice(&b[rows..]);
        }
        let recurrence =
            Matrix::new(&self.r[direction * rows * self.hidden..], rows, self.hidden).transposed();
        Ok(Weights { recurrence, recurrence_bias, projected })
    }

    /// Runs a direction: `cell` gets for each entry of the batch that is still going on its number and X·W + bias, and
    /// changes the states.
    pub fn run(
        &self,
        direction: usize,
        weights: &Weights<T>,
        y: &mut Option<Vec<T>>,
        state: &mut [T],
        mut cell: impl FnMut(&[(usize, &[T])], &mut [T]) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let rows = self.gates * self.hidden;
        let directions = self.reverse.len();
        for step in 0..self.steps {
            let time = |entry: usize| {
                let length = self.lengths[entry];
                if self.reverse[direction] { length - 1 - step } else { step }
            };
            let going = (0..self.batch).filter(|e| step < self.lengths[*e]);
            let lines: Vec<(usize, &[T])> = going
                .map(|entry| {
                    let row = if self.batch_first {
                        entry * self.steps + time(entry)
                    } else {
                        time(entry) * self.batch + entry
                    };
                    (entry, &weights.projected[row * rows..(row + 1) * rows])
                })
                .collect();
            if lines.is_empty() {
                break;
            }
            cell(&lines, state)?;
            let Some(y) = y else { continue };
            for (entry, _) in &lines {
                let time = time(*entry);
                let row = match self.batch_first {
                    true => (entry * self.steps + time) * directions + direction,
                    false => (time * directions + direction) * self.batch + entry,
                };
                let from = &state[entry * self.hidden..(entry + 1) * self.hidden];
                y[row * self.hidden..(row + 1) * self.hidden].copy_from_slice(from);
            }
        }
        Ok(())
    }

    /// Room for the first output, when it is wanted.
    pub fn sequence(&self, call: &Call) -> Result<Option<Vec<T>>, Fault> {
        call.wants(0).then(|| call.zeros(&self.sequence_dims())).transpose()
    }

    fn sequence_dims(&self) -> [usize; 4] {
        let directions = self.reverse.len();
        match self.batch_first {
            true => [self.batch, self.steps, directions, self.hidden],
            false => [self.steps, directions, self.batch, self.hidden],
        }
    }

    /// The outputs: the whole sequence and the last states.
    pub fn outputs(&self, like: &Array, y: Option<Vec<T>>, states: Vec<Vec<Vec<T>>>) -> Outputs {
        let (directions, batch, hidden) = (self.reverse.len(), self.batch, self.hidden);
        let mut outputs: Outputs =
            smallvec![y.map(|y| T::array(like.element(), &self.sequence_dims(), y).into())];
        for state in states {
            let (dims, values) = match self.batch_first {
                false => ([directions, batch, hidden], state.concat()),
                true => {
                    let rows =
                        (0..batch).flat_map(|e| state.iter().map(move |s| &s[e * hidden..(e + 1) * hidden]));
                    ([batch, directions, hidden], rows.flatten().copied().collect())
                }
            };
            outputs.push(Some(T::array(like.element(), &dims, values).into()));
        }
        outputs
    }
}

/// An input of the right shape.
pub fn expect(array: &Array, name: &str, dims: &[usize]) -> Result<(), Fault> {
    if array.dims() == dims {
        return Ok(());
    }
    Err(Fault::Invalid(format!("{name} has shape {:?} where {dims:?} is needed", array.dims())))
}

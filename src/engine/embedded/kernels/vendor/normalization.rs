//! Normalizations of rows, with what is added before them.

use crate::engine::array::{Array, Value};
use crate::engine::embedded::call::{Call, Outputs};
use crate::engine::embedded::kernels::real::{Real, in_real, sum};
use crate::engine::fault::Fault;
use smallvec::smallvec;

/// What is done to each row.
struct Rows<'a, T> {
    /// The mean is taken off; otherwise only the length is made one.
    centred: bool,
    epsilon: f64,
    scale: &'a [T],
    shift: Option<&'a [T]>,
}

impl<T: Real> Rows<'_, T> {
    fn fits(&self) -> Result<(), Fault> {
        match self.shift {
            Some(shift) if shift.len() != self.scale.len() => {
                Err(Fault::Invalid(format!("{} scales and {} shifts differ", self.scale.len(), shift.len())))
            }
            _ => Ok(()),
        }
    }

    /// Normalizes all rows; gives the inverse standard deviations.
    fn normalize(&self, values: &mut [T]) -> Vec<T> {
        let length = self.scale.len().max(1);
        let mut inverses = Vec::with_capacity(values.len() / length);
        for row in values.chunks_mut(length) {
            let mean = match self.centred {
                true => sum(row, |v| v) / length as f64,
                false => 0.0,
            };
            let centre = T::from_f64(mean);
            let variance = sum(row, |v| (v - centre) * (v - centre)) / length as f64;
            let inverse = T::from_f64(1.0 / (variance + self.epsilon).sqrt());
            inverses.push(inverse);
            match self.shift {
                Some(shift) => {
                    for ((v, s), b) in row.iter_mut().zip(self.scale).zip(shift) {
                        *v = (*v - centre) * inverse * *s + *b;
                    }
                }
                None => row.iter_mut().zip(self.scale).for_each(|(v, s)| *v = (*v - centre) * inverse * *s),
            }
        }
        inverses
    }
}

/// SimplifiedLayerNormalization (1, written into the standard domain by ONNX Runtime): x / √(mean of x² + ε) · scale.
pub fn simplified_layer_normalization(call: &mut Call) -> Result<Outputs, Fault> {
    fn run<T: Real>(call: &mut Call) -> Result<Outputs, Fault> {
        let x = call.take(0)?;
        let axis = call.axis(call.attributes.int("axis", -1)?, x.rank())?;
        let (element, dims) = (x.element(), x.dims().to_vec());
        let scale = call.input(1)?;
        let result = scale.element();
        let scale = T::load(scale)?;
        if scale.len() != dims[axis..].iter().product::<usize>() {
            return Err(Fault::Invalid(format!("{} scales do not fit {:?}", scale.len(), &dims[axis..])));
        }
        let epsilon = f64::from(call.attributes.float("epsilon", 1e-5)?);
        let mut values = T::take_from(x)?;
        let inverses = Rows { centred: false, epsilon, scale: &scale, shift: None }.normalize(&mut values);
        let mut kept = dims.clone();
        kept[axis..].fill(1);
        let statistic = match call.wants(1) {
            true if inverses.len() == kept.iter().product::<usize>() => {
                Some(Value::Array(T::array(crate::ir::ElementType::FLOAT, &kept, inverses)))
            }
            _ => None,
        };
        let result = if element == result { element } else { result };
        Ok(smallvec![Some(Value::Array(T::array(result, &dims, values))), statistic])
    }
    in_real!(call, 0, run)
}

/// SkipLayerNormalization (com.microsoft 1).
pub fn skip_layer_normalization(call: &mut Call) -> Result<Outputs, Fault> {
    in_real!(call, 0, skipped, true, 3, 4)
}

/// SkipSimplifiedLayerNormalization (com.microsoft 1).
pub fn skip_simplified_layer_normalization(call: &mut Call) -> Result<Outputs, Fault> {
    in_real!(call, 0, skipped, false, usize::MAX, 3)
}

fn skipped<T: Real>(call: &mut Call, centred: bool, shift: usize, bias: usize) -> Result<Outputs, Fault> {
    let x = call.take(0)?;
    let (element, dims) = (x.element(), x.dims().to_vec());
    let skip = T::load(call.input(1)?)?;
    let scale = T::load(call.input(2)?)?;
    let shift = call.optional(shift)?.map(T::load).transpose()?;
    let bias = call.optional(bias)?.map(T::load).transpose()?;
    let width = scale.len();
    let unfit = |what: &str, count: usize| {
        Err(Fault::Invalid(format!("{what} of {count} elements does not fit {dims:?}")))
    };
    if dims.last() != Some(&width) {
        return unfit("a scale", width);
    }
    let mut values = T::take_from(x)?;
    if skip.is_empty() != values.is_empty() || values.len() % skip.len().max(1) != 0 {
        return unfit("a skip", skip.len());
    }
    if let Some(bias) = &bias {
        if bias.len() != width {
            return unfit("a bias", bias.len());
        }
        for row in values.chunks_mut(width.max(1)) {
            row.iter_mut().zip(bias.iter()).for_each(|(v, b)| *v += *b);
        }
    }
    for part in values.chunks_mut(skip.len().max(1)) {
        part.iter_mut().zip(skip.iter()).for_each(|(v, s)| *v += *s);
    }
    let total = match call.wants(3) {
        true => Some(Value::Array(T::array(element, &dims, values.clone()))),
        false => None,
    };
    let epsilon = f64::from(call.attributes.float("epsilon", 1e-12)?);
    let rows = Rows { centred, epsilon, scale: &scale, shift: shift.as_deref() };
    rows.fits()?;
    rows.normalize(&mut values);
    Ok(smallvec![Some(Value::Array(T::array(element, &dims, values))), None, None, total])
}

/// EmbedLayerNormalization (com.microsoft 1): the sum of embeddings of words, positions and segments, normalized; and the
/// number of words that are not masked.
pub fn embed_layer_normalization(call: &mut Call) -> Result<Outputs, Fault> {
    if matches!(call.input(2)?.storage(), crate::engine::array::Storage::F64(_)) {
        embedded::<f64>(call)
    } else {
        embedded::<f32>(call)
    }
}

fn embedded<T: Real>(call: &mut Call) -> Result<Outputs, Fault> {
    let words = call.input(0)?;
    let &[batch, length] = words.dims() else {
        return Err(Fault::Invalid(format!("word ids have shape {:?}, not batch and length", words.dims())));
    };
    let table = |index: usize| -> Result<(Vec<T>, usize), Fault> {
        let table = call.input(index)?;
        match table.dims() {
            [rows, _] => Ok((T::load(table)?.into_owned(), *rows)),
            dims => Err(Fault::Invalid(format!("embeddings have shape {dims:?}"))),
        }
    };
    let element = call.input(2)?.element();
    let scale = T::load(call.input(5)?)?;
    let shift = T::load(call.input(6)?)?;
    let width = scale.len();
    let dims = [batch, length, width];
    let mut values = call.zeros::<T>(&dims)?;
    let mut add = |ids: &mut dyn Iterator<Item = i64>, index: usize| -> Result<(), Fault> {
        let (table, rows) = table(index)?;
        if table.len() != rows * width {
            return Err(Fault::Invalid(format!("embeddings of input {index} are not {width} wide")));
        }
        for (row, id) in values.chunks_mut(width.max(1)).zip(ids) {
            let Some(id) = usize::try_from(id).ok().filter(|id| *id < rows) else {
                return Err(Fault::Invalid(format!("id {id} is not one of {rows} in input {index}")));
            };
            row.iter_mut().zip(&table[id * width..][..width]).for_each(|(v, t)| *v += *t);
        }
        Ok(())
    };
    add(&mut words.integers()?.into_iter(), 2)?;
    let positions = match call.optional(8)? {
        None => (0..length as i64).collect(),
        Some(ids) => ids.integers()?,
    };
    if positions.len() != length && positions.len() != batch * length {
        return Err(Fault::Invalid(format!("{} position ids do not fit {length}", positions.len())));
    }
    add(&mut positions.into_iter().cycle(), 3)?;
    if call.has(4) {
        let segments = match call.optional(1)? {
            None => vec![0; batch * length],
            Some(ids) => ids.integers()?,
        };
        if segments.len() != batch * length {
            return Err(Fault::Invalid(format!(
                "{} segment ids do not fit {batch} x {length}",
                segments.len()
            )));
        }
        add(&mut segments.into_iter(), 4)?;
    }
    let total = match call.wants(2) {
        true => Some(Value::Array(T::array(element, &dims, values.clone()))),
        false => None,
    };
    let epsilon = f64::from(call.attributes.float("epsilon", 1e-12)?);
    let rows = Rows { centred: true, epsilon, scale: &scale, shift: Some(&shift) };
    rows.fits()?;
    rows.normalize(&mut values);
    let counts = match call.optional(7)? {
        None => vec![0; batch],
        Some(mask) if mask.dims() == [batch, length] => {
            let mask = mask.integers()?;
            (0..batch)
                .map(|b| mask[b * length..][..length].iter().filter(|m| **m == 1).count() as i32)
                .collect()
        }
        Some(mask) => return Err(Fault::Invalid(format!("the mask has shape {:?}", mask.dims()))),
    };
    let counts = Value::Array(Array::new(&[batch], counts));
    Ok(smallvec![Some(Value::Array(T::array(element, &dims, values))), Some(counts), total])
}

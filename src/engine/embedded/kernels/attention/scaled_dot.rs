//! Attention.

use super::heads::Heads;
use crate::engine::Fault;
use crate::engine::array::{Array, Element};
use crate::engine::embedded::call::{Call, Outputs};
use crate::engine::embedded::kernels::real::{Real, in_real};
use crate::engine::embedded::products::Matrix;
use crate::ir::ElementType;
use smallvec::smallvec;

/// Attention (opsets 23 to 25): softmax(softcap(scale · Q · Kᵀ) + bias) · V, where the bias comes of the mask, the causal
/// order, the window, and the length of what is no padding. A row in which every key is masked gives 0.
pub fn attention(call: &mut Call) -> Result<Outputs, Fault> {
    in_real!(call, 0, attend)
}

fn attend<T: Real>(call: &mut Call) -> Result<Outputs, Fault> {
    let (q, k, v) = (call.input(0)?, call.input(1)?, call.input(2)?);
    let own = Heads::of(q.dims(), call.attributes.optional_int("q_num_heads")?)?;
    let kv_heads = call.attributes.optional_int("kv_num_heads")?;
    let (keys, key_count, total) = cache::<T>(call, k, kv_heads, 4)?;
    let (values, value_count, value_total) = cache::<T>(call, v, kv_heads, 5)?;
    let (key_size, value_size) =
        (keys.dims.last().copied().unwrap_or_default(), values.dims.last().copied().unwrap_or_default());
    let fits = keys.dims[0] == own.batch
        && values.dims[0] == own.batch
        && key_count == value_count
        && total == value_total
        && key_size == own.size
        && key_count > 0
        && own.count.is_multiple_of(key_count);
    if !fits {
        return Err(Fault::Invalid(format!(
            "shapes {:?}, {:?} and {:?} do not fit one another",
            q.dims(),
            k.dims(),
            v.dims()
        )));
    }
    let mode = call.attributes.int("qk_matmul_output_mode", 0)?;
    if !(0..=3).contains(&mode) {
        return Err(Fault::Invalid(format!("qk_matmul_output_mode={mode} is not known")));
    }
    let scale = match call.attributes.get("scale") {
        Some(_) => f64::from(call.attributes.float("scale", 1.0)?),
        None => 1.0 / (own.size as f64).sqrt(),
    };
    let scale = T::from_f64(scale);
    let cap = T::from_f64(f64::from(call.attributes.float("softcap", 0.0)?));
    let bias = Bias::<T>::of(call, &own, total)?;
    let queries = T::load(q)?;
    let out_dims = own.dims(value_size);
    let mut out = call.zeros::<T>(&out_dims)?;
    let shown_dims = [own.batch, own.count, own.length, total];
    let mut shown = match call.wants(3) {
        true => Some(call.vec::<T>(&shown_dims)?),
        false => None,
    };
    let out_heads = Heads { size: value_size, ..own };
    let space = call.elements(&[own.length, total + value_size], size_of::<T>())?;
    let (mut scores, mut mixed) = (Vec::new(), Vec::new());
    let mut line = vec![T::default(); total];
    for batch in 0..own.batch {
        for head in 0..own.count {
            let shared = batch * key_count + head / (own.count / key_count);
            let key = Matrix::new(&keys.values[shared * total * own.size..], total, own.size);
            let value = Matrix::new(&values.values[shared * total * value_size..], total, value_size);
            let query = queries.get(own.row(batch, head, 0)..).unwrap_or(&[]);
            let query = Matrix::strided(query, own.length, own.size, own.step());
            scores.clear();
            T::product(&mut scores, query, key.transposed())?;
            for (row, scores) in scores.chunks_mut(total.max(1)).enumerate() {
                scores.iter_mut().for_each(|s| *s *= scale);
                let keep = |shown: &mut Option<Vec<T>>, scores: &[T], at: i64| {
                    if let Some(shown) = shown
                        && mode == at
                    {
                        shown.extend_from_slice(scores);
                    }
                };
                keep(&mut shown, scores, 0);
                if cap > T::default() {
                    scores.iter_mut().for_each(|s| *s = (*s / cap).tanh() * cap);
                }
                keep(&mut shown, scores, 1);
                bias.line(batch, head, row, &mut line);
                scores.iter_mut().zip(&line).for_each(|(s, b)| *s += *b);
                keep(&mut shown, scores, 2);
                match line.iter().all(|b| *b == T::NEG_INFINITY) {
                    true => scores.fill(T::default()),
                    false => softmax(scores),
                }
                keep(&mut shown, scores, 3);
            }
            mixed.clear();
            T::product(&mut mixed, Matrix::new(&scores, own.length, total), value)?;
            for row in 0..own.length {
                let at = out_heads.row(batch, head, row);
                out[at..at + value_size].copy_from_slice(&mixed[row * value_size..(row + 1) * value_size]);
            }
        }
    }
    let element = q.element();
    let outputs = smallvec![
        Some(T::array(element, &out_dims, out).into()),
        call.wants(1).then(|| T::array(k.element(), &keys.dims, keys.values).into()),
        call.wants(2).then(|| T::array(v.element(), &values.dims, values.values).into()),
        shown.map(|shown| T::array(element, &shown_dims, shown).into()),
    ];
    call.working_space = (space * size_of::<T>()) as u64;
    Ok(outputs)
}

/// Keys or values of the past and the present, batch × heads × sequence × size.
struct Cache<T> {
    dims: [usize; 4],
    values: Vec<T>,
}

/// Joins an input with its past; gives the number of heads and the length of the whole sequence as well.
fn cache<T: Real>(
    call: &Call,
    input: &Array,
    heads: Option<i64>,
    past: usize,
) -> Result<(Cache<T>, usize, usize), Fault> {
    let own = Heads::of(input.dims(), heads)?;
    let past = call.optional(past)?;
    let before = match past {
        None => 0,
        Some(past) => match *past.dims() {
            [batch, count, length, size] if (batch, count, size) == (own.batch, own.count, own.size) => {
                length
            }
            _ => {
                return Err(Fault::Invalid(format!(
                    "a past of shape {:?} does not fit {:?}",
                    past.dims(),
                    input.dims()
                )));
            }
        },
    };
    let total = before + own.length;
    let dims = [own.batch, own.count, total, own.size];
    let mut values = call.vec::<T>(&dims)?;
    let new = T::load(input)?;
    let past = past.map(T::load).transpose()?;
    for batch in 0..own.batch {
        for head in 0..own.count {
            if let Some(past) = &past {
                let each = before * own.size;
                values.extend_from_slice(&past[(batch * own.count + head) * each..][..each]);
            }
            for row in 0..own.length {
                let at = own.row(batch, head, row);
                values.extend_from_slice(&new[at..at + own.size]);
            }
        }
    }
    Ok((Cache { dims, values }, own.count, total))
}

/// What is added to the scores.
struct Bias<T> {
    /// The mask and its shape, aligned to the right with batch × heads × queries × keys.
    mask: Option<(Vec<T>, [usize; 4])>,
    causal: bool,
    left: Option<i64>,
    right: Option<i64>,
    /// Keys that come before the first query, for each batch entry.
    offsets: Vec<i64>,
    /// Keys that are no padding, for each batch entry.
    valid: Option<Vec<i64>>,
}

impl<T: Real> Bias<T> {
    fn of(call: &Call, own: &Heads, total: usize) -> Result<Bias<T>, Fault> {
        let mask = call.optional(3)?.map(|mask| -> Result<_, Fault> {
            let dims = mask.dims();
            let whole = [own.batch, own.count, own.length, total];
            let mut aligned = [1; 4];
            let lead = 4usize.checked_sub(dims.len());
            let lead = lead.ok_or_else(|| Fault::Invalid(format!("a mask of shape {dims:?}")))?;
            aligned[lead..].copy_from_slice(dims);
            let broadcasts = aligned.iter().zip(&whole).take(3).all(|(m, w)| m == w || *m == 1);
            if !broadcasts || aligned[3] > total {
                return Err(Fault::Invalid(format!("a mask of shape {dims:?} does not fit {whole:?}")));
            }
            let values = match mask.element() {
                ElementType::BOOL => {
                    let open = |b: &u8| if *b != 0 { T::default() } else { T::NEG_INFINITY };
                    u8::view(mask.storage()).unwrap_or(&[]).iter().map(open).collect()
                }
                _ => match T::load(mask) {
                    Ok(values) => values.into_owned(),
                    Err(fault) => {
                        let values = mask.approximate().ok_or(fault)?;
                        values.into_iter().map(T::from_f64).collect()
                    }
                },
            };
            Ok((values, aligned))
        });
        let valid = call.optional(6)?.map(Array::integers).transpose()?;
        if valid.as_ref().is_some_and(|v| v.len() != own.batch) {
            return Err(Fault::Invalid(format!("nonpad_kv_seqlen is not of {} numbers", own.batch)));
        }
        let past = call.optional(4)?.map(|past| past.dims().get(2).copied().unwrap_or_default() as i64);
        let offset = |batch: usize| match (past, &valid) {
            (Some(past), _) => past,
            (None, Some(valid)) => valid[batch].saturating_sub(own.length as i64),
            (None, None) => 0,
        };
        let side = |name: &str| -> Result<Option<i64>, Fault> {
            match call.attributes.int(name, -1)? {
                -1 => Ok(None),
                size if size >= 0 => Ok(Some(size)),
                size => Err(Fault::Invalid(format!("{name}={size} is below -1"))),
            }
        };
        Ok(Bias {
            mask: mask.transpose()?,
            causal: call.attributes.int("is_causal", 0)? != 0,
            left: side("left_window_size")?,
            right: side("right_window_size")?,
            offsets: (0..own.batch).map(offset).collect(),
            valid,
        })
    }

    /// The bias of all keys for one query.
    fn line(&self, batch: usize, head: usize, query: usize, line: &mut [T]) {
        match &self.mask {
            None => line.fill(T::default()),
            Some((mask, dims)) => {
                let at = |axis: usize, index: usize| if dims[axis] == 1 { 0 } else { index };
                let row = (at(0, batch) * dims[1] + at(1, head)) * dims[2] + at(2, query);
                let (given, beyond) = line.split_at_mut(dims[3]);
                given.copy_from_slice(&mask[row * dims[3]..(row + 1) * dims[3]]);
                // A mask may be shorter than the keys.
                beyond.fill(T::NEG_INFINITY);
            }
        }
        let place = (query as i64).saturating_add(self.offsets[batch]);
        let valid = self.valid.as_ref().map(|v| v[batch]);
        if !self.causal && self.left.is_none() && self.right.is_none() && valid.is_none() {
            return;
        }
        for (key, bias) in line.iter_mut().enumerate() {
            let key = key as i64;
            let masked = (self.causal && key > place)
                || self.left.is_some_and(|left| place.saturating_sub(key) > left)
                || self.right.is_some_and(|right| key.saturating_sub(place) > right)
                || valid.is_some_and(|valid| key >= valid);
            if masked {
                *bias = T::NEG_INFINITY;
            }
        }
    }
}

/// Softmax of a row in place; 0 where every score is -infinity.
fn softmax<T: Real>(row: &mut [T]) {
    let larger = |a: T, b: T| if a > b || a.is_nan() { a } else { b };
    let most = row.iter().fold(T::NEG_INFINITY, |a, b| larger(a, *b));
    if most == T::NEG_INFINITY {
        row.fill(T::default());
        return;
    }
    let mut sum = T::default();
    for v in row.iter_mut() {
        *v = (*v - most).exp();
        sum += *v;
    }
    row.iter_mut().for_each(|v| *v = *v / sum);
}

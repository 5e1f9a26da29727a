//! Attention and MultiHeadAttention.

use super::attention::{Row, Sizes, attend, joined, split_heads};
use crate::engine::array::{Array, Value};
use crate::engine::embedded::call::{Call, Outputs};
use crate::engine::embedded::kernels::real::{Real, in_real};
use crate::engine::embedded::products::Matrix;
use crate::engine::fault::Fault;
use smallvec::smallvec;

/// What is added to the scores, with its sizes along batch and heads.
type Bias<T> = (Vec<T>, [usize; 2]);

/// Keys that are masked, and a number that is added to each score.
struct Masks<T> {
    /// For each batch entry, query and key what is added; one query stands for all when `per_query` is not set.
    padding: Option<Vec<T>>,
    per_query: bool,
    /// With its leading dimensions, each of which may be 1.
    bias: Option<Bias<T>>,
    /// Queries see no later key.
    causal: bool,
    /// Positions before the first query.
    past: usize,
    sizes: Sizes,
}

impl<T: Real> Masks<T> {
    fn adjust(&self, row: Row<T>) {
        let Sizes { queries, keys, .. } = self.sizes;
        if let Some(padding) = &self.padding {
            let at = if self.per_query { row.batch * queries + row.query } else { row.batch };
            row.scores.iter_mut().zip(&padding[at * keys..]).for_each(|(s, p)| *s += *p);
        }
        if let Some((bias, [batch, heads])) = &self.bias {
            let at = row.batch % batch * heads + row.head % heads;
            let line = &bias[(at * queries + row.query) * keys..];
            row.scores.iter_mut().zip(line).for_each(|(s, b)| *s += *b);
        }
        if self.causal {
            let seen = (self.past + row.query + 1).min(keys);
            row.scores[seen..].fill(T::NEG_INFINITY);
        }
    }
}

/// What a mask adds: its filter value where a key is masked. The forms are told apart by shape.
fn padding<T: Real>(
    call: &Call,
    mask: Option<&Array>,
    sizes: Sizes,
    default_filter: f32,
) -> Result<(Option<Vec<T>>, bool), Fault> {
    let Some(mask) = mask else { return Ok((None, false)) };
    let filter = T::from_f64(f64::from(call.attributes.float("mask_filter_value", default_filter)?));
    let Sizes { batch, queries, keys, .. } = sizes;
    let numbers = mask.integers()?;
    let kept = |kept: bool| if kept { T::default() } else { filter };
    Ok(match mask.dims() {
        // Lengths; with a second half, where each entry begins.
        [count] if *count == batch || *count == 2 * batch => {
            let start = |b: usize| numbers.get(batch + b).copied().unwrap_or(0);
            let all = (0..batch).flat_map(|b| (0..keys as i64).map(move |k| (b, k)));
            (Some(all.map(|(b, k)| kept(k < numbers[b] && k >= start(b))).collect()), false)
        }
        [b, k] if [*b, *k] == [batch, keys] => (Some(numbers.iter().map(|m| kept(*m > 0)).collect()), false),
        [b, q, k] if [*b, *q, *k] == [batch, queries, keys] => {
            (Some(numbers.iter().map(|m| kept(*m > 0)).collect()), true)
        }
        other => return call.unsupported(format_args!("a mask of shape {other:?}")),
    })
}

fn bias<T: Real>(call: &Call, bias: Option<&Array>, sizes: Sizes) -> Result<Option<Bias<T>>, Fault> {
    let Some(array) = bias else { return Ok(None) };
    match *array.dims() {
        [b, h, q, k]
            if (b == 1 || b == sizes.batch)
                && (h == 1 || h == sizes.heads)
                && [q, k] == [sizes.queries, sizes.keys] =>
        {
            Ok(Some((T::load(array)?.into_owned(), [b, h])))
        }
        ref other => call.unsupported(format_args!("an attention bias of shape {other:?}")),
    }
}

fn positive(call: &Call, name: &str) -> Result<usize, Fault> {
    let value = call.attributes.int(name, 0)?;
    usize::try_from(value)
        .ok()
        .filter(|v| *v > 0)
        .ok_or_else(|| Fault::Invalid(format!("attribute {name}={value} is not positive")))
}

/// The factor of the scores: given, or one over the root of a head's width.
pub fn score_scale<T: Real>(call: &Call, width: usize) -> Result<T, Fault> {
    Ok(T::from_f64(match call.attributes.float("scale", 0.0)? {
        0.0 => 1.0 / (width as f64).sqrt(),
        given => f64::from(given),
    }))
}

fn refuse_inputs(call: &Call, inputs: &[(usize, &str)]) -> Result<(), Fault> {
    match inputs.iter().find(|(index, _)| call.has(*index)) {
        Some((_, name)) => call.unsupported(name),
        None => Ok(()),
    }
}

/// Attention (com.microsoft 1): queries, keys and values are one product of the input.
pub fn attention(call: &mut Call) -> Result<Outputs, Fault> {
    fn run<T: Real>(call: &mut Call) -> Result<Outputs, Fault> {
        refuse_inputs(call, &[(6, "a shared buffer of states")])?;
        if call.attributes.int("do_rotary", 0)? != 0
            || call.attributes.int("past_present_share_buffer", 0)? != 0
        {
            return call.unsupported("rotary positions or a shared buffer of states");
        }
        let (x, weights) = (call.input(0)?, call.input(1)?);
        let element = x.element();
        let invalid = || {
            Fault::Invalid(format!("shapes {:?} and {:?} are no input and weights", x.dims(), weights.dims()))
        };
        let (&[batch, length, inner], &[below, columns]) = (x.dims(), weights.dims()) else {
            return Err(invalid());
        };
        let heads = positive(call, "num_heads")?;
        let hidden: [usize; 3] = match call.attributes.ints("qkv_hidden_sizes")? {
            None => [columns / 3; 3],
            Some(&[q, k, v]) => [q, k, v].map(|n| usize::try_from(n).unwrap_or_default()),
            Some(_) => return Err(Fault::Invalid("qkv_hidden_sizes has not three sizes".into())),
        };
        let sum = hidden.iter().try_fold(0usize, |sum, h| sum.checked_add(*h));
        let divides = hidden.iter().all(|h| *h > 0 && h % heads == 0);
        if inner != below || sum != Some(columns) || !divides || hidden[0] != hidden[1] {
            return Err(invalid());
        }
        call.elements(&[batch, length, columns], 2 * size_of::<T>())?;
        let mut projected = Vec::new();
        let (rows, w) = (T::load(x)?, T::load(weights)?);
        T::product(
            &mut projected,
            Matrix::new(&rows, batch * length, inner),
            Matrix::new(&w, inner, columns),
        )?;
        let added = call.optional(2)?.map(T::load).transpose()?;
        if added.as_ref().is_some_and(|b| b.len() != columns) {
            return Err(Fault::Invalid(format!("the bias must have {columns} elements")));
        }
        let part = |offset: usize, size: usize| {
            let bias = added.as_ref().map(|b| &b[offset..offset + size]);
            split_heads(&projected, (batch, length), (heads, size / heads), (columns, offset), bias)
        };
        let q = part(0, hidden[0]);
        let (k, v) = (part(hidden[0], hidden[1]), part(hidden[0] + hidden[1], hidden[2]));
        let (width, value_width) = (hidden[0] / heads, hidden[2] / heads);
        let (mut before, mut k, mut v) = (0, k, v);
        if let Some(past) = call.optional(4)? {
            let &[2, b, h, p, w] = past.dims() else {
                return Err(Fault::Invalid(format!("past has shape {:?}", past.dims())));
            };
            if [b, h, w] != [batch, heads, width] || width != value_width {
                return Err(Fault::Invalid(format!("past has shape {:?}", past.dims())));
            }
            let past = T::load(past)?;
            let (keys, values) = past.split_at(past.len() / 2);
            k = joined(keys, &k, batch * heads, (p, length), width);
            v = joined(values, &v, batch * heads, (p, length), width);
            before = p;
        }
        let keys = before + length;
        let sizes = Sizes { batch, heads, groups: heads, queries: length, keys, width, value_width };
        let (padding, per_query) = padding::<T>(call, call.optional(3)?, sizes, -10000.0)?;
        let masks = Masks {
            padding,
            per_query,
            bias: bias::<T>(call, call.optional(5)?, sizes)?,
            causal: call.attributes.int("unidirectional", 0)? != 0,
            past: before,
            sizes,
        };
        let scale = score_scale::<T>(call, width)?;
        let out = attend(call, sizes, (&q, &k, &v), scale, |row| masks.adjust(row))?;
        let present = match call.wants(1) {
            true if width == value_width => {
                k.extend(v);
                Some(Value::Array(T::array(element, &[2, batch, heads, keys, width], k)))
            }
            true => return call.unsupported("states of different widths"),
            false => None,
        };
        let out = T::array(element, &[batch, length, hidden[2]], out);
        Ok(smallvec![Some(Value::Array(out)), present])
    }
    in_real!(call, 0, run)
}

/// MultiHeadAttention (com.microsoft 1): queries, keys and values apart, or packed in one or two inputs.
pub fn multi_head_attention(call: &mut Call) -> Result<Outputs, Fault> {
    in_real!(call, 0, multi_head)
}

/// Elements as (batch, heads, length, width), with batch, length and width.
type Split<T> = (Vec<T>, usize, usize, usize);

fn multi_head<T: Real>(call: &mut Call) -> Result<Outputs, Fault> {
    refuse_inputs(call, &[(8, "a shared buffer of states"), (9, "an indirection of beams")])?;
    if call.wants(3) {
        return call.unsupported("the output of scores");
    }
    let heads = positive(call, "num_heads")?;
    let query = call.input(0)?;
    let element = query.element();
    let unfit =
        |array: &Array| Fault::Invalid(format!("shape {:?} does not fit {heads} heads", array.dims()));
    let added = call.optional(3)?.map(T::load).transpose()?;
    let own = |array: &Array, bias_at: usize| -> Result<Split<T>, Fault> {
        let &[batch, length, hidden] = array.dims() else { return Err(unfit(array)) };
        if hidden % heads != 0 {
            return Err(unfit(array));
        }
        let bias = match &added {
            None => None,
            Some(b) => Some(b.get(bias_at..bias_at + hidden).ok_or_else(|| unfit(array))?),
        };
        let rows = T::load(array)?;
        let split = split_heads(&rows, (batch, length), (heads, hidden / heads), (hidden, 0), bias);
        Ok((split, batch, length, hidden / heads))
    };
    // Packed: (batch, length, heads, parts, width).
    let packed = |array: &Array, parts: usize, part: usize| -> Result<Split<T>, Fault> {
        let &[batch, length, h, p, width] = array.dims() else { return Err(unfit(array)) };
        if [h, p] != [heads, parts] {
            return Err(unfit(array));
        }
        let rows = T::load(array)?;
        let mut out = Vec::with_capacity(batch * length * heads * width);
        for (b, h, i) in
            (0..batch).flat_map(|b| (0..heads).flat_map(move |h| (0..length).map(move |i| (b, h, i))))
        {
            let at = (((b * length + i) * heads + h) * parts + part) * width;
            let row = &rows[at..at + width];
            match &added {
                Some(bias) => {
                    let from = ((3 - parts + part) * heads + h) * width;
                    let bias = bias.get(from..from + width).ok_or_else(|| unfit(array))?;
                    out.extend(row.iter().zip(bias).map(|(v, b)| *v + *b));
                }
                None => out.extend_from_slice(row),
            }
        }
        Ok((out, batch, length, width))
    };
    // Already split: (batch, heads, length, width).
    let split = |array: &Array| -> Result<Split<T>, Fault> {
        let &[batch, h, length, width] = array.dims() else { return Err(unfit(array)) };
        if h != heads {
            return Err(unfit(array));
        }
        Ok((T::load(array)?.into_owned(), batch, length, width))
    };
    let (q, k, v) = match (query.rank(), call.optional(1)?, call.optional(2)?) {
        (5, None, None) => (packed(query, 3, 0)?, packed(query, 3, 1)?, packed(query, 3, 2)?),
        (3, Some(key), None) if key.rank() == 5 => (own(query, 0)?, packed(key, 2, 0)?, packed(key, 2, 1)?),
        (3, Some(key), Some(value)) if key.rank() == 4 => (own(query, 0)?, split(key)?, split(value)?),
        (3, Some(key), Some(value)) => {
            let hidden = query.dims()[2];
            (own(query, 0)?, own(key, hidden)?, own(value, 2 * hidden)?)
        }
        _ => return call.unsupported("inputs packed in this way"),
    };
    let (q, batch, length, width) = q;
    let (key_sizes, value_batch) = ([k.1, k.2, k.3], [v.1, v.2]);
    let (mut k, (mut v, _, mut new, value_width)) = (k.0, v);
    if key_sizes != [batch, new, width] || value_batch != [batch, new] {
        return Err(Fault::Invalid("queries, keys and values do not fit one another".into()));
    }
    let mut before = 0;
    if let (Some(past_key), Some(past_value)) = (call.optional(6)?, call.optional(7)?) {
        let (&[b, h, p, w], &[vb, vh, vp, vw]) = (past_key.dims(), past_value.dims()) else {
            return Err(unfit(past_key));
        };
        if [b, h, w, vb, vh, vp, vw] != [batch, heads, width, batch, heads, p, value_width] {
            return Err(unfit(past_key));
        }
        k = joined(&T::load(past_key)?, &k, batch * heads, (p, new), width);
        v = joined(&T::load(past_value)?, &v, batch * heads, (p, new), value_width);
        before = p;
        new += p;
    }
    let sizes = Sizes { batch, heads, groups: heads, queries: length, keys: new, width, value_width };
    let (padding, per_query) = padding::<T>(call, call.optional(4)?, sizes, -10000.0)?;
    let masks = Masks {
        padding,
        per_query,
        bias: bias::<T>(call, call.optional(5)?, sizes)?,
        causal: call.attributes.int("unidirectional", 0)? != 0,
        past: before,
        sizes,
    };
    let scale = score_scale::<T>(call, width)?;
    let out = attend(call, sizes, (&q, &k, &v), scale, |row| masks.adjust(row))?;
    let out = T::array(element, &[batch, length, heads * value_width], out);
    let state = |wanted: bool, values: Vec<T>, width: usize| {
        wanted.then(|| Value::Array(T::array(element, &[batch, heads, new, width], values)))
    };
    let (key, value) = (state(call.wants(1), k, width), state(call.wants(2), v, value_width));
    Ok(smallvec![Some(Value::Array(out)), key, value])
}

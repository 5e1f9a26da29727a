//! GroupQueryAttention.

use super::attention::{Row, Sizes, attend, split_heads};
use super::heads::score_scale;
use super::rotary::Rotation;
use crate::engine::array::Value;
use crate::engine::embedded::call::{Call, Outputs};
use crate::engine::embedded::kernels::real::{Real, in_real};
use crate::engine::fault::Fault;
use smallvec::smallvec;

/// Inputs of later releases that have no code here.
const REFUSED: [(usize, &str); 7] = [
    (10, "an attention bias"),
    (11, "head sinks"),
    (12, "quantized keys"),
    (13, "quantized values"),
    (14, "normalized queries"),
    (15, "normalized keys"),
    (16, "padded chunks of queries"),
];

/// GroupQueryAttention (com.microsoft 1): causal, with states of before in inputs of their own length, rotary positions, a
/// window and a soft cap.
pub fn group_query_attention(call: &mut Call) -> Result<Outputs, Fault> {
    in_real!(call, 0, grouped)
}

fn grouped<T: Real>(call: &mut Call) -> Result<Outputs, Fault> {
    if let Some((_, name)) = REFUSED.iter().find(|(index, _)| call.has(*index)) {
        return call.unsupported(name);
    }
    let flag = |name: &str, default: i64| call.attributes.int(name, default);
    if flag("smooth_softmax", 0)? > 0
        || flag("causal", 1)? != 1
        || flag("sliding_window_cache", 0)? != 0
        || call.wants(3)
    {
        return call.unsupported("a smooth softmax, attention that is not causal, a sliding cache or scores");
    }
    let count = |name: &str| -> Result<usize, Fault> {
        let value = call.attributes.int(name, 0)?;
        usize::try_from(value)
            .ok()
            .filter(|v| *v > 0)
            .ok_or_else(|| Fault::Invalid(format!("{name}={value} is not positive")))
    };
    let (heads, groups) = (count("num_heads")?, count("kv_num_heads")?);
    let query = call.input(0)?;
    let element = query.element();
    let unfit = |what: &str, dims: &[usize]| {
        Fault::Invalid(format!("{what} of shape {dims:?} does not fit {heads} and {groups} heads"))
    };
    let &[batch, length, hidden] = query.dims() else { return Err(unfit("a query", query.dims())) };
    if heads % groups != 0 {
        return Err(unfit("a query", query.dims()));
    }
    let rows = T::load(query)?;
    let (width, mut q, mut k, v) = match (call.optional(1)?, call.optional(2)?) {
        (None, None) => {
            let width = hidden / (heads + 2 * groups);
            if width * (heads + 2 * groups) != hidden {
                return Err(unfit("a query", query.dims()));
            }
            let part = |heads: usize, offset: usize| {
                split_heads(&rows, (batch, length), (heads, width), (hidden, offset * width), None)
            };
            (width, part(heads, 0), part(groups, heads), part(groups, heads + groups))
        }
        (Some(key), Some(value)) => {
            let width = hidden / heads;
            if width * heads != hidden
                || key.dims() != [batch, length, groups * width]
                || value.dims() != key.dims()
            {
                return Err(unfit("a key", key.dims()));
            }
            let part = |rows: &[T], heads: usize| {
                split_heads(rows, (batch, length), (heads, width), (heads * width, 0), None)
            };
            (width, part(&rows, heads), part(&T::load(key)?, groups), part(&T::load(value)?, groups))
        }
        _ => return Err(Fault::Invalid("a key without a value".into())),
    };
    let lengths = call.input(5)?.integers()?;
    let total = call.input(6)?.integers()?;
    let (&[total], true) = (total.as_slice(), lengths.len() == batch) else {
        return Err(Fault::Invalid("lengths do not fit the batch".into()));
    };
    let total = usize::try_from(total).unwrap_or_default();
    // Length of the states of each entry after this step, and before it.
    let mut spans = Vec::with_capacity(batch);
    for last in lengths {
        let after = usize::try_from(last.saturating_add(1)).unwrap_or_default();
        let before = if total == length { 0 } else { after.saturating_sub(length) };
        if after == 0 || after > total || (total != length && after < length) {
            return Err(Fault::Invalid(format!("a sequence of {after} does not fit a total of {total}")));
        }
        spans.push((before, after));
    }
    let (past, past_length) = match (call.optional(3)?, call.optional(4)?) {
        (Some(k), Some(v)) => {
            let &[b, n, length, w] = k.dims() else { return Err(unfit("past keys", k.dims())) };
            if [b, n, w] != [batch, groups, width] || v.dims() != k.dims() {
                return Err(unfit("past keys", k.dims()));
            }
            (Some((T::load(k)?, T::load(v)?)), length)
        }
        _ => (None, 0),
    };
    if spans.iter().any(|(before, _)| *before > past_length) {
        return Err(Fault::Invalid(format!(
            "{past_length} states are fewer than what is to be read of them"
        )));
    }
    if flag("do_rotary", 0)? != 0 {
        let rotation =
            Rotation::<T>::of(call.input(7)?, call.input(8)?, flag("rotary_interleaved", 0)? != 0)?;
        let given = call.optional(9)?.map(|p| p.integers()).transpose()?;
        for (values, heads) in [(&mut q, heads), (&mut k, groups)] {
            for (i, head) in values.chunks_mut(width.max(1)).enumerate() {
                let (b, s) = (i / (heads * length), i % length);
                let counted = (spans[b].0 + s) as i64;
                let position = match &given {
                    Some(ids) if ids.len() == batch * length => ids[b * length + s],
                    _ => counted,
                };
                rotation.rotate(head, position)?;
            }
        }
    }
    let keys = past_length.max(total);
    let state_dims = [batch, groups, keys, width];
    call.elements(&state_dims, 2 * size_of::<T>())?;
    let state = |past: Option<&[T]>, new: &[T]| -> Vec<T> {
        let mut out = vec![T::default(); batch * groups * keys * width];
        for (i, out) in out.chunks_mut((keys * width).max(1)).enumerate() {
            let (before, after) = spans[i / groups];
            if let Some(past) = past {
                out[..before * width].copy_from_slice(&past[i * past_length * width..][..before * width]);
            }
            let count = after - before;
            out[before * width..after * width].copy_from_slice(&new[i * length * width..][..count * width]);
        }
        out
    };
    let key_states = state(past.as_ref().map(|p| &*p.0), &k);
    let value_states = state(past.as_ref().map(|p| &*p.1), &v);
    let sizes = Sizes { batch, heads, groups, queries: length, keys, width, value_width: width };
    let window = usize::try_from(flag("local_window_size", -1)?).ok();
    let cap = T::from_f64(f64::from(call.attributes.float("softcap", 0.0)?));
    let adjust = |row: Row<T>| {
        let seen = (spans[row.batch].0 + row.query + 1).min(keys);
        let first = window.map_or(0, |w| seen.saturating_sub(w));
        if cap > T::default() {
            row.scores.iter_mut().for_each(|s| *s = cap * (*s / cap).tanh());
        }
        row.scores[..first].fill(T::NEG_INFINITY);
        row.scores[seen..].fill(T::NEG_INFINITY);
    };
    let scale = score_scale::<T>(call, width)?;
    let out = attend(call, sizes, (&q, &key_states, &value_states), scale, adjust)?;
    Ok(smallvec![
        Some(Value::Array(T::array(element, &[batch, length, heads * width], out))),
        Some(Value::Array(T::array(element, &state_dims, key_states))),
        Some(Value::Array(T::array(element, &state_dims, value_states))),
    ])
}

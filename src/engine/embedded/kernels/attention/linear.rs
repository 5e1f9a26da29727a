//! LinearAttention.

use super::heads::Heads;
use crate::engine::Fault;
use crate::engine::array::Array;
use crate::engine::embedded::call::{Call, Outputs};
use crate::engine::embedded::kernels::real::{Real, in_real};
use smallvec::smallvec;

/// LinearAttention: a state of key size × value size for each head, which every token decays, corrects and adds to, and
/// which queries are multiplied with. `chunk_size` is a hint that changes no result.
pub fn linear_attention(call: &mut Call) -> Result<Outputs, Fault> {
    in_real!(call, 0, recur)
}

fn recur<T: Real>(call: &mut Call) -> Result<Outputs, Fault> {
    let (gated, corrected) = match call.attributes.text("update_rule", "gated_delta")? {
        "linear" => (false, false),
        "gated" => (true, false),
        "delta" => (false, true),
        "gated_delta" => (true, true),
        other => return Err(Fault::Invalid(format!("update_rule={other} is not known"))),
    };
    let (decay, beta) = (call.optional(4)?, call.optional(5)?);
    if gated != decay.is_some() || corrected != beta.is_some() {
        return Err(Fault::Invalid(
            "decay or beta is missing, or given where the update rule has none".into(),
        ));
    }
    let (q, k, v) = (call.input(0)?, call.input(1)?, call.input(2)?);
    let kv_heads = call.attributes.optional_int("kv_num_heads")?;
    let queries = Heads::of(q.dims(), call.attributes.optional_int("q_num_heads")?)?;
    let (keys, values) = (Heads::of(k.dims(), kv_heads)?, Heads::of(v.dims(), kv_heads)?);
    let (batch, length, count) = (queries.batch, queries.length, keys.count);
    let fits = queries.flat
        && keys.flat
        && values.flat
        && (keys.batch, keys.length, keys.size) == (batch, length, queries.size)
        && (values.batch, values.length) == (batch, length)
        && queries.count.is_multiple_of(count);
    if !fits {
        return Err(Fault::Invalid(format!(
            "shapes {:?}, {:?} and {:?} do not fit one another",
            q.dims(),
            k.dims(),
            v.dims()
        )));
    }
    let last = |array: &Array, allowed: [usize; 2]| match *array.dims() {
        [b, l, last] if (b, l) == (batch, length) && allowed.contains(&last) => Ok(last),
        _ => Err(Fault::Invalid(format!("decay or beta has shape {:?}", array.dims()))),
    };
    let (key_size, value_size) = (keys.size, values.size);
    let decay =
        decay.map(|d| Ok::<_, Fault>((last(d, [count, count * key_size])?, T::load(d)?))).transpose()?;
    let beta = beta.map(|b| Ok::<_, Fault>((last(b, [count, 1])?, T::load(b)?))).transpose()?;
    let state_dims = [batch, count, key_size, value_size];
    let past = call.optional(3)?;
    let mut states = match past {
        None => call.zeros::<T>(&state_dims)?,
        Some(past) if past.dims() == state_dims => T::load(past)?.into_owned(),
        Some(past) => {
            return Err(Fault::Invalid(format!(
                "past_state has shape {:?} where {state_dims:?} is needed",
                past.dims()
            )));
        }
    };
    let scale = match call.attributes.float("scale", 0.0)? {
        0.0 => 1.0 / (key_size as f64).sqrt(),
        scale => f64::from(scale),
    };
    let scale = T::from_f64(scale);
    let out_heads = Heads { size: value_size, ..queries };
    let out_dims = queries.dims(value_size);
    let mut out = call.zeros::<T>(&out_dims)?;
    let (q_values, k_values, v_values) = (T::load(q)?, T::load(k)?, T::load(v)?);
    let repeats = queries.count / count.max(1);
    let each = key_size * value_size;
    for b in 0..batch {
        for head in 0..count {
            let state = &mut states[(b * count + head) * each..][..each];
            for token in 0..length {
                let place = b * length + token;
                let key = &k_values[keys.row(b, head, token)..][..key_size];
                let mut value = v_values[values.row(b, head, token)..][..value_size].to_vec();
                if let Some((width, decay)) = &decay {
                    for (i, line) in state.chunks_mut(value_size.max(1)).enumerate() {
                        let at = if *width == count { head } else { head * key_size + i };
                        let factor = decay[place * width + at].exp();
                        line.iter_mut().for_each(|s| *s *= factor);
                    }
                }
                if let Some((width, beta)) = &beta {
                    let factor = beta[place * width + if *width == 1 { 0 } else { head }];
                    let mut known = vec![T::default(); value_size];
                    for (line, k) in state.chunks(value_size.max(1)).zip(key) {
                        known.iter_mut().zip(line).for_each(|(sum, s)| *sum += *s * *k);
                    }
                    value.iter_mut().zip(known).for_each(|(v, known)| *v = factor * (*v - known));
                }
                for (line, k) in state.chunks_mut(value_size.max(1)).zip(key) {
                    line.iter_mut().zip(&value).for_each(|(s, v)| *s += *k * *v);
                }
                for query_head in head * repeats..(head + 1) * repeats {
                    let query = &q_values[queries.row(b, query_head, token)..][..key_size];
                    let start = out_heads.row(b, query_head, token);
                    let sums = &mut out[start..start + value_size];
                    for (line, q) in state.chunks(value_size.max(1)).zip(query) {
                        sums.iter_mut().zip(line).for_each(|(sum, s)| *sum += *q * *s);
                    }
                    sums.iter_mut().for_each(|sum| *sum *= scale);
                }
            }
        }
    }
    let state_element = past.map_or(q.element(), Array::element);
    Ok(smallvec![
        Some(T::array(q.element(), &out_dims, out).into()),
        Some(T::array(state_element, &state_dims, states).into()),
    ])
}

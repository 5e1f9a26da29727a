//! RotaryEmbedding.

use super::heads::Heads;
use crate::engine::Fault;
use crate::engine::array::Array;
use crate::engine::embedded::call::{Call, Outputs, one};
use crate::engine::embedded::kernels::real::{Real, in_real};

/// RotaryEmbedding: pairs of elements, of both halves or side by side, are turned by the angles of their position.
pub fn rotary_embedding(call: &mut Call) -> Result<Outputs, Fault> {
    in_real!(call, 0, rotate)
}

fn rotate<T: Real>(call: &mut Call) -> Result<Outputs, Fault> {
    let heads = call.attributes.optional_int("num_heads")?.filter(|h| *h != 0);
    let partial = call.attributes.int("rotary_embedding_dim", 0)?;
    let interleaved = call.attributes.int("interleaved", 0)? != 0;
    let x = call.take(0)?;
    let own = Heads::of(x.dims(), heads)?;
    let rotated = match usize::try_from(partial) {
        Ok(0) => own.size,
        Ok(size) if size <= own.size => size,
        _ => return Err(Fault::Invalid(format!("rotary_embedding_dim={partial} of {}", own.size))),
    };
    let half = rotated / 2;
    let (cosine, sine) = (call.input(1)?, call.input(2)?);
    let positions = call.optional(3)?.map(Array::integers).transpose()?;
    let rows = match (cosine.dims(), &positions) {
        (&[rows, width], Some(p)) if width == half && p.len() == own.batch * own.length => rows,
        (&[batch, length, width], None) if (batch, length, width) == (own.batch, own.length, half) => {
            batch * length
        }
        (dims, _) => {
            return Err(Fault::Invalid(format!(
                "angles of shape {dims:?} do not fit {} positions and {half} pairs",
                own.batch * own.length
            )));
        }
    };
    if sine.dims() != cosine.dims() || rotated % 2 != 0 {
        return Err(Fault::Invalid("sines and cosines differ in shape, or there is half a pair".into()));
    }
    let (cosine, sine) = (T::load(cosine)?, T::load(sine)?);
    let (element, dims) = (x.element(), x.dims().to_vec());
    let mut values = T::take_from(x)?;
    for batch in 0..own.batch {
        for token in 0..own.length {
            let place = batch * own.length + token;
            let row = match &positions {
                None => place,
                Some(positions) => {
                    let position = positions[place];
                    // As an index: counted from the end when negative.
                    let position = if position < 0 { position + rows as i64 } else { position };
                    usize::try_from(position).ok().filter(|p| *p < rows).ok_or_else(|| {
                        Fault::Invalid(format!("position {} is not one of {rows}", positions[place]))
                    })?
                }
            };
            let (cosine, sine) = (&cosine[row * half..][..half], &sine[row * half..][..half]);
            for head in 0..own.count {
                let start = own.row(batch, head, token);
                let line = &mut values[start..start + rotated];
                for (i, (c, s)) in cosine.iter().zip(sine).enumerate() {
                    let (a, b) = if interleaved { (2 * i, 2 * i + 1) } else { (i, half + i) };
                    let (x, y) = (line[a], line[b]);
                    line[a] = *c * x - *s * y;
                    line[b] = *s * x + *c * y;
                }
            }
        }
    }
    one(T::array(element, &dims, values))
}

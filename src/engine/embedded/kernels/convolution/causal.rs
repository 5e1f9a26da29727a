//! CausalConvWithState.

use crate::engine::Fault;
use crate::engine::embedded::call::{Call, Outputs};
use crate::engine::embedded::kernels::real::{Real, in_real};
use smallvec::smallvec;

/// CausalConvWithState: each channel of a line is convolved with its own filter, which sees the present and the past;
/// the end of the line is the past of the next call. An activation is applied to the sum as it is rounded to the
/// element type, as in the function that defines the operator.
pub fn causal_conv(call: &mut Call) -> Result<Outputs, Fault> {
    in_real!(call, 0, causal)
}

fn causal<T: Real>(call: &mut Call) -> Result<Outputs, Fault> {
    let (x, filters) = (call.input(0)?, call.input(1)?);
    let activation = match call.attributes.text("activation", "none")? {
        "none" => false,
        "silu" | "swish" => true,
        other => return Err(Fault::Invalid(format!("activation={other} is not known"))),
    };
    let (&[batch, channels, length], &[filter_channels, 1, taps]) = (x.dims(), filters.dims()) else {
        return Err(Fault::Invalid(format!("shapes {:?} and {:?} do not fit", x.dims(), filters.dims())));
    };
    let (bias, past) = (call.optional(2)?, call.optional(3)?);
    if filter_channels != channels || taps == 0 || bias.is_some_and(|b| b.dims() != [channels]) {
        return Err(Fault::Invalid(format!(
            "filters of {:?} or a bias do not fit {channels} channels",
            filters.dims()
        )));
    }
    let state = [batch, channels, taps - 1];
    if let Some(past) = past
        && past.dims() != state
    {
        return Err(Fault::Invalid(format!("a state of {:?} where {state:?} is needed", past.dims())));
    }
    let (values, weights) = (T::load(x)?, T::load(filters)?);
    let (bias, past) = (bias.map(T::load).transpose()?, past.map(T::load).transpose()?);
    let mut sums = call.vec::<T>(x.dims())?;
    let mut present = call.vec::<T>(&state)?;
    let mut line = Vec::with_capacity(call.elements(&[length, 1], size_of::<T>())? + taps);
    for index in 0..batch * channels {
        line.clear();
        match &past {
            Some(past) => line.extend_from_slice(&past[index * (taps - 1)..(index + 1) * (taps - 1)]),
            None => line.resize(taps - 1, T::default()),
        }
        line.extend_from_slice(&values[index * length..(index + 1) * length]);
        let channel = index % channels;
        let weights = &weights[channel * taps..(channel + 1) * taps];
        let bias = bias.as_ref().map_or(T::default(), |b| b[channel]);
        sums.extend(
            line.windows(taps)
                .map(|seen| bias + seen.iter().zip(weights).fold(T::default(), |sum, (v, w)| sum + *v * *w)),
        );
        present.extend_from_slice(&line[length..]);
    }
    let mut y = T::array(x.element(), x.dims(), sums);
    if activation {
        let one = T::from_f64(1.0);
        let changed = T::load(&y)?.iter().map(|v| *v / (one + (-*v).exp())).collect();
        y = T::array(x.element(), x.dims(), changed);
    }
    Ok(smallvec![Some(y.into()), Some(T::array(x.element(), &state, present).into())])
}

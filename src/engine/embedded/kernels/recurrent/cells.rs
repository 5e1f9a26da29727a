//! The cells of LSTM, GRU and RNN.

use super::super::real::{Real, in_real};
use super::activation::Activation;
use super::layer::{Layer, expect};
use crate::engine::Fault;
use crate::engine::embedded::call::{Call, Outputs};
use crate::engine::embedded::products::Matrix;

/// RNN (all opsets).
pub fn rnn(call: &mut Call) -> Result<Outputs, Fault> {
    in_real!(call, 0, simple)
}

/// GRU (all opsets).
pub fn gru(call: &mut Call) -> Result<Outputs, Fault> {
    in_real!(call, 0, gated)
}

/// LSTM (all opsets).
pub fn lstm(call: &mut Call) -> Result<Outputs, Fault> {
    in_real!(call, 0, long_short)
}

fn simple<T: Real>(call: &mut Call) -> Result<Outputs, Fault> {
    let call = &*call;
    let layer = Layer::<T>::of(call, 1)?;
    let hidden = layer.hidden;
    let activations = Activation::<T>::list(&call.attributes, &["Tanh"], layer.reverse.len())?;
    let mut y = layer.sequence(call)?;
    let mut states = layer.state(call, 5)?;
    let mut sums = Vec::new();
    for (direction, state) in states.iter_mut().enumerate() {
        let weights = layer.weights(call, direction)?;
        let f = activations[direction];
        layer.run(direction, &weights, &mut y, state, |lines, state| {
            sums.clear();
            T::product(&mut sums, Matrix::new(state, layer.batch, hidden), weights.recurrence)?;
            for (entry, x) in lines {
                for j in 0..hidden {
                    let at = entry * hidden + j;
                    state[at] = f.of(layer.clipped(x[j] + sums[at] + weights.recurrence_bias[j]));
                }
            }
            Ok(())
        })?;
    }
    Ok(layer.outputs(call.input(0)?, y, vec![states]))
}

fn gated<T: Real>(call: &mut Call) -> Result<Outputs, Fault> {
    let call = &*call;
    let layer = Layer::<T>::of(call, 3)?;
    let hidden = layer.hidden;
    let before_reset = call.attributes.int("linear_before_reset", 0)? != 0;
    let activations = Activation::<T>::list(&call.attributes, &["Sigmoid", "Tanh"], layer.reverse.len())?;
    let mut y = layer.sequence(call)?;
    let mut states = layer.state(call, 5)?;
    let one = T::from_f64(1.0);
    let (mut sums, mut reset_sums) = (Vec::new(), Vec::new());
    let mut update = vec![T::default(); layer.batch * hidden];
    for (direction, state) in states.iter_mut().enumerate() {
        let weights = layer.weights(call, direction)?;
        let bias = &weights.recurrence_bias;
        let (f, g) = (activations[2 * direction], activations[2 * direction + 1]);
        let candidate = weights.recurrence.columns_from(2 * hidden);
        let mut reset = vec![T::default(); layer.batch * hidden];
        layer.run(direction, &weights, &mut y, state, |lines, state| {
            sums.clear();
            T::product(&mut sums, Matrix::new(state, layer.batch, hidden), weights.recurrence)?;
            for (entry, x) in lines {
                let sums = &sums[entry * 3 * hidden..(entry + 1) * 3 * hidden];
                for j in 0..hidden {
                    let at = entry * hidden + j;
                    update[at] = f.of(layer.clipped(x[j] + sums[j] + bias[j]));
                    let k = hidden + j;
                    reset[at] = f.of(layer.clipped(x[k] + sums[k] + bias[k]));
                    if !before_reset {
                        reset[at] *= state[at];
                    }
                }
            }
            if !before_reset {
                reset_sums.clear();
                T::product(&mut reset_sums, Matrix::new(&reset, layer.batch, hidden), candidate)?;
            }
            for (entry, x) in lines {
                for j in 0..hidden {
                    let (at, k) = (entry * hidden + j, 2 * hidden + j);
                    let recurrent = match before_reset {
                        true => reset[at] * (sums[entry * 3 * hidden + k] + bias[k]),
                        false => reset_sums[at] + bias[k],
                    };
                    let new = g.of(layer.clipped(x[k] + recurrent));
                    state[at] = (one - update[at]) * new + update[at] * state[at];
                }
            }
            Ok(())
        })?;
    }
    Ok(layer.outputs(call.input(0)?, y, vec![states]))
}

fn long_short<T: Real>(call: &mut Call) -> Result<Outputs, Fault> {
    let call = &*call;
    let layer = Layer::<T>::of(call, 4)?;
    let hidden = layer.hidden;
    let directions = layer.reverse.len();
    let coupled = call.attributes.int("input_forget", 0)? != 0;
    let activations = Activation::<T>::list(&call.attributes, &["Sigmoid", "Tanh", "Tanh"], directions)?;
    let peepholes = call.optional(7)?;
    if let Some(p) = peepholes {
        expect(p, "P", &[directions, 3 * hidden])?;
    }
    let peepholes = peepholes.map(T::load).transpose()?;
    let mut y = layer.sequence(call)?;
    let mut states = layer.state(call, 5)?;
    let mut cells = layer.state(call, 6)?;
    let one = T::from_f64(1.0);
    let mut sums = Vec::new();
    for (direction, (state, memory)) in states.iter_mut().zip(&mut cells).enumerate() {
        let weights = layer.weights(call, direction)?;
        let bias = &weights.recurrence_bias;
        let &[f, g, h] = &activations[3 * direction..3 * direction + 3] else { continue };
        let peephole = |gate: usize, j: usize, cell: T| match &peepholes {
            Some(p) => p[(direction * 3 + gate) * hidden + j] * cell,
            None => T::default(),
        };
        layer.run(direction, &weights, &mut y, state, |lines, state| {
            sums.clear();
            T::product(&mut sums, Matrix::new(state, layer.batch, hidden), weights.recurrence)?;
            for (entry, x) in lines {
                let sums = &sums[entry * 4 * hidden..(entry + 1) * 4 * hidden];
                // Gates in the order of the weights: input, output, forget, cell; peepholes: input, output, forget.
                let gate = |gate: usize, j: usize| {
                    let at = gate * hidden + j;
                    x[at] + sums[at] + bias[at]
                };
                for j in 0..hidden {
                    let at = entry * hidden + j;
                    let old = memory[at];
                    let input = f.of(layer.clipped(gate(0, j) + peephole(0, j, old)));
                    let forget = match coupled {
                        true => one - input,
                        false => f.of(layer.clipped(gate(2, j) + peephole(2, j, old))),
                    };
                    let new = forget * old + input * g.of(layer.clipped(gate(3, j)));
                    let output = f.of(layer.clipped(gate(1, j) + peephole(1, j, new)));
                    memory[at] = new;
                    state[at] = output * h.of(new);
                }
            }
            Ok(())
        })?;
    }
    Ok(layer.outputs(call.input(0)?, y, vec![states, cells]))
}

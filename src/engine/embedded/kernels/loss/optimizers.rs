//! One step of Adam, Adagrad, Momentum for any number of tensors.

use crate::engine::array::{Array, Element, Value};
use crate::engine::embedded::call::{Call, Outputs};
use crate::engine::fault::Fault;
use crate::ir::ElementType;

/// float32 or float64, computed in float64 and rounded once.
trait Number: Element + Copy {
    fn of(value: f64) -> Self;
    fn wide(self) -> f64;
}

impl Number for f32 {
    fn of(value: f64) -> f32 {
        value as f32
    }

    fn wide(self) -> f64 {
        f64::from(self)
    }
}

impl Number for f64 {
    fn of(value: f64) -> f64 {
        value
    }

    fn wide(self) -> f64 {
        self
    }
}

/// Learning rate and count of updates.
struct Progress {
    rate: f64,
    updates: i64,
}

/// Runs `step` on each element of each tensor: it gets value, gradient and states, and gives value and states anew.
fn optimized<const STATES: usize>(
    call: &Call,
    step: impl Fn(&Progress, f64, f64, [f64; STATES]) -> (f64, [f64; STATES]),
) -> Result<Outputs, Fault> {
    let each = 2 + STATES;
    let given = call.inputs.len().saturating_sub(2);
    if given == 0 || !given.is_multiple_of(each) {
        return Err(Fault::Invalid(format!("{given} tensors cannot be optimized in groups of {each}")));
    }
    let count = given / each;
    let rate = call.input(0)?;
    let rate =
        rate.approximate().and_then(|v| v.first().copied()).ok_or_else(|| Fault::element(rate.element()))?;
    let updates = call.input(1)?.single::<i64>()?;
    let progress = Progress { rate, updates };
    let mut outputs: Outputs = smallvec::smallvec![None; count * (1 + STATES)];
    for t in 0..count {
        let mut tensors = Vec::with_capacity(each);
        for k in 0..each {
            tensors.push(call.input(2 + t + k * count)?);
        }
        if tensors.iter().any(|a| a.dims() != tensors[0].dims() || a.element() != tensors[0].element()) {
            return Err(Fault::Invalid(format!("tensors of group {t} differ in shape or type")));
        }
        let results = match tensors[0].element() {
            ElementType::FLOAT => stepped::<f32, STATES>(call, &tensors, &progress, &step)?,
            ElementType::DOUBLE => stepped::<f64, STATES>(call, &tensors, &progress, &step)?,
            other => return Err(Fault::element(other)),
        };
        for (k, array) in results.into_iter().enumerate() {
            outputs[t + k * count] = Some(Value::Array(array));
        }
    }
    Ok(outputs)
}

fn stepped<T: Number, const STATES: usize>(
    call: &Call,
    tensors: &[&Array],
    progress: &Progress,
    step: &impl Fn(&Progress, f64, f64, [f64; STATES]) -> (f64, [f64; STATES]),
) -> Result<Vec<Array>, Fault> {
    let dims = tensors[0].dims();
    let views = tensors.iter().map(|a| a.view::<T>()).collect::<Result<Vec<_>, _>>()?;
    let mut results = Vec::with_capacity(1 + STATES);
    for _ in 0..1 + STATES {
        results.push(call.vec::<T>(dims)?);
    }
    for (i, (x, gradient)) in views[0].iter().zip(views[1]).enumerate() {
        let states = std::array::from_fn(|k| views[2 + k][i].wide());
        let (value, states) = step(progress, x.wide(), gradient.wide(), states);
        results[0].push(T::of(value));
        for (result, state) in results[1..].iter_mut().zip(states) {
            result.push(T::of(state));
        }
    }
    Ok(results.into_iter().map(|r| Array::new(dims, r)).collect())
}

/// Adagrad (1).
pub fn adagrad(call: &mut Call) -> Result<Outputs, Fault> {
    let a = call.attributes;
    let decay = f64::from(a.float("decay_factor", 0.0)?);
    let epsilon = f64::from(a.float("epsilon", 1e-6)?);
    let norm = f64::from(a.float("norm_coefficient", 0.0)?);
    optimized(call, |progress, x, gradient, [squares]| {
        let rate = progress.rate / (1.0 + progress.updates as f64 * decay);
        let gradient = norm * x + gradient;
        let squares = squares + gradient * gradient;
        (x - rate * gradient / (squares.sqrt() + epsilon), [squares])
    })
}

/// Adam (1).
pub fn adam(call: &mut Call) -> Result<Outputs, Fault> {
    let a = call.attributes;
    let alpha = f64::from(a.float("alpha", 0.9)?);
    let beta = f64::from(a.float("beta", 0.999)?);
    let epsilon = f64::from(a.float("epsilon", 1e-6)?);
    let norm = f64::from(a.float("norm_coefficient", 0.0)?);
    let after = f64::from(a.float("norm_coefficient_post", 0.0)?);
    optimized(call, |progress, x, gradient, [mean, squares]| {
        let gradient = norm * x + gradient;
        let mean = alpha * mean + (1.0 - alpha) * gradient;
        let squares = beta * squares + (1.0 - beta) * gradient * gradient;
        let t = progress.updates as f64;
        let rate = match progress.updates > 0 {
            true => progress.rate * (1.0 - beta.powf(t)).sqrt() / (1.0 - alpha.powf(t)),
            false => progress.rate,
        };
        let x = x - rate * mean / (squares.sqrt() + epsilon);
        ((1.0 - after) * x, [mean, squares])
    })
}

/// Momentum (1), standard and Nesterov's.
pub fn momentum(call: &mut Call) -> Result<Outputs, Fault> {
    let a = call.attributes;
    let needed = |name: &str| match a.get(name) {
        Some(v) => {
            v.float().map(f64::from).ok_or_else(|| Fault::Invalid(format!("attribute {name} is not a float")))
        }
        None => Err(Fault::Invalid(format!("attribute {name} is missing"))),
    };
    let (alpha, beta, norm) = (needed("alpha")?, needed("beta")?, needed("norm_coefficient")?);
    let nesterov = match a.text("mode", "")? {
        "nesterov" => true,
        "standard" => false,
        other => return Err(Fault::Invalid(format!("mode {other:?} is neither standard nor nesterov"))),
    };
    optimized(call, |progress, x, gradient, [momentum]| {
        let gradient = norm * x + gradient;
        let beta = if progress.updates > 0 { beta } else { 1.0 };
        let momentum = alpha * momentum + beta * gradient;
        let way = if nesterov { gradient + alpha * momentum } else { momentum };
        (x - progress.rate * way, [momentum])
    })
}

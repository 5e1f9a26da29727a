//! Activation functions that recurrent layers name in an attribute.

use super::super::real::Real;
use crate::engine::Fault;
use crate::engine::embedded::call::Attributes;

/// An activation with its parameters.
#[derive(Clone, Copy)]
pub struct Activation<T> {
    kind: Kind,
    alpha: T,
    beta: T,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Relu,
    Tanh,
    Sigmoid,
    Affine,
    LeakyRelu,
    ThresholdedRelu,
    ScaledTanh,
    HardSigmoid,
    Elu,
    Softsign,
    Softplus,
}

/// Names, and what alpha and beta are when they are not given; `None` where the function has no such parameter.
const KINDS: [(&str, Kind, Option<f64>, Option<f64>); 11] = [
    ("Relu", Kind::Relu, None, None),
    ("Tanh", Kind::Tanh, None, None),
    ("Sigmoid", Kind::Sigmoid, None, None),
    ("Affine", Kind::Affine, Some(1.0), Some(0.0)),
    ("LeakyRelu", Kind::LeakyRelu, Some(0.01), None),
    ("ThresholdedRelu", Kind::ThresholdedRelu, Some(1.0), None),
    ("ScaledTanh", Kind::ScaledTanh, Some(1.0), Some(1.0)),
    ("HardSigmoid", Kind::HardSigmoid, Some(0.2), Some(0.5)),
    ("Elu", Kind::Elu, Some(1.0), None),
    ("Softsign", Kind::Softsign, None, None),
    ("Softplus", Kind::Softplus, None, None),
];

impl<T: Real> Activation<T> {
    /// The activations of all directions in order. Parameters are used up by the functions that have them.
    pub fn list(attributes: &Attributes, defaults: &[&str], directions: usize) -> Result<Vec<Self>, Fault> {
        let given = attributes.texts("activations")?.filter(|names| !names.is_empty());
        let names: Vec<String> = match given {
            Some(names) => names.iter().map(|n| String::from_utf8_lossy(n).into_owned()).collect(),
            None => (0..directions).flat_map(|_| defaults).map(|n| (*n).to_owned()).collect(),
        };
        if names.len() != defaults.len() * directions {
            return Err(Fault::Invalid(format!(
                "activations={names:?} where {} for each of {directions} directions are needed",
                defaults.len()
            )));
        }
        let mut alphas = attributes.floats("activation_alpha")?.unwrap_or(&[]).iter();
        let mut betas = attributes.floats("activation_beta")?.unwrap_or(&[]).iter();
        let parameter = |given: &mut std::slice::Iter<f32>, default: Option<f64>| match default {
            None => T::default(),
            Some(default) => T::from_f64(given.next().map_or(default, |v| f64::from(*v))),
        };
        names
            .iter()
            .map(|name| {
                let known = KINDS.iter().find(|k| k.0.eq_ignore_ascii_case(name));
                let (_, kind, alpha, beta) =
                    *known.ok_or_else(|| Fault::Invalid(format!("activation {name} is not known")))?;
                Ok(Activation {
                    kind,
                    alpha: parameter(&mut alphas, alpha),
                    beta: parameter(&mut betas, beta),
                })
            })
            .collect()
    }

    /// The value of the function.
    pub fn of(self, x: T) -> T {
        let (zero, one) = (T::default(), T::from_f64(1.0));
        match self.kind {
            Kind::Relu => {
                if x < zero {
                    zero
                } else {
                    x
                }
            }
            Kind::Tanh => x.tanh(),
            Kind::Sigmoid => one / (one + (-x).exp()),
            Kind::Affine => self.alpha * x + self.beta,
            Kind::LeakyRelu => {
                if x < zero {
                    self.alpha * x
                } else {
                    x
                }
            }
            Kind::ThresholdedRelu => {
                if x > self.alpha {
                    x
                } else {
                    zero
                }
            }
            Kind::ScaledTanh => self.alpha * (self.beta * x).tanh(),
            Kind::HardSigmoid => bounded(self.alpha * x + self.beta, zero, one),
            Kind::Elu => {
                if x < zero {
                    self.alpha * (x.exp() - one)
                } else {
                    x
                }
            }
            Kind::Softsign => x / (one + x.abs()),
            Kind::Softplus => {
                let positive = if x > zero { x } else { zero };
                positive + (-x.abs()).exp().ln_1p()
            }
        }
    }
}

/// A number within bounds; NaN stays NaN.
pub fn bounded<T: Real>(x: T, low: T, high: T) -> T {
    if x < low {
        low
    } else if x > high {
        high
    } else {
        x
    }
}

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

/// Whether a function has a parameter, and what it is when it is not given.
#[derive(Clone, Copy)]
enum Parameter {
    Absent,
    Optional(f64),
    /// The standard has no operator of this name that a default could be taken from.
    Needed,
}
use Parameter::{Absent, Needed, Optional};

/// Names, alpha and beta; the defaults are those of the operators of the same name.
const KINDS: [(&str, Kind, Parameter, Parameter); 11] = [
    ("Relu", Kind::Relu, Absent, Absent),
    ("Tanh", Kind::Tanh, Absent, Absent),
    ("Sigmoid", Kind::Sigmoid, Absent, Absent),
    ("Affine", Kind::Affine, Needed, Needed),
    ("LeakyRelu", Kind::LeakyRelu, Optional(0.01), Absent),
    ("ThresholdedRelu", Kind::ThresholdedRelu, Optional(1.0), Absent),
    ("ScaledTanh", Kind::ScaledTanh, Needed, Needed),
    ("HardSigmoid", Kind::HardSigmoid, Optional(0.2), Optional(0.5)),
    ("Elu", Kind::Elu, Optional(1.0), Absent),
    ("Softsign", Kind::Softsign, Absent, Absent),
    ("Softplus", Kind::Softplus, Absent, Absent),
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
        let parameter = |given: &mut std::slice::Iter<f32>, parameter: Parameter| -> Result<T, Fault> {
            Ok(T::from_f64(match parameter {
                Absent => 0.0,
                Optional(default) => given.next().map_or(default, |v| f64::from(*v)),
                Needed => {
                    let message = "activations Affine and ScaledTanh have no kernel without alpha and beta";
                    let given = given.next().ok_or_else(|| Fault::Unsupported(message.into()))?;
                    f64::from(*given)
                }
            }))
        };
        names
            .iter()
            .map(|name| {
                let known = KINDS.iter().find(|k| k.0.eq_ignore_ascii_case(name));
                let (_, kind, alpha, beta) =
                    *known.ok_or_else(|| Fault::Invalid(format!("activation {name} is not known")))?;
                Ok(Activation {
                    kind,
                    alpha: parameter(&mut alphas, alpha)?,
                    beta: parameter(&mut betas, beta)?,
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

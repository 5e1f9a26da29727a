//! What can go wrong while a model runs.

use crate::ir::{ElementType, Text};

/// Why one node could not run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Fault {
    /// The engine has no kernel for this operator, or none for these types or this variant.
    #[error("{0}")]
    Unsupported(String),
    /// The node, its weights or its inputs are not what the standard allows.
    #[error("{0}")]
    Invalid(String),
    /// More memory would be needed than the run may use.
    #[error("{needed} bytes would be needed where {limit} are allowed")]
    TooLarge { needed: u64, limit: u64 },
    /// The run was cancelled.
    #[error("cancelled")]
    Cancelled,
}

impl Fault {
    /// An element type that a kernel has no code for.
    pub fn element(element: ElementType) -> Fault {
        Fault::Unsupported(format!("it has no kernel for {element} here"))
    }
}

/// Why a model could not be prepared or run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum EngineError {
    /// Operators without a kernel, each with the labels of the nodes that need it.
    #[error("{}", unsupported(.0))]
    NoKernel(Vec<(Text, Vec<Text>)>),
    /// One node failed.
    #[error("node {node} ({operator}): {fault}")]
    Node { node: Text, operator: Text, fault: Fault },
    /// An input is missing, unknown, or does not fit.
    #[error("input {name}: {message}")]
    Input { name: Text, message: String },
    /// The model itself cannot run: no such value, a missing weight.
    #[error("{0}")]
    Model(String),
    /// The engine is not there, or stopped.
    #[error("{0}")]
    Engine(String),
    #[error("cancelled")]
    Cancelled,
}

impl EngineError {
    /// True when the model was not run for want of a kernel, not because something went wrong.
    pub fn is_unsupported(&self) -> bool {
        matches!(self, EngineError::NoKernel(_) | EngineError::Node { fault: Fault::Unsupported(_), .. })
    }
}

fn unsupported(operators: &[(Text, Vec<Text>)]) -> String {
    let named: Vec<String> = operators
        .iter()
        .map(|(operator, nodes)| match nodes.as_slice() {
            [] => format!("operator {operator} has no kernel"),
            [one] => format!("operator {operator} has no kernel (node {one})"),
            [first, rest @ ..] => {
                format!("operator {operator} has no kernel (node {first} and {} more)", rest.len())
            }
        })
        .collect();
    named.join("; ")
}

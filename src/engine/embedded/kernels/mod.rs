//! Code for operators, one folder a family.

use super::call::Kernel;

/// Names a family's kernels: the list that is looked up and the list that is shown are the same.
macro_rules! kernels {
    ($($name:literal => $kernel:expr,)*) => {
        /// Operators of this family.
        pub const NAMES: &[&str] = &[$($name),*];

        /// The kernel of an operator of this family.
        pub fn find(op_type: &str) -> Option<$crate::engine::embedded::call::Kernel> {
            #[allow(unused_imports, reason = "a family may have no plain kernel")]
            use $crate::engine::embedded::call::Kernel;
            match op_type { $($name => Some($kernel),)* _ => None }
        }
    };
}

mod attention;
mod convolution;
mod detect;
mod elementwise;
mod loss;
mod movement;
mod normalize;
mod product;
mod quantized;
mod real;
mod recurrent;
mod reduce;
mod sequence;
mod shape;
mod text;
mod vendor;

/// Names of a family's operators, and how each is found.
type Family = (&'static [&'static str], fn(&str) -> Option<Kernel>);

/// Families of the standard domain.
const STANDARD: &[Family] = &[
    (attention::NAMES, attention::find),
    (convolution::NAMES, convolution::find),
    (detect::NAMES, detect::find),
    (elementwise::NAMES, elementwise::find),
    (loss::NAMES, loss::find),
    (movement::NAMES, movement::find),
    (normalize::NAMES, normalize::find),
    (product::NAMES, product::find),
    (quantized::NAMES, quantized::find),
    (recurrent::NAMES, recurrent::find),
    (sequence::NAMES, sequence::find),
    (reduce::NAMES, reduce::find),
    (shape::NAMES, shape::find),
    (text::NAMES, text::find),
    (vendor::unofficial::NAMES, vendor::unofficial::find),
];

/// Families of com.microsoft: operators of ONNX Runtime that models in the wild have.
const MICROSOFT: &[Family] = &[
    (quantized::contributed::NAMES, quantized::contributed::find),
    (text::contributed::NAMES, text::contributed::find),
    (vendor::NAMES, vendor::find),
];

/// The kernel of an operator of the standard domain.
fn standard(op_type: &str) -> Option<Kernel> {
    STANDARD.iter().find_map(|(_, find)| find(op_type))
}

/// The kernel of an operator; `domain` is `""` for the standard one. Control flow is the runner's own.
pub fn find(domain: &str, op_type: &str) -> Option<Kernel> {
    match domain {
        "" | "ai.onnx" => standard(op_type),
        "com.microsoft" => MICROSOFT.iter().find_map(|(_, find)| find(op_type)),
        "ai.onnx.preview.training" | "ai.onnx.training" => loss::training::find(op_type),
        _ => None,
    }
}

/// Operators with a kernel, as (domain, operator), sorted.
pub fn all() -> Vec<(&'static str, &'static str)> {
    let mut names = Vec::new();
    names.extend(loss::training::NAMES.iter().map(|n| ("ai.onnx.preview.training", *n)));
    for (domain, families) in [("", STANDARD), ("com.microsoft", MICROSOFT)] {
        names.extend(families.iter().flat_map(|(names, _)| names.iter().map(|n| (domain, *n))));
    }
    names.sort_unstable();
    names
}

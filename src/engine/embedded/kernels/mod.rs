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

mod convolution;
mod normalize;
mod product;
mod shape;

/// Families of the standard domain.
const STANDARD: &[(&[&str], fn(&str) -> Option<Kernel>)] = &[
    (convolution::NAMES, convolution::find),
    (normalize::NAMES, normalize::find),
    (product::NAMES, product::find),
    (shape::NAMES, shape::find),
];

/// The kernel of an operator; `domain` is `""` for the standard one. Control flow is the runner's own.
pub fn find(domain: &str, op_type: &str) -> Option<Kernel> {
    match domain {
        "" | "ai.onnx" => STANDARD.iter().find_map(|(_, find)| find(op_type)),
        _ => None,
    }
}

/// Operators with a kernel, as (domain, operator), sorted.
pub fn all() -> Vec<(&'static str, &'static str)> {
    let mut names: Vec<_> = STANDARD.iter().flat_map(|(names, _)| names.iter().map(|n| ("", *n))).collect();
    names.sort_unstable();
    names
}

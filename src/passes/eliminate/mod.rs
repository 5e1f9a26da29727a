//! Passes that remove what does nothing.

pub mod common_subexpressions;
pub mod identity;
pub mod no_op;

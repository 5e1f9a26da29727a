//! Passes that merge changes of layout.

pub mod merge_reshapes;
pub mod merge_transposes;
mod reshape_plan;

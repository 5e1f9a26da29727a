//! Passes that close every round.

pub mod dead_code;

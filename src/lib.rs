//! passlens opens neural-network models as hierarchical graphs, applies optimization passes one rewrite at a time,
//! and shows what each one did.

pub mod blocks;
pub mod cli;
pub mod facts;
pub mod formats;
#[cfg(feature = "gui")]
pub mod gui;
pub mod ir;
pub mod passes;
pub mod pipeline;
pub mod samples;
pub mod scene;
pub mod session;
pub mod table;

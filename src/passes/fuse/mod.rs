//! Passes that merge several operations into one.

pub mod conv_batch_norm;
pub mod matmul_add;

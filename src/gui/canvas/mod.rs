//! The canvas: draws the picture of a graph and lets a person move about in it.

pub mod camera;
pub mod index;

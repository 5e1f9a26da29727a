//! ONNX files: message types, the wire level, import and export.

pub mod proto;
pub mod schema;
pub mod wire;

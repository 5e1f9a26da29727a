//! Models as files: ONNX and the JSON graph. Nothing outside this room knows protobuf.

pub mod onnx;

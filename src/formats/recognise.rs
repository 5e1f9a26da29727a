//! Files that are no model: what people open by mistake is told apart by its first bytes.

use bytes::Bytes;

/// What else a file is, as the rest of a sentence; `None` when it may be a model.
pub fn foreign(bytes: &Bytes) -> Option<&'static str> {
    let starts = |magic: &[u8]| bytes.starts_with(magic);
    let at_4 = bytes.get(4..8).unwrap_or_default();
    if bytes.is_empty() {
        Some("the file is empty")
    } else if starts(b"PK\x03\x04") || starts(b"PK\x05\x06") {
        Some("it is a zip archive (a PyTorch checkpoint or a packed model?), not an ONNX model")
    } else if starts(b"\x1f\x8b") {
        Some("it is gzip-compressed; unpack it first")
    } else if starts(b"\x89HDF\r\n") {
        Some("it is an HDF5 file (a Keras model?), not an ONNX model")
    } else if starts(b"version https://git-lfs") {
        Some("it is a Git LFS pointer; the model itself has not been downloaded (git lfs pull)")
    } else if at_4 == b"TFL3" {
        Some("it is a TensorFlow Lite model, not an ONNX model")
    } else if at_4 == b"ORTM" {
        Some("it is a model in ONNX Runtime's own format (.ort), not an ONNX model")
    } else if starts(b"GGUF") {
        Some("it is a GGUF file, not an ONNX model")
    } else if starts(b"\x80\x02") || starts(b"\x80\x04") {
        Some("it is a Python pickle, not an ONNX model")
    } else if starts(b"<!DOCTYPE") || starts(b"<html") || starts(b"<?xml") {
        Some("it is a web page or XML, not an ONNX model (a download that failed?)")
    } else if bytes.iter().all(|byte| *byte == 0) {
        Some("it holds nothing but zero bytes")
    } else {
        None
    }
}

//! Any bytes as a JSON graph: a model that exports again, or an error; never a panic.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use passlens::formats::{json, onnx::export::export, onnx::external::Inline};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(imported) = json::read(bytes, Path::new("fuzzed")) {
        if imported.unusable().is_none() {
            export(&imported.model, &mut Inline, &Default::default()).unwrap();
        }
    }
});

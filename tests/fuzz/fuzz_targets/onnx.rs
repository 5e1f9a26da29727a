//! Any bytes as an ONNX file: a model that exports again, or an error; never a panic.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use passlens::formats::onnx::{self, export::export, external::Inline};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(imported) = onnx::read(bytes.to_vec().into(), Path::new("fuzzed"), None) {
        if imported.unusable().is_none() {
            export(&imported.model, &mut Inline, &Default::default()).unwrap();
        }
    }
});

//! Damaged files: whatever bytes come in, the readers answer with a model or with one sentence, never with a panic; and a
//! model that opened can be written and read again. `tests/fuzz` has the same as targets for cargo-fuzz.

use std::path::Path;

use passlens::formats::onnx::export::export;
use passlens::formats::onnx::external::Inline;
use passlens::formats::{FormatError, Imported, json, onnx};
use passlens::ir::check::{Fault, check};
use proptest::prelude::*;
use prost::Message;

const DOCUMENTS: [&str; 4] = [
    include_str!("formats/attributes.json"),
    include_str!("formats/dtypes.json"),
    include_str!("formats/presence.json"),
    include_str!("formats/unknown.json"),
];

/// One change of a file; places are taken modulo its length.
#[derive(Clone, Debug)]
enum Damage {
    Set(usize, u8),
    Flip(usize, u8),
    Cut(usize),
    Remove(usize, usize),
    Repeat(usize, usize, usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let place = any::<usize>();
    prop_oneof![
        3 => (place, any::<u8>()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        3 => (place, 0u8..8).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        1 => place.prop_map(Damage::Cut),
        1 => (place, 1usize..16).prop_map(|(at, count)| Damage::Remove(at, count)),
        1 => (place, place, 1usize..64).prop_map(|(from, to, count)| Damage::Repeat(from, to, count)),
    ]
}

fn apply(bytes: &mut Vec<u8>, damage: &Damage) {
    let length = bytes.len().max(1);
    match damage {
        Damage::Set(at, byte) => bytes.iter_mut().skip(at % length).take(1).for_each(|b| *b = *byte),
        Damage::Flip(at, bit) => bytes.iter_mut().skip(at % length).take(1).for_each(|b| *b ^= 1 << bit),
        Damage::Cut(at) => bytes.truncate(at % length),
        Damage::Remove(at, count) => {
            let from = (at % length).min(bytes.len());
            let to = (from + count).min(bytes.len());
            bytes.drain(from..to);
        }
        Damage::Repeat(from, to, count) => {
            let part: Vec<u8> = bytes.iter().skip(from % length).take(*count).copied().collect();
            let to = (to % length).min(bytes.len());
            bytes.splice(to..to, part);
        }
    }
}

fn judge(read: Result<Imported, FormatError>) {
    match read {
        Err(error) => {
            let error = error.to_string();
            assert!(!error.contains('\n') && error.len() < 1000, "{error}");
        }
        Ok(imported) => {
            // Names that hide outer ones are a problem that is listed, no reason to refuse.
            let faults = check(&imported.model);
            let serious = faults.iter().find(|fault| !matches!(fault, Fault::NameTaken { .. }));
            assert_eq!(serious, None);
            if imported.unusable().is_some() {
                return;
            }
            let first = export(&imported.model, &mut Inline, &Default::default()).unwrap();
            let bytes = onnx::extra::encode(&first.message, onnx::schema::MessageKind::Model, &first.unknown);
            let again = onnx::read_message(bytes, Path::new("again"), None).unwrap();
            let second = export(&again.model, &mut Inline, &Default::default()).unwrap();
            assert!(first.message.encode_to_vec() == second.message.encode_to_vec());
            assert_eq!(first.unknown, second.unknown);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_onnx_files(document in 0..DOCUMENTS.len(), damages in prop::collection::vec(damage(), 1..4)) {
        let mut bytes = json::to_protobuf(DOCUMENTS[document].as_bytes()).unwrap();
        damages.iter().for_each(|damage| apply(&mut bytes, damage));
        judge(onnx::read(bytes.into(), Path::new("damaged"), None));
    }

    #[test]
    fn damaged_json_graphs(document in 0..DOCUMENTS.len(), damages in prop::collection::vec(damage(), 1..4)) {
        let mut bytes = DOCUMENTS[document].as_bytes().to_vec();
        damages.iter().for_each(|damage| apply(&mut bytes, damage));
        judge(json::read(&bytes, Path::new("damaged")));
    }

    #[test]
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        judge(onnx::read(bytes.clone().into(), Path::new("random"), None));
        judge(json::read(&bytes, Path::new("random")));
    }
}

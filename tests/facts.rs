//! How much is known of real models without running them: a floor for each, which may only rise.
//! With `PASSLENS_DUMP_FACTS=FOLDER` every value's type is written there, a JSON file a model, to be held against a run.

use passlens::facts::Facts;
use passlens::formats;
use passlens::ir::{Dim, Type};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/facts/coverage.tsv");

/// Element types that are known, and shapes whose every dimension is, of all values of the main graph, in percent.
fn coverage(path: &Path) -> (usize, usize) {
    let model = formats::open(path).unwrap_or_else(|e| panic!("{e}")).model;
    let facts = Facts::infer(&model);
    let (mut values, mut typed, mut shaped) = (0, 0, 0);
    let mut dump: BTreeMap<String, String> = BTreeMap::new();
    for (id, value) in model.values().filter(|(_, v)| v.graph == model.main()) {
        let ty = facts.ty(&model, id);
        let known = |d: &Dim| !matches!(d, Dim::Unknown) && !d.to_string().contains('?');
        values += 1;
        typed += usize::from(!matches!(ty, Type::Unknown));
        // What is no tensor has no shape to be known.
        let tensor = matches!(ty, Type::Tensor { .. });
        let whole = ty.shape().is_some_and(|s| s.iter().all(known));
        shaped += usize::from(whole || (!tensor && !matches!(ty, Type::Unknown)));
        dump.insert(value.name.to_string(), ty.to_string());
    }
    if let Some(folder) = std::env::var_os("PASSLENS_DUMP_FACTS") {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = serde_json::to_string_pretty(&dump).unwrap();
        std::fs::write(PathBuf::from(folder).join(name + ".json"), text).unwrap();
    }
    let percent = |n: usize| n * 100 / values.max(1);
    (percent(typed), percent(shaped))
}

#[test]
fn what_is_known_of_the_shared_models_does_not_shrink() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/models");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        println!("skipped: {} is not there", folder.display());
        return;
    };
    let mut paths: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "onnx"));
    paths.sort();
    let bless = std::env::var_os("PASSLENS_BLESS").is_some();
    let floors = std::fs::read_to_string(TABLE).unwrap_or_default();
    let mut rows = String::from("model\ttyped\tshaped\n");
    let mut low = Vec::new();
    for path in &paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (typed, shaped) = coverage(path);
        rows.push_str(&format!("{name}\t{typed}\t{shaped}\n"));
        let floor = floors.lines().find_map(|l| {
            let mut cells = l.split('\t');
            (cells.next()? == name).then_some((cells.next()?.parse().ok()?, cells.next()?.parse().ok()?))
        });
        let (least_typed, least_shaped): (usize, usize) = floor.unwrap_or((0, 0));
        if typed < least_typed || shaped < least_shaped {
            low.push(format!(
                "{name}: {typed} % typed and {shaped} % shaped, was {least_typed} and {least_shaped}"
            ));
        }
    }
    if bless {
        std::fs::write(TABLE, rows).unwrap();
    }
    assert!(bless || low.is_empty(), "less is known than before: {low:#?}");
}

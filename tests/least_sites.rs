//! Passes fire: the least number of sites per pass and model, and the most nodes that all of them may leave.
//!
//! `tests/passes/least_sites.tsv` has a line a model and pass; pass `all` gives the nodes left. The models lie beside the
//! repository, in `../shared/models`; without them there is nothing to hold against. `PASSLENS_BLESS=1` writes the table.

use passlens::ir::check;
use passlens::pipeline::{Config, Options, Registry, Run, Runner};
use passlens::{formats, passes};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

fn run(model: &passlens::ir::Model, only: Option<&str>) -> Run {
    let mut config = Config::default();
    if let Some(name) = only {
        config.set_only(&[name.to_owned()]);
    }
    let cancel = AtomicBool::new(false);
    let mut options = Options { stop_at: None, cancel: &cancel, progress: &mut |_| {} };
    Runner::new(model.clone()).run(&Registry::builtin(), &config, &mut options)
}

fn measured(folder: &Path) -> BTreeMap<(String, String), usize> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "onnx"));
    files.sort();
    let mut table = BTreeMap::new();
    for file in files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let model = formats::open(&file).unwrap_or_else(|e| panic!("{name}: {e}")).model;
        for pass in passes::builtin() {
            let pass = pass.info().name;
            let done = run(&model, Some(pass));
            let failed: Vec<_> = done.passes.iter().flat_map(|p| &p.failures).collect();
            assert!(failed.is_empty(), "{name}: {pass}: {failed:?}");
            table.insert((name.clone(), pass.to_owned()), done.steps.len());
        }
        let done = run(&model, None);
        let after = done.last_state().model;
        assert_eq!(check::check(&after), [], "{name}");
        table.insert((name, "all".to_owned()), after.node_count());
    }
    table
}

#[test]
fn every_pass_fires_at_least_as_often_as_the_table_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let models = root.join("../shared/models");
    if !models.is_dir() {
        eprintln!("nothing to hold the table against: {} is not there", models.display());
        return;
    }
    let found = measured(&models);
    let path = root.join("tests/passes/least_sites.tsv");
    if std::env::var_os("PASSLENS_BLESS").is_some() {
        let mut text = String::from("model\tpass (all: most nodes left)\tleast sites\n");
        for ((model, pass), n) in found.iter().filter(|((_, pass), n)| **n > 0 || pass == "all") {
            text += &format!("{model}\t{pass}\t{n}\n");
        }
        std::fs::write(&path, text).unwrap();
        return;
    }
    let mut wrong = Vec::new();
    for line in std::fs::read_to_string(&path).unwrap().lines().skip(1) {
        let [model, pass, n] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("three columns: {line}")
        };
        let n: usize = n.parse().unwrap();
        let Some(now) = found.get(&(model.to_owned(), pass.to_owned())) else { continue };
        if (pass == "all" && *now > n) || (pass != "all" && *now < n) {
            wrong.push(format!("{model}: {pass}: {n} became {now}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

//! How much is known of real models without running them: a floor for each, which may only rise.
//! With `PASSLENS_DUMP_FACTS=FOLDER` every value's type is written there, a JSON file a model, to be held against a run.

use passlens::facts::Facts;
use passlens::formats;
use passlens::ir::{Attribute, Dim, Node, NodeId, PatchBuilder, Type, ValueId};
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

fn shared(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared").join(file)
}

#[test]
fn a_lying_declaration_is_a_problem_and_does_not_win() {
    let path = shared("cases/value_info_lies.onnx");
    if !path.exists() {
        eprintln!("not there, not looked at: {}", path.display());
        return;
    }
    let model = formats::open(&path).unwrap().model;
    let facts = Facts::infer(&model);
    let a = model.find_value(model.main(), "a").unwrap();
    assert_eq!(facts.ty(&model, a).to_string(), "float[N, 3]");
    assert!(facts.problems().iter().any(|p| p.value == a), "{:?}", facts.problems());
}

#[test]
fn following_patches_and_their_inverses_agrees_with_inferring_anew() {
    let path = shared("models/bert_12l_ts_op14.onnx");
    if !path.exists() {
        eprintln!("not there, not looked at: {}", path.display());
        return;
    }
    let mut model = formats::open(&path).unwrap().model;
    let before = Facts::infer(&model);
    let mut facts = before.clone();
    let transposes: Vec<_> =
        model.nodes_of(model.main()).filter(|(_, n)| n.is("Transpose")).map(|(id, _)| id).collect();
    let mut inverses = Vec::new();
    for id in &transposes {
        // The transpose and its inverse in place of the plain input: new nodes and values, equal meaning.
        let node = model.node(*id).clone();
        let rank = facts.ty(&model, node.input(0).unwrap()).rank().unwrap() as i64;
        let mut p = PatchBuilder::new(&model);
        let middle = p.value(node.graph, "reversed", Type::Unknown);
        let again = p.value(node.graph, "restored", Type::Unknown);
        for (from, to) in [(node.input(0).unwrap(), middle), (middle, again)] {
            let mut reverse = Node::new(node.graph, "Transpose");
            reverse.inputs.push(Some(from));
            reverse.outputs.push(Some(to));
            reverse.attributes.push(Attribute::new("perm", (0..rank).rev().collect::<Vec<i64>>()));
            p.node_before(*id, reverse).unwrap();
        }
        p.set_inputs(*id, [Some(again)]);
        let mut patch = p.finish();
        let (nodes, values, _) = model.id_bounds();
        patch.resolve(&mut |k| NodeId(nodes + k), &mut |k| ValueId(values + k));
        let (inverse, touched) = model.apply(&patch).unwrap();
        facts.update(&model, &touched);
        inverses.push(inverse);
    }
    assert!(inverses.len() > 10);
    let anew = Facts::infer(&model);
    for (id, v) in model.values() {
        let (followed, inferred) = (facts.ty(&model, id), anew.ty(&model, id));
        assert!(followed == inferred, "{}: {followed} by following, {inferred} anew", v.name);
    }
    for inverse in inverses.iter().rev() {
        let (_, touched) = model.apply(inverse).unwrap();
        facts.update(&model, &touched);
    }
    for (id, v) in model.values() {
        let (followed, inferred) = (facts.ty(&model, id), before.ty(&model, id));
        assert!(followed == inferred, "{}: {followed} by following, {inferred} anew", v.name);
    }
}

//! Before/after files of every pass: `tests/passes/PASS/CASE.txt`.
//!
//! A file has comment lines, `pass: NAME`, a graph in the text form, `----`, the graph expected afterwards (as printed),
//! and for each near miss that is left a line `blocked: CONDITION @ NODE`. `PASSLENS_BLESS=1 cargo test --test passes`
//! writes what comes out; review it as a diff.

use passlens::blocks::BlockTree;
use passlens::facts::Facts;
use passlens::ir::{self, Model, NodeId, Patch, ValueId, check, text};
use passlens::passes::{self, Blocked, Context, Declined, Pass, Site};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// One pass over all graphs: every site once, and what opens up around each rewrite. Gives the steps' inverses too.
fn run_once(model: &mut Model, pass: &dyn Pass) -> Vec<Patch> {
    let cancel = AtomicBool::new(false);
    let blocks = BlockTree::default();
    let mut facts = Facts::infer(model);
    let mut inverses = Vec::new();
    for graph in model.live_graphs() {
        if !model.live_graphs().contains(&graph) {
            continue;
        }
        let cx = Context { model, facts: &facts, blocks: &blocks, cancel: &cancel };
        let mut open: VecDeque<Site> = pass.find(&cx, graph, None).sites.into();
        while let Some(site) = open.pop_front() {
            let cx = Context { model, facts: &facts, blocks: &blocks, cancel: &cancel };
            let Ok(mut patch) = pass.rewrite(&cx, &site) else { continue };
            let (nodes, values, _) = model.id_bounds();
            patch.resolve(&mut |i| NodeId(nodes + i), &mut |i| ValueId(values + i));
            let (inverse, touched) = model.apply(&patch).expect("a patch of a pass applies");
            inverses.push(inverse);
            facts.update(model, &touched);
            let around: Vec<NodeId> = touched.nodes.into_iter().collect();
            let cx = Context { model, facts: &facts, blocks: &blocks, cancel: &cancel };
            open.extend(pass.find(&cx, graph, Some(&around)).sites);
        }
    }
    inverses
}

fn near_misses(model: &Model, pass: &dyn Pass) -> Vec<Blocked> {
    let (cancel, blocks, facts) = (AtomicBool::new(false), BlockTree::default(), Facts::infer(model));
    let cx = Context { model, facts: &facts, blocks: &blocks, cancel: &cancel };
    let mut missed = Vec::new();
    for graph in model.live_graphs() {
        let found = pass.find(&cx, graph, None);
        missed.extend(found.blocked);
        // Some conditions only show when the rewrite is tried.
        for site in found.sites {
            if let Err(Declined::Blocked(blocked)) = pass.rewrite(&cx, &site) {
                missed.push(blocked);
            }
        }
    }
    missed
}

fn pass(name: &str) -> Arc<dyn Pass> {
    passes::builtin().into_iter().find(|p| p.info().name == name).unwrap_or_else(|| panic!("no pass {name}"))
}

fn parse(source: &str, place: &str) -> Model {
    let model = text::parse(source, Path::new(".")).unwrap_or_else(|e| panic!("{place}: {e}"));
    assert_eq!(check::check(&model), [], "{place}");
    model
}

fn print(model: &Model) -> String {
    text::print(model, &text::PrintOptions::default())
}

/// What comes out, in the form of the file's second half; with the checks that hold for every rewrite.
fn outcome(source: &str, pass: &dyn Pass, place: &str) -> String {
    let before = parse(source, place);
    let mut after = before.clone();
    let mut inverses = Vec::new();
    // A second round only where graphs are entered from outer to inner: what a body no longer reads, say.
    let mut rounds = 0;
    loop {
        let more = run_once(&mut after, pass);
        if more.is_empty() {
            break;
        }
        rounds += 1;
        assert!(rounds <= 2, "{place}: more than two rounds");
        inverses.extend(more);
    }
    assert_eq!(check::check(&after), [], "{place}: the result is not sound");
    let mut restored = after.clone();
    for inverse in inverses.iter().rev() {
        restored.apply(inverse).unwrap_or_else(|e| panic!("{place}: inverse: {e}"));
    }
    let full = text::PrintOptions::full();
    assert_eq!(
        text::print(&restored, &full),
        text::print(&before, &full),
        "{place}: inverses do not restore"
    );
    let mut out = print(&after).trim_end().to_owned() + "\n";
    for miss in near_misses(&after, pass) {
        out += &format!("blocked: {} @ {}\n", miss.condition, after.node_label(miss.blame));
    }
    out
}

fn cases() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/passes");
    let mut found = Vec::new();
    for folder in std::fs::read_dir(root).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_dir()) {
        found.extend(std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()));
    }
    found.sort();
    found
}

#[test]
fn every_case_gives_what_its_file_says() {
    let bless = std::env::var_os("PASSLENS_BLESS").is_some();
    let mut wrong = Vec::new();
    for path in cases() {
        let place = path.display().to_string();
        let file = std::fs::read_to_string(&path).unwrap();
        let (head, expected) = file.split_once("----\n").unwrap_or_else(|| panic!("{place}: no line ----"));
        let name = head.lines().find_map(|l| l.strip_prefix("pass: ")).expect("a line pass: NAME").trim();
        let graph: Vec<&str> =
            head.lines().filter(|l| !l.starts_with('#') && !l.starts_with("pass: ")).collect();
        let found = outcome(&graph.join("\n"), &*pass(name), &place);
        if bless {
            std::fs::write(&path, format!("{head}----\n{found}")).unwrap();
        } else if found != expected {
            wrong.push(format!("{place}\nexpected:\n{expected}\nfound:\n{found}"));
        }
    }
    assert!(wrong.is_empty(), "{} cases differ\n\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_pass_has_cases_that_fire_and_cases_that_do_not() {
    for pass in passes::builtin() {
        let folder = format!("passes/{}/", pass.info().name);
        let (mut fires, mut quiet) = (0, 0);
        for path in cases().iter().filter(|p| p.to_string_lossy().contains(&folder)) {
            let file = std::fs::read_to_string(path).unwrap();
            let (head, expected) = file.split_once("----\n").unwrap();
            let start = head.find('<').unwrap();
            let expected = expected.split("blocked: ").next().unwrap();
            let place = path.display().to_string();
            match print(&parse(&head[start..], &place)) == print(&parse(expected, &place)) {
                true => quiet += 1,
                false => fires += 1,
            }
        }
        assert!(fires >= 3 && quiet >= 2, "{}: {fires} cases fire, {quiet} do not", pass.info().name);
    }
}

#[test]
fn the_example_of_every_pass_is_what_it_does() {
    for pass in passes::builtin() {
        let info = pass.info();
        let mut model = parse(info.example_before, info.name);
        assert!(!run_once(&mut model, &*pass).is_empty(), "{}", info.name);
        assert_eq!(print(&model), print(&parse(info.example_after, info.name)), "{}", info.name);
    }
}

#[test]
fn a_chain_of_a_thousand_goes_in_one_round() {
    let mut b = ir::Builder::new("chain", 17);
    let mut at = b.input("x", ir::ElementType::FLOAT, &["n".into()]);
    for i in 0..1000 {
        at = if i % 3 == 0 { b.op("Transpose", &[at]).one() } else { b.op("Identity", &[at]).one() };
    }
    let y = b.op("Relu", &[at]).one();
    b.output(y);
    let mut model = b.finish().unwrap();
    let steps = run_once(&mut model, &*pass("eliminate_identity"));
    assert_eq!((steps.len(), model.node_count()), (1000, 1));
    assert_eq!(check::check(&model), []);
}

#[test]
fn names_are_unique_and_order_is_legal() {
    let passes = passes::builtin();
    for (i, pass) in passes.iter().enumerate() {
        let info = pass.info();
        assert!(passes.iter().take(i).all(|p| p.info().name != info.name), "{} twice", info.name);
        assert!(
            passes.iter().take(i).all(|p| p.info().stage <= info.stage),
            "{} comes after its stage",
            info.name
        );
        for earlier in info.after {
            let known = passes.iter().take(i).any(|p| p.info().name == *earlier);
            assert!(known, "{} wants {earlier} before it", info.name);
        }
    }
}

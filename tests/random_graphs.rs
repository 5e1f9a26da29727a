//! What must hold for any graph, tried on many small random ones.

mod generator;

use passlens::facts::Facts;
use passlens::formats;
use passlens::ir::{Model, check::check};
use passlens::pipeline::{Config, Options, Registry, Run, Runner, State, graph_hash};
use std::sync::atomic::AtomicBool;

const SEEDS: u64 = 150;

fn run(model: Model, config: &Config) -> Run {
    let cancel = AtomicBool::new(false);
    let mut options = Options { stop_at: None, cancel: &cancel, progress: &mut |_| {} };
    Runner::new(model).run(&Registry::builtin(), config, &mut options)
}

#[test]
fn every_pass_leaves_a_sound_graph_and_its_inverses_lead_back() {
    let registry = Registry::builtin();
    let mut steps = 0;
    for seed in 0..SEEDS {
        let model = generator::graph(seed, 4 + seed as usize % 20);
        let before = format!("{model:?}");
        let mut all = vec![Config::default()];
        for pass in registry.iter() {
            let mut only = Config::default();
            only.set_only(&[pass.info().name.to_owned()]);
            all.push(only);
        }
        for config in all {
            let done = run(model.clone(), &config);
            for p in &done.passes {
                assert!(p.failures.is_empty(), "seed {seed}: {}: {:?}", p.pass, p.failures);
            }
            let mut at = done.last_state().model;
            let faults = check(&at);
            assert!(faults.is_empty(), "seed {seed}: {faults:?}");
            for step in done.steps.iter().rev() {
                at.apply(&step.inverse).unwrap_or_else(|e| panic!("seed {seed}: undoing {}: {e}", step.key));
            }
            let back = format!("{at:?}");
            let differs = back
                .bytes()
                .zip(before.bytes())
                .position(|(a, b)| a != b)
                .unwrap_or(back.len().min(before.len()));
            let around = |s: &str| {
                s.get(differs.saturating_sub(300)..(differs + 100).min(s.len())).unwrap_or("").to_owned()
            };
            assert!(back == before, "seed {seed}: back: {}\n\nbefore: {}", around(&back), around(&before));
            steps += done.steps.len();
        }
    }
    assert!(steps > 1_000, "the graphs give passes something to do: {steps} rewrites");
}

#[test]
fn facts_that_follow_patches_are_those_of_the_graph_that_results() {
    for seed in 0..SEEDS {
        let done = run(generator::graph(seed, 15), &Config::default());
        let state = done.last_state();
        let fresh = Facts::infer(&state.model);
        for (id, value) in state.model.values() {
            let (kept, now) = (state.facts.ty(&state.model, id), fresh.ty(&state.model, id));
            // What followed may know more (a replaced value's better type), never something else.
            let clash = passlens::pipeline::state::contradicts(kept, now);
            assert!(!clash, "seed {seed}: '{}' is {kept} kept, {now} anew", value.name);
        }
    }
}

#[test]
fn a_second_run_over_the_result_finds_nothing_more() {
    for seed in 0..SEEDS {
        let once = run(generator::graph(seed, 15), &Config::default()).last_state().model;
        let hash = graph_hash(&once);
        let twice = run(once, &Config::default());
        let found: Vec<String> = twice.steps.iter().map(|s| s.key.to_string()).collect();
        assert!(graph_hash(&twice.last_state().model) == hash, "seed {seed}: {found:?}");
    }
}

#[test]
fn files_give_back_what_was_written_before_and_after_passes() {
    let folder = tempfile::tempdir().unwrap();
    for seed in 0..SEEDS / 3 {
        let model = generator::graph(seed, 15);
        let optimized = run(model.clone(), &Config::default()).last_state().model;
        for (name, model) in [("before.onnx", &model), ("after.onnx", &optimized), ("after.json", &optimized)]
        {
            let path = folder.path().join(name);
            formats::save(model, &path, &Default::default()).unwrap();
            let read = formats::open(&path).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            assert!(check(&read.model).is_empty(), "seed {seed}");
            assert_eq!(graph_hash(&read.model), graph_hash(model), "seed {seed}: {name}");
            let again = folder.path().join(format!("again-{name}"));
            formats::save(&read.model, &again, &Default::default()).unwrap();
            assert!(std::fs::read(&path).unwrap() == std::fs::read(&again).unwrap(), "seed {seed}: {name}");
        }
    }
}

#[test]
fn the_same_graph_gives_the_same_steps() {
    for seed in 0..SEEDS / 3 {
        let keys = |run: Run| run.steps.iter().map(|s| s.key.to_string()).collect::<Vec<_>>();
        let one = run(generator::graph(seed, 20), &Config::default());
        let two = run(generator::graph(seed, 20), &Config::default());
        assert_eq!(keys(one), keys(two), "seed {seed}");
    }
}

/// Steps can be visited in any order, and each visit gives the model that the run had there.
#[test]
fn any_step_can_be_gone_to() {
    for seed in 0..SEEDS / 3 {
        let done = run(generator::graph(seed, 25), &Config::default());
        let mut at: State = done.initial.clone();
        for step in &done.steps {
            at.model.apply(&step.patch).unwrap();
            let there = done.state_at(step.number);
            assert!(
                format!("{:?}", there.model) == format!("{:?}", at.model),
                "seed {seed}, step {}",
                step.number
            );
        }
    }
}

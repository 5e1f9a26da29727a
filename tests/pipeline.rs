//! The pipeline's mechanism, with small passes made here: numbering, worklist, rollback, cycles, exclusion, what is kept.

use passlens::ir::{
    Attribute, Builder, ElementType, GraphId, Model, NodeId, Patch, PatchBuilder, check::check,
};
use passlens::passes::{Anchor, Context, Declined, Findings, Pass, PassInfo, Risk, ShapeMode, Site, Stage};
use passlens::pipeline::{Config, Options, Registry, Run, Runner, StopReason};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

type Rewrite = fn(&Context, NodeId) -> Result<Patch, Declined>;

/// A pass that looks for one operator.
struct Small {
    info: PassInfo,
    operator: &'static str,
    rewrite: Rewrite,
}

fn small(name: &'static str, operator: &'static str, rewrite: Rewrite) -> Arc<dyn Pass> {
    let info = PassInfo {
        name,
        stage: Stage::Eliminate,
        summary: "for tests",
        risk: Risk::Exact,
        shapes: ShapeMode::Any,
        after: &[],
        default_on: true,
        example_before: "",
        example_after: "",
    };
    Arc::new(Small { info, operator, rewrite })
}

impl Pass for Small {
    fn info(&self) -> &PassInfo {
        &self.info
    }

    fn find(&self, cx: &Context, graph: GraphId, around: Option<&[NodeId]>) -> Findings {
        let wanted = |id: &NodeId| around.is_none_or(|a| a.contains(id));
        let nodes = cx.model.nodes_of(graph).filter(|(id, n)| n.is(self.operator) && wanted(id));
        let site = |id| Site { graph, anchor: Anchor::Node(id), nodes: vec![id], what: self.operator.into() };
        Findings { sites: nodes.map(|(id, _)| site(id)).collect(), blocked: vec![] }
    }

    fn rewrite(&self, cx: &Context, site: &Site) -> Result<Patch, Declined> {
        let Anchor::Node(id) = site.anchor else { return Err(Declined::Stale) };
        if cx.model.get_node(id).is_none_or(|n| !n.is(self.operator)) {
            return Err(Declined::Stale);
        }
        (self.rewrite)(cx, id)
    }
}

fn skip(cx: &Context, id: NodeId) -> Result<Patch, Declined> {
    let node = cx.model.node(id);
    let (input, output) = (node.input(0).unwrap(), node.output(0).unwrap());
    if cx.model.is_output(output) {
        return Err(Declined::NoEffect);
    }
    let mut p = PatchBuilder::new(cx.model);
    p.replace_uses(output, input);
    p.remove_node(id);
    Ok(p.finish())
}

fn chain(operator: &str, length: usize) -> Model {
    let mut b = Builder::new("chain", 17);
    let mut x = b.input("x", ElementType::FLOAT, &["n".into()]);
    for i in 0..length {
        x = b.op(operator, &[x]).named(&format!("skip_{i}")).one();
    }
    let y = b.op("Relu", &[x]).named("act").one();
    b.output(y);
    b.finish().unwrap()
}

fn registry(passes: Vec<Arc<dyn Pass>>) -> (Registry, Config) {
    let mut registry = Registry::builtin();
    let names: Vec<String> = passes.iter().map(|p| p.info().name.to_owned()).collect();
    passes.into_iter().for_each(|p| registry.register(p).unwrap());
    let mut config = Config::default();
    config.set_only(&names);
    (registry, config)
}

fn run(runner: &mut Runner, registry: &Registry, config: &Config, stop_at: Option<u32>) -> Run {
    let cancel = AtomicBool::new(false);
    runner.run(registry, config, &mut Options { stop_at, cancel: &cancel, progress: &mut |_| {} })
}

#[test]
fn a_chain_of_a_thousand_collapses_in_one_round_and_every_step_can_be_visited() {
    let (registry, config) = registry(vec![small("skip_identity", "Identity", skip)]);
    let model = chain("Identity", 1_000);
    let mut runner = Runner::new(model.clone());
    let done = run(&mut runner, &registry, &config, None);
    assert_eq!((done.steps.len(), done.stop.clone(), done.rounds), (1_000, StopReason::Converged, 2));
    assert_eq!(done.last_state().model.node_count(), 1);
    for step in [0u32, 1, 63, 64, 65, 500, 999, 1_000] {
        let state = done.state_at(step);
        assert_eq!(state.model.node_count(), 1_001 - step as usize);
        assert!(check(&state.model).is_empty());
    }
    assert!(done.steps.iter().enumerate().all(|(i, s)| s.number as usize == i + 1));
    let mut back = done.last_state().model;
    for step in done.steps.iter().rev() {
        back.apply(&step.inverse).unwrap();
    }
    assert!(format!("{back:?}") == format!("{model:?}"), "all inverses lead back to the model as imported");
}

#[test]
fn stop_at_and_exclusion_leave_the_rest_alone() {
    let (registry, mut config) = registry(vec![small("skip_identity", "Identity", skip)]);
    let mut runner = Runner::new(chain("Identity", 5));
    let stopped = run(&mut runner, &registry, &config, Some(2));
    assert_eq!((stopped.steps.len(), stopped.stop.clone()), (2, StopReason::StopAt));
    assert_eq!(stopped.last_state().model.node_count(), 4);
    let key = stopped.steps[1].key.clone();
    assert_eq!(key.to_string(), "skip_identity@\"skip_1_output_0\"#0");
    config.exclude.insert(key.clone());
    let all_but_one = run(&mut runner, &registry, &config, None);
    assert_eq!(all_but_one.steps.len(), 4);
    assert!(all_but_one.passes[0].excluded.iter().any(|e| e.key == key));
    let last = all_but_one.last_state().model;
    let left: Vec<String> = last.nodes_of(GraphId(0)).map(|(_, n)| n.name.to_string()).collect();
    assert_eq!(left, ["skip_1", "act"]);
}

#[test]
fn a_pass_that_panics_or_breaks_the_graph_is_rolled_back_and_named() {
    fn panics(_: &Context, _: NodeId) -> Result<Patch, Declined> {
        panic!("no such luck")
    }
    fn breaks(cx: &Context, id: NodeId) -> Result<Patch, Declined> {
        let mut p = PatchBuilder::new(cx.model);
        p.remove_node(id);
        Ok(p.finish())
    }
    let passes = vec![
        small("panics", "Relu", panics),
        small("breaks", "Identity", breaks),
        small("works", "Identity", skip),
    ];
    let (registry, config) = registry(passes);
    let mut runner = Runner::new(chain("Identity", 2));
    let done = run(&mut runner, &registry, &config, None);
    let of = |name: &str| done.passes.iter().find(|p| &*p.pass == name).unwrap();
    assert!(of("panics").failures[0].message.contains("no such luck"));
    assert_eq!(of("breaks").failures.len(), 2);
    assert!(of("breaks").failures[0].message.contains("still read"), "{:?}", of("breaks").failures);
    assert_eq!(of("works").steps.len(), 2);
    assert_eq!(done.last_state().model.node_count(), 1);
}

#[test]
fn passes_that_undo_each_other_stop_with_their_names() {
    fn become_operator(cx: &Context, id: NodeId, operator: &str) -> Result<Patch, Declined> {
        let mut p = PatchBuilder::new(cx.model);
        p.set_operator(id, operator);
        Ok(p.finish())
    }
    let passes = vec![
        small("to_abs", "Neg", |cx, id| become_operator(cx, id, "Abs")),
        small("to_neg", "Abs", |cx, id| become_operator(cx, id, "Neg")),
    ];
    let (registry, config) = registry(passes);
    let mut runner = Runner::new(chain("Neg", 3));
    let done = run(&mut runner, &registry, &config, None);
    assert_eq!(done.stop, StopReason::Cycle { passes: vec!["to_abs".into(), "to_neg".into()] });
}

#[test]
fn a_pass_that_feeds_itself_is_stopped() {
    fn grow(cx: &Context, id: NodeId) -> Result<Patch, Declined> {
        let mut p = PatchBuilder::new(cx.model);
        let node = cx.model.node(id);
        let between = p.value(node.graph, "more", passlens::ir::Type::Unknown);
        let mut twin = passlens::ir::Node::new(node.graph, "Neg");
        twin.inputs = node.inputs.clone();
        twin.outputs = [Some(between)].into_iter().collect();
        p.node_before(id, twin)?;
        p.set_inputs(id, [Some(between)]);
        Ok(p.finish())
    }
    let (registry, config) = registry(vec![small("grow", "Neg", grow)]);
    let mut runner = Runner::new(chain("Neg", 1));
    let done = run(&mut runner, &registry, &config, None);
    let message = &done.passes[0].failures[0].message;
    assert!(message.contains("without end") || message.contains("same place"), "{message}");
}

#[test]
fn switching_a_later_pass_keeps_what_earlier_ones_did_and_the_same_rewrite_keeps_its_ids() {
    fn replace(cx: &Context, id: NodeId) -> Result<Patch, Declined> {
        let mut p = PatchBuilder::new(cx.model);
        let node = cx.model.node(id);
        let mut other = passlens::ir::Node::new(node.graph, "LeakyRelu");
        other.attributes.push(Attribute::new("alpha", 0.0f32));
        other.inputs = node.inputs.clone();
        other.outputs = node.outputs.clone();
        p.node_before(id, other)?;
        p.remove_node(id);
        Ok(p.finish())
    }
    let (registry, mut config) = registry(vec![
        small("first", "Identity", skip),
        small("second", "Relu", replace),
        small("third", "Abs", skip),
    ]);
    let mut runner = Runner::new(chain("Identity", 4));
    let on = run(&mut runner, &registry, &config, None);
    let made = on.steps.iter().find(|s| &*s.pass == "second").unwrap().effects.added.clone();
    assert_eq!(on.last_state().provenance.origins(made[0]).len(), 1);
    config.set_pass("second", false);
    let off = run(&mut runner, &registry, &config, None);
    assert_eq!(off.steps.len(), 4);
    config.set_pass("second", true);
    let again = run(&mut runner, &registry, &config, None);
    assert_eq!(runner.fresh_passes, 0, "everything was kept from before");
    assert_eq!(again.steps.iter().find(|s| &*s.pass == "second").unwrap().effects.added, made);
    config.set_pass("first", false);
    let other_way = run(&mut runner, &registry, &config, None);
    assert_eq!(other_way.steps.iter().find(|s| &*s.pass == "second").unwrap().effects.added, made);
}

#[test]
fn a_configuration_is_the_same_after_a_file_and_says_what_it_does_not_know() {
    let (registry, _) = registry(vec![small("skip_identity", "Identity", skip)]);
    let mut config = Config { rounds: 3, ..Config::default() };
    config.set_pass("skip_identity", false);
    config.exclude.insert("skip_identity@\"a b\"#1".parse().unwrap());
    config.stages.entry(Stage::Fuse).or_default().exclude_blocks.insert("encoder/layer.0".into());
    let text = config.to_toml();
    assert_eq!(Config::parse(&text, "recipe.toml", &registry).unwrap(), config, "{text}");
    let wrong = |text: &str| Config::parse(text, "recipe.toml", &registry).unwrap_err().to_string();
    assert_eq!(
        wrong("version = 1\n[global]\nround = 3\n"),
        "recipe.toml: unknown key 'global.round'; did you mean 'rounds'?"
    );
    assert!(
        wrong("version = 1\n[pass.skip_identty]\nenabled = true\n").contains("did you mean 'skip_identity'?")
    );
    assert!(wrong("version = 2\n").contains("version 2 is not known"));
    assert!(wrong("version = 1\n[global]\nrounds = \"many\"\n").contains("must be a number"));
    assert!(wrong("version = = 1\n").starts_with("recipe.toml: line 1"));
}

#[test]
fn a_run_that_stops_inside_a_pass_tells_of_no_later_step() {
    let (registry, config) = registry(vec![small("skip_identity", "Identity", skip)]);
    let mut runner = Runner::new(chain("Identity", 100));
    run(&mut runner, &registry, &config, None);
    let stopped = run(&mut runner, &registry, &config, Some(70));
    assert_eq!((stopped.steps.len(), stopped.passes[0].steps.len()), (70, 70));
    assert_eq!((stopped.passes[0].nodes_after, stopped.last_state().model.node_count()), (31, 31));
    let told =
        stopped.log.iter().filter(|e| matches!(e.outcome, passlens::pipeline::log::Outcome::Applied { .. }));
    assert_eq!(told.count(), 70);
    assert_eq!(run(&mut runner, &registry, &config, None).steps.len(), 100);
}

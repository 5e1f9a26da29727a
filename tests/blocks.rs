//! The hierarchy: expected trees of shared models, what holds of every tree, and small graphs made here.
//!
//! Trees of shared models are files in `tests/blocks`; `PASSLENS_BLESS=1` rewrites them.

use passlens::blocks::{
    Block, BlockKind, BlockTree, Child, build, clarity, initial_open, outline, outline_to, visible,
};
use passlens::facts::Facts;
use passlens::formats;
use passlens::ir::{Builder, ElementType, Model, NodeId, Tensor, ValueId};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Model and the depth down to which its tree is compared.
const EXPECTED: &[(&str, usize)] = &[
    ("bert_12l_ts_op14", 5),
    ("convnext_tiny_ts_op17", 4),
    ("distilbert_dyn_op18", 4),
    ("efficientnet_b0_bn_ts_op17", 4),
    ("gpt2_past_ts_op13", 3),
    ("keras_lstm_loop_tf2onnx_op12", 4),
    ("llama_gqa_dyn_op20", 3),
    ("mobilenet_v2_old_op11", 3),
    ("moe_sparse_ts_op16", 2),
    ("nhwc_resunet_tf2onnx_op15", 2),
    ("pplcnet_cls_paddle_op11", 3),
    ("ppocr_cls_mobile_v2", 3),
    ("resnet18_ts_op13", 3),
    ("resnet50_dyn_op18", 3),
    ("shufflenet_v2_old_op9", 3),
    ("silero_vad", 4),
    ("squeezenet_old_op9", 3),
    ("swin_tv_ts_op16", 3),
    ("unrolled_lstm_ts_op13", 3),
    ("vit_jax2onnx", 3),
    ("vit_timm_ts_op14", 4),
    ("whisper_encoder_ts_op14", 3),
    ("yolo_like_ts_op12", 2),
];

fn shared() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared");
    if !folder.is_dir() {
        println!("skipped: there is no {}", folder.display());
        return None;
    }
    Some(folder)
}

fn open(path: &Path) -> (Model, BlockTree) {
    let model = formats::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())).model;
    let tree = build(&model, &Facts::infer(&model));
    (model, tree)
}

#[test]
fn trees_of_shared_models() {
    let Some(shared) = shared() else { return };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/blocks");
    let bless = std::env::var_os("PASSLENS_BLESS").is_some();
    let mut wrong = Vec::new();
    for (name, depth) in EXPECTED {
        let (model, tree) = open(&shared.join("models").join(format!("{name}.onnx")));
        let file = folder.join(format!("{name}.txt"));
        let now = outline_to(&tree, &model, *depth);
        if bless {
            fs::write(&file, &now).unwrap();
        }
        let expected = fs::read_to_string(&file).unwrap_or_default();
        if now != expected {
            let line = now.lines().zip(expected.lines()).find(|(a, b)| a != b);
            wrong.push(format!("{name}: first difference (now, expected): {line:?}"));
        }
    }
    assert!(wrong.is_empty(), "PASSLENS_BLESS=1 rewrites the files\n{}", wrong.join("\n"));
}

/// Blocks, on all levels of the tree of the main graph, for which the condition holds.
fn count(tree: &BlockTree, wanted: impl Fn(&Block) -> bool) -> usize {
    tree.iter().filter(|(_, b)| wanted(b)).count()
}

#[test]
fn known_modules_are_found_as_often_as_they_are_there() {
    let Some(shared) = shared() else { return };
    let module = |name: &'static str| move |b: &Block| b.kind == BlockKind::Module(name.into());
    let load = |name: &str| open(&shared.join("models").join(format!("{name}.onnx"))).1;
    let bert = load("bert_12l_ts_op14");
    assert_eq!(count(&bert, |b| &*b.name == "attention" && b.kind == BlockKind::Scope), 12);
    assert_eq!(count(&bert, module("feed-forward")), 12);
    assert_eq!(
        count(&bert, |b| b.name.starts_with("layer.") && b.repeat.as_ref().map(|r| r.of) == Some(12)),
        12
    );
    assert_eq!(count(&load("mobilenet_v2_old_op11"), module("inverted residual")), 17);
    assert_eq!(count(&load("squeezenet_old_op9"), module("fire")), 8);
    assert_eq!(count(&load("shufflenet_v2_old_op9"), module("shuffle unit")), 16);
    let vit = load("vit_jax2onnx");
    assert_eq!((count(&vit, module("attention")), count(&vit, module("feed-forward"))), (4, 4));
    let lstm = load("unrolled_lstm_ts_op13");
    assert_eq!((count(&lstm, module("step")), count(&lstm, module("LSTM cell"))), (88, 176));
}

/// What holds of every tree.
fn check_tree(name: &str, model: &Model, tree: &BlockTree) {
    let mut seen: BTreeSet<NodeId> = BTreeSet::new();
    for (id, block) in tree.iter() {
        let depth = tree.ancestors(id).count() - 1;
        assert!(depth <= 9, "{name}: {} is {depth} deep", tree.path(id));
        let shown = |c: &&Child| !matches!(c, Child::Node(n) if model.node(*n).is("Constant"));
        let width = block.children.iter().filter(shown).count();
        assert!(width <= 60, "{name}: {} has {width} members", tree.path(id));
        let mut names = BTreeSet::new();
        for child in &block.children {
            match child {
                Child::Node(n) => {
                    assert!(seen.insert(*n), "{name}: {n} is in two blocks");
                    assert_eq!(tree.block_of(*n), Some(id));
                    assert_eq!(model.node(*n).graph, block.graph);
                }
                Child::Block(b) => {
                    assert_eq!(tree.block(*b).parent, Some(id));
                    assert!(names.insert(tree.block(*b).name.clone()), "{name}: two siblings have one name");
                    assert!(!tree.block(*b).children.is_empty());
                }
            }
        }
        let inside: usize = block
            .children
            .iter()
            .map(|c| match c {
                Child::Node(_) => 1,
                Child::Block(b) => tree.block(*b).nodes as usize,
            })
            .sum();
        assert_eq!(block.nodes as usize, inside, "{name}: {} counts wrongly", tree.path(id));
        if let Some(repeat) = &block.repeat {
            let first = tree.block(repeat.first);
            assert!(repeat.index < repeat.of && repeat.of > 1);
            assert_eq!(first.repeat.as_ref().map(|r| r.index), Some(0));
            assert_eq!(first.parent, block.parent);
        }
    }
    assert_eq!(seen.len(), model.node_count(), "{name}: each node is in exactly one block");
    for graph in model.live_graphs() {
        assert!(tree.root(graph).is_some());
    }
}

#[test]
fn every_shared_model_opens_on_a_level_that_can_be_read() {
    let Some(shared) = shared() else { return };
    let mut files: Vec<PathBuf> = fs::read_dir(shared.join("models"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "onnx"))
        .collect();
    files.sort();
    for file in files {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let (model, tree) = open(&file);
        check_tree(&name, &model, &tree);
        let open = initial_open(&tree, &model);
        let boxes = visible(&tree, &model, &open);
        let depth = tree.iter().map(|(id, _)| tree.ancestors(id).count() - 1).max().unwrap_or(0);
        let clear = clarity(&tree);
        println!(
            "{name:40} {boxes:3} boxes, depth {depth}, {}",
            if clear.clear { "clear" } else { "not clear" }
        );
        assert!(open.contains(&tree.root(model.main()).unwrap()));
        if model.node_count() > 10 {
            assert!((5..=60).contains(&boxes), "{name} opens on {boxes} boxes");
        }
        let again = build(&model, &Facts::infer(&model));
        assert_eq!(outline(&tree, &model), outline(&again, &model), "{name}: the same tree every time");
    }
}

#[test]
fn scopes_of_the_shared_cases() {
    let Some(shared) = shared() else { return };
    let case = |name: &str| open(&shared.join("cases").join(format!("{name}.onnx")));
    for name in ["scope_dotdot_empty", "scope_metadata_vs_name", "node_names_missing_dup"] {
        let (model, tree) = case(name);
        check_tree(name, &model, &tree);
    }
    let (model, tree) = case("scope_dotdot_empty");
    let enc = tree.find(model.main(), "enc").expect("the block enc");
    let node = |label: &str| model.nodes_of(model.main()).find(|(_, n)| &*n.name == label).unwrap().0;
    assert_eq!(tree.block_of(node("enc")), tree.root(model.main()), "a node may be called like a block");
    assert_eq!(tree.block_of(node("//enc//Neg")), Some(enc), "empty segments are dropped");
    assert_eq!(tree.block_of(node("..")), tree.root(model.main()), "dots are plain names");
    let (model, tree) = case("scope_metadata_vs_name");
    let node = |label: &str| model.nodes_of(model.main()).find(|(_, n)| &*n.name == label).unwrap().0;
    let path = |label: &str| tree.path(tree.block_of(node(label)).unwrap());
    assert_eq!(path("node_relu_0"), path("node_add_1"), "both are in enc.0");
    assert_eq!(path("node_tanh_4"), "", "empty metadata and a flat name: at the top");
    let (_, tree) = case("node_names_missing_dup");
    assert_eq!(tree.block(passlens::blocks::BlockId(0)).children.len(), 5);
}

fn tree_of(b: Builder) -> (Model, BlockTree) {
    let model = b.finish().unwrap();
    let tree = build(&model, &Facts::infer(&model));
    check_tree("made here", &model, &tree);
    (model, tree)
}

#[test]
fn alike_layers_are_repeats_and_the_odd_one_is_not() {
    let mut b = Builder::new("layers", 17);
    let mut x = b.input("x", ElementType::FLOAT, &["n".into(), 8.into()]);
    let w = b.constant("w", Tensor::from_f32(&[8, 8], &[0.1; 64]));
    for i in 0..6 {
        let y = b.op("MatMul", &[x, w]).named(&format!("/layers.{i}/fc/MatMul")).one();
        x = b.op("Relu", &[y]).named(&format!("/layers.{i}/act/Relu")).one();
        if i == 3 {
            x = b.op("Neg", &[x]).named("/layers.3/Neg").one();
        }
    }
    b.output(x);
    let (model, tree) = tree_of(b);
    let repeat = |i: usize| {
        let id = tree.find(model.main(), &format!("layers.{i}")).unwrap();
        tree.block(id).repeat.as_ref().map(|r| (r.index, r.of))
    };
    assert_eq!(
        (0..6).map(repeat).collect::<Vec<_>>(),
        [Some((0, 5)), Some((1, 5)), Some((2, 5)), None, Some((3, 5)), Some((4, 5))]
    );
}

fn convolution(b: &mut Builder, x: ValueId, inner: u64, outer: u64, kernel: u64, group: i64) -> ValueId {
    let size = (inner * outer * kernel * kernel) as usize;
    let w = b.constant("w", Tensor::from_f32(&[outer, inner, kernel, kernel], &vec![0.1; size]));
    let pad = kernel as i64 / 2;
    b.op("Conv", &[x, w]).attr("group", group).attr("pads", [pad, pad, pad, pad]).one()
}

#[test]
fn inverted_residuals_without_scopes_are_found_with_and_without_shortcut() {
    let mut b = Builder::new("mobile", 13);
    let mut x = b.input("x", ElementType::FLOAT, &[1.into(), 4.into(), 16.into(), 16.into()]);
    for shortcut in [false, true, true, false, true] {
        let expand = convolution(&mut b, x, 4, 8, 1, 1);
        let expand = b.op("Relu", &[expand]).one();
        let depthwise = convolution(&mut b, expand, 1, 8, 3, 8);
        let depthwise = b.op("Relu", &[depthwise]).one();
        let project = convolution(&mut b, depthwise, 8, 4, 1, 1);
        x = if shortcut { b.op("Add", &[x, project]).one() } else { project };
    }
    b.output(x);
    let (_, tree) = tree_of(b);
    let names: Vec<String> = tree
        .iter()
        .skip(1)
        .map(|(_, b)| format!("{} {}", b.name, b.repeat.as_ref().map_or(1, |r| r.of)))
        .collect();
    assert_eq!(
        names,
        [
            "inverted residual 1 2",
            "inverted residual 2 3",
            "inverted residual 3 3",
            "inverted residual 4 2",
            "inverted residual 5 3"
        ]
    );
}

#[test]
fn a_module_that_is_called_twice_is_two_blocks() {
    let mut b = Builder::new("twice", 17);
    let x = b.input("x", ElementType::FLOAT, &["n".into()]);
    let a = b.op("Relu", &[x]).named("/shared/Relu").one();
    let a = b.op("Exp", &[a]).named("/shared/Exp").one();
    let m = b.op("Neg", &[a]).named("/other/Neg").one();
    let m = b.op("Abs", &[m]).named("/other/Abs").one();
    let c = b.op("Relu", &[m]).named("/shared/Relu_1").one();
    let c = b.op("Exp", &[c]).named("/shared/Exp_1").one();
    b.output(c);
    let (model, tree) = tree_of(b);
    let root = tree.block(tree.root(model.main()).unwrap());
    let names: Vec<&str> = root
        .children
        .iter()
        .filter_map(|c| match c {
            Child::Block(b) => Some(&*tree.block(*b).name),
            Child::Node(_) => None,
        })
        .collect();
    assert_eq!(names, ["shared", "other", "shared call 2"]);
}

#[test]
fn a_long_flat_chain_opens_as_a_few_things() {
    let mut b = Builder::new("chain", 17);
    let mut x = b.input("x", ElementType::FLOAT, &["n".into()]);
    let ops = ["Relu", "Exp", "Neg", "Abs", "Tanh", "Sin", "Floor"];
    let mut state = 1u32;
    for _ in 0..30_000 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        x = b.op(ops[(state >> 16) as usize % ops.len()], &[x]).one();
    }
    b.output(x);
    let (model, tree) = tree_of(b);
    let boxes = visible(&tree, &model, &initial_open(&tree, &model));
    assert!((5..=40).contains(&boxes), "{boxes} boxes");
    assert!(!clarity(&tree).clear);
}

#[test]
fn shortcuts_nested_thousands_deep_do_not_nest_blocks() {
    let mut b = Builder::new("nested", 17);
    let x = b.input("x", ElementType::FLOAT, &["n".into(), 2.into()]);
    let w = b.constant("w", Tensor::from_f32(&[2, 2], &[0.1; 4]));
    let start = b.op("Relu", &[x]).one();
    let mut y = start;
    for i in 0..8_000 {
        let op = if i % 3 == 0 { "MatMul" } else { "Mul" };
        y = b.op(op, &[y, w]).one();
        y = b.op("Add", &[y, start]).one();
    }
    b.output(y);
    tree_of(b);
}

#[test]
fn scopes_a_hundred_deep_stay_readable() {
    let mut b = Builder::new("deep", 17);
    let mut x = b.input("x", ElementType::FLOAT, &["n".into()]);
    let mut scope = String::new();
    for i in 0..100 {
        scope.push_str(&format!("/s{i}"));
        for _ in 0..2 {
            x = b.op("Relu", &[x]).named(&format!("{scope}/Relu")).one();
        }
    }
    b.output(x);
    let model = b.finish().unwrap();
    let tree = build(&model, &Facts::infer(&model));
    let depth = tree.iter().map(|(id, _)| tree.ancestors(id).count() - 1).max().unwrap();
    assert!(depth <= 9, "{depth} deep");
}

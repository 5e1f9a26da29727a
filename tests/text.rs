//! The text form: every construct prints and parses back to the same model; wrong texts are told where and why.

mod generator;
#[path = "generator/sketch.rs"]
mod sketch;

use passlens::formats::{self, DataPlacement, SaveOptions};
use passlens::ir::text::{self, PrintOptions, Weights};
use passlens::ir::{
    Attribute, AttributeValue, Builder, Constant, Data, Declaration, Dim, ElementType, Encoding, Extra,
    Model, Node, PatchBuilder, SparseTensor, Tensor, Type,
};
use sketch::sketch;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn parse(text: &str) -> Model {
    text::parse(text, Path::new("")).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Prints in full, parses, and compares both the models and their texts.
fn round_trip(model: &Model) -> String {
    let printed = text::print(model, &PrintOptions::full());
    let again = parse(&printed);
    assert_eq!(sketch(&again), sketch(model), "{printed}");
    assert_eq!(text::print(&again, &PrintOptions::full()), printed);
    printed
}

/// Whatever ONNX's syntax has, in the spellings that its parser accepts.
const ONNX: &str = r#"
# A comment.
<
  ir_version: 10, opset_import: [ "" : 18, "ai.onnx.ml" : 3, "local" : 1 ],
  producer_name: "by \"hand\"", domain: "d", model_version: 3,
  doc_string: "two
lines", metadata_props: ["k": "v", "": ""]
>
"a graph" (float[N, 3, "height of it", ?] x, float scalar = {-0.0}, float[] anything, seq(int64[2]) s,
  map(string, float[1]) m, optional(float[N]) o, sparse_tensor(float[4, 5]) p, opaque(some.domain, thing) q)
  => (float[N] y, float z)
< float[2, 2] w = {1, 2.5, -inf, nan}, int4[3] nibbles = {-8, 7, 1}, string[2] words = {"a", "\\\""},
  float16[2] h = {15360, 1.0}, float[N] inner, bool[2] flags = {true, 0}, float[2] far = ["location": "x.bin"] >
{
  [first] a, "", b = ai.onnx.ml.Odd:variant <k = 1, f = 1.5, g: float = 2, s = "text", n = [1, -2], e: ints = [],
     t = float[2] {1, 2}, named = int64[1] label {3}, ty = seq(float[N]), strs = ["a", "b"]> (x, "", w,)
  c = "my domain!".Op(words) <axis: int = 0>
  = Sink(c)
  y = local.f <alpha = 0.5> (a)
  z = If (flags) <then_branch = g1 () => (float u) { u = Identity(scalar) },
                  else_branch: graph = g2 () => (float v) <float one = {1}> { v = Add(one, scalar) }>
}
< domain: "local", opset_import: ["" : 18], doc_string: "a function" >
f <alpha, beta: float = 2.0, gamma> (float[N] p, q) => (r) <float[N] t> {
  t = Elu <alpha: float = @alpha> (p)
  r = Identity(t)
}
"#;

#[test]
fn onnx_syntax_is_read_and_comes_back() {
    let model = parse(ONNX);
    assert_eq!(model.node_count(), 9);
    assert_eq!(model.header().opsets.len(), 3);
    assert_eq!(&*model.header().doc, "two\nlines");
    let value = |name: &str| model.value(model.find_value(model.main(), name).unwrap()).clone();
    let bytes = |name: &str| match &value(name).constant {
        Some(Constant::Dense(t)) => t.bytes().unwrap().to_vec(),
        _ => panic!("{name} has no dense data"),
    };
    assert_eq!(bytes("scalar"), (-0.0f32).to_le_bytes());
    assert_eq!(bytes("nibbles"), [0x78, 0x01]);
    assert_eq!(bytes("h"), [0x00, 0x3c, 0x00, 0x3c]);
    assert_eq!(bytes("flags"), [1, 0]);
    assert_eq!(&*model.graph(model.main()).stray_declarations[0].0, "inner", "nothing gives it");
    let first = model.nodes_of(model.main()).next().unwrap().1;
    assert_eq!((&*first.domain, &*first.op_type, &*first.overload), ("ai.onnx.ml", "Odd", "variant"));
    assert_eq!((first.inputs.len(), first.outputs.len()), (3, 3));
    assert!(first.input(1).is_none() && first.output(1).is_none());
    let f = &model.header().functions[0];
    assert_eq!((f.attributes.len(), f.defaults.len()), (2, 1));
    round_trip(&model);
}

#[test]
fn all_that_onnx_syntax_lacks_comes_back() {
    let extra =
        |explicit, unknown: &'static [u8]| Some(Arc::new(Extra { explicit, unknown: unknown.into() }));
    let mut b = Builder::new("%not a pattern", 17);
    b.header().training = vec![vec![1u8, 2].into(), vec![].into()];
    b.header().configurations = vec![vec![255u8].into()];
    b.header().extra = extra(5, b"\xff");
    let n = Dim::Symbolic(passlens::ir::Expr::symbol("n").add(&passlens::ir::Expr::constant(-2)).unwrap());
    let x = b.input("x", ElementType::FLOAT, &[n, Dim::Unknown, 3.into()]);
    let mut t = Tensor::from_f32(&[2], &[f32::from_bits(0x7fc0_0001), f32::NAN]);
    t.encoding = Encoding::External([("location".into(), "a b.bin".into())].into());
    t.doc = "line one\nline \"two\"".into();
    t.metadata = vec![("k".into(), "v".into())];
    t.name = "other".into();
    t.extra = extra(0, b"\x01");
    let w = b.constant("w", t.clone());
    let missing = Tensor { data: Data::Missing("gone".into()), encoding: Encoding::Typed, ..t.clone() };
    b.constant("missing", missing.clone());
    let sparse = SparseTensor {
        values: t.clone(),
        indices: Tensor::ints(&[0, 3]),
        dims: [4].into_iter().collect(),
        extra: extra(2, b""),
    };
    b.constant("sparse", Constant::Sparse(Arc::new(sparse.clone())));
    b.constant("odd padding", Tensor::new(ElementType::INT4, [1], vec![0xf3u8]));
    b.constant("newer", Tensor::new(ElementType(99), [3], vec![1u8, 2, 3, 4]));
    b.constant("six bits", Tensor::new(ElementType::FLOAT6E2M3, [4], vec![1u8, 2, 3]));
    b.constant("many", Tensor::from_i64(&[300], &(0..300).collect::<Vec<_>>()));
    for element in ElementType::ALL.iter().filter(|e| e.bits() >= 8) {
        let bytes: Vec<u8> = (0..element.bits() / 8 * 3).map(|i| (i * 37 + 250) as u8).collect();
        b.constant(&format!("all_{element}"), Tensor::new(*element, [3], bytes));
    }
    let declaration = Declaration {
        ty: Type::Opaque { domain: "a.b".into(), name: "c".into() },
        raw: Some(vec![9u8, 8].into()),
        doc: Some("".into()),
        metadata: vec![("a".into(), "b".into())],
        extra: extra(1, b""),
        position: 0,
    };
    let y = b
        .op("Custom", &[x, w])
        .named("/a/b")
        .attr("float", f32::from_bits(0xffc0_1234))
        .attr("floats", vec![-0.0, 1e-45, f32::MAX, f32::NEG_INFINITY, -f32::NAN])
        .attr("ints", Vec::<i64>::new())
        .attr("min", i64::MIN)
        .attr("string", AttributeValue::String(vec![0xff, 0xfe].into()))
        .attr("strings", AttributeValue::Strings([b"a".to_vec().into(), b"\x80".to_vec().into()].into()))
        .attr("tensors", AttributeValue::Tensors([Arc::new(t.clone()), Arc::new(missing)].into()))
        .attr("sparse", AttributeValue::Sparse(Arc::new(sparse.clone())))
        .attr("sparses", AttributeValue::Sparses([Arc::new(sparse)].into()))
        .attr("type", AttributeValue::Type(Arc::new(declaration.clone())))
        .attr("types", AttributeValue::Types([Arc::new(declaration), Arc::default()].into()))
        .attr("reference", AttributeValue::Reference { name: "not an id".into(), kind: 99 })
        .attr("undefined", AttributeValue::Reference { name: "r".into(), kind: 0 })
        .attr("unknown", AttributeValue::Unknown(vec![1u8].into()))
        .body("body", |b| {
            let one = b.constant("one", Tensor::from_bool(&[], &[true]));
            let inner = b.op("And", &[one, x]).named("inside").one();
            b.output(inner);
        })
        .attr("graphs", AttributeValue::Graphs([].into()))
        .one();
    b.output_as(y, "with \u{202e} \t\u{7} in it", ElementType(77), &[]);
    let mut model = b.finish().unwrap();
    // What only patches make: a type without declaration, data at the end of the list, an attribute with notes.
    let (id, node) = model.nodes_of(model.main()).next().unwrap();
    let mut p = PatchBuilder::new(&model);
    p.constant(model.main(), "late", Tensor::scalar_f32(1.0));
    p.constant(model.main(), "later", Tensor::scalar_f32(2.0));
    let made = p.value(model.main(), "made", Type::Sequence(Box::new(Type::Unknown)));
    let mut before = Node::new(model.main(), "Make");
    before.outputs.push(Some(made));
    before.doc = "about".into();
    before.metadata = vec![("pass".into(), "x".into())];
    before.extra = extra(7, b"\x02\x03");
    before.attributes.push(Attribute { doc: "d".into(), extra: extra(1, b""), ..Attribute::new("a", 1) });
    p.node_before(id, before).unwrap();
    p.set_inputs(id, [node.input(0), Some(made)]);
    let mut patch = p.finish();
    let (nodes, values, _) = model.id_bounds();
    patch.resolve(&mut |i| passlens::ir::NodeId(nodes + i), &mut |i| passlens::ir::ValueId(values + i));
    model.apply(&patch).unwrap();
    let printed = round_trip(&model);
    assert!(!printed.contains(" %"), "pattern variables are never printed bare");
}

#[test]
fn notes_of_graphs_ports_and_declarations_come_back() {
    let text = r#"
    <explicit: 2, unknown: base64"AQ==">
    g {doc_string: "d", metadata_props: ["a": "b"], quantization_annotation: ["x": base64"AA=="], explicit: 4}
      (float[n] x {doc_string: "", explicit: 1}, unnamed, nodoc {doc_string: "only this"})
      => (float[(2*n - floor(n + 1, 2)*"odd name" + max(3, n))] y {type_proto: base64"AAE="})
    < float[1] w {encoding: typed, position: 4, explicit: 8} = {1}, unknown z {position: 7, doc_string: "z"},
      float[1] x {metadata_props: ["k": "v"]}, float nowhere, float x {stray: true}, y {value_type: float[2]} >
    {
      z = Neg (x) {doc_string: "n", explicit: 16}
      y = If (z) <then_branch {doc_string: "branch"} = t {explicit: 1} () => (float x) { x = Abs(z) }>
    }"#;
    let model = parse(text);
    let main = model.graph(model.main());
    assert_eq!(main.stray_declarations.len(), 2);
    assert_eq!(model.header().ir_version, 8, "a header that does not say versions gets the usual ones");
    let y = model.value(model.find_value(model.main(), "y").unwrap());
    assert_eq!(y.ty, Type::tensor(ElementType::FLOAT, [2.into()]));
    round_trip(&model);
}

#[test]
fn a_print_for_reading_is_short_and_says_what_it_left_out() {
    let model = parse(ONNX);
    let printed = text::print(&model, &PrintOptions::default());
    let last = printed.lines().last().unwrap();
    assert!(last.starts_with("# Left out"), "{printed}");
    assert!(last.contains("1 declared types") || last.contains("declared types"), "{last}");
    assert!(!printed.contains("doc_string"));
    assert_eq!(parse(&printed).node_count(), model.node_count());
}

#[test]
fn weights_by_reference_are_fetched_and_checked() {
    let mut b = Builder::new("net", 17);
    let x = b.input("x", ElementType::FLOAT, &[4.into()]);
    let big = b.constant("big", Tensor::from_f32(&[4], &[1.0, 2.0, 3.0, 4.0]));
    let small = b.constant("small", Tensor::scalar_f32(0.5));
    let held = b.op("Constant", &[]).attr("value", Tensor::from_f32(&[4], &[5.0; 4])).one();
    let sum = b.op("Sum", &[x, big, small, held]).one();
    b.output(sum);
    let file = b.finish().unwrap();
    let options =
        PrintOptions { weights: Weights::Small(2), full: true, source: Some(("sub/net.onnx", &file)) };
    let printed = text::print(&file, &options);
    assert_eq!(printed.matches("\"model\": \"sub/net.onnx\"").count(), 2, "{printed}");
    assert!(printed.contains("float small = {0.5}"), "{printed}");
    let mut asked = Vec::new();
    let again = text::parse_with(&printed, Path::new("base"), &mut |path, reference| {
        asked.push(path.to_path_buf());
        reference.find(&file).ok_or_else(|| "not there".to_owned())
    });
    assert_eq!(sketch(&again.unwrap()), sketch(&file));
    assert!(asked.iter().all(|p| p == Path::new("base/sub/net.onnx")));
    // Data that the file does not have goes into the text.
    let other = parse(&text::print(&file, &PrintOptions::full()).replace("{1.0, 2.0,", "{9.0, 2.0,"));
    assert!(text::print(&other, &options).contains("big = {9.0, 2.0, 3.0, 4.0}"));
    // And a file that has other data than it had is refused.
    let refused = text::parse_with(&printed, Path::new(""), &mut |_, reference| {
        reference.find(&other).ok_or_else(|| "not there".to_owned())
    });
    assert!(refused.unwrap_err().what.contains("digest"), "the digest differs");
    let without = text::parse(&printed, Path::new("")).unwrap_err();
    assert!(without.what.contains("sub/net.onnx"), "{without}");
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let cases: &[(&str, usize, usize, &str)] = &[
        ("", 1, 1, "expected the name of a graph, found the end of the text"),
        ("g (float[N] x) => (float[N] y) {\n  y = Relu(z)\n}", 2, 12, "nothing gives 'z'"),
        ("g (float x) => (float y) {\n y = Add(x, t)\n t = Neg(x)\n}", 2, 13, "read before"),
        ("g (float x) => (float x) { x = Neg(x) }", 1, 28, "two values of this graph have the name 'x'"),
        ("g () => (float w) < float[2] w = {1, 2, 3} > {}", 1, 34, "want 2 numbers, found 3"),
        ("g () => (float w) < float[N] w = {1} > {}", 1, 21, "dimensions are numbers"),
        ("g () => (float w) < uint8 w = {256} > {}", 1, 32, "0 to 255"),
        (
            "g () => (float w) < float[4294967296, 4294967296] w = {} > {}",
            1,
            55,
            "more elements than 64 bits",
        ),
        ("g (flaot[2] x) => () {}", 1, 9, "expected ',' between"),
        ("g (float x) => (float y) { y = Relu <a: what = 1> (x) }", 1, 39, "no kind of attribute"),
        ("g (float x) => (float y) { y = Relu <a: ints = [1, 2.5]> (x) }", 1, 48, "kind, ints"),
        ("g (float x) => (float y) { y = Relu <a = []> (x) }", 1, 42, "needs its kind"),
        ("g (float x) => (float y) { %y = Relu(x) }", 1, 28, "pattern variable"),
        ("<ir_versoin: 8> g () => () {}", 1, 2, "nearest: ir_version"),
        ("g () => () {} \"open", 1, 15, "without a closing quote"),
        ("g () => (float \"a\\q\") {}", 1, 18, "'\\q' means nothing"),
        ("g () => () {} f () => () { f() }", 1, 29, "or '=' after the last"),
        ("g () => () {} <domain: \"d\"> f () => () { = d.f() }", 1, 15, "calls itself"),
        ("g () => () <float x = [\"model\": \"m.onnx\", \"value\": \"x\"]> {}", 1, 23, "m.onnx"),
        ("g () => () <float x = base64\"AAA=\"> {}", 1, 23, "4 bytes, found 2"),
        ("g () => () <float x = {nan(0x1)}> {}", 1, 24, "not the bits of a 32-bit NaN"),
        ("g (float[(n*9223372036854775807*2)] x) => () {}", 1, 11, "64 bits"),
    ];
    for (text, line, column, what) in cases {
        let error = text::parse(text, Path::new("")).err().unwrap_or_else(|| panic!("accepted: {text}"));
        assert!(error.what.contains(what), "{text}\n{error}\nwanted: {what}");
        assert_eq!((error.line, error.column), (*line, *column), "{text}\n{error}");
    }
}

#[test]
fn nesting_has_a_limit_and_no_text_overflows_the_stack() {
    let types = format!("g ({}float x) => () {{}}", "seq(".repeat(100_000));
    let bodies = format!("g () => () {{ {} }}", "= If () <b = g () => () {".repeat(100_000));
    let terms = format!("g (float[{}] x) => () {{}}", "(max(".repeat(100_000));
    for text in [types, bodies, terms] {
        assert!(text::parse(&text, Path::new("")).is_err());
    }
    let long = (1..30_000).map(|i| format!("x{i} = Relu(x{})\n", i - 1)).collect::<String>();
    let model = parse(&format!("g (float x0) => (float x29999) {{ {long} }}"));
    assert_eq!(model.node_count(), 29_999);
    round_trip(&model);
}

#[test]
fn damaged_texts_are_refused_without_a_panic() {
    let printed = text::print(&parse(ONNX), &PrintOptions::full());
    let pieces = [
        "{", "}", "<", ">", "[", "]", "(", ")", "\"", ",", "=", "%", "\\", "-", "base64\"", "nan(", "é",
        "0x", "seq(",
    ];
    let mut random = generator::Random::new(7);
    let mut refused = 0;
    for _ in 0..4_000 {
        let mut at = [0, 0].map(|_| random.below(printed.len()));
        at.sort();
        let [from, to] = at.map(|at| (0..=at).rev().find(|at| printed.is_char_boundary(*at)).unwrap_or(0));
        let damaged = match random.below(3) {
            0 => format!("{}{}", &printed[..from], &printed[to.min(from + 20)..]),
            1 => format!("{}{}{}", &printed[..from], pieces[random.below(pieces.len())], &printed[from..]),
            _ => printed[..to].to_owned(),
        };
        refused += usize::from(text::parse(&damaged, Path::new("")).is_err());
    }
    assert!(refused > 2_000, "{refused} of 4000 refused");
}

#[test]
fn patches_read_as_lines_removed_and_added() {
    let mut model = parse(
        r#"g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> {
            [skip] a = Identity (x)
            [act] b = Relu (a)
            [cond] y = If (b) <then_branch = t () => (float u) { u = Neg(a) }>
        }"#,
    );
    let before = model.clone();
    let (skip, node) = model.nodes_of(model.main()).next().unwrap();
    let mut p = PatchBuilder::new(&model);
    p.replace_uses(node.output(0).unwrap(), node.input(0).unwrap());
    p.remove_node(skip);
    p.edit(passlens::ir::Edit::SetConstant {
        value: model.find_value(model.main(), "w").unwrap(),
        constant: Some(Tensor::from_f32(&[2], &[3.0, 4.0]).into()),
    });
    let patch = p.finish();
    model.apply(&patch).unwrap();
    let expected = "\
- float[2] w = {1.0, 2.0}
+ float[2] w = {3.0, 4.0}
- [skip] a = Identity (x)
- [act] b = Relu (a)
+ [act] b = Relu (x)
@ main/cond.then_branch
- u = Neg (a)
+ u = Neg (x)
";
    assert_eq!(text::patch_text(&before, &model, &patch), expected);
    let (cond, _) = before.nodes_of(before.main()).next_back().unwrap();
    assert_eq!(text::node_line(&before, cond), "[cond] y = If <then_branch: graph = {1 node}> (b)");
}

#[test]
fn text_is_told_from_other_files() {
    assert!(text::looks_like_text(b"# c\n<ir_version: 8>"));
    assert!(text::looks_like_text("\"größe\" (float x) => () {}".as_bytes()));
    assert!(!text::looks_like_text(b"\x08\x08\x12\x07pytorch"));
    assert!(!text::looks_like_text(b""));
    assert!(!text::looks_like_text(b"PK\x03\x04"));
}

#[test]
fn random_graphs_and_samples_come_back() {
    for seed in 0..200 {
        round_trip(&generator::graph(seed, 3 + seed as usize % 30));
    }
    for sample in passlens::samples::all() {
        round_trip(&(sample.build)());
    }
}

/// The folder with models and cases beside the package; tests that walk it say so and pass where it is not there.
fn shared_files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared");
    let mut files = Vec::new();
    for part in ["models", "cases", "cases/ext"] {
        match fs::read_dir(folder.join(part)) {
            Ok(entries) => files.extend(entries.map(|entry| entry.unwrap().path())),
            Err(_) => eprintln!("skipped: {} is not there", folder.join(part).display()),
        }
    }
    files.retain(|path| path.extension().is_some_and(|e| e == "onnx"));
    files.sort();
    files
}

#[test]
fn shared_models_come_back_by_way_of_a_text_file() {
    let folder = tempfile::tempdir().unwrap();
    let (mut walked, mut of_both) = (0, 0);
    for path in shared_files() {
        let Ok(opened) = formats::open(&path) else { continue };
        let (model, shown) = (&opened.model, path.display());
        let mut ways = vec![Weights::Small(16)];
        if fs::metadata(&path).unwrap().len() < 1 << 20 {
            ways.push(Weights::Inline);
            of_both += 1;
        }
        for weights in ways {
            let file = folder.path().join("model.txt");
            formats::text::save(model, &path, &file, weights).unwrap_or_else(|e| panic!("{shown}: {e}"));
            let again = formats::open(&file).unwrap_or_else(|e| panic!("{shown}: {e}"));
            assert!(
                sketch(&again.model) == sketch(model),
                "{shown} is another model by way of the text form"
            );
            assert_eq!(again.unusable().is_some(), opened.unusable().is_some(), "{shown}");
            if opened.unusable().is_some() {
                continue;
            }
            let options = SaveOptions { data: DataPlacement::Inline, ..SaveOptions::default() };
            let both = [model, &again.model].map(|model| {
                let out = folder.path().join("out.onnx");
                formats::save(model, &out, &options).unwrap_or_else(|e| panic!("{shown}: {e}"));
                fs::read(out).unwrap()
            });
            assert!(both[0] == both[1], "{shown} changed by way of the text form");
        }
        walked += 1;
    }
    eprintln!("{walked} models by reference, {of_both} of them inline too");
}

#[test]
fn examples_of_passes_are_models_in_the_text_form() {
    for pass in passlens::passes::builtin() {
        let info = pass.info();
        for example in [info.example_before, info.example_after] {
            round_trip(&parse(example));
        }
    }
}

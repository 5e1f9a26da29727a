//! The `render` verb, as a person calls it.

use std::path::PathBuf;
use std::process::{Command, Output};

use passlens::formats::{self, SaveOptions};
use passlens::ir::{Builder, ElementType};

fn passlens(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_passlens")).args(words).output().expect("the program runs")
}

/// A folder with a model: a chain with an If in it.
fn model() -> (tempfile::TempDir, PathBuf) {
    let mut b = Builder::new("branches", 17);
    let x = b.input("x", ElementType::FLOAT, &["batch".into(), 8.into()]);
    let choose = b.input("choose", ElementType::BOOL, &[]);
    let r = b.op("Relu", &[x]).named("outer").one();
    let y = b
        .op("If", &[choose])
        .named("pick")
        .body("then_branch", |b| {
            let v = b.op("Neg", &[r]).named("minus").one();
            b.output(v);
        })
        .body("else_branch", |b| {
            let v = b.op("Abs", &[r]).named("size").one();
            b.output(v);
        })
        .one();
    b.output_as(y, "y", ElementType::FLOAT, &["batch".into(), 8.into()]);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("branches.onnx");
    formats::save(&b.finish().expect("sound"), &path, &SaveOptions::default()).expect("saved");
    (folder, path)
}

#[test]
fn svg_and_png_are_written() {
    let (folder, path) = model();
    let model = path.to_str().expect("a path");
    let svg = folder.path().join("a.svg");
    let svg_name = svg.to_str().expect("a path");
    let output = passlens(&["render", model, "-o", svg_name]);
    assert!(output.status.success(), "{output:?}");
    let text = std::fs::read_to_string(&svg).expect("written");
    assert!(text.starts_with("<svg") && text.contains(">Relu<") && text.contains(">If<"));
    assert!(text.contains(">Neg<"), "a small model opens with its branches to be seen");

    for words in [["--open", "pick"].as_slice(), ["--all"].as_slice()] {
        let mut all = vec!["render", model, "-o", svg_name, "--json"];
        all.extend(words);
        let output = passlens(&all);
        assert!(output.status.success(), "{output:?}");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert!(report["boxes"].as_u64() >= Some(8));
        let text = std::fs::read_to_string(&svg).expect("written");
        assert!(text.contains(">Neg<") && text.contains(">else_branch<"));
    }

    let png = folder.path().join("a.png");
    let output =
        passlens(&["render", model, "-o", png.to_str().expect("a path"), "--size", "300x200", "--dark"]);
    assert!(output.status.success(), "{output:?}");
    let bytes = std::fs::read(&png).expect("written");
    assert_eq!(&bytes[1..4], b"PNG");
    assert_eq!(&bytes[16..24], [0, 0, 1, 44, 0, 0, 0, 200]);
}

#[test]
fn wrong_words_are_one_line_and_status_two() {
    let (folder, path) = model();
    let model = path.to_str().expect("a path");
    let target = folder.path().join("a.svg");
    let target = target.to_str().expect("a path");
    let cases: [(&[&str], &str); 4] = [
        (&["render", model, "-o", "a.bmp"], "must end with .svg or .png"),
        (&["render", model, "-o", target, "--open", "pikc"], "no block or node 'pikc'"),
        (&["render", model, "-o", target, "--size", "0x5"], "1 to 16000"),
        (&["render", "nothing.onnx", "-o", target], "nothing.onnx"),
    ];
    for (words, expected) in cases {
        let output = passlens(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains(expected) && text.trim_end().lines().count() == 1, "{text}");
    }
    assert!(!std::path::Path::new(target).exists(), "nothing is left behind");
}

/// The model of [`model`] with its outer Relu gone, another activation in one branch, and one more output.
fn changed(folder: &std::path::Path) -> PathBuf {
    let mut b = Builder::new("branches", 17);
    let x = b.input("x", ElementType::FLOAT, &["batch".into(), 8.into()]);
    let choose = b.input("choose", ElementType::BOOL, &[]);
    let y = b
        .op("If", &[choose])
        .named("pick")
        .body("then_branch", |b| {
            let v = b.op("Neg", &[x]).named("minus").one();
            b.output(v);
        })
        .body("else_branch", |b| {
            let v = b.op("Exp", &[x]).named("size").one();
            b.output(v);
        })
        .one();
    let z = b.op("Tanh", &[y]).named("extra").one();
    b.output_as(y, "y", ElementType::FLOAT, &["batch".into(), 8.into()]);
    b.output_as(z, "z", ElementType::FLOAT, &["batch".into(), 8.into()]);
    let path = folder.join("changed.onnx");
    formats::save(&b.finish().expect("sound"), &path, &SaveOptions::default()).expect("saved");
    path
}

#[test]
fn two_models_are_drawn_as_one_picture_with_what_differs_marked() {
    let (folder, first) = model();
    let second = changed(folder.path());
    let svg = folder.path().join("both.svg");
    let [first, second, target] = [&first, &second, &svg].map(|p| p.to_str().expect("a path"));
    let output = passlens(&["render", first, "-o", target, "--diff", second, "--all", "--json"]);
    assert!(output.status.success(), "{output:?}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    // The Relu is gone, Abs became Exp, the Tanh is new, Neg reads x itself.
    let marks = serde_json::json!({"added": 1, "removed": 1, "changed": 1, "rewired": 1});
    assert_eq!(report["diff"], marks);
    let text = std::fs::read_to_string(&svg).expect("written");
    for title in ["Relu", "Exp", "Tanh", "Neg", "If", "then_branch", "added", "removed", "changed", "rewired"]
    {
        assert!(text.contains(&format!(">{title}<")), "{title} is not in the picture");
    }
    assert!(!text.contains(">Abs<"), "a changed node is shown as it is now");

    // The other way round what was gone is there again; a thing of either model can be opened by name.
    let words =
        ["render", second, "-o", target, "--diff", first, "--open", "extra", "--open", "outer", "--json"];
    let output = passlens(&words);
    assert!(output.status.success(), "{output:?}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["diff"], marks);

    let same = passlens(&["render", first, "-o", target, "--diff", first]);
    assert!(same.status.success(), "{same:?}");
    let alone = folder.path().join("alone.svg");
    let output = passlens(&["render", first, "-o", alone.to_str().expect("a path")]);
    assert!(output.status.success(), "{output:?}");
    let [both, alone] = [&svg, &alone].map(|p| std::fs::read_to_string(p).expect("written"));
    assert_eq!(both, alone, "a model beside itself looks as it does alone");

    let missing = passlens(&["render", first, "-o", target, "--diff", "nothing.onnx"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("nothing.onnx"));
}

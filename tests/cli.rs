//! The program as a person or a script uses it: words in, exit status, text and files out.

use passlens::formats::{self, SaveOptions};
use passlens::ir::{Builder, ElementType, Model, Tensor};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

struct Outcome {
    status: Option<i32>,
    out: String,
    err: String,
}

fn passlens<S: AsRef<std::ffi::OsStr>>(words: impl IntoIterator<Item = S>) -> Outcome {
    let done = Command::new(env!("CARGO_BIN_EXE_passlens")).args(words).output().unwrap();
    Outcome {
        status: done.status.code(),
        out: String::from_utf8(done.stdout).unwrap(),
        err: String::from_utf8(done.stderr).unwrap(),
    }
}

/// Runs a verb that must succeed and gives what it printed.
fn fine<S: AsRef<std::ffi::OsStr>>(words: impl IntoIterator<Item = S>) -> String {
    let done = passlens(words);
    assert_eq!((done.status, done.err.as_str()), (Some(0), ""), "{}", done.out);
    done.out
}

fn json<S: AsRef<std::ffi::OsStr>>(words: impl IntoIterator<Item = S>) -> Value {
    serde_json::from_str(&fine(words)).unwrap()
}

/// Runs a verb that must be refused: status 2 and one line on standard error.
fn refused<S: AsRef<std::ffi::OsStr>>(words: impl IntoIterator<Item = S>) -> String {
    let done = passlens(words);
    assert_eq!(done.status, Some(2), "{}{}", done.out, done.err);
    assert_eq!(done.err.lines().count(), 1, "{}", done.err);
    assert!(!done.err.contains("panicked"), "{}", done.err);
    done.err
}

/// x → Conv → BatchNormalization → Identity → Relu → GlobalAveragePool → Flatten → MatMul → Add.
fn network() -> Model {
    let mut b = Builder::new("network", 17);
    let x = b.input("x", ElementType::FLOAT, &["n".into(), 2.into(), 4.into(), 4.into()]);
    let w = b.constant("conv.weight", Tensor::from_f32(&[2, 2, 1, 1], &[0.5, -1.0, 0.25, 2.0]));
    let conv = b.op("Conv", &[x, w]).named("conv").one();
    let part = |b: &mut Builder, name: &str, v: [f32; 2]| b.constant(name, Tensor::from_f32(&[2], &v));
    let (scale, bias) = (part(&mut b, "scale", [1.5, 0.5]), part(&mut b, "bias", [0.1, -0.2]));
    let (mean, var) = (part(&mut b, "mean", [0.3, 0.0]), part(&mut b, "var", [1.0, 2.0]));
    let norm = b.op("BatchNormalization", &[conv, scale, bias, mean, var]).named("norm").one();
    let same = b.op("Identity", &[norm]).named("same").one();
    let act = b.op("Relu", &[same]).named("act").one();
    let pool = b.op("GlobalAveragePool", &[act]).named("pool").one();
    let flat = b.op("Flatten", &[pool]).named("flat").one();
    let dense = b.constant("dense.weight", Tensor::from_f32(&[2, 1], &[1.0, -1.0]));
    let product = b.op("MatMul", &[flat, dense]).named("product").one();
    let offset = b.constant("offset", Tensor::from_f32(&[1], &[0.5]));
    let y = b.op("Add", &[product, offset]).named("sum").one();
    b.output_as(y, "y", ElementType::FLOAT, &["n".into(), 1.into()]);
    b.finish().unwrap()
}

struct Folder(TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Path of the small network, saved here.
    fn network(&self) -> String {
        formats::save(&network(), &self.path("network.onnx"), &SaveOptions::default()).unwrap();
        self.text("network.onnx")
    }

    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

fn operators(path: &Path) -> Vec<String> {
    let model = formats::open(path).unwrap().model;
    model.nodes_of(model.main()).map(|(_, n)| n.op_type.to_string()).collect()
}

#[test]
fn errors_are_one_line_and_status_2() {
    let folder = Folder::new();
    let (model, out) = (folder.network(), folder.text("out.onnx"));
    assert!(refused(["inspect", "no/such/file.onnx"]).contains("no/such/file.onnx"));
    assert!(refused(["optimize", &model]).contains("--output"));
    assert!(refused(["optimize", &model, "-o", &out, "--onli", "x"]).contains("--only"));
    assert!(refused(["optimise", &model]).contains("optimise"));
    assert!(refused(["optimise"]).contains("did you mean 'optimize'?"));
    let unknown = refused(["optimize", &model, "-o", &out, "--only", "fuse_conv_batchnorm"]);
    assert!(unknown.contains("did you mean 'fuse_conv_batch_norm'?"), "{unknown}");
    let rounds = |n: &str| refused(["optimize", &model, "-o", &out, "--rounds", n]);
    assert!(
        rounds("-1").contains("whole number") && rounds("two").contains("whole number"),
        "{}",
        rounds("-1")
    );
    fs::write(folder.path("empty.json"), b"").unwrap();
    assert!(refused(["inspect", &folder.text("empty.json")]).contains("empty.json: the file is empty"));
    fs::remove_file(folder.path("empty.json")).unwrap();
    assert!(refused(["passes", "nothing_like_it"]).contains("nothing_like_it"));
    assert!(refused(["optimize", &model, "-o", &out, "--exclude", "nonsense"]).contains("--dry-run"));
    assert!(refused(["optimize", &model, "-o", &out, "--config", "none.toml"]).contains("none.toml"));
    assert!(refused(["optimize", &model, "-o", &folder.text("no/folder/out.onnx")]).contains("no/folder"));
    assert!(refused(["extract", &model, "-o", &out, "--to", "same_output"]).contains("same_output_0"));
    fs::write(folder.path("zip.onnx"), b"PK\x03\x04 and so on").unwrap();
    assert!(refused(["optimize", &folder.text("zip.onnx"), "-o", &out]).contains("zip.onnx"));
    assert_eq!(folder.files(), ["network.onnx", "zip.onnx"]);
}

#[test]
fn help_and_version_are_answers() {
    assert!(fine(["--help"]).contains("optimize"));
    assert!(fine(["optimize", "--help"]).contains("--dry-run"));
    assert_eq!(fine(["--version"]), format!("passlens {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn no_round_is_the_identity() {
    let folder = Folder::new();
    let (model, out) = (folder.network(), folder.text("out.onnx"));
    fine(["optimize", &model, "-o", &out, "--rounds", "0"]);
    assert!(fs::read(&model).unwrap() == fs::read(&out).unwrap());
}

#[test]
fn optimizing_twice_gives_the_same_bytes_and_fuses_what_can_be() {
    let folder = Folder::new();
    let (model, one, two) = (folder.network(), folder.text("one.onnx"), folder.text("two.onnx"));
    let said = fine(["optimize", &model, "-o", &one, "--no-verify"]);
    assert!(said.contains("fuse_conv_batch_norm") && said.contains("not verified"), "{said}");
    fine(["optimize", &model, "-o", &two]);
    assert!(fs::read(&one).unwrap() == fs::read(&two).unwrap());
    assert_eq!(operators(&folder.path("one.onnx")), ["Conv", "Relu", "GlobalAveragePool", "Flatten", "Gemm"]);
}

#[test]
fn the_report_of_a_run_has_the_keys_that_scripts_rely_on() {
    let folder = Folder::new();
    let (model, out) = (folder.network(), folder.text("out.onnx"));
    let report = json(["optimize", &model, "-o", &out, "--json"]);
    assert_eq!((report["nodes_before"].as_u64(), report["nodes_after"].as_u64()), (Some(8), Some(5)));
    assert_eq!(report["stop_reason"], "converged");
    for pass in report["passes"].as_array().unwrap() {
        for key in ["name", "stage", "round", "sites", "declined", "seconds", "verification", "latency"] {
            assert!(pass.get(key).is_some(), "{key} is missing in {pass}");
        }
        assert_eq!(pass["verification"]["mark"], "not_run");
        assert!(pass["verification"]["worst"].is_null() && pass["latency"].is_null());
    }
    let steps = report["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 3);
    for (i, step) in steps.iter().enumerate() {
        assert_eq!(step["number"].as_u64(), Some(i as u64 + 1));
        assert!(step["site"].as_str().unwrap().starts_with(step["pass"].as_str().unwrap()));
    }
    let passes = json(["passes", "--json"]);
    let entries = passes["passes"].as_array().unwrap();
    assert!(entries.iter().any(|pass| pass["name"] == "fuse_conv_batch_norm" && pass["risk"] == "rounding"));
    let inspected = json(["inspect", &model, "--json"]);
    assert_eq!(inspected["nodes"], 8);
    assert_eq!(inspected["inputs"][0]["type"], "float[n, 2, 4, 4]");
    assert_eq!(inspected["outputs"][0]["name"], "y");
    assert_eq!(inspected["parameters"], 15);
}

#[test]
fn keys_of_json_keep_their_order() {
    let folder = Folder::new();
    let model = folder.network();
    let text = fine(["inspect", &model, "--json"]);
    let place = |key: &str| text.find(&format!("\n  \"{key}\"")).unwrap();
    let order = ["file", "format", "ir_version", "inputs", "outputs", "operators", "blocks", "problems"];
    assert!(order.windows(2).all(|pair| place(pair[0]) < place(pair[1])), "{text}");
    assert_eq!(keys(&json(["passes", "--json"])), ["passes"]);
}

#[test]
fn a_dry_run_lists_keys_that_exclude_takes_and_writes_nothing() {
    let folder = Folder::new();
    let model = folder.network();
    let listed = json(["optimize", &model, "--dry-run", "--json"]);
    assert_eq!(folder.files(), ["network.onnx"]);
    let passes = listed["passes"].as_array().unwrap();
    let fusing = passes.iter().find(|pass| pass["name"] == "fuse_conv_batch_norm").unwrap();
    let key = fusing["sites"][0]["site"].as_str().unwrap().to_owned();
    assert!(fine(["optimize", &model, "--dry-run"]).contains(&key));
    let out = folder.text("out.onnx");
    fine(["optimize", &model, "-o", &out, "--exclude", &key]);
    assert!(operators(&folder.path("out.onnx")).contains(&"BatchNormalization".to_owned()));
}

/// Runs a verb that succeeds with one remark, and gives that.
fn remarked<S: AsRef<std::ffi::OsStr>>(words: impl IntoIterator<Item = S>) -> (String, String) {
    let done = passlens(words);
    assert_eq!(done.status, Some(0), "{}{}", done.out, done.err);
    assert_eq!(done.err.lines().count(), 1, "{}", done.err);
    assert!(done.err.starts_with("passlens: note: "), "{}", done.err);
    (done.out, done.err)
}

#[test]
fn exclusions_that_fit_nothing_are_said_everywhere() {
    let folder = Folder::new();
    let (model, out) = (folder.network(), folder.text("out.onnx"));
    let (recipe, log, report) = (folder.text("r.toml"), folder.text("l.jsonl"), folder.text("r.md"));
    let listed = fine(["optimize", &model, "--dry-run"]);
    assert!(listed.contains("fuse_conv_batch_norm@\"conv_output_0\"#0"), "{listed}");
    fs::write(
        &recipe,
        "version = 1\n[global]\nexclude = ['fuse_conv_batch_norm@\"conv_output_1\"#0']\n[pass.merge_reshapes]\nexclude_blocks = ['encoder']\n",
    )
    .unwrap();
    let words =
        ["optimize", &model, "-o", &out, "--config", &recipe, "--log", &log, "--report", &report, "--json"];
    let (printed, said) = remarked(words);
    assert!(said.contains("no site fuse_conv_batch_norm@\"conv_output_1\"#0 was found"), "{said}");
    assert!(said.contains("did you mean 'fuse_conv_batch_norm@\"conv_output_0\"#0'?"), "{said}");
    assert!(said.contains("no block is called 'encoder'"), "{said}");
    let printed: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(printed["unmatched"][0]["exclusion"], "fuse_conv_batch_norm@\"conv_output_1\"#0");
    assert_eq!(printed["unmatched"][1]["exclusion"], "encoder");
    assert_eq!(fs::read_to_string(&log).unwrap().matches("\"unmatched\"").count(), 2);
    assert!(fs::read_to_string(&report).unwrap().contains("no block is called 'encoder'"));
    let (_, said) = remarked(["optimize", &model, "--dry-run", "--exclude", "merge_reshapes@nothing"]);
    assert!(said.contains("other rewrites may open it up"), "{said}");
    let off =
        ["optimize", &model, "-o", &out, "--without", "merge_reshapes", "--exclude", "merge_reshapes@y"];
    assert!(remarked(off).1.contains("the pass did not run"));
    // A pass that there is not is refused, on the command line and in a file.
    let unknown = refused(["optimize", &model, "-o", &out, "--exclude", "merge_reshape@y"]);
    assert!(
        unknown.contains("--exclude: unknown pass 'merge_reshape'; did you mean 'merge_reshapes'?"),
        "{unknown}"
    );
    fs::write(&recipe, "version = 1\n[global]\nexclude = ['merge_reshape@y']\n").unwrap();
    let unknown = refused(["optimize", &model, "-o", &out, "--config", &recipe]);
    assert!(unknown.contains("r.toml: global.exclude: unknown pass 'merge_reshape'"), "{unknown}");
    assert!(
        remarked(["optimize", &model, "-o", &out, "--only", "merge_reshapes", "--without", "merge_reshapes"])
            .1
            .contains("does not run")
    );
}

#[test]
fn a_configuration_keeps_the_step_to_stop_at_and_is_written_in_a_dry_run() {
    let folder = Folder::new();
    let (model, one, two) = (folder.network(), folder.text("one.onnx"), folder.text("two.onnx"));
    let recipe = folder.text("recipe.toml");
    let said = fine(["optimize", &model, "--dry-run", "--stop-at", "2", "--save-config", &recipe]);
    assert!(said.contains("only the configuration was written"), "{said}");
    assert_eq!(folder.files(), ["network.onnx", "recipe.toml"]);
    let report = json(["optimize", &model, "-o", &one, "--config", &recipe, "--json"]);
    assert_eq!(
        (report["stop_reason"].as_str(), report["steps"].as_array().unwrap().len()),
        (Some("stop_at"), 2)
    );
    fine(["optimize", &model, "-o", &two, "--stop-at", "2"]);
    assert_eq!(fs::read(&one).unwrap(), fs::read(&two).unwrap());
    assert!(refused(["optimize", &model, "--dry-run", "--log", &folder.text("l")]).contains("--log"));
}

#[test]
fn the_end_of_a_name_says_what_is_written() {
    let folder = Folder::new();
    let model = folder.network();
    let begins = |name: &str| fs::read(folder.path(name)).unwrap()[..1].to_owned();
    for (verb, words) in [("optimize", &["--rounds", "0"][..]), ("extract", &["--to", "y"]), ("text", &[])] {
        for (ending, format) in [("onnx", "onnx"), ("json", "json"), ("txt", "text")] {
            let name = format!("{verb}.{ending}");
            let file = folder.text(&name);
            fine([verb, &model, "-o", &file].iter().chain(words));
            let read = json(["inspect", &file, "--json"]);
            assert_eq!((read["format"].as_str(), read["nodes"].as_u64()), (Some(format), Some(8)), "{name}");
            assert_eq!(begins(&name) == b"\x08", format == "onnx", "{name}");
        }
        let bad = folder.text("picture.svg");
        let error = refused([verb, &model, "-o", &bad].iter().chain(words));
        assert!(error.contains("picture.svg: not written: its ending is '.svg'"), "{error}");
    }
    // From the text form, the same; and all of it is still the model.
    for ending in ["onnx", "json", "txt"] {
        fine(["text", &folder.text("text.txt"), "-o", &folder.text(&format!("again.{ending}"))]);
        fine([
            "optimize",
            &folder.text(&format!("again.{ending}")),
            "-o",
            &folder.text("last.onnx"),
            "--rounds",
            "0",
        ]);
        assert_eq!(fs::read(folder.path("last.onnx")).unwrap(), fs::read(&model).unwrap(), "{ending}");
    }
    let lost = refused(["optimize", &model, "-o", &folder.text("x.json"), "--data", "file"]);
    assert!(lost.contains("name the file .onnx"), "{lost}");
    assert!(
        refused(["optimize", &model, "-o", &folder.text("o.onnx"), "--log", &folder.text("l.onnx")])
            .contains("a model's name")
    );
}

#[test]
fn errors_of_writing_name_the_file_that_was_asked_for() {
    let folder = Folder::new();
    let model = folder.network();
    let nowhere = folder.text("none/deep/out.onnx");
    for words in [
        vec!["optimize", &model, "-o", &nowhere],
        vec!["extract", &model, "--to", "y", "-o", &nowhere],
        vec!["optimize", &model, "-o", &folder.text("out.onnx"), "--log", &nowhere.replace(".onnx", ".log")],
        vec![
            "optimize",
            &model,
            "-o",
            &folder.text("out.onnx"),
            "--report",
            &nowhere.replace(".onnx", ".md"),
        ],
        vec!["text", &model, "-o", &nowhere.replace(".onnx", ".txt")],
        vec!["text", &model, "-o", &nowhere.replace(".onnx", ".json")],
        vec!["render", &model, "-o", &nowhere.replace(".onnx", ".svg")],
    ] {
        let error = refused(&words);
        assert!(
            error.contains("none/deep/out.") && error.contains("there is no folder"),
            "{words:?}: {error}"
        );
        assert!(!error.contains(".passlens-"), "{words:?}: {error}");
    }
    assert_eq!(folder.files(), ["network.onnx"]);
}

#[test]
fn parameters_in_constant_nodes_are_counted() {
    let mut b = Builder::new("constants", 17);
    let x = b.input("x", ElementType::FLOAT, &[3.into()]);
    let c = b.op("Constant", &[]).attr("value", Tensor::from_f32(&[3], &[1.0, 2.0, 3.0])).one();
    let ints = b.op("Constant", &[]).attr("value_ints", [1, 2]).one();
    let y = b.op("Add", &[x, c]).one();
    let z = b.op("Identity", &[ints]).one();
    b.output(y);
    b.output(z);
    let folder = Folder::new();
    let model = folder.text("constants.onnx");
    formats::save(&b.finish().unwrap(), Path::new(&model), &SaveOptions::default()).unwrap();
    let report = json(["inspect", &model, "--json"]);
    assert_eq!(
        (report["parameters"].as_u64(), report["parameters_in_constants"].as_u64()),
        (Some(5), Some(5))
    );
    assert!(fine(["inspect", &model]).contains("5 parameters (in Constant nodes)"));
}

#[test]
fn only_without_and_stop_at_do_what_they_say() {
    let folder = Folder::new();
    let (model, out) = (folder.network(), folder.text("out.onnx"));
    let steps = |words: &[&str]| -> Vec<String> {
        let all = ["optimize", &model, "-o", &out, "--json"].into_iter().chain(words.iter().copied());
        let report = json(all);
        let steps = report["steps"].as_array().unwrap().iter();
        steps.map(|step| step["pass"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(steps(&["--only", "fuse_matmul_add"]), ["fuse_matmul_add"]);
    assert_eq!(operators(&folder.path("out.onnx")).len(), 7);
    let without = steps(&["--without", "eliminate_identity"]);
    assert!(!without.iter().any(|pass| pass == "eliminate_identity") && !without.is_empty());
    assert_eq!(steps(&["--stop-at", "1"]).len(), 1);
    assert_eq!(operators(&folder.path("out.onnx")).len(), 7);
}

#[test]
fn a_saved_configuration_gives_the_same_file_and_a_log_tells_every_step() {
    let folder = Folder::new();
    let model = folder.network();
    let (one, two) = (folder.text("one.onnx"), folder.text("two.onnx"));
    let (recipe, log) = (folder.text("recipe.toml"), folder.text("log.jsonl"));
    fine(["optimize", &model, "-o", &one, "--only", "fuse_conv_batch_norm", "--save-config", &recipe]);
    fine(["optimize", &model, "-o", &two, "--config", &recipe, "--log", &log]);
    assert!(fs::read(&one).unwrap() == fs::read(&two).unwrap());
    let lines = fs::read_to_string(folder.path("log.jsonl")).unwrap();
    let events: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events[0]["kind"], "configuration");
    assert_eq!(events.iter().filter(|event| event["result"] == "applied").count(), 1);
    assert_eq!(events.last().unwrap()["result"], "stopped");
}

#[test]
fn a_report_is_written_in_the_form_that_its_name_asks_for() {
    let folder = Folder::new();
    let (model, out) = (folder.network(), folder.text("out.onnx"));
    for (name, part) in [("r.html", "<html"), ("r.md", "| pass"), ("r.json", "\"configuration\"")] {
        fine(["optimize", &model, "-o", &out, "--report", &folder.text(name)]);
        let text = fs::read_to_string(folder.path(name)).unwrap();
        assert!(text.contains(part), "{name}: {text}");
    }
    assert!(refused(["optimize", &model, "-o", &out, "--report", "r.pdf"]).contains(".html"));
}

#[test]
fn provenance_is_written_into_the_nodes_that_were_touched() {
    let folder = Folder::new();
    let (model, out) = (folder.network(), folder.text("out.onnx"));
    fine(["optimize", &model, "-o", &out, "--provenance"]);
    let saved = formats::open(&folder.path("out.onnx")).unwrap().model;
    let of = |operator: &str, key: &str| -> Option<String> {
        let (_, node) = saved.nodes_of(saved.main()).find(|(_, n)| n.is(operator))?;
        node.metadata.iter().find(|(k, _)| &**k == key).map(|(_, v)| v.to_string())
    };
    let origins: Vec<String> = serde_json::from_str(&of("Conv", "passlens.origins").unwrap()).unwrap();
    assert_eq!(origins, ["conv", "norm"]);
    assert!(of("Conv", "passlens.steps").unwrap().contains("fuse_conv_batch_norm"));
    assert_eq!(of("Flatten", "passlens.steps"), None);
}

#[test]
fn models_that_differ_give_status_1() {
    let folder = Folder::new();
    let (model, out) = (folder.network(), folder.text("out.onnx"));
    assert_eq!(fine(["diff", &model, &model]), "no difference\n");
    fine(["optimize", &model, "-o", &out]);
    let done = passlens(["diff", &model, &out, "--weights", "--json"]);
    assert_eq!((done.status, done.err.as_str()), (Some(1), ""));
    let report: Value = serde_json::from_str(&done.out).unwrap();
    let marked = |mark: &str| -> Vec<&str> {
        let nodes = report["nodes"].as_array().unwrap().iter().filter(|n| n["mark"] == mark);
        nodes.map(|n| n["operator"].as_str().unwrap()).collect()
    };
    assert!(marked("removed").contains(&"Identity"), "{}", done.out);
    assert_eq!(report["removed"].as_u64(), Some(3));
    assert!(marked("changed").contains(&"Conv"), "{}", done.out);
}

#[test]
fn a_region_becomes_a_model_and_what_it_lacks_is_named() {
    let folder = Folder::new();
    let (model, out) = (folder.network(), folder.text("part.onnx"));
    let report =
        json(["extract", &model, "-o", &out, "--from", "conv_output_0", "--to", "flat_output_0", "--json"]);
    assert_eq!(report["nodes"], 5);
    assert_eq!(report["inputs"][0]["type"], "float[n, 2, 4, 4]");
    assert_eq!(
        operators(&folder.path("part.onnx")),
        ["BatchNormalization", "Identity", "Relu", "GlobalAveragePool", "Flatten"]
    );
    let lacking = refused(["extract", &model, "-o", &out, "--from", "y", "--to", "flat_output_0"]);
    assert!(lacking.contains("'x' (an input of the graph)"), "{lacking}");
}

#[test]
fn a_reader_that_goes_away_ends_the_program_quietly() {
    let folder = Folder::new();
    let model = folder.network();
    let mut child = Command::new(env!("CARGO_BIN_EXE_passlens"))
        .args(["inspect", &model, "--all"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let done = child.wait_with_output().unwrap();
    assert_eq!((done.status.code(), done.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn a_text_leads_back_to_the_model_wherever_it_stands() {
    let folder = Folder::new();
    let (model, out) = (folder.network(), folder.text("out.onnx"));
    fs::create_dir(folder.path("texts")).unwrap();
    let text = folder.text("texts/network.txt");
    let shown = fine(["text", &model]);
    assert!(
        shown.contains("[act] Relu_output_0 = Relu (") || shown.contains("[act] act_output_0 = Relu ("),
        "{shown}"
    );
    fine(["text", &model, "--weights", "reference", "-o", &text]);
    let written = fs::read_to_string(&text).unwrap();
    assert!(
        written.contains(r#"["model": "../network.onnx", "value": "conv.weight", "xxh3": "#),
        "{written}"
    );
    let report = json(["text", &text, "-o", &out, "--json"]);
    assert_eq!((report["made"].as_str(), report["nodes"].as_u64()), (Some("model"), Some(8)));
    assert_eq!(fs::read(&model).unwrap(), fs::read(&out).unwrap());
    // Every verb takes a text in place of a model.
    assert_eq!(json(["inspect", &text, "--json"])["nodes"], 8);
    assert!(refused(["text", &text]).contains("-o"));
    assert!(refused(["text", &model, "-o", &model]).contains("replace itself"));
    fs::write(folder.path("letter.txt"), "Dear reader,\nthis is no model.").unwrap();
    assert!(
        refused(["inspect", &folder.text("letter.txt")]).contains("not the text form of a model (line 1")
    );
    assert!(refused(["text", &folder.text("letter.txt")]).contains("not the text form of a model (line 1"));
    fs::write(folder.path("wrong.txt"), "g (float x) => (float y) {\n  y = Relu (z)\n}").unwrap();
    assert!(refused(["inspect", &folder.text("wrong.txt")]).contains("line 2, column 13: nothing gives 'z'"));
    fs::remove_file(&model).unwrap();
    assert!(refused(["inspect", &text]).contains("network.onnx"));
}

/// Files that must be refused, from the folder of cases beside the repository; without it there is nothing to do.
#[test]
fn hostile_files_are_refused_in_one_line_and_leave_nothing() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/cases");
    let Ok(index) = fs::read_to_string(cases.join("index.tsv")) else { return };
    let mut refusals = 0;
    for line in index.lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let Some(file) = fields.get(1) else { continue };
        if !line.contains("\"hostile\": true") && !line.contains("\"hostile\":true") {
            continue;
        }
        let folder = Folder::new();
        let model = cases.join(file).display().to_string();
        if !Path::new(&model).exists() {
            continue;
        }
        refused(["optimize", &model, "-o", &folder.text("out.onnx")]);
        assert!(folder.files().is_empty(), "{model} left {:?}", folder.files());
        refusals += 1;
    }
    assert!(refusals > 0, "the index names no hostile case");
}

/// Every key of a document, the inner ones too, is in the README's section on JSON.
#[test]
fn the_readme_names_every_key() {
    fn walk(value: &Value, into: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                for (key, inner) in fields {
                    into.push(key.clone());
                    // The keys of metadata are the model's.
                    if key != "metadata" {
                        walk(inner, into);
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| walk(item, into)),
            _ => {}
        }
    }
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let section = readme.split("\n## ").find(|part| part.starts_with("JSON")).unwrap();
    let words: std::collections::BTreeSet<&str> =
        section.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let folder = Folder::new();
    let (model, out) = (folder.network(), folder.text("out.onnx"));
    let mut documents = vec![
        json(["inspect", &model, "--json"]),
        json(["passes", "--json"]),
        json(["optimize", &model, "-o", &out, "--json"]),
        json(["optimize", &model, "--dry-run", "--json"]),
    ];
    documents
        .push(serde_json::from_str(&passlens(["diff", &model, &out, "--weights", "--json"]).out).unwrap());
    documents.push(json(["extract", &model, "-o", &out, "--to", "y", "--json"]));
    documents.push(json(["text", &model, "--json"]));
    for document in documents {
        let mut found = Vec::new();
        walk(&document, &mut found);
        let missing: Vec<&String> = found.iter().filter(|key| !words.contains(key.as_str())).collect();
        assert!(missing.is_empty(), "the README does not name {missing:?}");
    }
}

#[test]
fn no_file_is_written_over_another_or_over_what_is_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (model, out) = (path("in.onnx"), path("out.onnx"));
    formats::save(&network(), Path::new(&model), &SaveOptions::default()).unwrap();
    let before = fs::read(&model).unwrap();
    let error = refused(["optimize", &model, "-o", &out, "--log", &model]);
    assert!(error.contains("IN and --log are the same file"), "{error}");
    assert!(
        refused(["optimize", &model, "-o", &out, "--save-config", &out]).contains("-o and --save-config")
    );
    assert!(refused(["optimize", &model, "-o", &out, "--log", &format!("{out}.data")]).contains("--log"));
    assert!(!Path::new(&out).exists());
    #[cfg(unix)]
    {
        let socket = path("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert!(refused(["optimize", &model, "-o", &socket]).contains("no regular file"));
        assert!(Path::new(&socket).exists());
    }
    assert_eq!(fs::read(&model).unwrap(), before);
    fine(["optimize", &model, "-o", &model]);
}

/// Without a display the terminal does the window's first job: a model that does not open is one line all the same.
#[test]
fn a_model_that_does_not_open_is_one_line_without_a_display_too() {
    let folder = Folder::new();
    fs::write(folder.path("zip.onnx"), b"PK\x03\x04 and so on").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_passlens"));
    command.arg(folder.path("zip.onnx")).current_dir(folder.path("."));
    for display in ["DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET"] {
        command.env_remove(display);
    }
    let done = command.output().unwrap();
    let said = String::from_utf8(done.stderr).unwrap();
    assert_eq!((done.status.code(), said.lines().count()), (Some(2), 1), "{said}");
    assert!(said.contains("zip.onnx"), "{said}");
    assert_eq!(folder.files(), ["zip.onnx"]);
}

/// A file whose nodes stand before what they read comes back sorted: that is said.
#[test]
fn a_model_that_was_sorted_is_said_to_be() {
    let folder = Folder::new();
    let (model, out) = (folder.text("unsorted.json"), folder.text("out.onnx"));
    let port =
        |name: &str| format!(r#"{{"name": "{name}", "type": {{"tensor_type": {{"elem_type": "FLOAT"}}}}}}"#);
    let text = format!(
        r#"{{"format": "passlens-graph", "version": 1, "model": {{"ir_version": 8, "opset_import": [{{"version": 17}}], "graph": {{"name": "g",
        "node": [{{"input": ["a"], "output": ["y"], "op_type": "Relu"}}, {{"input": ["x"], "output": ["a"], "op_type": "Exp"}}],
        "input": [{}], "output": [{}]}}}}}}"#,
        port("x"),
        port("y")
    );
    fs::write(&model, text).unwrap();
    let said = fine(["optimize", &model, "-o", &out, "--rounds", "0"]);
    assert!(said.contains("warning: the nodes of main were not in an order in which they can run"), "{said}");
    let report = json(["optimize", &model, "-o", &out, "--json"]);
    assert!(report["problems"][0]["text"].as_str().unwrap().ends_with("sorted"), "{report}");
}

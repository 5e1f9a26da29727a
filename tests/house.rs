//! How the source itself is built: rooms use only rooms below them, files say what they hold and stay short.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Rooms, lowest first; a room uses rooms of earlier rows only.
const ROWS: &[&[&str]] = &[
    &["ir", "table"],
    &["samples", "formats", "facts"],
    &["blocks", "diff", "engine"],
    &["passes"],
    &["pipeline"],
    &["numerics", "measure", "memory"],
    &["bisect", "quantize"],
    &["report", "scene"],
    &["session"],
    &["gui", "cli"],
];

/// Arrows inside a row that are meant: where a front end hands over to the other.
const WITHIN_A_ROW: &[(&str, &str)] = &[("cli", "gui")];

/// A file over about this many lines is two files; over the limit it has to be.
const LONG: usize = 600;
const LIMIT: usize = 700;

/// Names that say nothing about what a file holds.
const EMPTY_NAMES: &[&str] = &["utils", "util", "helpers", "helper", "misc", "common", "manager", "stuff"];

struct Source {
    /// Relative to the package.
    path: PathBuf,
    text: String,
}

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All Rust files under some folders of the package.
fn sources(folders: &[&str]) -> Vec<Source> {
    let mut open: Vec<PathBuf> = folders.iter().map(|f| package().join(f)).collect();
    let mut found = Vec::new();
    while let Some(folder) = open.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for path in entries.map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push(Source { path: path.strip_prefix(package()).unwrap().to_owned(), text });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(!found.is_empty());
    found
}

/// The room of a file under src: the folder or file right below it; none for lib.rs and main.rs.
fn room(path: &Path) -> Option<String> {
    let name = path.components().nth(1)?.as_os_str().to_str()?;
    let name = name.strip_suffix(".rs").unwrap_or(name);
    (!matches!(name, "lib" | "main")).then(|| name.to_owned())
}

/// Code without comments, text in quotes and the test module at the end of a file.
fn code_only(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    code.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Rooms that a file names: `crate::x`, in a nested use `crate::{x, y::z}`, and `super::…::x` that leaves its room.
fn rooms_named(source: &Source) -> BTreeSet<String> {
    let code = code_only(&source.text);
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        // `$crate::x` and `xcrate::` are other words only when a letter stands before.
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let rest = &code[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            None => found.extend(first_word(rest)),
            Some(list) => found.extend(outer_items(list).iter().filter_map(|item| first_word(item))),
        }
    }
    // Modules between the room and the file: `super` as often leads to the crate's root and out of the room.
    let inner = source.path.components().count() - 2;
    let depth = inner + usize::from(!source.path.ends_with("mod.rs"));
    let out = "super::".repeat(depth.max(1));
    for (at, _) in code.match_indices(&out) {
        if !code[..at].ends_with("super::") {
            found.extend(first_word(&code[at + out.len()..]).filter(|word| word != "super"));
        }
    }
    found
}

fn first_word(text: &str) -> Option<String> {
    let word: String = text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (!word.is_empty()).then_some(word)
}

/// Items of a list in braces whose opening brace is gone, at its own depth.
fn outer_items(list: &str) -> Vec<String> {
    let mut items = vec![String::new()];
    let mut depth = 0;
    for c in list.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => items.push(String::new()),
            c if depth == 0 => items.last_mut().unwrap().push(c),
            _ => {}
        }
    }
    items
}

#[test]
fn rooms_use_only_rooms_below_them() {
    let row_of: BTreeMap<&str, usize> =
        ROWS.iter().enumerate().flat_map(|(row, rooms)| rooms.iter().map(move |room| (*room, row))).collect();
    let mut wrong = Vec::new();
    let mut arrows = BTreeSet::new();
    for source in sources(&["src"]) {
        let Some(from) = room(&source.path) else { continue };
        let Some(row) = row_of.get(&*from) else {
            wrong.push(format!("{}: '{from}' is no room of the house", source.path.display()));
            continue;
        };
        for to in rooms_named(&source) {
            let Some(other) = row_of.get(&*to).filter(|_| to != from) else { continue };
            let meant = WITHIN_A_ROW.contains(&(&*from, &*to));
            if other >= row && !meant {
                wrong.push(format!("{}: {from} must not use {to}", source.path.display()));
            }
            arrows.insert((from.clone(), to));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let expected = [("passes", "ir"), ("pipeline", "passes"), ("session", "pipeline"), ("blocks", "facts")];
    for (from, to) in expected {
        assert!(arrows.contains(&(from.to_owned(), to.to_owned())), "the scan finds {from} → {to}");
    }
}

#[test]
fn the_scan_sees_every_way_to_name_a_room() {
    let named = |path: &str, text: &str| {
        let source = Source { path: path.into(), text: text.into() };
        rooms_named(&source).into_iter().collect::<Vec<_>>()
    };
    assert_eq!(named("src/a/b.rs", "use crate::ir::{self, x};\nlet y = crate::gui::z();"), ["gui", "ir"]);
    assert_eq!(
        named("src/a/b.rs", "use crate::{ir::{x, y}, facts, table::Table};"),
        ["facts", "ir", "table"]
    );
    assert_eq!(named("src/a/b.rs", "// crate::gui\nuse super::c;\nuse super::super::cli::X;"), ["cli"]);
    assert_eq!(named("src/a/mod.rs", "use super::cli;"), ["cli"]);
    assert_eq!(named("src/a/b/c.rs", "use super::super::d;\nuse super::super::super::cli;"), ["cli"]);
    assert_eq!(named("src/a/b.rs", "fn f() {}\n#[cfg(test)]\nmod tests {\n use crate::gui; }"), [""; 0]);
}

#[test]
fn every_file_says_what_it_holds() {
    let silent: Vec<String> = sources(&["src", "tests", "benches"])
        .iter()
        .filter(|s| !s.text.starts_with("//! "))
        .map(|s| s.path.display().to_string())
        .collect();
    assert!(silent.is_empty(), "these do not begin with a //! comment: {silent:?}");
}

#[test]
fn files_are_short_and_have_names_that_mean_something() {
    let mut wrong = Vec::new();
    for source in sources(&["src", "tests", "benches"]) {
        let lines = source.text.lines().count();
        let shown = source.path.display();
        if lines > LIMIT {
            wrong.push(format!("{shown}: {lines} lines; over about {LONG} it is two files"));
        } else if lines > LONG {
            eprintln!("{shown}: {lines} lines, getting long");
        }
        let names = source.path.components().filter_map(|c| c.as_os_str().to_str());
        for name in names.map(|n| n.strip_suffix(".rs").unwrap_or(n)) {
            if EMPTY_NAMES.contains(&name) {
                wrong.push(format!("{shown}: '{name}' says nothing about what it holds"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn nothing_speaks_of_the_machine_it_was_written_on() {
    let places = ["/home/", "/root/", "/work/", "/tmp/", "/Users/", "C:\\\\Users"];
    let mut wrong = Vec::new();
    for source in sources(&["src", "tests", "benches"]).iter().filter(|s| !s.path.ends_with("house.rs")) {
        for (number, line) in source.text.lines().enumerate() {
            if places.iter().any(|place| line.contains(place)) {
                wrong.push(format!("{}:{}: {}", source.path.display(), number + 1, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

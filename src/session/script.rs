//! Scripts: JSON lines of commands, with `wait_idle`, `shot FILE` and `expect` between them. A line that begins with
//! `#` is a remark. A bug report is a script, and so are the pictures of the window.

use super::{Command, Session};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// One line.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Line {
    Command(Command),
    Other(Other),
}

/// What is not a command to the session.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Other {
    /// Wait until nothing runs, at most so many seconds.
    WaitIdle(f64),
    /// A picture of the window.
    Shot(PathBuf),
    /// The window's size in points, and pixels per point.
    Window {
        width: f32,
        height: f32,
        #[serde(default = "one")]
        scale: f32,
    },
    /// Light or dark.
    Theme(Theme),
    /// Stop with an error when something is not so.
    Expect(Expect),
}

fn one() -> f32 {
    1.0
}

/// Light or dark.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Theme {
    Light,
    Dark,
}

/// What should be so; only what is given is looked at.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Expect {
    /// Name of the open document; empty for none.
    pub document: Option<String>,
    pub steps: Option<u32>,
    /// Step that is looked at.
    pub step: Option<u32>,
    /// Nodes of the model at that step.
    pub nodes: Option<usize>,
    /// Label of the chosen node.
    pub selected: Option<String>,
    /// Number of search hits.
    pub hits: Option<usize>,
    /// Number of failures on screen.
    pub cards: Option<usize>,
    /// Part of the text of some failure on screen.
    pub card_says: Option<String>,
    /// At least so many boxes in the picture.
    pub boxes_at_least: Option<usize>,
    pub boxes_at_most: Option<usize>,
}

/// What is wrong with a script.
#[derive(Debug, thiserror::Error, PartialEq)]
#[error("line {line}: {message}")]
pub struct ScriptError {
    pub line: usize,
    pub message: String,
}

/// Reads a script.
pub fn parse(text: &str) -> Result<Vec<(usize, Line)>, ScriptError> {
    let mut lines = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let line_number = i + 1;
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        let wrong = |e: serde_json::Error| ScriptError { line: line_number, message: e.to_string() };
        let value: serde_json::Value = serde_json::from_str(line).map_err(wrong)?;
        // Told apart by hand: the message of an untagged enum says nothing.
        let parsed = match value.get("do") {
            Some(_) => Line::Command(serde_json::from_value(value).map_err(wrong)?),
            None => Line::Other(serde_json::from_value(value).map_err(wrong)?),
        };
        lines.push((line_number, parsed));
    }
    Ok(lines)
}

/// Holds a session against what should be so.
pub fn check(session: &Session, expect: &Expect) -> Result<(), String> {
    let document = session.document();
    let shown = session.shown();
    let model = shown.map(|s| &s.state.model);
    let selected = match (session.selected(), model) {
        (Some(crate::scene::Place { item: crate::scene::Item::Node(n), .. }), Some(m)) => m.node_label(*n),
        _ => String::new(),
    };
    let boxes = shown.and_then(|s| s.after.as_ref().or(s.before.as_ref())).map_or(0, |p| p.boxes.len());
    let texts: Vec<&str> = session.cards().iter().map(|c| c.text.as_str()).collect();
    let equal = |what: &str, wanted: Option<String>, found: String| match wanted {
        Some(w) if w != found => Err(format!("{what}: expected {w}, found {found}")),
        _ => Ok(()),
    };
    equal("document", expect.document.clone(), document.map_or(String::new(), |d| d.name.clone()))?;
    equal("steps", expect.steps.map(|n| n.to_string()), document.map_or(0, |d| d.step_count()).to_string())?;
    equal("step", expect.step.map(|n| n.to_string()), session.step().to_string())?;
    equal("nodes", expect.nodes.map(|n| n.to_string()), model.map_or(0, |m| m.node_count()).to_string())?;
    equal("selected", expect.selected.clone(), selected)?;
    equal("hits", expect.hits.map(|n| n.to_string()), session.hits().total.to_string())?;
    equal("cards", expect.cards.map(|n| n.to_string()), session.cards().len().to_string())?;
    if let Some(part) = &expect.card_says
        && !texts.iter().any(|t| t.contains(part.as_str()))
    {
        return Err(format!("no failure on screen says '{part}': {texts:?}"));
    }
    if expect.boxes_at_least.is_some_and(|n| boxes < n) || expect.boxes_at_most.is_some_and(|n| boxes > n) {
        return Err(format!("there are {boxes} boxes in the picture"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Target;

    #[test]
    fn lines_parse_and_errors_name_the_line() {
        let text = "# a remark\n{\"do\":\"open_sample\",\"name\":\"convolutional\"}\n{\"wait_idle\":10}\n{\"do\":\"select\",\"target\":{\"node\":\"conv1\"}}\n{\"expect\":{\"steps\":3}}\n{\"shot\":\"a.png\"}\n";
        let lines = parse(text).unwrap();
        assert_eq!(lines.len(), 5);
        assert_eq!(lines[2].1, Line::Command(Command::Select { target: Some(Target::node("conv1")) }));
        let error = parse("{\"do\":\"open\",\"path\":\"x\"}\n{\"do\":\"fly\"}").unwrap_err();
        assert_eq!(error.line, 2);
        assert!(error.message.contains("fly"), "{error}");
        assert!(parse("{\"expect\":{\"stepz\":1}}").unwrap_err().message.contains("stepz"));
    }
}

//! Scripts: JSON lines of commands, with `wait_idle`, `shot FILE` and `expect` between them. A line that begins with
//! `#` is a remark. A bug report is a script, and so are the pictures of the window. A command that fails ends the script,
//! unless an `expect` speaks of the failure before the next command.

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
    /// Name of the second file; empty when none is compared.
    pub compared: Option<String>,
    /// Nodes that differ.
    pub changes: Option<usize>,
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
    let compared = session.comparison().map_or(String::new(), |c| c.name.clone());
    equal("compared", expect.compared.clone(), compared)?;
    equal(
        "changes",
        expect.changes.map(|n| n.to_string()),
        shown.map_or(0, |s| s.changes.len()).to_string(),
    )?;
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

/// Failures of a script's commands that no `expect` has spoken of. Some come at once, some with the job that a command
/// started.
#[derive(Debug, Default)]
pub struct Failures {
    /// Commands that were given, with their lines.
    given: Vec<(usize, Command)>,
    /// The newest card that was looked at.
    last_card: u64,
    open: Vec<Failed>,
}

/// One of them.
#[derive(Debug)]
struct Failed {
    line: usize,
    command: Command,
    text: String,
}

impl Failures {
    /// Notes a command that is being given.
    pub fn given(&mut self, line: usize, command: &Command) {
        self.given.push((line, command.clone()));
    }

    /// Takes in the failures that came on screen since the last look, and says how many they are.
    pub fn look(&mut self, session: &Session) -> usize {
        let before = self.open.len();
        for card in session.cards().iter().filter(|card| card.id > self.last_card) {
            let titled = |(_, command): &&(usize, Command)| {
                super::work::title(command).is_some_and(|title| title.starts_with(&card.title))
            };
            let by = self.given.iter().rev().find(titled).or(self.given.last());
            if let Some((line, command)) = by {
                let (line, command, text) = (*line, command.clone(), card.text.clone());
                self.open.push(Failed { line, command, text });
            }
        }
        self.last_card = session.cards().iter().map(|card| card.id).fold(self.last_card, u64::max);
        self.open.len() - before
    }

    /// An expectation that held: what it says of failures is answered.
    pub fn answered(&mut self, expect: &Expect) {
        if expect.cards.is_some_and(|n| n > 0) {
            self.open.clear();
        }
        if let Some(part) = &expect.card_says {
            self.open.retain(|failed| !failed.text.contains(part.as_str()));
        }
    }

    /// The first failure that nothing has answered, as the error that ends the script.
    pub fn unanswered(&self) -> Option<ScriptError> {
        let failed = self.open.first()?;
        let command = serde_json::to_string(&failed.command).unwrap_or_default();
        Some(ScriptError { line: failed.line, message: format!("{command} failed: {}", failed.text) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Target;

    #[test]
    fn a_failure_is_blamed_on_its_command_until_an_expectation_speaks_of_it() {
        let wait = std::time::Duration::from_secs(60);
        let mut session = Session::new(crate::pipeline::Registry::builtin(), std::sync::Arc::new(|| {}));
        let mut failures = Failures::default();
        let open = Command::Open { path: "no/such.onnx".into() };
        failures.given(2, &open);
        session.apply(open).unwrap();
        failures.given(3, &Command::Cancel);
        assert!(session.wait_idle(wait));
        failures.look(&session);
        let error = failures.unanswered().unwrap();
        assert_eq!(error.line, 2);
        assert!(
            error.message.starts_with(r#"{"do":"open","path":"no/such.onnx"} failed: no/such.onnx:"#),
            "{error}"
        );
        failures.answered(&Expect { card_says: Some("something else".into()), ..Expect::default() });
        assert!(failures.unanswered().is_some());
        let expect = Expect { card_says: Some("cannot be read".into()), ..Expect::default() };
        check(&session, &expect).unwrap();
        failures.answered(&expect);
        failures.look(&session);
        assert_eq!(failures.unanswered(), None);
    }

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

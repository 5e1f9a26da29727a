//! `diff`: in what two models differ.

use super::Answer;
use super::failure::Failure;
use super::output::{self, counted};
use crate::diff::{self, ConstantChange, Diff, Mark, NodeChange, Rule, weights};
use crate::facts::statistics::Statistics;
use crate::formats;
use crate::ir::{Constant, Model, ValueId};
use crate::table::{Cell, Table, one_line};
use clap::Args;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Say in what two models differ: nodes added, removed, changed, rewired; exit status 1 when they do
#[derive(Debug, Args)]
pub struct Arguments {
    /// First model
    #[arg(value_name = "A")]
    before: PathBuf,
    /// Second model
    #[arg(value_name = "B")]
    after: PathBuf,
    /// Statistics of changed weights
    #[arg(long)]
    weights: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The JSON document of `diff`.
#[derive(Debug, Serialize)]
pub struct Report {
    pub before: String,
    pub after: String,
    pub differ: bool,
    /// Numbers of nodes by mark.
    pub added: usize,
    pub removed: usize,
    pub changed: usize,
    pub rewired: usize,
    /// Nodes that are the same but for their name.
    pub renamed: Vec<Renamed>,
    /// Nodes matched by `value_name`, `node_name` and `structure`.
    pub matched: BTreeMap<Rule, usize>,
    /// Differences of the models as a whole, one sentence each.
    pub model: Vec<String>,
    /// In graph order.
    pub nodes: Vec<Node>,
    /// Initializers that differ, or that only one model has.
    pub constants: Vec<Weights>,
}

/// A node that differs.
#[derive(Debug, Serialize)]
pub struct Node {
    /// `added`, `removed`, `changed` or `rewired`.
    pub mark: Mark,
    /// Where it stands: `main`, `main/If_3.then_branch`.
    pub graph: String,
    pub node: String,
    pub operator: String,
    /// What told which node it is; `null` for added and removed ones.
    pub rule: Option<Rule>,
    /// One sentence a difference.
    pub what: Vec<String>,
}

/// A node with another name.
#[derive(Debug, Serialize)]
pub struct Renamed {
    pub before: String,
    pub after: String,
}

/// An initializer that differs.
#[derive(Debug, Serialize)]
pub struct Weights {
    pub name_before: Option<String>,
    pub name_after: Option<String>,
    /// Element type and shape.
    pub type_before: Option<String>,
    pub type_after: Option<String>,
    /// With `--weights`; `null` where the two cannot be compared element by element.
    pub distance: Option<weights::Distance>,
    /// With `--weights`: range and moments.
    pub statistics_before: Option<Moments>,
    pub statistics_after: Option<Moments>,
}

/// Range, mean and standard deviation of the finite elements.
#[derive(Debug, Serialize)]
pub struct Moments {
    pub min: f64,
    pub max: f64,
    pub mean: f64,
    pub std: f64,
}

pub fn run(arguments: &Arguments) -> Result<Answer, Failure> {
    let before = formats::open(&arguments.before)?.model;
    let after = formats::open(&arguments.after)?.model;
    let diff = diff::by_matching(&before, &after);
    let report = Report::new(arguments, &before, &after, &diff);
    match arguments.json {
        true => output::print_json(&report)?,
        false => output::print(&text(&report, arguments.weights))?,
    };
    Ok(if diff.is_empty() { Answer::Fine } else { Answer::Negative })
}

impl Report {
    fn new(arguments: &Arguments, before: &Model, after: &Model, diff: &Diff) -> Report {
        let renamed = diff
            .renamed
            .iter()
            .map(|(a, b)| Renamed { before: before.node_label(*a), after: after.node_label(*b) });
        Report {
            before: arguments.before.display().to_string(),
            after: arguments.after.display().to_string(),
            differ: !diff.is_empty(),
            added: diff.count(Mark::Added),
            removed: diff.count(Mark::Removed),
            changed: diff.count(Mark::Changed),
            rewired: diff.count(Mark::Rewired),
            renamed: renamed.collect(),
            matched: diff.matched.clone(),
            model: diff.model.clone(),
            nodes: diff.nodes.iter().map(|change| node(before, after, change)).collect(),
            constants: diff
                .constants
                .iter()
                .map(|change| constant(before, after, change, arguments.weights))
                .collect(),
        }
    }
}

fn node(before: &Model, after: &Model, change: &NodeChange) -> Node {
    let (model, id) = match (change.after, change.before) {
        (Some(id), _) => (after, Some(id)),
        (None, id) => (before, id),
    };
    let found = id.and_then(|id| Some((id, model.get_node(id)?)));
    Node {
        mark: change.mark,
        graph: found.map(|(_, n)| model.graph_path(n.graph)).unwrap_or_default(),
        node: found.map(|(id, _)| model.node_label(id)).unwrap_or_default(),
        operator: found.map(|(_, n)| n.op_type.to_string()).unwrap_or_default(),
        rule: change.rule,
        what: change.what.iter().map(|what| diff::sentence(before, after, what)).collect(),
    }
}

fn constant(before: &Model, after: &Model, change: &ConstantChange, with_numbers: bool) -> Weights {
    let find = |model: &Model, value: Option<ValueId>| -> Option<(String, Option<Constant>)> {
        let value = model.get_value(value?)?;
        Some((value.name.to_string(), value.constant.clone()))
    };
    let (old, new) = (find(before, change.before), find(after, change.after));
    let data = |side: &Option<(String, Option<Constant>)>| side.as_ref().and_then(|(_, c)| c.clone());
    let (a, b) = (data(&old), data(&new));
    let dense = |constant: &Option<Constant>| constant.as_ref().and_then(|c| c.dense().cloned());
    let numbers = match (dense(&a), dense(&b)) {
        (Some(a), Some(b)) if with_numbers => {
            let moments = |s: Statistics| Moments { min: s.min, max: s.max, mean: s.mean, std: s.std };
            let of = |tensor| Statistics::of(tensor).filter(|s| s.finite > 0).map(moments);
            (weights::distance(&a, &b), of(&a), of(&b))
        }
        _ => (None, None, None),
    };
    Weights {
        name_before: old.map(|(name, _)| name),
        name_after: new.map(|(name, _)| name),
        type_before: a.map(|c| c.ty().to_string()),
        type_after: b.map(|c| c.ty().to_string()),
        distance: numbers.0,
        statistics_before: numbers.1,
        statistics_after: numbers.2,
    }
}

fn text(report: &Report, with_numbers: bool) -> String {
    if !report.differ {
        return "no difference\n".into();
    }
    let mut text = String::new();
    for line in &report.model {
        text += &format!("{}\n", one_line(line));
    }
    if !report.nodes.is_empty() {
        let mut table = Table::new(&["", "node", "operator", "in", "what"]);
        for node in &report.nodes {
            let mut what = node.what.iter();
            let sign = match node.mark {
                Mark::Added => "+ added",
                Mark::Removed => "- removed",
                Mark::Changed => "~ changed",
                Mark::Rewired => "> rewired",
            };
            let first = what.next().cloned().unwrap_or_default();
            let cells = [sign.into(), node.node.as_str().into(), node.operator.as_str().into()];
            table.row(cells.into_iter().chain([node.graph.as_str().into(), first.into()]));
            for more in what {
                table.row(["".into(), "".into(), "".into(), "".into(), more.as_str().into()]);
            }
        }
        text += &table.to_text(0);
    }
    text += &constants(report, with_numbers);
    if !report.renamed.is_empty() {
        text += &format!("{} with another name\n", counted(report.renamed.len(), "node"));
    }
    text += &format!(
        "{} added, {} removed, {} changed, {} rewired\n",
        report.added, report.removed, report.changed, report.rewired
    );
    let rules: Vec<String> =
        report.matched.iter().map(|(rule, n)| format!("{n} by {}", rule_text(*rule))).collect();
    if !rules.is_empty() {
        text += &format!("nodes matched: {}\n", rules.join(", "));
    }
    text
}

fn rule_text(rule: Rule) -> &'static str {
    match rule {
        Rule::Id => "id",
        Rule::ValueName => "value name",
        Rule::NodeName => "node name",
        Rule::Structure => "structure",
    }
}

/// Constants with other elements, with their distances when asked for; of the others only how many there are.
fn constants(report: &Report, with_numbers: bool) -> String {
    let (both, single): (Vec<_>, Vec<_>) =
        report.constants.iter().partition(|c| c.name_before.is_some() && c.name_after.is_some());
    let mut text = String::new();
    if with_numbers && !both.is_empty() {
        let columns = [
            "weight",
            "type",
            "#differing",
            "#of",
            "#largest",
            "#mean",
            "#relative",
            "range before",
            "range after",
        ];
        let mut table = Table::new(&columns);
        for c in &both {
            let range = |m: &Option<Moments>| m.as_ref().map(range_text).unwrap_or_default();
            let ty = match c.type_before == c.type_after {
                true => c.type_after.clone().unwrap_or_default(),
                false => format!(
                    "{} → {}",
                    c.type_before.clone().unwrap_or_default(),
                    c.type_after.clone().unwrap_or_default()
                ),
            };
            let name = c.name_after.clone().unwrap_or_default();
            let numbers = c.distance.as_ref().map(|d| {
                let relative = d.relative.map(Into::into).unwrap_or(Cell::Empty);
                [d.differing.into(), d.elements.into(), d.largest.into(), d.mean.into(), relative]
            });
            let numbers = numbers.unwrap_or(std::array::from_fn(|_| Cell::Empty));
            let ranges = [range(&c.statistics_before).into(), range(&c.statistics_after).into()];
            table.row([name.into(), ty.into()].into_iter().chain(numbers).chain(ranges));
        }
        text += &table.to_text(0);
    } else if !both.is_empty() {
        text +=
            &format!("{} with other elements; --weights says how far apart\n", counted(both.len(), "weight"));
    }
    let removed = single.iter().filter(|c| c.name_before.is_some()).count();
    let added = single.len() - removed;
    if removed > 0 {
        text += &format!("{} only in the first model\n", counted(removed, "initializer"));
    }
    if added > 0 {
        text += &format!("{} only in the second model\n", counted(added, "initializer"));
    }
    text
}

fn range_text(moments: &Moments) -> String {
    use crate::table::number_text as n;
    format!("{} … {}, mean {}, std {}", n(moments.min), n(moments.max), n(moments.mean), n(moments.std))
}

//! What the inspector says of the chosen thing, as rows.

use std::collections::BTreeMap;

use super::gather::state_with;
use super::rows::{Fact, Facts};
use crate::blocks::{BlockId, BlockKind, Child};
use crate::ir::{NodeId, ValueId};
use crate::pipeline::State;
use crate::scene::{Item, Place};
use crate::session::{Document, NodeCard, Session, Shown, Statistics, WeightCard};

/// At most this many operators are counted by name in a block.
const MOST_COUNTS: usize = 14;

/// Rows about what is chosen; about the model when nothing is.
pub fn facts(session: &Session, document: &Document, shown: &Shown) -> Facts {
    let Some(place) = session.selected() else { return model(document, shown) };
    match place.item {
        Item::Node(node) => session.node_card(node).map_or_else(Facts::default, |card| {
            let mut facts = self::node(&card);
            weights(session.weights(), &mut facts.rows);
            facts
        }),
        Item::Block(block) => self::block(shown, block),
        Item::Input(value) => port(state_with(document, shown, place), value, "Model input"),
        Item::Output(_, value) => port(state_with(document, shown, place), value, "Model output"),
    }
}

fn pair(name: &str, value: impl Into<String>) -> Fact {
    Fact::Pair { name: name.to_owned(), value: value.into(), default: false }
}

fn model(document: &Document, shown: &Shown) -> Facts {
    let model = &shown.state.model;
    let header = model.header();
    let mut rows = vec![Fact::Section("Model")];
    let opsets: Vec<String> = header
        .opsets
        .iter()
        .map(|(domain, version)| format!("{} {version}", if domain.is_empty() { "ai.onnx" } else { domain }))
        .collect();
    rows.push(pair("opsets", opsets.join(", ")));
    rows.push(pair("IR version", header.ir_version.to_string()));
    if !header.producer_name.is_empty() {
        rows.push(pair("producer", format!("{} {}", header.producer_name, header.producer_version)));
    }
    if document.bytes > 0 {
        rows.push(pair("file", super::panels::bytes_text(document.bytes)));
    }
    let (before, after) = (document.nodes, shown.nodes);
    let nodes = super::panels::count_text;
    rows.push(pair(
        "nodes",
        if before == after { nodes(after) } else { format!("{} → {}", nodes(before), nodes(after)) },
    ));
    if !header.functions.is_empty() {
        rows.push(pair("functions", header.functions.len().to_string()));
    }
    let graph = model.graph(model.main());
    for (title, ports) in [("Inputs", &graph.inputs), ("Outputs", &graph.outputs)] {
        rows.push(Fact::Section(title));
        for port in ports.iter().filter(|port| !model.is_constant_input(port.value)).take(40) {
            rows.push(port_row(&shown.state, "", port.value));
        }
    }
    rows.push(Fact::Section("Operators"));
    counts(shown.operators.iter().map(|(operator, count)| (&**operator, *count)), &mut rows);
    if !header.metadata.is_empty() {
        rows.push(Fact::Section("Metadata"));
        rows.extend(header.metadata.iter().map(|(key, value)| pair(key, value.to_string())));
    }
    if !header.doc.is_empty() {
        rows.push(Fact::Section("Documentation"));
        rows.push(Fact::Text(header.doc.to_string()));
    }
    Facts { title: document.name.clone(), subtitle: String::new(), rows }
}

/// Operators with how often they are there, the most frequent first.
fn counts<'a>(operators: impl Iterator<Item = (&'a str, usize)>, rows: &mut Vec<Fact>) {
    let mut list: Vec<(&str, usize)> = operators.collect();
    list.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let rest = list.len().saturating_sub(MOST_COUNTS);
    rows.extend(
        list.iter().take(MOST_COUNTS).map(|(name, count)| pair(name, super::panels::count_text(*count))),
    );
    if rest > 0 {
        rows.push(Fact::Text(format!("and {rest} more operators")));
    }
}

fn port_row(state: &State, role: &str, value: ValueId) -> Fact {
    let model = &state.model;
    let name = model.get_value(value).map_or_else(String::new, |v| v.name.to_string());
    let made = model.get_value(value).and_then(|v| v.node()).map(|(node, _)| vec![node]);
    let peers =
        made.unwrap_or_else(|| model.get_value(value).map_or_else(Vec::new, |_| model.readers(value)));
    Fact::Port {
        role: role.to_owned(),
        name,
        ty: state.facts.ty(model, value).to_string(),
        value,
        constant: false,
        peers,
    }
}

fn port(state: &State, value: ValueId, what: &str) -> Facts {
    let model = &state.model;
    let Some(v) = model.get_value(value) else { return Facts::default() };
    let mut rows = vec![Fact::Text(what.to_owned()), pair("type", state.facts.ty(model, value).to_string())];
    if let Some((node, _)) = v.node() {
        rows.push(Fact::Section("Made by"));
        rows.push(Fact::Node { text: model.node_label(node), node });
    }
    let readers = model.readers(value);
    if !readers.is_empty() {
        rows.push(Fact::Section("Read by"));
        rows.extend(readers.iter().take(60).map(|&node| Fact::Node { text: model.node_label(node), node }));
    }
    Facts { title: v.name.to_string(), subtitle: String::new(), rows }
}

fn block(shown: &Shown, id: BlockId) -> Facts {
    let (model, blocks) = (&shown.state.model, &shown.state.blocks);
    let Some(block) = blocks.get(id) else { return Facts::default() };
    let kind = match &block.kind {
        BlockKind::Graph => "graph".to_owned(),
        BlockKind::Scope => "scope of the exporter".to_owned(),
        BlockKind::Module(name) => name.to_string(),
        BlockKind::Region => "region between two values".to_owned(),
        BlockKind::Part => "part of a long level".to_owned(),
    };
    let mut rows = vec![pair("kind", kind)];
    if !block.note.is_empty() {
        rows.push(pair("note", block.note.to_string()));
    }
    if let Some(repeat) = &block.repeat {
        rows.push(pair("repeat", format!("{} of {} alike", repeat.index + 1, repeat.of)));
    }
    let mut nodes: Vec<NodeId> = Vec::new();
    let mut open = vec![id];
    while let Some(at) = open.pop() {
        let Some(block) = blocks.get(at) else { continue };
        for child in &block.children {
            match child {
                Child::Block(inner) => open.push(*inner),
                Child::Node(node) => nodes.push(*node),
            }
        }
    }
    let created = blocks.created().filter(|(_, b)| blocks.ancestors(*b).any(|around| around == id));
    nodes.extend(created.map(|(node, _)| node));
    let there: Vec<_> = nodes.iter().filter_map(|node| model.get_node(*node)).collect();
    rows.push(pair("nodes", super::panels::count_text(there.len())));
    if (there.len() as u32) != block.nodes {
        rows.push(pair("as opened", super::panels::count_text(block.nodes as usize)));
    }
    rows.push(Fact::Section("Operators"));
    let mut operators: BTreeMap<&str, usize> = BTreeMap::new();
    there.iter().for_each(|node| *operators.entry(&node.op_type).or_default() += 1);
    counts(operators.into_iter(), &mut rows);
    Facts { title: block.name.to_string(), subtitle: blocks.path(id), rows }
}

fn node(card: &NodeCard) -> Facts {
    let mut rows = Vec::new();
    if !card.summary.is_empty() {
        rows.push(Fact::Text(card.summary.clone()));
    }
    if card.removed {
        rows.push(Fact::Text("Removed by the pipeline; shown as it was opened".to_owned()));
    }
    if !card.block.is_empty() {
        rows.push(pair("block", card.block.clone()));
    }
    if card.graph != "main" {
        rows.push(pair("graph", card.graph.clone()));
    }
    let opset = card.opset.map_or_else(String::new, |opset| format!(" {opset}"));
    rows.push(pair("domain", format!("{}{opset}", card.domain)));
    for (title, ports) in [("Inputs", &card.inputs), ("Outputs", &card.outputs)] {
        rows.push(Fact::Section(title));
        for (i, port) in ports.iter().enumerate() {
            rows.push(match port {
                None => pair(&i.to_string(), "left out"),
                Some(port) => Fact::Port {
                    role: i.to_string(),
                    name: port.name.clone(),
                    ty: port.elements.clone().map_or_else(|| port.ty.clone(), |e| format!("{} {e}", port.ty)),
                    value: port.value,
                    constant: port.constant,
                    peers: port.peers.iter().map(|(node, _)| *node).collect(),
                },
            });
        }
    }
    if !card.attributes.is_empty() {
        rows.push(Fact::Section("Attributes"));
        rows.extend(card.attributes.iter().map(|a| Fact::Pair {
            name: a.name.clone(),
            value: a.value.clone(),
            default: a.is_default,
        }));
    }
    if !card.story.is_empty() || !card.origins.is_empty() {
        rows.push(Fact::Section("Story"));
        for step in &card.story {
            let text = format!("{} {}: {}", step.verb, step.pass, step.what);
            rows.push(Fact::Step { number: step.step, text });
        }
        for (node, name) in &card.origins {
            rows.push(Fact::Node { text: format!("from {name}"), node: *node });
        }
    }
    if !card.why_not.is_empty() {
        rows.push(Fact::Section("Why not here?"));
        rows.extend(card.why_not.iter().map(|why| Fact::WhyNot {
            pass: why.pass.clone(),
            condition: why.condition.clone(),
            blame: why.blame,
            blame_name: why.blame_label.clone(),
        }));
    }
    if !card.metadata.is_empty() {
        rows.push(Fact::Section("Metadata"));
        rows.extend(card.metadata.iter().map(|(key, value)| pair(key, value.clone())));
    }
    if !card.doc.is_empty() {
        rows.push(Fact::Section("Documentation"));
        rows.push(Fact::Text(card.doc.clone()));
    }
    let subtitle = if card.name.is_empty() { card.label.clone() } else { card.name.clone() };
    Facts { title: card.operator.clone(), subtitle, rows }
}

fn weights(cards: &[WeightCard], rows: &mut Vec<Fact>) {
    for card in cards {
        rows.push(Fact::Section("Weights"));
        rows.push(pair("constant", card.name.clone()));
        rows.push(pair("type", format!("{} · {}", card.ty, super::panels::bytes_text(card.bytes))));
        if let Some(now) = &card.now {
            statistics(now, rows);
        }
        if let Some(before) = &card.before {
            rows.push(Fact::Text("Before the passes".to_owned()));
            statistics(before, rows);
        }
    }
}

fn statistics(s: &Statistics, rows: &mut Vec<Fact>) {
    let number = |v: f64| if v.fract() == 0.0 && v.abs() < 1e15 { format!("{v}") } else { format!("{v:.5}") };
    if s.finite > 0 {
        rows.push(pair("range", format!("{} … {}", number(s.min), number(s.max))));
        rows.push(pair("mean ± std", format!("{} ± {}", number(s.mean), number(s.std))));
    }
    let odd: Vec<String> = [(s.nan, "NaN"), (s.infinite, "infinite"), (s.zero, "zero")]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{} {what}", super::panels::count_text(count)))
        .collect();
    if !odd.is_empty() {
        rows.push(pair("of which", odd.join(", ")));
    }
    if s.histogram.len() > 1 {
        rows.push(Fact::Histogram { low: s.min, high: s.max, counts: s.histogram.clone() });
    }
    if !s.first.is_empty() {
        // Integers as they are, the rest to four digits.
        let short = |text: &String| match text.parse::<f64>() {
            Ok(v) if text.contains('.') => format!("{v:.4}"),
            _ => text.clone(),
        };
        let first: Vec<String> = s.first.iter().take(8).map(short).collect();
        rows.push(pair("first", first.join(", ")));
    }
}

/// The node of a place, if it is one.
pub fn node_of(place: &Place) -> Option<NodeId> {
    match place.item {
        Item::Node(node) => Some(node),
        _ => None,
    }
}

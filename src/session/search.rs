//! Finding nodes. A query is words, all of which must fit: plain words are looked for in operator, name, outputs and
//! attribute names; `op:Conv`, `name:`, `value:`, `attr:`, `pass:`, `block:`, `type:` look in one place only, and `changed`
//! finds what any pass made or changed. Capitals do not matter.

use crate::ir::NodeId;
use crate::pipeline::State;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Results beyond this many are counted but not listed.
pub const LISTED: usize = 2_000;

/// A node that fits.
#[derive(Clone, PartialEq, Debug)]
pub struct Hit {
    pub node: NodeId,
    pub label: String,
    pub operator: String,
    /// Block path, for grouping.
    pub block: String,
}

/// What a search found.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Hits {
    pub query: String,
    /// In graph order.
    pub list: Vec<Hit>,
    pub total: usize,
}

#[derive(Debug, PartialEq)]
enum Word {
    Any(String),
    Operator(String),
    Name(String),
    Value(String),
    Attribute(String),
    Pass(String),
    Block(String),
    Type(String),
    Changed,
}

fn words(query: &str) -> Vec<Word> {
    let word = |w: &str| {
        let low = w.to_lowercase();
        match low.split_once(':') {
            Some(("op", rest)) => Word::Operator(rest.into()),
            Some(("name", rest)) => Word::Name(rest.into()),
            Some(("value", rest)) => Word::Value(rest.into()),
            Some(("attr", rest)) => Word::Attribute(rest.into()),
            Some(("pass", rest)) => Word::Pass(rest.into()),
            Some(("block", rest)) => Word::Block(rest.into()),
            Some(("type", rest)) => Word::Type(rest.into()),
            _ if low == "changed" => Word::Changed,
            _ => Word::Any(low),
        }
    };
    query.split_whitespace().map(word).collect()
}

/// Searches all live graphs. `passes` names the pass of each step that touched a node.
pub fn search(state: &State, passes: &BTreeMap<u32, Arc<str>>, query: &str, cancel: &AtomicBool) -> Hits {
    let words = words(query);
    let mut hits = Hits { query: query.into(), ..Hits::default() };
    if words.is_empty() {
        return hits;
    }
    let model = &state.model;
    for graph in model.live_graphs() {
        for (id, node) in model.nodes_of(graph) {
            if cancel.load(Ordering::Relaxed) {
                return hits;
            }
            let has = |text: &str, part: &str| text.to_lowercase().contains(part);
            let value_named = |part: &str, inputs: bool| {
                let read = node.inputs.iter().filter(|_| inputs).flatten();
                node.outputs
                    .iter()
                    .flatten()
                    .chain(read)
                    .any(|v| model.get_value(*v).is_some_and(|v| has(&v.name, part)))
            };
            let block = || state.blocks.block_of(id).map(|b| state.blocks.path(b)).unwrap_or_default();
            let fits = |word: &Word| match word {
                Word::Any(w) => {
                    has(&node.op_type, w)
                        || has(&node.name, w)
                        || value_named(w, false)
                        || node.attributes.iter().any(|a| has(&a.name, w))
                }
                Word::Operator(w) => {
                    let full = format!("{}:{}", node.domain, node.op_type).to_lowercase();
                    node.op_type.to_lowercase() == *w || full == *w
                }
                Word::Name(w) => has(&node.name, w),
                Word::Value(w) => value_named(w, true),
                Word::Attribute(w) => node.attributes.iter().any(|a| has(&a.name, w)),
                Word::Pass(w) => {
                    state.provenance.steps(id).iter().any(|s| passes.get(s).is_some_and(|p| has(p, w)))
                }
                Word::Block(w) => has(&block(), w),
                Word::Type(w) => {
                    node.outputs.iter().flatten().any(|v| has(&state.facts.ty(model, *v).to_string(), w))
                }
                Word::Changed => !state.provenance.steps(id).is_empty(),
            };
            if words.iter().all(fits) {
                hits.total += 1;
                if hits.list.len() < LISTED {
                    let label = model.node_label(id);
                    hits.list.push(Hit {
                        node: id,
                        label,
                        operator: node.op_type.to_string(),
                        block: block(),
                    });
                }
            }
        }
    }
    hits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Builder, ElementType};

    #[test]
    fn words_narrow_each_other() {
        let mut b = Builder::new("g", 17);
        let x = b.input("x", ElementType::FLOAT, &["n".into()]);
        let a = b.op("Relu", &[x]).named("/encoder/act").one();
        let y = b.op("LeakyRelu", &[a]).attr("alpha", 0.1f32).named("/decoder/act").one();
        b.output(y);
        let state = State::new(b.finish().unwrap());
        let cancel = AtomicBool::new(false);
        let find = |q: &str| -> Vec<String> {
            search(&state, &BTreeMap::new(), q, &cancel).list.into_iter().map(|h| h.label).collect()
        };
        assert_eq!(find("relu"), ["/encoder/act", "/decoder/act"]);
        assert_eq!(find("op:relu act"), ["/encoder/act"]);
        assert_eq!(find("attr:alpha"), ["/decoder/act"]);
        assert_eq!(find("value:x"), ["/encoder/act"]);
        assert!(find("changed").is_empty() && find("").is_empty() && find("relu conv").is_empty());
    }
}

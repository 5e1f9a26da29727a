//! Finding nodes: those that fit all words of a query. [`super::query::HELP`] says what a query can ask for.

use super::query::{Measure, Wanted, Word, words};
use crate::facts::view;
use crate::ir::NodeId;
use crate::ir::{AttributeValue, Constant, Model, Node, ValueId};
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
    /// Why the query cannot be understood.
    pub problem: Option<String>,
}

/// Searches all live graphs. `passes` names the pass of each step that touched a node.
/// A query that cannot be understood finds nothing and says why.
pub fn search(state: &State, passes: &BTreeMap<u32, Arc<str>>, query: &str, cancel: &AtomicBool) -> Hits {
    let mut hits = Hits { query: query.into(), ..Hits::default() };
    let words = match words(query) {
        Ok(words) => words,
        Err(problem) => return Hits { problem: Some(problem), ..hits },
    };
    if words.is_empty() {
        return hits;
    }
    let model = &state.model;
    for graph in model.live_graphs() {
        for (id, node) in model.nodes_of(graph) {
            if cancel.load(Ordering::Relaxed) {
                return hits;
            }
            let value_named = |wanted: &dyn Fn(&str) -> bool, inputs: bool| {
                let read = node.inputs.iter().filter(|_| inputs).flatten();
                let mut values = node.outputs.iter().flatten().chain(read);
                values.any(|v| model.get_value(*v).is_some_and(|v| wanted(&v.name)))
            };
            let block = || state.blocks.block_of(id).map(|b| state.blocks.path(b)).unwrap_or_default();
            let fits = |word: &Word| match word {
                Word::Any(w) => {
                    w.is_in(&node.op_type)
                        || w.is_in(&node.name)
                        || value_named(&|name| w.is_in(name), false)
                        || node.attributes.iter().any(|a| w.is_in(&a.name))
                }
                Word::Operator(w) => {
                    w.is(&node.op_type) || w.is(&format!("{}:{}", node.domain, node.op_type))
                }
                Word::Name(w) => w.is_in(&node.name),
                Word::Value(w) => value_named(&|name| w.is_in(name), true),
                Word::Attribute(w) => node.attributes.iter().any(|a| w.is_in(&a.name)),
                Word::AttributeValue(name, wanted) => {
                    let named = node.attributes.iter().find(|a| a.name.to_lowercase() == *name);
                    named.is_some_and(|a| is_wanted(&a.value, wanted))
                }
                Word::Pass(w) => {
                    state.provenance.steps(id).iter().any(|s| passes.get(s).is_some_and(|p| w.is_in(p)))
                }
                Word::Block(w) => w.is_in(&block()),
                Word::Type(w) => {
                    node.outputs.iter().flatten().any(|v| w.is_in(&state.facts.ty(model, *v).to_string()))
                }
                Word::Measured(measure, relation, number) => {
                    measured(state, node, *measure).into_iter().any(|n| relation.holds(n, *number))
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

/// True when an attribute's value is what was asked for.
fn is_wanted(value: &AttributeValue, wanted: &Wanted) -> bool {
    let numbers: Option<Vec<f64>> = match value {
        AttributeValue::Int(v) => Some(vec![*v as f64]),
        // Through the shortest decimal form, so that 0.1 is what a person writes as 0.1.
        AttributeValue::Float(v) => Some(vec![decimal(*v)]),
        AttributeValue::Ints(v) => Some(v.iter().map(|v| *v as f64).collect()),
        AttributeValue::Floats(v) => Some(v.iter().map(|v| decimal(*v)).collect()),
        _ => None,
    };
    match (wanted, numbers) {
        (Wanted::Number(relation, n), Some(numbers)) => {
            !numbers.is_empty() && numbers.iter().all(|v| relation.holds(*v, *n))
        }
        (Wanted::List(list), Some(numbers)) => *list == numbers,
        (Wanted::Text(text), None) => value.text().is_some_and(|v| text.is(v)),
        _ => false,
    }
}

fn decimal(v: f32) -> f64 {
    v.to_string().parse().unwrap_or(f64::from(v))
}

/// A number of a node; several for its dimensions.
fn measured(state: &State, node: &Node, measure: Measure) -> Vec<f64> {
    let model = &state.model;
    let shapes = || node.outputs.iter().flatten().filter_map(|v| state.facts.ty(model, *v).shape());
    let mut read: Vec<ValueId> = node.inputs.iter().flatten().copied().collect();
    read.sort_unstable();
    read.dedup();
    let sum = |of: fn((u64, u64)) -> u64| {
        let parts = read.iter().filter_map(|v| data_of(model, *v)).map(of);
        vec![parts.fold(0u64, u64::saturating_add) as f64]
    };
    match measure {
        Measure::Dimension => shapes().flatten().filter_map(|d| d.fixed()).map(|n| n as f64).collect(),
        Measure::Rank => shapes().map(|shape| shape.len() as f64).collect(),
        Measure::Parameters => sum(|(elements, _)| elements),
        Measure::Bytes => sum(|(_, bytes)| bytes),
    }
}

/// Number of elements and bytes of a constant; of a sparse one those that are stored.
fn data_of(model: &Model, value: ValueId) -> Option<(u64, u64)> {
    let of = |t: &crate::ir::Tensor| (t.element_count().unwrap_or(0), t.byte_count());
    match model.initializer(value) {
        Some(Constant::Dense(t)) => Some(of(t)),
        Some(Constant::Sparse(s)) => Some(of(&s.values)),
        None => {
            let (producer, 0) = model.get_value(value)?.node()? else { return None };
            view::of_node(model.get_node(producer)?).map(|t| of(&t))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Builder, ElementType, Tensor};

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

    #[test]
    fn numbers_and_expressions_narrow_too() {
        let mut b = Builder::new("g", 17);
        let x = b.input("x", ElementType::FLOAT, &[1.into(), 8.into(), 32.into(), 32.into()]);
        let mut weights = |name: &str, kernel: u64| {
            b.constant(
                name,
                Tensor::from_f32(&[8, 8, kernel, kernel], &vec![0.0; (64 * kernel * kernel) as usize]),
            )
        };
        let (small, large) = (weights("small", 1), weights("large", 3));
        let a = b.op("Conv", &[x, small]).attr("kernel_shape", [1, 1]).named("/stem/conv1").one();
        let c = b.op("Conv", &[a, large]).attr("kernel_shape", [3, 3]).attr("pads", [1, 1, 1, 1]);
        let c = c.named("/body/conv2").one();
        let y = b.op("LeakyRelu", &[c]).attr("alpha", 0.1f32).named("/body/act").one();
        let z = b.op("Flatten", &[y]).attr("axis", 1).named("/head/flat").one();
        b.output(z);
        let state = State::new(b.finish().unwrap());
        let cancel = AtomicBool::new(false);
        let find = |q: &str| -> String {
            let hits = search(&state, &BTreeMap::new(), q, &cancel);
            assert_eq!(hits.problem, None, "{q}");
            let last = |h: Hit| h.label.rsplit('/').next().unwrap_or_default().to_owned();
            hits.list.into_iter().map(last).collect::<Vec<_>>().join(" ")
        };
        for (query, wanted) in [
            ("/CONV[12]$/", "conv1 conv2"),
            ("name:/^.body/", "conv2 act"),
            ("op:/conv|flat/", "conv1 conv2 flat"),
            ("attr:kernel_shape", "conv1 conv2"),
            ("attr:kernel_shape=3", "conv2"),
            ("attr:kernel_shape=3,3", "conv2"),
            ("attr:kernel_shape=[1,1]", "conv1"),
            ("attr:kernel_shape>=1 name:body", "conv2"),
            ("attr:alpha=0.1", "act"),
            ("attr:alpha<0.1", ""),
            ("attr:axis>0", "flat"),
            ("dim>1000", "flat"),
            ("dim=32", "conv1 conv2 act"),
            ("rank=2", "flat"),
            ("params>100", "conv2"),
            ("params>0.5k op:conv", "conv2"),
            ("bytes=256", "conv1"),
            ("bytes>=2Ki", "conv2"),
        ] {
            assert_eq!(find(query), wanted, "{query}");
        }
        let wrong = search(&state, &BTreeMap::new(), "conv /(/", &cancel);
        assert!(wrong.list.is_empty() && wrong.problem.is_some());
    }
}

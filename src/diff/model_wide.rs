//! Differences of two models as a whole: versions, operator sets, producer, metadata, functions, inputs and outputs.

use crate::ir::{Model, Port, Text};

/// One sentence a difference.
pub fn differences(a: &Model, b: &Model) -> Vec<String> {
    let (x, y) = (a.header(), b.header());
    let mut found = Vec::new();
    let mut note = |what: &str, before: String, after: String| {
        if before != after {
            found.push(format!("{what}: {before} → {after}"));
        }
    };
    note("IR version", x.ir_version.to_string(), y.ir_version.to_string());
    let producer = |name: &Text, version: &Text| format!("{name} {version}").trim().to_owned();
    note(
        "producer",
        producer(&x.producer_name, &x.producer_version),
        producer(&y.producer_name, &y.producer_version),
    );
    note("domain", x.domain.to_string(), y.domain.to_string());
    note("model version", x.model_version.to_string(), y.model_version.to_string());
    let opsets = named(&x.opsets);
    keyed("operator set", &opsets, &named(&y.opsets), &mut found);
    keyed("metadata", &named(&x.metadata), &named(&y.metadata), &mut found);
    let functions = |model: &Model| -> Vec<(Text, String)> {
        let all = model.header().functions.iter();
        all.map(|f| (f.name.clone(), format!("{}:{}", f.domain, f.name))).collect()
    };
    keyed("function", &functions(a), &functions(b), &mut found);
    let ports = |model: &Model, ports: &[Port]| -> Vec<(Text, String)> {
        ports.iter().map(|p| (model.value(p.value).name.clone(), p.declaration.ty.to_string())).collect()
    };
    let (main_a, main_b) = (a.graph(a.main()), b.graph(b.main()));
    for (what, left, right) in
        [("input", &main_a.inputs, &main_b.inputs), ("output", &main_a.outputs, &main_b.outputs)]
    {
        let (left, right) = (ports(a, left), ports(b, right));
        keyed(what, &left, &right, &mut found);
        let order = |list: &[(Text, String)], other: &[(Text, String)]| -> Vec<Text> {
            list.iter().filter(|(n, _)| other.iter().any(|(m, _)| m == n)).map(|(n, _)| n.clone()).collect()
        };
        if order(&left, &right) != order(&right, &left) {
            found.push(format!("{what}s stand in another order"));
        }
    }
    found
}

fn named<T: ToString>(list: &[(Text, T)]) -> Vec<(Text, String)> {
    list.iter().map(|(name, value)| (name.clone(), value.to_string())).collect()
}

fn keyed(what: &str, a: &[(Text, String)], b: &[(Text, String)], found: &mut Vec<String>) {
    for (name, before) in a {
        match b.iter().find(|(n, _)| n == name) {
            Some((_, after)) if after == before => {}
            Some((_, after)) => found.push(format!("{what} '{name}': {before} → {after}")),
            None => found.push(format!("{what} '{name}' is gone")),
        }
    }
    for (name, value) in b.iter().filter(|(name, _)| !a.iter().any(|(n, _)| n == name)) {
        found.push(format!("{what} '{name}' is new: {value}"));
    }
}

//! All that a model holds, as text without ids: two models with the same sketch are the same model.

use passlens::ir::{AttributeValue, Constant, GraphId, Model, Port, ValueId};
use std::fmt::Write;

/// Names in place of ids, `Debug` for the rest; graphs by their place.
pub fn sketch(model: &Model) -> String {
    let mut out = String::new();
    let header = model.header();
    let mut plain = header.clone();
    plain.functions.clear();
    writeln!(out, "{plain:?}").unwrap();
    graph(model, model.main(), &mut out);
    for f in &header.functions {
        writeln!(
            out,
            "function {} {} {} {:?} {:?} {:?}",
            f.name, f.domain, f.overload, f.attributes, f.opsets, f.extra
        )
        .unwrap();
        for default in &f.defaults {
            writeln!(out, "default {default:?}").unwrap();
        }
        graph(model, f.graph, &mut out);
    }
    out
}

fn name(model: &Model, value: Option<ValueId>) -> String {
    match value {
        Some(v) => format!("{}@{}", model.value(v).name, model.graph_path(model.value(v).graph)),
        None => "-".to_owned(),
    }
}

fn graph(model: &Model, id: GraphId, out: &mut String) {
    let g = model.graph(id);
    writeln!(out, "graph {:?} {:?} {:?} {:?} {:?}", g.name, g.doc, g.metadata, g.annotations, g.extra)
        .unwrap();
    let ports = |ports: &[Port], out: &mut String| {
        for port in ports {
            writeln!(out, "  port {} {:?}", name(model, Some(port.value)), port.declaration).unwrap();
        }
    };
    ports(&g.inputs, out);
    ports(&g.outputs, out);
    for (n, d) in g.stray_declarations.iter() {
        writeln!(out, "  stray {n:?} {d:?}").unwrap();
    }
    let mut values: Vec<_> = model.values().filter(|(_, v)| v.graph == id).map(|(_, v)| v).collect();
    values.sort_by_key(|v| v.name.clone());
    for v in values {
        let position = v.constant.as_ref().map(|_| v.constant_position);
        write!(out, "  value {} {:?} {position:?} {:?} ", v.name, v.ty, v.declaration).unwrap();
        match &v.constant {
            Some(Constant::Dense(t)) => writeln!(out, "{t:?}").unwrap(),
            Some(Constant::Sparse(t)) => writeln!(out, "{t:?}").unwrap(),
            None => writeln!(out).unwrap(),
        }
    }
    for (_, node) in model.nodes_of(id) {
        let inputs: Vec<String> = node.inputs.iter().map(|v| name(model, *v)).collect();
        let outputs: Vec<String> = node.outputs.iter().map(|v| name(model, *v)).collect();
        writeln!(
            out,
            "  node {:?} {:?} {:?} {:?} {inputs:?} {outputs:?} {:?} {:?} {:?}",
            node.name, node.domain, node.op_type, node.overload, node.doc, node.metadata, node.extra
        )
        .unwrap();
        for a in &node.attributes {
            write!(out, "    {:?} {:?} {:?} ", a.name, a.doc, a.extra).unwrap();
            match &a.value {
                AttributeValue::Graph(_) | AttributeValue::Graphs(_) => {
                    writeln!(out, "{} graphs", a.value.graphs().len()).unwrap();
                    for body in a.value.graphs() {
                        graph(model, *body, out);
                    }
                }
                // Floats by their bits: Debug shows every NaN alike.
                AttributeValue::Float(v) => writeln!(out, "float {:x}", v.to_bits()).unwrap(),
                AttributeValue::Floats(v) => {
                    writeln!(out, "floats {:x?}", v.iter().map(|v| v.to_bits()).collect::<Vec<_>>()).unwrap()
                }
                value => writeln!(out, "{value:?}").unwrap(),
            }
        }
    }
}

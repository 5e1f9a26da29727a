//! The words in and on boxes: titles, key attributes, constants, shapes.

use super::source::Source;
use crate::facts::{Facts, view};
use crate::ir::{
    Attribute, AttributeValue, Data, Dim, ElementType, Model, Node, NodeId, Tensor, Text, Type, ValueId,
};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Constants of at most this many elements are written out.
const WRITTEN_OUT: u64 = 6;

/// Last parts of a node's name: what is before them says where it is, and that the blocks say already.
pub(super) fn node_subtitle(node: &Node) -> Text {
    let name = &*node.name;
    let mut parts = name.rsplit('/').filter(|p| !p.is_empty());
    let last = parts.next().unwrap_or(name);
    // A last part that only repeats the operator needs the one before it.
    let repeats = last.strip_prefix(&*node.op_type).is_some_and(|rest| {
        rest.is_empty() || rest.strip_prefix('_').is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
    });
    match parts.next() {
        Some(before) if repeats => format!("{before}/{last}").into(),
        _ if repeats && name == last => "".into(),
        _ => last.into(),
    }
}

/// What a screen reader says of a node.
pub(super) fn node_label(model: &Model, id: NodeId, node: &Node) -> Text {
    if node.name.is_empty() {
        let outputs = node.outputs.iter().flatten();
        let first = outputs.filter_map(|v| model.get_value(*v)).map(|v| v.name.to_string()).next();
        return format!("node {} {}", node.op_type, first.unwrap_or_else(|| id.to_string())).into();
    }
    format!("node {} {}", node.op_type, node.name).into()
}

/// The most frequent operators of a block: `4 MatMul · 2 Add · 1 Softmax`.
pub(super) fn operators(source: &Source, nodes: &[NodeId]) -> Option<Text> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for node in nodes.iter().filter_map(|n| source.node(*n)) {
        *counts.entry(&node.op_type).or_default() += 1;
    }
    let mut ranked: Vec<(&str, usize)> = counts.into_iter().collect();
    ranked.sort_by_key(|&(name, count)| (std::cmp::Reverse(count), name));
    let most: Vec<String> = ranked.iter().take(3).map(|(name, count)| format!("{count} {name}")).collect();
    (!most.is_empty()).then(|| most.join(" · ").into())
}

/// `1 node`, `42 nodes`, `48 842 nodes`.
pub(super) fn node_count(count: usize) -> String {
    let digits = count.to_string();
    let mut grouped = String::new();
    for (k, digit) in digits.chars().enumerate() {
        // A thin space between groups of thousands.
        if k > 0 && digits.len() > 4 && (digits.len() - k).is_multiple_of(3) {
            grouped.push('\u{2009}');
        }
        grouped.push(digit);
    }
    format!("{grouped} {}", if count == 1 { "node" } else { "nodes" })
}

/// Shape for a line's label: `1×64×56×56`, the element type after it when it is not float32.
pub(super) fn shape_label(ty: &Type) -> Text {
    let Type::Tensor { element, shape } = ty else {
        return if *ty == Type::Unknown { "".into() } else { ty.to_string().into() };
    };
    let dims = match shape {
        Some(shape) if shape.is_empty() => "scalar".to_owned(),
        Some(shape) => shape.iter().map(dim_label).collect::<Vec<_>>().join("×"),
        None => String::new(),
    };
    match *element {
        ElementType::FLOAT | ElementType::UNDEFINED => dims.into(),
        other if dims.is_empty() => other.name().into(),
        other => format!("{dims} {other}").into(),
    }
}

/// A dimension; one that inference only gave a name of its own to (`?217.1`) says no more than that it is unknown.
fn dim_label(dim: &Dim) -> String {
    let text = dim.to_string();
    if text.contains('?') { "?".into() } else { text }
}

/// A constant at its reader: what it is there, and its shape or its few elements.
pub(super) fn constant_tag(source: &Source, facts: &Facts, reader: Option<&Node>, value: ValueId) -> Text {
    let model = source.model_of(value);
    let role = reader.and_then(|node| {
        let at = node.inputs.iter().position(|i| *i == Some(value))?;
        if node.is_standard() { role(&node.op_type, at) } else { None }
    });
    let own = || source.value(value).map(|v| last_part(&v.name).to_owned()).unwrap_or_default();
    let Some(tensor) = view::constant(model, value) else {
        let name = role.map(str::to_owned).unwrap_or_else(own);
        return match facts.ty(model, value).shape() {
            Some(shape) => format!("{name} {}", crate::ir::shape_text(shape)).into(),
            None => name.into(),
        };
    };
    match (role, short(&tensor)) {
        (Some(role), Some(content)) => format!("{role} = {content}").into(),
        (None, Some(content)) => content.into(),
        (role, None) => {
            let dims: Vec<String> = tensor.dims.iter().map(u64::to_string).collect();
            let missing = if matches!(tensor.data, Data::Missing(_)) { " missing" } else { "" };
            format!("{} [{}]{missing}", role.map(str::to_owned).unwrap_or_else(own), dims.join(", ")).into()
        }
    }
}

/// A value from far away at its reader.
pub(super) fn far_tag(source: &Source, value: ValueId) -> Text {
    let name = source.value(value).map(|v| last_part(&v.name).to_owned()).unwrap_or_default();
    format!("{name} →").into()
}

fn last_part(name: &str) -> &str {
    let bare = name.trim_end_matches(":0");
    bare.rsplit('/').find(|p| !p.is_empty()).unwrap_or(bare)
}

/// Elements written out, when there are few.
fn short(tensor: &Tensor) -> Option<String> {
    let count = tensor.element_count()?;
    if count > WRITTEN_OUT || count == 0 {
        return None;
    }
    let elements: Vec<String> = if let Some(ints) = tensor.integers() {
        match tensor.element {
            ElementType::BOOL => {
                ints.iter().map(|v| if *v == 0 { "false" } else { "true" }.to_owned()).collect()
            }
            _ => ints.iter().map(|v| integer(*v)).collect(),
        }
    } else {
        tensor.approximate()?.iter().map(|v| number(*v)).collect()
    };
    match (tensor.dims.len(), elements.as_slice()) {
        (0, [one]) => Some(one.clone()),
        (1, list) => Some(format!("[{}]", list.join(", "))),
        (_, [one]) => Some(format!("[{one}]")),
        _ => None,
    }
}

/// An integer; the bounds of 32 and 64 bits, which stand for "to the end", by name.
fn integer(v: i64) -> String {
    match v {
        i64::MAX | 0x7FFF_FFFF => "max".into(),
        i64::MIN => "min".into(),
        _ => v.to_string(),
    }
}

/// A number in few digits.
fn number(v: f64) -> String {
    if v == v.trunc() && v.abs() < 1e7 {
        return format!("{v:.0}");
    }
    if v != 0.0 && (v.abs() < 1e-3 || v.abs() >= 1e7) {
        return format!("{v:.1e}");
    }
    let text = format!("{v:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Name of an input in the operator's specification, where a constant there says more by its role than by its own name.
fn role(op_type: &str, input: usize) -> Option<&'static str> {
    let names: &[&str] = match op_type {
        "Conv" | "ConvTranspose" | "DeformConv" => &["X", "W", "B"],
        "Gemm" => &["A", "B", "C"],
        "MatMul" => &["A", "B"],
        "BatchNormalization" => &["X", "scale", "B", "mean", "var"],
        "InstanceNormalization" => &["input", "scale", "B"],
        "LayerNormalization" | "GroupNormalization" => &["X", "scale", "bias"],
        "Gather" | "GatherElements" | "GatherND" => &["data", "indices"],
        "Reshape" | "Expand" | "ConstantOfShape" => &["input", "shape"],
        "Slice" => &["data", "starts", "ends", "axes", "steps"],
        "Squeeze" | "Unsqueeze" | "ReduceSum" | "ReduceMean" | "ReduceMax" | "ReduceMin" | "ReduceProd"
        | "ReduceL1" | "ReduceL2" | "ReduceLogSum" | "ReduceLogSumExp" | "ReduceSumSquare" => {
            &["data", "axes"]
        }
        "Split" => &["input", "split"],
        "Clip" => &["input", "min", "max"],
        "Pad" => &["data", "pads", "value", "axes"],
        "Resize" => &["X", "roi", "scales", "sizes"],
        "Upsample" => &["X", "scales"],
        "Tile" => &["input", "repeats"],
        "TopK" => &["X", "K"],
        "OneHot" => &["indices", "depth", "values"],
        "Range" => &["start", "limit", "delta"],
        "Dropout" => &["data", "ratio", "training"],
        "Pow" => &["X", "exponent"],
        "PRelu" => &["X", "slope"],
        "QuantizeLinear" => &["x", "scale", "zero point"],
        "DequantizeLinear" => &["x", "scale", "zero point"],
        "LSTM" => &["X", "W", "R", "B", "lengths", "h0", "c0", "P"],
        "GRU" | "RNN" => &["X", "W", "R", "B", "lengths", "h0"],
        "Trilu" => &["input", "k"],
        "NonMaxSuppression" => &["boxes", "scores", "max per class", "iou", "score"],
        "ScatterND" | "ScatterElements" => &["data", "indices", "updates"],
        "CumSum" => &["x", "axis"],
        _ => &[],
    };
    names.get(input).copied()
}

/// Attributes that tell one node from another of its kind, on one line or two.
pub(super) fn attribute_lines(node: &Node) -> Vec<Text> {
    let mut words: Vec<String> = Vec::new();
    let ints = |name: &str| node.attribute(name).and_then(AttributeValue::ints);
    if let Some(kernel) = ints("kernel_shape") {
        words.push(times(kernel));
    }
    if let Some(strides) = ints("strides").filter(|s| s.iter().any(|v| *v != 1)) {
        words.push(format!("stride {}", equal_or_times(strides)));
    }
    if let Some(dilations) = ints("dilations").filter(|d| d.iter().any(|v| *v != 1)) {
        words.push(format!("dilation {}", equal_or_times(dilations)));
    }
    if let Some(pads) = ints("pads").filter(|p| p.iter().any(|v| *v != 0)) {
        words.push(match pads.iter().all(|v| *v == pads[0]) {
            true => format!("pad {}", pads[0]),
            false => format!("pads {}", list(pads)),
        });
    }
    let spatial = ["kernel_shape", "strides", "dilations", "pads"];
    let standard = node.is_standard();
    for attribute in node.attributes.iter().filter(|a| !(standard && spatial.contains(&&*a.name))) {
        if let Some(word) = attribute_word(node, attribute) {
            words.push(word);
        }
    }
    wrap(words)
}

/// Up to two lines of words.
fn wrap(words: Vec<String>) -> Vec<Text> {
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        let full = lines.len() == 2;
        match lines.last_mut() {
            Some(line) if line.chars().count() + word.chars().count() < 28 => {
                let _ = write!(line, " · {word}");
            }
            _ if full => break,
            _ => lines.push(word),
        }
    }
    lines.into_iter().map(Text::from).collect()
}

fn attribute_word(node: &Node, attribute: &Attribute) -> Option<String> {
    let name = &*attribute.name;
    let default_int = |default: i64| attribute.value.int() == Some(default);
    if node.is_standard() {
        match name {
            // Values that say nothing: defaults, and what the tags and the picture say anyway.
            "group" | "beta" | "alpha" if default_int(1) || attribute.value.float() == Some(1.0) => {
                return None;
            }
            "ceil_mode"
            | "count_include_pad"
            | "transA"
            | "transB"
            | "exclusive"
            | "reverse"
            | "select_last_index"
            | "noop_with_empty_axes"
            | "training_mode"
            | "allowzero"
            | "storage_order"
            | "layout"
            | "input_forget"
                if default_int(0) =>
            {
                return None;
            }
            "keepdims" | "sorted" | "largest" | "spatial" | "is_test" if default_int(1) => return None,
            "group" => return Some(format!("groups {}", attribute.value.int()?)),
            "keepdims" => return Some("no keepdims".into()),
            "transA" | "transB" => return Some(name.into()),
            "to" => return Some(format!("to {}", ElementType(i32::try_from(attribute.value.int()?).ok()?))),
            "auto_pad" if attribute.value.text() == Some("NOTSET") => return None,
            "epsilon"
            | "momentum"
            | "cubic_coeff_a"
            | "extrapolation_value"
            | "nearest_mode"
            | "coordinate_transformation_mode"
            | "consumed_inputs"
            | "dtype"
            | "axis_w" => return None,
            _ => {}
        }
    }
    let value = match &attribute.value {
        AttributeValue::Int(v) => v.to_string(),
        AttributeValue::Float(v) => number(f64::from(*v)),
        AttributeValue::Ints(v) => list(v),
        AttributeValue::Floats(v) if v.len() <= 4 => {
            format!("[{}]", v.iter().map(|v| number(f64::from(*v))).collect::<Vec<_>>().join(", "))
        }
        AttributeValue::String(bytes) => {
            let text = String::from_utf8_lossy(bytes);
            if text.chars().count() > 24 { return None } else { text.into_owned() }
        }
        AttributeValue::Reference { name, .. } => format!("@{name}"),
        AttributeValue::Tensor(tensor) => short(tensor)?,
        _ => return None,
    };
    match name {
        "mode" | "equation" | "direction" | "value" => Some(value),
        _ => Some(format!("{} {value}", name.replace('_', " "))),
    }
}

fn times(values: &[i64]) -> String {
    values.iter().map(i64::to_string).collect::<Vec<_>>().join("×")
}

fn equal_or_times(values: &[i64]) -> String {
    match values {
        [first, rest @ ..] if rest.iter().all(|v| v == first) => first.to_string(),
        _ => times(values),
    }
}

fn list(values: &[i64]) -> String {
    if values.len() > 8 {
        return format!("[{} values]", values.len());
    }
    format!("[{}]", values.iter().map(i64::to_string).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Attribute, GraphId};

    fn node(op: &str, name: &str, attributes: &[(&str, AttributeValue)]) -> Node {
        let mut node = Node::new(GraphId(0), op);
        node.name = name.into();
        node.attributes = attributes.iter().map(|(n, v)| Attribute::new(n, v.clone())).collect();
        node
    }

    #[test]
    fn attributes_that_matter() {
        let conv = node(
            "Conv",
            "/features/0/Conv",
            &[
                ("dilations", [1, 1].into()),
                ("group", 32.into()),
                ("kernel_shape", [3, 3].into()),
                ("pads", [1, 1, 1, 1].into()),
                ("strides", [2, 2].into()),
            ],
        );
        let lines = attribute_lines(&conv);
        assert_eq!(lines.iter().map(|l| &**l).collect::<Vec<_>>(), ["3×3 · stride 2 · pad 1", "groups 32"]);
        assert_eq!(&*node_subtitle(&conv), "0/Conv");
        let cast = node("Cast", "Cast_12", &[("to", 7.into())]);
        assert_eq!(&*attribute_lines(&cast)[0], "to int64");
        assert_eq!(&*node_subtitle(&cast), "");
        let transpose = node("Transpose", "swap", &[("perm", [0, 2, 1].into())]);
        assert_eq!(&*attribute_lines(&transpose)[0], "perm [0, 2, 1]");
        assert_eq!(&*node_subtitle(&transpose), "swap");
    }

    #[test]
    fn numbers_in_few_digits() {
        let texts: Vec<String> =
            [1.0, -0.5, 0.123_456_7, 1e-5, f64::NEG_INFINITY, 3.4e38].map(number).to_vec();
        assert_eq!(texts, ["1", "-0.5", "0.1235", "1.0e-5", "-inf", "3.4e38"]);
        assert_eq!([7, i64::MAX].map(integer), ["7", "max"]);
        assert_eq!(node_count(1), "1 node");
        assert_eq!(node_count(48842), "48\u{2009}842 nodes");
    }

    #[test]
    fn shapes_on_lines() {
        let float = Type::tensor(ElementType::FLOAT, ["batch".into(), 3.into(), Dim::Unknown]);
        assert_eq!(&*shape_label(&float), "batch×3×?");
        assert_eq!(&*shape_label(&Type::tensor(ElementType::INT64, [])), "scalar int64");
        assert_eq!(&*shape_label(&Type::Unknown), "");
    }
}

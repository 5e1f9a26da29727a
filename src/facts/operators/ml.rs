//! Operators of the `ai.onnx.ml` domain.

use super::{Outputs, Rule, one, several, shape, tensor};
use crate::facts::view::Operator;
use crate::facts::{Fact, dims};
use crate::ir::{AttributeValue, Dim, ElementType, Shape, Type};

pub(super) const RULES: &[(&str, Rule)] = &[
    ("ArrayFeatureExtractor", extract),
    ("Binarizer", super::same_as_first),
    ("CastMap", |_| None),
    ("CategoryMapper", category),
    ("DictVectorizer", |_| None),
    ("FeatureVectorizer", features),
    ("Imputer", super::same_as_first),
    ("LabelEncoder", label_encoder),
    ("LinearClassifier", classifier),
    ("LinearRegressor", regressor),
    ("Normalizer", |op| one(Some(ElementType::FLOAT), op.shape(0).cloned())),
    ("OneHotEncoder", one_hot),
    ("SVMClassifier", classifier),
    ("SVMRegressor", regressor),
    ("Scaler", |op| one(Some(ElementType::FLOAT), op.shape(0).cloned())),
    ("TreeEnsemble", tree_ensemble),
    ("TreeEnsembleClassifier", classifier),
    ("TreeEnsembleRegressor", regressor),
    ("ZipMap", zip_map),
];

/// Length of a list attribute; `None` when it is not there or empty.
fn length(op: &Operator, name: &str) -> Option<usize> {
    let n = match op.node.attribute(name)? {
        AttributeValue::Ints(l) => l.len(),
        AttributeValue::Strings(l) => l.len(),
        AttributeValue::Floats(l) => l.len(),
        AttributeValue::Tensor(t) => usize::try_from(t.element_count()?).ok()?,
        _ => return None,
    };
    (n > 0).then_some(n)
}

/// Rows of a matrix; a vector is one row.
fn rows(op: &Operator) -> Dim {
    match op.shape(0).map(|s| s.as_slice()) {
        Some([_]) => Dim::Fixed(1),
        Some([n, ..]) => n.clone(),
        _ => Dim::Unknown,
    }
}

fn extract(op: &Operator) -> Option<Outputs> {
    let s = || {
        let (last, before) = op.shape(0)?.split_last()?;
        let count = dims::product(op.shape(1)?);
        let _ = last;
        // A vector comes out as one row.
        let lead: Shape =
            if before.is_empty() { [Dim::Fixed(1)].into_iter().collect() } else { before.into() };
        shape(lead.into_iter().chain([count]))
    };
    one(op.element(0), s())
}

fn category(op: &Operator) -> Option<Outputs> {
    let element = match op.element(0)? {
        ElementType::STRING => ElementType::INT64,
        _ => ElementType::STRING,
    };
    one(Some(element), op.shape(0).cloned())
}

fn features(op: &Operator) -> Option<Outputs> {
    let widths = op.list("inputdimensions")?;
    let total = widths.and_then(|w| w.iter().try_fold(0u64, |s, n| s.checked_add(u64::try_from(*n).ok()?)));
    one(Some(ElementType::FLOAT), shape([rows(op), total.map_or(Dim::Unknown, Dim::Fixed)]))
}

fn label_encoder(op: &Operator) -> Option<Outputs> {
    let has = |name: &str| length(op, name).is_some();
    let element = if op.opset < 2 {
        match op.element(0)? {
            ElementType::STRING => ElementType::INT64,
            _ => ElementType::STRING,
        }
    } else if has("values_strings") {
        ElementType::STRING
    } else if has("values_int64s") {
        ElementType::INT64
    } else if has("values_floats") {
        ElementType::FLOAT
    } else {
        match op.node.attribute("values_tensor")? {
            AttributeValue::Tensor(t) => t.element,
            _ => return None,
        }
    };
    one(Some(element), op.shape(0).cloned())
}

fn classifier(op: &Operator) -> Option<Outputs> {
    let strings = ["classlabels_strings"].iter().find_map(|n| length(op, n));
    let integers = ["classlabels_ints", "classlabels_int64s"].iter().find_map(|n| length(op, n));
    let label = if strings.is_some() { ElementType::STRING } else { ElementType::INT64 };
    // Two classes may have one column of scores or two; which depends on the weights given.
    let columns = match strings.or(integers) {
        Some(n) if n > 2 => Dim::Fixed(n as u64),
        _ => Dim::Unknown,
    };
    let columns = if op.op_type() == "SVMClassifier" { Dim::Unknown } else { columns };
    several([
        tensor(Some(label), shape([rows(op)])),
        tensor(Some(ElementType::FLOAT), shape([rows(op), columns])),
    ])
}

fn regressor(op: &Operator) -> Option<Outputs> {
    let targets = match op.op_type() {
        "LinearRegressor" => op.int("targets", 1),
        "SVMRegressor" => Some(1),
        _ => op.int("n_targets", 1),
    };
    let targets = targets.and_then(|n| u64::try_from(n).ok()).map_or(Dim::Unknown, Dim::Fixed);
    one(Some(ElementType::FLOAT), shape([rows(op), targets]))
}

fn tree_ensemble(op: &Operator) -> Option<Outputs> {
    let targets = op.int("n_targets", 1).and_then(|n| u64::try_from(n).ok()).map_or(Dim::Unknown, Dim::Fixed);
    one(op.element(0), shape([rows(op), targets]))
}

fn one_hot(op: &Operator) -> Option<Outputs> {
    let categories = length(op, "cats_int64s").or_else(|| length(op, "cats_strings"));
    let depth = categories.map_or(Dim::Unknown, |n| Dim::Fixed(n as u64));
    let s = op.shape(0).map(|s| s.iter().cloned().chain([depth]).collect());
    one(Some(ElementType::FLOAT), s)
}

fn zip_map(op: &Operator) -> Option<Outputs> {
    let key =
        if length(op, "classlabels_strings").is_some() { ElementType::STRING } else { ElementType::INT64 };
    let value = Box::new(Type::Tensor { element: ElementType::FLOAT, shape: Some(Shape::new()) });
    several([Fact::of(Type::Sequence(Box::new(Type::Map { key, value })))])
}

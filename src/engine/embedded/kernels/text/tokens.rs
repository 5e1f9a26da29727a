//! Tokenizer of com.microsoft (ONNX Runtime, ContribOperators.md).

use super::{pattern_of, utf8};
use crate::engine::array::{Array, Element};
use crate::engine::embedded::call::{Call, Outputs, one};
use crate::engine::fault::Fault;
use bytes::Bytes;

/// What begins and ends a row with `mark`.
const START: &str = "\u{2}";
const END: &str = "\u{3}";

/// Tokenizer: every string becomes a row of tokens, found by a pattern or cut at separators; rows are filled up.
pub fn tokenizer(call: &mut Call) -> Result<Outputs, Fault> {
    let array = call.input(0)?;
    let attributes = call.attributes;
    if !matches!(array.rank(), 1 | 2) {
        return Err(Fault::Invalid(format!("shape {:?} is neither [C] nor [N, C]", array.dims())));
    }
    let missing = |name: &str| Fault::Invalid(format!("attribute {name} is missing"));
    let mark = attributes.optional_int("mark")?.ok_or_else(|| missing("mark"))? != 0;
    let least = attributes.optional_int("mincharnum")?.ok_or_else(|| missing("mincharnum"))?;
    let pad = attributes.get("pad_value").and_then(|v| v.text()).ok_or_else(|| missing("pad_value"))?;
    let expression = attributes.text("tokenexp", "")?;
    let separators = attributes.texts("separators")?.unwrap_or(&[]);
    if expression.is_empty() == separators.is_empty() {
        return Err(Fault::Invalid("either tokenexp or separators must be given".into()));
    }
    let compile = |pattern: &str| match pattern_of(pattern) {
        Ok(regex) => Ok(regex),
        Err(why) => call.unsupported(format_args!("the pattern {pattern}: {why}")),
    };
    let letters = expression.is_empty() && separators.len() == 1 && separators[0].is_empty();
    let patterns = match expression {
        "" if letters => Vec::new(),
        "" => separators.iter().map(|s| compile(utf8(s)?)).collect::<Result<Vec<_>, _>>()?,
        expression => vec![compile(expression)?],
    };
    let mut rows: Vec<Vec<&str>> = Vec::new();
    for text in array.view::<Bytes>()? {
        let text = utf8(text)?;
        let mut tokens: Vec<&str> = if letters {
            text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]).collect()
        } else if expression.is_empty() {
            // Each separator cuts what the earlier ones have left.
            patterns.iter().fold(vec![text], |parts, separator| {
                parts
                    .into_iter()
                    .flat_map(|part| separator.split(part))
                    .filter(|part| !part.is_empty())
                    .collect()
            })
        } else {
            patterns[0].find_iter(text).map(|m| m.as_str()).filter(|m| !m.is_empty()).collect()
        };
        tokens.retain(|t| t.chars().count() as i64 >= least);
        rows.push(tokens);
    }
    // Where no row has a token, there are no marks either (as ONNX Runtime has it).
    let longest = match rows.iter().map(Vec::len).max().unwrap_or(0) {
        0 => 0,
        most => most + if mark { 2 } else { 0 },
    };
    let mut dims = array.dims().to_vec();
    dims.push(longest);
    let mut to = call.vec::<Bytes>(&dims)?;
    for row in rows.into_iter().filter(|_| longest > 0) {
        let marked = |text: &'static str| mark.then_some(text).into_iter();
        let before = to.len();
        let tokens = marked(START).chain(row).chain(marked(END));
        to.extend(tokens.map(|t| Bytes::copy_from_slice(t.as_bytes())));
        to.resize(before + longest, Bytes::copy_from_slice(pad.as_bytes()));
    }
    one(Array::of(Bytes::TYPE, &dims, Bytes::store(to)))
}

//! Operators on strings.

mod grams;
mod tokens;

use super::movement::reshape::broadcast;
use crate::engine::array::Array;
use crate::engine::embedded::call::{Call, Outputs, one};
use crate::engine::fault::Fault;
use bytes::Bytes;
use std::collections::BTreeSet;

kernels! {
    "RegexFullMatch" => Kernel::plain(regex_full_match),
    "StringConcat" => Kernel::plain(string_concat),
    "StringNormalizer" => Kernel::plain(string_normalizer),
    "StringSplit" => Kernel::plain(string_split),
    "TfIdfVectorizer" => Kernel::plain(grams::tf_idf_vectorizer),
}

/// Operators of ONNX Runtime's own domain.
pub mod contributed {
    kernels! {
        "Tokenizer" => Kernel::plain(super::tokens::tokenizer),
    }
}

/// A string as text.
fn utf8(bytes: &Bytes) -> Result<&str, Fault> {
    std::str::from_utf8(bytes).map_err(|_| Fault::Invalid("a string is not UTF-8".into()))
}

/// StringConcat.
fn string_concat(call: &mut Call) -> Result<Outputs, Fault> {
    let (left, right) = (call.input(0)?, call.input(1)?);
    let (dims, a, b) = broadcast(left.dims(), right.dims())?;
    call.elements(&dims, 2 * size_of::<Bytes>())?;
    let (a, b) = (a.elements(left.view::<Bytes>()?), b.elements(right.view::<Bytes>()?));
    let size: usize = a.iter().chain(&b).map(Bytes::len).sum();
    call.elements(&[size], 1)?;
    let joined = a.iter().zip(&b).map(|(a, b)| [&a[..], &b[..]].concat().into()).collect::<Vec<Bytes>>();
    one(Array::new(&dims, joined))
}

/// StringSplit: the parts, with empty strings to the longest, and how many there are. Without a delimiter at runs of
/// white space; `maxsplit` counts cuts from the left.
fn string_split(call: &mut Call) -> Result<Outputs, Fault> {
    let array = call.input(0)?;
    let delimiter = call.attributes.text("delimiter", "")?;
    let most = call.attributes.optional_int("maxsplit")?;
    // A negative number of cuts is no limit, as in Python.
    let most = most.map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(usize::MAX));
    let mut rows: Vec<Vec<&str>> = Vec::new();
    for text in array.view::<Bytes>()? {
        let text = utf8(text)?;
        rows.push(match delimiter {
            "" => words(text, most),
            _ => text.splitn(most.saturating_add(1), delimiter).collect(),
        });
    }
    let longest = rows.iter().map(Vec::len).max().unwrap_or(0);
    let mut dims = array.dims().to_vec();
    dims.push(longest);
    let mut to = call.vec::<Bytes>(&dims)?;
    for row in &rows {
        to.extend(row.iter().map(|w| Bytes::copy_from_slice(w.as_bytes())));
        to.resize(to.len() + longest - row.len(), Bytes::new());
    }
    let counts = Array::new(array.dims(), rows.iter().map(|r| r.len() as i64).collect());
    Ok(smallvec::smallvec![Some(Array::new(&dims, to).into()), Some(counts.into())])
}

/// Words between white space; what is left after so many cuts stays one word, its end as it was.
fn words(text: &str, most: usize) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        if words.len() == most {
            words.push(rest);
            break;
        }
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        words.push(&rest[..end]);
        rest = rest[end..].trim_start();
    }
    words
}

/// Letters in one case; one letter stays one letter, and locale C knows only ASCII, as ONNX Runtime has it.
fn cased(text: &str, upper: bool, ascii: bool) -> String {
    fn single(mut letters: impl Iterator<Item = char>, letter: char) -> char {
        match (letters.next(), letters.next()) {
            (Some(one), None) => one,
            _ => letter,
        }
    }
    let change = |c: char| match (ascii, upper) {
        (true, true) => c.to_ascii_uppercase(),
        (true, false) => c.to_ascii_lowercase(),
        (false, true) => single(c.to_uppercase(), c),
        (false, false) => single(c.to_lowercase(), c),
    };
    text.chars().map(change).collect()
}

/// StringNormalizer: elements that are stop words go, the others change case. When none is left, one empty string is.
fn string_normalizer(call: &mut Call) -> Result<Outputs, Fault> {
    let array = call.input(0)?;
    let batch = match array.dims() {
        [_] => false,
        [1, _] => true,
        other => return Err(Fault::Invalid(format!("shape {other:?} is neither [C] nor [1, C]"))),
    };
    let upper = match call.attributes.text("case_change_action", "NONE")? {
        "NONE" => None,
        "LOWER" => Some(false),
        "UPPER" => Some(true),
        other => {
            return Err(Fault::Invalid(format!("case_change_action {other} is not one the standard knows")));
        }
    };
    let sensitive = call.attributes.int("is_case_sensitive", 0)? != 0;
    let ascii = matches!(call.attributes.text("locale", "en_US")?, "C" | "POSIX");
    let key = |text: &str| if sensitive { text.to_owned() } else { cased(text, false, ascii) };
    let stopwords: BTreeSet<String> = match call.attributes.texts("stopwords")? {
        Some(words) => words.iter().map(|w| utf8(w).map(key)).collect::<Result<_, _>>()?,
        None => BTreeSet::new(),
    };
    let mut kept: Vec<Bytes> = Vec::new();
    for element in array.view::<Bytes>()? {
        let text = utf8(element)?;
        if stopwords.is_empty() || !stopwords.contains(&key(text)) {
            kept.push(upper.map_or_else(|| element.clone(), |upper| cased(text, upper, ascii).into()));
        }
    }
    if kept.is_empty() {
        kept.push(Bytes::new());
    }
    let dims = if batch { vec![1, kept.len()] } else { vec![kept.len()] };
    one(Array::new(&dims, kept))
}

/// RegexFullMatch. The pattern is in the syntax of RE2; what the matcher here does not know of it is refused.
fn regex_full_match(call: &mut Call) -> Result<Outputs, Fault> {
    let array = call.input(0)?;
    let pattern = call.attributes.text("pattern", "")?;
    let regex = match pattern_of(&format!("^(?:{pattern})$")) {
        Ok(regex) => regex,
        Err(why) => return call.unsupported(format_args!("the pattern {pattern}: {why}")),
    };
    let texts = array.view::<Bytes>()?;
    let matches = texts.iter().map(|t| utf8(t).map(|t| regex.is_match(t))).collect::<Result<Vec<_>, _>>()?;
    one(Array::bools(array.dims(), matches))
}

/// A compiled pattern.
fn pattern_of(pattern: &str) -> Result<regex_lite::Regex, regex_lite::Error> {
    regex_lite::Regex::new(pattern)
}

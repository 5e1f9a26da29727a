//! What a search can ask for, read from its text.

use regex_lite::{Regex, RegexBuilder};

/// How a search is written, for whoever offers one.
pub const HELP: &[(&str, &str)] = &[
    ("relu encoder", "all words, in operator, name, outputs or attribute names"),
    ("/conv_?[0-9]+$/", "a regular expression between slashes; also after name:, value:, …"),
    ("op:Conv", "the operator, its whole name"),
    ("name:  value:  block:  pass:", "a part of that name"),
    ("type:int8", "a part of an output's type"),
    ("attr:axis", "has an attribute"),
    ("attr:kernel_shape=3", "its value; also =3,5  >1  <=0.5"),
    ("dim>1000  rank=4", "some dimension, the rank of an output"),
    ("params>1M  bytes>=64Ki", "constant data that the node reads"),
    ("changed", "made or changed by a pass"),
];

/// What is looked for in a text, capitals aside.
#[derive(Debug)]
pub enum Pattern {
    /// In lower case.
    Part(String),
    Regex(Regex),
}

impl Pattern {
    fn read(text: &str) -> Result<Pattern, String> {
        match text.strip_prefix('/').and_then(|t| t.strip_suffix('/')).filter(|t| !t.is_empty()) {
            Some(expression) => {
                let built = RegexBuilder::new(expression).case_insensitive(true).build();
                let regex = built.map_err(|e| format!("/{expression}/ is no regular expression: {e}"))?;
                Ok(Pattern::Regex(regex))
            }
            None => Ok(Pattern::Part(text.to_lowercase())),
        }
    }

    /// True when the text has it somewhere.
    pub fn is_in(&self, text: &str) -> bool {
        match self {
            Pattern::Part(part) => text.to_lowercase().contains(part.as_str()),
            Pattern::Regex(regex) => regex.is_match(text),
        }
    }

    /// True when the text is it.
    pub fn is(&self, text: &str) -> bool {
        match self {
            Pattern::Part(part) => text.to_lowercase() == *part,
            Pattern::Regex(regex) => regex.is_match(text),
        }
    }
}

/// How two numbers are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Relation {
    Less,
    AtMost,
    Equal,
    AtLeast,
    Greater,
}

/// Longer signs first, so that `>=` is not read as `>`.
const RELATIONS: [(&str, Relation); 5] = [
    (">=", Relation::AtLeast),
    ("<=", Relation::AtMost),
    (">", Relation::Greater),
    ("<", Relation::Less),
    ("=", Relation::Equal),
];

impl Relation {
    /// True when `a` stands so to `b`.
    pub fn holds(self, a: f64, b: f64) -> bool {
        match self {
            Relation::Less => a < b,
            Relation::AtMost => a <= b,
            Relation::Equal => a == b,
            Relation::AtLeast => a >= b,
            Relation::Greater => a > b,
        }
    }
}

/// Numbers that a node has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Measure {
    /// Any known dimension of an output.
    Dimension,
    /// Rank of an output.
    Rank,
    /// Elements of the constants that it reads.
    Parameters,
    /// Bytes of the constants that it reads.
    Bytes,
}

const MEASURES: [(&str, Measure); 4] = [
    ("dim", Measure::Dimension),
    ("rank", Measure::Rank),
    ("params", Measure::Parameters),
    ("bytes", Measure::Bytes),
];

/// What the value of an attribute is held against.
#[derive(Debug)]
pub enum Wanted {
    /// One number: every element of a list stands so to it.
    Number(Relation, f64),
    /// A list, element by element.
    List(Vec<f64>),
    Text(Pattern),
}

/// One word of a query; a node has to fit all of them.
#[derive(Debug)]
pub enum Word {
    Any(Pattern),
    Operator(Pattern),
    Name(Pattern),
    Value(Pattern),
    Attribute(Pattern),
    AttributeValue(String, Wanted),
    Pass(Pattern),
    Block(Pattern),
    Type(Pattern),
    Measured(Measure, Relation, f64),
    Changed,
}

/// Reads a query.
///
/// # Errors
/// One sentence that names the word and what is wrong with it.
pub fn words(query: &str) -> Result<Vec<Word>, String> {
    query.split_whitespace().map(word).collect()
}

fn word(text: &str) -> Result<Word, String> {
    if let Some((field, rest)) = text.split_once(':') {
        let make: Option<fn(Pattern) -> Word> = match field.to_lowercase().as_str() {
            "op" => Some(Word::Operator),
            "name" => Some(Word::Name),
            "value" => Some(Word::Value),
            "attr" => return attribute(rest),
            "pass" => Some(Word::Pass),
            "block" => Some(Word::Block),
            "type" => Some(Word::Type),
            _ => None,
        };
        if let Some(make) = make {
            return Ok(make(Pattern::read(rest)?));
        }
    }
    let low = text.to_lowercase();
    if low == "changed" {
        return Ok(Word::Changed);
    }
    for (name, measure) in MEASURES {
        if let Some((relation, number)) = low.strip_prefix(name).and_then(compared) {
            let number = self::number(number).ok_or_else(|| {
                format!("'{text}': after the sign comes a number, such as 1000, 1.5M or 64Ki")
            })?;
            return Ok(Word::Measured(measure, relation, number));
        }
    }
    Ok(Word::Any(Pattern::read(text)?))
}

/// `axis`, `axis=1`, `kernel_shape=3,5`, `epsilon<1e-4`, `mode=linear`.
fn attribute(text: &str) -> Result<Word, String> {
    let at = text.find(['<', '>', '=']).filter(|_| !text.starts_with('/'));
    let Some((name, (relation, value))) = at.and_then(|at| Some((&text[..at], compared(&text[at..])?)))
    else {
        return Ok(Word::Attribute(Pattern::read(text)?));
    };
    let inner = value.trim_start_matches('[').trim_end_matches(']');
    let numbers: Option<Vec<f64>> = inner.split([',', '×']).map(number).collect();
    let wanted = match (numbers.as_deref(), relation) {
        (Some(&[one]), _) if inner.len() == value.len() => Wanted::Number(relation, one),
        (Some(list), Relation::Equal) => Wanted::List(list.to_vec()),
        (None, Relation::Equal) => Wanted::Text(Pattern::read(value)?),
        _ => return Err(format!("'attr:{text}': only one number can be compared by < and >")),
    };
    Ok(Word::AttributeValue(name.to_lowercase(), wanted))
}

/// What begins with a sign of comparison.
fn compared(text: &str) -> Option<(Relation, &str)> {
    RELATIONS.iter().find_map(|(sign, relation)| Some((*relation, text.strip_prefix(sign)?)))
}

/// `1000`, `1.5M`, `64Ki`: K, M and G are powers of 1000, Ki, Mi and Gi of 1024.
fn number(text: &str) -> Option<f64> {
    let low = text.to_lowercase();
    let digits = low.trim_end_matches('i').trim_end_matches(['k', 'm', 'g']);
    let factor = match &low[digits.len()..] {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        "ki" => 1024.0,
        "mi" => 1024.0 * 1024.0,
        "gi" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    digits.parse::<f64>().ok().filter(|v| v.is_finite()).map(|v| v * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units() {
        let cases = [("12", 12.0), ("1.5M", 1.5e6), ("64Ki", 65536.0), ("-1", -1.0), ("1e-5", 1e-5)];
        for (text, wanted) in cases {
            assert_eq!(number(text), Some(wanted), "{text}");
        }
        for text in ["", "k", "1x", "ten", "1ii", "nan", "inf"] {
            assert_eq!(number(text), None, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        let wrong = |query: &str| words(query).expect_err("wrong").to_string();
        assert!(wrong("relu /conv(/").starts_with("/conv(/ is no regular expression: "));
        assert!(wrong("name:/[/").contains("/[/"));
        assert!(wrong("params>many").contains("'params>many'"));
        assert!(wrong("attr:pads>1,2").contains("only one number"));
        for right in
            ["/encoder/layer.0/", "/", "//", "dimension", "rank", "attr:/^k/", "a:b", "attr:mode=nearest"]
        {
            assert!(words(right).is_ok(), "{right}");
        }
    }
}

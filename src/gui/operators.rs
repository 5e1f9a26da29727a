//! What the standard says of operators, for people: a line of meaning, names of inputs and outputs, defaults of attributes
//! by opset version. Read from two tables in `assets`.

/// Generated from the standard's operator definitions.
const TABLE: &str = include_str!("../../assets/operators.tsv");
/// One line each, written for this program.
const MEANINGS: &str = include_str!("../../assets/meanings.tsv");

/// An operator as an opset version has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operator {
    inputs: &'static str,
    outputs: &'static str,
    defaults: &'static str,
}

fn key(domain: &str, name: &str) -> String {
    match domain {
        "" | "ai.onnx" => name.to_owned(),
        domain => format!("{domain}:{name}"),
    }
}

/// One line that says what an operator does; `None` for operators of foreign domains.
pub fn meaning(domain: &str, name: &str) -> Option<&'static str> {
    let key = key(domain, name);
    MEANINGS.lines().filter_map(|line| line.split_once('\t')).find(|(k, _)| *k == key).map(|(_, text)| text)
}

/// The operator in the newest version that `opset` has.
pub fn operator(domain: &str, name: &str, opset: i64) -> Option<Operator> {
    let key = key(domain, name);
    TABLE
        .lines()
        .filter_map(|line| {
            let mut parts = line.split('\t');
            let fits = parts.next()? == key && parts.next()?.parse::<i64>().ok()? <= opset;
            let operator =
                Operator { inputs: parts.next()?, outputs: parts.next()?, defaults: parts.next()? };
            fits.then_some(operator)
        })
        .next_back()
}

impl Operator {
    /// The standard's name for an input, by position.
    pub fn input(&self, index: usize) -> String {
        role(self.inputs, index)
    }

    /// The standard's name for an output, by position.
    pub fn output(&self, index: usize) -> String {
        role(self.outputs, index)
    }

    /// Attributes that have a default, with it.
    pub fn defaults(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.defaults.split("; ").filter_map(|pair| pair.split_once('='))
    }
}

/// The name at a position; the last one goes on, numbered, where there may be any number.
fn role(names: &str, index: usize) -> String {
    let list: Vec<&str> = names.split(',').filter(|name| !name.is_empty()).collect();
    let single = |name: &str| name.trim_end_matches('…').to_owned();
    match (list.get(index), list.last()) {
        (Some(name), _) if !name.ends_with('…') => single(name),
        (_, Some(last)) if last.ends_with('…') => {
            format!("{} {}", single(last), index + 1 - (list.len() - 1))
        }
        _ => format!("#{index}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_roles_and_defaults() {
        let axis = |opset| {
            let softmax = operator("", "Softmax", opset).expect("a standard operator");
            softmax.defaults().find(|(name, _)| *name == "axis").map(|(_, value)| value)
        };
        assert_eq!((axis(11), axis(13)), (Some("1"), Some("-1")));
        let conv = operator("ai.onnx", "Conv", 17).expect("a standard operator");
        assert_eq!([0, 1, 2, 3].map(|i| conv.input(i)), ["X", "W", "B", "#3"]);
        let concat = operator("", "Concat", 13).expect("a standard operator");
        assert_eq!([0, 2].map(|i| concat.input(i)), ["inputs 1", "inputs 3"]);
        assert_eq!(operator("com.example", "Conv", 17), None);
    }

    #[test]
    fn every_operator_of_the_table_has_a_meaning() {
        let names =
            TABLE.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split('\t').next());
        for name in names {
            let (domain, operator) = name.rsplit_once(':').unwrap_or(("", name));
            assert!(meaning(domain, operator).is_some(), "{name}");
        }
        assert_eq!(meaning("com.example", "Conv"), None);
    }
}

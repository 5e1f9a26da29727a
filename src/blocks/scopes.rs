//! Scopes that exporters wrote: from node metadata, node names or value names, as one tree of names per graph.

use super::flow::{Flow, Role};
use crate::ir::{Model, Node, NodeId, Text};
use rustc_hash::FxHashMap;

/// Scopes deeper than this are read as this deep.
const DEEPEST: usize = 24;

/// A scope within a graph; [`ROOT`] is the graph itself.
pub(super) type ScopeId = u32;
pub(super) const ROOT: ScopeId = 0;

pub(super) struct Scope {
    pub parent: ScopeId,
    pub depth: u32,
    pub name: Text,
    /// Class of the module, when the file says it.
    pub class: Text,
}

/// The tree of scopes of one graph and the scope of each of its nodes.
pub(super) struct Scopes {
    pub scopes: Vec<Scope>,
    /// By position; nodes without a scope of their own sit where their readers are.
    pub of: Vec<ScopeId>,
    pub origin: Origin,
}

/// Where the scopes of a graph come from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Origin {
    Nothing,
    ValueNames,
    NodeNames,
    Metadata,
}

impl Origin {
    /// For people.
    pub fn describe(self) -> &'static str {
        match self {
            Origin::Nothing => "no scopes in the file",
            Origin::ValueNames => "scopes from value names",
            Origin::NodeNames => "scopes from node names",
            Origin::Metadata => "scopes from metadata",
        }
    }
}

/// One step of a scope path: name and, where known, class.
type Step = (String, String);

/// Reads the scopes of a graph.
pub(super) fn scopes(model: &Model, flow: &Flow) -> Scopes {
    let mut tree = Tree {
        scopes: vec![Scope { parent: ROOT, depth: 0, name: "".into(), class: "".into() }],
        by_name: FxHashMap::default(),
    };
    let mut of = Vec::with_capacity(flow.len());
    let mut seats = Vec::with_capacity(flow.len());
    let mut counts = [0usize; 4];
    for id in &flow.ids {
        let (origin, path) = path_of(model, *id);
        counts[origin as usize] += path.len().min(1);
        seats.push(match origin {
            Origin::Nothing if generated(model.node(*id)) => Seat::Anywhere,
            Origin::Nothing => Seat::Fixed,
            _ => Seat::Scope,
        });
        of.push(tree.insert(path));
    }
    let origin = [Origin::Metadata, Origin::NodeNames, Origin::ValueNames]
        .into_iter()
        .max_by_key(|o| (counts[*o as usize], *o))
        .filter(|o| counts[*o as usize] > 0)
        .unwrap_or(Origin::Nothing);
    settle(&tree.scopes, flow, &seats, &mut of);
    Scopes { scopes: tree.scopes, of, origin }
}

struct Tree {
    scopes: Vec<Scope>,
    by_name: FxHashMap<(ScopeId, String), ScopeId>,
}

impl Tree {
    fn insert(&mut self, path: Vec<Step>) -> ScopeId {
        let mut at = ROOT;
        for (name, class) in path.into_iter().take(DEEPEST) {
            let next = self.scopes.len() as ScopeId;
            let depth = self.scopes[at as usize].depth + 1;
            let id = *self.by_name.entry((at, name.clone())).or_insert(next);
            if id == next {
                self.scopes.push(Scope { parent: at, depth, name: name.into(), class: class.into() });
            }
            at = id;
        }
        at
    }
}

/// How far a computing node may be moved from where its name puts it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seat {
    /// To its readers: its name says nothing.
    Anywhere,
    /// Down into a scope that alone feeds and reads it.
    Scope,
    /// Not at all: somebody gave it a plain name.
    Fixed,
}

/// Lowest scope around both.
fn around(scopes: &[Scope], mut a: ScopeId, mut b: ScopeId) -> ScopeId {
    while a != b {
        if scopes[a as usize].depth >= scopes[b as usize].depth {
            a = scopes[a as usize].parent;
        } else {
            b = scopes[b as usize].parent;
        }
    }
    a
}

/// Moves constants, shape arithmetic and nodes without a scope to their readers, and what a scope alone feeds and
/// reads into that scope.
fn settle(scopes: &[Scope], flow: &Flow, seats: &[Seat], of: &mut [ScopeId]) {
    for at in (0..flow.len()).rev() {
        let readers = flow.succs[at].iter().map(|s| of[*s as usize]).reduce(|a, b| around(scopes, a, b));
        let Some(readers) = readers else { continue };
        let inside = around(scopes, of[at], readers) == of[at];
        of[at] = match flow.roles[at] {
            Role::Constant => readers,
            _ if seats[at] == Seat::Anywhere => readers,
            Role::Side if inside => readers,
            Role::Main if inside && seats[at] == Seat::Scope && flow.inputs[at].is_empty() => {
                let mains = flow.preds[at].iter().filter(|p| flow.roles[**p as usize] == Role::Main);
                match mains.map(|p| of[*p as usize]).reduce(|a, b| around(scopes, a, b)) {
                    Some(feeds) if around(scopes, of[at], feeds) == of[at] => around(scopes, readers, feeds),
                    _ => of[at],
                }
            }
            _ => of[at],
        };
    }
}

/// True for a node without a name of its own: none at all, or the operator's with a number (`Cast_8447`).
fn generated(node: &Node) -> bool {
    let begins =
        |name: &str| name.get(..node.op_type.len()).is_some_and(|n| n.eq_ignore_ascii_case(&node.op_type));
    node.name.is_empty() || begins(&node.name) || begins(node.name.strip_prefix("node_").unwrap_or(""))
}

/// Scope path of a node, best source first.
fn path_of(model: &Model, id: NodeId) -> (Origin, Vec<Step>) {
    let node = model.node(id);
    if let Some(path) = from_metadata(node) {
        return (Origin::Metadata, path);
    }
    if node.name.contains('/') {
        return (Origin::NodeNames, from_path(&node.name));
    }
    let value = node.outputs.iter().flatten().find_map(|v| model.get_value(*v)).map(|v| v.name.clone());
    match value {
        // TensorFlow's value names are paths with an output number. Where nodes are named without scope, so are they.
        Some(name) if node.name.is_empty() && name.contains('/') => {
            (Origin::ValueNames, from_path(name.rsplit_once(':').map_or(&*name, |(path, _)| path)))
        }
        _ => (Origin::Nothing, Vec::new()),
    }
}

/// Scopes of `/encoder/layer.0/MatMul` or `model/dense_1/MatMul`; all segments are plain names, empty ones are skipped.
fn from_path(name: &str) -> Vec<Step> {
    // Converters join the names of fused operations by `;`.
    let first = name.split(';').next().unwrap_or(name);
    let scope = first.rsplit_once('/').map_or("", |(scope, _)| scope);
    scope.split('/').filter(|s| !s.is_empty()).map(|s| (s.to_owned(), String::new())).collect()
}

/// Scopes from `metadata_props` as PyTorch's newer exporter writes them; `None` when absent or not well-formed.
fn from_metadata(node: &Node) -> Option<Vec<Step>> {
    let entry = |key: &str| node.metadata.iter().find(|(k, _)| &**k == key).map(|(_, v)| &**v);
    let names = entry("pkg.torch.onnx.name_scopes").and_then(python_strings);
    let mut steps: Vec<Step> = match names {
        Some(names) => {
            let classes =
                entry("pkg.torch.onnx.class_hierarchy").and_then(python_strings).unwrap_or_default();
            let known = classes.len() == names.len();
            let class = |i: usize| if known { classes[i].clone() } else { String::new() };
            names.into_iter().enumerate().map(|(i, name)| (name, class(i))).collect()
        }
        None => {
            let text = entry("namespace").filter(|t| !t.trim().is_empty())?;
            text.split('/')
                .map(|part| match part.split_once(": ") {
                    Some((name, class)) => (name.to_owned(), class.to_owned()),
                    None => (part.to_owned(), String::new()),
                })
                .collect()
        }
    };
    // The last step is the operation itself.
    steps.pop()?;
    let hook = |name: &str| name.starts_with("_empty_nn_module_stack");
    let mut outer = String::new();
    let mut path = Vec::new();
    for (name, class) in steps.into_iter().filter(|(n, _)| !n.is_empty() && !hook(n)) {
        let class = class.rsplit('.').next().unwrap_or("").to_owned();
        let short = within(&outer, &name).to_owned();
        outer = name;
        path.push((short, class));
    }
    Some(path)
}

/// A dotted module path as seen from the module around it: `encoder.layers` + `encoder.layers.0` → `layers.0`.
fn within<'a>(outer: &str, name: &'a str) -> &'a str {
    let Some(rest) = name.strip_prefix(outer).and_then(|r| r.strip_prefix('.')) else { return name };
    if !rest.starts_with(|c: char| c.is_ascii_digit()) {
        return rest;
    }
    // A number alone says nothing: keep the container's last name.
    let container = outer.rfind('.').map_or(0, |dot| dot + 1);
    name.get(container..).unwrap_or(name)
}

/// The strings of a Python list of string literals, as `repr` writes it; `None` when it is anything else.
fn python_strings(text: &str) -> Option<Vec<String>> {
    let mut rest = text.trim().strip_prefix('[')?.strip_suffix(']')?.trim_start();
    let mut out = Vec::new();
    while !rest.is_empty() {
        let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
        let mut chars = rest.char_indices().skip(1);
        let mut word = String::new();
        let end = loop {
            match chars.next()? {
                (_, '\\') => word.push(chars.next()?.1),
                (i, c) if c == quote => break i + c.len_utf8(),
                (_, c) => word.push(c),
            }
        };
        out.push(word);
        rest = rest.get(end..)?.trim_start();
        match rest.strip_prefix(',') {
            Some(more) => rest = more.trim_start(),
            None if rest.is_empty() => {}
            None => return None,
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_lists_parse_or_are_refused() {
        assert_eq!(
            python_strings("['', 'a.0', \"it's\"]"),
            Some(vec!["".into(), "a.0".into(), "it's".into()])
        );
        assert_eq!(python_strings("[]"), Some(vec![]));
        assert_eq!(python_strings("['', 'enc', 'it''s, ]"), None);
        assert_eq!(python_strings("['a' 'b']"), None);
        assert_eq!(python_strings("'a'"), None);
    }

    #[test]
    fn paths_are_plain_names() {
        let names = |s: &str| from_path(s).into_iter().map(|(n, _)| n).collect::<Vec<_>>();
        assert_eq!(names("/enc/../dec/Relu"), ["enc", "..", "dec"]);
        assert_eq!(names("//enc//Neg"), ["enc"]);
        assert_eq!(names("/enc/"), ["enc"]);
        assert!(names("/").is_empty() && names("..").is_empty());
    }

    #[test]
    fn module_paths_are_shortened_within_their_container() {
        assert_eq!(within("", "layer1"), "layer1");
        assert_eq!(within("layer1", "layer1.0"), "layer1.0");
        assert_eq!(within("model.layers", "model.layers.3"), "layers.3");
        assert_eq!(within("model.model", "model.model.layers.0"), "layers.0");
        assert_eq!(within("model", "modeling"), "modeling");
    }
}

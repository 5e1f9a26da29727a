//! Names of sites that are made of content, so that exclusions and scripts survive a change of numbers.

use crate::ir::{Model, ValueId};
use crate::passes::{Anchor, Site};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Key of a site: `pass@"anchor value"#k`.
///
/// The anchor value is the first output of the anchor node; k tells apart values of one name (in sibling bodies), in
/// the order in which the file lists them.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SiteKey {
    pub pass: Arc<str>,
    pub anchor: Arc<str>,
    pub index: u32,
}

impl SiteKey {
    /// The key of a site in the model in which it was found.
    pub fn of(model: &Model, pass: &str, site: &Site) -> SiteKey {
        let value = match site.anchor {
            Anchor::Value(v) => Some(v),
            Anchor::Node(n) => model.get_node(n).and_then(|n| n.outputs.iter().flatten().next().copied()),
        };
        match value.and_then(|v| Some((v, model.get_value(v)?))) {
            Some((id, value)) => {
                SiteKey { pass: pass.into(), anchor: value.name.clone(), index: rank(model, id) }
            }
            None => {
                let name = match site.anchor {
                    Anchor::Node(n) => model.node_label(n),
                    Anchor::Value(v) => v.to_string(),
                };
                SiteKey { pass: pass.into(), anchor: name.into(), index: 0 }
            }
        }
    }
}

fn rank(model: &Model, value: ValueId) -> u32 {
    model.values_named(&model.value(value).name).iter().position(|v| *v == value).unwrap_or(0) as u32
}

impl fmt::Display for SiteKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{:?}#{}", self.pass, &*self.anchor, self.index)
    }
}

/// What a text that should be a site key lacks.
#[derive(Debug, thiserror::Error, PartialEq)]
#[error(
    "'{0}' is not a site key; one looks like fuse_conv_batch_norm@\"conv1_out\"#0, as `optimize --dry-run` prints them"
)]
pub struct NotAKey(pub String);

impl FromStr for SiteKey {
    type Err = NotAKey;

    fn from_str(s: &str) -> Result<SiteKey, NotAKey> {
        let bad = || NotAKey(s.to_owned());
        let (pass, rest) = s.split_once('@').ok_or_else(bad)?;
        let (anchor, index) = match rest.rsplit_once('#') {
            Some((anchor, index)) if anchor.ends_with('"') => (anchor, index.parse().map_err(|_| bad())?),
            _ => (rest, 0),
        };
        // A shell may have eaten the quotes; a quoted anchor is read as JSON reads strings, escapes included.
        let anchor = match anchor.strip_prefix('"').and_then(|a| a.strip_suffix('"')) {
            Some(inner) => unescape(inner).ok_or_else(bad)?,
            None => anchor.to_owned(),
        };
        if pass.is_empty() || anchor.is_empty() {
            return Err(bad());
        }
        Ok(SiteKey { pass: pass.into(), anchor: anchor.into(), index })
    }
}

/// Undoes what `{:?}` of a string writes.
fn unescape(s: &str) -> Option<String> {
    let mut out = String::with_capacity(s.len());
    let mut chars = s.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next()? {
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            '0' => out.push('\0'),
            'u' => {
                let hex: String = chars.by_ref().skip(1).take_while(|c| *c != '}').collect();
                out.push(char::from_u32(u32::from_str_radix(&hex, 16).ok()?)?);
            }
            other => out.push(other),
        }
    }
    Some(out)
}

impl Serialize for SiteKey {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SiteKey {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<SiteKey, D::Error> {
        String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_print_and_parse_back() {
        for anchor in ["conv1_out", "a \"quoted\" name", "back\\slash", "line\nbreak", "日本語", "a#1", "x@y"]
        {
            let key = SiteKey { pass: "eliminate_identity".into(), anchor: anchor.into(), index: 3 };
            assert_eq!(key.to_string().parse::<SiteKey>().unwrap(), key);
        }
        let bare = "eliminate_identity@conv1_out".parse::<SiteKey>().unwrap();
        assert_eq!((&*bare.anchor, bare.index), ("conv1_out", 0));
        assert!("no key".parse::<SiteKey>().is_err());
    }
}

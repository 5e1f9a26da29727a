//! Whether a model has clear block borders.

use super::tree::{BlockKind, BlockTree, Child};

/// From this share of nodes in named or recognised blocks on, borders are clear.
const CLEAR: f64 = 0.7;

/// Verdict on a model's block borders.
#[derive(Clone, PartialEq, Debug)]
pub struct Clarity {
    pub clear: bool,
    /// One sentence without a full stop: what the verdict rests on.
    pub reason: String,
    /// Share of nodes in scopes that the exporter named, 0 to 1.
    pub named: f64,
    /// Share of the other nodes' blocks that were recognised by their operators, of all nodes, 0 to 1.
    pub recognised: f64,
}

/// Says whether the blocks of a model are its own (scopes, recognised modules) or cuts made for the eye.
pub fn clarity(tree: &BlockTree) -> Clarity {
    let (mut named, mut recognised, mut all, mut cut) = (0u64, 0u64, 0u64, false);
    // What the blocks around say, for each block; a block comes after the one around it.
    let mut around: Vec<Option<BlockKind>> = Vec::new();
    let mut origin: Option<(u32, String)> = None;
    for (_, block) in tree.iter() {
        let outer = block.parent.and_then(|p| around.get(p.0 as usize).cloned().flatten());
        let kind = match (&outer, &block.kind) {
            (Some(BlockKind::Scope), _) => outer,
            (_, BlockKind::Scope) => Some(BlockKind::Scope),
            (Some(BlockKind::Module(_)), _) => outer,
            (_, BlockKind::Module(_)) => Some(block.kind.clone()),
            _ => outer,
        };
        cut |= block.kind == BlockKind::Part;
        if block.parent.is_none() {
            // The largest graph says where scopes come from: the main one may hold nothing but a branch.
            let largest = origin.as_ref().is_none_or(|(nodes, _)| block.nodes > *nodes);
            origin = if largest { Some((block.nodes, block.note.to_string())) } else { origin };
        }
        let own = block.children.iter().filter(|c| matches!(c, Child::Node(_))).count() as u64;
        all += own;
        match kind {
            Some(BlockKind::Scope) => named += own,
            Some(BlockKind::Module(_)) => recognised += own,
            _ => {}
        }
        around.push(kind);
    }
    let origin = origin.map(|(_, note)| note).unwrap_or_default();
    let share = |n: u64| if all == 0 { 0.0 } else { n as f64 / all as f64 };
    let (named, recognised) = (share(named), share(recognised));
    let percent = |s: f64| format!("{:.0} %", s * 100.0);
    let mut reason = match (named > 0.0, recognised > 0.0) {
        (true, true) => {
            format!(
                "{origin}: {} of the nodes, {} more recognised by pattern",
                percent(named),
                percent(recognised)
            )
        }
        (true, false) => format!("{origin}: {} of the nodes", percent(named)),
        (false, true) => format!("{origin}; {} of the nodes recognised by pattern", percent(recognised)),
        (false, false) => format!("{origin}; nothing recognised"),
    };
    if cut {
        reason.push_str("; crowded levels are cut into parts");
    }
    Clarity { clear: named + recognised >= CLEAR, reason, named, recognised }
}

//! Stable topological order of a node list.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Positions `0..count` in an order in which every reader comes after what it reads, nearest to the given order: of those
/// that can come next always the first. `reads` are pairs (reader, producer). `Err` is a position that is part of a cycle.
pub fn stable_order(count: usize, reads: &[(u32, u32)]) -> Result<Vec<u32>, u32> {
    let mut readers: Vec<Vec<u32>> = vec![Vec::new(); count];
    let mut waiting = vec![0usize; count];
    for (reader, producer) in reads {
        if let (Some(list), Some(number)) =
            (readers.get_mut(*producer as usize), waiting.get_mut(*reader as usize))
        {
            list.push(*reader);
            *number += 1;
        }
    }
    let mut ready: BinaryHeap<Reverse<u32>> = (0u32..)
        .zip(&waiting)
        .filter(|(_, number)| **number == 0)
        .map(|(position, _)| Reverse(position))
        .collect();
    let mut order = Vec::with_capacity(count);
    while let Some(Reverse(position)) = ready.pop() {
        order.push(position);
        for reader in readers.get(position as usize).into_iter().flatten() {
            if let Some(number) = waiting.get_mut(*reader as usize) {
                *number -= 1;
                if *number == 0 {
                    ready.push(Reverse(*reader));
                }
            }
        }
    }
    if order.len() == count { Ok(order) } else { Err(on_cycle(&waiting, reads)) }
}

/// A position on a cycle: walking from reader to producer among those left over must come back somewhere.
fn on_cycle(waiting: &[usize], reads: &[(u32, u32)]) -> u32 {
    let left = |position: u32| waiting.get(position as usize).is_some_and(|number| *number > 0);
    let mut producer_of = vec![None; waiting.len()];
    for (reader, producer) in reads {
        if left(*reader)
            && left(*producer)
            && let Some(slot) = producer_of.get_mut(*reader as usize)
        {
            *slot = Some(*producer);
        }
    }
    let mut at = (0u32..).zip(waiting).find(|(_, number)| **number > 0).map_or(0, |(position, _)| position);
    let mut seen = vec![false; waiting.len()];
    while let Some(visited) = seen.get_mut(at as usize)
        && !*visited
    {
        *visited = true;
        if let Some(producer) = producer_of.get(at as usize).copied().flatten() {
            at = producer;
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::stable_order;

    #[test]
    fn a_sorted_list_stays() {
        assert_eq!(stable_order(4, &[(1, 0), (3, 1), (3, 2)]), Ok(vec![0, 1, 2, 3]));
    }

    #[test]
    fn only_what_must_move_moves() {
        assert_eq!(stable_order(4, &[(0, 2)]), Ok(vec![1, 2, 0, 3]));
    }

    #[test]
    fn a_cycle_is_named_by_a_member() {
        // 0 only hangs behind the cycle of 2 and 3.
        let on_cycle = stable_order(4, &[(0, 2), (2, 3), (3, 2), (1, 0)]).unwrap_err();
        assert!(on_cycle == 2 || on_cycle == 3, "{on_cycle}");
        assert_eq!(stable_order(1, &[(0, 0)]), Err(0));
    }
}

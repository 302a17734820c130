//! Order of the calls of a request: parallel or in sequence.
//!
//! Calls that never overlap are in sequence; calls all of which overlap are in parallel. Of others, groups are found in turns:
//! groups without an overlap between them are in sequence, groups that overlap throughout are branches in parallel. This gives
//! every nesting of sequences and branches back (such graphs of overlaps are cographs); the calls of any other graph are all in
//! parallel.

use experiment::topology::file::MAX_NESTING;

/// Maximum depth of branches within branches: in a file each has a list of branches and a list of steps.
const MAX_DEPTH: usize = MAX_NESTING / 2 - 1;

/// Order of calls, by index.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Order {
    Call(usize),
    Sequence(Vec<Order>),
    Parallel(Vec<Order>),
}

/// Order of calls that are sorted by their start.
pub(super) fn arrange(calls: &[usize], overlap: &dyn Fn(usize, usize) -> bool, depth: usize) -> Order {
    if let [only] = calls {
        return Order::Call(*only);
    }
    let groups = connected(calls, overlap);
    if groups.len() > 1 || calls.is_empty() {
        return Order::Sequence(groups.iter().map(|group| arrange(group, overlap, depth)).collect());
    }
    let branches = connected(calls, &|one, other| !overlap(one, other));
    let is_nested = branches.len() > 1 && depth < MAX_DEPTH;
    Order::Parallel(if is_nested {
        branches.iter().map(|branch| arrange(branch, overlap, depth + 1)).collect()
    } else {
        calls.iter().map(|call| Order::Call(*call)).collect()
    })
}

/// Groups that are connected, in the order of their first members; members keep their order.
fn connected(calls: &[usize], is_edge: &dyn Fn(usize, usize) -> bool) -> Vec<Vec<usize>> {
    let mut group_of: Vec<Option<usize>> = vec![None; calls.len()];
    let mut groups = 0;
    for first in 0..calls.len() {
        if group_of[first].is_some() {
            continue;
        }
        let mut waiting = vec![first];
        while let Some(one) = waiting.pop() {
            if group_of[one].replace(groups).is_none() {
                let next = |other: &usize| group_of[*other].is_none() && is_edge(calls[one], calls[*other]);
                waiting.extend((0..calls.len()).filter(next).collect::<Vec<_>>());
            }
        }
        groups += 1;
    }
    let members = |group: usize| calls.iter().zip(&group_of).filter(move |(_, own)| **own == Some(group));
    (0..groups).map(|group| members(group).map(|(call, _)| *call).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Order as text: `0 (1 | 2 3)`.
    fn shown(order: &Order) -> String {
        let all =
            |orders: &[Order], between: &str| orders.iter().map(shown).collect::<Vec<_>>().join(between);
        match order {
            Order::Call(call) => call.to_string(),
            Order::Sequence(orders) => all(orders, " "),
            Order::Parallel(orders) => format!("({})", all(orders, " | ")),
        }
    }

    #[test]
    fn overlaps_give_sequences_and_branches_in_any_nesting() {
        for (overlaps, expected) in [
            (&[][..], "0 1 2 3 4"),
            (&[(0, 1), (0, 2), (1, 2)], "(0 | 1 | 2) 3 4"),
            (&[(1, 2), (1, 3)], "0 (1 | 2 3) 4"),
            (&[(0, 1), (0, 2), (0, 3), (0, 4), (2, 3)], "(0 | 1 (2 | 3) 4)"),
            // Neither sequences nor branches: 0, 1, 2, 3 overlap in a chain.
            (&[(0, 1), (1, 2), (2, 3)], "(0 | 1 | 2 | 3) 4"),
        ] {
            let overlap = |one: usize, other: usize| overlaps.contains(&(one.min(other), one.max(other)));
            assert_eq!(shown(&arrange(&[0, 1, 2, 3, 4], &overlap, 0)), expected);
        }
    }

    #[test]
    fn branches_nest_as_deep_as_a_topology_file_may() {
        fn levels(order: &Order) -> usize {
            match order {
                Order::Call(_) => 0,
                Order::Sequence(orders) | Order::Parallel(orders) => {
                    1 + orders.iter().map(levels).max().unwrap_or(0)
                }
            }
        }
        // Every other call overlaps all later ones.
        let overlap = |one: usize, other: usize| one.min(other).is_multiple_of(2);
        let calls: Vec<usize> = (0..40).collect();
        // A call may be several steps: a list of its own.
        assert_eq!(levels(&arrange(&calls, &overlap, 0)) + 1, MAX_NESTING);
    }
}

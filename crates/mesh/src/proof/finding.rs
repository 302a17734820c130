//! Faults of things that several edges share, and the edges that they are charged to.

use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug)]
pub(super) struct Finding {
    /// Indices of the edges that may be at fault.
    pub edges: Vec<usize>,
    pub reasons: Vec<String>,
    /// True if it leaves all its edges unproven and does not explain other findings.
    pub is_of_all: bool,
}

/// The reasons of each edge. A finding about several edges is charged to those that also appear in other
/// findings. An edge that bypasses its proxies is missing at each of them, and each proxy shares it with
/// different edges. If no other finding distinguishes the edges, all of them are charged.
pub(super) fn charge(findings: &[Finding], edges: usize) -> Vec<Vec<String>> {
    let partial = || findings.iter().filter(|finding| !finding.is_of_all && !finding.reasons.is_empty());
    let single = partial().filter(|finding| finding.edges.len() == 1);
    let mut charged: BTreeSet<usize> = single.flat_map(|finding| finding.edges.iter().copied()).collect();
    loop {
        let mut suspected: BTreeMap<usize, usize> = BTreeMap::new();
        let is_open = |finding: &&Finding| !finding.edges.iter().any(|edge| charged.contains(edge));
        for edge in partial().filter(is_open).flat_map(|finding| &finding.edges) {
            *suspected.entry(*edge).or_default() += 1;
        }
        let Some(most) = suspected.values().copied().max() else { break };
        charged.extend(suspected.into_iter().filter(|(_, times)| *times == most).map(|(edge, _)| edge));
    }
    let mut reasons: Vec<Vec<String>> = vec![Vec::new(); edges];
    for finding in findings {
        for edge in finding.edges.iter().filter(|edge| finding.is_of_all || charged.contains(edge)) {
            reasons[*edge].extend(finding.reasons.iter().cloned());
        }
    }
    reasons
}

//! Places: a proxy, or its replicas, where requests of one or more edges pass.

use super::counted::CountedProxy;
use super::summed::SummedEdge;
use std::collections::BTreeMap;

/// Index of an edge, and the position of a proxy on it.
pub(super) type Member = (usize, usize);

pub(super) struct Place {
    pub members: Vec<Member>,
    /// Has the counters of all its edges, under the names in the first edge's evidence.
    pub proxy: CountedProxy,
}

impl Place {
    pub fn edges(&self) -> Vec<usize> {
        self.members.iter().map(|(edge, _)| *edge).collect()
    }
}

/// All places, without duplicates. Edges share a place if the first counter of their evidence is the same.
pub(super) fn places(edges: &[SummedEdge<'_>]) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    let mut known = BTreeMap::new();
    for (index, edge) in edges.iter().enumerate() {
        for (position, (proxy, processes)) in edge.proxies.iter().zip(&edge.processes).enumerate() {
            let key = (processes, proxy.side, proxy.evidence.load_counters().first().copied().flatten());
            let place = *known.entry(key).or_insert(places.len());
            match places.get_mut(place) {
                Some(shared) => {
                    shared.members.push((index, position));
                    let members = &shared.members[..];
                    merge(&mut shared.proxy, proxy, |name| {
                        let others = members.iter().rev().skip(1);
                        let mut others = others.map(|(edge, position)| &edges[*edge].proxies[*position]);
                        others.any(|other| other.evidence.load_counters().contains(&Some(name)))
                    });
                }
                None => places.push(Place { members: vec![(index, position)], proxy: proxy.clone() }),
            }
        }
    }
    places
}

/// Adds those counters of another edge that the edges before it do not have.
fn merge(shared: &mut CountedProxy, other: &CountedProxy, is_merged: impl Fn(&String) -> bool) {
    if shared.evidence.handshakes.is_none() {
        shared.evidence.handshakes.clone_from(&other.evidence.handshakes);
        shared.evidence.tls_expected = other.evidence.tls_expected;
    }
    let pairs = shared.evidence.load_counters().into_iter().zip(other.evidence.load_counters());
    let names: Vec<(String, String)> = pairs
        .filter_map(|(name, own)| Some((name?, own?)))
        .filter(|(_, own)| !is_merged(own))
        .map(|(name, own)| (name.clone(), own.clone()))
        .collect();
    for (name, own) in names {
        for (sum, counters) in [
            (Some(&mut shared.before), Some(&other.before)),
            (shared.after.as_mut().ok(), other.after.as_ref().ok()),
        ] {
            if let (Some(sum), Some(count)) = (sum, counters.and_then(|counters| counters.get(&own))) {
                *sum.entry(name.clone()).or_default() += count;
            }
        }
    }
}

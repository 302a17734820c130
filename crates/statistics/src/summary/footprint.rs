//! Configuration and memory of a proxy, over the valid trials of a cell.

use super::estimates::estimate;
use results::{ConfigurationCounts, ConfigurationSummary, HeapSummary, ProxyFootprint, ProxyHeap};

/// The proxy's configuration; `None` if no trial could read it.
pub(super) fn configuration(held: &[&ProxyFootprint]) -> Option<ConfigurationSummary> {
    let read = || held.iter().filter_map(|holdings| holdings.configuration);
    let first = read().next()?.counts;
    Some(ConfigurationSummary {
        size_bytes: estimate(read().map(|configuration| configuration.size_bytes as f64))?,
        dump_bytes: estimate(read().map(|configuration| configuration.dump_bytes as f64))?,
        counts: read().fold(ConfigurationCounts::default(), |all, each| all.greatest(&each.counts)),
        varies: read().any(|configuration| configuration.counts != first),
    })
}

/// The proxy's heap before or after the load; `None` if no trial could read it.
pub(super) fn heap(
    held: &[&ProxyFootprint],
    moment: fn(&ProxyFootprint) -> Option<ProxyHeap>,
) -> Option<HeapSummary> {
    let each = |read: fn(ProxyHeap) -> u64| {
        estimate(held.iter().filter_map(|holdings| moment(holdings)).map(|heap| read(heap) as f64))
    };
    Some(HeapSummary {
        allocated_bytes: each(|heap| heap.allocated_bytes)?,
        heap_bytes: each(|heap| heap.heap_bytes)?,
    })
}

/// Reasons why something could not be read, without duplicates.
pub(super) fn unread(held: &[&ProxyFootprint]) -> Vec<String> {
    let mut reasons: Vec<String> = Vec::new();
    for reason in held.iter().flat_map(|holdings| &holdings.unread) {
        if !reasons.contains(reason) {
            reasons.push(reason.clone());
        }
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::ProxyConfiguration;

    fn holding(size_bytes: u64, clusters: u64, allocated_bytes: u64) -> ProxyFootprint {
        let counts = ConfigurationCounts {
            clusters: Some(clusters),
            rejected_updates: Some(0),
            ..ConfigurationCounts::default()
        };
        ProxyFootprint {
            configuration: Some(ProxyConfiguration { size_bytes, dump_bytes: 3 * size_bytes, counts }),
            heap_before_load: Some(ProxyHeap { allocated_bytes, heap_bytes: 2 * allocated_bytes }),
            ..ProxyFootprint::default()
        }
    }

    #[test]
    fn sizes_are_estimated_and_counts_are_maxima() {
        let (one, other) = (holding(1000, 4, 500), holding(1200, 4, 700));
        let summary = configuration(&[&one, &other, &ProxyFootprint::default()]).unwrap();
        assert!((summary.size_bytes.estimate - 1100.0).abs() < 1e-9 && summary.size_bytes.low.is_some());
        assert!((summary.dump_bytes.estimate - 3300.0).abs() < 1e-9, "{summary:?}");
        assert_eq!(summary.counts, one.configuration.unwrap().counts);
        assert!(!summary.varies);
        let heap = heap(&[&one, &other], |holdings| holdings.heap_before_load).unwrap();
        assert!((heap.heap_bytes.estimate - 1200.0).abs() < 1e-9, "{heap:?}");
    }

    #[test]
    fn count_that_differs_between_trials_is_reported() {
        let (one, other) = (holding(1000, 4, 500), holding(1000, 5, 500));
        let summary = configuration(&[&one, &other]).unwrap();
        assert!(summary.varies);
        assert_eq!(summary.counts.clusters, Some(5));
        assert_eq!(summary.counts.endpoints, None);
    }

    #[test]
    fn unread_holdings_have_reasons_and_no_figures() {
        let silent = ProxyFootprint { unread: vec!["no answer".to_owned()], ..ProxyFootprint::default() };
        assert_eq!(unread(&[&silent, &silent]), ["no answer"]);
        assert_eq!(configuration(&[&ProxyFootprint::default()]), None);
        assert_eq!(heap(&[], |holdings| holdings.heap_after_load), None);
    }
}

//! Waits of requests without a response, and lower bounds of percentiles among them.
//!
//! A request that failed, or that was never sent, would have taken longer than it had waited. So the percentile of rank r is
//! greater than the value of rank r among the answers and these waits. Results of earlier versions know no waits of requests never
//! sent: they count as zeros.

use results::{Figure, rank};
use std::collections::BTreeMap;

/// Waits with the same this many leading binary digits are one entry: a few hundred entries at most between 1 µs and three days.
const DIGITS: u32 = 6;

/// Waits of requests without a response in entries of similar ones. Memory does not grow with requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UnansweredWaits {
    /// By the least wait that an entry may hold, nanoseconds: its shortest wait, and how many.
    entries: BTreeMap<u64, (u64, u64)>,
}

impl UnansweredWaits {
    /// Requests were abandoned after at least this many nanoseconds.
    pub fn record_ns(&mut self, wait_ns: u64, requests: u64) {
        if requests == 0 {
            return;
        }
        let dropped = wait_ns.checked_ilog2().unwrap_or_default().saturating_sub(DIGITS);
        let entry = self.entries.entry(wait_ns >> dropped << dropped).or_insert((wait_ns, 0));
        *entry = (entry.0.min(wait_ns), entry.1.saturating_add(requests));
    }

    /// Adds every wait of the other.
    pub fn merge(&mut self, other: &Self) {
        other.entries.values().for_each(|(shortest, count)| self.record_ns(*shortest, *count));
    }

    /// Entries as results have them, ascending: the shortest wait, microseconds, and how many.
    #[must_use]
    pub fn to_entries(&self) -> Vec<(f64, u64)> {
        self.entries.values().map(|(shortest, count)| (*shortest as f64 / 1e3, *count)).collect()
    }

    /// Reads what [`Self::to_entries`] gave.
    #[must_use]
    pub fn from_entries(entries: &[(f64, u64)]) -> Self {
        let mut waits = Self::default();
        entries.iter().for_each(|(wait_us, count)| waits.record_ns((wait_us * 1e3).round() as u64, *count));
        waits
    }

    /// Requests whose wait is known.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.entries.values().map(|(_, count)| *count).fold(0, u64::saturating_add)
    }

    /// What the least percentile among requests without a response is greater than, and so all beyond it, microseconds; absent
    /// if every request was answered. `answered`: how many were, the slowest after `greatest_us`; `unknown`: requests without a
    /// response of whose wait nothing is known.
    #[must_use]
    pub fn above_us(&self, answered: u64, greatest_us: f64, unknown: u64) -> Option<f64> {
        let below_waits = answered.saturating_add(unknown);
        let all = below_waits.saturating_add(self.count());
        let mut ranks = Figure::ALL.into_iter().filter_map(|figure| rank_among(all, figure.quantile()?));
        let rank = ranks.find(|rank| *rank > answered)?;
        let mut below: u64 = 0;
        let of_rank = self.entries.values().find(|(_, count)| {
            below = below.saturating_add(*count);
            below >= rank.saturating_sub(below_waits)
        });
        // Unknown waits may be the shortest: up to their number a rank says nothing.
        let wait_ns = of_rank.filter(|_| rank > below_waits).map_or(0, |(shortest, _)| *shortest);
        // They rank above all answers, however soon they failed.
        Some((wait_ns as f64 / 1e3).max(greatest_us))
    }
}

/// The rank of a quantile among so many requests; absent among none.
fn rank_among(requests: u64, quantile: f64) -> Option<u64> {
    (requests > 0).then(|| rank(requests, quantile))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn waits(of: &[(u64, u64)]) -> UnansweredWaits {
        let mut waits = UnansweredWaits::default();
        of.iter().for_each(|(wait_ns, count)| waits.record_ns(*wait_ns, *count));
        waits
    }

    #[test]
    fn one_early_failure_does_not_hide_the_timeouts() {
        // p99.9 of 5000 is the fifth from the top: a timeout.
        let mixed = waits(&[(2 * MS, 1), (1000 * MS, 39)]);
        assert_eq!(mixed.above_us(4960, 3200.0, 0), Some(1_000_000.0));
        // A failure at once is slower than every answer, and nothing more is known.
        assert_eq!(waits(&[(2 * MS, 40)]).above_us(4960, 3200.0, 0), Some(3200.0));
        // The least percentile is that of a reset.
        assert_eq!(waits(&[(2 * MS, 60), (1000 * MS, 4)]).above_us(4936, 3200.0, 0), Some(3200.0));
        assert_eq!(waits(&[]).above_us(5000, 3200.0, 0), None);
        assert_eq!(waits(&[]).above_us(0, 0.0, 0), None);
        assert_eq!(waits(&[(2 * MS, 0)]), waits(&[]), "of nothing there is no wait");
    }

    #[test]
    fn unknown_waits_may_be_the_shortest() {
        // p99 of 1000 is the eleventh from the top: a timeout, whatever the unknown waits are.
        assert_eq!(waits(&[(1000 * MS, 15)]).above_us(965, 3200.0, 20), Some(1_000_000.0));
        assert_eq!(waits(&[(1000 * MS, 5)]).above_us(965, 3200.0, 30), Some(3200.0));
    }

    #[test]
    fn waits_of_several_recorders_are_one_and_survive_a_result() {
        let (mut one, other) = (waits(&[(500 * MS, 3), (7, 1)]), waits(&[(501 * MS, 2), (0, 1)]));
        one.merge(&other);
        assert_eq!(one.to_entries(), [(0.0, 1), (0.007, 1), (500_000.0, 5)]);
        assert_eq!(UnansweredWaits::from_entries(&one.to_entries()), one);
    }
}

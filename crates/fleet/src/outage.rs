//! Connections lost through external causes, and the time until they had a complete configuration again.

use results::{FleetOutage, LatencyHistogram};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Maximum number of losses that a thread keeps; further ones are only counted, by kind.
const MAX_LOSSES: usize = 100_000;
/// Maximum time between two consecutive losses of one outage.
const MAX_GAP: Duration = Duration::from_secs(5);
/// Maximum number of names in a result.
pub(crate) const MAX_NAMES: usize = 20;

/// A lost connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loss {
    /// Index among the fleet's connections.
    pub(crate) link: usize,
    /// Time since the fleet's start.
    pub(crate) at: Duration,
    pub(crate) cause: &'static str,
    /// Time since the fleet's start; absent: not recovered yet.
    pub(crate) recovered: Option<Duration>,
}

/// Losses of one thread.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    all: Vec<Loss>,
    /// The last loss of each connection that has not recovered, by the connection's index in the thread.
    open: BTreeMap<usize, usize>,
}

impl Losses {
    /// Records a loss; `place` is the connection's index in the thread. A connection lost again before it has
    /// recovered counts as one loss.
    pub(crate) fn lost(&mut self, place: usize, loss: Loss) {
        if self.all.len() < MAX_LOSSES && !self.open.contains_key(&place) {
            self.open.insert(place, self.all.len());
            self.all.push(loss);
        }
    }

    pub(crate) fn recovered(&mut self, place: usize, at: Duration) {
        if let Some(index) = self.open.remove(&place) {
            self.all[index].recovered = Some(at);
        }
    }

    pub(crate) fn into_all(self) -> Vec<Loss> {
        self.all
    }
}

/// Groups losses that are close in time.
pub(crate) fn outages(mut losses: Vec<Loss>, name: impl Fn(usize) -> String) -> Vec<FleetOutage> {
    losses.sort_by_key(|loss| loss.at);
    let groups = losses.chunk_by(|one, next| next.at.saturating_sub(one.at) <= MAX_GAP);
    groups.map(|group| outage(group, &name)).collect()
}

fn outage(group: &[Loss], name: &impl Fn(usize) -> String) -> FleetOutage {
    let mut causes = BTreeMap::<_, usize>::new();
    let (mut recovery, mut censored) = (LatencyHistogram::new(), 0);
    for loss in group {
        *causes.entry(loss.cause).or_default() += 1;
        match loss.recovered {
            Some(recovered) => recovery.record(recovered.saturating_sub(loss.at)),
            None => censored += 1,
        }
    }
    let cause = causes.into_iter().max_by_key(|(_, count)| *count).map_or("", |(cause, _)| cause);
    let links: BTreeSet<_> = group.iter().map(|loss| loss.link).collect();
    FleetOutage {
        cause: cause.to_owned(),
        at: group.first().map_or(0.0, |loss| loss.at.as_secs_f64()),
        proxies: links.len() as u64,
        names: links.iter().take(MAX_NAMES).map(|link| name(*link)).collect(),
        recovery_us: recovery.summary_with(censored),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_close_in_time_are_one_outage() {
        let mut losses = Losses::default();
        let loss = |link, at_ms| Loss {
            link,
            at: Duration::from_millis(at_ms),
            cause: "connection-lost",
            recovered: None,
        };
        losses.lost(0, loss(10, 1000));
        losses.lost(1, loss(11, 1200));
        losses.lost(1, loss(11, 1300));
        losses.recovered(0, Duration::from_millis(1500));
        losses.lost(0, loss(10, 60_000));
        let outages = outages(losses.into_all(), |link| format!("proxy-{link}"));
        assert_eq!(outages.len(), 2);
        assert_eq!((outages[0].proxies, outages[0].at), (2, 1.0));
        assert_eq!(outages[0].names, ["proxy-10", "proxy-11"]);
        assert_eq!((outages[0].recovery_us.count, outages[0].recovery_us.censored), (1, 1));
        assert_eq!(outages[0].recovery_us.p50.map(|us| (us / 1000.0).round()), Some(500.0));
    }
}

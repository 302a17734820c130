//! Calls over an edge, from the readings of its caller.

use super::place::Edge;
use crate::proof::CallCounters;
use crate::service::CallReading;
use results::{EdgeRecord, LatencyHistogram};

/// Calls over an edge in a trial.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// Over the whole trial.
    pub counters: CallCounters,
    /// Absent if the caller does not measure it, or could not be read when the window opened.
    in_window: Option<ResponseTimes>,
}

/// Response times of the calls that ended after the opening of the window. Calls during the warm-up open connections, which
/// may take longer than all others.
#[derive(Debug)]
struct ResponseTimes {
    times: LatencyHistogram,
    /// Calls that timed out or broke off.
    without_time: u64,
}

impl Calls {
    /// Absent if the counters fell.
    pub fn between(before: &CallReading, opening: Option<&CallReading>, after: &CallReading) -> Option<Self> {
        let in_window = opening.and_then(|opening| ResponseTimes::between(opening, after));
        Some(Self { counters: after.counters.since(&before.counters)?, in_window })
    }

    pub fn and(self, other: Self) -> Self {
        let in_window = self.in_window.zip(other.in_window).map(|(sum, own)| sum.and(&own));
        Self { counters: self.counters.and(&other.counters), in_window }
    }

    pub fn record(self, edge: &Edge) -> EdgeRecord {
        let CallCounters { sent, answered, failed, retries, resent, connections, .. } = self.counters;
        EdgeRecord {
            from: edge.from.clone(),
            to: edge.to.clone(),
            requests: sent.saturating_sub(resent),
            answered,
            failed,
            retries,
            connections,
            response_time_us: self.in_window.map(|window| window.times.summary_with(window.without_time)),
        }
    }
}

impl ResponseTimes {
    fn between(opening: &CallReading, after: &CallReading) -> Option<Self> {
        let counters = after.counters.since(&opening.counters)?;
        let all = LatencyHistogram::decode(&after.response_time_us).ok()?;
        let times = match LatencyHistogram::decode(&opening.response_time_us) {
            Ok(opening) => all.since(&opening)?,
            // The edge had not been called.
            Err(_) => all,
        };
        let without_time = (counters.answered + counters.failed).saturating_sub(times.count());
        Some(Self { times, without_time })
    }

    fn and(mut self, other: &Self) -> Self {
        self.times.merge(&other.times);
        self.without_time += other.without_time;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Answered calls that took so long each, milliseconds, and calls that broke off.
    fn reading(answered_ms: &[u64], failed: u64) -> CallReading {
        let mut times = LatencyHistogram::default();
        answered_ms.iter().for_each(|ms| times.record(Duration::from_millis(*ms)));
        let answered = answered_ms.len() as u64;
        let counters = CallCounters { sent: answered + failed, answered, failed, ..CallCounters::default() };
        CallReading { counters, response_time_us: times.encode() }
    }

    #[test]
    fn response_times_are_without_the_warm_up() {
        let (opening, after) = (reading(&[900, 800], 1), reading(&[900, 800, 3, 3, 3], 2));
        let calls = Calls::between(&CallReading::default(), Some(&opening), &after).unwrap();
        assert_eq!((calls.counters.answered, calls.counters.failed), (5, 2));
        let ResponseTimes { times, without_time } = calls.in_window.unwrap();
        assert_eq!((times.count(), without_time), (3, 1));
        assert!(times.max_us() < 4000.0, "{}", times.max_us());
    }

    #[test]
    fn edge_first_called_in_the_window_has_all_its_times() {
        let calls = Calls::between(&CallReading::default(), Some(&CallReading::default()), &reading(&[3], 0));
        assert_eq!(calls.unwrap().in_window.unwrap().times.count(), 1);
    }

    #[test]
    fn response_times_are_absent_if_a_caller_was_not_read_at_the_opening() {
        let after = reading(&[3], 0);
        let unread = Calls::between(&CallReading::default(), None, &after).unwrap();
        let read = Calls::between(&CallReading::default(), Some(&CallReading::default()), &after).unwrap();
        assert!(unread.in_window.is_none());
        let together = read.and(unread);
        assert_eq!(together.counters.answered, 2);
        assert!(together.in_window.is_none());
    }
}

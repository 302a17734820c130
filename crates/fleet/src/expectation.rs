//! Pursuits of one thread: awaited marks of a change, complete configurations after a loss, and certificates,
//! per connection.
//!
//! A pursuit takes 4 bytes per connection, and 2 more while it is open.

use std::time::{Duration, Instant};

/// Not expected on this connection.
const NOT_EXPECTED: u32 = u32::MAX;
/// Not reached yet.
const WAITING: u32 = u32::MAX - 1;
/// The connection that the pursuit awaits the return of is not lost yet.
const NOT_LOST: u32 = u32::MAX - 2;
const MAX_ARRIVAL: u32 = u32::MAX - 3;

/// What a pursuit awaits on each connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Goal {
    /// Its marks arrive.
    Marks,
    /// It is lost, reconnects, and has a complete configuration.
    Return,
    /// The authority signs a certificate.
    Certificate,
}

/// Progress of a change in one thread.
#[derive(Clone, Debug)]
pub(crate) struct Expectation {
    pub(crate) goal: Goal,
    /// Time that arrivals are relative to.
    begun: Instant,
    /// Per connection: microseconds, or one of the constants above.
    arrivals: Vec<u32>,
    /// Marks still missing per connection; empty once none is missing, and for pursuits without marks.
    missing: Vec<u16>,
    waiting: usize,
}

impl Expectation {
    /// `expected`: number of marks per connection; 0 if nothing is expected.
    pub(crate) fn new(goal: Goal, begun: Instant, expected: Vec<u16>) -> Self {
        let waiting = expected.iter().filter(|marks| **marks > 0).count();
        let first = if goal == Goal::Return { NOT_LOST } else { WAITING };
        let arrivals = expected.iter().map(|marks| if *marks > 0 { first } else { NOT_EXPECTED });
        Self {
            goal,
            begun,
            arrivals: arrivals.collect(),
            missing: if goal == Goal::Marks { expected } else { Vec::new() },
            waiting,
        }
    }

    pub(crate) fn begun(&self) -> Instant {
        self.begun
    }

    /// Number of connections still awaited.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    pub(crate) fn expects(&self, link: usize) -> bool {
        self.arrivals[link] != NOT_EXPECTED
    }

    /// True if this connection is still awaited.
    pub(crate) fn waits_for(&self, link: usize) -> bool {
        matches!(self.arrivals[link], WAITING | NOT_LOST)
    }

    /// True if this connection should have been reached but was not.
    pub(crate) fn misses(&self, link: usize) -> bool {
        self.arrivals[link] == WAITING
    }

    /// Called when the connection is lost.
    pub(crate) fn lost(&mut self, link: usize) {
        if self.arrivals[link] == NOT_LOST {
            self.arrivals[link] = WAITING;
        }
    }

    /// Records an arrival on the connection. Returns true if nothing more is missing on it.
    pub(crate) fn arrived(&mut self, link: usize, at: Instant) -> bool {
        if self.arrivals[link] != WAITING {
            return false;
        }
        if let Some(missing) = self.missing.get_mut(link) {
            *missing = missing.saturating_sub(1);
            if *missing > 0 {
                return false;
            }
        }
        let elapsed = at.saturating_duration_since(self.begun).as_micros();
        self.arrivals[link] = u32::try_from(elapsed).unwrap_or(MAX_ARRIVAL).min(MAX_ARRIVAL);
        self.waiting -= 1;
        if self.waiting == 0 {
            self.missing = Vec::new();
        }
        true
    }

    /// Expected connections by index, each with the time since the start; absent: not reached. Connections
    /// that were expected to return but were never lost are omitted.
    pub(crate) fn outcomes(&self) -> impl Iterator<Item = (usize, Option<Duration>)> + '_ {
        self.arrivals.iter().enumerate().filter_map(|(link, arrival)| match *arrival {
            NOT_EXPECTED | NOT_LOST => None,
            WAITING => Some((link, None)),
            micros => Some((link, Some(Duration::from_micros(u64::from(micros))))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_is_reached_with_last_mark() {
        let begun = Instant::now();
        let at = |ms| begun + Duration::from_millis(ms);
        let mut expectation = Expectation::new(Goal::Marks, begun, vec![2, 0, 1]);
        assert!(!expectation.arrived(0, at(3)) && !expectation.arrived(1, at(3)));
        assert!(expectation.arrived(2, at(4)) && !expectation.arrived(2, at(5)));
        assert_eq!(expectation.waiting(), 1);
        assert!(expectation.waits_for(0) && !expectation.waits_for(1) && !expectation.waits_for(2));
        let outcomes: Vec<_> = expectation.outcomes().collect();
        assert_eq!(outcomes, [(0, None), (2, Some(Duration::from_millis(4)))]);
        assert!(expectation.arrived(0, at(9)));
        assert_eq!(expectation.waiting(), 0);
    }

    #[test]
    fn return_counts_only_after_loss() {
        let begun = Instant::now();
        let mut expectation = Expectation::new(Goal::Return, begun, vec![1, 1]);
        assert!(
            !expectation.arrived(0, begun),
            "an old connection's configuration does not count as a return"
        );
        expectation.lost(0);
        assert!(expectation.arrived(0, begun + Duration::from_secs(2)));
        let outcomes: Vec<_> = expectation.outcomes().collect();
        assert_eq!(outcomes, [(0, Some(Duration::from_secs(2)))], "the other was never lost");
    }
}

//! Pursuits: awaited marks of a change, complete configurations after a loss, and certificates, per connection of a thread.
//!
//! A pursuit holds 4 bytes per connection, and 2 more while it is open.

use std::time::{Duration, Instant};

/// Not expected of this connection.
const NOT_EXPECTED: u32 = u32::MAX;
/// Not reached yet.
const WAITING: u32 = u32::MAX - 1;
/// Before the loss of the connection that the pursuit is about.
const NOT_LOST: u32 = u32::MAX - 2;
const MAX_ARRIVAL: u32 = u32::MAX - 3;

/// Aim of a pursuit on each connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Aim {
    /// Its marks arrive.
    Marks,
    /// It is lost, returns, and has a complete configuration.
    Return,
    /// The authority signs a certificate.
    Certificate,
}

/// A change as one thread sees it.
#[derive(Clone, Debug)]
pub(crate) struct Pursuit {
    pub(crate) aim: Aim,
    /// Times count from here.
    begun: Instant,
    /// Per connection: microseconds, or one of the values above.
    arrivals: Vec<u32>,
    /// Per connection: marks that are still missing; empty once none is, and without marks.
    missing: Vec<u16>,
    waiting: usize,
}

impl Pursuit {
    /// `expected` has the number of marks per connection; 0 where nothing is expected.
    pub(crate) fn new(aim: Aim, begun: Instant, expected: Vec<u16>) -> Self {
        let waiting = expected.iter().filter(|marks| **marks > 0).count();
        let first = if aim == Aim::Return { NOT_LOST } else { WAITING };
        let arrivals = expected.iter().map(|marks| if *marks > 0 { first } else { NOT_EXPECTED });
        Self {
            aim,
            begun,
            arrivals: arrivals.collect(),
            missing: if aim == Aim::Marks { expected } else { Vec::new() },
            waiting,
        }
    }

    pub(crate) fn begun(&self) -> Instant {
        self.begun
    }

    /// Connections that are waited for.
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

    /// True if this connection is expected to be reached and is not.
    pub(crate) fn misses(&self, link: usize) -> bool {
        self.arrivals[link] == WAITING
    }

    /// The connection was lost.
    pub(crate) fn lost(&mut self, link: usize) {
        if self.arrivals[link] == NOT_LOST {
            self.arrivals[link] = WAITING;
        }
    }

    /// One of the connection's aims arrived. Returns whether none is missing any longer.
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

    /// Expected connections by place, each with the time from the start; absent: not reached. Where a
    /// return was expected of connections that were never lost, these are left out.
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
    fn a_connection_is_reached_with_its_last_mark() {
        let begun = Instant::now();
        let at = |ms| begun + Duration::from_millis(ms);
        let mut pursuit = Pursuit::new(Aim::Marks, begun, vec![2, 0, 1]);
        assert!(!pursuit.arrived(0, at(3)) && !pursuit.arrived(1, at(3)));
        assert!(pursuit.arrived(2, at(4)) && !pursuit.arrived(2, at(5)));
        assert_eq!(pursuit.waiting(), 1);
        assert!(pursuit.waits_for(0) && !pursuit.waits_for(1) && !pursuit.waits_for(2));
        let outcomes: Vec<_> = pursuit.outcomes().collect();
        assert_eq!(outcomes, [(0, None), (2, Some(Duration::from_millis(4)))]);
        assert!(pursuit.arrived(0, at(9)));
        assert_eq!(pursuit.waiting(), 0);
    }

    #[test]
    fn a_return_counts_after_a_loss() {
        let begun = Instant::now();
        let mut pursuit = Pursuit::new(Aim::Return, begun, vec![1, 1]);
        assert!(!pursuit.arrived(0, begun), "an old connection's configuration is no return");
        pursuit.lost(0);
        assert!(pursuit.arrived(0, begun + Duration::from_secs(2)));
        let outcomes: Vec<_> = pursuit.outcomes().collect();
        assert_eq!(outcomes, [(0, Some(Duration::from_secs(2)))], "the other was never lost");
    }
}

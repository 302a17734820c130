//! Waking on time: a sleep that ends a little early, then a short spin to the instant itself.
//!
//! A timer alone wakes a thread tens of microseconds late. The margin by which the sleep ends early follows the
//! lateness that is seen, and spinning is bounded to a share of the thread's time, so that a generator without a core of
//! its own does not take the CPU from what it measures.

use crate::clock::{Nanos, SECOND};

/// Least margin: below it a sleep is not worth its system call.
const MIN_MARGIN: Nanos = 5_000;
/// Greatest margin: where timers are later than this, spinning would not help.
const MAX_MARGIN: Nanos = 120_000;
/// Margin before any lateness is known.
const FIRST_MARGIN: Nanos = 60_000;
/// The share of time that may be spent spinning: one part in this many.
const SPIN_SHARE: Nanos = 10;
/// Spinning time that may be saved up.
const MAX_BUDGET: Nanos = SECOND / 100;

/// How to spend the time until something is due.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Wait {
    /// Sleep for so long, or until the network has news.
    Sleep(Nanos),
    /// Look at the network and the clock again and again.
    Spin,
}

/// Decides between sleeping and spinning for one thread.
#[derive(Debug)]
pub(crate) struct Pacer {
    /// How late sleeps end: an estimate of about the 90th percentile.
    lateness: Nanos,
    budget: Nanos,
    last_refill: Nanos,
}

impl Pacer {
    pub(crate) fn new() -> Self {
        Self { lateness: FIRST_MARGIN, budget: MAX_BUDGET, last_refill: 0 }
    }

    /// What to do at `now` until `due`, which lies ahead.
    pub(crate) fn wait_for(&mut self, due: Nanos, now: Nanos) -> Wait {
        self.refill(now);
        let ahead = due.saturating_sub(now);
        let margin = self.lateness.clamp(MIN_MARGIN, MAX_MARGIN);
        if self.budget < margin {
            return Wait::Sleep(ahead);
        }
        if ahead > margin { Wait::Sleep(ahead - margin) } else { Wait::Spin }
    }

    /// A sleep that was to end at `intended` by its timer ended at `woken`.
    pub(crate) fn slept(&mut self, intended: Nanos, woken: Nanos) {
        let late = woken.saturating_sub(intended).min(MAX_MARGIN);
        // Asymmetric steps settle where one in ten is later: up by 9 parts, down by 1.
        if late > self.lateness {
            self.lateness += 900;
        } else {
            self.lateness = self.lateness.saturating_sub(100);
        }
    }

    /// Time spent spinning.
    pub(crate) fn spun(&mut self, time: Nanos) {
        self.budget = self.budget.saturating_sub(time);
    }

    fn refill(&mut self, now: Nanos) {
        let passed = now.saturating_sub(self.last_refill);
        self.last_refill = now;
        self.budget = (self.budget + passed / SPIN_SHARE).min(MAX_BUDGET);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_early_by_the_lateness_seen_then_spins() {
        let mut pacer = Pacer::new();
        for _ in 0..2000 {
            pacer.slept(0, 30_000);
        }
        let Wait::Sleep(time) = pacer.wait_for(1_000_000, 0) else { panic!("a millisecond is slept") };
        assert!((960_000..=972_000).contains(&time), "{time}");
        assert_eq!(pacer.wait_for(1_000_000, 990_000), Wait::Spin);
    }

    #[test]
    fn spinning_is_bounded_to_its_share() {
        let mut pacer = Pacer::new();
        let (mut now, mut spun) = (0, 0);
        // Something is due every 20 µs, less than the margin: without a bound this would spin for ever.
        while now < 10 * SECOND {
            match pacer.wait_for(now + 20_000, now) {
                Wait::Sleep(time) => now += time + 1,
                Wait::Spin => {
                    pacer.spun(20_000);
                    spun += 20_000;
                    now += 20_000;
                }
            }
        }
        let share = spun as f64 / now as f64;
        assert!(share < 0.11, "{share}");
    }
}

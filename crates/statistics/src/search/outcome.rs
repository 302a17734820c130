//! Result of a search, and its certainty.

use super::{INTERVAL, Probe, ProbeOutcome, Search};

/// How a search ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SearchEnd {
    /// A rate was found and confirmed.
    Found,
    /// The objective does not hold even at the lowest rate.
    NotHeld,
    /// No rate could be confirmed: the target does not behave the same way twice.
    Unconfirmed,
    /// The generator cannot even offer the lowest rate.
    GeneratorLimited,
    /// The search was stopped; its result is the best rate so far.
    Interrupted,
}

/// What limits the rate found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Limit {
    /// At higher rates the objective does not hold.
    Target,
    /// At higher rates the generator reaches its own limit: the target may carry more.
    Generator,
    /// The objective held at the highest rate of the range.
    Range,
}

/// A rate that meets the objective.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// Rate per second.
    pub rate: f64,
    /// Confirming runs at this rate that held …
    pub held: usize,
    /// … out of this many.
    pub of: usize,
    /// True if these were enough.
    pub confirmed: bool,
    /// Lowest rate above it that did not hold; `None` if none was probed.
    pub failed_at: Option<f64>,
    /// Interval of the highest good rate, from all probes together. Its nominal level is 96 % by the model.
    /// In simulations of the noisiest targets it covers the truth at least four times in five.
    pub likely: (f64, f64),
    /// What limits the rate.
    pub limit: Limit,
}

/// Outcome of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchOutcome {
    /// How the search ended.
    pub end: SearchEnd,
    /// The rate found; `None` if no probe held.
    pub found: Option<Found>,
    /// Rates below the one found at which the objective failed more often than it held.
    pub holes: Vec<f64>,
}

impl Search {
    /// Conclusion from the probes so far.
    #[must_use]
    pub fn outcome(&self) -> SearchOutcome {
        let end = self.end.unwrap_or(SearchEnd::Interrupted);
        let found = match end {
            SearchEnd::NotHeld | SearchEnd::GeneratorLimited => None,
            _ => self.best().map(|rate| self.found(rate)),
        };
        let holes = found.map_or_else(Vec::new, |found| self.holes(found.rate));
        SearchOutcome { end, found, holes }
    }

    /// The confirmed rate. Otherwise the highest rate at which more probes held than failed, below all
    /// refuted ones.
    fn best(&self) -> Option<f64> {
        if let Some((rate, true)) = self.candidate {
            return Some(rate);
        }
        let held = self.probes.iter().filter(|probe| probe.outcome == ProbeOutcome::Held);
        held.map(|probe| probe.rate)
            .filter(|rate| self.refuted.is_none_or(|refuted| *rate < refuted) && self.holds_mostly(*rate))
            .max_by(f64::total_cmp)
    }

    fn holds_mostly(&self, rate: f64) -> bool {
        self.probes_at(rate, ProbeOutcome::Held) > self.probes_at(rate, ProbeOutcome::Failed)
    }

    fn found(&self, rate: f64) -> Found {
        let (held, of) = self.confirming(rate);
        let above =
            || self.probes.iter().filter(|probe| probe.rate > rate && probe.outcome != ProbeOutcome::Held);
        let nearest = above().min_by(|one, other| one.rate.total_cmp(&other.rate));
        Found {
            rate,
            held,
            of,
            confirmed: self.candidate == Some((rate, true)),
            failed_at: nearest.map(|probe| probe.rate),
            likely: (self.posterior.quantile(INTERVAL), self.posterior.quantile(1.0 - INTERVAL)),
            limit: nearest.map_or(Limit::Range, |nearest| self.limit(nearest)),
        }
    }

    /// Whose limit was reached just above the rate found; on a tie, the target's.
    fn limit(&self, nearest: &Probe) -> Limit {
        let near = nearest.rate * (1.0 + 2.0 * self.plan.precision);
        let count = |outcome| {
            let there = self.probes.iter().filter(|probe| probe.rate >= nearest.rate && probe.rate <= near);
            there.filter(|probe| probe.outcome == outcome).count()
        };
        if count(ProbeOutcome::GeneratorLimited) > count(ProbeOutcome::Failed) {
            Limit::Generator
        } else {
            Limit::Target
        }
    }

    fn holes(&self, found: f64) -> Vec<f64> {
        let below = self.probes.iter().filter(|probe| probe.rate < found);
        let mut holes: Vec<f64> = below
            .map(|probe| probe.rate)
            .filter(|rate| self.probes_at(*rate, ProbeOutcome::Failed) >= 2 && !self.holds_mostly(*rate))
            .collect();
        holes.sort_by(f64::total_cmp);
        holes.dedup();
        holes
    }
}

//! Finds the highest rate that meets an objective: which rate to probe next, and the conclusion from all
//! probes.
//!
//! Pure logic: [`Search::next`] returns the next step, [`Search::record`] takes its outcome, and the caller
//! runs the probes. Phases:
//!
//! 1. The capacity in a closed loop, as a hint for the first rate.
//! 2. Growth by doubling until a probe fails.
//! 3. Bisection, guided by the belief.
//! 4. Confirmation by separate runs at the rate found; if they fail, a step down and another attempt.
//! 5. Probes for the curve below the rate found, and one above it.
//!
//! docs/decisions/0005-search.md has the reasons.

mod outcome;
mod posterior;
mod probe;
#[cfg(test)]
mod simulation_tests;

pub use outcome::{Found, Limit, SearchEnd, SearchOutcome};
use posterior::Posterior;
pub use probe::{ProbeLength, classify, rest_after};

/// The reported interval of the belief runs from this quantile to the opposite one.
const INTERVAL: f64 = 0.02;
/// The bisection ends when the interval from this quantile to the opposite one is as narrow as the precision.
/// It covers less than the reported interval, since the confirmation follows.
const NARROW: f64 = 0.1;
/// Quantile of the belief that is proposed as the rate found. It is below the median, because the rate found
/// should hold.
const CAUTIOUS: f64 = 0.15;
/// Factor between rates while nothing has failed.
const GROWTH: f64 = 2.0;
/// Divisor between rates while nothing has held.
const DESCENT: f64 = 4.0;
/// The first rate, as a fraction of the capacity in a closed loop.
const FIRST_OF_CAPACITY: f64 = 0.25;
/// The first rate, as a fraction of the highest, if the capacity is not measured.
const FIRST_OF_HIGHEST: f64 = 1.0 / 16.0;
/// The capacity in a closed loop may be exceeded by this factor by chance …
const CAPACITY_SLACK: f64 = 1.3;
/// … and rates beyond that get their prior probability multiplied by this.
const CAPACITY_DOUBT: f64 = 0.05;
/// A rate is given up after this many failed confirmations.
const REFUTATIONS: usize = 2;
/// Rates that may be given up before the search ends as unconfirmed.
const MAX_STEPS_DOWN: usize = 6;
/// Probes for the curve, as fractions of the rate found.
const CURVE: [f64; 8] = [0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.1];
/// A probe this close to a point of the curve replaces it.
const SAME_RATE: f64 = 0.04;

/// Settings of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchPlan {
    /// Lowest rate that may be the result, per second; above 0.
    pub lowest: f64,
    /// Highest rate that may be probed; above `lowest`.
    pub highest: f64,
    /// Required precision of the result, as a fraction.
    pub precision: f64,
    /// Maximum number of bisection probes. Growth and confirmation have their own limits.
    pub most_probes: usize,
    /// Confirming runs that must hold; at least 1.
    pub confirmations: usize,
    /// Measure the capacity in a closed loop first. That loads the target as much as the connections allow.
    pub measure_capacity: bool,
    /// Probe rates for the curve at the end.
    pub curve: bool,
}

/// Purpose of a probe.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Phase {
    /// Closed loop: measures the maximum completed rate.
    Capacity,
    /// Upwards from a low rate until one fails.
    Growth,
    /// Between rates that held and rates that failed.
    Bisection,
    /// A separate run at the rate found.
    Confirmation,
    /// Points for the curve.
    Curve,
}

impl Phase {
    /// Name in result files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Capacity => "capacity",
            Self::Growth => "growth",
            Self::Bisection => "bisection",
            Self::Confirmation => "confirmation",
            Self::Curve => "curve",
        }
    }
}

/// Next step of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Measure the completed rate of a closed loop, and pass it to [`Search::record_capacity`].
    MeasureCapacity,
    /// Probe a rate, and pass the outcome to [`Search::record`].
    Probe {
        /// Rate per second.
        rate: f64,
        /// Purpose of the probe.
        phase: Phase,
    },
    /// The search is over: read [`Search::outcome`].
    Done,
}

/// Outcome of a probe.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ProbeOutcome {
    /// The objective was met.
    Held,
    /// The objective was missed because of the target.
    Failed,
    /// The generator could not offer this rate, or may itself be the cause: says nothing about the target.
    GeneratorLimited,
}

/// A probe with its outcome.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probe {
    /// Rate per second.
    pub rate: f64,
    /// Purpose of the probe.
    pub phase: Phase,
    /// Whether the objective held.
    pub outcome: ProbeOutcome,
}

#[derive(Clone, Debug, PartialEq)]
enum State {
    Capacity,
    Growth(f64),
    Bisection,
    Confirmation(f64),
    Curve(Vec<f64>),
    Done,
}

/// A search in progress; see the module documentation.
pub struct Search {
    plan: SearchPlan,
    posterior: Posterior,
    probes: Vec<Probe>,
    state: State,
    /// The rate found, and whether it was confirmed.
    candidate: Option<(f64, bool)>,
    /// Lowest rate whose confirmation failed.
    refuted: Option<f64>,
    steps_down: usize,
    end: Option<SearchEnd>,
}

impl Search {
    /// A search without any probes yet.
    #[must_use]
    pub fn new(plan: SearchPlan) -> Self {
        let posterior = Posterior::new(plan.lowest, plan.highest, plan.precision);
        let first = rounded((plan.highest * FIRST_OF_HIGHEST).max(plan.lowest));
        Self {
            plan,
            posterior,
            probes: Vec::new(),
            state: if plan.measure_capacity { State::Capacity } else { State::Growth(first) },
            candidate: None,
            refuted: None,
            steps_down: 0,
            end: None,
        }
    }

    /// The next step. Calling it again returns the same step.
    #[must_use]
    pub fn next(&self) -> Step {
        match &self.state {
            State::Capacity => Step::MeasureCapacity,
            State::Growth(rate) => Step::Probe { rate: *rate, phase: Phase::Growth },
            State::Bisection => {
                let rate = match self.probes.last() {
                    // Probed once more, since a single failure does not show that the generator is the limit.
                    Some(last) if self.is_to_be_repeated(last) => last.rate,
                    _ => self.within(self.posterior.quantile(0.5)),
                };
                Step::Probe { rate, phase: Phase::Bisection }
            }
            State::Confirmation(rate) => Step::Probe { rate: *rate, phase: Phase::Confirmation },
            State::Curve(rates) => match rates.first() {
                Some(rate) => Step::Probe { rate: *rate, phase: Phase::Curve },
                None => Step::Done,
            },
            State::Done => Step::Done,
        }
    }

    /// Records the completed rate of the closed loop; `None` if it could not be measured.
    pub fn record_capacity(&mut self, completed: Option<f64>) {
        if self.state != State::Capacity {
            return;
        }
        let first = match completed.filter(|rate| *rate > 0.0) {
            Some(capacity) => {
                self.posterior.expect_below(capacity * CAPACITY_SLACK, CAPACITY_DOUBT);
                capacity * FIRST_OF_CAPACITY
            }
            None => self.plan.lowest,
        };
        self.state = State::Growth(self.within(first));
    }

    /// Records the outcome of the probe that [`Self::next`] returned.
    pub fn record(&mut self, outcome: ProbeOutcome) {
        let Step::Probe { rate, phase } = self.next() else { return };
        let probe = Probe { rate, phase, outcome };
        let believed = !self.is_first_limit(&probe);
        self.probes.push(probe);
        if believed {
            self.posterior.learn(rate, outcome == ProbeOutcome::Held);
        }
        match self.state.clone() {
            State::Growth(_) if believed => self.grow(rate, outcome),
            State::Bisection if believed => self.bisect(),
            State::Confirmation(_) => self.confirm(rate),
            State::Curve(rates) => self.draw(rate, outcome, rates),
            State::Growth(_) | State::Bisection | State::Capacity | State::Done => {}
        }
    }

    /// Ends the search early; the probes so far count.
    pub fn interrupt(&mut self) {
        if self.end.is_none() {
            self.end = Some(SearchEnd::Interrupted);
        }
        self.state = State::Done;
    }

    /// Every probe so far.
    #[must_use]
    pub fn probes(&self) -> &[Probe] {
        &self.probes
    }

    /// True for the generator's first failure at a rate, which is probed once more.
    fn is_first_limit(&self, probe: &Probe) -> bool {
        probe.outcome == ProbeOutcome::GeneratorLimited
            && matches!(probe.phase, Phase::Growth | Phase::Bisection)
            && !self
                .probes
                .last()
                .is_some_and(|last| last.rate == probe.rate && last.outcome == probe.outcome)
    }

    fn is_to_be_repeated(&self, last: &Probe) -> bool {
        let before = self.probes.len().checked_sub(2).map(|index| self.probes[index]);
        last.outcome == ProbeOutcome::GeneratorLimited
            && last.phase == Phase::Bisection
            && !before.is_some_and(|before| before.rate == last.rate && before.outcome == last.outcome)
    }

    fn within(&self, rate: f64) -> f64 {
        rounded(rate).clamp(self.plan.lowest, self.plan.highest)
    }

    fn probes_at(&self, rate: f64, outcome: ProbeOutcome) -> usize {
        self.probes.iter().filter(|probe| probe.rate == rate && probe.outcome == outcome).count()
    }

    fn any_held(&self) -> bool {
        self.probes.iter().any(|probe| probe.outcome == ProbeOutcome::Held)
    }

    fn grow(&mut self, rate: f64, outcome: ProbeOutcome) {
        let SearchPlan { lowest, highest, .. } = self.plan;
        let failed_before = self.probes.iter().any(|probe| probe.outcome != ProbeOutcome::Held);
        match outcome {
            ProbeOutcome::Held if failed_before => self.bisect(),
            ProbeOutcome::Held if rate >= highest => self.propose(highest),
            ProbeOutcome::Held => self.state = State::Growth(self.within(rate * GROWTH)),
            _ if self.any_held() => self.bisect(),
            _ if rate > lowest => self.state = State::Growth(self.within(rate / DESCENT)),
            _ if self.fails_at_lowest() => {
                let limited = self.probes_at(lowest, ProbeOutcome::GeneratorLimited);
                let by_target = self.probes_at(lowest, ProbeOutcome::Failed) >= limited;
                let end = if by_target { SearchEnd::NotHeld } else { SearchEnd::GeneratorLimited };
                self.finish(end);
            }
            // A single bad probe proves nothing.
            _ => self.state = State::Growth(lowest),
        }
    }

    fn fails_at_lowest(&self) -> bool {
        let lowest = self.plan.lowest;
        let failed = self.probes_at(lowest, ProbeOutcome::Failed)
            + self.probes_at(lowest, ProbeOutcome::GeneratorLimited);
        failed >= 2
    }

    fn bisections(&self) -> usize {
        self.probes.iter().filter(|probe| probe.phase == Phase::Bisection).count()
    }

    /// Ends the bisection when the border is known well enough, or as well as this many probes allow.
    fn bisect(&mut self) {
        self.state = State::Bisection;
        let (low, high) = (self.posterior.quantile(NARROW), self.posterior.quantile(1.0 - NARROW));
        let searching = self.bisections();
        if self.posterior.probability_below(self.plan.lowest) > 1.0 - INTERVAL {
            self.finish(SearchEnd::NotHeld);
        } else if high / low <= 1.0 + self.plan.precision
            || low >= self.plan.highest
            || searching >= self.plan.most_probes
        {
            self.propose(self.posterior.quantile(CAUTIOUS));
        }
    }

    /// Proposes a rate for confirmation, below every rate whose confirmation failed.
    fn propose(&mut self, rate: f64) {
        let ceiling =
            self.refuted.map_or(self.plan.highest, |refuted| refuted / (1.0 + self.plan.precision / 2.0));
        if ceiling < self.plan.lowest {
            return self.finish(SearchEnd::NotHeld);
        }
        let rate = rounded(rate.min(ceiling)).clamp(self.plan.lowest, self.plan.highest);
        self.candidate = Some((rate, false));
        self.state = State::Confirmation(rate);
    }

    fn confirming(&self, rate: f64) -> (usize, usize) {
        let runs =
            self.probes.iter().filter(|probe| probe.phase == Phase::Confirmation && probe.rate == rate);
        runs.fold((0, 0), |(held, of), probe| {
            (held + usize::from(probe.outcome == ProbeOutcome::Held), of + 1)
        })
    }

    fn confirm(&mut self, rate: f64) {
        let (held, of) = self.confirming(rate);
        let failed = of - held;
        if failed >= REFUTATIONS && failed >= held {
            self.step_down(rate);
        } else if held >= self.plan.confirmations && held > failed {
            self.accept(rate);
        }
    }

    fn step_down(&mut self, rate: f64) {
        self.refuted = Some(self.refuted.map_or(rate, |refuted| refuted.min(rate)));
        self.steps_down += 1;
        if self.steps_down > MAX_STEPS_DOWN {
            self.finish(SearchEnd::Unconfirmed);
        } else {
            self.bisect();
        }
    }

    /// Accepts a confirmed rate. If everything known by now suggests that more would hold, the search
    /// continues above it.
    fn accept(&mut self, rate: f64) {
        let could_be = self.posterior.quantile(CAUTIOUS).min(self.plan.highest);
        let more = could_be > rate * (1.0 + self.plan.precision)
            && self.refuted.is_none_or(|refuted| refuted > could_be);
        self.candidate = Some((rate, true));
        if more && self.bisections() < self.plan.most_probes {
            return self.propose(could_be);
        }
        let near =
            |wanted: f64| self.probes.iter().any(|probe| (probe.rate / wanted - 1.0).abs() < SAME_RATE);
        let wanted = CURVE.map(|fraction| rounded(rate * fraction)).into_iter();
        let rates: Vec<f64> = wanted
            .filter(|wanted| self.plan.curve && *wanted <= self.plan.highest && !near(*wanted))
            .collect();
        self.state = State::Curve(rates);
        self.end = Some(SearchEnd::Found);
    }

    /// A point of the curve that fails below the rate found is probed once more.
    fn draw(&mut self, rate: f64, outcome: ProbeOutcome, mut rates: Vec<f64>) {
        let found = self.candidate.map_or(0.0, |(rate, _)| rate);
        let tried = self.probes.iter().filter(|probe| probe.rate == rate).count();
        if outcome == ProbeOutcome::Held || rate >= found || tried >= 2 {
            rates.remove(0);
        }
        self.state = State::Curve(rates);
    }

    fn finish(&mut self, end: SearchEnd) {
        self.end = Some(end);
        self.state = State::Done;
    }
}

/// Rounds a rate to four digits: more would not add precision, and would be harder to type.
fn rounded(rate: f64) -> f64 {
    let scale = 10_f64.powf(3.0 - rate.log10().floor());
    (rate * scale).round() / scale
}

//! Sleeps or spins until something is due, for one thread.
//!
//! A sleep ends late, by tens of microseconds on many machines, and costs CPU: going to sleep, the timer,
//! waking up. Therefore sleeps end early by their usual lateness and the rest is spun. A wait shorter than a
//! sleep's lateness is spun entirely, which costs less than the sleep. Anything beyond that depends on the
//! [`Pacing`].

use super::SpareCpu;
use crate::clock::{Nanos, SECOND};
use results::{Pacing, SpinPauses};

/// Shortest time worth a sleep.
const MIN_SLEEP: Nanos = 5_000;
/// Maximum margin: if timers are later than this, spinning would not help.
const MAX_MARGIN: Nanos = 120_000;
/// Initial estimates of the lateness and the CPU cost of a sleep.
const FIRST_LATENESS: Nanos = 60_000;
const FIRST_COST: Nanos = 10_000;
/// Without a CPU to spare, spinning beyond what sleeping would have cost may take one part in this many of
/// the time.
const SPIN_SHARE: Nanos = 10;
/// Maximum spinning time that may be saved up.
const MAX_BUDGET: Nanos = SECOND / 100;
/// Economical: the part of the lag tolerance reserved for the lateness of the sleep itself.
const LATENESS_ALLOWANCE: Nanos = 40_000;
/// Precise: a pause longer than this is slept if no response is awaited …
const LONG_PAUSE: Nanos = 5_000_000;
/// … except for its end: CPUs that have slept for long wake slowly.
const END_OF_PAUSE: Nanos = 1_000_000;
/// Maximum time to spin before the caller polls everything else.
const MAX_SPIN: Nanos = 1_000_000;
/// A gap while spinning that is longer than this is a pause: polling the network and the clock never takes as
/// long.
const MIN_PAUSE: Nanos = 100_000;
/// The CPU cost of one in this many sleeps is measured.
const MEASURED_SLEEPS: u32 = 16;

/// How to spend the time until the next request is due.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Wait {
    /// Sleep until this time, or until a network event.
    Sleep(Nanos),
    /// Poll the network and the clock until this time.
    Spin(Nanos),
}

/// Time that a thread has spent on waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Spent {
    /// Time spent spinning.
    pub(crate) spun: Nanos,
    /// Time during which spinning was unbounded because there was a CPU to spare.
    pub(crate) unbounded: Nanos,
    /// Gaps observed while spinning.
    pub(crate) pauses: Pauses,
}

/// Gaps longer than [`MIN_PAUSE`] between two clock readings while spinning.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Pauses {
    count: u64,
    total: Nanos,
    longest: Nanos,
}

impl Pauses {
    fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.total += other.total;
        self.longest = self.longest.max(other.longest);
    }

    /// In the form of the result schema; `None` if the thread never spun.
    pub(crate) fn usage(&self, spun: Nanos) -> Option<SpinPauses> {
        (spun > 0).then(|| SpinPauses {
            count: self.count,
            longest_us: self.longest as f64 / 1e3,
            total_us: self.total as f64 / 1e3,
            spun_s: spun as f64 / 1e9,
        })
    }
}

impl Spent {
    /// Adds the time of another thread.
    pub(crate) fn add(&mut self, other: &Self) {
        self.spun += other.spun;
        self.unbounded += other.unbounded;
        self.pauses.add(&other.pauses);
    }

    /// Time spent since an earlier reading, but with all pauses: see [`Pacer::forget_pauses`].
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        Self {
            spun: self.spun - earlier.spun,
            unbounded: self.unbounded - earlier.unbounded,
            pauses: self.pauses,
        }
    }
}

/// Decides how one thread waits.
pub(crate) struct Pacer<'a> {
    pacing: Pacing,
    /// Economical: how late a request may be sent on purpose, so that several go out in one wake.
    most_slack: Nanos,
    spare: &'a SpareCpu,
    /// Lateness of sleeps: usual (about the 20th percentile) and worst (about the 90th).
    usual_lateness: Nanos,
    worst_lateness: Nanos,
    /// CPU cost of a sleep that its timer ends.
    sleep_cost: Nanos,
    sleeps: u32,
    /// Mean interval between requests, and when the last one was due.
    gap: Nanos,
    last_due: Nanos,
    budget: Nanos,
    last_look: Nanos,
    spent: Spent,
}

impl<'a> Pacer<'a> {
    /// `tolerance`: how late requests may usually be with economical pacing.
    pub(crate) fn new(pacing: Pacing, tolerance: Nanos, spare: &'a SpareCpu) -> Self {
        Self {
            pacing,
            most_slack: tolerance.saturating_sub(LATENESS_ALLOWANCE),
            spare,
            usual_lateness: 0,
            worst_lateness: FIRST_LATENESS,
            sleep_cost: FIRST_COST,
            sleeps: 0,
            gap: SECOND,
            last_due: 0,
            budget: MAX_BUDGET,
            last_look: 0,
            spent: Spent::default(),
        }
    }

    pub(crate) fn spent(&self) -> Spent {
        self.spent
    }

    /// The window begins: earlier pauses are not reported.
    pub(crate) fn forget_pauses(&mut self) {
        self.spent.pauses = Pauses::default();
    }

    /// Records the time between two clock readings while spinning.
    pub(crate) fn looked_again_after(&mut self, gap: Nanos) {
        if gap > MIN_PAUSE {
            self.spent.pauses.add(&Pauses { count: 1, total: gap, longest: gap });
        }
    }

    /// CPU cost of a sleep, as measured on this thread.
    pub(crate) fn sleep_cost(&self) -> Nanos {
        self.sleep_cost
    }

    /// Records that a request due at `due` was sent.
    pub(crate) fn sent(&mut self, due: Nanos) {
        let gap = due.saturating_sub(self.last_due).min(SECOND);
        self.last_due = due;
        // Moving average over about the last eight.
        self.gap = self.gap - self.gap / 8 + gap / 8;
    }

    /// Decides what to do at `now`. `due` is the future time at which the next request can be sent; `limit`
    /// is when the caller wants to poll in any case. With responses awaited, reading them soon matters too.
    pub(crate) fn wait_for(&mut self, due: Option<Nanos>, limit: Nanos, awaited: bool, now: Nanos) -> Wait {
        let unbounded = self.pacing == Pacing::Auto && self.spare.is_there();
        let passed = now.saturating_sub(self.last_look);
        self.last_look = now;
        self.budget = (self.budget + passed / SPIN_SHARE).min(MAX_BUDGET);
        self.spent.unbounded += if unbounded { passed } else { 0 };
        let wait = match self.pacing {
            Pacing::Precise => Self::precise(due, limit, awaited, now),
            Pacing::Economical => due.map(|due| self.cheapest_wait(due + self.slack(), now)),
            Pacing::Auto => due.map(|due| self.by_budget(due, unbounded, now)),
        };
        match wait {
            Some(Wait::Spin(until)) => Wait::Spin(until.min(limit).min(now + MAX_SPIN)),
            Some(Wait::Sleep(until)) => Wait::Sleep(until.min(limit)),
            None => Wait::Sleep(limit),
        }
    }

    fn precise(due: Option<Nanos>, limit: Nanos, awaited: bool, now: Nanos) -> Option<Wait> {
        match due {
            Some(due) if !awaited && due.saturating_sub(now) > LONG_PAUSE => {
                Some(Wait::Sleep(due - END_OF_PAUSE))
            }
            None if !awaited => None,
            due => Some(Wait::Spin(due.unwrap_or(limit))),
        }
    }

    fn by_budget(&self, due: Nanos, unbounded: bool, now: Nanos) -> Wait {
        let margin = self.worst_lateness.clamp(MIN_SLEEP, MAX_MARGIN);
        if !unbounded && self.budget < margin {
            return self.cheapest_wait(due, now);
        }
        if due.saturating_sub(now) > margin { Wait::Sleep(due - margin) } else { Wait::Spin(due) }
    }

    /// Spins only if sleeping would cost as much.
    fn cheapest_wait(&self, due: Nanos, now: Nanos) -> Wait {
        let ahead = due.saturating_sub(now);
        if ahead > self.usual_lateness + MIN_SLEEP {
            Wait::Sleep(due - self.usual_lateness)
        } else if ahead <= self.sleep_cost.max(MIN_SLEEP) {
            Wait::Spin(due)
        } else {
            Wait::Sleep(now + MIN_SLEEP)
        }
    }

    /// How late a request may be on purpose: a whole number of gaps, so that the request that ends the wait
    /// is on time.
    fn slack(&self) -> Nanos {
        self.most_slack / self.gap.max(1_000) * self.gap
    }

    /// True if the CPU cost of the next sleep should be measured.
    pub(crate) fn measures_sleep(&mut self) -> bool {
        self.sleeps = (self.sleeps + 1) % MEASURED_SLEEPS;
        self.sleeps == 0
    }

    /// Records that a sleep whose timer was set to `intended` ended at `woken`. `cost`: its CPU time, if
    /// measured.
    pub(crate) fn slept(&mut self, intended: Nanos, woken: Nanos, cost: Option<Nanos>) {
        if woken < intended {
            // A signal, or the timer's tolerance.
            return;
        }
        let late = (woken - intended).min(MAX_MARGIN);
        // Asymmetric steps converge to the points where one in five sleeps is less late and one in ten is
        // later.
        self.usual_lateness = step(self.usual_lateness, late, 100, 400);
        self.worst_lateness = step(self.worst_lateness, late, 900, 100);
        if let Some(cost) = cost {
            self.sleep_cost = self.sleep_cost - self.sleep_cost / 8 + cost.min(MAX_MARGIN) / 8;
        }
    }

    /// Records time spent spinning in one go. Only the part beyond the cost of a sleep is charged to the
    /// budget.
    pub(crate) fn spun(&mut self, time: Nanos) {
        self.spent.spun += time;
        self.budget = self.budget.saturating_sub(time.saturating_sub(self.sleep_cost));
    }
}

fn step(estimate: Nanos, value: Nanos, up: Nanos, down: Nanos) -> Nanos {
    if value > estimate { estimate + up } else { estimate.saturating_sub(down) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No edge of the run is near.
    const FAR: Nanos = 1_000 * SECOND;
    const TOLERANCE: Nanos = 100_000;

    /// A machine on which sleeps have this lateness and cost, and every due request is sent when the thread
    /// wakes.
    struct Simulation<'a> {
        pacer: Pacer<'a>,
        now: Nanos,
        lateness: Nanos,
        cost: Nanos,
        slept: Nanos,
        waits: u32,
        lags: Vec<Nanos>,
    }

    impl<'a> Simulation<'a> {
        fn new(pacing: Pacing, spare: &'a SpareCpu) -> Self {
            Self::tolerating(TOLERANCE, pacing, spare)
        }

        fn tolerating(tolerance: Nanos, pacing: Pacing, spare: &'a SpareCpu) -> Self {
            let pacer = Pacer::new(pacing, tolerance, spare);
            Self { pacer, now: 0, lateness: 30_000, cost: 25_000, slept: 0, waits: 0, lags: Vec::new() }
        }

        /// Sends requests at even intervals until `end`; nothing is ever answered.
        fn run(&mut self, gap: Nanos, end: Nanos) -> &mut Self {
            let mut due = self.now + gap;
            while self.now < end {
                while due <= self.now {
                    self.lags.push(self.now - due);
                    self.pacer.sent(due);
                    due += gap;
                }
                match self.pacer.wait_for(Some(due), FAR, false, self.now) {
                    Wait::Sleep(until) => {
                        assert!(until > self.now);
                        self.slept += until - self.now;
                        self.waits += 1;
                        self.now = until + self.lateness;
                        self.pacer.slept(until, self.now, Some(self.cost));
                    }
                    Wait::Spin(until) => {
                        assert!(until > self.now);
                        self.pacer.spun(until - self.now);
                        self.now = until;
                    }
                }
            }
            self
        }

        fn spun_share(&self) -> f64 {
            self.pacer.spent().spun as f64 / self.now as f64
        }

        fn lag_p99(&mut self) -> Nanos {
            let settled = self.lags.len() / 10;
            let settled = &mut self.lags[settled..];
            settled.sort_unstable();
            settled[settled.len() * 99 / 100]
        }
    }

    #[test]
    fn sleeps_end_early_by_measured_lateness_and_rest_is_spun() {
        let spare = SpareCpu::default();
        for pacing in [Pacing::Auto, Pacing::Economical] {
            let mut simulation = Simulation::new(pacing, &spare);
            assert!(simulation.run(SECOND / 1000, 10 * SECOND).lag_p99() < 3_000, "{pacing:?}");
            assert!(simulation.slept > 9 * SECOND, "{pacing:?}");
        }
    }

    #[test]
    fn without_spare_cpu_spinning_stays_within_budget() {
        let spare = SpareCpu::default();
        let mut simulation = Simulation::new(Pacing::Auto, &spare);
        // An interval longer than the lateness of sleeps: each could be spun entirely.
        let share = simulation.run(60_000, 10 * SECOND).spun_share();
        let as_dear_as_sleeping = 25.0 / 60.0;
        assert!(share < as_dear_as_sleeping + 0.11, "{share}");
        // Intervals shorter than the cost of a sleep are spun: that takes less CPU.
        let mut dense = Simulation::new(Pacing::Auto, &spare);
        assert!(dense.run(20_000, 10 * SECOND).spun_share() > 0.9);
    }

    #[test]
    fn with_spare_cpu_last_stretch_is_spun_without_bound() {
        let spare = SpareCpu::default();
        spare.tell(true);
        let mut simulation = Simulation::new(Pacing::Auto, &spare);
        assert_eq!(simulation.run(60_000, 10 * SECOND).lag_p99(), 0);
        assert!(simulation.pacer.spent().unbounded > 9 * SECOND);
    }

    #[test]
    fn precise_pacing_sleeps_only_in_long_pauses_without_awaited_responses() {
        let spare = SpareCpu::default();
        let mut pacer = Pacer::new(Pacing::Precise, TOLERANCE, &spare);
        assert_eq!(pacer.wait_for(Some(4_000_000), FAR, false, 0), Wait::Spin(MAX_SPIN));
        assert_eq!(pacer.wait_for(Some(SECOND), FAR, true, 0), Wait::Spin(MAX_SPIN));
        assert_eq!(pacer.wait_for(Some(SECOND), FAR, false, 0), Wait::Sleep(SECOND - END_OF_PAUSE));
        assert_eq!(pacer.wait_for(None, FAR, true, 0), Wait::Spin(MAX_SPIN));
        assert_eq!(pacer.wait_for(None, FAR, false, 0), Wait::Sleep(FAR));
        assert_eq!(pacer.wait_for(Some(4_000), 1_000, false, 0), Wait::Spin(1_000));
    }

    #[test]
    fn spin_pauses_are_counted_from_window_start() {
        let spare = SpareCpu::default();
        let mut pacer = Pacer::new(Pacing::Precise, TOLERANCE, &spare);
        assert_eq!(pacer.spent().pauses.usage(0), None);
        pacer.looked_again_after(9_000_000);
        pacer.forget_pauses();
        [200, 300_000, 90_000, 1_200_000].into_iter().for_each(|gap| pacer.looked_again_after(gap));
        let pauses = pacer.spent().pauses.usage(SECOND).expect("it spun");
        assert_eq!((pauses.count, pauses.longest_us, pauses.total_us), (2, 1200.0, 1500.0));
    }

    #[test]
    fn economical_pacing_batches_requests_within_lag_tolerance() {
        let spare = SpareCpu::default();
        let mut simulation = Simulation::new(Pacing::Economical, &spare);
        let lag_p99 = simulation.run(20_000, 10 * SECOND).lag_p99();
        assert!((40_000..=100_000).contains(&lag_p99), "{lag_p99}");
        assert!(simulation.spun_share() < 0.4, "{}", simulation.spun_share());
        // Nothing is late on purpose if requests are further apart.
        let mut sparse = Simulation::new(Pacing::Economical, &spare);
        assert!(sparse.run(100_000, 10 * SECOND).lag_p99() < 3_000);
    }

    #[test]
    fn higher_lag_tolerance_lets_more_requests_share_a_sleep() {
        let spare = SpareCpu::default();
        let sleeps = |tolerance: Nanos| {
            let mut simulation = Simulation::tolerating(tolerance, Pacing::Economical, &spare);
            let lag_p99 = simulation.run(50_000, SECOND).lag_p99();
            assert!(lag_p99 <= tolerance, "{lag_p99} of {tolerance}");
            simulation.waits
        };
        // Requests come at 20 000/s: two, four and eight per sleep.
        let [few, more, most] = [100_000, 200_000, 400_000].map(sleeps);
        assert!((9_000..12_000).contains(&few), "{few}");
        assert!((4_500..6_000).contains(&more), "{more}");
        assert!((2_300..3_000).contains(&most), "{most}");
    }
}

//! Gateways of several sizes under hidden laws: throughput over clients, response times, noise, target and prices
//! are drawn at random.

use crate::generated_run::{normal, run_of};
use crate::generated_trial::{proxy, record, times};
use experiment::{Experiment, Plan, PlannedTrial};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use results::{Prices, Rates, SizeQuestion, TrialRecord, Verdict};
use statistics::size::MeasuredRun;

/// Shape of the throughput over clients. Each has its greatest value, or approaches it, at a number of clients.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Law {
    /// Far more clients carry a fraction of the greatest throughput.
    Falling,
    /// Universal Scalability Law: contention and coherency.
    Usl,
    /// More clients always carry a little more.
    Saturating,
    /// Like [`Law::Usl`], and a smaller replica carries more per core.
    SmallerCheaper,
}

pub const CORES: [f64; 3] = [0.5, 1.0, 2.0];
pub const CLIENTS: [usize; 9] = [5, 10, 20, 30, 50, 70, 100, 150, 200];
const KEY: &str = "gateway.cpu";
/// Memory of a replica, as [`proxy`] has it.
const MEMORY_GB: f64 = 0.05;
const HOURS_PER_MONTH: f64 = 730.0;
/// Share of the noise's deviation that all trials of a repeat have in common.
const OF_REPEATS: f64 = 0.3;
/// Deviation of the logarithm of a percentile within a trial.
const WITHIN: f64 = 0.03;

/// A world: its law, and the question that is asked in it.
#[derive(Clone, Debug)]
pub struct World {
    law: Law,
    /// Greatest throughput of one core, and the power of the cores with which it grows.
    peak_rps: f64,
    exponent: f64,
    /// Number of clients of the greatest throughput with one core.
    peak_clients: f64,
    /// Breadth of the peak.
    breadth: f64,
    /// The 99th percentile over the mean response time.
    tail: f64,
    /// True if the gateway uses all of its CPU at its greatest throughput.
    is_cpu_bound: bool,
    pub bound_ms: f64,
    noise: f64,
    pub repeats: usize,
    target_rps: f64,
    headroom: f64,
    per_replica_hour: f64,
}

/// The right number of replicas of a size, and what it costs per month.
#[derive(Clone, Copy, Debug)]
pub struct Truth {
    pub cores: f64,
    pub replicas: u64,
    pub monthly_cost: f64,
}

impl World {
    /// A world that a run can decide: its sweep has a load within 5 % of every capacity, and the cheapest size
    /// costs at least a fifth less than any other.
    pub fn new(law: Law, seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed.wrapping_mul(31).wrapping_add(law as u64));
        loop {
            let world = Self::drawn(law, &mut random);
            if world.is_within_sweep() && world.is_decidable() {
                return world;
            }
        }
    }

    fn drawn(law: Law, random: &mut StdRng) -> Self {
        let exponent = match law {
            Law::SmallerCheaper => random.random_range(0.6..0.85),
            _ => random.random_range(0.75..1.3),
        };
        let mut world = Self {
            law,
            peak_rps: random.random_range(2000.0..20_000.0),
            exponent,
            peak_clients: random.random_range(15.0..60.0),
            breadth: random.random_range(0.0..4.0),
            tail: random.random_range(1.5..4.0),
            is_cpu_bound: random.random_bool(0.5),
            bound_ms: 0.0,
            noise: random.random_range(0.03..0.1),
            repeats: random.random_range(2..=3),
            target_rps: 0.0,
            headroom: [0.0, 0.2, 0.3][random.random_range(0..3)],
            per_replica_hour: [0.0, 0.005][random.random_range(0..2)],
        };
        // In some worlds the objective binds, in others it is met by every number of clients.
        let bounding = world.peak_clients * random.random_range(1.2..6.0);
        world.bound_ms = (world.p99_us(1.0, bounding) / 1e3 * 10.0).ceil() / 10.0;
        let replicas = random.random_range(0.4..3.5);
        world.target_rps = (replicas * world.capacity(1.0) * (1.0 - world.headroom)).round();
        world
    }

    fn throughput(&self, cores: f64, clients: f64) -> f64 {
        let peak = self.peak_rps * cores.powf(self.exponent);
        let share = clients / (self.peak_clients * cores.sqrt());
        match self.law {
            Law::Falling => peak * (share * (1.0 - share).exp()).sqrt(),
            Law::Usl | Law::SmallerCheaper => {
                peak * (2.0 + self.breadth) * share / (1.0 + self.breadth * share + share * share)
            }
            Law::Saturating => peak * share / (0.3 + share),
        }
    }

    fn p99_us(&self, cores: f64, clients: f64) -> f64 {
        self.tail * clients / self.throughput(cores, clients) * 1e6
    }

    fn meets(&self, cores: f64, clients: usize) -> bool {
        self.p99_us(cores, clients as f64) <= self.bound_ms * 1e3
    }

    fn greatest(&self, cores: f64, clients: impl Iterator<Item = usize>) -> f64 {
        let met = clients.filter(|clients| self.meets(cores, *clients));
        met.map(|clients| self.throughput(cores, clients as f64)).fold(0.0, f64::max)
    }

    /// The true capacity: the greatest throughput of any number of clients that meets the objective.
    pub fn capacity(&self, cores: f64) -> f64 {
        self.greatest(cores, 1..=1000)
    }

    fn is_within_sweep(&self) -> bool {
        CORES.iter().all(|cores| {
            self.greatest(*cores, CLIENTS.into_iter()) >= 0.95 * self.capacity(*cores)
                && self.meets(*cores, CLIENTS[1])
        })
    }

    fn is_decidable(&self) -> bool {
        let mut costs = CORES.map(|cores| self.truth(cores).monthly_cost);
        costs.sort_by(f64::total_cmp);
        costs[1] >= 1.25 * costs[0]
    }

    pub fn truth(&self, cores: f64) -> Truth {
        let replicas = (self.target_rps / (self.capacity(cores) * (1.0 - self.headroom))).ceil();
        let prices = self.prices();
        let per_hour = cores * prices.cpu_hour + MEMORY_GB * prices.gb_hour + prices.per_replica_hour;
        Truth { cores, replicas: replicas as u64, monthly_cost: replicas * per_hour * HOURS_PER_MONTH }
    }

    /// The cheapest size.
    pub fn cheapest(&self) -> Truth {
        let truths = CORES.map(|cores| self.truth(cores)).into_iter();
        truths.min_by(|one, other| one.monthly_cost.total_cmp(&other.monthly_cost)).expect("sizes")
    }

    fn prices(&self) -> Prices {
        Prices {
            cpu_hour: 0.04,
            gb_hour: 0.005,
            per_replica_hour: self.per_replica_hour,
            currency: "USD".to_owned(),
        }
    }

    pub fn question(&self) -> SizeQuestion {
        SizeQuestion {
            target_rps: self.target_rps,
            headroom: self.headroom,
            prices: Some(self.prices()),
            ..SizeQuestion::default()
        }
    }

    pub fn run(&self, seed: u64) -> MeasuredRun {
        let mut random = StdRng::seed_from_u64(seed);
        let text = format!(
            "{{name: t, mesh: envoy, modes: gateway, load: {{clients: {CLIENTS:?}, duration: 10s}}, repeats: {}, \
             gateway: {{cpu: [500m, 1, 2]}}}}",
            self.repeats
        );
        let experiment = Experiment::parse(&text, "test").expect("a good experiment");
        let repeats: Vec<f64> =
            (0..self.repeats).map(|_| OF_REPEATS * self.noise * normal(&mut random)).collect();
        let plan = Plan::new(&experiment, seed);
        let trials =
            plan.trials.iter().map(|planned| self.trial(planned, repeats[planned.repeat], &mut random));
        let trials = trials.collect();
        run_of(&experiment, trials)
    }

    fn trial(&self, planned: &PlannedTrial, repeat: f64, random: &mut StdRng) -> TrialRecord {
        let cores = planned.factors[KEY].quantity(KEY).expect("a CPU limit");
        let clients = planned.load.clients.expect("a closed loop") as f64;
        let own = (1.0 - OF_REPEATS * OF_REPEATS).sqrt() * self.noise * normal(random);
        let rate = self.throughput(cores, clients) * (repeat + own).exp();
        let p99 = self.tail * clients / rate * 1e6 * (WITHIN * normal(random)).exp();
        let most = if self.is_cpu_bound { 1.0 } else { 0.5 };
        let used = cores * most * (rate / (self.peak_rps * cores.powf(self.exponent))).min(1.0);
        let rates = Rates { offered: None, sent: rate, completed: rate };
        let times = times([p99 / 3.0, p99 / 1.5, p99], rate * 10.0);
        record(planned, &Verdict::usable(), times, rates, vec![proxy("gateway", used)])
    }
}

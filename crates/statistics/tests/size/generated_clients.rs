//! A closed loop over clients: throughput approaches a capacity, and each additional client waits longer.

use crate::generated::{proxy, record, times};
use crate::generated_run::{normal, run_of};
use experiment::{Experiment, Plan, PlannedTrial};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use results::{ComponentUsage, Mode, Rates, TrialRecord, Verdict};
use statistics::size::MeasuredRun;

#[derive(Clone, Debug)]
pub struct Clients {
    pub mode: Mode,
    pub component: &'static str,
    pub clients: &'static [usize],
    pub repeats: usize,
    /// Standard deviation of the logarithm between trials.
    pub between: f64,
}

impl Default for Clients {
    fn default() -> Self {
        Self {
            mode: Mode::AmbientWaypoint,
            component: "waypoint",
            clients: &[2, 5, 10, 20, 50, 100],
            repeats: 5,
            between: 0.05,
        }
    }
}

/// Requests/s that the proxy approaches, and the number of clients at which it carries half of them.
const NEARS: f64 = 6000.0;
const HALF: f64 = 12.0;

impl Clients {
    fn throughput(clients: f64) -> f64 {
        NEARS * clients / (clients + HALF)
    }

    /// The p99 at a number of clients: twice the mean.
    fn p99_us(clients: f64) -> f64 {
        2e6 * clients / Self::throughput(clients)
    }

    /// The true capacity: throughput at the number of clients at which the p99 reaches the bound.
    pub fn capacity(bound_us: f64) -> f64 {
        Self::throughput(NEARS * bound_us / 2e6 - HALF)
    }

    /// Maximum measured throughput.
    pub fn greatest(&self) -> f64 {
        Self::throughput(*self.clients.iter().max().expect("clients") as f64)
    }

    pub fn cores(rate: f64) -> f64 {
        0.05 + rate / 1000.0 * 0.25
    }

    pub fn run(&self, seed: u64) -> MeasuredRun {
        let mut random = StdRng::seed_from_u64(seed);
        let clients: Vec<String> = self.clients.iter().map(ToString::to_string).collect();
        let text = format!(
            "{{name: t, mesh: istio, modes: [none, {}], load: {{clients: [{}], duration: 10s}}, repeats: {}}}",
            self.mode,
            clients.join(", "),
            self.repeats
        );
        let experiment = Experiment::parse(&text, "test").expect("a good experiment");
        let plan = Plan::new(&experiment, seed);
        let trials = plan.trials.iter().map(|planned| self.trial(planned, &mut random)).collect();
        run_of(&experiment, trials)
    }

    fn trial(&self, planned: &PlannedTrial, random: &mut StdRng) -> TrialRecord {
        let clients = planned.load.clients.expect("a closed loop") as f64;
        let mut noise = || (self.between * normal(random) - self.between * self.between / 2.0).exp();
        let slower = noise();
        let rate = Self::throughput(clients) / slower;
        let p99 = Self::p99_us(clients) * slower;
        let proxies = if planned.mode() == Mode::None {
            Vec::new()
        } else {
            vec![ComponentUsage {
                memory_working_set_bytes: Some((50e6 * noise()) as u64),
                ..proxy(self.component, Self::cores(rate) * noise())
            }]
        };
        let rates = Rates { offered: None, sent: rate, completed: rate };
        record(planned, &Verdict::usable(), times([p99 / 3.0, p99 / 1.5, p99], rate * 10.0), rates, proxies)
    }
}

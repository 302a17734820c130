//! Simulated runs of known laws with noise within and between trials.

use crate::generated_run::normal;
pub use crate::generated_run::run_of;
pub use crate::generated_trial::{proxy, record, times};
use experiment::{Experiment, Plan, PlannedTrial};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use results::{ComponentUsage, Figure, Figures, Mode, Rates, Throttling, TrialRecord, Verdict};
use statistics::size::MeasuredRun;

/// Throughput by the Universal Scalability Law as a function of CPU limits.
#[derive(Clone, Debug)]
pub struct ClosedLoop {
    pub mode: Mode,
    pub key: &'static str,
    pub limits: &'static [&'static str],
    pub repeats: usize,
    /// Standard deviation of the logarithm between trials, and of the effect that all trials of a repeat
    /// share.
    pub between: f64,
    pub repeat: f64,
    /// Trials report that the limit throttled the proxy, as those of a real run may.
    pub throttled: bool,
    /// A reason added to every verdict.
    pub spoiled: Option<&'static str>,
}

impl Default for ClosedLoop {
    fn default() -> Self {
        Self {
            mode: Mode::Gateway,
            key: "gateway.cpu",
            limits: &["1", "2", "4", "8"],
            repeats: 5,
            between: 0.05,
            repeat: 0.02,
            throttled: true,
            spoiled: None,
        }
    }
}

impl ClosedLoop {
    pub fn throughput(&self, cores: f64) -> f64 {
        4000.0 * cores / (1.0 + 0.05 * (cores - 1.0) + 0.002 * cores * (cores - 1.0))
    }

    pub fn experiment(&self) -> Experiment {
        let (section, key) = self.key.split_once('.').expect("a dotted key");
        let text = format!(
            "{{name: t, mesh: envoy, modes: [none, {}], load: {{clients: 50, duration: 10s}}, repeats: {}, {section}: {{{key}: [{}]}}}}",
            self.mode,
            self.repeats,
            self.limits.join(", ")
        );
        Experiment::parse(&text, "test").expect("a good experiment")
    }

    pub fn run(&self, seed: u64) -> MeasuredRun {
        let mut random = StdRng::seed_from_u64(seed);
        let experiment = self.experiment();
        let repeats: Vec<f64> = (0..self.repeats).map(|_| self.repeat * normal(&mut random)).collect();
        let plan = Plan::new(&experiment, seed);
        let trials = plan.trials.iter().map(|planned| {
            let cores = planned.factors.get(self.key).and_then(|value| value.quantity(self.key));
            let cores = cores.unwrap_or_else(|| experiment.gateway.cpu_limit_cores.unwrap_or(2.0));
            let deviation = self.between * normal(&mut random) - self.between * self.between / 2.0;
            let rate = self.throughput(cores) * (repeats[planned.repeat] + deviation).exp();
            self.trial(planned, rate, cores)
        });
        let trials = trials.collect();
        run_of(&experiment, trials)
    }

    fn trial(&self, planned: &PlannedTrial, rate: f64, cores: f64) -> TrialRecord {
        let us = 50.0 / rate * 1e6;
        let times = times([us, us * 1.5, us * 2.0], rate * 10.0);
        let names: &[&str] = match planned.mode() {
            Mode::Gateway => &["gateway"],
            Mode::Sidecar => &["client-proxy"],
            _ => &[],
        };
        let mut verdict = Verdict::usable();
        let proxies: Vec<ComponentUsage> = names
            .iter()
            .map(|name| ComponentUsage {
                throttling: Some(Throttling { periods: 90, time_s: 1.0, ..Throttling::default() }),
                ..proxy(name, cores * 0.98)
            })
            .collect();
        if self.throttled && !proxies.is_empty() {
            let reason = format!("throttled: {}, in 90 periods for 1000 ms by its CPU limit", names[0]);
            verdict.spoil(reason, Figures::times().with(Figure::Throughput));
        }
        if let Some(reason) = self.spoiled {
            verdict.spoil(reason, Figures::times().with(Figure::Throughput));
        }
        record(planned, &verdict, times, Rates { offered: None, sent: rate, completed: rate }, proxies)
    }
}

/// Response times that rise towards a capacity, in both sidecars.
#[derive(Clone, Debug)]
pub struct OpenLoop {
    pub rates: &'static [f64],
    pub repeats: usize,
    pub between: f64,
    pub repeat: f64,
    /// Standard deviation of a percentile within a trial.
    pub within: f64,
    /// The generator, not the proxies, does not keep up.
    pub generator_full: bool,
}

impl Default for OpenLoop {
    fn default() -> Self {
        Self {
            rates: &[1000.0, 2000.0, 4000.0, 5000.0, 6000.0, 8000.0],
            repeats: 5,
            between: 0.1,
            repeat: 0.03,
            within: 0.03,
            generator_full: false,
        }
    }
}

/// Maximum rate that the sidecars carry, in requests per second.
const SATURATES: f64 = 7000.0;

impl OpenLoop {
    /// Percentiles at a rate, in microseconds: a queue in front of a server.
    fn percentiles_us(rate: f64) -> [f64; 3] {
        let waiting = 1.0 / (1.0 - rate / SATURATES);
        [500.0 * waiting, 1200.0 * waiting, 3000.0 * waiting]
    }

    pub fn cores(rate: f64) -> f64 {
        0.1 + rate / 1000.0 * 0.2
    }

    /// The true capacity: the rate at which the objective's bound is reached.
    pub fn capacity(&self, objective: &str) -> f64 {
        let at = |first_us: f64, bound_us: f64| SATURATES * (1.0 - first_us / bound_us);
        match objective.split(',').next().expect("a part") {
            "" => SATURATES,
            "p99=20ms" => at(3000.0, 20_000.0),
            "p99=8ms" => at(3000.0, 8000.0),
            "p50=3ms" => at(500.0, 3000.0),
            other => panic!("no truth for {other}"),
        }
    }

    pub fn experiment(&self) -> Experiment {
        let rates: Vec<String> = self.rates.iter().map(ToString::to_string).collect();
        let text = format!(
            "{{name: t, mesh: istio, modes: [none, sidecar], load: {{rate: [{}], duration: 10s}}, repeats: {}}}",
            rates.join(", "),
            self.repeats
        );
        Experiment::parse(&text, "test").expect("a good experiment")
    }

    pub fn run(&self, seed: u64) -> MeasuredRun {
        let mut random = StdRng::seed_from_u64(seed);
        let experiment = self.experiment();
        let repeats: Vec<f64> = (0..self.repeats).map(|_| self.repeat * normal(&mut random)).collect();
        let plan = Plan::new(&experiment, seed);
        let trials = plan.trials.iter().map(|planned| {
            let noise = repeats[planned.repeat] + self.between * normal(&mut random);
            self.trial(planned, noise - self.between * self.between / 2.0, &mut random)
        });
        let trials = trials.collect();
        run_of(&experiment, trials)
    }

    fn trial(&self, planned: &PlannedTrial, noise: f64, random: &mut StdRng) -> TrialRecord {
        let rate = planned.load.rate.expect("an open loop");
        let proxies = if planned.mode() == Mode::None {
            Vec::new()
        } else {
            ["client-proxy", "server-proxy"]
                .map(|name| proxy(name, Self::cores(rate.min(SATURATES))))
                .to_vec()
        };
        let mut verdict = Verdict::usable();
        let saturated = planned.mode() != Mode::None && rate > SATURATES;
        let completed = if saturated { SATURATES * (noise / 10.0).exp() } else { rate };
        if saturated {
            let who = match self.generator_full {
                true => "the generator's CPU was full (more --threads on free cores may send more)",
                false => "the target did not keep up on these connections",
            };
            let reason =
                format!("saturated: {completed:.0}/s completed of {rate:.0}/s offered; 9 never sent; {who}");
            verdict.spoil(reason, Figures::times());
            verdict.saturated = true;
        }
        let at = Self::percentiles_us(if saturated { SATURATES * 0.99 } else { rate });
        let times = times(at.map(|us| us * (noise + self.within * normal(random)).exp()), completed * 10.0);
        record(planned, &verdict, times, Rates { offered: Some(rate), sent: completed, completed }, proxies)
    }
}

//! Draws whole studies whose truth is known, as the trial records that a run folder holds.
//!
//! Percentiles are drawn as order statistics of a log-normal distribution, so that a trial costs no thousands of requests.

use experiment::schema::{
    ComponentUsage, Figure, Figures, HistogramSummary, LoadResult, PathProof, Rates, RequestCounts, Role,
    TRIAL_SCHEMA, TrialOutcome, TrialRecord, Verdict,
};
use experiment::{Experiment, Mode, Plan, PlannedTrial};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use std::collections::BTreeMap;

/// What a study is like.
#[derive(Clone, Debug)]
pub struct Design {
    pub modes: &'static str,
    pub rates: &'static str,
    pub repeats: usize,
    /// What each further mode adds to the one before, as a fraction.
    pub effect: f64,
    /// Standard deviation of the logarithm between trials, and how much more each further mode has.
    pub between: f64,
    pub more_by_mode: f64,
    /// Of what all trials of a repeat have in common, and what the machine loses evenly over the run.
    pub repeat: f64,
    pub drift: f64,
    /// Share of trials with a stall, which lifts the tail.
    pub stalls: f64,
    /// Share of trials that are lost, whose generator was late at p99, and whose slowest requests had no response.
    pub missing: f64,
    pub late: f64,
    pub censored: f64,
    /// Share of trials that are saturated.
    pub saturated: f64,
}

impl Default for Design {
    fn default() -> Self {
        Self {
            modes: "none, sidecar, ambient",
            rates: "500, 1000",
            repeats: 5,
            effect: 0.2,
            between: 0.05,
            more_by_mode: 1.0,
            repeat: 0.0,
            drift: 0.0,
            stalls: 0.0,
            missing: 0.0,
            late: 0.0,
            censored: 0.0,
            saturated: 0.0,
        }
    }
}

/// Requests of a trial.
const REQUESTS: f64 = 5000.0;
/// Standard deviation of the logarithm of response times within a trial.
const WITHIN: f64 = 0.3;
const STALL_LIFTS_P99: f64 = 1.5;
const QUANTILES: [(f64, f64); 3] = [(0.5, 0.0), (0.9, 1.281_552), (0.99, 2.326_348)];

impl Design {
    pub fn experiment(&self) -> Experiment {
        let text = format!(
            "{{name: t, mesh: istio, modes: [{}], load: {{rate: [{}], duration: 10s}}, repeats: {}, objective: {{p99: 20ms}}}}",
            self.modes, self.rates, self.repeats
        );
        Experiment::parse(&text, "test").expect("a good experiment")
    }

    /// The true p50, p90 and p99 of a mode at a rate, microseconds: means over trials.
    pub fn truth(&self, mode: usize, rate: f64) -> [f64; 3] {
        let median = 100.0 * (1.0 + rate / 5000.0) * (1.0 + self.effect).powi(mode as i32);
        let lifted = 1.0 + self.stalls * (STALL_LIFTS_P99 - 1.0);
        let at = |index: usize| median * (WITHIN * QUANTILES[index].1).exp();
        [at(0), at(1), at(2) * lifted]
    }

    /// The trials of a study.
    pub fn study(&self, seed: u64) -> (Experiment, Vec<TrialRecord>) {
        let mut random = StdRng::seed_from_u64(seed);
        let experiment = self.experiment();
        let plan = Plan::new(&experiment, seed);
        let repeats: Vec<f64> = (0..self.repeats).map(|_| self.repeat * normal(&mut random)).collect();
        let count = plan.trials.len() as f64;
        let trials = plan.trials.iter().filter_map(|planned| {
            let place = planned.index as f64 / count - 0.5;
            let common = repeats[planned.repeat] + (1.0 + self.drift * place).ln();
            let record = self.trial(&mut random, &experiment.modes, planned, common);
            (random.random::<f64>() >= self.missing).then_some(record)
        });
        let trials = trials.collect();
        (experiment, trials)
    }

    fn trial(&self, random: &mut StdRng, modes: &[Mode], planned: &PlannedTrial, common: f64) -> TrialRecord {
        let mode = modes.iter().position(|mode| *mode == planned.mode).expect("a mode of the experiment");
        let rate = planned.load.rate.expect("an open loop");
        let deviation = self.between * (1.0 + self.more_by_mode * mode as f64);
        let noise = common + deviation * normal(random) - deviation * deviation / 2.0;
        let median = self.truth(mode, rate)[0] * noise.exp();
        let stall = if random.random::<f64>() < self.stalls { STALL_LIFTS_P99 } else { 1.0 };
        let [p50, p90, p99] = QUANTILES.map(|(quantile, z)| {
            // Of an order statistic: the density at its place.
            let density = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
            let place = (quantile * (1.0 - quantile) / REQUESTS).sqrt() / density;
            median * (WITHIN * (z + place * normal(random))).exp()
        });
        let mut verdict = Verdict::usable();
        if random.random::<f64>() < self.late {
            verdict.spoil("schedule-lag: late at p99", Figures::times_from(Figure::P99));
        }
        if random.random::<f64>() < self.saturated {
            verdict.spoil("saturated: not kept up", Figures::all());
            verdict.saturated = true;
        }
        let censored = random.random::<f64>() < self.censored;
        let times = HistogramSummary {
            count: REQUESTS as u64,
            censored: if censored { 60 } else { 0 },
            p50: Some(p50),
            p90: Some(p90),
            p99: (!censored).then_some(p99 * stall),
            ..HistogramSummary::default()
        };
        let cores = if mode == 0 { 0.0 } else { 0.1 * (1.0 + self.effect).powi(mode as i32) };
        record(planned, verdict, times, rate, cores * (deviation * normal(random)).exp())
    }
}

fn record(
    planned: &PlannedTrial,
    verdict: Verdict,
    times: HistogramSummary,
    rate: f64,
    proxy_cores: f64,
) -> TrialRecord {
    let failed = times.censored;
    let result = LoadResult {
        duration_s: 10.0,
        rate: Rates { offered: Some(rate), sent: rate, completed: rate },
        requests: RequestCounts {
            scheduled: REQUESTS as u64,
            sent: REQUESTS as u64,
            failed,
            ..Default::default()
        },
        response_time_us: times,
        verdict: Verdict::usable(),
        ..LoadResult::default()
    };
    let proxy =
        ComponentUsage { cpu_user_s: 10.0 * proxy_cores, ..ComponentUsage::of("proxy", Role::Proxy, 10.0) };
    TrialRecord {
        schema: TRIAL_SCHEMA.to_owned(),
        index: planned.index,
        repeat: planned.repeat,
        mode: planned.mode,
        factors: planned.factors.clone(),
        load: planned.load.clone(),
        started_at: String::new(),
        deployment: None,
        outcome: TrialOutcome::Finished,
        verdict,
        result: Some(result),
        drivers: Vec::new(),
        services: Vec::new(),
        edges: Vec::new(),
        gateways: Vec::new(),
        rates: None,
        components: vec![proxy],
        path: PathProof { proven: true, ..PathProof::default() },
        machine: None,
        log_tails: BTreeMap::new(),
        hints: Vec::new(),
        push: None,
        retake: None,
    }
}

fn normal(random: &mut StdRng) -> f64 {
    let radius = (-2.0 * (1.0 - random.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.random::<f64>()).cos()
}

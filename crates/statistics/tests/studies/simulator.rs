//! Simulates whole studies with known truth, as the trial records that a run directory holds.
//!
//! Percentiles are drawn as order statistics of a log-normal distribution, so that a trial does not need
//! thousands of requests.

use experiment::{Experiment, Plan, PlannedTrial};
use noise::normal::normal;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use results::{
    ComponentUsage, ComponentVersion, ConfigurationPush, DriverRecord, FactorValue, Factors, Figure, Figures,
    HistogramSummary, LoadPoint, LoadResult, PathProof, ProxyConfiguration, ProxyFootprint, Rates,
    RequestCounts, Role, TRIAL_SCHEMA, TrialOutcome, TrialRecord, Verdict,
};
use std::collections::BTreeMap;

/// Parameters of a simulated study.
#[derive(Clone, Debug)]
pub struct Design {
    pub modes: &'static str,
    /// The `load` section of the experiment: rates or clients, and factors.
    pub load: &'static str,
    pub repeats: usize,
    /// Increase from one mode to the next, as a fraction.
    pub effect: f64,
    /// Increase per connection, as a fraction of the time without connections; connections are a factor. And their exponent:
    /// with another than 1 the time is a curve over connections.
    pub per_connection: f64,
    pub exponent: f64,
    /// Standard deviation of the logarithm between trials, and its increase per further mode.
    pub between: f64,
    pub more_by_mode: f64,
    /// Multiplier of the deviation for the last mode, for the last of the `words` in that mode, and for
    /// trials under the greatest load.
    pub last_mode: f64,
    pub last_word: f64,
    pub greatest_load: f64,
    pub shape: Shape,
    /// Standard deviation of the effect that all trials of a mode within a repeat share: one bring-up differs
    /// from the next.
    pub mode_repeat: f64,
    /// Standard deviation of the effect that all trials of a repeat share, and the machine's even drift over
    /// the run.
    pub repeat: f64,
    pub drift: f64,
    /// Fraction of trials with a stall, which raises the tail.
    pub stalls: f64,
    /// Fractions of trials that are lost, whose generator was late at p99, and whose slowest requests had no
    /// response.
    pub missing: f64,
    pub late: f64,
    pub censored: f64,
    /// Fractions of trials that are saturated, and with errors.
    pub saturated: f64,
    pub erroring: f64,
    /// Values of a factor, no factor if empty; and the increase from one value to the next in the modes that it touches, as a
    /// fraction.
    pub words: &'static str,
    pub effect_of_word: f64,
    /// A factor of two values without effect.
    pub another_factor: bool,
    /// Both are factors of the load, which touch every mode, and not of the proxies.
    pub of_load: bool,
    /// Extra cost of the second of two versions; without it, versions are not a factor.
    pub upgrade: Option<Upgrade>,
    /// Further sections of the experiment, whose factors have no effect.
    pub more: &'static str,
}

/// Distribution of the noise between trials, each of the same deviation.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    Normal,
    /// Student's t with three degrees of freedom.
    HeavyTails,
    /// Exponential: most trials a little below the mean, some far above it.
    Skewed,
}

/// Extra cost of a version relative to the one before, each as a fraction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Upgrade {
    pub cpu: f64,
    pub memory: f64,
    pub configuration: f64,
    /// Both versions are the same program.
    pub is_same_program: bool,
}

/// The factor of versions and its values.
const VERSIONS: &str = "components.istio";
pub const BEFORE: &str = "1.29.4";
pub const AFTER: &str = "1.30.1";

/// Factors with non-numeric values: of the proxies, and of the load.
const OF_PROXIES: [&str; 2] = ["access-log", "mtls: [true, false]"];
const OF_LOAD: [&str; 2] = ["protocol", "arrival: [uniform, poisson]"];

impl Default for Design {
    fn default() -> Self {
        Self {
            modes: "none, sidecar, ambient",
            load: "rate: [500, 1000]",
            repeats: 5,
            effect: 0.2,
            per_connection: 0.0,
            exponent: 1.0,
            between: 0.05,
            more_by_mode: 1.0,
            last_mode: 1.0,
            last_word: 1.0,
            greatest_load: 1.0,
            shape: Shape::Normal,
            mode_repeat: 0.0,
            repeat: 0.0,
            drift: 0.0,
            stalls: 0.0,
            missing: 0.0,
            late: 0.0,
            censored: 0.0,
            saturated: 0.0,
            erroring: 0.0,
            words: "",
            effect_of_word: 0.0,
            another_factor: false,
            of_load: false,
            upgrade: None,
            more: "",
        }
    }
}

/// Requests of a trial.
const REQUESTS: f64 = 5000.0;
/// Standard deviation of the logarithm of response times within a trial.
const WITHIN_TRIAL_DEVIATION: f64 = 0.3;
const STALL_LIFTS_P99: f64 = 1.5;
const QUANTILES: [(f64, f64); 3] = [(0.5, 0.0), (0.9, 1.281_552), (0.99, 2.326_348)];

impl Design {
    pub fn experiment(&self) -> Experiment {
        let factors = self.factors();
        let (of_load, of_proxies) = match self.of_load {
            true => (format!(", {factors}"), String::new()),
            false => (String::new(), format!(", proxy: {{{factors}}}")),
        };
        let [of_load, of_proxies] =
            [of_load, of_proxies].map(|part| if factors.is_empty() { String::new() } else { part });
        let text = format!(
            "{{name: t, mesh: istio, modes: [{}], load: {{{}{of_load}, duration: 10s}}, repeats: {}, objective: {{p99: 20ms}}\
             {of_proxies}{}{}}}",
            self.modes,
            self.load,
            self.repeats,
            self.components(),
            self.more
        );
        Experiment::parse(&text, "test").expect("a good experiment")
    }

    fn factors(&self) -> String {
        let [words, another] = if self.of_load { OF_LOAD } else { OF_PROXIES };
        match (self.words, self.another_factor) {
            ("", _) => String::new(),
            (values, false) => format!("{words}: [{values}]"),
            (values, true) => format!("{words}: [{values}], {another}"),
        }
    }

    /// Value of the factor with `words` in a trial or a difference.
    pub fn word<'a>(&self, factors: &'a Factors) -> Option<&'a FactorValue> {
        factors.get(if self.of_load { "load.protocol" } else { "proxy.access-log" })
    }

    fn components(&self) -> String {
        let versions = format!(", components: {{istio: [{BEFORE}, {AFTER}]}}");
        self.upgrade.map_or_else(String::new, |_| versions)
    }

    /// True factor by which a value multiplies all times.
    pub fn of_word(&self, value: &FactorValue) -> f64 {
        let position = self.words.split(", ").position(|word| word == value.to_string());
        (1.0 + self.effect_of_word).powi(position.expect("a value of the experiment") as i32)
    }

    /// The true median of a mode in microseconds: its mean over trials.
    fn median(&self, mode: usize, load: &LoadPoint) -> f64 {
        100.0 * (1.0 + level(load) / 5000.0) * (1.0 + self.effect).powi(mode as i32)
            + self.by_connections(mode, load.connections as f64)
    }

    /// What connections add to the true median of a mode, in microseconds.
    pub fn by_connections(&self, mode: usize, connections: f64) -> f64 {
        100.0 * self.per_connection * connections.powf(self.exponent) * (1.0 + self.effect).powi(mode as i32)
    }

    /// The true p50, p90 and p99.
    pub fn truth(&self, mode: usize, load: &LoadPoint) -> [f64; 3] {
        let lifted = 1.0 + self.stalls * (STALL_LIFTS_P99 - 1.0);
        let at = |index: usize| self.median(mode, load) * (WITHIN_TRIAL_DEVIATION * QUANTILES[index].1).exp();
        [at(0), at(1), at(2) * lifted]
    }

    /// The true relative change of a closed loop's throughput from mode `than` to `mode`.
    pub fn throughput_change(&self, mode: usize, than: usize) -> f64 {
        (1.0 + self.effect).powi(than as i32 - mode as i32) - 1.0
    }

    /// True increase of the median per connection, in microseconds: the slope of the line through these numbers of connections.
    pub fn slope(&self, mode: usize, connections: &[f64]) -> f64 {
        let center = connections.iter().sum::<f64>() / connections.len() as f64;
        let squares: f64 = connections.iter().map(|one| (one - center).powi(2)).sum();
        let products = connections.iter().map(|one| (one - center) * self.by_connections(mode, *one));
        products.sum::<f64>() / squares
    }

    /// The trials of a study.
    pub fn study(&self, seed: u64) -> (Experiment, Vec<TrialRecord>) {
        let mut random = StdRng::seed_from_u64(seed);
        let experiment = self.experiment();
        let plan = Plan::new(&experiment, seed);
        let repeats: Vec<f64> = (0..self.repeats).map(|_| self.repeat * normal(&mut random)).collect();
        let bring_ups: Vec<f64> = (0..self.repeats * experiment.modes.len())
            .map(|_| self.mode_repeat * normal(&mut random) - self.mode_repeat.powi(2) / 2.0)
            .collect();
        let count = plan.trials.len() as f64;
        let greatest = plan.trials.iter().map(|planned| level(&planned.load)).fold(0.0, f64::max);
        let trials = plan.trials.iter().filter_map(|planned| {
            let mode =
                experiment.modes.iter().position(|mode| *mode == planned.mode()).expect("a known mode");
            let place = planned.index as f64 / count - 0.5;
            let bring_up = bring_ups[mode * self.repeats + planned.repeat];
            let common = repeats[planned.repeat] + bring_up + (1.0 + self.drift * place).ln();
            let mut deviation = self.between * (1.0 + self.more_by_mode * mode as f64);
            if mode + 1 == experiment.modes.len() {
                deviation *= self.last_mode;
                let word = self.word(&planned.factors).map(FactorValue::to_string);
                if word.is_some() && word.as_deref() == self.words.split(", ").last() {
                    deviation *= self.last_word;
                }
            }
            if level(&planned.load) == greatest {
                deviation *= self.greatest_load;
            }
            let record = self.trial(&mut random, mode, planned, common, deviation);
            (random.random::<f64>() >= self.missing).then_some(record)
        });
        let trials = trials.collect();
        (experiment, trials)
    }

    fn trial(
        &self,
        random: &mut StdRng,
        mode: usize,
        planned: &PlannedTrial,
        common: f64,
        deviation: f64,
    ) -> TrialRecord {
        let noise = common + self.shape.noise(deviation, random);
        let of_word = self.word(&planned.factors).map_or(1.0, |value| self.of_word(value));
        let true_median = self.median(mode, &planned.load) * of_word;
        let median = true_median * noise.exp();
        let stall = if random.random::<f64>() < self.stalls { STALL_LIFTS_P99 } else { 1.0 };
        let [p50, p90, p99] = QUANTILES.map(|(quantile, z)| {
            // Standard error of an order statistic, from the density at its quantile.
            let density = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
            let place = (quantile * (1.0 - quantile) / REQUESTS).sqrt() / density;
            median * (WITHIN_TRIAL_DEVIATION * (z + place * normal(random))).exp()
        });
        let mut verdict = Verdict::usable();
        if random.random::<f64>() < self.late {
            verdict.spoil("schedule-lag: late at p99", Figures::times_from(Figure::P99));
        }
        if random.random::<f64>() < self.saturated {
            verdict.spoil("saturated: not kept up", Figures::all());
            verdict.saturated = true;
        }
        if random.random::<f64>() < self.erroring {
            verdict.spoil("errors: 5 % of requests", Figures::all());
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
        let has_proxies = mode > 0 || self.upgrade.is_some();
        let cores = if !has_proxies { 0.0 } else { 0.1 * (1.0 + self.effect).powi(mode as i32) };
        let in_closed_loop = |clients: usize| clients as f64 * 1e6 / (true_median * noise.exp());
        let rate = planned.load.rate.unwrap_or_else(|| in_closed_loop(planned.load.clients.expect("a load")));
        let proxy_cores = cores * rate / 1000.0 * (common + deviation * normal(random)).exp();
        let mut record = record(planned, verdict, times, rate, proxy_cores);
        if let Some(upgrade) = self.upgrade {
            upgrade.apply(planned, random, deviation, &mut record);
        }
        record
    }
}

impl Shape {
    /// Logarithm of what a trial is multiplied by; the mean of the factor is 1 (nearly, with heavy tails).
    fn noise(self, deviation: f64, random: &mut StdRng) -> f64 {
        match self {
            Self::Normal => deviation * normal(random) - deviation * deviation / 2.0,
            Self::HeavyTails => deviation * heavy(random) - deviation * deviation / 2.0,
            Self::Skewed => (-deviation).ln_1p() - deviation * (1.0 - random.random::<f64>()).ln(),
        }
    }
}

impl Upgrade {
    /// Applies the version's extra cost to the record.
    fn apply(self, planned: &PlannedTrial, random: &mut StdRng, deviation: f64, record: &mut TrialRecord) {
        let is_after = planned.spec.components.istio.as_deref() == Some(AFTER);
        let times = |more: f64| if is_after { 1.0 + more } else { 1.0 };
        let proxy = &mut record.components[0];
        proxy.cpu_user_s *= times(self.cpu);
        let memory = 50e6 * times(self.memory) * (deviation * normal(random) / 4.0).exp();
        proxy.memory_anonymous_bytes = Some(memory as u64);
        // A few bytes of names differ between trials.
        let names = if random.random::<f64>() < 0.3 { 12.0 } else { 0.0 };
        let configuration = ProxyConfiguration {
            size_bytes: (180_000.0 * times(self.configuration) + names) as u64,
            ..ProxyConfiguration::default()
        };
        proxy.holdings =
            Some(ProxyFootprint { configuration: Some(configuration), ..ProxyFootprint::default() });
        let last = 0.12 * (0.3 * normal(random)).exp();
        record.push = Some(ConfigurationPush {
            in_force_s: BTreeMap::from([("proxy".to_owned(), last)]),
            ..ConfigurationPush::default()
        });
        let digest =
            if self.is_same_program { "same".to_owned() } else { record.factors[VERSIONS].to_string() };
        record.versions = vec![ComponentVersion {
            name: "envoy".into(),
            version: "1.40.0".into(),
            sha256: Some(digest),
            ..ComponentVersion::default()
        }];
    }
}

/// Requests per second or clients.
fn level(load: &LoadPoint) -> f64 {
    load.level().expect("a load")
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
        rate: Rates { offered: planned.load.rate, sent: rate, completed: rate },
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
        ComponentUsage { cpu_user_s: 10.0 * proxy_cores, ..ComponentUsage::new("proxy", Role::Proxy, 10.0) };
    TrialRecord {
        schema: TRIAL_SCHEMA.to_owned(),
        index: planned.index,
        repeat: planned.repeat,
        mode: planned.mode(),
        factors: planned.factors.clone(),
        load: planned.load.clone(),
        started_at: String::new(),
        deployment: None,
        outcome: TrialOutcome::Finished,
        verdict,
        result: Some(result),
        drivers: vec![DriverRecord {
            name: "generator".to_owned(),
            target: "server".to_owned(),
            ..DriverRecord::default()
        }],
        services: Vec::new(),
        edges: Vec::new(),
        gateways: Vec::new(),
        rates: None,
        components: vec![proxy],
        path: PathProof { proven: true, ..PathProof::default() },
        machine: None,
        nodes: Vec::new(),
        log_tails: BTreeMap::new(),
        hints: Vec::new(),
        push: None,
        further_domain: None,
        versions: Vec::new(),
        proxies: None,
        retake: None,
    }
}

/// Student's t with three degrees of freedom, of standard deviation one.
fn heavy(random: &mut StdRng) -> f64 {
    let squares: f64 = (0..3).map(|_| normal(random).powi(2)).sum();
    normal(random) / squares.sqrt()
}

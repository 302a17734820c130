//! Runs of fleets whose control plane costs what known laws say, with noise.

use experiment::schema::{
    ComponentVersion, ControlPlaneFigures, DriverRecord, FleetChange, FleetEvent, FleetOutage, FleetProxies,
    FleetResult, FleetSecond, HistogramSummary, Host, PathProof, TRIAL_SCHEMA, TrialRecord, Verdict,
};
use experiment::{Experiment, Plan, PlannedTrial};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use statistics::size::MeasuredRun;

/// A sweep and its noise.
#[derive(Clone, Debug)]
pub struct FleetSweep {
    /// The section `fleet` of the experiment.
    pub fleet: &'static str,
    pub repeats: usize,
    /// Standard deviation of the logarithm between trials, and of what all trials of a repeat have in common.
    pub between: f64,
    pub repeat: f64,
    /// A reason in every verdict.
    pub spoiled: Option<&'static str>,
}

impl Default for FleetSweep {
    fn default() -> Self {
        Self {
            fleet: "proxies: [200, 600], services: [100, 400], pods: [600, 1500], churn: [0, 2/s, 6/s]",
            repeats: 4,
            between: 0.05,
            repeat: 0.03,
            spoiled: None,
        }
    }
}

/// Changes and connecting take this long, seconds.
const CHANGING_S: f64 = 50.0;
const CONNECTING_S: f64 = 10.0;

pub fn configuration_bytes(services: f64, pods: f64) -> f64 {
    20_000.0 + 1500.0 * services + 250.0 * pods
}

pub fn connecting_cpu_s(bytes: f64) -> f64 {
    0.8 + 2e-8 * bytes
}

pub fn cores(bytes_per_s: f64) -> f64 {
    0.06 + 3e-9 * bytes_per_s
}

pub fn memory_bytes(bytes: f64, services: f64) -> f64 {
    120e6 + 0.4 * bytes + 90_000.0 * services
}

impl FleetSweep {
    pub fn experiment(&self) -> Experiment {
        let text = format!(
            "{{name: t, mesh: istio, modes: control-plane, fleet: {{{}}}, repeats: {}}}",
            self.fleet, self.repeats
        );
        Experiment::parse(&text, "test").expect("a good experiment")
    }

    pub fn run(&self, seed: u64) -> MeasuredRun {
        let mut random = StdRng::seed_from_u64(seed);
        let experiment = self.experiment();
        let repeats: Vec<f64> = (0..self.repeats).map(|_| self.repeat * normal(&mut random)).collect();
        let plan = Plan::new(&experiment, seed);
        let trials = plan.trials.iter().map(|planned| {
            let mut noise = || {
                let deviation = self.between * normal(&mut random) - self.between * self.between / 2.0;
                (repeats[planned.repeat] + deviation).exp()
            };
            self.trial(planned, [noise(), noise(), noise()])
        });
        let trials = trials.collect();
        MeasuredRun { directory: "run".to_owned(), experiment, host: host(), trials }
    }

    fn trial(&self, planned: &PlannedTrial, [connecting, changing, memory]: [f64; 3]) -> TrialRecord {
        let fleet = planned.fleet.as_deref().expect("a fleet");
        let (proxies, services, pods) = (fleet.proxies as f64, fleet.services as f64, fleet.pods as f64);
        let share = if fleet.scope { 1.0 / fleet.namespaces as f64 } else { 1.0 };
        let bytes = configuration_bytes(services * share, pods * share);
        let arrivals = fleet.churn.pods_per_s(fleet.pods) * CHANGING_S * proxies * share;
        let connecting_s = connecting_cpu_s(proxies * bytes) * connecting;
        let changing_s = cores(arrivals.round() / CHANGING_S * bytes) * changing * CHANGING_S;
        let istiod = ControlPlaneFigures {
            name: "istiod".to_owned(),
            cpu_s: Some(connecting_s + changing_s),
            cpu_connecting_s: Some(connecting_s),
            cpu_changing_s: Some(changing_s),
            memory_peak_bytes: Some((memory_bytes(proxies * bytes, services) * memory) as u64),
            ..ControlPlaneFigures::default()
        };
        let second = |t_s: f64, complete: f64, bytes: f64| FleetSecond {
            t_s,
            complete: complete as u64,
            bytes: bytes as u64,
            ..FleetSecond::default()
        };
        let result = FleetResult {
            duration_s: CONNECTING_S + CHANGING_S,
            proxies: FleetProxies {
                wanted: fleet.proxies as u64,
                connected: fleet.proxies as u64,
                converged: fleet.proxies as u64,
                ..FleetProxies::default()
            },
            first_configuration_us: HistogramSummary {
                count: fleet.proxies as u64,
                censored: 3,
                ..HistogramSummary::default()
            },
            events: vec![FleetEvent {
                at: CONNECTING_S,
                kind: "all-complete".to_owned(),
                ..FleetEvent::default()
            }],
            changes: vec![FleetChange {
                kind: "churn".to_owned(),
                made: 10,
                expected: arrivals.round() as u64,
                reached: arrivals.round() as u64,
                ..FleetChange::default()
            }],
            // A connection that istiod refused at first.
            cut_off: vec![FleetOutage { at: 1.0, proxies: 3, ..FleetOutage::default() }],
            series: vec![
                second(0.0, 0.0, proxies * bytes / 2.0),
                second(1.0, proxies, proxies * bytes / 2.0),
            ],
            control_plane: vec![istiod],
            ..FleetResult::default()
        };
        let mut verdict = Verdict::usable();
        if let Some(reason) = self.spoiled {
            verdict.spoil(reason.to_owned(), experiment::schema::Figures::all());
        }
        let driver =
            DriverRecord { name: "fleet".to_owned(), fleet: Some(result), ..DriverRecord::default() };
        let read = serde_json::json!({
            "schema": TRIAL_SCHEMA, "index": planned.index, "repeat": planned.repeat, "mode": planned.mode,
            "factors": planned.factors, "load": planned.load, "started_at": "", "outcome": "finished",
            "verdict": verdict, "result": null, "components": [], "path": PathProof { proven: true, ..PathProof::default() },
            "machine": null,
        });
        let trial: TrialRecord = serde_json::from_value(read).expect("a trial");
        TrialRecord { drivers: vec![driver], ..trial }
    }
}

fn host() -> Host {
    let version = ComponentVersion {
        name: "meshmeter".to_owned(),
        version: "0.1.0".to_owned(),
        ..ComponentVersion::default()
    };
    Host {
        cpu_model: "AMD EPYC".to_owned(),
        cpus: 64,
        kernel: "6.18".to_owned(),
        versions: vec![version],
        ..Host::default()
    }
}

fn normal(random: &mut StdRng) -> f64 {
    let radius = (-2.0 * (1.0 - random.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.random::<f64>()).cos()
}

//! Simulated runs of fleets whose control plane follows known cost laws, with noise.

use crate::generated_run::{finished, normal, run_of};
use experiment::{Experiment, Plan, PlannedTrial};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use results::{
    ControlPlaneFigures, DriverRecord, FleetChange, FleetEvent, FleetOutage, FleetPhase, FleetProxies,
    FleetPushes, FleetResult, FleetSecond, HistogramSummary, TrialRecord, Verdict,
};
use statistics::size::MeasuredRun;
use std::collections::BTreeMap;

/// A sweep and its noise.
#[derive(Clone, Debug)]
pub struct FleetSweep {
    /// The `fleet` section of the experiment.
    pub fleet: &'static str,
    pub repeats: usize,
    /// Standard deviation of the logarithm between trials, and of the effect that all trials of a repeat
    /// share.
    pub between: f64,
    pub repeat: f64,
    /// Each trial adds a service entry, which is pushed in full, after its churn.
    pub has_entries: bool,
    /// Results have phases and bytes by trigger, unlike those of earlier versions.
    pub has_phases: bool,
    /// A reason added to every verdict.
    pub spoiled: Option<&'static str>,
}

impl Default for FleetSweep {
    fn default() -> Self {
        Self {
            fleet: "proxies: [200, 600], services: [100, 400], pods: [600, 1500], churn: [0, 2/s, 6/s]",
            repeats: 4,
            between: 0.05,
            repeat: 0.03,
            has_entries: true,
            has_phases: true,
            spoiled: None,
        }
    }
}

/// Duration of changes and of connecting, in seconds.
const CHURN_S: f64 = 50.0;
const ENTRIES_S: f64 = 10.0;
const CONNECTING_S: f64 = 10.0;

pub fn configuration_bytes(services: f64, pods: f64) -> f64 {
    20_000.0 + 1500.0 * services + 250.0 * pods
}

pub fn connecting_cpu_s(bytes: f64, connections: f64) -> f64 {
    0.8 + 2e-8 * bytes + 0.03 * connections
}

pub fn cores(bytes_per_s: f64, pushes_per_s: f64) -> f64 {
    0.06 + 1.5e-8 * bytes_per_s + 2e-4 * pushes_per_s
}

/// Bytes of an endpoint change, which is one push.
pub fn endpoint_bytes(pods_per_service: f64) -> f64 {
    200.0 + 150.0 * pods_per_service
}

/// Bytes of a service entry, in four pushes.
pub fn entry_bytes(configuration_bytes: f64) -> f64 {
    5000.0 + 0.8 * configuration_bytes
}

/// Cores for changes of endpoints and service entries per second that are sent to all of these proxies.
pub fn cores_of_mesh(
    services: f64,
    pods: f64,
    proxies: f64,
    endpoints_per_s: f64,
    entries_per_s: f64,
) -> f64 {
    let entry = entry_bytes(configuration_bytes(services, pods));
    let bytes_per_s = endpoints_per_s * endpoint_bytes(pods / services) + entries_per_s * entry;
    cores(proxies * bytes_per_s, proxies * (endpoints_per_s + ENTRY_PUSHES * entries_per_s))
}

pub const ENTRY_PUSHES: f64 = 4.0;
/// Service entries per trial.
const ENTRIES: f64 = 2.0;

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
        run_of(&experiment, trials)
    }

    fn pushes(&self, made: &[Made]) -> FleetPushes {
        let count = |read: &dyn Fn(&Made) -> f64| {
            made.iter().map(|made| (made.kind.to_owned(), read(made) as u64)).collect()
        };
        FleetPushes {
            by_trigger: count(&Made::pushes_received),
            bytes_by_trigger: if self.has_phases { count(&Made::bytes_received) } else { BTreeMap::new() },
            ..FleetPushes::default()
        }
    }

    fn trial(&self, planned: &PlannedTrial, [connecting, changing, memory]: [f64; 3]) -> TrialRecord {
        let fleet = planned.fleet.as_deref().expect("a fleet");
        let (proxies, services, pods) = (fleet.proxies as f64, fleet.services as f64, fleet.pods as f64);
        let share = if fleet.scope { 1.0 / fleet.namespaces as f64 } else { 1.0 };
        let bytes = configuration_bytes(services * share, pods * share);
        let affected = proxies * share;
        let churn = Made {
            kind: "churn",
            duration_s: CHURN_S,
            made: (fleet.churn.pods_per_s(fleet.pods) * CHURN_S).round(),
            affected,
            pushes: 1.0,
            bytes: endpoint_bytes(pods / services),
        };
        let entries = Made {
            kind: "service-entry",
            duration_s: ENTRIES_S,
            made: ENTRIES,
            affected,
            pushes: ENTRY_PUSHES,
            bytes: entry_bytes(bytes),
        };
        let made: Vec<Made> =
            [Some(churn), self.has_entries.then_some(entries)].into_iter().flatten().collect();
        let connecting_s = connecting_cpu_s(proxies * bytes, proxies) * connecting;
        let changing_s: f64 = made.iter().map(|made| made.cpu_s() * changing).sum();
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
        let mut series =
            vec![second(0.0, 0.0, proxies * bytes / 2.0), second(1.0, proxies, proxies * bytes / 2.0)];
        series.extend(made.iter().map(|made| FleetSecond {
            pushes: made.pushes_received() as u64,
            ..second(CONNECTING_S, proxies, made.bytes_received())
        }));
        let mut at = CONNECTING_S;
        let phases = made.iter().map(|made| {
            at += made.duration_s;
            made.phase(at - made.duration_s, changing)
        });
        let phases: Vec<FleetPhase> = phases.collect();
        let result = FleetResult {
            duration_s: at,
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
            phases: if self.has_phases { phases } else { Vec::new() },
            changes: made.iter().filter(|made| made.made > 0.0).map(Made::change).collect(),
            pushes: [("eds".to_owned(), self.pushes(&made))].into(),
            // A connection that istiod refused at first.
            cut_off: vec![FleetOutage { at: 1.0, proxies: 3, ..FleetOutage::default() }],
            series,
            control_plane: vec![istiod],
            ..FleetResult::default()
        };
        let mut verdict = Verdict::usable();
        if let Some(reason) = self.spoiled {
            verdict.spoil(reason.to_owned(), results::Figures::all());
        }
        let driver =
            DriverRecord { name: "fleet".to_owned(), fleet: Some(result), ..DriverRecord::default() };
        TrialRecord { drivers: vec![driver], ..finished(planned, &verdict) }
    }
}

/// Changes of one kind.
struct Made {
    kind: &'static str,
    duration_s: f64,
    made: f64,
    affected: f64,
    /// Pushes per change and affected proxy.
    pushes: f64,
    bytes: f64,
}

impl Made {
    fn pushes_received(&self) -> f64 {
        self.made * self.affected * self.pushes
    }

    fn bytes_received(&self) -> f64 {
        self.made * self.affected * self.bytes
    }

    fn cpu_s(&self) -> f64 {
        let rate = |count: f64| count / self.duration_s;
        cores(rate(self.bytes_received()), rate(self.pushes_received())) * self.duration_s
    }

    fn phase(&self, at: f64, noise: f64) -> FleetPhase {
        FleetPhase {
            kind: self.kind.to_owned(),
            at,
            duration_s: self.duration_s,
            istiod_cpu_s: Some(self.cpu_s() * noise),
            pushes: self.pushes_received() as u64,
            bytes: self.bytes_received() as u64,
        }
    }

    fn change(&self) -> FleetChange {
        let arrivals = (self.made * self.affected) as u64;
        FleetChange {
            kind: self.kind.to_owned(),
            made: self.made as u64,
            expected: arrivals,
            reached: arrivals,
            ..FleetChange::default()
        }
    }
}

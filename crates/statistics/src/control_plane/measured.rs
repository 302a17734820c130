//! A trial in terms of the variables of the laws.

use experiment::settings::fleet::{ChangeKind, FleetSettings, ProxyKind};
use results::{FleetOutage, FleetResult, IDLE_PHASE, TrialRecord};
use std::collections::BTreeMap;

/// Event that marks that all proxies of a fleet have their first configuration.
const ALL_COMPLETE: &str = "all-complete";
/// Kind of the changes made by churn.
pub(super) const CHURN: &str = "churn";

#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub repeat: usize,
    pub cell: usize,
    pub services: f64,
    pub visible_services: f64,
    pub visible_pods: f64,
    pub pods: f64,
    pub proxies: f64,
    pub istiods: usize,
    /// Bytes per proxy at its first complete configuration.
    pub configuration_bytes: Option<f64>,
    pub connecting_cpu_s: Option<f64>,
    /// Arrivals of changes at proxies, per second.
    pub arrivals_per_s: f64,
    pub memory_bytes: Option<f64>,
    /// Parts of the time under changes in which proxies kept their connections.
    pub windows: Vec<Window>,
    /// Changes by kind.
    pub changes: BTreeMap<String, MeasuredChange>,
}

/// CPU in a part of the time under changes, and what was pushed meanwhile.
#[derive(Clone, Debug)]
pub(super) struct Window {
    /// Position of its kind of change among the kinds of the trial.
    pub place: usize,
    pub cores: f64,
    pub bytes_per_s: f64,
    pub pushes_per_s: f64,
}

/// What istiod sent to each affected proxy per change of one kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct MeasuredChange {
    pub per_s: f64,
    pub pushes: f64,
    /// `None` for results of earlier versions with several kinds of changes.
    pub bytes: Option<f64>,
}

impl Measured {
    /// `None` without a fleet.
    pub fn new(trial: &TrialRecord, settings: &FleetSettings, cell: usize) -> Option<Self> {
        let fleet = trial.fleet()?;
        let visible = visible_share(settings);
        // If a proxy was never complete, the time after it is unknown.
        let rest_s = complete_s(fleet).map_or(0.0, |complete_s| fleet.duration_s - complete_s);
        Some(Self {
            repeat: trial.repeat,
            cell,
            services: settings.services as f64,
            visible_services: settings.services as f64 * visible,
            visible_pods: settings.pods as f64 * visible,
            pods: settings.pods as f64,
            proxies: fleet.proxies.wanted as f64,
            istiods: fleet.control_plane.iter().filter(|figures| figures.is_istiod()).count(),
            configuration_bytes: configuration_bytes(fleet),
            connecting_cpu_s: fleet.of_istiods(|istiod| istiod.cpu_connecting_s),
            arrivals_per_s: if rest_s > 0.0 { arrivals(fleet) / rest_s } else { 0.0 },
            memory_bytes: fleet.istiod_memory_bytes(),
            windows: windows(fleet),
            changes: changes(fleet, visible),
        })
    }

    pub fn pods_per_service(&self) -> f64 {
        self.pods / self.services.max(1.0)
    }
}

/// The fraction of the mesh that a proxy sees. Only sidecars can be scoped.
fn visible_share(settings: &FleetSettings) -> f64 {
    let are_sidecars = settings.count_of(ProxyKind::Sidecar) == settings.proxies;
    if settings.scope && are_sidecars { 1.0 / settings.namespaces.max(1) as f64 } else { 1.0 }
}

/// The fraction of the proxies that changes of a kind are sent to, if each proxy sees the fraction `visible`
/// of the mesh.
pub(super) fn affected_share(kind: &str, visible: f64) -> f64 {
    if kind == ChangeKind::RootPolicy.name() { 1.0 } else { visible }
}

/// True for changes of mesh objects; other changes are of proxies and istiods.
fn is_of_mesh(kind: &str) -> bool {
    kind == CHURN || ChangeKind::ALL.iter().any(|change| change.name() == kind && change.is_of_mesh())
}

/// True for changes of the endpoints of a service.
pub(super) fn is_of_endpoints(kind: &str) -> bool {
    kind == CHURN || ChangeKind::ALL.iter().any(|change| change.name() == kind && change.is_of_endpoints())
}

/// When every proxy had its first configuration, in seconds from the start. Connections that istiod refused
/// and the fleet reopened never had one, so the distribution over connections may have no maximum.
fn complete_s(fleet: &FleetResult) -> Option<f64> {
    let event = fleet.events.iter().find(|event| event.kind == ALL_COMPLETE);
    event.map(|event| event.at).or_else(|| Some(fleet.first_configuration_us.max? / 1e6))
}

/// Number of arrivals of changes at the proxies that had to receive them.
fn arrivals(fleet: &FleetResult) -> f64 {
    let made = fleet.changes.iter().filter(|change| change.failure.is_none());
    made.map(|change| change.expected as f64).sum()
}

/// Index of the second in which all proxies had their first configuration.
fn complete_second(fleet: &FleetResult) -> Option<usize> {
    fleet.series.iter().position(|second| second.complete >= fleet.proxies.wanted)
}

/// Mean bytes received per proxy until all had their first configuration.
fn configuration_bytes(fleet: &FleetResult) -> Option<f64> {
    let proxies = fleet.proxies.wanted;
    let bytes: u64 = fleet.series[..=complete_second(fleet)?].iter().map(|second| second.bytes).sum();
    (proxies > 0 && bytes > 0).then(|| bytes as f64 / proxies as f64)
}

/// The phases of a fleet; for results of earlier versions, the whole time under changes. Windows with lost
/// connections are left out, because no term of the law covers the cost of reconnecting. Connections that
/// istiod refused earlier are part of the first configurations.
fn windows(fleet: &FleetResult) -> Vec<Window> {
    let mut istiods = fleet.control_plane.iter().filter(|figures| figures.is_istiod());
    let Some(complete_s) = complete_s(fleet).filter(|_| istiods.all(|figures| figures.restarts == 0)) else {
        return Vec::new();
    };
    let is_calm = |from: f64, to: f64| {
        let later = fleet.cut_off.iter().filter(|outage| outage.at > complete_s);
        later.into_iter().all(|outage| outage.at >= to || recovered_s(outage).is_some_and(|at| at <= from))
    };
    if fleet.phases.is_empty() {
        return whole_window(fleet, complete_s)
            .filter(|_| is_calm(complete_s, fleet.duration_s))
            .into_iter()
            .collect();
    }
    let mut kinds: Vec<&str> = Vec::new();
    let mut windows = Vec::new();
    for phase in &fleet.phases {
        let place = kinds.iter().position(|kind| *kind == phase.kind).unwrap_or_else(|| {
            kinds.push(&phase.kind);
            kinds.len() - 1
        });
        let is_usable = phase.duration_s > 0.0 && (phase.kind == IDLE_PHASE || is_of_mesh(&phase.kind));
        let Some(cpu_s) = phase.istiod_cpu_s.filter(|_| is_usable) else { continue };
        if is_calm(phase.at, phase.at + phase.duration_s) {
            windows.push(Window {
                place,
                cores: cpu_s / phase.duration_s,
                bytes_per_s: phase.bytes as f64 / phase.duration_s,
                pushes_per_s: phase.pushes as f64 / phase.duration_s,
            });
        }
    }
    windows
}

/// The whole time after the first configurations.
fn whole_window(fleet: &FleetResult, complete_s: f64) -> Option<Window> {
    let duration_s = fleet.duration_s - complete_s;
    let cpu_s = fleet.of_istiods(|istiod| istiod.cpu_s)?;
    let connecting_cpu_s = fleet.of_istiods(|istiod| istiod.cpu_connecting_s)?;
    let are_of_mesh = fleet.changes.iter().all(|change| is_of_mesh(&change.kind));
    let seconds = fleet.series.get(complete_second(fleet)? + 1..)?;
    (duration_s > 0.0 && are_of_mesh).then(|| Window {
        place: 0,
        cores: (cpu_s - connecting_cpu_s).max(0.0) / duration_s,
        bytes_per_s: seconds.iter().map(|second| second.bytes).sum::<u64>() as f64 / duration_s,
        pushes_per_s: seconds.iter().map(|second| second.pushes).sum::<u64>() as f64 / duration_s,
    })
}

/// When all proxies of an outage were complete again, in seconds from the start; `None` if some never were.
fn recovered_s(outage: &FleetOutage) -> Option<f64> {
    let recovery = &outage.recovery_us;
    (recovery.censored == 0).then(|| outage.at + recovery.max.unwrap_or(0.0) / 1e6)
}

/// What istiod sent because of changes, by kind of change.
fn changes(fleet: &FleetResult, visible: f64) -> BTreeMap<String, MeasuredChange> {
    let made = fleet.changes.iter().filter(|change| change.failure.is_none() && is_of_mesh(&change.kind));
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    made.for_each(|change| *counts.entry(&change.kind).or_default() += change.made.max(1));
    let is_only_kind = counts.len() == 1 && fleet.changes.iter().all(|change| is_of_mesh(&change.kind));
    let measured = |(kind, made): (&str, u64)| {
        let affected = made as f64 * fleet.proxies.wanted as f64 * affected_share(kind, visible);
        let pushes: u64 = fleet.pushes.values().filter_map(|pushes| pushes.by_trigger.get(kind)).sum();
        let bytes = bytes_of(fleet, kind).or_else(|| {
            let seconds = fleet.series.get(complete_second(fleet)? + 1..)?;
            is_only_kind.then(|| seconds.iter().map(|second| second.bytes).sum())
        });
        let duration_s = duration_s(fleet, kind)?;
        (affected > 0.0).then(|| {
            let change = MeasuredChange {
                per_s: made as f64 / duration_s,
                pushes: pushes as f64 / affected,
                bytes: bytes.map(|bytes| bytes as f64 / affected),
            };
            (kind.to_owned(), change)
        })
    };
    counts.into_iter().filter_map(measured).collect()
}

fn bytes_of(fleet: &FleetResult, kind: &str) -> Option<u64> {
    let mut known = fleet.pushes.values().filter(|pushes| !pushes.bytes_by_trigger.is_empty()).peekable();
    known.peek()?;
    Some(known.filter_map(|pushes| pushes.bytes_by_trigger.get(kind)).sum())
}

/// Time in which changes of a kind were made, in seconds.
fn duration_s(fleet: &FleetResult, kind: &str) -> Option<f64> {
    let of_kind = fleet.phases.iter().filter(|phase| phase.kind == kind);
    let of_phases: f64 = of_kind.map(|phase| phase.duration_s).sum();
    let duration_s = if of_phases > 0.0 { of_phases } else { fleet.duration_s - complete_s(fleet)? };
    (duration_s > 0.0).then_some(duration_s)
}

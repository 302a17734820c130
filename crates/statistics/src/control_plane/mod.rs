//! What a control plane costs against the size of its mesh and its changes.
//!
//! - Configuration of a proxy ≈ constant + per visible service + per visible pod.
//! - CPU of first configurations ≈ constant + per byte sent: proxies × configuration.
//! - CPU afterwards ≈ constant + per byte/s: changes/s × affected proxies × configuration.
//! - Memory ≈ constant + per byte held (proxies × configuration) + per service.
//!
//! Protobuf encoding dominates istiod's CPU, so that bytes of configuration are what it is in proportion to. [`linear`] fits
//! the laws, [`size`] answers for a mesh that was not measured.

mod linear;
pub mod size;

use crate::trials::{first_takes, is_usable};
use experiment::Experiment;
use experiment::schema::{
    ControlPlaneCosts, ControlPlaneModel, CostLaw, Factors, Figure, FleetResult, MeasuredRange, TrialRecord,
};
use experiment::settings::fleet::{FleetSettings, ProxyKind};
use linear::{FittedLaw, Observation, Terms, Unresolved};
use std::collections::BTreeMap;

/// Factors that the laws contain; each combination of the others has laws of its own.
const VARIABLES: [&str; 9] = [
    "fleet.proxies",
    "fleet.services",
    "fleet.pods",
    "fleet.namespaces",
    "fleet.scope",
    "fleet.churn",
    "fleet.between",
    "fleet.duration",
    "fleet.connect-rate",
];

/// The event of a fleet whose proxies all have their first configuration.
const ALL_COMPLETE: &str = "all-complete";

const CONFIGURATION: Terms =
    Terms { unit: "bytes", variables: &["visible services", "visible pods"], needs_slope: false };
const CONNECTING: Terms =
    Terms { unit: "CPU seconds", variables: &["bytes of first configurations"], needs_slope: true };
const CHANGING: Terms = Terms {
    unit: "cores",
    variables: &["changes/s × affected proxies × configuration bytes"],
    needs_slope: true,
};
const MEMORY: Terms =
    Terms { unit: "bytes", variables: &["proxies × configuration bytes", "services"], needs_slope: true };

/// One trial, in the terms of the laws.
#[derive(Clone, Debug)]
struct Measured {
    repeat: usize,
    cell: usize,
    services: f64,
    visible_services: f64,
    visible_pods: f64,
    pods: f64,
    proxies: f64,
    istiods: usize,
    /// Of a proxy, at its first complete configuration.
    configuration_bytes: Option<f64>,
    connecting_cpu_s: Option<f64>,
    /// CPU once all are connected.
    cores: Option<f64>,
    /// Arrivals of changes at proxies, per second.
    arrivals_per_s: f64,
    memory_bytes: Option<f64>,
}

/// Trials of one kind of fleet.
#[derive(Clone, Debug)]
struct Group {
    factors: Factors,
    kinds: String,
    trials: Vec<Measured>,
}

/// Laws of a group.
struct Laws {
    configuration: Result<FittedLaw, Unresolved>,
    connecting: Result<FittedLaw, Unresolved>,
    changing: Result<FittedLaw, Unresolved>,
    memory: Result<FittedLaw, Unresolved>,
}

/// The cost models of a run; absent where fleets did not vary.
#[must_use]
pub fn model(experiment: &Experiment, trials: &[TrialRecord]) -> Option<ControlPlaneModel> {
    let varies = VARIABLES.iter().any(|key| experiment.factor(key).is_some());
    let mut models =
        groups(&[(experiment, trials)]).into_iter().filter(|_| varies).map(|group| costs(&group));
    let main = models.next()?;
    Some(ControlPlaneModel { main, others: models.collect() })
}

/// Groups of usable trials, the one with most cells first. Runs must be of one machine; their repeats are put together by
/// number.
fn groups(runs: &[(&Experiment, &[TrialRecord])]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut cells = 0;
    for (experiment, trials) in runs {
        let settings: Vec<(Factors, &FleetSettings)> = experiment
            .each_combination()
            .filter_map(|(factors, one)| Some((factors, one.fleet.as_deref()?)))
            .collect();
        for (factors, fleet) in settings {
            let of_cell: Vec<&TrialRecord> = trials.iter().filter(|trial| trial.factors == factors).collect();
            let usable = first_takes(&of_cell, |trial| is_usable(trial, Figure::Cpu));
            let measured = usable.into_iter().filter_map(|trial| measured(trial, fleet, cells));
            let measured: Vec<Measured> = measured.collect();
            cells += 1;
            if measured.is_empty() {
                continue;
            }
            let mut own = factors.clone();
            own.retain(|key, _| !VARIABLES.contains(&key.as_str()));
            let kinds = fleet.kinds.to_string();
            match groups.iter_mut().find(|group| (&group.factors, &group.kinds) == (&own, &kinds)) {
                Some(group) => group.trials.extend(measured),
                None => groups.push(Group { factors: own, kinds, trials: measured }),
            }
        }
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.cells()));
    groups
}

impl Group {
    fn cells(&self) -> usize {
        let mut cells: Vec<usize> = self.trials.iter().map(|trial| trial.cell).collect();
        cells.sort_unstable();
        cells.dedup();
        cells.len()
    }

    /// Trials that have a cost, as observations of a law.
    fn observations(&self, read: impl Fn(&Measured) -> Option<(Vec<f64>, f64)>) -> Vec<Observation> {
        let observation = |trial: &Measured| {
            let (at, cost) = read(trial)?;
            let is_usable = cost.is_finite() && at.iter().all(|value| value.is_finite());
            is_usable.then_some(Observation { repeat: trial.repeat, cell: trial.cell, at, cost })
        };
        self.trials.iter().filter_map(observation).collect()
    }

    fn laws(&self) -> Laws {
        let configuration = self.observations(|trial| {
            Some((vec![trial.visible_services, trial.visible_pods], trial.configuration_bytes?))
        });
        let connecting = self.observations(|trial| {
            Some((vec![trial.proxies * trial.configuration_bytes?], trial.connecting_cpu_s?))
        });
        let changing = self.observations(|trial| {
            Some((vec![trial.arrivals_per_s * trial.configuration_bytes?], trial.cores?))
        });
        let memory = self.observations(|trial| {
            Some((vec![trial.proxies * trial.configuration_bytes?, trial.services], trial.memory_bytes?))
        });
        Laws {
            configuration: FittedLaw::fit(CONFIGURATION, &configuration),
            connecting: FittedLaw::fit(CONNECTING, &connecting),
            changing: FittedLaw::fit(CHANGING, &changing),
            memory: FittedLaw::fit(MEMORY, &memory),
        }
    }

    fn istiods(&self) -> usize {
        self.trials.iter().map(|trial| trial.istiods).max().unwrap_or(1).max(1)
    }

    fn ranges(&self) -> BTreeMap<String, MeasuredRange> {
        type Read = fn(&Measured) -> Option<f64>;
        let variables: [(&str, Read); 5] = [
            ("services", |trial| Some(trial.services)),
            ("pods", |trial| Some(trial.pods)),
            ("proxies", |trial| Some(trial.proxies)),
            ("changes_per_s", |trial| (trial.proxies > 0.0).then(|| trial.arrivals_per_s / trial.proxies)),
            ("configuration_bytes", |trial| trial.configuration_bytes),
        ];
        let range = |(name, read): (&str, Read)| {
            let values = || self.trials.iter().filter_map(read);
            let from = values().min_by(f64::total_cmp)?;
            Some((name.to_owned(), MeasuredRange { from, to: values().max_by(f64::total_cmp)? }))
        };
        variables.into_iter().filter_map(range).collect()
    }
}

fn costs(group: &Group) -> ControlPlaneCosts {
    let Laws { configuration, connecting, changing, memory } = group.laws();
    ControlPlaneCosts {
        factors: group.factors.clone(),
        kinds: group.kinds.clone(),
        istiods: group.istiods(),
        configuration: described(&configuration, CONFIGURATION),
        connecting: described(&connecting, CONNECTING),
        changing: described(&changing, CHANGING),
        memory: described(&memory, MEMORY),
        measured: group.ranges(),
    }
}

fn described(law: &Result<FittedLaw, Unresolved>, terms: Terms) -> CostLaw {
    match law {
        Ok(law) => law.described(),
        Err(reason) => {
            CostLaw { unit: terms.unit.to_owned(), refusal: Some(reason.clone()), ..CostLaw::default() }
        }
    }
}

/// A trial in the terms of the laws; absent without a fleet.
fn measured(trial: &TrialRecord, settings: &FleetSettings, cell: usize) -> Option<Measured> {
    let fleet = trial.fleet()?;
    let visible = visible_share(settings);
    // Where a proxy was never complete, the time after it is not known.
    let rest_s = complete_s(fleet).map_or(0.0, |complete_s| fleet.duration_s - complete_s);
    let (cpu_s, connecting_cpu_s) =
        (fleet.of_istiods(|istiod| istiod.cpu_s), fleet.of_istiods(|istiod| istiod.cpu_connecting_s));
    let cores = cpu_s.zip(connecting_cpu_s).filter(|_| rest_s > 0.0 && has_changes_alone(fleet));
    Some(Measured {
        repeat: trial.repeat,
        cell,
        services: settings.services as f64,
        visible_services: settings.services as f64 * visible,
        visible_pods: settings.pods as f64 * visible,
        pods: settings.pods as f64,
        proxies: fleet.proxies.wanted as f64,
        istiods: fleet.control_plane.iter().filter(|figures| figures.is_istiod()).count(),
        configuration_bytes: configuration_bytes(fleet),
        connecting_cpu_s,
        cores: cores.map(|(all, connecting)| (all - connecting).max(0.0) / rest_s),
        arrivals_per_s: if rest_s > 0.0 { arrivals(fleet) / rest_s } else { 0.0 },
        memory_bytes: fleet
            .of_istiods(|istiod| istiod.memory_peak_bytes.or(istiod.memory_bytes).map(|bytes| bytes as f64)),
    })
}

/// When every proxy had its first configuration, seconds from the start. Connections that istiod refused and that were made again
/// never had one, so that the distribution over connections may have no greatest value.
fn complete_s(fleet: &FleetResult) -> Option<f64> {
    let event = fleet.events.iter().find(|event| event.kind == ALL_COMPLETE);
    event.map(|event| event.at).or_else(|| Some(fleet.first_configuration_us.max? / 1e6))
}

/// The share of the mesh that a proxy is told of. Scoping is of sidecars alone.
fn visible_share(settings: &FleetSettings) -> f64 {
    let are_sidecars = settings.count_of(ProxyKind::Sidecar) == settings.proxies;
    if settings.scope && are_sidecars { 1.0 / settings.namespaces.max(1) as f64 } else { 1.0 }
}

/// Arrivals of changes at proxies that had to get them.
fn arrivals(fleet: &FleetResult) -> f64 {
    let made = fleet.changes.iter().filter(|change| change.failure.is_none());
    made.map(|change| change.expected as f64).sum()
}

/// Whether no proxy lost its connection once all were complete: what it costs to connect again is in no term of the law.
/// Connections that istiod refused before are part of the first configurations.
fn has_changes_alone(fleet: &FleetResult) -> bool {
    let complete_s = complete_s(fleet).unwrap_or(0.0);
    let mut istiods = fleet.control_plane.iter().filter(|figures| figures.is_istiod());
    fleet.cut_off.iter().all(|outage| outage.at <= complete_s) && istiods.all(|figures| figures.restarts == 0)
}

/// Bytes that a proxy received until all had their first configuration.
fn configuration_bytes(fleet: &FleetResult) -> Option<f64> {
    let proxies = fleet.proxies.wanted;
    let complete = fleet.series.iter().position(|second| second.complete >= proxies)?;
    let bytes: u64 = fleet.series[..=complete].iter().map(|second| second.bytes).sum();
    (proxies > 0 && bytes > 0).then(|| bytes as f64 / proxies as f64)
}

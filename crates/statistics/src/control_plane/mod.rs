//! The control plane's model answers "How much CPU and memory does istiod need for my mesh, and what does a change
//! cost?" It has istiod's resources as a function of the size and the changes of its mesh.
//!
//! - Configuration of a proxy ≈ constant + per visible service + per visible pod.
//! - CPU of first configurations ≈ constant + per byte sent (proxies × configuration) + per connection.
//! - CPU afterwards ≈ constant + per byte/s + per push/s.
//! - A change sends each affected proxy ≈ constant pushes. Changes of endpoints send constant + per pod of a
//!   service bytes, all other changes constant + per byte of configuration.
//! - Memory ≈ constant + per byte held (proxies × configuration) + per service.
//!
//! Encoding dominates istiod's CPU, so most of it is proportional to bytes: a change of endpoints sends few
//! bytes to all proxies, a change of configuration sends whole types. [`measured`] reads trials, [`linear`]
//! fits the laws, [`size`] answers for a mesh that was not measured.

pub(crate) mod linear;
mod measured;
pub mod size;

use crate::trials::{first_takes, is_usable};
use experiment::Experiment;
use experiment::settings::fleet::FleetSettings;
use linear::{FittedLaw, Observation, Terms, Unresolved};
use measured::{Measured, MeasuredChange, is_of_endpoints};
use results::{
    ChangeCosts, ControlPlaneCosts, ControlPlaneModel, CostLaw, CostTerm, Factors, Figure, MeasuredRange,
    TrialRecord,
};
use std::collections::{BTreeMap, BTreeSet};

/// Factors that the laws contain; each combination of the other factors has its own laws.
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

/// A topology's factors change its services, pods and namespaces, which the laws already contain.
const TOPOLOGY: &str = "topology.";

const CONFIGURATION: Terms =
    Terms { unit: "bytes", variables: &["visible services", "visible pods"], needs_slope: false };
const CONNECTING: Terms = Terms {
    unit: "CPU seconds",
    variables: &["bytes of first configurations", "connections"],
    needs_slope: true,
};
const CHANGING: Terms = Terms { unit: "cores", variables: &["bytes/s", "pushes/s"], needs_slope: true };
const PUSHES_OF_CHANGE: Terms = Terms { unit: "pushes", variables: &[], needs_slope: false };
const BYTES_OF_ENDPOINTS: Terms =
    Terms { unit: "bytes", variables: &["pods per service"], needs_slope: false };
const BYTES_OF_CONFIGURATION: Terms =
    Terms { unit: "bytes", variables: &["configuration bytes"], needs_slope: false };
const MEMORY: Terms =
    Terms { unit: "bytes", variables: &["proxies × configuration bytes", "services"], needs_slope: true };

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
    /// Laws by kind of change.
    changes: BTreeMap<String, ChangeLaws>,
}

/// Pushes and bytes per affected proxy and change of one kind.
struct ChangeLaws {
    pushes: Result<FittedLaw, Unresolved>,
    bytes: Result<FittedLaw, Unresolved>,
    /// Measured range of changes per second.
    per_s: Option<MeasuredRange>,
}

/// The cost models of a run; `None` if its fleets did not vary.
#[must_use]
pub fn model(experiment: &Experiment, trials: &[TrialRecord]) -> Option<ControlPlaneModel> {
    model_with_chances(experiment, trials).map(|(model, _)| model)
}

/// The same, and how likely each of [`first_slopes`] is by chance if there is none.
pub(crate) fn model_with_chances(
    experiment: &Experiment,
    trials: &[TrialRecord],
) -> Option<(ControlPlaneModel, [Option<f64>; 4])> {
    let varies = VARIABLES.iter().any(|key| experiment.factor(key).is_some());
    let mut groups = groups(&[(experiment, trials)]).into_iter().filter(|_| varies);
    let main = groups.next()?;
    let laws = main.laws();
    let chances = [&laws.changing, &laws.memory, &laws.configuration, &laws.connecting]
        .map(|law| law.as_ref().ok().and_then(FittedLaw::chance_of_slope));
    let others = groups.map(|group| costs(&group, group.laws())).collect();
    Some((ControlPlaneModel { main: costs(&main, laws), others }, chances))
}

/// The first slope of each law that is a finding.
pub(crate) fn first_slopes(costs: &mut ControlPlaneCosts) -> [Option<&mut CostTerm>; 4] {
    let ControlPlaneCosts { changing, memory, configuration, connecting, .. } = costs;
    [changing, memory, configuration, connecting].map(|law| law.terms.get_mut(1))
}

/// Groups of usable trials, the group with the most cells first. All runs must be from one machine; their
/// repeats are matched by number.
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
            let measured = usable.into_iter().filter_map(|trial| Measured::new(trial, fleet, cells));
            let measured: Vec<Measured> = measured.collect();
            cells += 1;
            if measured.is_empty() {
                continue;
            }
            let mut own = factors.clone();
            own.retain(|key, _| !VARIABLES.contains(&key.as_str()) && !key.starts_with(TOPOLOGY));
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

    /// Trials with a known cost, as observations of a law.
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
            Some((vec![trial.proxies * trial.configuration_bytes?, trial.proxies], trial.connecting_cpu_s?))
        });
        let memory = self.observations(|trial| {
            Some((vec![trial.proxies * trial.configuration_bytes?, trial.services], trial.memory_bytes?))
        });
        let kinds: BTreeSet<&String> = self.trials.iter().flat_map(|trial| trial.changes.keys()).collect();
        Laws {
            configuration: FittedLaw::fit(CONFIGURATION, &configuration),
            connecting: FittedLaw::fit(CONNECTING, &connecting),
            changing: FittedLaw::fit(CHANGING, &self.windows()),
            memory: FittedLaw::fit(MEMORY, &memory),
            changes: kinds.into_iter().map(|kind| (kind.clone(), self.change_laws(kind))).collect(),
        }
    }

    /// Each window of a trial is one observation. Windows of the same kind of change in a cell count as
    /// replicates.
    fn windows(&self) -> Vec<Observation> {
        let places = self.trials.iter().flat_map(|trial| &trial.windows).map(|window| window.place + 1);
        let kinds = places.max().unwrap_or(1);
        let observation = |(trial, window): (&Measured, &measured::Window)| Observation {
            repeat: trial.repeat,
            cell: trial.cell * kinds + window.place,
            at: vec![window.bytes_per_s, window.pushes_per_s],
            cost: window.cores,
        };
        let windows = self.trials.iter().flat_map(|trial| trial.windows.iter().map(move |one| (trial, one)));
        windows.map(observation).collect()
    }

    fn change_laws(&self, kind: &str) -> ChangeLaws {
        let pushes = self.observations(|trial| Some((Vec::new(), trial.changes.get(kind)?.pushes)));
        let bytes = self.observations(|trial| {
            let at =
                if is_of_endpoints(kind) { trial.pods_per_service() } else { trial.configuration_bytes? };
            Some((vec![at], trial.changes.get(kind)?.bytes?))
        });
        let terms = if is_of_endpoints(kind) { BYTES_OF_ENDPOINTS } else { BYTES_OF_CONFIGURATION };
        let of_kind = |trial: &Measured| trial.changes.get(kind).map(|change: &MeasuredChange| change.per_s);
        ChangeLaws {
            pushes: FittedLaw::fit(PUSHES_OF_CHANGE, &pushes),
            bytes: FittedLaw::fit(terms, &bytes),
            per_s: self.range(of_kind),
        }
    }

    fn istiods(&self) -> usize {
        self.trials.iter().map(|trial| trial.istiods).max().unwrap_or(1).max(1)
    }

    fn ranges(&self) -> BTreeMap<String, MeasuredRange> {
        type Read = fn(&Measured) -> Option<f64>;
        let variables: [(&str, Read); 6] = [
            ("services", |trial| Some(trial.services)),
            ("pods", |trial| Some(trial.pods)),
            ("proxies", |trial| Some(trial.proxies)),
            ("changes_per_s", |trial| (trial.proxies > 0.0).then(|| trial.arrivals_per_s / trial.proxies)),
            ("configuration_bytes", |trial| trial.configuration_bytes),
            ("pods_per_service", |trial| Some(trial.pods_per_service())),
        ];
        let range = |(name, read): (&str, Read)| Some((name.to_owned(), self.range(read)?));
        variables.into_iter().filter_map(range).collect()
    }

    fn range(&self, read: impl Fn(&Measured) -> Option<f64>) -> Option<MeasuredRange> {
        let values = || self.trials.iter().filter_map(&read);
        let from = values().min_by(f64::total_cmp)?;
        Some(MeasuredRange { from, to: values().max_by(f64::total_cmp)? })
    }
}

fn costs(group: &Group, laws: Laws) -> ControlPlaneCosts {
    let Laws { configuration, connecting, changing, memory, changes } = laws;
    let of_change = |(kind, laws): (String, ChangeLaws)| {
        let terms = if is_of_endpoints(&kind) { BYTES_OF_ENDPOINTS } else { BYTES_OF_CONFIGURATION };
        let costs = ChangeCosts {
            pushes: described(&laws.pushes, PUSHES_OF_CHANGE),
            bytes: described(&laws.bytes, terms),
            per_s: laws.per_s,
        };
        (kind, costs)
    };
    ControlPlaneCosts {
        factors: group.factors.clone(),
        kinds: group.kinds.clone(),
        istiods: group.istiods(),
        configuration: described(&configuration, CONFIGURATION),
        connecting: described(&connecting, CONNECTING),
        changing: described(&changing, CHANGING),
        changes: changes.into_iter().map(of_change).collect(),
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

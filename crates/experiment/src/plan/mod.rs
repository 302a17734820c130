//! Plan of a run: every trial, in execution order.
//!
//! A cell is mode × factors × load ([`cell`]). Each repeat runs every cell once, in its own random order
//! ([`order`]), so that drift of the machine during a run affects all modes alike. [`estimate`] has the
//! expected duration, [`text`] the output of `--dry-run`, [`calibration`] the plan of a calibration, [`comparison`]
//! that of a comparison of two sets of settings.

mod calibration;
mod cell;
mod comparison;
mod deployment;
mod estimate;
pub(crate) mod order;
mod text;
mod trial;

pub use calibration::Arm;
pub use cell::cells;
pub use comparison::{ComparedCell, ComparisonArm, compared_cells};
pub use text::{brief, described, offered};
pub use trial::PlannedTrial;

use crate::definition::{Experiment, Fresh};
use crate::environment::spec::DeploymentSpec;
use crate::settings::stream;
use crate::topology::Topology;
use cell::{MeasuredCells, level_points, load_in};
use order::ordered;
use results::random::SplitMix64;
use results::{Factors, LoadPoint, Mode, OwnedCellKey, Pacing};
use std::sync::Arc;

/// Maximum share of a run's trials that is rerun: if more are disturbed, the machine is too noisy for the
/// experiment.
const RETAKEN_FRACTION: f64 = 1.0 / 3.0;

/// Maximum number of reruns in a run with this many trials and this limit per trial.
#[must_use]
pub fn max_reruns(trials: usize, of_each: usize) -> usize {
    let share = (trials as f64 * RETAKEN_FRACTION) as usize;
    (trials * of_each).min(share.max(1))
}

/// All trials of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Name of the experiment.
    pub name: String,
    /// Seed of the order.
    pub seed: u64,
    /// Trials in execution order.
    pub trials: Vec<PlannedTrial>,
    /// Maximum number of reruns of each trial that the machine disturbed.
    pub retakes: usize,
}

impl Plan {
    /// Expands an experiment into its trials.
    #[must_use]
    pub fn new(experiment: &Experiment, seed: u64) -> Self {
        let combinations: Vec<(Factors, &Experiment)> = experiment.each_combination().collect();
        let specs: Vec<Vec<DeploymentSpec>> =
            combinations.iter().map(|(_, one)| specs(one, &experiment.modes)).collect();
        let loads: Vec<Vec<LoadPoint>> =
            combinations.iter().map(|(_, one)| level_points(one, experiment)).collect();
        let measured = MeasuredCells::new(experiment);
        let mut random = SplitMix64::new(seed);
        let mut trials = Vec::new();
        for repeat in 0..experiment.repeats {
            let generator_seeds: Vec<u64> = loads[0].iter().map(|_| random.bits()).collect();
            let planned = ordered(experiment, &mut random).into_iter().filter_map(|position| {
                let (_, one) = &combinations[position.combination];
                let factors = measured.factors(position.mode, position.combination)?.clone();
                let load = load_in(&factors, loads[position.combination][position.level].clone());
                let queries = load.stream.iter().map(stream::query).collect();
                Some(PlannedTrial {
                    index: 0,
                    repeat,
                    factors,
                    load,
                    fleet: one.fleet.clone(),
                    spec: specs[position.combination][position.mode].clone(),
                    deployment: 0,
                    warmup: one.load.warmup,
                    duration: one.load.duration,
                    timeout: one.load.timeout,
                    expected_status: one.load.expected_status.clone(),
                    threads: one.load.threads,
                    generators: one.load.generators,
                    pacing: one.load.pacing,
                    queries,
                    generator_seed: generator_seeds[position.level],
                })
            });
            let next = trials.last().map_or(0, |last: &PlannedTrial| last.deployment + 1);
            let fresh =
                |trial: &PlannedTrial| experiment.fresh.unwrap_or_else(|| Fresh::default_for(&trial.spec));
            for trial in deployment::group(planned.collect(), next, fresh) {
                trials.push(PlannedTrial { index: trials.len(), ..trial });
            }
        }
        Self { name: experiment.name.clone(), seed, trials, retakes: experiment.retakes }
    }

    /// Sets the pacing of the generators in all trials.
    pub fn set_pacing(&mut self, pacing: Pacing) {
        self.trials.iter_mut().for_each(|trial| trial.pacing = Some(pacing));
    }

    /// Maximum number of reruns in the whole run.
    #[must_use]
    pub fn max_reruns(&self) -> usize {
        max_reruns(self.trials.len(), self.retakes)
    }

    /// Trials of each repeat, in execution order.
    pub fn repeats(&self) -> impl Iterator<Item = &[PlannedTrial]> {
        self.trials.chunk_by(|one, next| one.repeat == next.repeat)
    }
}

/// Topology of a cell; absent if the experiment has no such cell.
#[must_use]
pub fn topology_of(experiment: &Experiment, cell: &OwnedCellKey) -> Option<Arc<Topology>> {
    let one = experiment.combination_of(&cell.factors)?;
    let modes = experiment.modes.contains(&cell.mode).then_some(cell.mode);
    specs(one, modes.as_slice()).pop().map(|spec| spec.topology)
}

/// A deployment specification per mode, in this order. Modes share a topology if it is the same for them.
fn specs(experiment: &Experiment, modes: &[Mode]) -> Vec<DeploymentSpec> {
    let mut topologies: Vec<Arc<Topology>> = Vec::new();
    let spec = |mode: &Mode| {
        let made = experiment.topology.topology(
            *mode,
            experiment.load.protocol,
            &experiment.server,
            experiment.client_cpu_limit_cores,
        );
        let mut made = made.expect("the reader of the experiment made this topology before");
        if let Some(fleet) = experiment.fleet.as_ref().filter(|_| *mode == Mode::ControlPlane) {
            made = crate::topology::fleet(fleet.witnesses);
        }
        made.set_generators(experiment.load.generators);
        if experiment.load.stream.declared {
            made.drivers.iter_mut().for_each(|driver| stream::CHAT_PATH.clone_into(&mut driver.endpoint));
        }
        let topology = topologies.iter().find(|other| ***other == made).cloned().unwrap_or_else(|| {
            topologies.push(Arc::new(made));
            Arc::clone(&topologies[topologies.len() - 1])
        });
        DeploymentSpec {
            mesh: experiment.mesh,
            mode: *mode,
            topology,
            proxy: experiment.proxy.clone(),
            components: experiment.components.clone(),
            istio: Arc::clone(&experiment.istio),
            ingress: Arc::clone(&experiment.ingress),
            gateway: experiment.gateway.clone(),
        }
    };
    modes.iter().map(spec).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh_kind::MeshKind;
    use crate::topology::pair;
    use results::UnavailableMode;
    use std::collections::BTreeSet;

    fn experiment(text: &str) -> Experiment {
        Experiment::parse(text, "test").unwrap()
    }

    #[test]
    fn trial_is_deployed_as_its_mode_whichever_modes_are_left_out() {
        let all = ["none", "ambient", "ingress", "sidecar"];
        for (first, left_out) in (0..all.len()).flat_map(|first| (0..16_u32).map(move |set| (first, set))) {
            let mut order = all;
            order.rotate_left(first);
            let text = format!(
                "{{name: s, mesh: istio, modes: [{}], load: {{rate: 100, connections: [2, 4]}}, repeats: 2}}",
                order.join(", ")
            );
            let mut experiment = experiment(&text);
            let is_left_out = |mode: Mode| all.iter().position(|name| *name == mode.name()).unwrap();
            let unavailable: Vec<UnavailableMode> = experiment
                .modes
                .iter()
                .filter(|mode| left_out >> is_left_out(**mode) & 1 == 1)
                .map(|mode| UnavailableMode {
                    mode: *mode,
                    factors: Factors::new(),
                    reason: "no ztunnel".into(),
                    hint: None,
                })
                .collect();
            experiment.leave_out(&unavailable);
            let plan = Plan::new(&experiment, 1);
            assert_eq!(plan.trials.len(), 2 * 2 * (all.len() - unavailable.len()), "{text} {left_out:b}");
            for trial in &plan.trials {
                assert!(experiment.modes.contains(&trial.mode()), "{text} {left_out:b}: {}", trial.mode());
                let alone = format!(
                    "{{name: s, mesh: istio, modes: [{}], load: {{rate: 100, connections: 2}}}}",
                    trial.mode()
                );
                let alone = Plan::new(&self::experiment(&alone), 1);
                assert_eq!(trial.spec, alone.trials[0].spec, "{text} {left_out:b}: {}", trial.mode());
            }
        }
    }

    #[test]
    fn dry_run_lists_every_trial() {
        let small = experiment(
            "{name: small, modes: [none, gateway, sidecar], load: {rate: [500, 1000]}, repeats: 2}",
        );
        insta::assert_snapshot!(Plan::new(&small, 7).to_string());
    }

    #[test]
    fn dry_run_shows_maximum_duration_with_retakes() {
        let text = |retakes: usize| {
            let of = format!(
                "{{name: s, modes: [none, sidecar], load: {{rate: 500, duration: 3s, warmup: 1200ms}}, repeats: 6, retakes: {retakes}}}"
            );
            Plan::new(&experiment(&of), 7).to_string()
        };
        assert!(!text(0).contains("rerun"), "{}", text(0));
        // 12 trials of 5 s; a third of them is 4.
        assert!(text(1).starts_with("s: 12 trials in 6 repeats, about 1m 00s"), "{}", text(1));
        assert!(
            text(1).contains("each at most once, at most 4 in all; the run then takes about 1m 20s"),
            "{}",
            text(1)
        );
        assert!(text(2).contains("each at most 2 times, at most 4 in all"), "{}", text(2));
    }

    #[test]
    fn only_open_loops_have_arrivals_in_the_dry_run() {
        let text = |load: &str| {
            Plan::new(&experiment(&format!("{{name: s, modes: [none], load: {{{load}}}}}")), 7).to_string()
        };
        assert!(text("rate: 500").contains(", uniform arrivals"), "{}", text("rate: 500"));
        assert!(!text("clients: [4, 8]").contains("arrivals"), "{}", text("clients: [4, 8]"));
    }

    #[test]
    fn at_most_a_third_of_trials_or_one_is_rerun() {
        assert_eq!([0, 1, 2].map(|each| max_reruns(60, each)), [0, 20, 20]);
        assert_eq!([1, 2, 3, 5, 6].map(|trials| max_reruns(trials, 1)), [1, 1, 1, 1, 2]);
        assert_eq!(max_reruns(0, 3), 0);
    }

    #[test]
    fn each_repeat_has_every_cell_once_and_modes_see_same_arrivals() {
        let closed = experiment("{name: c, modes: [none, sidecar], load: {clients: [1, 2, 4]}, repeats: 20}");
        let plan = Plan::new(&closed, 3);
        assert_eq!(plan.trials.len(), 120);
        let mut orders = BTreeSet::new();
        for repeat in 0..20 {
            let trials: Vec<_> = plan.trials.iter().filter(|trial| trial.repeat == repeat).collect();
            let order: Vec<_> = trials.iter().map(|trial| (trial.mode(), trial.load.clients)).collect();
            assert_eq!(order.iter().collect::<BTreeSet<_>>().len(), 6);
            orders.insert(order);
            for clients in [1, 2, 4] {
                let seeds: BTreeSet<u64> = trials
                    .iter()
                    .filter(|trial| trial.load.clients == Some(clients))
                    .map(|trial| trial.generator_seed)
                    .collect();
                assert_eq!(seeds.len(), 1);
            }
        }
        assert!(orders.len() > 15, "20 repeats have {} orders", orders.len());
        assert!(plan.trials.iter().enumerate().all(|(index, trial)| trial.index == index));
    }

    #[test]
    fn mesh_sizes_vary_slower_than_modes_and_in_every_order() {
        let text = |services: &str| {
            format!(
                "{{name: s, mesh: istio, modes: [none, sidecar], load: {{rate: [100, 500]}}, repeats: 60, \
                 istio: {{background-services: {{services: {services}}}}}}}"
            )
        };
        let several = Plan::new(&experiment(&text("[0, 200, 1000]")), 5);
        assert_eq!(several.trials.len(), 480);
        let mut orders = BTreeSet::new();
        for repeat in several.repeats() {
            let size = |trial: &PlannedTrial| trial.spec.istio.background_services.services;
            let blocks: Vec<&[PlannedTrial]> = repeat.chunk_by(|one, next| size(one) == size(next)).collect();
            assert_eq!((repeat.len(), blocks.len()), (8, 3));
            orders.insert(blocks.iter().map(|block| size(&block[0])).collect::<Vec<_>>());
            for trial in repeat {
                // Mode `none` has no proxies that would receive them: it is measured in the mesh of the first size.
                let is_none = trial.mode() == Mode::None;
                assert_eq!(trial.load.surrounding_services, (!is_none).then(|| size(trial)));
                assert_eq!((trial.factors.is_empty(), is_none && size(trial) > 0), (is_none, false));
            }
            let seeds: BTreeSet<u64> = repeat.iter().map(|trial| trial.generator_seed).collect();
            assert_eq!(seeds.len(), 2, "one for each rate, whatever the mode and the size");
        }
        assert_eq!(orders.len(), 6);
        // A single size is planned like an experiment without sizes.
        let single = Plan::new(&experiment(&text("200")), 5);
        let none = Plan::new(&experiment(&text("0")), 5);
        let order = |plan: &Plan| {
            let trials = plan.trials.iter();
            trials.map(|trial| (trial.mode(), trial.load.clone(), trial.generator_seed)).collect::<Vec<_>>()
        };
        assert_eq!(order(&single), order(&none));
        assert!(single.trials.iter().all(|trial| trial.factors.is_empty()));
        assert_eq!(single.trials[0].spec.istio.background_services.services, 200);
    }

    #[test]
    fn dry_run_shows_a_column_per_factor() {
        let text = "{name: two, modes: [none, sidecar], load: {clients: 8, connections: [8, 16]}, repeats: 1, \
                    proxy: {cpu: [250m, 1]}}";
        insta::assert_snapshot!(Plan::new(&experiment(text), 7).to_string());
    }

    #[test]
    fn expensive_factors_vary_slowest() {
        let text = "{name: s, mesh: istio, modes: [none, sidecar], load: {rate: 100, connections: [2, 4]}, repeats: 40, \
                    topology: {namespaces: [1, 2]}, istio: {background-services: {services: [0, 200, 1000]}}}";
        let plan = Plan::new(&experiment(text), 5);
        assert_eq!(plan.trials.len(), (12 + 4) * 40, "sizes do not touch mode none");
        let size = |trial: &PlannedTrial| trial.spec.istio.background_services.services;
        let namespaces = |trial: &PlannedTrial| trial.spec.topology.namespaces().len();
        let changes = |trials: &[PlannedTrial], values: &dyn Fn(&PlannedTrial) -> [usize; 2]| {
            trials.windows(2).filter(|pair| values(&pair[0]) != values(&pair[1])).count()
        };
        let mut orders = BTreeSet::new();
        for repeat in plan.repeats() {
            assert_eq!(changes(repeat, &|trial| [size(trial), 0]), 2);
            assert_eq!(changes(repeat, &|trial| [size(trial), namespaces(trial)]), 5);
            let cells: BTreeSet<String> = repeat.iter().map(|trial| format!("{:?}", trial.cell())).collect();
            assert_eq!(cells.len(), 16);
            orders.insert(repeat.iter().map(|trial| trial.load.connections).collect::<Vec<_>>());
        }
        assert!(orders.len() > 35, "connections vary at random: {} orders", orders.len());
        let trial = &plan.trials[0];
        assert_eq!(
            trial.spec.topology.namespaces().len().to_string(),
            trial.factors["topology.namespaces"].to_string()
        );
        assert_eq!(trial.load.connections.to_string(), trial.factors["load.connections"].to_string());
    }

    #[test]
    fn trials_of_a_mode_share_a_deployment_with_fresh_mode() {
        let text = "{name: f, modes: [none, gateway, sidecar], load: {rate: [100, 200, 400]}, repeats: 20}";
        let per_trial = Plan::new(&experiment(text), 3);
        let deployments: Vec<usize> = per_trial.trials.iter().map(|trial| trial.deployment).collect();
        assert_eq!(deployments, (0..180).collect::<Vec<_>>(), "small topologies: one per trial");
        let per_mode = Plan::new(&Experiment { fresh: Some(Fresh::Mode), ..experiment(text) }, 3);
        let (mut orders, mut loads) = (BTreeSet::new(), BTreeSet::new());
        for (number, shared) in per_mode.trials.chunks(3).enumerate() {
            assert!(
                shared.iter().all(|trial| trial.deployment == number && trial.mode() == shared[0].mode())
            );
            loads.insert(shared.iter().map(|trial| trial.load.rate.unwrap() as u64).collect::<Vec<_>>());
        }
        for repeat in per_mode.repeats() {
            assert_eq!(repeat.len(), 9);
            orders.insert(repeat.iter().map(|trial| trial.mode()).collect::<Vec<_>>());
        }
        assert_eq!((orders.len(), loads.len()), (6, 6), "every order");
        assert!(per_mode.trials.iter().enumerate().all(|(index, trial)| trial.index == index));
        assert!(per_mode.estimated_time() < per_trial.estimated_time());
    }

    #[test]
    fn large_topologies_are_deployed_per_mode_by_default() {
        let default_for = |namespaces| {
            let topology = pair(
                namespaces,
                1,
                crate::protocol::Protocol::default(),
                &crate::environment::ServerSettings::default(),
                false,
                None,
            );
            let spec = DeploymentSpec::new(MeshKind::Istio, Mode::Sidecar);
            Fresh::default_for(&DeploymentSpec { topology: Arc::new(topology), ..spec })
        };
        assert_eq!((default_for(5), default_for(6)), (Fresh::Trial, Fresh::Mode));
    }

    #[test]
    fn every_order_is_about_as_likely() {
        let three =
            experiment("{name: t, modes: [none, gateway, sidecar], load: {rate: 1000}, repeats: 600}");
        let mut counts = std::collections::BTreeMap::new();
        for repeat in Plan::new(&three, 1).trials.chunks(3) {
            *counts.entry(repeat.iter().map(|trial| trial.mode()).collect::<Vec<_>>()).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 6);
        // 100 expected each; six standard deviations are 55.
        assert!(counts.values().all(|count| (45..=155).contains(count)), "{counts:?}");
    }
}

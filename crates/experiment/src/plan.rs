//! The plan of a run: every trial, in the order in which it will run.
//!
//! Each repeat holds every cell (a mode under a load) once, in an order of its own, so that what changes on the machine
//! during a run meets all modes alike. Where sizes of the mesh are compared, each repeat goes through them in an order of its
//! own, and through the cells of each in one of theirs: a change of size takes seconds. The order comes from the seed by SplitMix64 and a Fisher-Yates shuffle, both
//! written out here: a seed gives the same order for ever, whatever becomes of random number libraries.

mod deployment;

use crate::definition::{Arrival, Experiment, Fresh, LoadLevels};
use crate::environment::DeploymentSpec;
use crate::schema::LoadPoint;
use crate::topology::pair;
use crate::units::{format_duration, format_rate};
use crate::{MeshKind, MeshSettings, Mode};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What a trial takes beside its load: starting pods and proxies, reading counters, taking all down. Measured in the lab
/// on two cores; only the estimate of a run's length rests on it.
fn overhead(spec: &DeploymentSpec) -> Duration {
    let told = if spec.mode == Mode::None { 0 } else { spec.istio.surroundings.services };
    OF_A_SERVICE_TOLD * u32::try_from(told).unwrap_or(u32::MAX) + of_an_arrangement(spec)
}

fn of_an_arrangement(spec: &DeploymentSpec) -> Duration {
    match (spec.mesh, spec.mode) {
        (MeshKind::Envoy, _) => Duration::from_millis(800),
        (MeshKind::Istio, Mode::None) => Duration::from_secs(1),
        // Besides, the last spans come five seconds late.
        (MeshKind::Istio, _) if spec.istio.tracing_fraction.is_some_and(|share| share > 0.0) => {
            Duration::from_secs(9)
        }
        // Proxies get their certificates and configuration from the control plane.
        (MeshKind::Istio, _) => Duration::from_secs(4),
    }
}

/// One of the other services, until the API has it or is rid of it and istiod knows.
const OF_A_SERVICE: Duration = Duration::from_millis(6);

/// Each of them in every trial: the proxies are told of it, and tell of it when they are asked what they hold.
const OF_A_SERVICE_TOLD: Duration = Duration::from_millis(2);

/// A control plane starts once in a run.
const CONTROL_PLANE_START: Duration = Duration::from_secs(12);

/// More than this share of a run's trials are not taken again: such a machine is too noisy for the experiment.
const RETAKEN_FRACTION: f64 = 1.0 / 3.0;

/// How many trials are taken again at most in a run of so many, where each of them is as often.
#[must_use]
pub fn most_retakes(trials: usize, of_each: usize) -> usize {
    let share = (trials as f64 * RETAKEN_FRACTION) as usize;
    (trials * of_each).min(share.max(1))
}

/// Every trial of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The experiment's name.
    pub name: String,
    /// The seed that the order comes from.
    pub seed: u64,
    /// In the order of execution.
    pub trials: Vec<PlannedTrial>,
    /// How often each of them that the machine disturbed is taken again, at most.
    pub retakes: usize,
}

/// One trial to run: one mode under one load, once.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedTrial {
    /// Place in the order of execution, from 0.
    pub index: usize,
    /// Which repeat it belongs to, from 0.
    pub repeat: usize,
    /// The arrangement of proxies.
    pub mode: Mode,
    /// The load to offer.
    pub load: LoadPoint,
    /// What the environment must prepare.
    pub spec: DeploymentSpec,
    /// Number of the deployment that it runs in, from 0. Trials that share one stand next to each other.
    pub deployment: usize,
    /// Time under load before the measured window.
    pub warmup: Duration,
    /// The measured window.
    pub duration: Duration,
    /// After this a request counts as failed.
    pub timeout: Duration,
    /// The generator's worker threads.
    pub threads: usize,
    /// The generator's seed. The same for every mode of a repeat under the same load, so that they meet the same arrivals.
    pub generator_seed: u64,
}

impl Plan {
    /// Expands an experiment.
    #[must_use]
    pub fn new(experiment: &Experiment, seed: u64) -> Self {
        let levels = level_points(experiment);
        let mut random = SplitMix64 { state: seed };
        let mut trials = Vec::new();
        let sizes = sizes(experiment);
        for repeat in 0..experiment.repeats {
            let generator_seeds: Vec<u64> = levels.iter().map(|_| random.next()).collect();
            let mut order: Vec<usize> = (0..sizes.len()).collect();
            // A single size draws nothing: its orders are those of an experiment that knows of no sizes.
            shuffle(&mut order, &mut random);
            let mut of_repeat = Vec::new();
            for size in order {
                let mut cells: Vec<(usize, Mode)> = (0..levels.len())
                    .flat_map(|level| experiment.modes.iter().map(move |mode| (level, *mode)))
                    .collect();
                shuffle(&mut cells, &mut random);
                let (services, istio) = &sizes[size];
                for (level, mode) in cells {
                    let load = LoadPoint { surrounding_services: *services, ..levels[level].clone() };
                    let trial = planned(experiment, istio, mode, load);
                    of_repeat.push(PlannedTrial { repeat, generator_seed: generator_seeds[level], ..trial });
                }
            }
            let next = trials.last().map_or(0, |last: &PlannedTrial| last.deployment + 1);
            let fresh =
                |trial: &PlannedTrial| experiment.fresh.unwrap_or_else(|| Fresh::default_for(&trial.spec));
            for trial in deployment::group(of_repeat, next, fresh) {
                trials.push(PlannedTrial { index: trials.len(), ..trial });
            }
        }
        Self { name: experiment.name.clone(), seed, trials, retakes: experiment.retakes }
    }

    /// How many trials are taken again at most, all together.
    #[must_use]
    pub fn most_retakes(&self) -> usize {
        most_retakes(self.trials.len(), self.retakes)
    }

    /// The trials of each repeat, in the order of execution.
    pub fn repeats(&self) -> impl Iterator<Item = &[PlannedTrial]> {
        self.trials.chunk_by(|one, next| one.repeat == next.repeat)
    }

    /// How long the run will take, about, where no trial is taken again.
    #[must_use]
    pub fn estimated_time(&self) -> Duration {
        let needs_control_plane = self.trials.iter().any(|trial| trial.spec.mesh == MeshKind::Istio);
        let once = if needs_control_plane { CONTROL_PLANE_START } else { Duration::ZERO };
        let trials = self.trials.iter().map(PlannedTrial::load_time).sum::<Duration>();
        let deployments = self.trials.chunk_by(|one, next| one.deployment == next.deployment);
        let overheads = deployments.map(|shared| overhead(&shared[0].spec)).sum::<Duration>();
        once + self.changed_services() * OF_A_SERVICE + overheads + trials
    }

    /// How long it can become, about, by the trials that are taken again.
    #[must_use]
    pub fn longest_time(&self) -> Duration {
        let longest = self.trials.iter().map(PlannedTrial::estimated_time).max().unwrap_or_default();
        self.estimated_time() + longest * u32::try_from(self.most_retakes()).unwrap_or(u32::MAX)
    }

    /// Other services that are written or removed between the trials of the run, the first included.
    fn changed_services(&self) -> u32 {
        let mut there = 0;
        let changes = self.trials.iter().map(|trial| {
            let before = std::mem::replace(&mut there, trial.spec.istio.surroundings.services);
            there.abs_diff(before)
        });
        u32::try_from(changes.sum::<usize>()).unwrap_or(u32::MAX)
    }
}

impl PlannedTrial {
    fn load_time(&self) -> Duration {
        self.warmup + self.duration
    }

    /// Estimate for a trial with a deployment of its own.
    fn estimated_time(&self) -> Duration {
        self.load_time() + overhead(&self.spec)
    }
}

/// A trial but for its place in the plan and its seed.
fn planned(experiment: &Experiment, istio: &Arc<MeshSettings>, mode: Mode, load: LoadPoint) -> PlannedTrial {
    PlannedTrial {
        index: 0,
        repeat: 0,
        mode,
        load,
        spec: DeploymentSpec {
            mesh: experiment.mesh,
            mode,
            topology: Arc::new(pair(
                1,
                1,
                &experiment.server,
                mode.is_egress(),
                experiment.client_cpu_limit_cores,
            )),
            protocol: experiment.load.protocol,
            proxy: experiment.proxy.clone(),
            istio: Arc::clone(istio),
            server: experiment.server.clone(),
            client_cpu_limit_cores: experiment.client_cpu_limit_cores,
        },
        deployment: 0,
        warmup: experiment.load.warmup,
        duration: experiment.load.duration,
        timeout: experiment.load.timeout,
        threads: experiment.load.threads,
        generator_seed: 0,
    }
}

/// Each size of the mesh with its settings; the number is there only where there are several.
fn sizes(experiment: &Experiment) -> Vec<(Option<usize>, Arc<MeshSettings>)> {
    if experiment.mesh_sizes.len() < 2 {
        return vec![(None, Arc::clone(&experiment.istio))];
    }
    let of_size = |services: &usize| {
        let mut settings = MeshSettings::clone(&experiment.istio);
        settings.surroundings.services = *services;
        (Some(*services), Arc::new(settings))
    };
    experiment.mesh_sizes.iter().map(of_size).collect()
}

/// The loads of an experiment's cells, by size of the mesh and then by level, each in the order of the file.
#[must_use]
pub fn load_points(experiment: &Experiment) -> Vec<LoadPoint> {
    let levels = level_points(experiment);
    let at = |services: Option<usize>| {
        let levels = levels.iter();
        levels.map(move |load| LoadPoint { surrounding_services: services, ..load.clone() })
    };
    sizes(experiment).into_iter().flat_map(|(services, _)| at(services)).collect()
}

/// The levels of load, whatever the size of the mesh.
fn level_points(experiment: &Experiment) -> Vec<LoadPoint> {
    let point = |rate, clients: Option<usize>, arrival: Arrival| LoadPoint {
        protocol: experiment.load.protocol.to_string(),
        rate,
        clients,
        connections: experiment.load.connections.or(clients).unwrap_or(1),
        payload_bytes: experiment.server.payload_bytes,
        arrival: arrival.name().to_owned(),
        surrounding_services: None,
    };
    match &experiment.load.levels {
        LoadLevels::Open { rates, arrival } => {
            rates.iter().map(|rate| point(Some(*rate), None, *arrival)).collect()
        }
        LoadLevels::Closed { clients } => {
            clients.iter().map(|clients| point(None, Some(*clients), Arrival::Uniform)).collect()
        }
    }
}

/// Fisher-Yates: every order is as likely as any other.
fn shuffle<T>(items: &mut [T], random: &mut SplitMix64) {
    for last in (1..items.len()).rev() {
        items.swap(last, random.below(last as u64 + 1) as usize);
    }
}

/// Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014); constants as in the reference
/// code of Vigna (<https://prng.di.unimi.it/splitmix64.c>).
struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number under the bound, each as likely. The bias of the multiplication is under 2⁻⁵⁰ for any number of cells.
    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

/// What `--dry-run` prints.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let repeats = self.trials.last().map_or(0, |trial| trial.repeat + 1);
        writeln!(
            f,
            "{}: {} trials in {repeats} {}, about {}, seed {}",
            self.name,
            self.trials.len(),
            if repeats == 1 { "repeat" } else { "repeats" },
            rounded(self.estimated_time()),
            self.seed
        )?;
        if let Some(trial) = self.trials.first() {
            writeln!(
                f,
                "each: {} warm-up, {} measured, {} of {} bytes on {} connections, {} arrivals",
                format_duration(trial.warmup),
                format_duration(trial.duration),
                trial.load.protocol,
                trial.load.payload_bytes,
                trial.load.connections,
                trial.load.arrival
            )?;
        }
        if self.retakes > 0 {
            writeln!(
                f,
                "disturbed trials are taken again after their repeat: each at most {}, at most {} in all; the run then takes \
                 about {}",
                if self.retakes == 1 { "once".to_owned() } else { format!("{} times", self.retakes) },
                self.most_retakes(),
                rounded(self.longest_time())
            )?;
        }
        writeln!(f, "\n{:>5}  {:>6}  {:<20}  load", "trial", "repeat", "mode")?;
        for trial in &self.trials {
            writeln!(
                f,
                "{:>5}  {:>6}  {:<20}  {}",
                trial.index + 1,
                trial.repeat + 1,
                trial.mode,
                offered(&trial.load)
            )?;
        }
        Ok(())
    }
}

/// A load in words, such as `1000 requests/s` or `8 clients`; where sizes of the mesh are compared, such as
/// `1000 requests/s among 200 other services`.
#[must_use]
pub fn offered(load: &LoadPoint) -> String {
    let offered = strength(load);
    match load.surrounding_services {
        None => offered,
        Some(0) => format!("{offered} among no other services"),
        Some(1) => format!("{offered} among 1 other service"),
        Some(services) => format!("{offered} among {services} other services"),
    }
}

fn strength(load: &LoadPoint) -> String {
    match (load.rate, load.clients) {
        (Some(rate), _) => format!("{} requests/s", format_rate(rate)),
        (None, Some(1)) => "1 client".into(),
        (None, Some(clients)) => format!("{clients} clients"),
        (None, None) => "no load".into(),
    }
}

/// A duration as one would say it: to the second, to the minute above ten minutes.
fn rounded(duration: Duration) -> String {
    let seconds = duration.as_secs_f64().ceil() as u64;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        600..3600 => format!("{}m", seconds.div_ceil(60)),
        _ => format!("{}h {:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn experiment(text: &str) -> Experiment {
        Experiment::parse(text, "test").unwrap()
    }

    #[test]
    fn the_dry_run_lists_every_trial() {
        let small = experiment(
            "{name: small, modes: [none, gateway, sidecar], load: {rate: [500, 1000]}, repeats: 2}",
        );
        insta::assert_snapshot!(Plan::new(&small, 7).to_string());
    }

    #[test]
    fn the_dry_run_says_how_long_retakes_can_make_a_run() {
        let text = |retakes: usize| {
            let of = format!(
                "{{name: s, modes: [none, sidecar], load: {{rate: 500, duration: 3s, warmup: 1200ms}}, repeats: 6, retakes: {retakes}}}"
            );
            Plan::new(&experiment(&of), 7).to_string()
        };
        assert!(!text(0).contains("again"), "{}", text(0));
        // 12 trials of 5 s; a third of them are 4.
        assert!(text(1).starts_with("s: 12 trials in 6 repeats, about 1m 00s"), "{}", text(1));
        assert!(
            text(1).contains("each at most once, at most 4 in all; the run then takes about 1m 20s"),
            "{}",
            text(1)
        );
        assert!(text(2).contains("each at most 2 times, at most 4 in all"), "{}", text(2));
    }

    #[test]
    fn at_most_a_third_of_the_trials_is_taken_again_and_one_where_there_are_fewer() {
        assert_eq!([0, 1, 2].map(|each| most_retakes(60, each)), [0, 20, 20]);
        assert_eq!([1, 2, 3, 5, 6].map(|trials| most_retakes(trials, 1)), [1, 1, 1, 1, 2]);
        assert_eq!(most_retakes(0, 3), 0);
    }

    #[test]
    fn each_repeat_holds_every_cell_once_and_modes_meet_the_same_arrivals() {
        let closed = experiment("{name: c, modes: [none, sidecar], load: {clients: [1, 2, 4]}, repeats: 20}");
        let plan = Plan::new(&closed, 3);
        assert_eq!(plan.trials.len(), 120);
        let mut orders = BTreeSet::new();
        for repeat in 0..20 {
            let trials: Vec<_> = plan.trials.iter().filter(|trial| trial.repeat == repeat).collect();
            let order: Vec<_> = trials.iter().map(|trial| (trial.mode, trial.load.clients)).collect();
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
    fn sizes_of_the_mesh_change_slower_than_modes_and_in_every_order() {
        let text = |services: &str| {
            format!(
                "{{name: s, mesh: istio, modes: [none, sidecar], load: {{rate: [100, 500]}}, repeats: 60, \
                 istio: {{surroundings: {{services: {services}}}}}}}"
            )
        };
        let several = Plan::new(&experiment(&text("[0, 200, 1000]")), 5);
        assert_eq!(several.trials.len(), 720);
        let mut orders = BTreeSet::new();
        for repeat in several.trials.chunks(12) {
            let sizes: Vec<Option<usize>> =
                repeat.iter().map(|trial| trial.load.surrounding_services).collect();
            let blocks: Vec<&[Option<usize>]> = sizes.chunks(4).collect();
            assert!(blocks.iter().all(|block| block.iter().all(|size| *size == block[0])), "{sizes:?}");
            orders.insert(blocks.iter().map(|block| block[0]).collect::<Vec<_>>());
            for trial in repeat {
                assert_eq!(Some(trial.spec.istio.surroundings.services), trial.load.surrounding_services);
            }
            let seeds: BTreeSet<u64> = repeat.iter().map(|trial| trial.generator_seed).collect();
            assert_eq!(seeds.len(), 2, "one for each rate, whatever the mode and the size");
        }
        assert_eq!(orders.len(), 6);
        // A single size is planned as if there were no sizes.
        let single = Plan::new(&experiment(&text("200")), 5);
        let none = Plan::new(&experiment(&text("0")), 5);
        let order = |plan: &Plan| {
            let trials = plan.trials.iter();
            trials.map(|trial| (trial.mode, trial.load.clone(), trial.generator_seed)).collect::<Vec<_>>()
        };
        assert_eq!(order(&single), order(&none));
        assert_eq!(single.trials[0].spec.istio.surroundings.services, 200);
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
            assert!(shared.iter().all(|trial| trial.deployment == number && trial.mode == shared[0].mode));
            loads.insert(shared.iter().map(|trial| trial.load.rate.unwrap() as u64).collect::<Vec<_>>());
        }
        for repeat in per_mode.repeats() {
            assert_eq!(repeat.len(), 9);
            orders.insert(repeat.iter().map(|trial| trial.mode).collect::<Vec<_>>());
        }
        assert_eq!((orders.len(), loads.len()), (6, 6), "every order");
        assert!(per_mode.trials.iter().enumerate().all(|(index, trial)| trial.index == index));
        assert!(per_mode.estimated_time() < per_trial.estimated_time());
    }

    #[test]
    fn large_topologies_are_deployed_per_mode_by_default() {
        let default_for = |namespaces| {
            let topology = pair(namespaces, 1, &crate::environment::ServerSettings::default(), false, None);
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
            *counts.entry(repeat.iter().map(|trial| trial.mode).collect::<Vec<_>>()).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 6);
        // 100 expected each; six standard deviations are 55.
        assert!(counts.values().all(|count| (45..=155).contains(count)), "{counts:?}");
    }

    #[test]
    fn random_numbers_are_those_of_the_reference_code() {
        let mut random = SplitMix64 { state: 1_234_567 };
        let first: Vec<u64> = (0..3).map(|_| random.next()).collect();
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }
}

//! `meshmeter run`: from an experiment to its report.
//!
//! Experiment → plan → a lab of its own, or a cluster → trial after trial, each written to disk as it ends →
//! summary → report. `coordinator.rs` goes from one trial to the next, `trial.rs` runs one on a deployment,
//! `follow.rs` follows its drivers, `fleet.rs` has what differs for a fleet, `verdict.rs` decides whether its
//! figures may be used. All of them use environments through an interface (`run_environment.rs`); only
//! `on_lab.rs` depends on the lab and only `on_cluster.rs` on clusters. `pacing.rs` chooses how the
//! generators wait, `calibrate.rs` measures what the machine can resolve,
//! `compare` is `meshmeter compare`: a run of two sets of settings that ends when its figures are decided.

mod after_repeat;
pub(super) mod calibrate;
mod clock;
pub(super) mod compare;
mod context;
mod coordinator;
mod detach;
pub(super) mod drivers;
mod failures;
pub(super) mod files;
mod fleet;
mod follow;
mod live;
mod machine;
mod on_cluster;
mod on_lab;
mod pacing;
mod precision;
pub(super) mod progress;
mod rates;
mod resume;
mod run_environment;
mod trial;
pub(super) mod unavailable;
mod usage_by_second;
mod verdict;

use super::releases;
use super::report::{folder_failure, objective_status, publish, read as read_run};
use crate::cli::{OverrideArgs, ReleaseArgs, RunArgs, RunPlace, TrialArgs};
use crate::cpu;
use crate::failure::Failure;
use crate::memory;
use crate::output::{self, tell};
use crate::studies;
use clock::SystemClock;
use context::RunContext;
use coordinator::Coordinator;
use experiment::environment::deploy::Environment;
use experiment::environment::{DeploymentSpec, Scenario};
use experiment::{Experiment, MeshKind, Override, Plan};
use export::Exporter;
use files::FilesBeside;
use live::LiveMetrics;
use progress::RunProgress;
use report::calibration::before_run;
use report::folder::{Existing, RawRun, RunFolder};
use results::{Host, Mode, UnavailableMode};
use run_environment::RunEnvironment;
use std::io::IsTerminal as _;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    if args.on == RunPlace::Cluster {
        on_cluster::check(args)?;
    }
    let mut experiment = read(args)?;
    if args.noise.accept_noise && args.trials.retakes.is_none() {
        // Only noise is a reason for a rerun.
        experiment.retakes = 0;
    }
    check_folder(args.out.as_deref(), args.overwrite)?;
    live::check(&args.export)?;
    let seed = args.trials.seed.or(experiment.seed).unwrap_or_else(draw_seed);
    experiment.seed = Some(seed);
    let plan = Plan::new(&experiment, seed);
    if args.dry_run && args.on == RunPlace::Cluster {
        return on_cluster::print_objects(args, &experiment, &plan);
    }
    if args.dry_run {
        output::print(&plan.to_string())?;
        output::print(&precision::paragraph(&experiment, &plan))?;
        if let Err(failure) = check_needs(&plan) {
            failure.report();
        }
        return Ok(ExitCode::SUCCESS);
    }
    if args.detached.detach {
        if args.on != RunPlace::Cluster {
            return Err(Failure::usage("only a run on a cluster can be detached").with_hint("--on cluster"));
        }
        return detach::run(args, &experiment);
    }
    if args.trials.profile {
        lab::profile::check()?;
    }
    if args.on == RunPlace::Lab
        && let Some(status) = provide_programs(&experiment, &plan, &args.overrides, &args.releases)?
    {
        return Ok(status);
    }
    let title = format!("run {}", experiment.name);
    let session = Session { args, yaml: experiment.to_yaml(), experiment, plan };
    let name = session.experiment.name.clone();
    let start_exporter = || live::start_exporter(&args.export, &name);
    if args.on == RunPlace::Cluster {
        let mut cluster = on_cluster::open(args, &name)?;
        let status = session.run(&mut cluster, start_exporter()?);
        cluster.close();
        return status;
    }
    on_lab::enter_after(&title, &args.overrides, start_exporter, |lab, exporter| session.run(lab, exporter))
}

/// Overrides of an experiment by the options of its trials.
fn trial_overrides(args: &TrialArgs) -> Vec<Override> {
    let mut overrides: Vec<Override> = args.set.iter().map(Override::set).collect();
    overrides.extend(args.retakes.as_ref().map(Override::retakes));
    overrides.extend(args.duration.as_ref().map(Override::duration));
    overrides.extend(args.pacing.as_ref().map(Override::pacing));
    overrides.extend(args.scale.as_ref().map(Override::scale));
    overrides
}

/// Reads the experiment, that of the command line with its overrides, or that of the run to be continued.
fn read(args: &RunArgs) -> Result<Experiment, Failure> {
    let mut overrides = trial_overrides(&args.trials);
    overrides.extend(releases::setting(&args.istio));
    overrides.extend(args.repeats.as_ref().map(Override::repeats));
    let mesh = args.cluster.cluster_mesh.filter(|_| args.on == RunPlace::Cluster);
    let Some(experiment) = &args.experiment else {
        let resumed = resume::experiment(args.resume.as_deref().expect("required without an experiment"))?;
        return match mesh.filter(|mesh| *mesh != resumed.mesh) {
            Some(mesh) => {
                Err(Failure::usage(format!("--cluster-mesh {mesh}: the run has mesh {}", resumed.mesh)))
            }
            None => Ok(resumed),
        };
    };
    let source = ExperimentSource::read(experiment)?;
    if let Some(mesh) = mesh {
        unavailable::take_mesh(&source, &mut overrides, mesh, args.require_all_modes)?;
    }
    let mut read = source.parse(&overrides)?;
    if !are_of_mesh(experiment, read.mesh) {
        read.published.clear();
    }
    Ok(read)
}

/// True if an experiment's published figures apply to its mesh: those of preset studies are not for meshes that
/// clusters alone have.
fn are_of_mesh(experiment: &str, mesh: MeshKind) -> bool {
    MeshKind::IN_LAB.contains(&mesh) || studies::find(experiment).is_none()
}

/// Text of a preset study or a file, which may be one that can be read only once.
pub(super) struct ExperimentSource<'a> {
    experiment: &'a str,
    text: String,
    /// Name in messages.
    title: String,
}

impl<'a> ExperimentSource<'a> {
    pub(super) fn read(experiment: &'a str) -> Result<Self, Failure> {
        let (text, title) = match studies::find(experiment) {
            Some(study) => (study.yaml.to_owned(), format!("{} (preset)", study.name)),
            None => (read_file(experiment)?, experiment.to_owned()),
        };
        Ok(Self { experiment, text, title })
    }

    /// The experiment with these overrides.
    pub(super) fn parse(&self, overrides: &[Override]) -> Result<Experiment, Failure> {
        let colours = std::io::stderr().is_terminal();
        let files = FilesBeside::experiment(self.experiment);
        Experiment::parse_with(&self.text, &self.title, overrides, &files)
            .map_err(|error| Failure::usage(error.render(colours)))
    }
}

fn read_file(name: &str) -> Result<String, Failure> {
    files::read_text(Path::new(name)).map_err(|error| {
        let failure = Failure::usage(format!("read the experiment `{name}`: {error}"));
        if error.kind() != std::io::ErrorKind::NotFound {
            return failure;
        }
        failure.with_hint(match files::meant(name, studies::names()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("name a file, or one of the preset studies: {}", studies::names().join(", ")),
        })
    })
}

/// True if a trial has an Envoy with static files that the experiment does not name.
fn runs_static_envoy(experiment: &Experiment, plan: &Plan) -> bool {
    let has_pinned_envoy = |spec: &DeploymentSpec| {
        spec.mode != Mode::None && spec.components.programs().all(|(name, _)| name != "envoy")
    };
    experiment.mesh == MeshKind::Envoy && plan.trials.iter().any(|trial| has_pinned_envoy(&trial.spec))
}

/// Compares what the plan's deployments and loads need with this machine.
fn check_needs(plan: &Plan) -> Result<(), Failure> {
    if let Some(warning) = cpu::check(plan, allowed_cpus()) {
        tell!("warning: {warning}");
    }
    let Some(available) = memory::available_bytes() else { return Ok(()) };
    if let Some(warning) = memory::check(plan, available)? {
        tell!("warning: {warning}");
    }
    Ok(())
}

/// Distinct deployments of a plan.
fn specs(plan: &Plan) -> Vec<&DeploymentSpec> {
    let mut specs: Vec<&DeploymentSpec> = Vec::new();
    for trial in &plan.trials {
        if !specs.contains(&&trial.spec) {
            specs.push(&trial.spec);
        }
    }
    specs
}

/// Random seed for a run without one. Small, so that it is easy to type.
fn draw_seed() -> u64 {
    let nanos = jiff::Timestamp::now().as_nanosecond();
    // The low digits of the clock are random enough for the order of trials.
    u64::try_from(nanos.rem_euclid(1_000_000)).expect("between 0 and 999 999")
}

/// CPUs that this process may use; respects its affinity and CPU quota.
fn allowed_cpus() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// A run inside its lab, or on its cluster.
struct Session<'a> {
    args: &'a RunArgs,
    /// The experiment, without unavailable modes once these are known.
    experiment: Experiment,
    /// The experiment as requested.
    yaml: String,
    plan: Plan,
}

impl Session<'_> {
    fn run(
        mut self,
        place: &mut dyn RunEnvironment,
        exporter: Option<Exporter>,
    ) -> Result<ExitCode, Failure> {
        let unavailable = self.leave_out_unavailable(place.environment())?;
        self.check_scenarios(place.environment())?;
        self.specs().into_iter().try_for_each(|spec| place.environment().check_settings(spec))?;
        place.check_before(&self.plan)?;
        let (mut folder, earlier) = self.open_folder()?;
        let (earlier, recorded) = earlier.map(|run| (run.host, run.trials)).unzip();
        let recorded = recorded.unwrap_or_default();
        let mut host = self.host(place, unavailable, earlier.map(|host| (host, recorded.len())))?;
        place.keep_logs_in(&folder);
        let mut progress =
            RunProgress::new(&self.plan, folder.path()).accepting_noise(self.args.noise.accept_noise);
        place.report_progress_to(progress.sink());
        folder.write_host(&host).map_err(folder_failure)?;
        let stop = place.stop_request();
        let live = exporter
            .map(|exporter| LiveMetrics::start(exporter, self.args.export.export_interval))
            .transpose()?;
        let (clock, profile) = (SystemClock::new(), self.args.trials.profile);
        let context = RunContext { stop: &stop, clock: &clock, live: live.as_ref(), profile };
        let broken = Coordinator::new(&self.plan, place.environment(), &mut folder, &mut progress, context)
            .after(recorded)
            .run();
        progress.finish();
        if let Some(live) = live {
            host.exports = live.finish();
            folder.write_host(&host).map_err(folder_failure)?;
        }
        // Whatever ended the run, the measured trials are reported.
        let reported = self.report(folder.path());
        match broken {
            Ok(()) => reported,
            Err(failure) => Err(failure),
        }
    }

    /// The machine, measured as far as the run's generators depend on it; sets their pacing. For a run that goes
    /// on, as it was at the beginning (`earlier`, with the number of trials since).
    fn host(
        &mut self,
        place: &mut dyn RunEnvironment,
        unavailable: Vec<UnavailableMode>,
        earlier: Option<(Host, usize)>,
    ) -> Result<Host, Failure> {
        let mut host = machine::described(place.environment(), &self.plan);
        if let Some(cluster) = &mut host.cluster {
            self.experiment.mesh.name().clone_into(&mut cluster.mesh);
        }
        if let Some((earlier, trials)) = earlier {
            let host = resume::host(earlier, trials, &host, &unavailable)?;
            host.pacing.iter().for_each(|chosen| self.plan.set_pacing(chosen.pacing));
            return Ok(host);
        }
        host.refused_modes = unavailable;
        let Experiment { resolve, repeats, load, modes, .. } = &self.experiment;
        machine::measure(&mut host, place, &mut self.plan, modes, &self.args.trials)?;
        // What the calibration resolves for this run, and a warning per requested difference that it does not resolve.
        for sentence in before_run(resolve, *repeats, load.duration, host.calibration.as_ref()) {
            tell!("{sentence}");
        }
        Ok(host)
    }

    /// Distinct deployments of the plan.
    fn specs(&self) -> Vec<&DeploymentSpec> {
        specs(&self.plan)
    }

    /// Removes unavailable modes from the experiment and its plan, and reports them.
    fn leave_out_unavailable(
        &mut self,
        environment: &dyn Environment,
    ) -> Result<Vec<UnavailableMode>, Failure> {
        let mesh = self.experiment.mesh;
        let left_out =
            unavailable::leave_out(&mut self.experiment, self.args.require_all_modes, |mode, components| {
                environment.check_mode(mesh, mode, components)
            })?;
        for mode in &left_out {
            tell!("{}", unavailable::sentence(mode));
            if let Some(hint) = &mode.hint {
                tell!("  hint: {hint}");
            }
        }
        self.plan = Plan::new(&self.experiment, self.plan.seed);
        Ok(left_out)
    }

    fn check_scenarios(&self, environment: &dyn Environment) -> Result<(), Failure> {
        let mut scenarios: Vec<Scenario> =
            self.plan.trials.iter().map(|trial| trial.spec.ingress.scenario).collect();
        scenarios.sort_by_key(|scenario| scenario.name());
        scenarios.dedup();
        Ok(scenarios.into_iter().try_for_each(|scenario| environment.check_scenario(scenario))?)
    }

    /// The run's directory, with the trials that are there if the run is continued.
    fn open_folder(&self) -> Result<(RunFolder, Option<RawRun>), Failure> {
        if let Some(path) = &self.args.resume {
            let (folder, earlier) = resume::open(path)?;
            return Ok((folder, Some(earlier)));
        }
        let RunArgs { out, overwrite, .. } = self.args;
        let folder = create_folder(&self.experiment.name, out.as_deref(), *overwrite, &self.yaml)?;
        Ok((folder, None))
    }

    fn report(&self, folder: &Path) -> Result<ExitCode, Failure> {
        let run = read_run(folder, &self.args.noise)?;
        publish(&run, folder, self.args.json, &self.args.automation)?;
        Ok(objective_status(&run))
    }
}

/// Checks the folder that the command line names for a run, before anything is installed, started or only planned.
fn check_folder(out: Option<&Path>, overwrite: bool) -> Result<(), Failure> {
    out.map_or(Ok(()), |path| RunFolder::check(path, existing(overwrite)).map_err(folder_failure))
}

fn existing(overwrite: bool) -> Existing {
    if overwrite { Existing::Replace } else { Existing::Keep }
}

/// Creates the folder of a run, with its experiment.
fn create_folder(name: &str, out: Option<&Path>, overwrite: bool, yaml: &str) -> Result<RunFolder, Failure> {
    let path = out.map_or_else(|| default_folder(name), Path::to_path_buf);
    let folder = RunFolder::create(&path, existing(overwrite)).map_err(folder_failure)?;
    folder.write_experiment(yaml).map_err(folder_failure)?;
    Ok(folder)
}

/// Installs the missing programs that a plan names. Returns the exit status of an installation that failed and has printed why.
fn provide_programs(
    experiment: &Experiment,
    plan: &Plan,
    overrides: &OverrideArgs,
    args: &ReleaseArgs,
) -> Result<Option<ExitCode>, Failure> {
    let settings = plan.trials.iter().map(|trial| &trial.spec.components);
    if let Some(status) = releases::provide(releases::named(settings), args)? {
        return Ok(Some(status));
    }
    if !runs_static_envoy(experiment, plan) {
        return Ok(None);
    }
    releases::provide_envoy(&overrides.into(), args)
}

/// `runs/<name>-<time>`, with the time in UTC to the second.
fn default_folder(name: &str) -> PathBuf {
    let time = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S");
    Path::new("runs").join(format!("{name}-{time}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_figures_of_istio_are_shown_only_for_istio() {
        assert!(are_of_mesh("mesh-modes", MeshKind::Istio));
        assert!(
            !are_of_mesh("mesh-modes", MeshKind::Linkerd) && !are_of_mesh("mesh-modes", MeshKind::Cilium)
        );
        assert!(
            are_of_mesh("./own.yaml", MeshKind::Linkerd),
            "whoever writes a file knows whose figures it has"
        );
    }
}

//! Runs one trial on a deployment, and builds its record.

use super::context::RunContext;
use super::drivers::{self, DriverRun};
use super::follow::{Followed, follow};
use super::progress::RunProgress;
use super::rates::Counted;
use super::verdict::{self, Ending, Observed};
use experiment::PlannedTrial;
use experiment::dataplane::Entry;
use experiment::environment::deploy::{
    Argument, Deployment, DriverLoad, DriverResult, DriverStart, ServiceCount, TrialEvidence,
};
use experiment::environment::{EnvironmentError, LastLines, ServiceRate, WindowUsage, error_chain};
use results::{
    ComponentUsage, DeploymentUse, DriverRecord, GatewayRecord, Retake, Role, SchedulingUsage, ServiceRecord,
    TRIAL_SCHEMA, TrialOutcome, TrialRecord, Verdict,
};

/// A trial whose start came too late for a generator is started this often, each time with twice the time for the message.
const START_ATTEMPTS: u32 = 4;

/// Position of a trial in the run.
pub(super) struct Place {
    /// Index in the order of execution.
    pub index: usize,
    /// Start of the trial, RFC 3339.
    pub started_at: String,
    /// Deployment that it ran in.
    pub deployment: DeploymentUse,
    /// The trial that it is a rerun of; `None` if it is not a rerun.
    pub retake: Option<Retake>,
}

/// Outcome of a trial.
#[derive(Default)]
pub(super) struct TrialRun {
    ending: Ending,
    drivers: Vec<DriverRun>,
    usage: Option<WindowUsage>,
    evidence: TrialEvidence,
    failure: Option<EnvironmentError>,
}

impl TrialRun {
    /// A trial whose deployment did not come up.
    pub(super) fn not_deployed(error: EnvironmentError, context: &RunContext<'_>) -> Self {
        // When the user stops the run, waiting for a deployment ends with an error.
        Self { ending: context.ending_so_far(), ..Self::default() }.failed_by(Some(error))
    }

    /// Adds an environment error, which explains the end of the trial if nothing else does.
    fn failed_by(mut self, error: Option<EnvironmentError>) -> Self {
        let Some(error) = error else { return self };
        if self.ending == Ending::Finished {
            self.ending = Ending::Failed(error_chain(&error));
            if let Some(LastLines { component, lines }) = error.nearest_component() {
                self.evidence.log_tails.entry(component.clone()).or_insert_with(|| lines.clone());
            }
            let hint =
                error.nearest_hint().filter(|hint| !self.evidence.hints.iter().any(|other| other == hint));
            self.evidence.hints.extend(hint.map(str::to_owned));
        }
        self.failure = Some(error);
        self
    }

    /// True if another trial may run on the same deployment.
    pub(super) fn leaves_deployment_usable(&self) -> bool {
        self.ending == Ending::Finished && self.failure.is_none() && self.evidence.path.proven
    }

    /// Keeps the last lines of generators without a result, if no component has failed.
    fn keep_last_lines(&mut self) {
        if !self.evidence.log_tails.is_empty() || self.ending == Ending::Interrupted {
            return;
        }
        for generator in self.drivers.iter().flat_map(|driver| &driver.generators) {
            if let Some(end) = &generator.end
                && end.result.is_err()
                && !end.last_lines.is_empty()
            {
                self.evidence.log_tails.insert(generator.name.clone(), end.last_lines.clone());
            }
        }
    }
}

/// Runs a trial on a deployment.
pub(super) fn run(
    deployment: &mut dyn Deployment,
    planned: &PlannedTrial,
    label: &str,
    context: &RunContext<'_>,
    progress: &RunProgress,
) -> TrialRun {
    let mut attempts = 0;
    loop {
        let (run, start_missed) = attempt(deployment, planned, label, attempts, (context, progress));
        attempts += 1;
        // Nothing was measured, and nothing but the message was late.
        if !start_missed || attempts == START_ATTEMPTS || (context.stop)() {
            return run;
        }
    }
}

/// Runs a trial after this many starts that came too late for a generator. Returns true if this one did, too.
fn attempt(
    deployment: &mut dyn Deployment,
    planned: &PlannedTrial,
    label: &str,
    attempts: u32,
    (context, progress): (&RunContext<'_>, &RunProgress),
) -> (TrialRun, bool) {
    let begun = deployment.begin_trial(label).and_then(|()| deployment.start(&starts(planned, context)));
    if let Err(error) = begun {
        // A component has failed since the deployment came up: keeps its last lines.
        let evidence = deployment.end_trial(&[]);
        let run = TrialRun { ending: context.ending_so_far(), evidence, ..TrialRun::default() };
        return (run.failed_by(Some(error)), false);
    }
    let Followed { ending, drivers, usage, error, start_missed } =
        follow(deployment, planned, attempts, context, progress);
    let sent: Vec<DriverLoad> = drivers.iter().filter_map(DriverRun::sent).collect();
    let evidence = deployment.end_trial(&sent);
    let mut run = TrialRun { ending, drivers, usage, evidence, failure: None };
    run.keep_last_lines();
    (run.failed_by(error), start_missed)
}

/// Starts of the drivers. For live metrics, generators report more details per second; fleets always do.
fn starts(planned: &PlannedTrial, context: &RunContext<'_>) -> Vec<DriverStart> {
    let mut starts = drivers::starts(planned);
    if context.live.is_some() && planned.fleet.is_none() {
        for start in &mut starts {
            start.arguments.push(Argument::Text("--progress-detail".to_owned()));
        }
    }
    starts
}

/// Returns the record of a trial, and the environment error that it describes.
pub(super) fn record(
    planned: &PlannedTrial,
    place: Place,
    run: TrialRun,
) -> (TrialRecord, Option<EnvironmentError>) {
    let TrialRun { ending, mut drivers, mut usage, evidence, failure } = run;
    let TrialEvidence {
        mut path,
        services,
        gateways: mut counts,
        edges,
        mut footprints,
        log_tails,
        hints,
        notes,
        push,
        further_domain,
        versions,
        proxies,
    } = evidence;
    path.require_mode(planned.mode());
    if drivers.is_empty() {
        drivers =
            planned.spec.topology.drivers.iter().map(|driver| DriverRun::without_end(&driver.name)).collect();
    }
    for component in usage.iter_mut().flat_map(|usage| &mut usage.components) {
        if let Some(footprint) = footprints.remove(&component.name) {
            footprint.add_to(component);
        }
        add_own_switches(component, &drivers);
    }
    for gateway in usage.iter_mut().flat_map(|usage| &mut usage.gateways) {
        gateway.whole_trial = counts.remove(&gateway.name);
    }
    let gateways = usage.as_mut().map(|usage| std::mem::take(&mut usage.gateways)).unwrap_or_default();
    let counted = Counted::new(&drivers, &gateways, &services, &planned.spec.topology);
    let merged = drivers::merged_result(&drivers);
    let mut limited = limited_gateways(planned, &gateways);
    limited.extend(limited_istiods(planned, usage.as_ref()));
    let has_gateway = planned.spec.parts().entry != Entry::Direct;
    let scenario = has_gateway.then_some(planned.spec.ingress.scenario);
    let observed =
        Observed { ending: &ending, path: &path, usage: usage.as_ref(), limited: &limited, scenario };
    let mut verdict = verdict::check_trial(&observed, &drivers, &merged);
    if let Some(counted) = counted.as_ref().filter(|_| ending == Ending::Finished) {
        counted.check(&mut verdict);
        counted.note_intervals(&gateways, &mut verdict);
    }
    verdict.notes.extend(notes);
    let drivers = driver_records(planned, drivers, &observed, &verdict);
    let WindowUsage { components, machine, nodes, services: in_window, .. } = usage.unwrap_or_default();
    let record = TrialRecord {
        schema: TRIAL_SCHEMA.to_owned(),
        index: place.index,
        repeat: planned.repeat,
        mode: planned.mode(),
        factors: planned.factors.clone(),
        load: planned.load.clone(),
        started_at: place.started_at,
        deployment: Some(place.deployment),
        outcome: match ending {
            Ending::Finished => TrialOutcome::Finished,
            Ending::Interrupted => TrialOutcome::Interrupted,
            Ending::Failed(_) | Ending::GeneratorLost(_) => TrialOutcome::Failed,
        },
        verdict,
        result: merged.ok().flatten(),
        drivers,
        services: services.into_iter().map(|count| service_record(count, &in_window)).collect(),
        edges,
        gateways,
        rates: counted.map(|counted| counted.rates()),
        components,
        path,
        machine,
        nodes,
        log_tails,
        hints,
        push,
        further_domain,
        versions,
        proxies,
        retake: place.retake,
    };
    (record, failure)
}

/// Every driver with its own result and verdict. For a single driver these are the trial's.
fn driver_records(
    planned: &PlannedTrial,
    drivers: Vec<DriverRun>,
    observed: &Observed<'_>,
    trial: &Verdict,
) -> Vec<DriverRecord> {
    let topology = &planned.spec.topology;
    let is_single = drivers.len() == 1;
    let record = |driver: DriverRun| {
        let placement = topology.driver(&driver.name);
        let verdict = if is_single { trial.clone() } else { verdict::check_driver(observed, &driver) };
        DriverRecord {
            namespace: placement
                .map(|placement| topology.workloads[placement.at].namespace.clone())
                .unwrap_or_default(),
            target: placement
                .map(|placement| topology.workloads[placement.target].qualified_name())
                .unwrap_or_default(),
            result: driver.result().filter(|_| !is_single).cloned(),
            fleet: driver.fleet().cloned(),
            name: driver.name,
            verdict,
        }
    };
    drivers.into_iter().map(record).collect()
}

/// Entry gateways with a CPU limit of their own, rather than the limit that all proxies have.
fn limited_gateways(planned: &PlannedTrial, gateways: &[GatewayRecord]) -> Vec<String> {
    let spec = &planned.spec;
    let is_limited = spec.gateway.cpu_limit_cores.is_some() && spec.parts().entry != Entry::Direct;
    gateways.iter().filter(|_| is_limited).map(|gateway| gateway.name.clone()).collect()
}

/// istiods for which the experiment sets a CPU limit.
fn limited_istiods(planned: &PlannedTrial, usage: Option<&WindowUsage>) -> Vec<String> {
    let is_limited = planned.spec.istio.istiod.cpu_limit_cores.is_some();
    let components = usage.into_iter().flat_map(|usage| &usage.components).filter(|_| is_limited);
    let istiods = components.filter(|component| component.name.starts_with("istiod"));
    istiods.map(|component| component.name.clone()).collect()
}

fn service_record(count: ServiceCount, in_window: &[ServiceRate]) -> ServiceRecord {
    let ServiceCount { name, namespace, replicas, requests, components } = count;
    let rate = in_window.iter().find(|rate| rate.name == name && rate.namespace == namespace);
    let requests_per_s = rate.map(|rate| rate.requests_per_s);
    ServiceRecord { name, namespace, replicas, requests, requests_per_s, components }
}

/// A generator's threads exit with its window, before their context switches can be read, so it counts them
/// itself.
fn add_own_switches(component: &mut ComponentUsage, drivers: &[DriverRun]) {
    let mut generators = drivers.iter().flat_map(|driver| &driver.generators);
    let end = generators.find(|generator| generator.name == component.name).and_then(|one| one.end.as_ref());
    if component.role == Role::Generator
        && let Some(Ok(DriverResult::Load(result))) = end.map(|end| &end.result)
    {
        component.scheduling.get_or_insert(SchedulingUsage {
            voluntary_switches: result.generator.voluntary_switches,
            involuntary_switches: result.generator.involuntary_switches,
        });
    }
}

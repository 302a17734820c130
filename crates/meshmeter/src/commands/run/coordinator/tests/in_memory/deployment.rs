//! In-memory deployment.

use super::script::{ScriptedComponent, ScriptedDriver, ScriptedFailure, ScriptedTrial};
use super::world::{Request, World};
use experiment::environment::deploy::{
    ComponentFailure, Deployment, DriverEnd, DriverEvent, DriverEventKind, DriverLoad, DriverStart,
    HealthProbe, ServiceCount, TrialEvidence,
};
use experiment::environment::{
    ComponentMemory, ComponentSnapshot, CpuTimes, DeploymentSpec, EnvironmentError, MachineSnapshot,
    OtherProcess, ProcessId, Snapshot,
};
use experiment::topology::Topology;
use results::{FleetAsk, Mode, Role, Throttling};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// CPUs of the machine.
const CPUS: usize = 2;

/// CPU of a driver, cores.
const DRIVER_CORES: f64 = 0.2;

/// Process outside the experiment.
const OTHER_PROCESS: ProcessId = ProcessId { pid: 1, started: Duration::ZERO };

/// Workloads and proxies simulated from a script.
pub(super) struct InMemoryDeployment<'a> {
    world: &'a Rc<RefCell<World>>,
    mode: Mode,
    topology: Arc<Topology>,
    trial: ScriptedTrial,
    /// Time at which the drivers of the trial were started.
    started_at: Duration,
    drivers: Vec<RunningDriver>,
    snapshots: usize,
}

struct RunningDriver {
    name: String,
    script: ScriptedDriver,
    pending: VecDeque<(Duration, DriverEventKind)>,
    ended: bool,
}

impl<'a> InMemoryDeployment<'a> {
    pub(super) fn new(world: &'a Rc<RefCell<World>>, spec: &DeploymentSpec) -> Self {
        Self {
            world,
            mode: spec.mode,
            topology: Arc::clone(&spec.topology),
            trial: ScriptedTrial::default(),
            started_at: Duration::ZERO,
            drivers: Vec::new(),
            snapshots: 0,
        }
    }

    fn note(&self, request: Request) {
        self.world.borrow_mut().requests.push(request);
    }

    /// Time since the drivers were started.
    fn elapsed(&self) -> Duration {
        self.world.borrow().now.saturating_sub(self.started_at)
    }

    fn advance_to(&self, elapsed: Duration) {
        let mut world = self.world.borrow_mut();
        world.now = world.now.max(self.started_at + elapsed);
        world.stop_requested |= self.trial.stop_at.is_some_and(|stop_at| elapsed >= stop_at);
    }

    /// Component that has failed by now, if any.
    fn failed(&self) -> Option<&ScriptedFailure> {
        self.trial.failure.as_ref().filter(|failure| failure.at <= self.elapsed())
    }

    /// Driver with the earliest next event, and the time of that event.
    fn next_driver(&self) -> Option<(usize, Duration)> {
        let next = |(index, driver): (usize, &RunningDriver)| Some((index, driver.pending.front()?.0));
        self.drivers.iter().enumerate().filter_map(next).min_by_key(|(_, at)| *at)
    }

    /// Ends a driver now, unless it has already ended.
    fn end_driver(&mut self, name: &str, end: impl Fn(&ScriptedDriver, Duration) -> Option<DriverEnd>) {
        let elapsed = self.elapsed();
        let running = |driver: &&mut RunningDriver| driver.name == name && !driver.ended;
        let Some(driver) = self.drivers.iter_mut().find(running) else { return };
        if let Some(end) = end(&driver.script, elapsed) {
            driver.pending = [(elapsed, DriverEventKind::Ended(Box::new(end)))].into();
        }
    }

    fn component(&self, name: &str, role: Role, cpu_cores: f64, throttled_per_s: f64) -> ComponentSnapshot {
        let elapsed = self.elapsed();
        let used = elapsed.mul_f64(cpu_cores);
        let periods = (elapsed.as_secs_f64() * throttled_per_s) as u64;
        ComponentSnapshot {
            cpu: CpuTimes { total: used, user: used, system: Duration::ZERO },
            throttling: Some(Throttling { periods, of_periods: None, time_s: periods as f64 * 0.01 }),
            ..ComponentSnapshot::new(name, role, elapsed)
        }
    }

    fn driver_components(&self) -> impl Iterator<Item = ComponentSnapshot> {
        self.drivers.iter().map(|driver| self.component(&driver.name, Role::Generator, DRIVER_CORES, 0.0))
    }

    /// Components other than the drivers.
    fn other_components(&self) -> impl Iterator<Item = ComponentSnapshot> {
        self.trial.components.iter().map(
            |ScriptedComponent { name, role, cpu_cores, throttled_periods_per_s }| {
                self.component(name, *role, *cpu_cores, *throttled_periods_per_s)
            },
        )
    }

    fn machine(&self, components: &[ComponentSnapshot]) -> MachineSnapshot {
        let elapsed = self.elapsed();
        let others = elapsed.mul_f64(self.trial.other_processes_cores);
        let components: Duration = components.iter().map(|component| component.cpu.total).sum();
        let process = OtherProcess { name: "rustc".to_owned(), cpu: others, ..OtherProcess::default() };
        MachineSnapshot {
            at: elapsed,
            cpus: CPUS,
            idle: elapsed.mul_f64(CPUS as f64).saturating_sub(components + others),
            others: [(OTHER_PROCESS, process)].into(),
            ..MachineSnapshot::default()
        }
    }

    /// Every service of the topology with the requests that the drivers sent to it.
    fn services(&self, sent: &[DriverLoad]) -> Vec<ServiceCount> {
        let workloads = self.topology.workloads.iter().enumerate();
        let serving = workloads.filter(|(_, workload)| workload.service().is_some());
        serving
            .map(|(id, workload)| {
                let targets = |load: &&DriverLoad| {
                    self.topology.driver(&load.driver).is_some_and(|driver| driver.target == id)
                };
                ServiceCount {
                    name: workload.name.clone(),
                    namespace: workload.namespace.clone(),
                    replicas: workload.replicas,
                    requests: Some(sent.iter().filter(targets).map(|load| load.sent.requests).sum()),
                    components: workload.pod_names().collect(),
                }
            })
            .collect()
    }
}

impl Drop for InMemoryDeployment<'_> {
    fn drop(&mut self) {
        self.world.borrow_mut().deployments -= 1;
    }
}

impl Deployment for InMemoryDeployment<'_> {
    fn begin_trial(&mut self, label: &str) -> Result<(), EnvironmentError> {
        self.note(Request::BeginTrial(label.to_owned()));
        self.trial = self.world.borrow_mut().next_trial();
        self.started_at = self.world.borrow().now;
        (self.snapshots, self.drivers) = (0, Vec::new());
        self.trial.begin_error.as_ref().map_or(Ok(()), |error| Err(error.raise()))
    }

    fn start(&mut self, generators: &[DriverStart]) -> Result<(), EnvironmentError> {
        self.note(Request::Start(generators.to_vec()));
        if let Some(error) = &self.trial.start_error {
            return Err(error.raise());
        }
        self.started_at = self.world.borrow().now;
        for DriverStart { driver, generator, pod, verb, .. } in generators {
            let placement = self.topology.driver(driver);
            if placement.is_none_or(|placement| *pod >= self.topology.workloads[placement.at].replicas) {
                return Err(EnvironmentError::new(format!("start {generator}"), "there is no such place"));
            }
            let script = self.trial.generator(generator, driver).clone();
            let events = if verb.is_held() { &script.before_release } else { &script.events };
            let pending = events.clone().into();
            self.drivers.push(RunningDriver { name: generator.clone(), script, pending, ended: false });
        }
        Ok(())
    }

    fn release(&mut self, generator: &str, window_opens_at: SystemTime) -> Result<(), EnvironmentError> {
        self.note(Request::Release(generator.to_owned(), window_opens_at));
        let elapsed = self.elapsed();
        let running = |driver: &&mut RunningDriver| driver.name == generator && !driver.ended;
        if let Some(driver) = self.drivers.iter_mut().find(running) {
            let events = driver.script.events.clone().into_iter();
            driver.pending.extend(events.map(|(at, event)| (elapsed + at, event)));
        }
        Ok(())
    }

    /// Only records the request: fleets follow their script.
    fn act(&mut self, fleet: &str, ask: &FleetAsk) {
        self.note(Request::Act(fleet.to_owned(), ask.clone()));
    }

    fn next_event(&mut self, timeout: Duration) -> Option<DriverEvent> {
        let until = self.elapsed() + timeout;
        let Some((index, at)) = self.next_driver().filter(|(_, at)| *at <= until) else {
            self.advance_to(until);
            return None;
        };
        self.advance_to(at);
        let driver = &mut self.drivers[index];
        let (_, kind) = driver.pending.pop_front()?;
        driver.ended = matches!(kind, DriverEventKind::Ended(_));
        Some(DriverEvent { generator: driver.name.clone(), kind })
    }

    fn interrupt(&mut self, generator: &str) {
        self.note(Request::Interrupt(generator.to_owned()));
        self.end_driver(generator, |script, elapsed| {
            (!script.ignores_interrupt).then(|| script.interrupted_end(elapsed))
        });
    }

    fn kill(&mut self, generator: &str) {
        self.note(Request::Kill(generator.to_owned()));
        self.end_driver(generator, |script, _| {
            (!script.survives_kill).then(|| DriverEnd {
                exit_code: None,
                result: Err("no result was written".to_owned()),
                last_lines: Vec::new(),
            })
        });
    }

    fn snapshot(&mut self) -> Result<Snapshot, EnvironmentError> {
        self.note(Request::Snapshot);
        let number = self.snapshots;
        self.snapshots += 1;
        match &self.trial.snapshot_error {
            Some((failing, error)) if *failing == number => return Err(error.raise()),
            _ => {}
        }
        if let Some(ScriptedFailure { failure: ComponentFailure { component, how }, .. }) =
            self.failed().filter(|failed| !failed.unresponsive)
        {
            let operation = format!("read the counters of {component}");
            return Err(EnvironmentError::new(operation, format!("it {how}")));
        }
        let mut components: Vec<ComponentSnapshot> = self.driver_components().collect();
        if number > 0 || !self.trial.components_show_late {
            components.extend(self.other_components());
        }
        let machine = Some(self.machine(&components));
        let elapsed = self.elapsed();
        let gateways = self.trial.gateways.iter().map(|gateway| gateway.snapshot(elapsed)).collect();
        Ok(Snapshot { components, machine, gateways, ..Snapshot::default() })
    }

    fn read_usage(&mut self) -> Vec<ComponentSnapshot> {
        self.world.borrow_mut().now += self.trial.reading_usage_takes;
        let memory = ComponentMemory { resident_bytes: Some(1 << 20), ..ComponentMemory::default() };
        self.driver_components()
            .chain(self.other_components())
            .map(|one| ComponentSnapshot { memory, ..one })
            .collect()
    }

    fn begin_profile(&mut self, _window: Duration) -> Result<(), EnvironmentError> {
        self.note(Request::BeginProfile);
        self.trial.profile_error.as_ref().map_or(Ok(()), |error| Err(error.raise()))
    }

    fn end_profile(&mut self) {
        self.note(Request::EndProfile);
    }

    fn complete_opening(&mut self, opened: &mut Snapshot) {
        let is_complete = opened.components.len() > self.drivers.len();
        if self.trial.components_show_late && !is_complete {
            opened.components.extend(self.other_components());
        }
    }

    fn health(&mut self, probe: HealthProbe) -> Option<ComponentFailure> {
        let failed = self.failed()?;
        let shows = !failed.unresponsive || probe == HealthProbe::Responses;
        shows.then(|| failed.failure.clone())
    }

    fn end_trial(&mut self, sent: &[DriverLoad]) -> TrialEvidence {
        self.note(Request::EndTrial(sent.to_vec()));
        let mut evidence = self.trial.evidence.clone();
        if evidence.services.is_empty() {
            evidence.services = self.services(sent);
        }
        evidence.path.mode.get_or_insert(self.mode);
        evidence
    }

    fn finish(self: Box<Self>) -> Result<(), EnvironmentError> {
        self.note(Request::Finish);
        self.trial.finish_error.as_ref().map_or(Ok(()), |error| Err(error.raise()))
    }
}

//! Scripts for the in-memory environment, trial by trial.

use experiment::environment::deploy::{
    ComponentFailure, DriverEnd, DriverEventKind, DriverResult, TrialEvidence,
};
use experiment::environment::{EnvironmentError, GatewayCounters, GatewaySnapshot, LastLines};
use results::{
    FleetProgress, FleetResult, FleetSecond, GatewayCounts, LoadEvent, LoadResult, PathProof, Role,
    SeriesPoint,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// Time between the end of a driver's window and the end of the driver.
const DRAIN: Duration = Duration::from_millis(10);

/// One trial. Times are relative to the start of its drivers.
#[derive(Clone, Debug, Default)]
pub struct ScriptedTrial {
    /// Error of the deployment. Ignored if an earlier trial already brought the deployment up.
    pub deploy_error: Option<ScriptedError>,
    /// Error when the trial begins.
    pub begin_error: Option<ScriptedError>,
    /// Error when the drivers are started.
    pub start_error: Option<ScriptedError>,
    /// Number of the snapshot that fails, counted from 0, and its error.
    pub snapshot_error: Option<(usize, ScriptedError)>,
    /// Error when the deployment is removed after this trial.
    pub finish_error: Option<ScriptedError>,
    /// Generators by name, or all generators of a driver by the driver's name; others use
    /// [`Self::other_drivers`].
    pub drivers: BTreeMap<String, ScriptedDriver>,
    /// Script of every driver that is not in [`Self::drivers`].
    pub other_drivers: ScriptedDriver,
    /// Components other than the drivers.
    pub components: Vec<ScriptedComponent>,
    /// True if their first counters within the window become known only after its opening.
    pub components_show_late: bool,
    /// Time that reading their usage takes.
    pub reading_usage_takes: Duration,
    /// Error of the profiler's start.
    pub profile_error: Option<ScriptedError>,
    /// Gateways on the drivers' path. Their counts over the whole trial are in [`Self::evidence`].
    pub gateways: Vec<ScriptedGateway>,
    /// A component that fails.
    pub failure: Option<ScriptedFailure>,
    /// CPU of processes outside the experiment, cores.
    pub other_processes_cores: f64,
    /// Evidence returned at the end. If it has no services, every service of the topology counts what the
    /// drivers sent to it.
    pub evidence: TrialEvidence,
    /// Time at which the user stops the run; zero: before the trial's deployment.
    pub stop_at: Option<Duration>,
}

/// Environment error that can be returned any number of times.
#[derive(Clone, Debug, Default)]
pub struct ScriptedError {
    /// Operation and its subject.
    pub operation: String,
    /// Cause.
    pub reason: String,
    /// Suggested fix.
    pub hint: Option<String>,
    /// Component that the error is about.
    pub component: Option<LastLines>,
    /// True if another attempt would fail the same way.
    pub is_lasting: bool,
}

/// Component with constant CPU usage.
#[derive(Clone, Debug)]
pub struct ScriptedComponent {
    /// Name of the component.
    pub name: String,
    /// Role of the component.
    pub role: Role,
    /// CPU usage, cores.
    pub cpu_cores: f64,
    /// Throttled periods per second.
    pub throttled_periods_per_s: f64,
}

/// Gateway with a constant rate of requests.
#[derive(Clone, Debug)]
pub struct ScriptedGateway {
    /// Name of the gateway.
    pub name: String,
    /// Workloads that it routes drivers to.
    pub targets: Vec<String>,
    /// Requests received per second.
    pub requests_per_s: f64,
}

impl ScriptedGateway {
    pub(super) fn snapshot(&self, elapsed: Duration) -> GatewaySnapshot {
        let requests = (elapsed.as_secs_f64() * self.requests_per_s).round() as u64;
        GatewaySnapshot {
            name: self.name.clone(),
            targets: self.targets.clone(),
            at: elapsed,
            counters: GatewayCounters {
                counts: GatewayCounts { requests, forwarded: requests, ..GatewayCounts::default() },
                ..GatewayCounters::default()
            },
            ..GatewaySnapshot::default()
        }
    }
}

/// Failure of a component.
#[derive(Clone, Debug)]
pub struct ScriptedFailure {
    /// Time of the failure.
    pub at: Duration,
    /// Component and its failure.
    pub failure: ComponentFailure,
    /// True if the component still runs but does not respond.
    pub unresponsive: bool,
}

/// Events and result of a driver.
#[derive(Clone, Debug, Default)]
pub struct ScriptedDriver {
    /// Result if nothing ends the driver early.
    pub result: DriverResult,
    /// For a held driver: events before its release, in order of time.
    pub before_release: Vec<(Duration, DriverEventKind)>,
    /// Events in order of time; for a held driver, counted from its release.
    pub events: Vec<(Duration, DriverEventKind)>,
    /// True if it does not end when interrupted.
    pub ignores_interrupt: bool,
    /// True if it does not end when killed.
    pub survives_kill: bool,
}

impl ScriptedTrial {
    /// Trial in which every driver completes with this result and the path is proven.
    #[must_use]
    pub fn completes(result: LoadResult, warmup: Duration, duration: Duration) -> Self {
        Self {
            other_drivers: ScriptedDriver::completes(result, warmup, duration),
            evidence: TrialEvidence {
                path: PathProof { proven: true, ..PathProof::default() },
                ..TrialEvidence::default()
            },
            ..Self::default()
        }
    }

    pub(super) fn generator(&self, name: &str, driver: &str) -> &ScriptedDriver {
        self.drivers.get(name).or_else(|| self.drivers.get(driver)).unwrap_or(&self.other_drivers)
    }
}

impl ScriptedError {
    /// Error without hint or component.
    pub fn new(operation: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { operation: operation.into(), reason: reason.into(), ..Self::default() }
    }

    pub(super) fn raise(&self) -> EnvironmentError {
        EnvironmentError {
            operation: self.operation.clone(),
            source: Some(self.reason.clone().into()),
            hint: self.hint.clone(),
            component: self.component.clone().map(Box::new),
            is_lasting: self.is_lasting,
        }
    }
}

impl ScriptedDriver {
    /// Driver that warms up, measures a window with responses in every second, and ends.
    #[must_use]
    pub fn completes(result: LoadResult, warmup: Duration, duration: Duration) -> Self {
        let load = DriverEventKind::Load;
        let mut events = vec![
            (Duration::ZERO, load(LoadEvent::Connecting)),
            (Duration::ZERO, load(LoadEvent::WarmingUp)),
            (warmup, load(LoadEvent::WindowOpened)),
        ];
        for second in 1..=duration.as_secs() {
            let point = SeriesPoint { t_s: (second - 1) as f64, completed: 100, ..SeriesPoint::default() };
            events.push((warmup + Duration::from_secs(second), load(LoadEvent::Second(point))));
        }
        events.push((warmup + duration, load(LoadEvent::WindowClosed)));
        let duration_s = duration.as_secs_f64();
        let mut result = LoadResult { duration_s, ..result };
        result.rate.sent = result.requests.sent as f64 / duration_s;
        result.rate.completed = result.requests.completed as f64 / duration_s;
        events.push((warmup + duration + DRAIN, ended_well(result.clone().into())));
        let before_release =
            vec![(Duration::ZERO, load(LoadEvent::Connecting)), (Duration::ZERO, load(LoadEvent::Ready))];
        Self { result: result.into(), before_release, events, ..Self::default() }
    }

    /// Fleet that reports every second of its window, and ends.
    #[must_use]
    pub fn fleet_completes(result: FleetResult, duration: Duration) -> Self {
        let fleet = DriverEventKind::Fleet;
        let mut events = vec![(Duration::ZERO, fleet(FleetProgress::WindowOpened))];
        for second in 1..=duration.as_secs() {
            let connected = result.proxies.connected;
            let point = FleetSecond { t_s: (second - 1) as f64, connected, ..FleetSecond::default() };
            events.push((Duration::from_secs(second), fleet(FleetProgress::Second(point))));
        }
        events.push((duration, fleet(FleetProgress::WindowClosed)));
        let result = FleetResult { duration_s: duration.as_secs_f64(), ..result };
        events.push((duration + DRAIN, ended_well(result.clone().into())));
        Self { result: result.into(), events, ..Self::default() }
    }

    /// Changes the load result, and the result at the end with it.
    #[must_use]
    pub fn with_load(mut self, change: impl Fn(&mut LoadResult)) -> Self {
        let ends = self.events.iter_mut().filter_map(|(_, event)| match event {
            DriverEventKind::Ended(end) => end.result.as_mut().ok(),
            _ => None,
        });
        for result in ends.chain([&mut self.result]) {
            if let DriverResult::Load(load) = result {
                change(load);
            }
        }
        self
    }

    /// For a held driver: becomes ready only at `at`.
    #[must_use]
    pub fn ready_at(mut self, at: Duration) -> Self {
        for (when, event) in &mut self.before_release {
            if *event == DriverEventKind::Load(LoadEvent::Ready) {
                *when = at;
            }
        }
        self
    }

    /// Before its release, behaves as `other` does after its release, for example dies.
    #[must_use]
    pub fn before_release(mut self, other: Self) -> Self {
        self.before_release = other.events;
        self
    }

    /// Reports nothing from `at` on, and does not end by itself.
    #[must_use]
    pub fn hangs_at(mut self, at: Duration) -> Self {
        self.events.retain(|(when, _)| *when < at);
        self
    }

    /// Ends at `at` without a result, after `message` unless it is empty.
    #[must_use]
    pub fn dies_at(self, at: Duration, exit_code: Option<i32>, message: &str) -> Self {
        let mut driver = self.hangs_at(at);
        let last_lines: Vec<String> = (!message.is_empty()).then(|| message.to_owned()).into_iter().collect();
        driver.events.extend(last_lines.iter().map(|line| (at, DriverEventKind::Message(line.clone()))));
        let end = DriverEnd { exit_code, result: Err("no result was written".to_owned()), last_lines };
        driver.events.push((at, DriverEventKind::Ended(Box::new(end))));
        driver
    }

    /// Receives no responses from `at` on.
    #[must_use]
    pub fn unanswered_from(mut self, at: Duration) -> Self {
        for (when, event) in &mut self.events {
            if let DriverEventKind::Load(LoadEvent::Second(point)) = event
                && *when > at
            {
                point.completed = 0;
            }
        }
        self
    }

    /// Delays all events.
    #[must_use]
    pub fn delayed_by(mut self, delay: Duration) -> Self {
        for (when, _) in &mut self.events {
            *when += delay;
        }
        self
    }

    /// End of the driver if interrupted at `at`, with the part of the window measured so far.
    pub(super) fn interrupted_end(&self, at: Duration) -> DriverEnd {
        let opened = |(_, event): &&(Duration, DriverEventKind)| {
            matches!(
                event,
                DriverEventKind::Load(LoadEvent::WindowOpened)
                    | DriverEventKind::Fleet(FleetProgress::WindowOpened)
            )
        };
        let opened = self.events.iter().find(opened).map_or(at, |(when, _)| *when);
        let measured_s = at.saturating_sub(opened).as_secs_f64();
        let mut result = self.result.clone();
        match &mut result {
            DriverResult::Load(load) => load.duration_s = measured_s.min(load.duration_s),
            DriverResult::Fleet(fleet) => fleet.duration_s = measured_s.min(fleet.duration_s),
        }
        DriverEnd { exit_code: Some(0), result: Ok(result), last_lines: Vec::new() }
    }
}

fn ended_well(result: DriverResult) -> DriverEventKind {
    let end = DriverEnd { exit_code: Some(0), result: Ok(result), last_lines: Vec::new() };
    DriverEventKind::Ended(Box::new(end))
}

//! What happens in an environment in memory, trial by trial.

use crate::environment::deploy::{ComponentFailure, DriverEnd, DriverEventKind, DriverResult, TrialEvidence};
use crate::environment::error::{EnvironmentError, LastLines};
use crate::environment::snapshot::{GatewayCounters, GatewaySnapshot};
use crate::schema::component::Role;
use crate::schema::event::LoadEvent;
use crate::schema::fleet::{FleetResult, FleetSecond};
use crate::schema::fleet_progress::FleetProgress;
use crate::schema::gateway::GatewayCounts;
use crate::schema::load::{LoadResult, SeriesPoint};
use crate::schema::path::PathProof;
use std::collections::BTreeMap;
use std::time::Duration;

/// Time between the end of a driver's window and its own end.
const DRAIN: Duration = Duration::from_millis(10);

/// One trial. Times count from the start of its drivers.
#[derive(Clone, Debug, Default)]
pub struct ScriptedTrial {
    /// Why its deployment does not come up. Ignored where an earlier trial has brought it up.
    pub deploy_error: Option<ScriptedError>,
    /// Why the trial does not begin.
    pub begin_error: Option<ScriptedError>,
    /// Why the drivers do not start.
    pub start_error: Option<ScriptedError>,
    /// The snapshot that fails, from 0, and why.
    pub snapshot_error: Option<(usize, ScriptedError)>,
    /// Why the deployment cannot be removed after this trial.
    pub finish_error: Option<ScriptedError>,
    /// Generators by name, or all of a driver by its name; [`Self::other_drivers`] stands for those without an entry.
    pub drivers: BTreeMap<String, ScriptedDriver>,
    /// Every driver that is not in [`Self::drivers`].
    pub other_drivers: ScriptedDriver,
    /// Components beside the drivers.
    pub components: Vec<ScriptedComponent>,
    /// Gateways on the drivers' path. Their counts over the whole trial are in [`Self::evidence`].
    pub gateways: Vec<ScriptedGateway>,
    /// A component that fails.
    pub failure: Option<ScriptedFailure>,
    /// CPU of processes outside the experiment, cores.
    pub other_processes_cores: f64,
    /// Returned at the end. Without services, every service of the topology counts what the drivers sent to it.
    pub evidence: TrialEvidence,
    /// When the user stops the run; zero: before the trial's deployment.
    pub stop_at: Option<Duration>,
}

/// An error of the environment, to be raised any number of times.
#[derive(Clone, Debug, Default)]
pub struct ScriptedError {
    /// The operation and its subject.
    pub operation: String,
    /// Its cause.
    pub reason: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The component that it is about.
    pub component: Option<LastLines>,
    /// Another attempt would fail the same way.
    pub is_lasting: bool,
}

/// A component with a steady use of CPU.
#[derive(Clone, Debug)]
pub struct ScriptedComponent {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// CPU that it uses, cores.
    pub cpu_cores: f64,
    /// Periods per second in which its CPU limit throttles it.
    pub throttled_periods_per_s: f64,
}

/// A gateway with a steady rate.
#[derive(Clone, Debug)]
pub struct ScriptedGateway {
    /// Its name.
    pub name: String,
    /// Workloads that it leads drivers to.
    pub targets: Vec<String>,
    /// Requests that it receives, per second.
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

/// A component that fails.
#[derive(Clone, Debug)]
pub struct ScriptedFailure {
    /// When.
    pub at: Duration,
    /// Which, and how.
    pub failure: ComponentFailure,
    /// It still runs and does not respond.
    pub unresponsive: bool,
}

/// What a driver reports, and when.
#[derive(Clone, Debug, Default)]
pub struct ScriptedDriver {
    /// Its result where nothing ends it early.
    pub result: DriverResult,
    /// Where it is held: events until it is released, in order of time.
    pub before_release: Vec<(Duration, DriverEventKind)>,
    /// Events in order of time, from its release on where it is held.
    pub events: Vec<(Duration, DriverEventKind)>,
    /// It does not end when it is interrupted.
    pub ignores_interrupt: bool,
    /// It does not end when it is killed.
    pub survives_kill: bool,
}

impl ScriptedTrial {
    /// A trial in which every driver completes with this result and the path is proven.
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
    /// An error without hint or component.
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
    /// Warms up, measures a window with answers in every second, and ends.
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
        let result = LoadResult { duration_s: duration.as_secs_f64(), ..result };
        events.push((warmup + duration + DRAIN, ended_well(result.clone().into())));
        let before_release =
            vec![(Duration::ZERO, load(LoadEvent::Connecting)), (Duration::ZERO, load(LoadEvent::Ready))];
        Self { result: result.into(), before_release, events, ..Self::default() }
    }

    /// A fleet that reports every second of its window, and ends.
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

    /// Has another result of its load, at its end too.
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

    /// Is ready only at `at` where it is held.
    #[must_use]
    pub fn ready_at(mut self, at: Duration) -> Self {
        for (when, event) in &mut self.before_release {
            if *event == DriverEventKind::Load(LoadEvent::Ready) {
                *when = at;
            }
        }
        self
    }

    /// Does until its release what another driver does from its release on, such as to die.
    #[must_use]
    pub fn before_release(mut self, other: Self) -> Self {
        self.before_release = other.events;
        self
    }

    /// Reports nothing more from `at` on, and does not end by itself.
    #[must_use]
    pub fn hangs_at(mut self, at: Duration) -> Self {
        self.events.retain(|(when, _)| *when < at);
        self
    }

    /// Ends without a result at `at`, after a message where it exits by itself.
    #[must_use]
    pub fn dies_at(self, at: Duration, exit_code: Option<i32>, message: &str) -> Self {
        let mut driver = self.hangs_at(at);
        let last_lines: Vec<String> = (!message.is_empty()).then(|| message.to_owned()).into_iter().collect();
        driver.events.extend(last_lines.iter().map(|line| (at, DriverEventKind::Message(line.clone()))));
        let end = DriverEnd { exit_code, result: Err("no result was written".to_owned()), last_lines };
        driver.events.push((at, DriverEventKind::Ended(Box::new(end))));
        driver
    }

    /// Gets no answer from `at` on.
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

    /// Does everything later.
    #[must_use]
    pub fn delayed_by(mut self, delay: Duration) -> Self {
        for (when, _) in &mut self.events {
            *when += delay;
        }
        self
    }

    /// Its end where it is interrupted at `at`: with the part of the window that it has measured.
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

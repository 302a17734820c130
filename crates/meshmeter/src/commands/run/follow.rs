//! Follows the drivers of a trial from their start until all have ended, and reads the counters at both ends of the window.

use super::context::RunContext;
use super::drivers::{self, DriverRun};
use super::progress::RunProgress;
use super::verdict::Ending;
use experiment::PlannedTrial;
use experiment::environment::deploy::{
    ComponentFailure, Deployment, DriverEnd, DriverEvent, DriverEventKind, HealthProbe,
};
use experiment::environment::{EnvironmentError, Snapshot, WindowUsage};
use experiment::schema::{LoadEvent, SeriesPoint};
use experiment::units::format_duration;
use std::time::Duration;

/// Time between two checks of components while nothing else happens.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Time beyond its plan after which a driver is taken to hang.
const DRIVER_EXIT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time after which a driver that was killed is given up.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// Time between the end of a component's connections and its own end.
const COMPONENT_EXIT_TIMEOUT: Duration = Duration::from_millis(500);
/// Seconds of the window in a row without any response, after which load does not explain it: a component may hang.
const MAX_UNANSWERED_SECONDS: u32 = 3;
/// A window of less than this fraction of the planned one was cut short.
const MIN_WINDOW_FRACTION: f64 = 0.99;

/// What came of the drivers.
pub(super) struct Followed {
    pub ending: Ending,
    /// In the order of the topology.
    pub drivers: Vec<DriverRun>,
    /// Usage in the window; absent where it was not read at both ends.
    pub usage: Option<WindowUsage>,
    /// What the environment failed at.
    pub error: Option<EnvironmentError>,
}

/// Follows the drivers of a trial, which have been started.
pub(super) fn follow(
    deployment: &mut dyn Deployment,
    planned: &PlannedTrial,
    context: &RunContext<'_>,
    progress: &RunProgress,
) -> Followed {
    let drivers = planned.spec.topology.drivers.iter();
    let mut follower = Follower {
        deployment,
        planned,
        context,
        drivers: drivers.map(|driver| FollowedDriver::new(&driver.name)).collect(),
        opened: None,
        any_closed: false,
        usage: None,
        ending: Ending::Finished,
        early_end: None,
        interrupted_at: None,
        killed_at: None,
        error: None,
    };
    follower.follow(progress);
    follower.find_cause();
    Followed {
        ending: follower.ending,
        drivers: follower.drivers.into_iter().map(|driver| driver.run).collect(),
        usage: follower.usage,
        error: follower.error,
    }
}

struct Follower<'a> {
    deployment: &'a mut dyn Deployment,
    planned: &'a PlannedTrial,
    context: &'a RunContext<'a>,
    drivers: Vec<FollowedDriver>,
    /// As the window opened.
    opened: Option<Snapshot>,
    /// A driver has closed its window: that of the trial cannot open any more.
    any_closed: bool,
    usage: Option<WindowUsage>,
    ending: Ending,
    /// How the first driver that ended too early did so.
    early_end: Option<String>,
    /// When the drivers were told to end early.
    interrupted_at: Option<Duration>,
    killed_at: Option<Duration>,
    error: Option<EnvironmentError>,
}

struct FollowedDriver {
    run: DriverRun,
    window_opened: bool,
    /// Seconds of its window in a row, up to now, without any response.
    unanswered_seconds: u32,
    last_second: SeriesPoint,
    last_message: Option<String>,
}

impl FollowedDriver {
    fn new(name: &str) -> Self {
        Self {
            run: DriverRun::without_end(name),
            window_opened: false,
            unanswered_seconds: 0,
            last_second: SeriesPoint::default(),
            last_message: None,
        }
    }

    fn is_running(&self) -> bool {
        self.run.end.is_none()
    }
}

impl Follower<'_> {
    fn follow(&mut self, progress: &RunProgress) {
        let started_at = self.context.clock.now();
        let planned = self.planned;
        let lead = drivers::start_lead(planned);
        let longest = lead + planned.warmup + planned.duration + 2 * planned.timeout + DRIVER_EXIT_TIMEOUT;
        let mut checked_at = started_at;
        while self.drivers.iter().any(FollowedDriver::is_running) {
            if let Some(event) = self.deployment.next_event(POLL_INTERVAL) {
                self.handle(event, progress);
            }
            let now = self.context.clock.now();
            if now.saturating_sub(checked_at) >= POLL_INTERVAL {
                checked_at = now;
                if self.interrupted_at.is_none() {
                    self.check(now.saturating_sub(started_at) > longest);
                } else if self.has_waited_enough(now) {
                    return;
                }
            }
        }
    }

    fn handle(&mut self, event: DriverEvent, progress: &RunProgress) {
        let DriverEvent { driver: name, kind } = event;
        let Some(driver) = self.drivers.iter_mut().find(|driver| driver.run.name == name) else { return };
        match kind {
            DriverEventKind::Load(LoadEvent::WindowOpened) => {
                driver.window_opened = true;
                self.open_window();
            }
            DriverEventKind::Load(LoadEvent::WindowClosed) => self.close_window(),
            DriverEventKind::Load(LoadEvent::Second(point)) => {
                driver.unanswered_seconds =
                    if point.completed == 0 { driver.unanswered_seconds + 1 } else { 0 };
                driver.last_second = point;
                progress.second(self.drivers.iter().map(|driver| &driver.last_second));
            }
            DriverEventKind::Load(
                LoadEvent::Waiting | LoadEvent::Connecting | LoadEvent::Ready | LoadEvent::WarmingUp,
            ) => {}
            DriverEventKind::Message(message) => driver.last_message = Some(message),
            DriverEventKind::Ended(end) => {
                let reason = early_end(&end, self.planned, driver.last_message.as_deref());
                driver.run.end = Some(*end);
                self.note_end(&name, reason);
            }
        }
    }

    /// Reads the counters once every driver has opened its window.
    fn open_window(&mut self) {
        if self.opened.is_some() || self.any_closed || !self.drivers.iter().all(|driver| driver.window_opened)
        {
            return;
        }
        match self.deployment.snapshot() {
            Ok(snapshot) => self.opened = Some(snapshot),
            Err(error) => self.fail(error),
        }
    }

    /// Reads the counters again when the first driver closes its window.
    fn close_window(&mut self) {
        let is_first = !std::mem::replace(&mut self.any_closed, true);
        let Some(opened) = self.opened.as_ref().filter(|_| is_first) else { return };
        match self.deployment.snapshot() {
            Ok(closed) => self.usage = Some(closed.usage_since(opened)),
            Err(error) => self.fail(error),
        }
    }

    fn fail(&mut self, error: EnvironmentError) {
        self.error.get_or_insert(error);
        self.interrupt();
    }

    /// A driver has ended; `reason` says why that was too early. Without it the others measure something else.
    fn note_end(&mut self, name: &str, reason: Option<String>) {
        let Some(reason) = reason.filter(|_| self.interrupted_at.is_none()) else { return };
        self.early_end = Some(format!("{} {reason}", self.subject(name)));
        self.interrupt();
    }

    /// How people call a driver.
    fn subject(&self, name: &str) -> String {
        if self.drivers.len() == 1 { "the generator".to_owned() } else { format!("driver {name}") }
    }

    /// Ends the drivers early where there is a reason.
    fn check(&mut self, is_overdue: bool) {
        if (self.context.stop)() {
            self.ending = Ending::Interrupted;
        } else if let Some(failure) = self.failed_component() {
            self.ending = component_failed(&failure);
        } else if is_overdue {
            let running = self.drivers.iter().find(|driver| driver.is_running());
            let subject = running.map(|driver| self.subject(&driver.run.name)).unwrap_or_default();
            self.ending = Ending::Failed(format!("{subject} did not end in time"));
        } else {
            return;
        }
        self.interrupt();
    }

    /// Components are probed for responses only where none arrive: probes would disturb a measurement.
    fn failed_component(&mut self) -> Option<ComponentFailure> {
        let unanswered =
            self.drivers.iter_mut().find(|driver| driver.unanswered_seconds >= MAX_UNANSWERED_SECONDS);
        match unanswered {
            None => self.deployment.health(HealthProbe::Processes),
            Some(driver) => {
                driver.unanswered_seconds = 0;
                self.deployment.health(HealthProbe::Responses)
            }
        }
    }

    /// Tells every driver that runs to end with what it has.
    fn interrupt(&mut self) {
        if self.interrupted_at.is_some() {
            return;
        }
        self.interrupted_at = Some(self.context.clock.now());
        for driver in self.drivers.iter().filter(|driver| driver.is_running()) {
            self.deployment.interrupt(&driver.run.name);
        }
    }

    /// Whether drivers that were interrupted are given up. They may wait for their last responses, but not for ever.
    fn has_waited_enough(&mut self, now: Duration) -> bool {
        if let Some(killed_at) = self.killed_at {
            return now.saturating_sub(killed_at) > KILL_TIMEOUT;
        }
        let waited = now.saturating_sub(self.interrupted_at.unwrap_or(now));
        if waited <= self.planned.timeout + DRIVER_EXIT_TIMEOUT {
            return false;
        }
        self.killed_at = Some(now);
        let running: Vec<String> = self
            .drivers
            .iter()
            .filter(|driver| driver.is_running())
            .map(|driver| driver.run.name.clone())
            .collect();
        for name in running {
            let waited = format!("it had not ended after {:.1} s and was stopped", waited.as_secs_f64());
            let error = EnvironmentError::new(format!("wait for {}", self.subject(&name)), waited);
            self.error.get_or_insert(error);
            self.deployment.kill(&name);
        }
        false
    }

    /// Finds what ended the trial where nothing has said so yet.
    fn find_cause(&mut self) {
        if self.ending != Ending::Finished {
            return;
        }
        let failed = self.early_end.is_some() || self.error.is_some();
        if failed && (self.context.stop)() {
            self.ending = Ending::Interrupted;
            return;
        }
        let cause = if failed { self.failure_that_shows_late() } else { None };
        // An unresponsive component may have been so for most of the window.
        let cause = cause.or_else(|| {
            if (self.context.stop)() { None } else { self.deployment.health(HealthProbe::Responses) }
        });
        match (cause, self.early_end.take()) {
            (Some(failure), _) => self.ending = component_failed(&failure),
            (None, Some(reason)) => self.ending = Ending::Failed(reason),
            (None, None) => {}
        }
    }

    /// A component that has just failed: its connections close a moment before its end shows.
    fn failure_that_shows_late(&mut self) -> Option<ComponentFailure> {
        let clock = self.context.clock;
        let give_up_at = clock.now() + COMPONENT_EXIT_TIMEOUT;
        loop {
            let failure = self.deployment.health(HealthProbe::Processes);
            if failure.is_some() || clock.now() >= give_up_at {
                return failure;
            }
            clock.sleep(COMPONENT_EXIT_TIMEOUT / 20);
        }
    }
}

fn component_failed(failure: &ComponentFailure) -> Ending {
    Ending::Failed(format!("in the trial, {} {}", failure.component, failure.how))
}

/// Why the end of a driver that nobody had interrupted was too early, as words that continue after its name.
fn early_end(end: &DriverEnd, planned: &PlannedTrial, last_message: Option<&str>) -> Option<String> {
    match (&end.result, end.exit_code) {
        // Somebody else interrupted it: its result is whole, but of less than the window.
        (Ok(result), _) if result.duration_s < MIN_WINDOW_FRACTION * planned.duration.as_secs_f64() => {
            let window = format_duration(planned.duration);
            Some(format!("ended after {:.1} s of its window of {window}", result.duration_s))
        }
        (Ok(_), _) => None,
        (Err(_), None) => Some("was ended by a signal".to_owned()),
        (Err(error), Some(code)) => {
            Some(format!("ended with status {code}: {}", last_message.unwrap_or(error)))
        }
    }
}

//! Follows the drivers of a trial from their start until all have exited, and reads the counters at both ends
//! of the window.

use super::context::RunContext;
use super::drivers::{self, DriverRun, GeneratorRun};
use super::fleet;
use super::progress::RunProgress;
use super::usage_by_second::UsageBySecond;
use super::verdict::Ending;
use experiment::PlannedTrial;
use experiment::environment::deploy::{
    ComponentFailure, Deployment, DriverEnd, DriverEvent, DriverEventKind, DriverResult, HealthProbe,
};
use experiment::environment::{EnvironmentError, Snapshot, WindowUsage};
use jiff::Timestamp;
use results::units::format_duration;
use results::{FleetProgress, LoadEvent, SeriesPoint};
use std::time::Duration;

/// Interval between checks of components while nothing else happens.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Time after the connection timeout within which every generator must be ready.
const READY_TIMEOUT: Duration = Duration::from_secs(30);
/// Time after its planned end at which a driver is considered hung.
const DRIVER_EXIT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time after which a killed driver is abandoned.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time between a component closing its connections and its exit.
const COMPONENT_EXIT_TIMEOUT: Duration = Duration::from_millis(500);
/// Consecutive seconds of the window without any response after which load does not explain it: a component
/// may hang.
const MAX_UNANSWERED_SECONDS: u32 = 3;
/// A window shorter than this fraction of the planned one was cut short.
const MIN_WINDOW_FRACTION: f64 = 0.99;

/// Outcome of the drivers.
pub(super) struct Followed {
    pub ending: Ending,
    /// In topology order.
    pub drivers: Vec<DriverRun>,
    /// Usage in the window; `None` if it was not read at both ends.
    pub usage: Option<WindowUsage>,
    /// Failure of the environment.
    pub error: Option<EnvironmentError>,
    /// The start came too late for a generator.
    pub start_missed: bool,
}

/// Follows the drivers of a trial, which must have been started. `attempts`: starts before that a generator has missed.
pub(super) fn follow(
    deployment: &mut dyn Deployment,
    planned: &PlannedTrial,
    attempts: u32,
    context: &RunContext<'_>,
    progress: &RunProgress,
) -> Followed {
    let mut follower = Follower {
        deployment,
        planned,
        attempts,
        start_missed: false,
        context,
        generators: FollowedGenerator::all_of(planned),
        released_at: None,
        opened: None,
        by_second: None,
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
        drivers: driver_runs(planned, follower.generators),
        usage: follower.usage,
        error: follower.error,
        start_missed: follower.start_missed,
    }
}

/// Drivers of the topology with their generators. `generators` is in topology order.
fn driver_runs(planned: &PlannedTrial, generators: Vec<FollowedGenerator>) -> Vec<DriverRun> {
    let mut runs: Vec<(usize, GeneratorRun)> =
        generators.into_iter().map(|generator| (generator.driver, generator.run)).collect();
    let drivers = planned.spec.topology.drivers.iter().enumerate();
    drivers
        .map(|(driver, placement)| {
            let own = runs.extract_if(.., |(of, _)| *of == driver).map(|(_, run)| run).collect();
            DriverRun::new(placement.name.clone(), own)
        })
        .collect()
}

struct Follower<'a> {
    deployment: &'a mut dyn Deployment,
    planned: &'a PlannedTrial,
    /// Starts before this one that came too late for a generator …
    attempts: u32,
    /// … and true if this one did.
    start_missed: bool,
    context: &'a RunContext<'a>,
    generators: Vec<FollowedGenerator>,
    /// Time at which all generators were told to start; `None` before, and if a single generator starts on its own.
    released_at: Option<Duration>,
    /// Counters at the opening of the window.
    opened: Option<Snapshot>,
    /// Usage within the window, for those who watch the run.
    by_second: Option<UsageBySecond>,
    /// True once a driver has closed its window: the trial's window can no longer open.
    any_closed: bool,
    usage: Option<WindowUsage>,
    ending: Ending,
    /// End of the trial because of the first generator that exited too early.
    early_end: Option<Ending>,
    /// Time at which the drivers were told to end early.
    interrupted_at: Option<Duration>,
    killed_at: Option<Duration>,
    error: Option<EnvironmentError>,
}

struct FollowedGenerator {
    run: GeneratorRun,
    /// Index of its driver in the topology.
    driver: usize,
    /// True if several generators share the driver's load.
    shares_load: bool,
    is_ready: bool,
    window_opened: bool,
    /// Consecutive seconds of its window, up to now, without any response.
    unanswered_seconds: u32,
    last_second: SeriesPoint,
    last_message: Option<String>,
}

impl FollowedGenerator {
    fn all_of(planned: &PlannedTrial) -> Vec<Self> {
        let topology = &planned.spec.topology;
        let drivers = topology.drivers.iter().enumerate();
        let generators = drivers.flat_map(|(driver, placement)| {
            let shares_load = topology.workloads[placement.at].replicas > 1;
            topology.generator_names(placement).map(move |name| Self {
                run: GeneratorRun { name, end: None },
                driver,
                shares_load,
                is_ready: false,
                window_opened: false,
                unanswered_seconds: 0,
                last_second: SeriesPoint::default(),
                last_message: None,
            })
        });
        generators.collect()
    }

    fn is_running(&self) -> bool {
        self.run.end.is_none()
    }
}

impl Follower<'_> {
    fn follow(&mut self, progress: &RunProgress) {
        let started_at = self.context.clock.now();
        let mut checked_at = started_at;
        while self.generators.iter().any(FollowedGenerator::is_running) {
            if let Some(event) = self.deployment.next_event(POLL_INTERVAL) {
                self.handle(event, progress);
            }
            self.read_usage(progress);
            let now = self.context.clock.now();
            if now.saturating_sub(checked_at) >= POLL_INTERVAL {
                checked_at = now;
                if let Some(opened) = self.opened.as_mut().filter(|_| !self.any_closed) {
                    self.deployment.complete_opening(opened);
                }
                if self.interrupted_at.is_none() {
                    self.check(now, started_at);
                } else if self.has_waited_enough(now) {
                    return;
                }
            }
        }
    }

    /// True while generators wait until all are ready.
    fn is_held(&self) -> bool {
        self.generators.len() > 1 && self.released_at.is_none()
    }

    /// Starts the load once every generator is ready.
    fn release_when_ready(&mut self) {
        if !self.is_held() || !self.generators.iter().all(|generator| generator.is_ready) {
            return;
        }
        self.released_at = Some(self.context.clock.now());
        let lead = self.start_lead();
        for (generator, opening) in drivers::window_openings(self.planned, Timestamp::now(), lead) {
            if let Err(error) = self.deployment.release(&generator, opening.into()) {
                return self.fail(error);
            }
        }
    }

    fn start_lead(&self) -> Duration {
        drivers::start_lead(self.planned, self.deployment.release_delay(), self.attempts)
    }

    /// Ends the trial if a generator has exceeded its time to become ready or to exit.
    fn overdue(&self, now: Duration, started_at: Duration) -> Option<Ending> {
        let since = |start: Duration| now.saturating_sub(start);
        if self.is_held() {
            let waited = since(started_at);
            let generator = self.generators.iter().find(|generator| !generator.is_ready)?;
            let is_late = waited > self.planned.timeout + READY_TIMEOUT;
            return is_late.then(|| {
                self.lost(generator, &format!("was not ready after {:.0} s", waited.as_secs_f64()))
            });
        }
        let longest = self.longest();
        let generator = self.generators.iter().find(|generator| generator.is_running())?;
        let is_late = since(self.released_at.unwrap_or(started_at)) > longest;
        is_late.then(|| self.lost(generator, "did not end in time"))
    }

    /// Time from their start after which drivers are considered hung.
    fn longest(&self) -> Duration {
        if let Some(settings) = &self.planned.fleet {
            return fleet::longest(settings);
        }
        let PlannedTrial { warmup, duration, timeout, .. } = *self.planned;
        let lead = self.released_at.map_or(Duration::ZERO, |_| self.start_lead());
        lead + warmup + duration + 2 * timeout + DRIVER_EXIT_TIMEOUT
    }

    /// Ending caused by a generator. `how` continues the sentence after its name.
    fn lost(&self, generator: &FollowedGenerator, how: &str) -> Ending {
        let what = format!("{} {how}", self.subject(generator));
        if generator.shares_load { Ending::GeneratorLost(what) } else { Ending::Failed(what) }
    }

    fn handle(&mut self, event: DriverEvent, progress: &RunProgress) {
        let DriverEvent { generator: name, kind } = event;
        let Some(place) = self.generators.iter().position(|one| one.run.name == name) else { return };
        if let DriverEventKind::Load(event) = &kind {
            self.tell_live(&self.generators[place], event);
        }
        if let (DriverEventKind::Fleet(event), Some(live)) = (&kind, self.context.live) {
            live.fleet(&name, event);
        }
        let generator = &mut self.generators[place];
        match kind {
            DriverEventKind::Load(LoadEvent::Ready) => {
                generator.is_ready = true;
                self.release_when_ready();
            }
            // Its end follows.
            DriverEventKind::Load(LoadEvent::StartMissed) => self.start_missed = true,
            DriverEventKind::Load(LoadEvent::WindowOpened)
            | DriverEventKind::Fleet(FleetProgress::WindowOpened) => {
                generator.window_opened = true;
                self.open_window();
            }
            DriverEventKind::Load(LoadEvent::WindowClosed)
            | DriverEventKind::Fleet(FleetProgress::WindowClosed) => self.close_window(),
            DriverEventKind::Fleet(FleetProgress::Ask(ask)) => {
                progress.fleet(&FleetProgress::Ask(ask.clone()));
                self.deployment.act(&name, &ask);
            }
            DriverEventKind::Fleet(event) => progress.fleet(&event),
            DriverEventKind::Load(LoadEvent::Second(point)) => {
                generator.unanswered_seconds =
                    if point.completed == 0 { generator.unanswered_seconds + 1 } else { 0 };
                generator.last_second = point;
                let all = self.generators.iter().map(|generator| &generator.last_second);
                progress.second((&name, &point), all);
            }
            DriverEventKind::Load(
                LoadEvent::Waiting
                | LoadEvent::Connecting
                | LoadEvent::WarmingUp
                | LoadEvent::SecondDetail(_),
            ) => {}
            DriverEventKind::Message(message) => generator.last_message = Some(message),
            DriverEventKind::Ended(end) => {
                let reason = early_end(&end, self.planned, generator.last_message.as_deref());
                generator.run.end = Some(*end);
                self.note_end(&name, reason);
            }
        }
    }

    fn tell_live(&self, generator: &FollowedGenerator, event: &LoadEvent) {
        if let Some(live) = self.context.live {
            let topology = &self.planned.spec.topology;
            let driver = &topology.drivers[generator.driver];
            let namespace = &topology.workloads[driver.at].namespace;
            live.load(&generator.run.name, &driver.name, namespace, event);
        }
    }

    /// Reads the components' usage of a second of the window, if one has ended.
    fn read_usage(&mut self, progress: &RunProgress) {
        let Some(by_second) = self.by_second.as_mut().filter(|_| !self.any_closed && progress.is_written())
        else {
            return;
        };
        if let Some(second) = by_second.read(self.deployment, self.context.clock) {
            progress.components(&second);
        }
    }

    /// Reads the counters once every generator has opened its window.
    fn open_window(&mut self) {
        let all_opened = self.generators.iter().all(|generator| generator.window_opened);
        if self.opened.is_some() || self.any_closed || !all_opened {
            return;
        }
        let opened_at = self.context.clock.now();
        match self.deployment.snapshot() {
            Ok(snapshot) => {
                self.by_second = Some(UsageBySecond::new(&snapshot, opened_at));
                self.opened = Some(snapshot);
            }
            Err(error) => return self.fail(error),
        }
        if self.context.profile
            && let Err(error) = self.deployment.begin_profile(self.planned.duration)
        {
            self.fail(error);
        }
    }

    /// Reads the counters again when the first generator closes its window.
    fn close_window(&mut self) {
        let is_first = !std::mem::replace(&mut self.any_closed, true);
        let Some(opened) = self.opened.as_ref().filter(|_| is_first) else { return };
        let closed = self.deployment.snapshot();
        if self.context.profile {
            self.deployment.end_profile();
        }
        match closed {
            Ok(closed) => self.usage = Some(closed.usage_since(opened)),
            Err(error) => self.fail(error),
        }
    }

    fn fail(&mut self, error: EnvironmentError) {
        self.error.get_or_insert(error);
        self.interrupt();
    }

    /// A generator has exited; `reason` says why that was too early. The others then measure something else,
    /// so the trial ends.
    fn note_end(&mut self, name: &str, reason: Option<String>) {
        let Some(reason) = reason.filter(|_| self.interrupted_at.is_none()) else { return };
        let generator = self.generators.iter().find(|generator| generator.run.name == name);
        self.early_end = generator.map(|generator| self.lost(generator, &reason));
        self.interrupt();
    }

    /// Name of a generator in messages: that of its driver, unless the driver has several.
    fn subject(&self, generator: &FollowedGenerator) -> String {
        match self.generators.len() {
            1 => "the generator".to_owned(),
            _ if generator.shares_load => generator.run.name.clone(),
            _ => format!("driver {}", generator.run.name),
        }
    }

    /// Ends the drivers early if there is a reason to.
    fn check(&mut self, now: Duration, started_at: Duration) {
        if (self.context.stop)() {
            self.ending = Ending::Interrupted;
        } else if let Some(failure) = self.failed_component() {
            self.ending = component_failed(&failure);
        } else if let Some(ending) = self.overdue(now, started_at) {
            // A generator is usually late because a component hangs. Then the component is named.
            let failure = self.deployment.health(HealthProbe::Responses);
            self.ending = failure.map_or(ending, |failure| component_failed(&failure));
        } else {
            return;
        }
        self.interrupt();
    }

    /// Probes components for responses only if the generators get none: probes would disturb a measurement.
    fn failed_component(&mut self) -> Option<ComponentFailure> {
        let mut generators = self.generators.iter_mut();
        match generators.find(|generator| generator.unanswered_seconds >= MAX_UNANSWERED_SECONDS) {
            None => self.deployment.health(HealthProbe::Polled),
            Some(generator) => {
                generator.unanswered_seconds = 0;
                self.deployment.health(HealthProbe::Responses)
            }
        }
    }

    /// Tells every running driver to end with what it has.
    fn interrupt(&mut self) {
        if self.interrupted_at.is_some() {
            return;
        }
        self.interrupted_at = Some(self.context.clock.now());
        for generator in self.generators.iter().filter(|generator| generator.is_running()) {
            self.deployment.interrupt(&generator.run.name);
        }
    }

    /// True if interrupted drivers are abandoned. They may wait for their last responses, but not forever.
    fn has_waited_enough(&mut self, now: Duration) -> bool {
        if let Some(killed_at) = self.killed_at {
            return now.saturating_sub(killed_at) > KILL_TIMEOUT;
        }
        let waited = now.saturating_sub(self.interrupted_at.unwrap_or(now));
        let of_its_own = self.planned.fleet.as_deref().map_or(self.planned.timeout, fleet::exit_timeout);
        if waited <= of_its_own + DRIVER_EXIT_TIMEOUT {
            return false;
        }
        self.killed_at = Some(now);
        let running = self.generators.iter().filter(|generator| generator.is_running());
        let running: Vec<(String, String)> =
            running.map(|generator| (generator.run.name.clone(), self.subject(generator))).collect();
        for (name, subject) in running {
            let waited = format!("it had not ended after {:.1} s and was stopped", waited.as_secs_f64());
            self.error.get_or_insert(EnvironmentError::new(format!("wait for {subject}"), waited));
            self.deployment.kill(&name);
        }
        false
    }

    /// Finds what ended the trial, unless that is known already.
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
        // An unresponsive component may have been unresponsive for most of the window.
        let cause = cause.or_else(|| {
            if (self.context.stop)() { None } else { self.deployment.health(HealthProbe::Responses) }
        });
        match (cause, self.early_end.take()) {
            (Some(failure), _) => self.ending = component_failed(&failure),
            (None, Some(ending)) => self.ending = ending,
            (None, None) => {}
        }
    }

    /// Finds a component that has just failed: its connections close a moment before its exit is visible.
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

/// Reason for which a driver that was not interrupted exited too early. The text continues the sentence after its name.
fn early_end(end: &DriverEnd, planned: &PlannedTrial, last_message: Option<&str>) -> Option<String> {
    match (&end.result, end.exit_code) {
        // Interrupted by someone else: the result is complete, but covers less than the window.
        (Ok(DriverResult::Load(result)), _)
            if result.duration_s < MIN_WINDOW_FRACTION * planned.duration.as_secs_f64() =>
        {
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

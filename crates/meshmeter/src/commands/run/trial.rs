//! One trial: bring up the arrangement, let the generator run, read the counters at the edges of its window.

use super::generator;
use super::progress::RunProgress;
use super::verdict::{self, Ending};
use experiment::PlannedTrial;
use experiment::environment::{
    Arrangement, Environment, EnvironmentError, LastLines, Observation, SentLoad, in_one_line,
};
use experiment::schema::{
    LoadEvent, LoadResult, Retake, Role, SchedulingUsage, TRIAL_SCHEMA, TrialOutcome, TrialRecord,
};
use experiment::units::format_duration;
use lab::arrangement::pair::GENERATOR;
use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::ChildStderr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Where the generator leaves its result, in the trial's log folder.
const RESULT_FILE: &str = "load.json";
/// How often components are looked at while nothing else happens.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// Time beyond its plan that a generator gets before it is taken to hang.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long after the end of its connections a component's own end may show.
const DEATH_SHOWS_WITHIN: Duration = Duration::from_millis(500);
/// So many seconds of the window without a single answer, one after the other, are no longer a matter of the load:
/// somebody may hang.
const UNANSWERED_SECONDS: u32 = 3;
/// A window of less than this share of the planned one was cut short.
const WHOLE_WINDOW: f64 = 0.99;
/// Lines of the generator's own messages that are kept.
const MESSAGES_KEPT: usize = 20;

/// Which trial of the run it is.
pub(super) struct Take {
    /// Place in the order of execution, from 0.
    pub index: usize,
    /// Of what it is another take, and why; absent for a first one.
    pub retake: Option<Retake>,
}

/// Runs a trial. An error of the environment comes beside the record that tells of it.
pub(super) fn run(
    environment: &mut dyn Environment,
    planned: &PlannedTrial,
    take: Take,
    log_dir: &Path,
    stop: &dyn Fn() -> bool,
    progress: &mut RunProgress,
) -> (TrialRecord, Option<EnvironmentError>) {
    let started_at = jiff::Timestamp::now();
    let seen = attempt(environment, planned, log_dir, stop, progress).unwrap_or_else(|error| {
        // Whatever waits while a lab is brought up ends with an error when the user stops the run.
        Seen::failed(error, Seen { ending: ending_so_far(stop), ..Seen::default() })
    });
    let record = TrialRecord {
        schema: TRIAL_SCHEMA.to_owned(),
        index: take.index,
        repeat: planned.repeat,
        mode: planned.mode,
        factors: planned.factors.clone(),
        load: planned.load.clone(),
        started_at: started_at.to_string(),
        outcome: match seen.ending {
            Ending::Finished => TrialOutcome::Finished,
            Ending::Interrupted => TrialOutcome::Interrupted,
            Ending::Failed(_) => TrialOutcome::Failed,
        },
        verdict: verdict::judge(&seen.ending, seen.result.as_ref(), &seen.observation),
        result: seen.result,
        drivers: Vec::new(),
        services: Vec::new(),
        components: seen.observation.components,
        path: seen.observation.path,
        machine: seen.observation.machine,
        log_tails: seen.observation.log_tails,
        hints: seen.observation.hints,
        push: seen.observation.push,
        retake: take.retake,
    };
    (record, seen.failure)
}

/// What came of a trial.
#[derive(Default)]
struct Seen {
    ending: Ending,
    result: Option<LoadResult>,
    observation: Observation,
    failure: Option<EnvironmentError>,
}

impl Seen {
    /// What was seen of a trial that the environment failed.
    fn failed(error: EnvironmentError, seen: Self) -> Self {
        let Self { mut ending, mut observation, result, .. } = seen;
        // Otherwise what ended it came first, and the error follows from it.
        if ending == Ending::Finished {
            ending = Ending::Failed(in_one_line(&error));
            if let Some(LastLines { component, lines }) = error.nearest_component() {
                observation.log_tails.entry(component.clone()).or_insert_with(|| lines.clone());
            }
            let hint =
                error.nearest_hint().filter(|hint| observation.hints.iter().all(|other| other != hint));
            observation.hints.extend(hint.map(str::to_owned));
        }
        Self { ending, observation, result, failure: Some(error) }
    }
}

/// How a trial ends if nothing else ends it.
fn ending_so_far(stop: &dyn Fn() -> bool) -> Ending {
    if stop() { Ending::Interrupted } else { Ending::Finished }
}

fn attempt(
    environment: &mut dyn Environment,
    planned: &PlannedTrial,
    log_dir: &Path,
    stop: &dyn Fn() -> bool,
    progress: &mut RunProgress,
) -> Result<Seen, EnvironmentError> {
    let mut arrangement = environment.prepare(&planned.spec, log_dir)?;
    let result_path = log_dir.join(RESULT_FILE);
    let arguments = generator::arguments(planned, &*arrangement, log_dir, &result_path)?;
    let events = match arrangement.start_generator(&arguments) {
        Ok(events) => listen(events),
        // Something has died since it was brought up: its last words are kept.
        Err(error) => {
            let observation = arrangement.finish(&SentLoad::default());
            return Ok(Seen::failed(
                error,
                Seen { ending: ending_so_far(stop), observation, ..Seen::default() },
            ));
        }
    };
    let mut following = Following {
        arrangement: &mut *arrangement,
        events,
        stop,
        ending: Ending::Finished,
        unanswered_s: 0,
        messages: Vec::new(),
        last_lines: VecDeque::new(),
    };
    let followed = following.follow(planned, progress);
    let Following { mut ending, messages, last_lines, .. } = following;
    if followed.is_err() {
        arrangement.interrupt_generator();
    }
    let ended = arrangement.wait_generator(PATIENCE);
    let result = read_result(&result_path);
    if ending == Ending::Finished
        && let Ok(exit_code) = &ended
    {
        ending = how_it_ended(*exit_code, &result, planned, messages.last());
        // It may have ended because somebody else did.
        let cause = match &ending {
            Ending::Failed(_) => cause_of_early_end(&mut *arrangement),
            _ => None,
        };
        // Whoever hangs by now may have hung for most of the window.
        let silent = || if stop() { None } else { arrangement.failed_or_silent_component() };
        if let Some((component, how)) = cause.or_else(silent) {
            ending = component_failed(&component, &how);
        }
    }
    let result = result.ok();
    let sent = result.as_ref().map(sent_load).unwrap_or_default();
    // Whatever failed: what was measured until then is kept, and the last words of what died.
    let mut observation = arrangement.finish(&sent);
    match &result {
        Some(result) => add_own_switches(&mut observation, result),
        // Nothing else failed, and it left nothing but its last words.
        None if observation.log_tails.is_empty()
            && !last_lines.is_empty()
            && ending != Ending::Interrupted =>
        {
            observation.log_tails.insert(GENERATOR.to_owned(), last_lines.into());
        }
        None => {}
    }
    let seen = Seen { ending, observation, result, failure: None };
    Ok(match followed.and(ended) {
        Ok(_) => seen,
        Err(error) => Seen::failed(error, seen),
    })
}

/// A component whose failure ended the generator early. Of one that dies, the sockets close a moment before its end shows.
fn cause_of_early_end(arrangement: &mut dyn Arrangement) -> Option<(String, String)> {
    let give_up_at = Instant::now() + DEATH_SHOWS_WITHIN;
    loop {
        let failed = arrangement.failed_component();
        if failed.is_some() {
            return failed;
        }
        if Instant::now() >= give_up_at {
            return None;
        }
        thread::sleep(DEATH_SHOWS_WITHIN / 20);
    }
}

fn component_failed(component: &str, how: &str) -> Ending {
    Ending::Failed(format!("in the trial, {component} {how}"))
}

/// What the generator counted. Its bytes are those of the window, and requests of the warm-up are like the others.
fn sent_load(result: &LoadResult) -> SentLoad {
    let (sent, bytes) = (result.requests.sent, result.bytes.sent);
    SentLoad {
        requests: sent + result.warmup.sent,
        request_bytes: (sent > 0).then(|| bytes as f64 / sent as f64),
    }
}

/// Whether a generator that nobody here ended did what it was to do.
fn how_it_ended(
    exit_code: Option<i32>,
    result: &Result<LoadResult, String>,
    planned: &PlannedTrial,
    said: Option<&String>,
) -> Ending {
    match (result, exit_code) {
        // It was interrupted, and not by us: its result is whole, but of less than the window.
        (Ok(result), _) if result.duration_s < WHOLE_WINDOW * planned.duration.as_secs_f64() => {
            let window = format_duration(planned.duration);
            Ending::Failed(format!(
                "the generator ended after {:.1} s of its window of {window}",
                result.duration_s
            ))
        }
        (Ok(_), _) => Ending::Finished,
        (Err(_), None) => Ending::Failed("the generator was ended by a signal".to_owned()),
        (Err(error), Some(code)) => Ending::Failed(format!(
            "the generator ended with status {code}: {}",
            said.map_or(error.as_str(), String::as_str)
        )),
    }
}

/// The generator's threads end with its window, before anybody can read their context switches: it counts them itself.
fn add_own_switches(observation: &mut Observation, result: &LoadResult) {
    let generator = observation.components.iter_mut().find(|component| component.role == Role::Generator);
    if let Some(generator) = generator {
        generator.scheduling.get_or_insert(SchedulingUsage {
            voluntary_switches: result.generator.voluntary_switches,
            involuntary_switches: result.generator.involuntary_switches,
        });
    }
}

/// A line that the generator wrote to its standard error.
struct Heard {
    line: String,
    /// What it says to us; absent where it is for people.
    event: Option<LoadEvent>,
}

/// Reads the generator's standard error on a thread of its own: it ends with the generator.
fn listen(stderr: ChildStderr) -> Receiver<Heard> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            let event = serde_json::from_str(&line).ok();
            if sender.send(Heard { line, event }).is_err() {
                break;
            }
        }
    });
    receiver
}

/// A generator at work.
struct Following<'a> {
    arrangement: &'a mut dyn Arrangement,
    events: Receiver<Heard>,
    stop: &'a dyn Fn() -> bool,
    ending: Ending,
    /// Seconds of the window in a row, up to now, in which nothing was answered.
    unanswered_s: u32,
    messages: Vec<String>,
    /// All that it wrote last, of whatever kind.
    last_lines: VecDeque<String>,
}

impl Following<'_> {
    /// Follows the generator until it closes its standard error, or does not although it was told to end.
    fn follow(&mut self, planned: &PlannedTrial, progress: &mut RunProgress) -> Result<(), EnvironmentError> {
        let give_up = Instant::now() + planned.warmup + planned.duration + 2 * planned.timeout + PATIENCE;
        let mut last_look = Instant::now();
        let mut told_to_end_at = None;
        loop {
            match self.events.recv_timeout(LOOK_INTERVAL) {
                Ok(heard) => self.hear(heard, progress)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            if last_look.elapsed() >= LOOK_INTERVAL {
                self.look(give_up);
                last_look = Instant::now();
                if self.ending != Ending::Finished {
                    // It may wait for its last answers, but not for ever: it may itself be stopped, or stuck.
                    let since = told_to_end_at.get_or_insert(last_look);
                    if since.elapsed() > planned.timeout {
                        return Ok(());
                    }
                }
            }
        }
    }

    fn hear(&mut self, heard: Heard, progress: &RunProgress) -> Result<(), EnvironmentError> {
        let Heard { line, event } = heard;
        match event {
            Some(LoadEvent::WindowOpened) => self.arrangement.window_opened()?,
            Some(LoadEvent::WindowClosed) => self.arrangement.window_closed()?,
            Some(LoadEvent::Second(point)) => {
                self.unanswered_s = if point.completed == 0 { self.unanswered_s + 1 } else { 0 };
                progress.second(&point);
            }
            Some(LoadEvent::Waiting | LoadEvent::Connecting | LoadEvent::WarmingUp) => {}
            None if self.messages.len() < MESSAGES_KEPT => self.messages.push(line.clone()),
            None => {}
        }
        if self.last_lines.len() == MESSAGES_KEPT {
            self.last_lines.pop_front();
        }
        self.last_lines.push_back(line);
        Ok(())
    }

    /// Who failed. Signs of life are asked for only where nothing passes: it would be no measurement otherwise.
    fn failed_component(&mut self) -> Option<(String, String)> {
        if self.unanswered_s < UNANSWERED_SECONDS {
            return self.arrangement.failed_component();
        }
        self.unanswered_s = 0;
        self.arrangement.failed_or_silent_component()
    }

    /// Ends the generator early where there is a reason.
    fn look(&mut self, give_up: Instant) {
        if self.ending != Ending::Finished {
            return;
        }
        if (self.stop)() {
            self.ending = Ending::Interrupted;
        } else if let Some((component, how)) = self.failed_component() {
            self.ending = component_failed(&component, &how);
        } else if Instant::now() > give_up {
            self.ending = Ending::Failed("the generator did not end in time".to_owned());
        } else {
            return;
        }
        self.arrangement.interrupt_generator();
    }
}

fn read_result(path: &Path) -> Result<LoadResult, String> {
    let text = fs::read(path).map_err(|error| format!("read {}: {error}", path.display()))?;
    serde_json::from_slice(&text).map_err(|error| format!("read {}: {error}", path.display()))
}

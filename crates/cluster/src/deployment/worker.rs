//! A worker from the run's side: its port, its clock, and the generator in it.

use super::silence::Silences;
use crate::Result;
use crate::gateway::Destination;
use crate::settings::WORKER_PORT;
use crate::worker::protocol::{
    End, FINISH_PATH, INPUT_PATH, Input, PROGRESS_PATH, PROGRESS_WAIT, Progress, RESULT_PATH, SIGNAL_PATH,
    START_PATH, STATUS_PATH, Signal, Start, StartArgument, Status, unix_ns,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use experiment::environment::deploy::{
    Argument, DriverEnd, DriverEvent, DriverEventKind, DriverResult, DriverStart, DriverVerb,
};
use experiment::environment::{EnvironmentError, ErrorContext as _, in_one_line};
use experiment::schema::LoadResult;
use jiff::Timestamp;
use mesh::admin::Admin;
use mesh::kubernetes::client::ApiClient;
use mesh::kubernetes::port_forward::PortForward;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

/// Readings of a worker's clock; the quickest is the best.
const CLOCK_READINGS: usize = 5;
/// A worker that does not answer for this long is lost.
const LOST_AFTER: Duration = Duration::from_secs(20);
const RETRY_INTERVAL: Duration = Duration::from_millis(500);
const LAST_LINES: usize = 20;
/// Exit status of a container that was killed: 128 and the number of SIGKILL.
const KILLED: i32 = 137;

#[derive(Debug)]
pub(super) struct Worker {
    pub pod: String,
    pub admin: Admin,
    forward: PortForward,
    pub clock: Clock,
}

/// A worker's clock against this machine's.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    /// Positive: the worker's is ahead.
    pub offset_ns: i128,
    /// Half of the time that the reading took: the offset is no farther off.
    pub bound_ns: i128,
}

impl Clock {
    /// What a start allows for: nothing where the offset is within the error of its reading, which would be a correction by
    /// noise and set workers of one machine apart.
    pub fn correction_ns(self) -> i64 {
        if self.offset_ns.abs() <= self.bound_ns {
            return 0;
        }
        i64::try_from(self.offset_ns).unwrap_or(0)
    }
}

impl Worker {
    pub fn connect(api: &ApiClient, namespace: &str, pod: &str) -> Result<Self> {
        let forward = api.forward(namespace, pod, WORKER_PORT)?;
        let admin = forward.admin(pod);
        Ok(Self { pod: pod.to_owned(), admin, forward, clock: Clock::default() })
    }

    /// Its status; the error says why the API does not lead there, if that is why.
    pub fn status(&self) -> Result<Status> {
        let operation = || format!("ask worker {}", self.pod);
        self.admin.ask_json(STATUS_PATH).map_err(|error| match self.forward.last_error() {
            Some(reason) => EnvironmentError::new(operation(), reason),
            None => EnvironmentError::new(operation(), error),
        })
    }

    pub fn read_clock(&mut self) -> Result<()> {
        let mut best: Option<Clock> = None;
        for _ in 0..CLOCK_READINGS {
            let before = i128::from(unix_ns(Timestamp::now()));
            let status = self.status()?;
            let after = i128::from(unix_ns(Timestamp::now()));
            let bound_ns = (after - before) / 2;
            let offset_ns = i128::from(status.now_ns) - (before + bound_ns);
            if best.is_none_or(|best| bound_ns < best.bound_ns) {
                best = Some(Clock { offset_ns, bound_ns });
            }
        }
        self.clock = best.unwrap_or_default();
        Ok(())
    }

    /// Starts a generator that sends its requests there.
    pub fn start(&self, number: u64, start: &DriverStart, destination: &Destination) -> Result<()> {
        if start.verb == DriverVerb::Fleet {
            let reason = "fleets do not run on clusters yet";
            return Err(EnvironmentError::new(format!("start {}", start.generator), reason));
        }
        let mut arguments = vec![StartArgument::Text("load".to_owned())];
        arguments.extend(start.verb.urls(&destination.url).into_iter().map(StartArgument::Text));
        arguments.extend(destination.arguments.iter().cloned());
        arguments.extend(start.arguments.iter().map(|argument| match argument {
            Argument::Text(text) => StartArgument::Text(text.clone()),
            Argument::File { name, content } => {
                StartArgument::File { name: name.clone(), content_base64: STANDARD.encode(content) }
            }
        }));
        if start.verb.is_held() {
            arguments.push(StartArgument::Text("--start-at=-".to_owned()));
        }
        self.start_with(number, arguments).context(format!("start {}", start.generator))
    }

    pub fn start_with(&self, number: u64, arguments: Vec<StartArgument>) -> Result<()> {
        self.admin.post_json::<()>(START_PATH, &Start { number, arguments }).context("start a generator")
    }

    pub fn progress(&self, from: usize) -> Result<Progress> {
        self.admin.ask_json(&format!("{PROGRESS_PATH}?{from}")).context("ask a worker for progress")
    }

    pub fn result(&self) -> Result<LoadResult> {
        self.admin.ask_long_json(RESULT_PATH).context("copy a result off")
    }

    pub fn finish(&self) {
        // One that is gone needs no word.
        let _ = self.admin.post_json::<()>(FINISH_PATH, &());
    }
}

/// A line for a generator, sent from a thread of its own: several are to hear of their start at once.
pub(super) fn send_line(admin: &Admin, line: String) {
    let admin = admin.clone();
    // One that has ended does not hear it: its end is an event.
    thread::spawn(move || drop(admin.post_json::<()>(INPUT_PATH, &Input { line })));
}

pub(super) fn send_signal(admin: &Admin, signal: Signal) {
    let admin = admin.clone();
    thread::spawn(move || drop(admin.post_json::<()>(SIGNAL_PATH, &signal)));
}

/// A generator whose progress is read, on a thread that ends with it.
pub(super) struct Followed {
    pub generator: String,
    pub number: u64,
    pub admin: Admin,
    pub pod: String,
    pub silences: Silences,
    pub events: Sender<DriverEvent>,
    /// The deployment is over.
    pub is_over: Arc<AtomicBool>,
}

impl Followed {
    pub fn follow(self) {
        thread::spawn(move || {
            let mut last_lines = VecDeque::with_capacity(LAST_LINES);
            let end = self.read_until_end(&mut last_lines);
            let (exit_code, result) = match end {
                Ok(End { is_oom_killed: true, .. }) => {
                    let how = "killed at the memory limit of its container (OOMKilled)".to_owned();
                    self.send(DriverEventKind::Message(how.clone()));
                    (Some(KILLED), Err(how))
                }
                Ok(end) => (end.exit_code, self.read_result(&end)),
                Err(reason) => (None, Err(reason)),
            };
            let end = DriverEnd { exit_code, result, last_lines: last_lines.into() };
            self.send(DriverEventKind::Ended(Box::new(end)));
        });
    }

    fn read_until_end(&self, last_lines: &mut VecDeque<String>) -> Result<End, String> {
        let (mut read, mut heard_at) = (0, Instant::now());
        loop {
            if self.is_over.load(Ordering::Relaxed) {
                return Err("the trial is over".to_owned());
            }
            let progress: Result<Progress, _> = self.admin.ask_json(&format!("{PROGRESS_PATH}?{read}"));
            let progress = match progress {
                Ok(progress) if progress.number == self.number => progress,
                Ok(_) => return Err("another trial has begun in its worker".to_owned()),
                Err(error) if heard_at.elapsed() > LOST_AFTER => {
                    let silent_s = heard_at.elapsed().as_secs();
                    self.note_silence(heard_at);
                    return Err(format!("its worker was lost {silent_s} s ago: {}", in_one_line(&error)));
                }
                Err(_) => {
                    thread::sleep(RETRY_INTERVAL);
                    continue;
                }
            };
            self.note_silence(heard_at);
            heard_at = Instant::now();
            read += progress.lines.len();
            for line in progress.lines {
                let event = serde_json::from_str(&line).map(DriverEventKind::Load);
                self.send(event.unwrap_or_else(|_| DriverEventKind::Message(line.clone())));
                if last_lines.len() == LAST_LINES {
                    last_lines.pop_front();
                }
                last_lines.push_back(line);
            }
            if let Some(end) = progress.ended {
                return Ok(end);
            }
        }
    }

    fn note_silence(&self, heard_at: Instant) {
        let silence = heard_at.elapsed().saturating_sub(PROGRESS_WAIT);
        self.silences.note(&format!("the worker in pod {}", self.pod), silence);
    }

    /// Copies the result off, trying again while the API is away for a while.
    fn read_result(&self, end: &End) -> Result<DriverResult, String> {
        if end.result_bytes.is_none() {
            return Err("no result was written".to_owned());
        }
        let began = Instant::now();
        loop {
            match self.admin.ask_long_json::<LoadResult>(RESULT_PATH) {
                Ok(result) => return Ok(result.into()),
                Err(error) if began.elapsed() > LOST_AFTER => {
                    return Err(format!("copy its result off: {}", in_one_line(&error)));
                }
                Err(_) => thread::sleep(RETRY_INTERVAL),
            }
        }
    }

    fn send(&self, kind: DriverEventKind) {
        // Nobody listens any longer once the trial has ended.
        let _ = self.events.send(DriverEvent { generator: self.generator.clone(), kind });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offset_within_the_error_of_its_reading_is_not_corrected() {
        let correction = |offset_ns, bound_ns| Clock { offset_ns, bound_ns }.correction_ns();
        assert_eq!(correction(5_600_000, 7_300_000), 0);
        assert_eq!(correction(-90_000_000, 7_300_000), -90_000_000);
    }
}

//! A worker as seen from the run: its port, its clock, and its generator.

use super::unresponsive::UnresponsivePeriods;
use crate::Result;
use crate::gateway::Destination;
use crate::port_forward::PortForward;
use crate::retry::retry;
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
use experiment::environment::{EnvironmentError, ErrorContext as _, error_chain};
use jiff::Timestamp;
use mesh::admin::Admin;
use mesh::kubernetes::client::ApiClient;
use results::{LoadEvent, LoadResult};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

/// Number of readings of a worker's clock; the one with the shortest round trip counts.
const CLOCK_READINGS: usize = 5;
/// A worker that does not respond for this long is lost.
const LOST_AFTER: Duration = Duration::from_secs(20);
const RETRY_INTERVAL: Duration = Duration::from_millis(500);
pub(super) const LAST_LINES: usize = 20;
/// Minimum time that generators get for the message that starts them. Messages pass the API server and a kubelet: on
/// a full node of two CPUs this took up to 0.9 s, with compilers beside it more than two.
const MIN_RELEASE_DELAY: Duration = Duration::from_secs(2);
/// The same in messages: a multiple of the slowest one to any worker so far.
const RELEASE_DELAY_MESSAGES: u32 = 3;
/// Maximum: a worker that slow is about to be considered lost.
const MAX_RELEASE_DELAY: Duration = LOST_AFTER;
/// Exit status of a container that was killed: 128 plus the number of SIGKILL.
const KILLED: i32 = 137;

#[derive(Debug)]
pub(super) struct Worker {
    pub pod: String,
    pub admin: Admin,
    forward: PortForward,
    pub clock: Clock,
    /// Duration of the slowest message so far, nanoseconds.
    slowest_message_ns: AtomicU64,
}

/// A worker's clock relative to this machine's.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    /// Positive if the worker's clock is ahead.
    pub offset_ns: i128,
    /// Half the duration of the reading, which bounds the error of the offset.
    pub bound_ns: i128,
}

impl Clock {
    /// Correction of start times. It is 0 if the offset is within the error of its reading: correcting by
    /// noise would only desynchronise workers on one machine.
    pub fn correction_ns(self) -> i64 {
        if self.offset_ns.abs() <= self.bound_ns {
            return 0;
        }
        i64::try_from(self.offset_ns).unwrap_or(0)
    }
}

impl Worker {
    pub fn connect(api: &ApiClient, namespace: &str, pod: &str) -> Result<Self> {
        let forward = PortForward::open(api, namespace, pod, WORKER_PORT)?;
        let admin = forward.admin(pod);
        Ok(Self {
            pod: pod.to_owned(),
            admin,
            forward,
            clock: Clock::default(),
            slowest_message_ns: AtomicU64::new(0),
        })
    }

    /// Queries its status. If the API is the reason for a failure, the error says why.
    pub fn status(&self) -> Result<Status> {
        let operation = || format!("query worker {}", self.pod);
        self.admin.get_json(STATUS_PATH).map_err(|error| match self.forward.last_error() {
            Some(reason) => EnvironmentError::new(operation(), reason),
            None => EnvironmentError::new(operation(), error),
        })
    }

    /// Duration of the slowest message to this worker so far, its acknowledgement included.
    pub fn slowest_message(&self) -> Duration {
        Duration::from_nanos(self.slowest_message_ns.load(Ordering::Relaxed))
    }

    /// Notes how long a message took that got through.
    fn timed<T>(&self, send: impl FnOnce() -> Result<T>) -> Result<T> {
        let sent_at = Instant::now();
        let answer = send()?;
        let took_ns = u64::try_from(sent_at.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.slowest_message_ns.fetch_max(took_ns, Ordering::Relaxed);
        Ok(answer)
    }

    pub fn read_clock(&mut self) -> Result<()> {
        let mut best: Option<Clock> = None;
        for _ in 0..CLOCK_READINGS {
            // On a full node a question may stay unanswered. Then it is put again, and timed anew.
            let (before, status, after) = retry(LOST_AFTER, || {
                let before = i128::from(unix_ns(Timestamp::now()));
                let status = self.timed(|| self.status())?;
                Ok((before, status, i128::from(unix_ns(Timestamp::now()))))
            })?;
            let bound_ns = (after - before) / 2;
            let offset_ns = i128::from(status.now_ns) - (before + bound_ns);
            if best.is_none_or(|best| bound_ns < best.bound_ns) {
                best = Some(Clock { offset_ns, bound_ns });
            }
        }
        self.clock = best.unwrap_or_default();
        Ok(())
    }

    /// Starts a generator that sends its requests to this destination.
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
            Argument::File { prefix, name, content } => StartArgument::File {
                prefix: prefix.clone(),
                name: name.clone(),
                content_base64: STANDARD.encode(content),
            },
        }));
        if start.verb.is_held() {
            arguments.push(StartArgument::Text("--start-at=-".to_owned()));
        }
        self.start_with(number, arguments).context(format!("start {}", start.generator))
    }

    pub fn start_with(&self, number: u64, arguments: Vec<StartArgument>) -> Result<()> {
        let start = Start { number, arguments };
        self.timed(|| self.admin.post_json::<()>(START_PATH, &start).context("start a generator"))
    }

    pub fn progress(&self, from: usize) -> Result<Progress> {
        self.admin.get_json(&format!("{PROGRESS_PATH}?{from}")).context("query the progress of a worker")
    }

    pub fn result(&self) -> Result<LoadResult> {
        self.admin.ask_long_json(RESULT_PATH).context("copy a result off")
    }

    pub fn finish(&self) {
        // A worker that is gone need not be told.
        let _ = self.admin.post_json::<()>(FINISH_PATH, &());
    }
}

/// Time for the message that starts generators to reach all of them.
pub(super) fn release_delay(slowest_message: Duration) -> Duration {
    (slowest_message * RELEASE_DELAY_MESSAGES).clamp(MIN_RELEASE_DELAY, MAX_RELEASE_DELAY)
}

/// Sends a line to a generator, from a separate thread: several generators must receive their start at once.
pub(super) fn send_line(admin: &Admin, line: String) {
    let admin = admin.clone();
    // A generator that has ended ignores it: its end is an event.
    thread::spawn(move || drop(admin.post_json::<()>(INPUT_PATH, &Input { line })));
}

pub(super) fn send_signal(admin: &Admin, signal: Signal) {
    let admin = admin.clone();
    thread::spawn(move || drop(admin.post_json::<()>(SIGNAL_PATH, &signal)));
}

/// A generator whose progress is read by a thread that ends with it.
pub(super) struct Followed {
    pub generator: String,
    pub number: u64,
    pub admin: Admin,
    pub pod: String,
    pub unresponsive_periods: UnresponsivePeriods,
    pub events: Sender<DriverEvent>,
    /// True once the deployment is over.
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
            let progress: Result<Progress, _> = self.admin.get_json(&format!("{PROGRESS_PATH}?{read}"));
            let progress = match progress {
                Ok(progress) if progress.number == self.number => progress,
                Ok(_) => return Err("another trial has begun in its worker".to_owned()),
                Err(error) if heard_at.elapsed() > LOST_AFTER => {
                    let silent_s = heard_at.elapsed().as_secs();
                    self.note_silence(heard_at);
                    return Err(format!("its worker was lost {silent_s} s ago: {}", error_chain(&error)));
                }
                Err(_) => {
                    thread::sleep(RETRY_INTERVAL);
                    continue;
                }
            };
            self.note_silence(heard_at);
            heard_at = Instant::now();
            read = progress.next;
            events(progress.lines, last_lines).for_each(|event| self.send(event));
            if let Some(end) = progress.ended {
                return Ok(end);
            }
        }
    }

    fn note_silence(&self, heard_at: Instant) {
        let silence = heard_at.elapsed().saturating_sub(PROGRESS_WAIT);
        self.unresponsive_periods.note(&format!("the worker in pod {}", self.pod), silence);
    }

    /// Copies the result, and retries if the API is away for a while.
    fn read_result(&self, end: &End) -> Result<DriverResult, String> {
        if end.result_bytes.is_none() {
            return Err("no result was written".to_owned());
        }
        let began = Instant::now();
        loop {
            match self.admin.ask_long_json::<LoadResult>(RESULT_PATH) {
                Ok(result) => return Ok(result.into()),
                Err(error) if began.elapsed() > LOST_AFTER => {
                    return Err(format!("copy its result off: {}", error_chain(&error)));
                }
                Err(_) => thread::sleep(RETRY_INTERVAL),
            }
        }
    }

    fn send(&self, kind: DriverEventKind) {
        // There is no receiver any more once the trial has ended.
        let _ = self.events.send(DriverEvent { generator: self.generator.clone(), kind });
    }
}

/// Events of these lines: those that a generator reports, and any other line as a message. The last lines are
/// kept.
pub(super) fn events(
    lines: Vec<String>,
    last_lines: &mut VecDeque<String>,
) -> impl Iterator<Item = DriverEventKind> {
    lines.into_iter().map(|line| {
        let event = LoadEvent::from_json(&line).map(DriverEventKind::Load);
        let event = event.unwrap_or_else(|_| DriverEventKind::Message(line.clone()));
        if last_lines.len() == LAST_LINES {
            last_lines.pop_front();
        }
        last_lines.push_back(line);
        event
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generators_get_three_messages_time_to_start() {
        let delay_ms = |slowest_ms| release_delay(Duration::from_millis(slowest_ms)).as_millis();
        assert_eq!([0, 10, 1500, 60_000].map(delay_ms), [2000, 2000, 4500, 20_000]);
    }

    #[test]
    fn offset_within_reading_error_is_not_corrected() {
        let correction = |offset_ns, bound_ns| Clock { offset_ns, bound_ns }.correction_ns();
        assert_eq!(correction(5_600_000, 7_300_000), 0);
        assert_eq!(correction(-90_000_000, 7_300_000), -90_000_000);
    }
}

//! Drivers: load generators and fleets as processes in pods, their events and their results.

use crate::Result;
use crate::container::Container;
use crate::private_dir::PrivateDir;
use experiment::environment::deploy::{DriverEnd, DriverEvent, DriverEventKind, DriverResult, DriverVerb};
use experiment::environment::{EnvironmentError, ErrorContext};
use jiff::Timestamp;
use mesh::lines::each_line;
use results::{FleetAnswer, FleetProgress, FleetResult, LoadEvent, LoadResult};
use std::collections::VecDeque;
use std::fs;
use std::io::{BufReader, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, ChildStdin};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

const LAST_LINES: usize = 20;

/// Time between two checks whether a driver has ended that has closed its standard error.
const END_INTERVAL: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Drivers {
    running: Vec<RunningDriver>,
    sender: Sender<DriverEvent>,
    events: Receiver<DriverEvent>,
}

#[derive(Debug)]
struct RunningDriver {
    name: String,
    pod: String,
    container: Container,
    /// Present for a fleet, and for a generator that is held until its release.
    input: Option<ChildStdin>,
    _files: PrivateDir,
}

impl Default for Drivers {
    fn default() -> Self {
        let (sender, events) = channel();
        Self { running: Vec::new(), sender, events }
    }
}

impl Drivers {
    pub fn containers(&self) -> impl Iterator<Item = (&str, &str, &Container)> {
        self.running.iter().map(|driver| (driver.name.as_str(), driver.pod.as_str(), &driver.container))
    }

    pub fn next_event(&self, timeout: Duration) -> Option<DriverEvent> {
        self.events.recv_timeout(timeout).ok()
    }

    /// Follows a started driver: its events and, once it has ended, the result in this file.
    pub fn follow(
        &mut self,
        (name, pod): (&str, &str),
        verb: &DriverVerb,
        container: Container,
        files: PrivateDir,
        result: PathBuf,
    ) -> Result<()> {
        let operation = format!("start driver {name}");
        let events = container.take_error_output();
        self.running.push(RunningDriver {
            name: name.to_owned(),
            pod: pod.to_owned(),
            input: container.take_input(),
            container: container.clone(),
            _files: files,
        });
        let events =
            events.ok_or_else(|| EnvironmentError::new(&operation, "its standard error is not a pipe"))?;
        let is_fleet = matches!(verb, DriverVerb::Fleet);
        let (driver, sender) = (name.to_owned(), self.sender.clone());
        let follow = move || {
            // There is no receiver any more once the trial has ended.
            let send = |kind| drop(sender.send(DriverEvent { generator: driver.clone(), kind }));
            let last_lines = read_events(events, is_fleet, send);
            let status = loop {
                if let Some(status) = container.wait(END_INTERVAL) {
                    break status;
                }
            };
            let result = read_result(&result, is_fleet);
            let end = DriverEnd { exit_code: status.code(), result, last_lines };
            send(DriverEventKind::Ended(Box::new(end)));
        };
        thread::Builder::new().name(format!("follow {name}")).spawn(follow).map(drop).context(operation)
    }

    /// Sends a held generator the time at which its window opens. A generator that has ended ignores it: its
    /// end is an event.
    pub fn release(&mut self, generator: &str, window_opens_at: Timestamp) -> Result<()> {
        let operation = || format!("start the load of {generator}");
        let Some(mut input) = self.find(generator).and_then(|driver| driver.input.take()) else {
            return Err(EnvironmentError::new(operation(), "it is not held"));
        };
        match writeln!(input, "{window_opens_at}") {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                Err(EnvironmentError::new(operation(), error))
            }
            _ => Ok(()),
        }
    }

    /// Sends an answer to a fleet. A fleet that has ended ignores it: its end is an event.
    pub fn answer(&mut self, fleet: &str, answer: &FleetAnswer) {
        let input = self.find(fleet).and_then(|driver| driver.input.as_mut());
        if let (Some(input), Ok(line)) = (input, serde_json::to_string(answer)) {
            let _ = writeln!(input, "{line}");
        }
    }

    /// Ends a driver early so that it saves its results. A stopped driver handles no signal and is killed.
    pub fn interrupt(&mut self, driver: &str) {
        if let Some(RunningDriver { container, .. }) = self.find(driver) {
            if container.stopped().is_some() { container.kill() } else { container.interrupt() }
        }
    }

    pub fn kill(&mut self, driver: &str) {
        if let Some(driver) = self.find(driver) {
            driver.container.kill();
        }
    }

    pub fn kill_all(&self) {
        self.running.iter().for_each(|driver| driver.container.kill());
    }

    fn find(&mut self, name: &str) -> Option<&mut RunningDriver> {
        self.running.iter_mut().find(|driver| driver.name == name)
    }
}

/// Sends a driver's events until it closes its standard error. Returns the last lines.
fn read_events(stderr: ChildStderr, is_fleet: bool, send: impl Fn(DriverEventKind)) -> Vec<String> {
    let mut last_lines = VecDeque::with_capacity(LAST_LINES);
    each_line(BufReader::new(stderr), |line| {
        let kind = match is_fleet {
            true => FleetProgress::from_json(&line).map(DriverEventKind::Fleet),
            false => LoadEvent::from_json(&line).map(DriverEventKind::Load),
        };
        let kind = kind.unwrap_or_else(|_| DriverEventKind::Message(line.clone()));
        if last_lines.len() == LAST_LINES {
            last_lines.pop_front();
        }
        last_lines.push_back(line);
        send(kind);
    });
    last_lines.into()
}

fn read_result(file: &Path, is_fleet: bool) -> Result<DriverResult, String> {
    let failed = |error: &dyn std::error::Error| format!("read its result: {error}");
    let text = fs::read(file).map_err(|error| failed(&error))?;
    let result = match is_fleet {
        true => FleetResult::from_json(&text).map(DriverResult::from),
        false => LoadResult::from_json(&text).map(DriverResult::from),
    };
    result.map_err(|error| failed(&error))
}

//! Drivers: load generators and fleets as processes in pods, their events and their results.

use crate::Result;
use crate::container::Container;
use crate::private_dir::PrivateDir;
use experiment::environment::deploy::{DriverEnd, DriverEvent, DriverEventKind, DriverResult, DriverVerb};
use experiment::environment::{EnvironmentError, ErrorContext};
use experiment::schema::{FleetAnswer, FleetResult, LoadResult};
use jiff::Timestamp;
use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::path::PathBuf;
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
            events.ok_or_else(|| EnvironmentError::new(&operation, "its standard error is no pipe"))?;
        let (read_event, read_result): (ReadEvent, ReadResult) = match verb {
            DriverVerb::Load { .. } => (
                |line| Ok(DriverEventKind::Load(serde_json::from_str(line)?)),
                |text| Ok(serde_json::from_slice::<LoadResult>(text)?.into()),
            ),
            DriverVerb::Fleet => (
                |line| Ok(DriverEventKind::Fleet(serde_json::from_str(line)?)),
                |text| Ok(serde_json::from_slice::<FleetResult>(text)?.into()),
            ),
        };
        let followed = Followed {
            driver: name.to_owned(),
            container,
            result,
            read_event,
            read_result,
            events: self.sender.clone(),
        };
        thread::Builder::new()
            .name(format!("follow {name}"))
            .spawn(move || followed.follow(events))
            .map(drop)
            .context(operation)
    }

    /// Sends a held generator the time at which its window opens. A generator that has ended ignores it: its
    /// end is an event.
    pub fn release(&mut self, generator: &str, window_opens_at: Timestamp) -> Result<()> {
        let running = self.running.iter_mut().find(|driver| driver.name == generator);
        let Some(mut input) = running.and_then(|driver| driver.input.take()) else {
            return Err(EnvironmentError::new(format!("start the load of {generator}"), "it is not held"));
        };
        match writeln!(input, "{window_opens_at}") {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                Err(EnvironmentError::new(format!("start the load of {generator}"), error))
            }
            _ => Ok(()),
        }
    }

    /// Sends an answer to a fleet. A fleet that has ended ignores it: its end is an event.
    pub fn answer(&mut self, fleet: &str, answer: &FleetAnswer) {
        let running = self.running.iter_mut().find(|driver| driver.name == fleet);
        if let (Some(input), Ok(line)) =
            (running.and_then(|driver| driver.input.as_mut()), serde_json::to_string(answer))
        {
            let _ = writeln!(input, "{line}");
        }
    }

    /// Ends a driver early so that it saves its results. A stopped driver handles no signal and is killed.
    pub fn interrupt(&self, driver: &str) {
        if let Some(driver) = self.container(driver) {
            if driver.stopped().is_some() { driver.kill() } else { driver.interrupt() }
        }
    }

    pub fn kill(&self, driver: &str) {
        if let Some(driver) = self.container(driver) {
            driver.kill();
        }
    }

    pub fn kill_all(&self) {
        self.running.iter().for_each(|driver| driver.container.kill());
    }

    fn container(&self, name: &str) -> Option<&Container> {
        Some(&self.running.iter().find(|driver| driver.name == name)?.container)
    }
}

type ReadEvent = fn(&str) -> serde_json::Result<DriverEventKind>;
type ReadResult = fn(&[u8]) -> serde_json::Result<DriverResult>;

/// A driver whose standard error is read by a thread that ends with it.
struct Followed {
    driver: String,
    container: Container,
    result: PathBuf,
    read_event: ReadEvent,
    read_result: ReadResult,
    events: Sender<DriverEvent>,
}

impl Followed {
    fn follow(self, stderr: ChildStderr) {
        let mut last_lines = VecDeque::with_capacity(LAST_LINES);
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            let kind = (self.read_event)(&line);
            let kind = kind.unwrap_or_else(|_| DriverEventKind::Message(line.clone()));
            if last_lines.len() == LAST_LINES {
                last_lines.pop_front();
            }
            last_lines.push_back(line);
            self.send(kind);
        }
        let status = loop {
            if let Some(status) = self.container.wait(END_INTERVAL) {
                break status;
            }
        };
        let end =
            DriverEnd { exit_code: status.code(), result: self.read_result(), last_lines: last_lines.into() };
        self.send(DriverEventKind::Ended(Box::new(end)));
    }

    fn send(&self, kind: DriverEventKind) {
        // There is no receiver any more once the trial has ended.
        let _ = self.events.send(DriverEvent { generator: self.driver.clone(), kind });
    }

    fn read_result(&self) -> Result<DriverResult, String> {
        let failed = |error: &dyn std::error::Error| format!("read its result: {error}");
        let text = fs::read(&self.result).map_err(|error| failed(&error))?;
        (self.read_result)(&text).map_err(|error| failed(&error))
    }
}

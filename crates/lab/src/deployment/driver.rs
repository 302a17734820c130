//! Drivers: load generators as processes in pods, their events and their results.

use crate::Result;
use crate::container::Container;
use crate::private_dir::PrivateDir;
use experiment::environment::deploy::{DriverEnd, DriverEvent, DriverEventKind};
use experiment::environment::{EnvironmentError, ErrorContext};
use experiment::schema::LoadResult;
use jiff::Timestamp;
use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, ChildStdin};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

const LAST_LINES: usize = 20;

/// Time between two looks whether a driver that has closed its standard error has ended.
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
    /// Present until it is released, where it is held.
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

    /// Follows a driver that has started: its events, and once it has ended the result in this file.
    pub fn follow(
        &mut self,
        (name, pod): (&str, &str),
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
        let followed = Followed { driver: name.to_owned(), container, result, events: self.sender.clone() };
        thread::Builder::new()
            .name(format!("follow {name}"))
            .spawn(move || followed.follow(events))
            .map(drop)
            .context(operation)
    }

    /// Tells a generator that is held when to open its window. One that has ended hears nothing: its end is an event.
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

    /// Lets a driver end early and save its results. A stopped driver handles no signal and is killed.
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

/// A driver whose standard error is read, on a thread that ends with it.
struct Followed {
    driver: String,
    container: Container,
    result: PathBuf,
    events: Sender<DriverEvent>,
}

impl Followed {
    fn follow(self, stderr: ChildStderr) {
        let mut last_lines = VecDeque::with_capacity(LAST_LINES);
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            let kind = match serde_json::from_str(&line) {
                Ok(event) => DriverEventKind::Load(event),
                Err(_) => DriverEventKind::Message(line.clone()),
            };
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
        let end = DriverEnd {
            exit_code: status.code(),
            result: read_result(&self.result),
            last_lines: last_lines.into(),
        };
        self.send(DriverEventKind::Ended(Box::new(end)));
    }

    fn send(&self, kind: DriverEventKind) {
        // Nobody listens any longer once the trial has ended.
        let _ = self.events.send(DriverEvent { generator: self.driver.clone(), kind });
    }
}

fn read_result(path: &Path) -> Result<LoadResult, String> {
    let text = fs::read(path).map_err(|error| format!("read its result: {error}"))?;
    serde_json::from_slice(&text).map_err(|error| format!("read its result: {error}"))
}

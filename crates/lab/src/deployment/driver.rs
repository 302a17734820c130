//! Drivers: load generators as processes in pods, their events and their results.

use super::LabDeployment;
use super::station::Destination;
use crate::Result;
use crate::certificates::write_private;
use crate::component_name::{file_name, lab_name};
use crate::container::{Container, ContainerSpec, ContainerUser, ErrorOutput};
use crate::private_dir::PrivateDir;
use experiment::environment::deploy::{Argument, DriverEnd, DriverEvent, DriverEventKind, DriverStart};
use experiment::environment::{EnvironmentError, ErrorContext};
use experiment::schema::LoadResult;
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::ChildStderr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

const LAST_LINES: usize = 20;
const RESULT_FILE: &str = "load.json";

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

impl LabDeployment<'_> {
    pub(super) fn start_drivers(&mut self, drivers: &[DriverStart]) -> Result<()> {
        self.check_alive("start the drivers")?;
        drivers.iter().try_for_each(|driver| self.start_driver(driver, None))
    }

    /// Starts a driver that requests this URL with these arguments, instead of what its place in the topology says.
    pub fn start_at(&mut self, driver: &DriverStart, url: String, arguments: Vec<String>) -> Result<()> {
        self.start_driver(driver, Some(Destination { url, arguments }))
    }

    fn start_driver(&mut self, driver: &DriverStart, destination: Option<Destination>) -> Result<()> {
        let name = &driver.driver;
        let operation = format!("start driver {name}");
        let placements = &self.spec.topology.drivers;
        let index = placements.iter().position(|placement| placement.name == *name);
        let index =
            index.ok_or_else(|| EnvironmentError::new(&operation, "the topology has no such driver"))?;
        let Destination { url, arguments: client_arguments } =
            destination.unwrap_or_else(|| self.parts.destinations[index].clone());
        let at = placements[index].at;
        let directory = lab_name(&format!("{name}-files-{}", self.trial.number));
        let directory = PrivateDir(self.lab.lab.create_private_dir(&directory, ContainerUser::Lab)?);
        let result = self.trial.log_dir.join(match placements.len() {
            1 => RESULT_FILE.to_owned(),
            _ => format!("{}.{RESULT_FILE}", file_name(name)),
        });
        let mut arguments = vec!["load".to_owned(), url];
        for argument in &driver.arguments {
            arguments.push(materialise(argument, directory.path())?);
        }
        arguments.extend(["--progress=json".to_owned(), format!("--json={}", result.display())]);
        arguments.extend(client_arguments);
        let pod = &mut self.parts.pods.workloads[at].pods[0].pod;
        let container = pod.start(&ContainerSpec {
            name: lab_name(name),
            program: self.lab.meshmeter().to_path_buf(),
            arguments: arguments.into_iter().map(Into::into).collect(),
            environment: BTreeMap::new(),
            limits: self.spec.topology.workloads[at].resources,
            user: ContainerUser::Lab,
            working_directory: None,
            output_log: self.trial.log_dir.join(format!("{}.log", file_name(name))),
            error_output: ErrorOutput::Piped,
        })?;
        let events = container.take_error_output();
        self.drivers.running.push(RunningDriver {
            name: name.clone(),
            pod: pod.name().to_owned(),
            container: container.clone(),
            _files: directory,
        });
        let events =
            events.ok_or_else(|| EnvironmentError::new(&operation, "its standard error is no pipe"))?;
        let followed =
            Followed { driver: name.clone(), container, result, events: self.drivers.sender.clone() };
        thread::Builder::new()
            .name(format!("follow {name}"))
            .spawn(move || followed.follow(events))
            .map(drop)
            .context(operation)
    }

    pub(super) fn forget_drivers(&mut self) {
        self.drivers.kill_all();
        self.drivers = Drivers::default();
    }
}

/// An argument as it is on the command line. Its file is written to `directory`.
fn materialise(argument: &Argument, directory: &Path) -> Result<String> {
    match argument {
        Argument::Text(text) => Ok(text.clone()),
        Argument::File { name, content } => {
            let path = directory.join(file_name(name));
            write_private(&path, content, None)?;
            Ok(path.to_string_lossy().into_owned())
        }
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
        let _ = self.events.send(DriverEvent { driver: self.driver.clone(), kind });
    }
}

fn read_result(path: &Path) -> Result<LoadResult, String> {
    let text = fs::read(path).map_err(|error| format!("read its result: {error}"))?;
    serde_json::from_slice(&text).map_err(|error| format!("read its result: {error}"))
}

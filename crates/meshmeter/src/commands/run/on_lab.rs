//! A run in a lab of its own on this machine: the only file of a run that knows the lab.

use crate::cli::OverrideArgs;
use crate::failure::Failure;
use experiment::environment::deploy::{
    Argument, ComponentFailure, Deployment, DriverEnd, DriverEvent, DriverEventKind, DriverLoad, DriverStart,
    Environment, Footprint, HealthProbe, TrialEvidence,
};
use experiment::environment::{
    Arrangement, DeploymentSpec, Environment as _, EnvironmentError, ProgressSink, Snapshot,
};
use experiment::schema::{ComponentUsage, Floor, Host, LoadResult};
use experiment::{MeshKind, Mode};
use lab::arrangement::pair::{GENERATOR, PairArrangement};
use lab::arrangement::{LocalLab, Programs};
use lab::{Entered, Lab};
use report::folder::RunFolder;
use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, ExitCode};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// Time for measuring the machine's noise floor before the first trial.
const NOISE_FLOOR_TIME: Duration = Duration::from_millis(1500);
/// Where the generator leaves its result, in the directory of a trial's logs.
const RESULT_FILE: &str = "load.json";
/// Time between the end of the generator's output and its own end.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);
/// Last lines of the generator that are kept.
const MAX_LAST_LINES: usize = 20;

/// Runs `session` in a lab of its own, in another process; the exit code is that of the session.
pub(super) fn enter(
    title: &str,
    overrides: &OverrideArgs,
    session: impl FnOnce(&mut OnLab) -> Result<ExitCode, Failure>,
) -> Result<ExitCode, Failure> {
    match lab::enter(title)? {
        Entered::Outside(status) => Ok(status),
        Entered::Inside(lab) => {
            let programs = Programs { meshmeter: "/proc/self/exe".into(), overrides: overrides.into() };
            lab::components::check_options(&programs.overrides)?;
            let environment = LocalLab::new(lab.clone(), programs)?;
            let logs = lab.private_dir().join("logs");
            session(&mut OnLab { lab, environment: LabEnvironment { lab: environment, logs } })
        }
    }
}

/// Measures the machine's noise floor.
pub(super) fn measure_noise_floor() -> Result<Floor, Failure> {
    lab::observe::noise_floor::measure(NOISE_FLOOR_TIME).map_err(|error| Failure::environment(&error))
}

/// The lab of a run, from inside.
pub(super) struct OnLab {
    lab: Lab,
    environment: LabEnvironment,
}

impl OnLab {
    pub(super) fn environment(&mut self) -> &mut dyn Environment {
        &mut self.environment
    }

    /// Whether the user has stopped the run, now and later.
    pub(super) fn stop_request(&self) -> impl Fn() -> bool + use<> {
        let lab = self.lab.clone();
        move || lab.stop_requested()
    }

    /// Keeps logs with the run. For before the first deployment.
    pub(super) fn keep_logs_in(&mut self, folder: &RunFolder) {
        self.environment.lab.keep_control_plane_logs_in(folder.control_plane_logs());
        self.environment.logs = folder.logs();
    }

    /// Reports progress while a deployment comes up. For before the first one.
    pub(super) fn report_progress_to(&mut self, progress: ProgressSink) {
        self.environment.lab.report_progress_to(progress);
    }
}

struct LabEnvironment {
    lab: LocalLab,
    logs: PathBuf,
}

impl Environment for LabEnvironment {
    fn host(&self) -> Host {
        self.lab.host()
    }

    fn check_mode(&self, mesh: MeshKind, mode: Mode) -> Result<(), EnvironmentError> {
        self.lab.can_run(mesh, mode)
    }

    fn deploy(
        &mut self,
        spec: &DeploymentSpec,
        label: &str,
    ) -> Result<Box<dyn Deployment + '_>, EnvironmentError> {
        // Anything less than the topology would be another measurement.
        if spec.topology.workloads.len() > 2 || spec.topology.pods() > 2 {
            let reason = "the lab brings up one client and one server";
            let error = EnvironmentError::new(format!("deploy topology {}", spec.topology.name), reason);
            return Err(error.with_hint("give `topology.namespaces` and `topology.replicas` the value 1"));
        }
        let logs = self.logs.join(label);
        fs::create_dir_all(&logs)
            .map_err(|error| EnvironmentError::new(format!("create {}", logs.display()), error))?;
        let pair = self.lab.bring_up(spec, &logs)?;
        Ok(Box::new(PairDeployment {
            pair: Some(Box::new(pair)),
            logs,
            output: None,
            lines: VecDeque::new(),
        }))
    }
}

/// A pair, which serves one trial.
struct PairDeployment<'lab> {
    /// Absent once the trial has ended.
    pair: Option<Box<PairArrangement<'lab>>>,
    logs: PathBuf,
    /// What the generator writes; absent where it does not run.
    output: Option<Receiver<String>>,
    /// The last lines of that.
    lines: VecDeque<String>,
}

impl<'lab> PairDeployment<'lab> {
    fn pair(&mut self) -> Result<&mut PairArrangement<'lab>, EnvironmentError> {
        self.pair.as_deref_mut().ok_or_else(|| {
            let reason = "the lab brings each trial up afresh, and this one has ended";
            EnvironmentError::new("use the pods of a trial", reason).with_hint("set `fresh: trial`")
        })
    }

    fn command_line(&mut self, driver: &DriverStart) -> Result<Vec<String>, EnvironmentError> {
        let mut words = vec!["load".to_owned(), self.pair()?.url()];
        for argument in &driver.arguments {
            words.push(match argument {
                Argument::Text(text) => text.clone(),
                Argument::File { name, content } => write(&self.logs.join(name), content)?,
            });
        }
        let result = self.logs.join(RESULT_FILE).to_string_lossy().into_owned();
        words.extend(["--progress", "json", "--json", &result].map(str::to_owned));
        words.extend(self.pair()?.client_arguments());
        Ok(words)
    }

    fn hear(&mut self, line: String) -> DriverEvent {
        if self.lines.len() == MAX_LAST_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line.clone());
        let kind = serde_json::from_str(&line).map_or(DriverEventKind::Message(line), DriverEventKind::Load);
        DriverEvent { driver: GENERATOR.to_owned(), kind }
    }

    fn end(&mut self) -> DriverEvent {
        let lines = std::mem::take(&mut self.lines);
        let ended = self.pair().and_then(|pair| pair.wait_generator(EXIT_TIMEOUT));
        let result = read_result(&self.logs.join(RESULT_FILE));
        let end = DriverEnd { exit_code: ended.ok().flatten(), result, last_lines: lines.into() };
        DriverEvent { driver: GENERATOR.to_owned(), kind: DriverEventKind::Ended(Box::new(end)) }
    }
}

impl Deployment for PairDeployment<'_> {
    fn begin_trial(&mut self, _label: &str) -> Result<(), EnvironmentError> {
        self.pair().map(drop)
    }

    fn start(&mut self, drivers: &[DriverStart]) -> Result<(), EnvironmentError> {
        for driver in drivers {
            let words = self.command_line(driver)?;
            self.output = Some(listen(self.pair()?.start_generator(&words)?));
        }
        Ok(())
    }

    fn next_event(&mut self, timeout: Duration) -> Option<DriverEvent> {
        match self.output.as_ref()?.recv_timeout(timeout) {
            Ok(line) => Some(self.hear(line)),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                self.output = None;
                Some(self.end())
            }
        }
    }

    fn interrupt(&mut self, _driver: &str) {
        if let Ok(pair) = self.pair() {
            pair.interrupt_generator();
        }
    }

    fn kill(&mut self, _driver: &str) {
        if let Ok(pair) = self.pair() {
            // An error says that it was killed, which is what was asked.
            let _ = pair.wait_generator(Duration::ZERO);
        }
    }

    fn snapshot(&mut self) -> Result<Snapshot, EnvironmentError> {
        let pair = self.pair()?;
        let snapshot = pair.snapshot()?;
        // The pair takes its own readings for what it says at its end.
        pair.window_closed().or_else(|_| pair.window_opened())?;
        Ok(snapshot)
    }

    fn health(&mut self, probe: HealthProbe) -> Option<ComponentFailure> {
        let pair = self.pair().ok()?;
        let failed = match probe {
            HealthProbe::Processes => pair.failed_component(),
            HealthProbe::Responses => pair.failed_or_silent_component(),
        };
        failed.map(|(component, how)| ComponentFailure { component, how })
    }

    fn end_trial(&mut self, sent: &[DriverLoad]) -> TrialEvidence {
        let Some(pair) = self.pair.take() else { return TrialEvidence::default() };
        let sent = sent.first().map(|load| load.sent).unwrap_or_default();
        let seen = pair.finish(&sent);
        TrialEvidence {
            path: seen.path,
            services: Vec::new(),
            footprints: seen.components.into_iter().map(footprint).collect(),
            log_tails: seen.log_tails,
            hints: seen.hints,
            push: seen.push,
        }
    }

    fn finish(self: Box<Self>) -> Result<(), EnvironmentError> {
        Ok(())
    }
}

fn footprint(component: ComponentUsage) -> (String, Footprint) {
    let footprint = Footprint {
        memory_before_load_bytes: component.memory_before_load_bytes,
        memory_after_load_bytes: component.memory_after_load_bytes,
        memory_anonymous_before_load_bytes: component.memory_anonymous_before_load_bytes,
        memory_anonymous_after_load_bytes: component.memory_anonymous_after_load_bytes,
        holdings: component.holdings,
    };
    (component.name, footprint)
}

/// Reads the generator's standard error on a thread of its own, which ends with it.
fn listen(stderr: ChildStderr) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

fn write(path: &Path, content: &[u8]) -> Result<String, EnvironmentError> {
    fs::write(path, content)
        .map_err(|error| EnvironmentError::new(format!("write {}", path.display()), error))?;
    Ok(path.to_string_lossy().into_owned())
}

fn read_result(path: &Path) -> Result<LoadResult, String> {
    let text = fs::read(path).map_err(|error| format!("read {}: {error}", path.display()))?;
    serde_json::from_slice(&text).map_err(|error| format!("read {}: {error}", path.display()))
}

//! Runs in an environment whose trials end as a test wants it: the generator is a process that does nothing, and its result
//! is written for it.

use super::*;
use experiment::environment::{Arrangement, DeploymentSpec, EnvironmentError, Observation, SentLoad};
use experiment::schema::{LoadResult, MachineUsage, PathProof, TrialOutcome, TrialRecord, Verdict};
use experiment::{Experiment, Mode};
use report::folder::{Existing, TRIALS_FILE};
use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

/// How a trial ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Script {
    Good,
    Late,
    Saturated,
    /// Others take a CPU.
    Disturbed,
    /// Its pods do not come up.
    Broken,
}

/// Trials end as the script says, one after the other; what comes after its end is good.
struct Scripted<'a> {
    script: &'a [Script],
    /// The modes of the trials so far.
    modes: Vec<Mode>,
    /// Asks for the end of the run during the trial of this place.
    stops_during: usize,
    stopped: &'a Cell<bool>,
}

impl Environment for Scripted<'_> {
    fn prepare(
        &mut self,
        spec: &DeploymentSpec,
        _log_dir: &Path,
    ) -> Result<Box<dyn Arrangement + '_>, EnvironmentError> {
        let script = self.script.get(self.modes.len()).copied().unwrap_or(Script::Good);
        if self.modes.len() == self.stops_during {
            self.stopped.set(true);
        }
        self.modes.push(spec.mode);
        match script {
            Script::Broken => Err(EnvironmentError::new("start gateway", "it has died")),
            script => Ok(Box::new(ScriptedTrial { script, generator: None })),
        }
    }

    fn host(&self) -> experiment::schema::Host {
        experiment::schema::Host::default()
    }

    fn can_run(&self, _: experiment::MeshKind, _: Mode) -> Result<(), EnvironmentError> {
        Ok(())
    }
}

struct ScriptedTrial {
    script: Script,
    generator: Option<Child>,
}

impl Arrangement for ScriptedTrial {
    fn url(&self) -> String {
        "http://127.0.0.1:8080/".to_owned()
    }

    fn client_arguments(&self) -> Vec<String> {
        Vec::new()
    }

    fn start_generator(&mut self, arguments: &[String]) -> Result<ChildStderr, EnvironmentError> {
        let option =
            arguments.iter().position(|argument| argument == "--json").expect("its result is asked for");
        let reasons = match self.script {
            Script::Late => vec!["schedule-lag: the generator itself was late".to_owned()],
            Script::Saturated => vec!["saturated: 100/s completed of 200/s offered".to_owned()],
            _ => Vec::new(),
        };
        let result: LoadResult =
            serde_json::from_str(include_str!("../../../../tests/load-result.json")).expect("a good result");
        let verdict = Verdict { valid: reasons.is_empty(), reasons, ..Verdict::default() };
        let result = serde_json::to_vec(&LoadResult { verdict, ..result }).expect("a result is JSON");
        fs::write(&arguments[option + 1], result).expect("the log folder is there");
        let generator = Command::new("true").stderr(Stdio::piped()).spawn().expect("`true` is a program");
        Ok(self.generator.insert(generator).stderr.take().expect("piped"))
    }

    fn interrupt_generator(&mut self) {}

    fn window_opened(&mut self) -> Result<(), EnvironmentError> {
        Ok(())
    }

    fn window_closed(&mut self) -> Result<(), EnvironmentError> {
        Ok(())
    }

    fn failed_component(&mut self) -> Option<(String, String)> {
        None
    }

    fn failed_or_silent_component(&mut self) -> Option<(String, String)> {
        None
    }

    fn wait_generator(&mut self, _: Duration) -> Result<Option<i32>, EnvironmentError> {
        let generator = self.generator.as_mut().expect("it was started");
        Ok(generator.wait().expect("it is a child").code())
    }

    fn finish(self: Box<Self>, _: &SentLoad) -> Observation {
        let others = if self.script == Script::Disturbed { 1.0 } else { 0.0 };
        Observation {
            path: PathProof { proven: true, ..PathProof::default() },
            machine: Some(MachineUsage {
                cpus: 2,
                busy_cores: 0.5 + others,
                other_processes_cores: others,
                ..MachineUsage::default()
            }),
            ..Observation::default()
        }
    }
}

/// What a run did.
struct Ran {
    /// The modes of the plan, in its order.
    planned: Vec<Mode>,
    /// Those of the trials.
    modes: Vec<Mode>,
    trials: Vec<TrialRecord>,
    ended: Result<(), Failure>,
}

/// Two modes in three repeats, of which two trials may be taken again: each once.
fn run(script: &[Script]) -> Ran {
    run_until(script, usize::MAX)
}

fn run_until(script: &[Script], stops_during: usize) -> Ran {
    let text = "{name: t, modes: [none, gateway], load: {rate: 200, duration: 1s}, repeats: 3, retakes: 1}";
    let plan = Plan::new(&Experiment::parse(text, "test").unwrap(), 1);
    let scratch = tempfile::tempdir().unwrap();
    let mut folder = RunFolder::create(scratch.path(), Existing::Keep).unwrap();
    let mut progress = RunProgress::new(&plan, scratch.path());
    let stopped = Cell::new(false);
    let mut environment = Scripted { script, modes: Vec::new(), stops_during, stopped: &stopped };
    let stop = || stopped.get();
    let ended = Course::new(&plan, &mut environment, &mut folder, &mut progress, &stop).run();
    let text = fs::read_to_string(scratch.path().join(TRIALS_FILE)).unwrap();
    let trials: Vec<TrialRecord> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(trials.iter().enumerate().all(|(index, trial)| trial.index == index));
    let planned = plan.trials.iter().map(|planned| planned.mode).collect();
    Ran { planned, modes: environment.modes, trials, ended }
}

/// Of which trial each is another take.
fn takes(ran: &Ran) -> Vec<Option<usize>> {
    ran.trials.iter().map(|trial| Some(trial.retake.as_ref()?.of)).collect()
}

#[test]
fn what_the_machine_disturbed_is_taken_again_after_its_repeat() {
    use Script::{Disturbed, Good, Late};
    let ran = run(&[Late, Good, Good, Good, Good, Good, Disturbed, Late]);
    let [first, second, third, fourth, fifth, sixth] = ran.planned[..] else { panic!("{:?}", ran.planned) };
    assert_eq!(ran.modes, [first, second, first, third, fourth, fifth, sixth, sixth]);
    assert_eq!(takes(&ran), [None, None, Some(0), None, None, None, None, Some(6)]);
    let repeats: Vec<usize> = ran.trials.iter().map(|trial| trial.repeat).collect();
    assert_eq!(repeats, [0, 0, 0, 1, 1, 2, 2, 2]);
    let again = ran.trials[7].retake.as_ref().unwrap();
    assert_eq!((again.take, &again.because), (2, &ran.trials[6].verdict.reasons));
    // Once each, whatever came of it.
    assert!(!ran.trials[7].verdict.valid && ran.trials[2].verdict.valid);
    assert!(ran.ended.is_ok());
}

#[test]
fn what_the_mesh_did_is_not_taken_again() {
    let ran = run(&[Script::Saturated, Script::Broken]);
    assert_eq!(takes(&ran), [None; 6]);
    assert_eq!(ran.trials[1].outcome, TrialOutcome::Failed);
}

#[test]
fn a_run_on_a_noisy_machine_ends_with_a_third_more_trials() {
    let ran = run(&[Script::Disturbed; 20]);
    assert_eq!(takes(&ran), [None, None, Some(0), Some(1), None, None, None, None]);
}

#[test]
fn a_run_that_is_to_end_takes_nothing_again() {
    // During the first trial, the last of the repeat, and the first that is taken again.
    for (stops_during, trials) in [(0, 1), (1, 2), (2, 3)] {
        let ran = run_until(&[Script::Disturbed; 20], stops_during);
        assert_eq!(ran.trials.len(), trials);
        assert!(ran.ended.is_ok());
    }
}

#[test]
fn takes_that_fail_are_failures_of_the_run() {
    use Script::{Broken, Disturbed};
    let ran = run(&[Disturbed, Disturbed, Broken, Broken, Broken]);
    assert_eq!(takes(&ran), [None, None, Some(0), Some(1), None]);
    assert!(ran.ended.is_err(), "three in a row");
}

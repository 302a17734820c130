//! Components that are killed, and how a deployment reports them. Shared by all tests that bring deployments
//! up.

use crate::observation::Observation;
use experiment::environment::deploy::{Deployment, DriverLoad, HealthProbe};
use experiment::environment::{SentLoad, WindowUsage, error_chain};
use lab::deployment::LabDeployment;
use lab::{Container, Pod};
use rustix::process::{Pid, Signal, kill_process};
use std::time::Duration;

const TEST_TIMEOUT: Duration = Duration::from_secs(120);

/// The container with this name in these pods.
pub fn container<'a>(pods: impl IntoIterator<Item = &'a Pod>, name: &str) -> &'a Container {
    let mut containers = pods.into_iter().flat_map(Pod::containers);
    containers.find(|container| container.name() == name).unwrap_or_else(|| panic!("no container {name}"))
}

pub fn signal(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).expect("a running process has a number"), signal).expect("it is ours");
}

/// Sends a signal that ends a container, and waits until it has ended.
pub fn end(container: &Container, with: Signal) {
    signal(container.pid().cast_signed(), with);
    assert!(container.wait(TEST_TIMEOUT).is_some(), "{} runs on", container.name());
}

/// What is seen of a component that died: its name, and a line of its log that contains `word` (any line if
/// the word is empty).
pub fn check_named(mut deployment: LabDeployment<'_>, name: &str, word: &str) -> Observation {
    let failed = deployment.health(HealthProbe::Processes).unwrap_or_else(|| panic!("{name} has died"));
    assert_eq!(failed.component, name);
    let error = deployment.begin_trial("dead").expect_err("a trial without it is none");
    assert!(error_chain(&error).contains(&format!("{name} has died")), "{}", error_chain(&error));
    let sent = SentLoad { requests: 1, ..SentLoad::default() };
    let evidence = deployment.end_trial(&[DriverLoad { driver: "generator".to_owned(), sent }]);
    let observation = Observation::new(WindowUsage::default(), evidence);
    let tail = &observation.evidence.log_tails[name];
    assert!(word.is_empty() || tail.iter().any(|line| line.contains(word)), "{name}: {tail:?}");
    observation
}

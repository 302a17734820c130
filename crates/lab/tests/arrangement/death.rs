//! Components that are made to die, and how an arrangement names them. Shared by all tests that bring arrangements up.

use experiment::environment::{Arrangement, Observation, SentLoad, in_one_line};
use lab::deployment::LabDeployment;
use lab::{Container, Pod};
use rustix::process::{Pid, Signal, kill_process};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);

/// The container of this name in these pods.
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
    assert!(container.wait(LIMIT).is_some(), "{} runs on", container.name());
}

/// What is seen of a component that died: its name, and a line of its log that holds this word (whatever it wrote, where
/// the word is empty).
pub fn check_named(mut arrangement: LabDeployment<'_>, name: &str, word: &str) -> Observation {
    let (failed, _) = arrangement.failed_component().unwrap_or_else(|| panic!("{name} has died"));
    assert_eq!(failed, name);
    let error = arrangement.start_generator(&[]).expect_err("a trial without it is none");
    assert!(in_one_line(&error).contains(&format!("{name} has died")), "{}", in_one_line(&error));
    let observation = Box::new(arrangement).finish(&SentLoad { requests: 1, ..SentLoad::default() });
    let tail = &observation.log_tails[name];
    assert!(word.is_empty() || tail.iter().any(|line| line.contains(word)), "{name}: {tail:?}");
    observation
}

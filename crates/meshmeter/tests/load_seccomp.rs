//! `meshmeter load` if io_uring is forbidden, as container runtimes do.

mod command;

use command::{Serving, meshmeter, stderr, stdout};
use results::{GeneratorNetwork, LoadResult};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};
use std::collections::BTreeMap;
use std::env::consts::ARCH;
use std::process::Output;
use std::thread;

/// Number of the system call io_uring_setup, the same on all architectures.
const IO_URING_SETUP: i64 = 425;
const NOT_PERMITTED: u32 = 1;

/// Runs the command from a thread that may not create rings; its children inherit that.
fn run_without_io_uring(arguments: Vec<String>) -> Output {
    let forbid = BTreeMap::from([(IO_URING_SETUP, Vec::new())]);
    let architecture = ARCH.try_into().expect("an architecture that seccomp knows");
    let refusal = SeccompAction::Errno(NOT_PERMITTED);
    let filter = SeccompFilter::new(forbid, SeccompAction::Allow, refusal, architecture).expect("a filter");
    let program: BpfProgram = filter.try_into().expect("a short program");
    let confined = thread::spawn(move || {
        apply_filter(&program).expect("a thread may confine itself");
        meshmeter().args(arguments).output().expect("the binary runs")
    });
    confined.join().expect("it ran")
}

fn load(options: &[&str], url: &str) -> Vec<String> {
    let common = ["load", "--progress", "off", "--json", "-", "--clients", "2", "--requests", "20"];
    common.iter().chain(options).chain(&[url]).map(|word| (*word).to_owned()).collect()
}

#[test]
fn epoll_is_used_unless_io_uring_is_requested_by_name() {
    let server = Serving::start(&[]);
    let output = run_without_io_uring(load(&[], &server.url()));
    let result: LoadResult = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", stdout(&output), stderr(&output)));
    assert_eq!(result.generator.network, Some(GeneratorNetwork::Epoll));
    assert_eq!(result.requests.completed, 20, "{:?}", result.requests);

    let refused = run_without_io_uring(load(&["--network", "io_uring"], &server.url()));
    assert_eq!(refused.status.code(), Some(3), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("seccomp"), "{}", stderr(&refused));
}

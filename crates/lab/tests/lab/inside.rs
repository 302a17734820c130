//! Tests that run inside a lab.

mod confined;
mod containers;
mod pods;
mod redirects;

use crate::explain;
use experiment::environment::EnvironmentError;
use lab::Lab;
use libtest_mimic::{Arguments, Failed, Trial};

/// Runs all of them.
#[allow(clippy::needless_pass_by_value)] // The lab's last use.
pub fn run(lab: Lab) -> Result<(), String> {
    let mut arguments = Arguments::from_iter(["inside"]);
    // One after the other: the machine may have two cores, and a CPU limit is measured.
    arguments.test_threads = Some(1);
    let tests = pods::TESTS.iter().chain(containers::TESTS).chain(confined::TESTS).chain(redirects::TESTS);
    let trials = tests.map(|&(name, test)| {
        let lab = lab.clone();
        Trial::test(name, move || test(&lab).map_err(Failed::from))
    });
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    crate::ensure(!conclusion.has_failed(), format!("{} tests failed", conclusion.num_failed))
}

/// A test with its name.
type Test = (&'static str, fn(&Lab) -> Result<(), String>);

/// Turns an error of the lab into a test failure.
trait OrFail<T> {
    fn or_fail(self) -> Result<T, String>;
}

impl<T> OrFail<T> for Result<T, EnvironmentError> {
    fn or_fail(self) -> Result<T, String> {
        self.map_err(|error| explain(&error))
    }
}

impl<T> OrFail<T> for std::io::Result<T> {
    fn or_fail(self) -> Result<T, String> {
        self.map_err(|error| error.to_string())
    }
}

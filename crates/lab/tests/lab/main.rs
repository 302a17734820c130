//! The lab on this machine, with real namespaces, cgroups and processes, as root and as an ordinary user.
//!
//! One binary has several roles, since a lab is entered by starting the same program again. Without a role it
//! is the test harness ([`outside`]). In the role `inside` it enters a lab and tests it from the inside
//! ([`inside`]). The other [`roles`] are labs to be killed from outside and programs to be run in pods.

mod inside;
mod outside;
mod roles;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref().and_then(|first| first.strip_prefix("role:")) {
        Some(role) => roles::play(role, &arguments.collect::<Vec<_>>()),
        None => outside::run(),
    }
}

/// Fails a test with a reason, in the form that the harness expects.
fn ensure(condition: bool, reason: impl Into<String>) -> Result<(), String> {
    if condition { Ok(()) } else { Err(reason.into()) }
}

/// An error with its causes and hint, for a test's report.
fn explain(error: &experiment::environment::EnvironmentError) -> String {
    use std::error::Error as _;
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    error.hint.iter().fold(text, |text, hint| format!("{text} (hint: {hint})"))
}

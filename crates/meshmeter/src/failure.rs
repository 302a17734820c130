//! Failure of a command: one line, an optional hint, and the exit status.

use crate::output::tell;
use experiment::environment::{EnvironmentError, error_chain};
use std::error::Error;
use std::process::ExitCode;

/// Exit status: the measurement failed its objective, or none of it is valid.
pub const MEASUREMENT_FAILED: u8 = 1;
/// Exit status: usage error.
pub const USAGE_ERROR: u8 = 2;
/// Exit status: the environment failed.
pub const ENVIRONMENT_FAILED: u8 = 3;

/// Exit status: a comparison found a figure that is worse.
pub const FOUND_WORSE: u8 = 4;
/// Exit status: a strict comparison was inconclusive.
pub const INCONCLUSIVE: u8 = 5;

/// An error to be reported to the user.
#[derive(Debug)]
pub struct Failure {
    status: u8,
    /// The operation with its causes, or a whole rendered diagnostic.
    message: String,
    hint: Option<String>,
}

impl Failure {
    /// A usage error.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { status: USAGE_ERROR, message: message.into(), hint: None }
    }

    /// A usage error, from an error with its causes.
    pub fn from_usage(error: &dyn Error) -> Self {
        Self::usage(error_chain(error))
    }

    /// An environment failure, described by `message`.
    pub fn broken(message: impl Into<String>) -> Self {
        Self { status: ENVIRONMENT_FAILED, message: message.into(), hint: None }
    }

    /// An environment failure, from an error with its causes.
    pub fn environment(error: &dyn Error) -> Self {
        Self { status: ENVIRONMENT_FAILED, message: error_chain(error), hint: None }
    }

    /// An environment failure, with the hint of the error.
    pub fn from_error(error: &EnvironmentError) -> Self {
        let failure = Self::environment(error);
        failure.with_some_hint(error.nearest_hint())
    }

    /// Prepends the operation and its subject to the cause.
    pub fn about(mut self, operation: &str) -> Self {
        self.message = format!("{operation}: {}", self.message);
        self
    }

    /// Combines two failures; keeps the exit status of the first, and its hint if it has one.
    pub fn and(mut self, other: Self) -> Self {
        self.message = format!("{}; {}", self.message, other.message);
        self.hint = self.hint.or(other.hint);
        self
    }

    /// Combines failures: the status and hint of the first, the messages of all. `Ok` if there are none.
    pub fn all(failures: Vec<Self>) -> Result<(), Self> {
        let mut failures = failures.into_iter();
        let Some(mut first) = failures.next() else { return Ok(()) };
        for other in failures {
            first.message = format!("{}; {}", first.message, other.message);
        }
        Err(first)
    }

    /// Adds a hint on what to do.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a hint if there is one.
    pub fn with_some_hint(mut self, hint: Option<impl Into<String>>) -> Self {
        self.hint = hint.map(Into::into).or(self.hint);
        self
    }

    /// Removes a hint that contains `text`.
    pub fn without_hint_of(mut self, text: &str) -> Self {
        self.hint = self.hint.filter(|hint| !hint.contains(text));
        self
    }

    /// Prints the failure and returns the exit status.
    pub fn report(&self) -> ExitCode {
        let bold_red = clap::builder::styling::AnsiColor::Red.on_default().bold();
        tell!("{bold_red}error{bold_red:#}: {}", self.message);
        if let Some(hint) = &self.hint {
            let bold_cyan = clap::builder::styling::AnsiColor::Cyan.on_default().bold();
            tell!("{bold_cyan}hint{bold_cyan:#}: {hint}");
        }
        ExitCode::from(self.status)
    }
}

impl From<EnvironmentError> for Failure {
    fn from(error: EnvironmentError) -> Self {
        Self::from_error(&error)
    }
}

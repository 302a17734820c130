//! How a command ends when it cannot do what was asked: one line, a hint where there is one, the right exit status.

use experiment::environment::{EnvironmentError, in_one_line};
use std::error::Error;
use std::process::ExitCode;

/// Exit status: the measurement failed its objective, or none of it is valid.
pub const MEASUREMENT_FAILED: u8 = 1;
/// Exit status: wrong use.
pub const WRONG_USE: u8 = 2;
/// Exit status: the environment failed.
pub const ENVIRONMENT_FAILED: u8 = 3;

/// An error on its way to the user.
#[derive(Debug)]
pub struct Failure {
    status: u8,
    /// The operation with its causes, or a whole rendered diagnostic.
    message: String,
    hint: Option<String>,
}

impl Failure {
    /// The user asked for something that makes no sense.
    pub fn wrong_use(message: impl Into<String>) -> Self {
        Self { status: WRONG_USE, message: message.into(), hint: None }
    }

    /// The same, from an error with its causes.
    pub fn from_wrong_use(error: &dyn Error) -> Self {
        Self::wrong_use(in_one_line(error))
    }

    /// Something outside the program is not as it must be, in words.
    pub fn broken(message: impl Into<String>) -> Self {
        Self { status: ENVIRONMENT_FAILED, message: message.into(), hint: None }
    }

    /// Something outside the program is not as it must be.
    pub fn environment(error: &dyn Error) -> Self {
        Self { status: ENVIRONMENT_FAILED, message: in_one_line(error), hint: None }
    }

    /// An error of an environment, with its hint.
    pub fn from_error(error: &EnvironmentError) -> Self {
        let failure = Self::environment(error);
        match error.nearest_hint() {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    }

    /// Puts the operation and its subject before the cause.
    pub fn about(mut self, operation: &str) -> Self {
        self.message = format!("{operation}: {}", self.message);
        self
    }

    /// This one, and another that came of it or with it.
    pub fn and(mut self, other: Self) -> Self {
        self.message = format!("{}; {}", self.message, other.message);
        self.hint = self.hint.or(other.hint);
        self
    }

    /// Several at once: the first one's status and hint, all of their messages.
    pub fn all(failures: Vec<Self>) -> Result<(), Self> {
        let mut failures = failures.into_iter();
        let Some(mut first) = failures.next() else { return Ok(()) };
        for other in failures {
            first.message = format!("{}; {}", first.message, other.message);
        }
        Err(first)
    }

    /// Adds what to do about it.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Leaves out a hint that says this.
    pub fn without_hint_of(mut self, text: &str) -> Self {
        self.hint = self.hint.filter(|hint| !hint.contains(text));
        self
    }

    /// Prints the failure and gives the exit status.
    pub fn report(&self) -> ExitCode {
        let bold_red = clap::builder::styling::AnsiColor::Red.on_default().bold();
        anstream::eprintln!("{bold_red}error{bold_red:#}: {}", self.message);
        if let Some(hint) = &self.hint {
            let bold_cyan = clap::builder::styling::AnsiColor::Cyan.on_default().bold();
            anstream::eprintln!("{bold_cyan}hint{bold_cyan:#}: {hint}");
        }
        ExitCode::from(self.status)
    }
}

impl From<EnvironmentError> for Failure {
    fn from(error: EnvironmentError) -> Self {
        Self::from_error(&error)
    }
}

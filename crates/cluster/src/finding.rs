//! Findings of checks before a run.

use experiment::environment::{EnvironmentError, error_chain};
use serde::Serialize;

/// Outcome of a check.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckOutcome {
    Right,
    /// Runs work, but report less.
    Less,
    Missing,
}

/// The result of one check.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Finding {
    pub standing: CheckOutcome,
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Finding {
    pub(crate) fn new(standing: CheckOutcome, text: impl Into<String>, hint: Option<&str>) -> Self {
        Self { standing, text: text.into(), hint: hint.map(str::to_owned) }
    }

    /// A finding with an error's text and hint.
    pub fn of_error(standing: CheckOutcome, error: &EnvironmentError) -> Self {
        Self::new(standing, error_chain(error), error.nearest_hint())
    }

    /// An error of an operation that this finding prevents.
    pub fn into_error(self, operation: impl Into<String>) -> EnvironmentError {
        let error = EnvironmentError::new(operation, self.text).lasting();
        match self.hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }

    pub(crate) fn right(text: impl Into<String>) -> Self {
        Self::new(CheckOutcome::Right, text, None)
    }
}

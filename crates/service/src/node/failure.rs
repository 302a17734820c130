//! Failures of steps.

/// Why a step failed, as text for the response.
#[derive(Debug)]
pub(crate) struct StepFailure(pub String);

//! A run as the reports see it.

use experiment::schema::{Host, Summary, TrialRecord};

/// Everything of a run that a report shows.
#[derive(Clone, Debug)]
pub struct RunData {
    /// Text of `experiment.yaml`: the experiment as resolved.
    pub experiment_yaml: String,
    /// The machine and the versions.
    pub host: Host,
    /// The trials, in the order of their execution.
    pub trials: Vec<TrialRecord>,
    /// What the trials say together.
    pub summary: Summary,
    /// What could not be read of the folder.
    pub notes: Vec<String>,
}

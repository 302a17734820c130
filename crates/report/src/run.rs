//! A run as the reports see it: its folder, and what statistics make of the trials.

use crate::folder::{self, EXPERIMENT_FILE, FolderError};
use crate::sentences;
use experiment::schema::{Host, Summary, TrialRecord};
use experiment::{Experiment, Plan};
use std::path::Path;

/// Everything of a run that a report shows.
#[derive(Clone, Debug)]
pub struct RunData {
    /// Text of `experiment.yaml`: the experiment as resolved.
    pub experiment_yaml: String,
    /// The same, read, without the modes that could not run.
    pub experiment: Experiment,
    /// The machine and the versions.
    pub host: Host,
    /// The trials, in the order of their execution.
    pub trials: Vec<TrialRecord>,
    /// What the trials say together.
    pub summary: Summary,
    /// What could not be read of the folder.
    pub notes: Vec<String>,
}

impl RunData {
    /// Reads a run folder, whole or cut short, and makes the summary again from its trials.
    ///
    /// # Errors
    /// Where it is no run folder, or what is needed of it cannot be read.
    pub fn read(path: &Path) -> Result<Self, FolderError> {
        let raw = folder::read(path)?;
        let file = path.join(EXPERIMENT_FILE);
        let mut experiment = Experiment::parse(&raw.experiment_yaml, &file.to_string_lossy())
            .map_err(|error| FolderError::read(&file, error))?;
        let mut notes = raw.notes;
        // A run writes down the seed that it drew: only a folder changed by hand has none.
        let seed = experiment.seed.unwrap_or_else(|| {
            notes.push(format!("{EXPERIMENT_FILE} does not say which seed ordered the trials."));
            0
        });
        // What could not run was not planned either.
        experiment.leave_out(&raw.host.refused_modes);
        let planned = Plan::new(&experiment, seed).trials.len();
        Ok(Self::new(raw.experiment_yaml, experiment, seed, planned, raw.host, raw.trials, notes))
    }

    /// Summarises trials; `planned` is the number of trials of the plan.
    #[must_use]
    pub fn new(
        experiment_yaml: String,
        experiment: Experiment,
        seed: u64,
        planned: usize,
        host: Host,
        trials: Vec<TrialRecord>,
        notes: Vec<String>,
    ) -> Self {
        let mut summary = statistics::summarize(&experiment, seed, planned, &host, &trials);
        sentences::fill(&experiment, &mut summary);
        Self { experiment_yaml, experiment, host, trials, summary, notes }
    }
}

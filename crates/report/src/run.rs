//! A run as the reports see it: its directory, and the statistics of its trials.

use crate::folder::{self, EXPERIMENT_FILE, FolderError};
use crate::profile::{self, Profile};
use crate::sentences;
use experiment::{Experiment, Plan};
use results::{ComponentVersion, Host, Summary, TrialRecord};
use std::path::Path;

/// Everything of a run that a report shows.
#[derive(Clone, Debug)]
pub struct RunData {
    /// Text of `experiment.yaml`: the experiment as resolved.
    pub experiment_yaml: String,
    /// The parsed experiment, without the modes that could not run.
    pub experiment: Experiment,
    /// The machine and the versions.
    pub host: Host,
    /// The trials in the order of execution.
    pub trials: Vec<TrialRecord>,
    /// Summary over all trials.
    pub summary: Summary,
    /// Parts of the directory that could not be read.
    pub notes: Vec<String>,
    /// Where CPU time went; empty unless the run was profiled.
    pub profiles: Vec<Profile>,
}

impl RunData {
    /// Reads a run directory, complete or cut short, and recomputes the summary from its trials.
    ///
    /// # Errors
    /// Returns an error if the path is not a run directory, or if a required file cannot be read.
    pub fn read(path: &Path) -> Result<Self, FolderError> {
        let raw = folder::read(path)?;
        let file = path.join(EXPERIMENT_FILE);
        let mut experiment = Experiment::parse(&raw.experiment_yaml, &file.to_string_lossy())
            .map_err(|error| FolderError::read(&file, error))?;
        let mut notes = raw.notes;
        // A run records the seed that it drew: only a directory edited by hand has none.
        let seed = experiment.seed.unwrap_or_else(|| {
            notes.push(format!("{EXPERIMENT_FILE} does not say which seed ordered the trials."));
            0
        });
        notes.extend(raw.host.resumed.iter().map(|resumed| {
            let trials = resumed.after_trials;
            let plural = if trials == 1 { "" } else { "s" };
            format!("The run had ended after {trials} trial{plural} and was continued at {}.", resumed.at)
        }));
        // Modes that could not run were not planned either.
        experiment.leave_out(&raw.host.refused_modes);
        let planned = Plan::new(&experiment, seed).trials.len();
        let run = Self::new(raw.experiment_yaml, experiment, seed, planned, raw.host, raw.trials, notes);
        let profiles = profile::read(path, &run.trials);
        Ok(Self { profiles, ..run })
    }

    /// Like [`Self::read`], with noise of the machine accepted if the run's last report accepted it.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_as_reported(path: &Path) -> Result<Self, FolderError> {
        let run = Self::read(path)?;
        Ok(if folder::accepts_noise(path) { run.accepting_noise() } else { run })
    }

    /// Summarises trials; `planned` is the number of trials of the plan.
    #[must_use]
    pub fn new(
        experiment_yaml: String,
        experiment: Experiment,
        seed: u64,
        planned: usize,
        mut host: Host,
        trials: Vec<TrialRecord>,
        notes: Vec<String>,
    ) -> Self {
        add_versions(&mut host, trials.iter().flat_map(|trial| &trial.versions));
        let mut summary = statistics::summarize(&experiment, seed, planned, &host, &trials);
        sentences::fill(&experiment, &mut summary);
        Self { experiment_yaml, experiment, host, trials, summary, notes, profiles: Vec::new() }
    }

    /// The run with noise of the machine accepted: figures of trials that it disturbed are in the estimates.
    #[must_use]
    pub fn accepting_noise(self) -> Self {
        let Summary { seed, trials_planned, .. } = self.summary;
        let (mut summary, trials) = statistics::summarize_accepting_noise(
            &self.experiment,
            seed,
            trials_planned,
            &self.host,
            &self.trials,
        );
        sentences::fill(&self.experiment, &mut summary);
        Self { trials, summary, ..self }
    }
}

/// Adds versions that only trials know: those of the proxies that a cluster's mesh injects.
fn add_versions<'a>(host: &mut Host, of_trials: impl Iterator<Item = &'a ComponentVersion>) {
    for version in of_trials {
        let is_same = |known: &ComponentVersion| {
            (&known.name, &known.version, &known.sha256) == (&version.name, &version.version, &version.sha256)
        };
        if !host.versions.iter().any(is_same) {
            host.versions.push(version.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn add_versions_adds_unknown_ones_once() {
        let version = |name: &str, version: &str| ComponentVersion {
            name: name.to_owned(),
            version: version.to_owned(),
            ..ComponentVersion::default()
        };
        let (istiod, proxy) = (version("istiod", "1.30.4"), version("istio-proxy", "1.30.4"));
        // What selected the program does not make it another.
        let known = ComponentVersion { named_by: Some("option".to_owned()), ..istiod.clone() };
        let mut host = Host { versions: vec![known.clone()], ..Host::default() };
        add_versions(&mut host, [&istiod, &proxy, &proxy].into_iter());
        assert_eq!(host.versions, [known, proxy]);
    }
}

//! The run folder: what a run leaves behind, and how it is read again. Both sides of the format are here.
//!
//! ```text
//! experiment.yaml   the experiment as resolved        host.json      the machine and the versions
//! trials.jsonl      a line for each trial as it ends  summary.json   what the trials say together
//! report.html       the report                        logs/          what the components wrote
//! ```
//! [`RunFolder`] writes: a trial is on the disk before the next one begins, and whole files are replaced in one step, so
//! that nothing already measured is lost where the disk is full or the run is killed. [`read`] makes do with what a run
//! that was cut short has left. The summary and the report can be made again from the rest at any time.

mod read;

pub use read::{RawRun, read};

use experiment::schema::{Host, Summary, TrialRecord};
use serde::Serialize;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The experiment as resolved.
pub const EXPERIMENT_FILE: &str = "experiment.yaml";
/// The machine and the versions.
pub const HOST_FILE: &str = "host.json";
/// One line for each trial.
pub const TRIALS_FILE: &str = "trials.jsonl";
/// What the trials say together.
pub const SUMMARY_FILE: &str = "summary.json";
/// The report for people.
pub const REPORT_FILE: &str = "report.html";
/// What the components wrote.
pub const LOGS_FOLDER: &str = "logs";

/// What to do where the folder already has a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Existing {
    /// Leave it alone and say so.
    Keep,
    /// Remove that run's files, and only those.
    Replace,
}

/// A run folder being written.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    trials: File,
    /// Length of `trials.jsonl` up to the last whole line.
    trials_bytes: u64,
}

impl RunFolder {
    /// Makes the folder, with its parents, and an empty `trials.jsonl` in it.
    ///
    /// # Errors
    /// Where the folder has a run that is to be kept, or files that are no run, or cannot be written.
    pub fn create(path: &Path, existing: Existing) -> Result<Self, FolderError> {
        fs::create_dir_all(path).map_err(|error| FolderError::write("create", path, error))?;
        match contents(path)? {
            Contents::Nothing => {}
            Contents::Run if existing == Existing::Replace => remove_run(path)?,
            Contents::Run => return Err(FolderError::HasRun { path: path.to_owned() }),
            Contents::Other(name) => return Err(FolderError::NotEmpty { path: path.to_owned(), name }),
        }
        let logs = path.join(LOGS_FOLDER);
        fs::create_dir_all(&logs).map_err(|error| FolderError::write("create", &logs, error))?;
        let trials_path = path.join(TRIALS_FILE);
        let trials = OpenOptions::new()
            .create_new(true)
            .append(true)
            .open(&trials_path)
            .map_err(|error| FolderError::write("create", &trials_path, error))?;
        Ok(Self { path: path.to_owned(), trials, trials_bytes: 0 })
    }

    /// Where the folder is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where `report.html` is, or will be.
    #[must_use]
    pub fn report_path(&self) -> PathBuf {
        self.path.join(REPORT_FILE)
    }

    /// A folder of its own for the logs of one trial, made if it is not there.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub fn trial_logs(&self, trial_index: usize) -> Result<PathBuf, FolderError> {
        let path = self.path.join(LOGS_FOLDER).join(format!("trial-{trial_index:03}"));
        fs::create_dir_all(&path).map_err(|error| FolderError::write("create", &path, error))?;
        Ok(path)
    }

    /// Writes `experiment.yaml`.
    ///
    /// # Errors
    /// Where it cannot be written; an earlier file stays.
    pub fn write_experiment(&self, yaml: &str) -> Result<(), FolderError> {
        write_whole(&self.path.join(EXPERIMENT_FILE), yaml.as_bytes())
    }

    /// Writes `host.json`.
    ///
    /// # Errors
    /// Where it cannot be written; an earlier file stays.
    pub fn write_host(&self, host: &Host) -> Result<(), FolderError> {
        write_json(&self.path.join(HOST_FILE), host)
    }

    /// Appends a trial to `trials.jsonl`; it is on the disk when this returns.
    ///
    /// # Errors
    /// Where it cannot be written; the trials before it stay readable.
    pub fn append_trial(&mut self, trial: &TrialRecord) -> Result<(), FolderError> {
        let path = self.path.join(TRIALS_FILE);
        let mut line = serde_json::to_vec(trial)
            .map_err(|error| FolderError::write("write", &path, io::Error::other(error)))?;
        line.push(b'\n');
        let written = self.trials.write_all(&line).and_then(|()| self.trials.sync_data());
        if let Err(error) = written {
            // Part of the line may be there: without it the next one is whole again. Where even this fails, reading
            // passes over the torn line.
            let _ = self.trials.set_len(self.trials_bytes);
            return Err(FolderError::write("append to", &path, error));
        }
        self.trials_bytes += line.len() as u64;
        Ok(())
    }

    /// Writes `summary.json`.
    ///
    /// # Errors
    /// Where it cannot be written; an earlier file stays.
    pub fn write_summary(&self, summary: &Summary) -> Result<(), FolderError> {
        write_summary(&self.path, summary)
    }

    /// Writes `report.html`.
    ///
    /// # Errors
    /// Where it cannot be written; an earlier file stays.
    pub fn write_report(&self, html: &str) -> Result<(), FolderError> {
        write_whole(&self.report_path(), html.as_bytes())
    }
}

/// Writes `summary.json` into a folder that has a run.
///
/// # Errors
/// Where it cannot be written; an earlier file stays.
pub fn write_summary(folder: &Path, summary: &Summary) -> Result<(), FolderError> {
    write_json(&folder.join(SUMMARY_FILE), summary)
}

/// Writes a whole file in one step: a reader sees the old contents or the new, never a part, and where it fails the old
/// ones stay.
///
/// # Errors
/// Where the file cannot be written.
pub fn write_whole(path: &Path, contents: &[u8]) -> Result<(), FolderError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    let written = write_and_sync(&part, contents).and_then(|()| fs::rename(&part, path));
    written.map_err(|error| {
        let _ = fs::remove_file(&part);
        FolderError::write("write", path, error)
    })
}

fn write_and_sync(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(contents)?;
    file.sync_all()
}

fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), FolderError> {
    let mut text = serde_json::to_vec_pretty(value)
        .map_err(|error| FolderError::write("write", path, io::Error::other(error)))?;
    text.push(b'\n');
    write_whole(path, &text)
}

enum Contents {
    Nothing,
    Run,
    /// Something that no run has written, by name.
    Other(String),
}

fn contents(path: &Path) -> Result<Contents, FolderError> {
    let names: Vec<String> = fs::read_dir(path)
        .and_then(|entries| entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect())
        .map_err(|error| FolderError::read(path, error))?;
    if names.iter().any(|name| name == EXPERIMENT_FILE || name == TRIALS_FILE) {
        return Ok(Contents::Run);
    }
    Ok(names.into_iter().min().map_or(Contents::Nothing, Contents::Other))
}

/// Removes what a run has written, `trials.jsonl` last: until then the folder is still known as a run.
fn remove_run(path: &Path) -> Result<(), FolderError> {
    let logs = path.join(LOGS_FOLDER);
    absent_is_fine(fs::remove_dir_all(&logs)).map_err(|error| FolderError::write("remove", &logs, error))?;
    for name in [REPORT_FILE, SUMMARY_FILE, HOST_FILE, EXPERIMENT_FILE, TRIALS_FILE] {
        let file = path.join(name);
        absent_is_fine(fs::remove_file(&file)).map_err(|error| FolderError::write("remove", &file, error))?;
    }
    Ok(())
}

fn absent_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// A run folder that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FolderError {
    /// There is already a run.
    #[error("{} already holds a run", path.display())]
    HasRun {
        /// The folder.
        path: PathBuf,
    },
    /// There is something else.
    #[error("{} is no empty folder: it holds {name:?}", path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
        /// One of the things in it.
        name: String,
    },
    /// It is not a run folder.
    #[error("{} is no run folder: {missing}", path.display())]
    NoRun {
        /// The folder.
        path: PathBuf,
        /// What it lacks.
        missing: String,
    },
    /// A file cannot be written.
    #[error("{operation} {}", path.display())]
    Write {
        /// What was tried.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file cannot be read.
    #[error("read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl FolderError {
    fn write(operation: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Write { operation, path: path.to_owned(), source }
    }

    pub(crate) fn read(path: &Path, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Read { path: path.to_owned(), source: source.into() }
    }

    /// What the user can do about it, where it is not plain from the error.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::HasRun { .. } => Some("name another folder, or say that it may be replaced".to_owned()),
            Self::NotEmpty { .. } => Some("name a new folder".to_owned()),
            Self::NoRun { .. } => {
                Some("give the folder that `meshmeter run` printed at its end".to_owned())
            }
            Self::Write { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                Some("make room on the disk; the trials recorded until now are kept".to_owned())
            }
            Self::Write { .. } | Self::Read { .. } => None,
        }
    }
}

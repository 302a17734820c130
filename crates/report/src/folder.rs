//! The run directory: the files that a run leaves behind, written and read here.
//!
//! ```text
//! experiment.yaml   the experiment as resolved         host.json      the machine and the versions
//! trials.jsonl      one line per trial, as it ends     summary.json   summary over all trials
//! report.html       the report                         logs/          logs of the components
//! comparison.json   result of a comparison             head.yaml      its head; experiment.yaml is its base
//! comparison.html   its report                   progress.jsonl the trial under way, while the run goes on
//! ```
//! [`RunFolder`] writes. A trial is synced to disk before the next one begins, and files are replaced
//! atomically, so that no measurement is lost if the disk is full or the run is killed. [`read`] also accepts
//! a run that was cut short. The summary and the report can be recomputed from the rest at any time.

mod error;
mod output_file;
mod progress_file;
mod read;
mod result_file;

pub use error::FolderError;
pub use output_file::{open, own_file, write_whole};
pub use progress_file::{ProgressFile, is_written};
pub(crate) use read::{Line, for_each_line, open as open_regular_file, trial_of};
pub use read::{RawRun, read, read_arms, read_compared, read_experiment, recorded_trials};
pub use result_file::{accepts_noise, read_comparison, write_comparison, write_self_test, write_summary};

use result_file::write_json;
use results::{Host, Summary, TrialRecord};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

/// The experiment as resolved.
pub const EXPERIMENT_FILE: &str = "experiment.yaml";
/// The machine and the versions.
pub const HOST_FILE: &str = "host.json";
/// One line per trial.
pub const TRIALS_FILE: &str = "trials.jsonl";
/// Summary over all trials.
pub const SUMMARY_FILE: &str = "summary.json";
/// The HTML report.
pub const REPORT_FILE: &str = "report.html";
/// Directory of the components' logs.
pub const LOGS_FOLDER: &str = "logs";
/// A comparison's result.
pub const COMPARISON_FILE: &str = "comparison.json";
/// A comparison's report.
pub const COMPARISON_REPORT_FILE: &str = "comparison.html";
/// A comparison's head as resolved; `experiment.yaml` is its base.
pub const HEAD_FILE: &str = "head.yaml";
/// Result of a self-test of comparisons.
pub const SELF_TEST_FILE: &str = "self-test.json";
/// The trial that is being measured, while a run goes on.
pub const PROGRESS_FILE: &str = "progress.jsonl";
/// All files of a run apart from its logs. `trials.jsonl` is last: it is removed last, and until then the directory is
/// recognised as a run.
pub const RUN_FILES: [&str; 9] = [
    PROGRESS_FILE,
    REPORT_FILE,
    SUMMARY_FILE,
    COMPARISON_REPORT_FILE,
    COMPARISON_FILE,
    HOST_FILE,
    HEAD_FILE,
    EXPERIMENT_FILE,
    TRIALS_FILE,
];

/// Treatment of a directory that already contains a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Existing {
    /// Keep that run and return an error.
    Keep,
    /// Remove that run's files, and only those.
    Replace,
}

/// A run directory being written.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    trials: File,
    /// Length of `trials.jsonl` up to the last complete line.
    trials_bytes: u64,
    /// Held as long as trials may be written.
    _lock: File,
}

impl RunFolder {
    /// Creates the directory with its parents, and an empty `trials.jsonl` in it.
    ///
    /// # Errors
    /// Returns an error if the directory contains a run that is to be kept or still goes on, or files that are
    /// not a run, or if it cannot be written.
    pub fn create(path: &Path, existing: Existing) -> Result<Self, FolderError> {
        fs::create_dir_all(path).map_err(|error| FolderError::write("create", path, error))?;
        let lock = lock(path)?;
        Self::check(path, existing)?;
        remove_run(path)?;
        let logs = path.join(LOGS_FOLDER);
        fs::create_dir_all(&logs).map_err(|error| FolderError::write("create", &logs, error))?;
        let trials_path = path.join(TRIALS_FILE);
        let trials = OpenOptions::new()
            .create_new(true)
            .append(true)
            .open(&trials_path)
            .map_err(|error| FolderError::write("create", &trials_path, error))?;
        Ok(Self { path: path.to_owned(), trials, trials_bytes: 0, _lock: lock })
    }

    /// Opens the directory of a run that has ended early, to append more trials. A last line that was cut
    /// short is removed.
    ///
    /// # Errors
    /// Returns an error if the path is not a run directory, if the run still goes on, or if a file cannot be
    /// read or written.
    pub fn resume(path: &Path) -> Result<(Self, RawRun), FolderError> {
        // Names what is missing of a directory without a run.
        read_experiment(path)?;
        Self::reopen(path, read)
    }

    /// Like [`Self::resume`], for a comparison.
    ///
    /// # Errors
    /// Returns an error if the path is not the directory of a comparison, and as [`Self::resume`] does.
    pub fn resume_comparison(path: &Path) -> Result<(Self, RawRun), FolderError> {
        read_arms(path)?;
        Self::reopen(path, read_compared)
    }

    fn reopen(
        path: &Path,
        read: impl Fn(&Path) -> Result<RawRun, FolderError>,
    ) -> Result<(Self, RawRun), FolderError> {
        let lock = lock(path)?;
        let run = read(path)?;
        let trials_path = path.join(TRIALS_FILE);
        let opened = OpenOptions::new().create(true).read(true).append(true).open(&trials_path);
        let opened = opened.and_then(|mut trials| end_last_line(&mut trials).map(|bytes| (trials, bytes)));
        let (trials, trials_bytes) =
            opened.map_err(|error| FolderError::write("append to", &trials_path, error))?;
        Ok((Self { path: path.to_owned(), trials, trials_bytes, _lock: lock }, run))
    }

    /// Checks whether [`Self::create`] would use the directory, and changes nothing.
    ///
    /// # Errors
    /// Returns an error if the directory contains a run that is to be kept, or files that are not a run, or
    /// if it cannot be read.
    pub fn check(path: &Path, existing: Existing) -> Result<(), FolderError> {
        match contents(path)? {
            Contents::Nothing => Ok(()),
            Contents::Run if existing == Existing::Replace => Ok(()),
            Contents::Run => Err(FolderError::HasRun { path: path.to_owned() }),
            Contents::Other(name) => Err(FolderError::NotEmpty { path: path.to_owned(), name }),
        }
    }

    /// Replaces the files of this run, which has none yet, by those of a complete copy on the same file system.
    ///
    /// # Errors
    /// Returns an error if a file cannot be moved; the others are in one of the two directories.
    pub fn take_over(self, copy: &Path) -> Result<(), FolderError> {
        // Renaming a directory replaces an empty one.
        for name in [LOGS_FOLDER].into_iter().chain(RUN_FILES) {
            let target = self.path.join(name);
            absent_is_fine(fs::rename(copy.join(name), &target))
                .map_err(|error| FolderError::write("move", &target, error))?;
        }
        Ok(())
    }

    /// Path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Path of `report.html`, whether or not it exists yet.
    #[must_use]
    pub fn report_path(&self) -> PathBuf {
        self.path.join(REPORT_FILE)
    }

    /// Directory of the logs, with one subdirectory per [label](Self::trial_label).
    #[must_use]
    pub fn logs(&self) -> PathBuf {
        self.path.join(LOGS_FOLDER)
    }

    /// Label of the logs of one trial.
    #[must_use]
    pub fn trial_label(trial_index: usize) -> String {
        format!("trial-{trial_index:03}")
    }

    /// Label of the logs of a deployment that several trials share.
    #[must_use]
    pub fn deployment_label(number: usize) -> String {
        format!("deployment-{number:03}")
    }

    /// Directory for the logs of a control plane that serves many trials: `logs/control-plane`. Does not
    /// create it.
    #[must_use]
    pub fn control_plane_logs(&self) -> PathBuf {
        self.path.join(LOGS_FOLDER).join("control-plane")
    }

    /// Writes `experiment.yaml`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written; an earlier file is kept.
    pub fn write_experiment(&self, yaml: &str) -> Result<(), FolderError> {
        write_whole(&own_file(&self.path, EXPERIMENT_FILE)?, yaml.as_bytes())
    }

    /// Writes `head.yaml`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written; an earlier file is kept.
    pub fn write_head(&self, yaml: &str) -> Result<(), FolderError> {
        write_whole(&own_file(&self.path, HEAD_FILE)?, yaml.as_bytes())
    }

    /// Writes `host.json`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written; an earlier file is kept.
    pub fn write_host(&self, host: &Host) -> Result<(), FolderError> {
        write_json(&own_file(&self.path, HOST_FILE)?, host)
    }

    /// Appends a trial to `trials.jsonl`, and syncs it to disk before returning.
    ///
    /// # Errors
    /// Returns an error if the line cannot be written; earlier trials stay readable.
    pub fn append_trial(&mut self, trial: &TrialRecord) -> Result<(), FolderError> {
        let path = self.path.join(TRIALS_FILE);
        let mut line = serde_json::to_vec(trial)
            .map_err(|error| FolderError::write("write", &path, io::Error::other(error)))?;
        line.push(b'\n');
        let written = self.trials.write_all(&line).and_then(|()| self.trials.sync_data());
        if let Err(error) = written {
            // Remove a partially written line, so that the next line is intact. If even this fails, the
            // reader skips the torn line.
            let _ = self.trials.set_len(self.trials_bytes);
            return Err(FolderError::write("append to", &path, error));
        }
        self.trials_bytes += line.len() as u64;
        Ok(())
    }

    /// Writes `summary.json`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written; an earlier file is kept.
    pub fn write_summary(&self, summary: &Summary) -> Result<(), FolderError> {
        write_summary(&self.path, summary)
    }

    /// Writes `report.html`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written; an earlier file is kept.
    pub fn write_report(&self, html: &str) -> Result<(), FolderError> {
        write_whole(&own_file(&self.path, REPORT_FILE)?, html.as_bytes())
    }
}

/// Locks a run's directory, so that two runs never write into one. The kernel ends the lock with the process.
fn lock(path: &Path) -> Result<File, FolderError> {
    let folder = File::open(path).map_err(|error| FolderError::read(path, error))?;
    match folder.try_lock() {
        Err(TryLockError::WouldBlock) => Err(FolderError::InUse { path: path.to_owned() }),
        // A file system without locks of directories, such as NFS, is used without.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(folder),
    }
}

/// Ends the last line of `trials.jsonl` if only its line break is missing, or removes what there is of it.
/// Returns the length of the file.
fn end_last_line(trials: &mut File) -> io::Result<u64> {
    let mut text = Vec::new();
    trials.seek(SeekFrom::Start(0))?;
    trials.read_to_end(&mut text)?;
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    match &text[whole..] {
        [] => {}
        line if TrialRecord::from_json(line).is_ok() => {
            trials.write_all(b"\n")?;
            return Ok(text.len() as u64 + 1);
        }
        _ => trials.set_len(whole as u64)?,
    }
    Ok(whole as u64)
}

enum Contents {
    Nothing,
    Run,
    /// Name of an entry that does not belong to a run.
    Other(String),
}

fn contents(path: &Path) -> Result<Contents, FolderError> {
    let listed = fs::read_dir(path).and_then(|entries| {
        entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    });
    let names: Vec<String> = match listed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Contents::Nothing),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            return Err(FolderError::write("create", path, error));
        }
        other => other.map_err(|error| FolderError::read(path, error))?,
    };
    if names.iter().any(|name| name == EXPERIMENT_FILE || name == TRIALS_FILE) {
        return Ok(Contents::Run);
    }
    Ok(names.into_iter().min().map_or(Contents::Nothing, Contents::Other))
}

/// Removes the files of a run, and nothing else.
fn remove_run(path: &Path) -> Result<(), FolderError> {
    let logs = path.join(LOGS_FOLDER);
    absent_is_fine(fs::remove_dir_all(&logs)).map_err(|error| FolderError::write("remove", &logs, error))?;
    for name in RUN_FILES {
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

#[cfg(test)]
mod tests {
    use super::*;
    use results::{Factors, LoadPoint, Mode, PathProof, TRIAL_SCHEMA, TrialOutcome, Verdict};
    use std::collections::BTreeMap;

    fn trial(index: usize) -> TrialRecord {
        TrialRecord {
            schema: TRIAL_SCHEMA.to_owned(),
            index,
            repeat: 0,
            mode: Mode::None,
            factors: Factors::new(),
            load: LoadPoint {
                protocol: "http/1.1".to_owned(),
                rate: Some(1000.0),
                clients: None,
                connections: 4,
                requests_per_connection: None,
                payload_bytes: 1024,
                stream: None,
                arrival: "uniform".to_owned(),
                surrounding_services: None,
            },
            started_at: "2026-11-20T09:49:00Z".to_owned(),
            deployment: None,
            outcome: TrialOutcome::Finished,
            verdict: Verdict::default(),
            result: None,
            drivers: Vec::new(),
            services: Vec::new(),
            edges: Vec::new(),
            gateways: Vec::new(),
            rates: None,
            components: vec![],
            path: PathProof::default(),
            machine: None,
            nodes: Vec::new(),
            log_tails: BTreeMap::new(),
            hints: Vec::new(),
            push: None,
            further_domain: None,
            versions: Vec::new(),
            proxies: None,
            retake: None,
        }
    }

    /// A directory with an experiment, a host and three trials.
    fn written(path: &Path) -> RunFolder {
        let mut folder = RunFolder::create(path, Existing::Keep).unwrap();
        folder.write_experiment("name: x\n").unwrap();
        folder.write_host(&Host::default()).unwrap();
        for index in 0..3 {
            folder.append_trial(&trial(index)).unwrap();
        }
        folder
    }

    fn indexes(run: &RawRun) -> Vec<usize> {
        run.trials.iter().map(|trial| trial.index).collect()
    }

    #[test]
    fn written_run_is_read_back() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("runs/first");
        let folder = written(&path);
        assert!(folder.logs().join(RunFolder::trial_label(7)).ends_with("logs/trial-007"));
        let run = read(&path).unwrap();
        assert_eq!(run.experiment_yaml, "name: x\n");
        assert_eq!(run.host, Host::default());
        assert_eq!(run.trials, [trial(0), trial(1), trial(2)]);
        assert!(run.notes.is_empty());
        let names: Vec<_> = fs::read_dir(&path)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert!(names.iter().all(|name| !name.contains("part")), "{names:?}");
    }

    #[test]
    fn killed_run_keeps_complete_trials() {
        let root = tempfile::tempdir().unwrap();
        written(root.path());
        let file = root.path().join(TRIALS_FILE);
        let text = fs::read(&file).unwrap();
        for torn in [text.len() - 2, text.len() - 100] {
            fs::write(&file, &text[..torn]).unwrap();
            let run = read(root.path()).unwrap();
            assert_eq!(indexes(&run), [0, 1], "cut at {torn}");
            assert_eq!(run.notes.len(), 1, "{:?}", run.notes);
        }
        // Only the line break is missing: the trial is complete.
        fs::write(&file, &text[..text.len() - 1]).unwrap();
        let run = read(root.path()).unwrap();
        assert_eq!((indexes(&run), run.notes.len()), (vec![0, 1, 2], 0));
        // Not a single trial, and no file at all.
        fs::write(&file, "").unwrap();
        assert_eq!(indexes(&read(root.path()).unwrap()), [0; 0]);
        fs::remove_file(&file).unwrap();
        assert_eq!(indexes(&read(root.path()).unwrap()), [0; 0]);
    }

    #[test]
    fn unreadable_line_is_skipped_and_noted() {
        let root = tempfile::tempdir().unwrap();
        written(root.path());
        let file = root.path().join(TRIALS_FILE);
        let text = fs::read_to_string(&file).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines[0] = lines[0].replace(TRIAL_SCHEMA, "meshmeter.trial/9");
        lines.insert(1, "\u{fffd}{\"half".to_owned());
        lines.insert(2, String::new());
        fs::write(&file, lines.join("\n") + "\n").unwrap();
        let run = read(root.path()).unwrap();
        assert_eq!(indexes(&run), [1, 2]);
        assert_eq!(run.notes.len(), 2, "{:?}", run.notes);
        assert!(
            run.notes[0].contains("Line 1") && run.notes[0].contains("meshmeter.trial/9"),
            "{:?}",
            run.notes
        );
        assert!(run.notes[1].contains("Line 2"), "{:?}", run.notes);
    }

    #[test]
    fn existing_run_is_replaced_only_on_request() {
        let root = tempfile::tempdir().unwrap();
        written(root.path());
        let notes = root.path().join("notes.txt");
        fs::write(&notes, "mine").unwrap();
        assert!(matches!(RunFolder::create(root.path(), Existing::Keep), Err(FolderError::HasRun { .. })));
        assert_eq!(indexes(&read(root.path()).unwrap()), [0, 1, 2]);
        RunFolder::create(root.path(), Existing::Replace).unwrap();
        assert!(notes.exists(), "what no run has written stays");
        assert!(!root.path().join(EXPERIMENT_FILE).exists());
        assert_eq!(fs::read(root.path().join(TRIALS_FILE)).unwrap(), b"");
    }

    #[test]
    fn two_runs_never_write_into_one_directory() {
        let root = tempfile::tempdir().unwrap();
        let first = written(root.path());
        for existing in [Existing::Keep, Existing::Replace] {
            let error = RunFolder::create(root.path(), existing).unwrap_err();
            assert!(matches!(error, FolderError::InUse { .. }), "{error}");
        }
        assert!(matches!(RunFolder::resume(root.path()), Err(FolderError::InUse { .. })));
        assert_eq!(indexes(&read(root.path()).unwrap()), [0, 1, 2]);
        drop(first);
        RunFolder::create(root.path(), Existing::Replace).unwrap();
    }

    #[test]
    fn resumed_run_keeps_its_trials_and_gets_more() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join(TRIALS_FILE);
        drop(written(root.path()));
        let text = fs::read(&file).unwrap();
        // Complete, without the last line break, and with half of a line.
        for (written, kept) in [(text.len(), 3), (text.len() - 1, 3), (text.len() - 40, 2)] {
            fs::write(&file, &text[..written]).unwrap();
            let (mut folder, run) = RunFolder::resume(root.path()).unwrap();
            assert_eq!(run.trials.len(), kept, "{written} bytes");
            folder.append_trial(&trial(7)).unwrap();
            drop(folder);
            let again = read(root.path()).unwrap();
            assert_eq!((again.trials.len(), again.trials[kept].index), (kept + 1, 7));
            assert!(again.notes.is_empty(), "{:?}", again.notes);
        }
        fs::remove_file(&file).unwrap();
        assert_eq!(RunFolder::resume(root.path()).unwrap().1.trials.len(), 0);
        let nothing = tempfile::tempdir().unwrap();
        assert!(matches!(RunFolder::resume(nothing.path()), Err(FolderError::NoRun { .. })));
    }

    #[test]
    fn directory_with_other_files_is_left_unchanged() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("thesis.tex"), "").unwrap();
        for existing in [Existing::Keep, Existing::Replace] {
            let error = RunFolder::create(root.path(), existing).unwrap_err();
            assert!(error.to_string().contains("thesis.tex"), "{error}");
        }
    }

    #[test]
    fn read_of_non_run_directory_names_what_is_missing() {
        let root = tempfile::tempdir().unwrap();
        for (path, missing) in [
            (root.path().join("absent"), "it is not there"),
            (root.path().to_owned(), "it has no experiment.yaml"),
        ] {
            let error = read(&path).unwrap_err();
            assert!(matches!(error, FolderError::NoRun { .. }), "{error}");
            assert!(error.to_string().contains(missing), "{error}");
        }
        fs::write(root.path().join(EXPERIMENT_FILE), "name: x").unwrap();
        fs::write(root.path().join(HOST_FILE), "{").unwrap();
        let error = read(root.path()).unwrap_err();
        assert!(error.to_string().contains(HOST_FILE), "{error}");
    }

    #[test]
    fn full_disk_is_reported_without_data_loss() {
        let root = tempfile::tempdir().unwrap();
        let mut folder = written(root.path());
        let full = OpenOptions::new().append(true).open("/dev/full").unwrap();
        let trials = std::mem::replace(&mut folder.trials, full);
        let error = folder.append_trial(&trial(3)).unwrap_err();
        assert!(error.to_string().contains(TRIALS_FILE), "{error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("kept")), "{error:?}");
        folder.trials = trials;
        folder.append_trial(&trial(4)).unwrap();
        assert_eq!(indexes(&read(root.path()).unwrap()), [0, 1, 2, 4]);
    }
}

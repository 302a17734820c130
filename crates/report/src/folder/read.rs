//! Reads a run directory, complete or cut short.
//!
//! `experiment.yaml` and `host.json` are required; `trials.jsonl` may be missing if no trial ended. A killed
//! run leaves a last line without a line break. Such a line, and any other line that cannot be read, is
//! skipped with a note. `summary.json` and `report.html` are not read, but recomputed.

use super::{EXPERIMENT_FILE, FolderError, HEAD_FILE, HOST_FILE, TRIALS_FILE};
use results::{Host, TRIAL_SCHEMA, TrialRecord};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;

/// Maximum length of a line. A trial takes some 20 KB; one with a fleet of components, a few hundred; a study of a thousand cells
/// in a history, a few megabytes.
const MAX_LINE_BYTES: u64 = 64 * 1024 * 1024;

/// A run as stored in its directory.
#[derive(Clone, Debug)]
pub struct RawRun {
    /// Text of `experiment.yaml`.
    pub experiment_yaml: String,
    /// The machine and the versions.
    pub host: Host,
    /// The trials in the order of execution.
    pub trials: Vec<TrialRecord>,
    /// Notes for the report on what could not be read.
    pub notes: Vec<String>,
}

/// Reads the experiment of a run directory: the text of `experiment.yaml`.
///
/// # Errors
/// Returns an error if the path is not a run directory, or if the file cannot be read.
pub fn read_experiment(path: &Path) -> Result<String, FolderError> {
    if !path.is_dir() {
        let missing = if path.exists() { "it is a file" } else { "it is not there" };
        return Err(FolderError::NoRun { path: path.to_owned(), missing: missing.to_owned() });
    }
    // Its experiment is that of the base alone, and its trials are of three arms.
    if path.join(HEAD_FILE).exists() {
        return Err(FolderError::NoRun { path: path.to_owned(), missing: "it is a comparison".to_owned() });
    }
    text(path, EXPERIMENT_FILE)
}

/// Reads both experiments of a comparison's directory: `experiment.yaml`, the base, and `head.yaml`.
///
/// # Errors
/// Returns an error if the path is not the directory of a comparison, or if a file cannot be read.
pub fn read_arms(path: &Path) -> Result<[String; 2], FolderError> {
    Ok([text(path, EXPERIMENT_FILE)?, text(path, HEAD_FILE)?])
}

fn text(folder: &Path, name: &str) -> Result<String, FolderError> {
    String::from_utf8(needed(folder, name)?).map_err(|error| FolderError::read(&folder.join(name), error))
}

/// Reads a run directory.
///
/// # Errors
/// Returns an error if the path is not a run directory, or if a required file cannot be read.
pub fn read(path: &Path) -> Result<RawRun, FolderError> {
    with_experiment(path, read_experiment(path)?)
}

/// Reads the directory of a comparison; its experiment is that of the base, and its trials are those of all arms.
///
/// # Errors
/// Returns an error if the path is not the directory of a comparison, or if a required file cannot be read.
pub fn read_compared(path: &Path) -> Result<RawRun, FolderError> {
    let [base, _] = read_arms(path)?;
    with_experiment(path, base)
}

/// Reads the trials alone, of a run or a comparison that may lack other files.
///
/// # Errors
/// Returns an error if the file is there and cannot be read.
pub fn recorded_trials(path: &Path) -> Result<Vec<TrialRecord>, FolderError> {
    read_trials(&path.join(TRIALS_FILE), &mut Vec::new())
}

fn with_experiment(path: &Path, experiment_yaml: String) -> Result<RawRun, FolderError> {
    let host = Host::from_json(needed(path, HOST_FILE)?)
        .map_err(|error| FolderError::read(&path.join(HOST_FILE), error))?;
    let mut notes = Vec::new();
    let trials = read_trials(&path.join(TRIALS_FILE), &mut notes)?;
    Ok(RawRun { experiment_yaml, host, trials, notes })
}

fn needed(folder: &Path, name: &str) -> Result<Vec<u8>, FolderError> {
    let path = folder.join(name);
    let contents = open(&path).and_then(|mut file| {
        let mut contents = Vec::new();
        file.read_to_end(&mut contents).map(|_| contents)
    });
    contents.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            FolderError::NoRun { path: folder.to_owned(), missing: format!("it has no {name}") }
        }
        _ => FolderError::read(&path, error),
    })
}

/// Opens a regular file for reading. Opening a pipe would block until there is a writer.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    if fs::metadata(path)?.is_file() {
        File::open(path)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
    }
}

/// A run that ended before its first trial may have no `trials.jsonl`.
fn read_trials(path: &Path, notes: &mut Vec<String>) -> Result<Vec<TrialRecord>, FolderError> {
    let file = match open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(FolderError::read(path, error)),
    };
    let mut trials = Vec::new();
    for_each_line(file, path, |line| {
        trials.extend(trial_of(line, notes));
        Ok(())
    })?;
    trials.sort_by_key(|trial| trial.index);
    Ok(trials)
}

/// The trial of a line; a line without one is noted unless it is blank.
pub(crate) fn trial_of(
    Line { number, text, is_whole }: Line<'_>,
    notes: &mut Vec<String>,
) -> Option<TrialRecord> {
    match parse_trial(text) {
        Ok(trial) => trial.map(TrialRecord::with_proof_of_own_mode),
        Err(_) if !is_whole => {
            notes.push(format!("The last line of {TRIALS_FILE} was cut short; that trial is lost."));
            None
        }
        Err(error) => {
            notes.push(format!("Line {number} of {TRIALS_FILE} cannot be read and is left out: {error}."));
            None
        }
    }
}

/// A line of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    /// From 1.
    pub(crate) number: usize,
    /// With its line break.
    pub(crate) text: &'a [u8],
    /// False for a last line without a line break.
    pub(crate) is_whole: bool,
}

/// Reads a file line by line. A line that is too long is an error, and `read` may return others.
pub(crate) fn for_each_line(
    file: File,
    path: &Path,
    mut read: impl FnMut(Line<'_>) -> Result<(), FolderError>,
) -> Result<(), FolderError> {
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let bytes = reader
            .by_ref()
            .take(MAX_LINE_BYTES)
            .read_until(b'\n', &mut line)
            .map_err(|error| FolderError::read(path, error))?;
        if bytes == 0 {
            break;
        }
        let is_whole = line.last() == Some(&b'\n');
        if !is_whole && bytes as u64 == MAX_LINE_BYTES {
            return Err(FolderError::read(
                path,
                format!("line {number} is over {MAX_LINE_BYTES} bytes long"),
            ));
        }
        read(Line { number, text: &line, is_whole })?;
    }
    Ok(())
}

/// Parses a trial; `None` for a blank line.
fn parse_trial(line: &[u8]) -> Result<Option<TrialRecord>, Box<dyn std::error::Error>> {
    if line.trim_ascii().is_empty() {
        return Ok(None);
    }
    let trial = TrialRecord::from_json(line)?;
    if trial.schema != TRIAL_SCHEMA {
        return Err(format!("its schema is {:?}, not {TRIAL_SCHEMA:?}", trial.schema).into());
    }
    if !trial.has_possible_counts() {
        return Err("it has counts that no load can have".into());
    }
    Ok(Some(trial))
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::Mode;

    #[test]
    fn trial_with_proof_of_another_mode_is_excluded() {
        let line = include_bytes!("../../../../fuzz/corpus/trials/run").split(|byte| *byte == b'\n').next();
        let mut trial = parse_trial(line.unwrap()).unwrap().unwrap();
        trial.path.mode = Some(trial.mode);
        assert_eq!(trial.clone().with_proof_of_own_mode().verdict, trial.verdict);
        assert!(trial.path.proven, "else the next lines show nothing");
        trial.path.mode = Some(if trial.mode == Mode::None { Mode::Sidecar } else { Mode::None });
        let read = trial.with_proof_of_own_mode();
        assert!(!read.path.proven && !read.verdict.valid);
        assert!(
            read.verdict.reasons.last().unwrap().starts_with("path-not-proven: the proof is of mode "),
            "{:?}",
            read.verdict
        );
        assert_eq!(read.clone().with_proof_of_own_mode(), read);
    }

    #[test]
    fn trial_with_impossible_counts_is_an_error() {
        let first = |lines: &'static [u8]| parse_trial(lines.split(|byte| *byte == b'\n').next().unwrap());
        let sound = first(include_bytes!("../../../../fuzz/corpus/trials/run"));
        assert!(sound.unwrap().is_some());
        let damaged = first(include_bytes!("../../../../fuzz/corpus/trials/huge-counts"));
        assert_eq!(damaged.unwrap_err().to_string(), "it has counts that no load can have");
    }
}

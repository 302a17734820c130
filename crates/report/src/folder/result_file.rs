//! Results in the directory of a run or a comparison, as JSON.

use super::{
    COMPARISON_FILE, FolderError, SELF_TEST_FILE, SUMMARY_FILE, open_regular_file, own_file, write_whole,
};
use results::{Comparison, ComparisonSelfTest, Summary};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, BufReader};
use std::path::Path;

/// Writes `summary.json` into the directory of an existing run.
///
/// # Errors
/// Returns an error if the file cannot be written; an earlier file is kept.
pub fn write_summary(folder: &Path, summary: &Summary) -> Result<(), FolderError> {
    write_json(&own_file(folder, SUMMARY_FILE)?, summary)
}

/// True if the last report of a run accepted noise of the machine, as its `summary.json` says; false without a summary that can be
/// read, which nothing else needs.
#[must_use]
pub fn accepts_noise(folder: &Path) -> bool {
    #[derive(Deserialize)]
    struct Accepted {
        noise_accepted: Option<IgnoredAny>,
    }
    let file = open_regular_file(&folder.join(SUMMARY_FILE)).ok();
    let read = file.and_then(|file| serde_json::from_reader(BufReader::new(file)).ok());
    read.is_some_and(|Accepted { noise_accepted }| noise_accepted.is_some())
}

/// Writes `comparison.json` into the directory of a comparison.
///
/// # Errors
/// Returns an error if the file cannot be written; an earlier file is kept.
pub fn write_comparison(folder: &Path, comparison: &Comparison) -> Result<(), FolderError> {
    write_json(&own_file(folder, COMPARISON_FILE)?, comparison)
}

/// Reads `comparison.json` of a directory; `None` if there is none.
///
/// # Errors
/// Returns an error if the file cannot be read.
pub fn read_comparison(folder: &Path) -> Result<Option<Comparison>, FolderError> {
    let path = folder.join(COMPARISON_FILE);
    let contents = match fs::read(&path) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        read => read.map_err(|error| FolderError::read(&path, error))?,
    };
    serde_json::from_slice(&contents).map(Some).map_err(|error| FolderError::read(&path, error))
}

/// Writes `self-test.json` into a directory.
///
/// # Errors
/// Returns an error if the file cannot be written; an earlier file is kept.
pub fn write_self_test(folder: &Path, result: &ComparisonSelfTest) -> Result<(), FolderError> {
    write_json(&own_file(folder, SELF_TEST_FILE)?, result)
}

/// Writes a value as indented JSON.
pub(super) fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), FolderError> {
    let mut text = serde_json::to_vec_pretty(value)
        .map_err(|error| FolderError::write("write", path, io::Error::other(error)))?;
    text.push(b'\n');
    write_whole(path, &text)
}

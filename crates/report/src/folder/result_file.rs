//! Results in the directory of a run or a comparison, as JSON.

use super::{COMPARISON_FILE, FolderError, SELF_TEST_FILE, SUMMARY_FILE, own_file, write_whole};
use results::{Comparison, ComparisonSelfTest, Summary};
use serde::Serialize;
use std::fs;
use std::io;
use std::path::Path;

/// Writes `summary.json` into the directory of an existing run.
///
/// # Errors
/// Returns an error if the file cannot be written; an earlier file is kept.
pub fn write_summary(folder: &Path, summary: &Summary) -> Result<(), FolderError> {
    write_json(&own_file(folder, SUMMARY_FILE)?, summary)
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

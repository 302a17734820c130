//! The last log lines of a failed test's components. Their logs are removed with the test's directories.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Number of logs to print, most recently written first.
const LOGS: usize = 12;
/// Number of lines per log.
const LINES: usize = 15;

/// Prints the last lines of the logs in a directory and below.
pub fn tell(folder: &Path) {
    let mut logs = Vec::new();
    find(folder, &mut logs);
    logs.sort();
    for (_, path) in logs.iter().rev().take(LOGS).rev() {
        // Logs that cannot be read any more are skipped.
        let text = fs::read(path).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        println!("--- {}", path.strip_prefix(folder).unwrap_or(path).display());
        lines[lines.len().saturating_sub(LINES)..].iter().for_each(|line| println!("    {line}"));
    }
}

/// Finds every log that is not empty, with the time of its last write.
fn find(folder: &Path, found: &mut Vec<(SystemTime, PathBuf)>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, Ok(metadata)) = (entry.path(), entry.metadata()) else { continue };
        if metadata.is_dir() {
            find(&path, found);
        } else if metadata.len() > 0 && path.extension().is_some_and(|extension| extension == "log") {
            found.push((metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH), path));
        }
    }
}

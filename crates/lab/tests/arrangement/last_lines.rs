//! What the components of a failed test have said last, since their logs go with the test's folders.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Of so many logs, those written last …
const LOGS: usize = 12;
/// … so many lines.
const LINES: usize = 15;

/// Prints the last lines of the logs in a folder and below.
pub fn tell(folder: &Path) {
    let mut logs = Vec::new();
    find(folder, &mut logs);
    logs.sort();
    for (_, path) in logs.iter().rev().take(LOGS).rev() {
        // What cannot be read any more cannot be told.
        let text = fs::read(path).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        println!("--- {}", path.strip_prefix(folder).unwrap_or(path).display());
        lines[lines.len().saturating_sub(LINES)..].iter().for_each(|line| println!("    {line}"));
    }
}

/// Every log that says something, with the time at which it was written last.
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

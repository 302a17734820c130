//! The file of a history: JSON lines, a run each, appended and never rewritten except by pruning.
//!
//! Writers hold a lock on the file, which the kernel ends with the process. A line that was cut short by a full disk or a crash stays
//! where it is: readers name its number and go on, and the next line begins after it. A line of a later version is an error, since
//! skipping it would leave out runs without need.

use crate::folder::{FolderError, Line, for_each_line, open_regular_file, write_whole};
use results::units::shortened_to;
use results::{HISTORY_SCHEMA, HistoryRun};
use serde::Deserialize;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Beginning of the schemas of all versions.
pub const SCHEMA_OF_ALL_VERSIONS: &str = "meshmeter.history/";
/// A reason may quote the line.
const MAX_REASON_CHARACTERS: usize = 300;
/// Each attempt to lock follows a replacement of the file by another process.
const MAX_REPLACEMENTS: usize = 100;

/// A history as read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HistoryFile {
    /// Runs in the order of the file.
    pub runs: Vec<HistoryRun>,
    /// Lines that could not be read.
    pub skipped: Vec<SkippedLine>,
    /// True if the last line is one of them: the newest run is not known.
    pub ends_damaged: bool,
}

/// A line that could not be read.
#[derive(Clone, Debug, PartialEq)]
pub struct SkippedLine {
    /// Number of the line, from 1.
    pub number: usize,
    /// Reason for which it could not be read.
    pub reason: String,
    /// True if a later version of Meshmeter wrote it.
    pub is_later: bool,
}

impl HistoryFile {
    /// Numbers of the lines that could not be read.
    #[must_use]
    pub fn skipped_lines(&self) -> Vec<usize> {
        self.skipped.iter().map(|line| line.number).collect()
    }

    /// Reads a history.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, is no history, or has a line of a later version.
    pub fn read(path: &Path) -> Result<Self, FolderError> {
        let file = open_regular_file(path).map_err(|error| FolderError::read(path, error))?;
        Self::read_from(file, path)
    }

    /// Reads a history from a file or a pipe; `path` is its name in errors.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_from(file: File, path: &Path) -> Result<Self, FolderError> {
        let (history, end) = Self::readable(file, path);
        end?;
        if let Some(later) = history.skipped.iter().find(|line| line.is_later) {
            return Err(FolderError::read(path, format!("line {} {}", later.number, later.reason)));
        }
        if history.runs.is_empty() && !history.skipped.is_empty() {
            return Err(FolderError::read(
                path,
                format!("it is not a history: {}", history.skipped[0].reason),
            ));
        }
        Ok(history)
    }

    /// Reads what can be read of a history, lines of later versions left out as well, and the error that ended reading early.
    pub fn readable(file: File, path: &Path) -> (Self, Result<(), FolderError>) {
        let mut history = Self::default();
        let end = for_each_line(file, path, |Line { number, text, is_whole }| {
            if text.trim_ascii().is_empty() {
                return Ok(());
            }
            history.ends_damaged = false;
            match parse(text) {
                Ok(run) => history.runs.push(run),
                Err(fault) => {
                    let (reason, is_later) = match fault {
                        Fault::Later(schema) => (format!("is of a later version: {schema}"), true),
                        Fault::Damaged(reason) if is_whole => (reason, false),
                        Fault::Damaged(reason) => (format!("it was cut short ({reason})"), false),
                    };
                    let reason = shortened_to(&reason, MAX_REASON_CHARACTERS);
                    history.skipped.push(SkippedLine { number, reason, is_later });
                    history.ends_damaged = true;
                }
            }
            Ok(())
        });
        (history, end)
    }
}

enum Fault {
    /// Schema of a later version.
    Later(String),
    Damaged(String),
}

fn parse(line: &[u8]) -> Result<HistoryRun, Fault> {
    #[derive(Deserialize)]
    struct AnyVersion {
        schema: String,
    }
    let damaged = |error: serde_json::Error| Fault::Damaged(error.to_string());
    let AnyVersion { schema } = serde_json::from_slice(line).map_err(damaged)?;
    if schema != HISTORY_SCHEMA {
        return Err(match schema.starts_with(SCHEMA_OF_ALL_VERSIONS) {
            true => Fault::Later(schema),
            false => Fault::Damaged(format!("its schema is {schema:?}, not {HISTORY_SCHEMA:?}")),
        });
    }
    Ok(HistoryRun::from_json(line).map_err(damaged)?.plain())
}

/// A history under its lock.
#[derive(Debug)]
pub struct LockedHistory {
    file: File,
}

impl LockedHistory {
    /// Opens a history to append to, and waits for other writers. The file is made if there is none.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened or locked.
    pub fn open(path: &Path) -> Result<Self, FolderError> {
        let failed = |error| FolderError::write("append to", path, error);
        for _ in 0..MAX_REPLACEMENTS {
            let file = OpenOptions::new().create(true).read(true).append(true).open(path).map_err(failed)?;
            if !file.metadata().map_err(failed)?.is_file() {
                return Err(failed(io::Error::other("it is not a regular file")));
            }
            file.lock().map_err(failed)?;
            // Pruning replaces the file: a lock on the old one locks nothing.
            let place = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
            let is_current = fs::metadata(path).map(place).ok() == file.metadata().map(place).ok();
            if is_current {
                return Ok(Self { file });
            }
        }
        Err(failed(io::Error::other("it is replaced again and again")))
    }

    /// Reads the history.
    ///
    /// # Errors
    /// As [`HistoryFile::read`].
    pub fn read(&mut self, path: &Path) -> Result<HistoryFile, FolderError> {
        let failed = |error| FolderError::read(path, error);
        self.file.seek(SeekFrom::Start(0)).map_err(failed)?;
        HistoryFile::read_from(self.file.try_clone().map_err(failed)?, path)
    }

    /// Appends a run, and syncs it to disk.
    ///
    /// # Errors
    /// Returns an error if the line cannot be written; earlier lines stay.
    pub fn append(&mut self, run: &HistoryRun, path: &Path) -> Result<(), FolderError> {
        let failed = |error| FolderError::write("append to", path, error);
        let length = self.file.metadata().map_err(failed)?.len();
        let mut line =
            if self.ends_within_a_line(length).map_err(failed)? { vec![b'\n'] } else { Vec::new() };
        serde_json::to_writer(&mut line, run).map_err(|error| failed(io::Error::other(error)))?;
        line.push(b'\n');
        let written = self.file.write_all(&line).and_then(|()| self.file.sync_data());
        written.map_err(|error| {
            // Nothing of a line that is not whole; if even this fails, readers name it.
            let _ = self.file.set_len(length);
            failed(error)
        })
    }

    fn ends_within_a_line(&mut self, length: u64) -> io::Result<bool> {
        if length == 0 {
            return Ok(false);
        }
        let mut last = [0];
        self.file.seek(SeekFrom::End(-1))?;
        self.file.read_exact(&mut last)?;
        Ok(last != *b"\n")
    }

    /// Replaces the history by some of its runs, all at once. Their lines stay as they are, with fields that a later version may
    /// have added. `is_kept` gets each run with its number, from 0. Lines that are no runs are dropped.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or written; the old one stays.
    pub fn retain(
        mut self,
        path: &Path,
        is_kept: impl Fn(usize, &HistoryRun) -> bool,
    ) -> Result<(), FolderError> {
        let failed = |error| FolderError::read(path, error);
        self.file.seek(SeekFrom::Start(0)).map_err(failed)?;
        // The lock is held until the new file is in place.
        let file = self.file.try_clone().map_err(failed)?;
        let (mut kept, mut runs) = (Vec::new(), 0);
        for_each_line(file, path, |Line { text, .. }| {
            if let Ok(run) = parse(text) {
                if is_kept(runs, &run) {
                    kept.extend_from_slice(text.trim_ascii_end());
                    kept.push(b'\n');
                }
                runs += 1;
            }
            Ok(())
        })?;
        write_whole(path, &kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(seed: u64) -> HistoryRun {
        HistoryRun { schema: HISTORY_SCHEMA.to_owned(), seed: Some(seed), ..HistoryRun::default() }
    }

    fn append(path: &Path, seed: u64) {
        LockedHistory::open(path).unwrap().append(&run(seed), path).unwrap();
    }

    fn seeds(history: &HistoryFile) -> Vec<u64> {
        history.runs.iter().filter_map(|run| run.seed).collect()
    }

    #[test]
    fn lines_are_appended_and_damaged_ones_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.jsonl");
        append(&path, 1);
        append(&path, 2);
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 10]).unwrap();
        let cut = HistoryFile::read(&path).unwrap();
        assert_eq!((seeds(&cut), cut.skipped_lines(), cut.ends_damaged), (vec![1], vec![2], true));
        assert!(cut.skipped[0].reason.starts_with("it was cut short"), "{cut:?}");
        append(&path, 3);
        let read = HistoryFile::read(&path).unwrap();
        assert_eq!((seeds(&read), read.skipped_lines(), read.ends_damaged), (vec![1, 3], vec![2], false));
        assert_eq!(LockedHistory::open(&path).unwrap().read(&path).unwrap(), read);
    }

    #[test]
    fn kept_lines_stay_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.jsonl");
        (1..=3).for_each(|seed| append(&path, seed));
        let later =
            fs::read_to_string(&path).unwrap().replace("\"seed\":", "\"region\": {\"a\": [1]}, \"seed\":");
        fs::write(&path, &later).unwrap();
        let locked = LockedHistory::open(&path).unwrap();
        locked.retain(&path, |number, run| number != 0 && run.seed != Some(3)).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), later.lines().nth(1).unwrap().to_owned() + "\n");
    }

    #[test]
    fn other_files_and_later_versions_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.jsonl");
        let error = |text: &str| {
            fs::write(&path, text).unwrap();
            experiment::environment::error_chain(&HistoryFile::read(&path).unwrap_err())
        };
        assert!(error("{\"schema\": \"meshmeter.load/1\"}\n").contains("it is not a history"));
        assert!(error("hello\n").contains("it is not a history"));
        let later = error("{\"schema\": \"meshmeter.history/2\"}\n");
        assert!(later.contains("line 1 is of a later version: meshmeter.history/2"), "{later}");
        append(&path, 1);
        let (readable, end) = HistoryFile::readable(File::open(&path).unwrap(), &path);
        assert_eq!((seeds(&readable), readable.skipped_lines(), end.is_ok()), (vec![1], vec![1], true));
        fs::write(&path, "\n\n").unwrap();
        assert_eq!(HistoryFile::read(&path).unwrap(), HistoryFile::default());
        HistoryFile::read(folder.path()).unwrap_err();
        HistoryFile::read(&folder.path().join("absent")).unwrap_err();
    }

    #[test]
    fn writers_wait_for_each_other_and_for_pruning() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.jsonl");
        append(&path, 0);
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let path = &path;
                scope.spawn(move || (0..10).for_each(|number| append(path, 10 * writer + number)));
            }
            for _ in 0..5 {
                LockedHistory::open(&path).unwrap().retain(&path, |_, _| true).unwrap();
            }
        });
        let read = HistoryFile::read(&path).unwrap();
        assert_eq!((read.runs.len(), read.skipped.len()), (41, 0), "no line is lost or torn");
    }
}

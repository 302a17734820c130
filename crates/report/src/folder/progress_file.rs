//! `progress.jsonl`: the trial under way, for those who watch the run. Lines per second, never synced, and removed with the run's
//! end. A run does without it where it cannot be written.
//!
//! Each trial has a file of its own, which replaces that of the trial before. Its lock tells a run that goes on from one that was
//! killed: it is held before the file has its name, so that a reader that tries the lock is never in the run's way.

use super::PROGRESS_FILE;
use super::output_file::part_of;
use results::{ComponentsSecond, GeneratorSecond, PROGRESS_SCHEMA, SeriesPoint, TrialUnderWay};
use serde::Serialize;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Maximum size of the file: some hours of a hundred generators. Seconds beyond are left out.
const MAX_BYTES: usize = 256 << 20;

/// Writer of `progress.jsonl`; removes it when dropped.
#[derive(Debug)]
pub struct ProgressFile {
    path: PathBuf,
    /// The current file with its size.
    current: Option<(File, usize)>,
}

impl ProgressFile {
    /// Writer for this run directory. There is no file before the first trial.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self { path: folder.join(PROGRESS_FILE), current: None }
    }

    /// Begins the file of a trial.
    pub fn begin(&mut self, trial: TrialUnderWay) {
        let trial = TrialUnderWay { schema: PROGRESS_SCHEMA.to_owned(), ..trial };
        self.current = self.create(&trial).ok();
    }

    fn create(&self, trial: &TrialUnderWay) -> io::Result<(File, usize)> {
        let part = part_of(&self.path)?;
        match part.as_file().try_lock() {
            // A file system without locks: readers take the run for one that goes on.
            Ok(()) | Err(TryLockError::Error(_)) => {}
            Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::WouldBlock.into()),
        }
        let bytes = write_line(part.as_file(), trial)?;
        Ok((part.persist(&self.path)?, bytes))
    }

    /// Adds a second of a generator.
    pub fn second(&mut self, generator: &str, second: &SeriesPoint) {
        self.add(&GeneratorSecond { generator: generator.to_owned(), second: *second });
    }

    /// Adds the usage of the components at a moment.
    pub fn components(&mut self, second: &ComponentsSecond) {
        self.add(second);
    }

    fn add(&mut self, line: &impl Serialize) {
        let Some((file, bytes)) = self.current.as_mut().filter(|(_, bytes)| *bytes < MAX_BYTES) else {
            return;
        };
        // A torn line would spoil the next one: with a full disk, the trial is shown up to here.
        *bytes = write_line(file, line).map_or(MAX_BYTES, |added| *bytes + added);
    }
}

impl Drop for ProgressFile {
    fn drop(&mut self) {
        if self.current.is_some() {
            // Without its lock, readers take no notice of it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn write_line(mut file: &File, line: &impl Serialize) -> io::Result<usize> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    file.write_all(&text)?;
    Ok(text.len())
}

/// True if a run holds the lock of its `progress.jsonl`: it goes on.
#[must_use]
pub fn is_written(file: &File) -> bool {
    // Without locks of files, such as on some network file systems, nothing shows that the run was killed.
    file.try_lock_shared().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(folder: &Path) -> Vec<String> {
        fs::read_to_string(folder.join(PROGRESS_FILE)).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn file_has_the_current_trial_and_is_locked_until_the_run_ends() {
        let folder = tempfile::tempdir().unwrap();
        let mut progress = ProgressFile::new(folder.path());
        progress.second("client", &SeriesPoint::default());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "no trial has begun");
        for ended in 0..2 {
            progress.begin(TrialUnderWay { ended, ..TrialUnderWay::default() });
            progress.second("client", &SeriesPoint { completed: 7, ..SeriesPoint::default() });
        }
        let read = lines(folder.path());
        let trial: TrialUnderWay = serde_json::from_str(&read[0]).unwrap();
        let second: GeneratorSecond = serde_json::from_str(&read[1]).unwrap();
        assert_eq!((trial.ended, trial.schema.as_str(), read.len()), (1, PROGRESS_SCHEMA, 2));
        assert_eq!((second.generator.as_str(), second.second.completed), ("client", 7));
        let watched = File::open(folder.path().join(PROGRESS_FILE)).unwrap();
        assert!(is_written(&watched));
        drop(progress);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "it is removed");
        assert!(!is_written(&watched));
    }

    #[test]
    fn run_goes_on_where_the_file_cannot_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let gone = folder.path().join("gone");
        let mut progress = ProgressFile::new(&gone);
        progress.begin(TrialUnderWay::default());
        progress.second("client", &SeriesPoint::default());
        // The file of the trial before a disk that is full stays what it was.
        let mut progress = ProgressFile::new(folder.path());
        progress.begin(TrialUnderWay::default());
        let full = File::options().append(true).open("/dev/full").unwrap();
        let (own, bytes) = progress.current.replace((full, 0)).unwrap();
        progress.second("client", &SeriesPoint::default());
        progress.current = Some((own, bytes.max(progress.current.as_ref().unwrap().1)));
        progress.second("client", &SeriesPoint::default());
        assert_eq!(lines(folder.path()).len(), 1, "no line follows a torn one");
    }
}

//! A run as it is watched: its trials as they fall, the trial under way, and what is wrong with its directory.
//!
//! [`WatchedRun::refresh`] reads what was appended to the files. The caller decides how files are opened; nothing is ever
//! written or locked in a run's way. [`html::view`](crate::html::view) makes a page of it.

mod usage;

pub use usage::{ComponentUsages, UsagePoint, joined};

use crate::folder::{
    COMPARISON_REPORT_FILE, EXPERIMENT_FILE, FolderError, HOST_FILE, Line, PROGRESS_FILE, REPORT_FILE,
    SUMMARY_FILE, TRIALS_FILE, for_each_line, is_written, trial_of,
};
use crate::format;
use results::{ComponentsSecond, GeneratorSecond, PROGRESS_SCHEMA, SeriesPoint, TrialRecord, TrialUnderWay};
use serde::Serialize;
use statistics::words;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::str::FromStr;

/// Trials kept as rows of a table; the report has all.
pub const MAX_ROWS: usize = 500;
/// Trials kept whole, for charts.
pub const MAX_WHOLE: usize = 4;
/// Damaged lines that are named.
const MAX_NOTES: usize = 20;
/// Maximum length of the first line of `progress.jsonl`, and maximum number of generators shown.
const MAX_HEAD_BYTES: u64 = 1 << 16;
const MAX_GENERATORS: usize = 10_000;
/// Maximum number of seconds shown of a trial under way: over two days.
const MAX_SECONDS: u64 = 200_000;

/// Reports that a page links to.
pub const REPORTS: [&str; 2] = [REPORT_FILE, COMPARISON_REPORT_FILE];

/// Opens a file of a run's directory by its name.
pub type Open<'a> = &'a dyn Fn(&str) -> io::Result<File>;

/// A place behind a line of `trials.jsonl`. As text (`1f2a-4711`) it is the id of a server-sent event.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Position {
    /// Inode of the file; 0 while there is none.
    inode: u64,
    offset: u64,
}

impl Position {
    /// True if a reader that has seen everything before `seen` has not seen what is before this place.
    #[must_use]
    pub fn is_after(self, seen: Self) -> bool {
        self.offset > seen.offset
    }

    /// True if the file no longer has what a reader has seen: it was replaced, or cut.
    #[must_use]
    pub fn replaces(self, seen: Self) -> bool {
        seen.inode != 0 && (seen.inode != self.inode || seen.offset > self.offset)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:x}-{}", self.inode, self.offset)
    }
}

impl FromStr for Position {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (inode, offset) = text.split_once('-').unwrap_or((text, ""));
        Ok(Self { inode: u64::from_str_radix(inode, 16)?, offset: offset.parse()? })
    }
}

/// A run's directory as far as it has been read.
#[derive(Debug, Default)]
pub struct WatchedRun {
    /// Place behind the last whole line.
    pub position: Position,
    /// Trials read.
    pub trials: usize,
    /// The last trials with the place behind each.
    pub rows: VecDeque<(Position, TrialRow)>,
    /// The last trials with their series.
    pub whole: VecDeque<TrialRecord>,
    /// The trial under way; `None` if the run does not go on.
    pub under_way: Option<UnderWay>,
    /// True if the run has a summary, or its comparison a page.
    pub has_summary: bool,
    /// Files with the reports that there are.
    pub reports: Vec<&'static str>,
    lines: usize,
    damaged: Vec<String>,
    problems: Vec<String>,
}

/// A trial as a row of a table.
#[derive(Clone, Debug, Serialize)]
pub struct TrialRow {
    /// From 1.
    pub number: usize,
    /// Mode, factors and load.
    pub cell: String,
    /// From 1, with the trial that it is a rerun of.
    pub repeat: String,
    /// True if its figures may be used.
    pub valid: bool,
    /// `valid`, or why not.
    pub verdict: String,
    /// Responses per second, median and 99th percentile of the response time, of streams of the time to the first token.
    pub figures: [String; 3],
}

impl TrialRow {
    fn new(trial: &TrialRecord) -> Self {
        let retake =
            trial.retake.as_ref().map(|retake| format!(", rerun of {}", retake.of.saturating_add(1)));
        let times = trial.leading_times().filter(|times| times.requests() > 0);
        let time = |time: Option<f64>| format::time_or_above(time, trial.leading_above_us());
        let reasons = &trial.verdict.reasons;
        let valid = trial.verdict.valid;
        let first = if valid { "valid" } else { "excluded" };
        Self {
            number: trial.index.saturating_add(1),
            cell: words::brief_place(trial.cell()),
            repeat: format!("{}{}", trial.repeat.saturating_add(1), retake.unwrap_or_default()),
            valid,
            verdict: if reasons.is_empty() {
                first.to_owned()
            } else {
                format!("{first}: {}", reasons.join("; "))
            },
            figures: trial.result.as_ref().zip(times).map_or_else(
                || [const { format::ABSENT }; 3].map(str::to_owned),
                |(result, times)| [format::rate(result.rate.completed), time(times.p50), time(times.p99)],
            ),
        }
    }
}

impl WatchedRun {
    /// Reads on. The run starts anew if its file was replaced, which [`Position::replaces`] shows.
    pub fn refresh(&mut self, open: Open<'_>) {
        let mut problems = Vec::new();
        self.read_progress(open, &mut problems);
        self.read_trials(open, &mut problems);
        self.reports = REPORTS.into_iter().filter(|name| open(name).is_ok()).collect();
        self.has_summary = self.reports.contains(&COMPARISON_REPORT_FILE) || open(SUMMARY_FILE).is_ok();
        // A comparison of finished runs has its result alone.
        let is_run = self.position.inode != 0 || self.reports.is_empty();
        for name in [EXPERIMENT_FILE, HOST_FILE].into_iter().filter(|_| is_run) {
            if let Err(error) = open(name) {
                problems.push(unreadable(name, &error));
            }
        }
        self.problems = problems;
    }

    /// Problems of the directory.
    #[must_use]
    pub fn problems(&self) -> Vec<&str> {
        self.problems.iter().chain(&self.damaged).map(String::as_str).collect()
    }

    fn read_trials(&mut self, open: Open<'_>, problems: &mut Vec<String>) {
        let read = open(TRIALS_FILE).and_then(|file| Ok((file.metadata()?, file)));
        let (metadata, mut file) = match read {
            Ok(read) => read,
            // A run that has not begun, or ended before its first trial.
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.position.inode == 0 => return,
            Err(error) => return problems.push(unreadable(TRIALS_FILE, &error)),
        };
        let now = Position { inode: metadata.ino(), offset: metadata.len() };
        if now.replaces(self.position) {
            let under_way = self.under_way.take();
            *self = Self { under_way, ..Self::default() };
        }
        self.position.inode = now.inode;
        if now.offset == self.position.offset {
            return;
        }
        if let Err(error) = self.read_lines(&mut file, problems) {
            problems.push(error);
        }
    }

    /// Reads the lines that are whole. One that is not is still being written, or was cut short.
    fn read_lines(&mut self, file: &mut File, problems: &mut Vec<String>) -> Result<(), String> {
        let goes_on = self.under_way.is_some();
        let lines_before = self.lines;
        follow(file, self.position.offset, TRIALS_FILE, |line| {
            if !line.is_whole && goes_on {
                return;
            }
            let mut notes = Vec::new();
            let trial = trial_of(Line { number: lines_before + line.number, ..line }, &mut notes);
            if !line.is_whole {
                return problems.append(&mut notes);
            }
            self.position.offset += line.text.len() as u64;
            self.lines += 1;
            notes.truncate(MAX_NOTES.saturating_sub(self.damaged.len()));
            self.damaged.append(&mut notes);
            if let Some(trial) = trial {
                self.add(trial);
            }
        })
    }

    fn add(&mut self, trial: TrialRecord) {
        self.trials += 1;
        if self.rows.len() == MAX_ROWS {
            self.rows.pop_front();
        }
        self.rows.push_back((self.position, TrialRow::new(&trial)));
        if self.whole.len() == MAX_WHOLE {
            self.whole.pop_front();
        }
        self.whole.push_back(trial);
    }

    fn read_progress(&mut self, open: Open<'_>, problems: &mut Vec<String>) {
        let read = open(PROGRESS_FILE).map(|file| is_written(&file).then_some(file));
        let file = match read {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return problems.push(unreadable(PROGRESS_FILE, &error)),
        };
        let Some(mut file) = file else {
            self.under_way = None;
            return;
        };
        match UnderWay::begin(&mut file) {
            Ok(begun) => {
                let same = self.under_way.take().filter(|known| known.trial == begun.trial);
                let mut under_way = same.unwrap_or(begun);
                if let Err(error) = under_way.read_on(&mut file) {
                    problems.push(error);
                }
                self.under_way = Some(under_way);
            }
            Err(error) => problems.push(unreadable(PROGRESS_FILE, &error)),
        }
    }
}

/// The trial that a run measures right now.
#[derive(Debug)]
pub struct UnderWay {
    /// The trial, and how far the run has come.
    pub trial: TrialUnderWay,
    /// The last second of each generator.
    pub generators: BTreeMap<String, SeriesPoint>,
    /// CPU and memory of the components by second.
    pub usages: ComponentUsages,
    /// Sums of the generators with the highest of their percentiles, by second, with the number of generators.
    seconds: BTreeMap<u64, (usize, SeriesPoint)>,
    offset: u64,
}

impl UnderWay {
    /// The trial under way, of a run that goes on; reads nothing more.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or does not begin with such a trial.
    pub fn begin(file: &mut File) -> io::Result<Self> {
        let mut head = Vec::new();
        BufReader::new(file).take(MAX_HEAD_BYTES).read_until(b'\n', &mut head)?;
        let trial = TrialUnderWay::from_json(&head)?;
        if trial.schema != PROGRESS_SCHEMA {
            return Err(io::Error::other(format!("its schema is {:?}", trial.schema)));
        }
        Ok(Self {
            trial,
            generators: BTreeMap::new(),
            usages: ComponentUsages::default(),
            seconds: BTreeMap::new(),
            offset: head.len() as u64,
        })
    }

    fn read_on(&mut self, file: &mut File) -> Result<(), String> {
        follow(file, self.offset, PROGRESS_FILE, |line| {
            if line.is_whole {
                self.offset += line.text.len() as u64;
                // A line that a full disk has cut is the last one.
                if let Ok(second) = GeneratorSecond::from_json(line.text) {
                    self.add(second);
                } else if let Ok(second) = ComponentsSecond::from_json(line.text) {
                    self.usages.add(second);
                }
            }
        })
    }

    fn add(&mut self, GeneratorSecond { generator, second }: GeneratorSecond) {
        let number = second.t_s.max(0.0) as u64;
        let is_known = self.generators.contains_key(&generator);
        if number >= MAX_SECONDS || !is_known && self.generators.len() >= MAX_GENERATORS {
            return;
        }
        self.generators.insert(generator, second);
        let (count, sum) = self
            .seconds
            .entry(number)
            .or_insert_with(|| (0, SeriesPoint { t_s: number as f64, ..SeriesPoint::default() }));
        *count += 1;
        sum.sent = sum.sent.saturating_add(second.sent);
        sum.completed = sum.completed.saturating_add(second.completed);
        sum.failed = sum.failed.saturating_add(second.failed);
        for (all, own) in [(&mut sum.p50_us, second.p50_us), (&mut sum.p99_us, second.p99_us)] {
            *all = all.zip(own).map(|(one, other)| one.max(other));
        }
    }

    /// Second by second, without a last one that some generators have not reported yet.
    #[must_use]
    pub fn series(&self) -> Vec<SeriesPoint> {
        let is_partial = |(count, _): &(usize, SeriesPoint)| *count < self.generators.len();
        let partial = self.seconds.values().next_back().is_some_and(is_partial);
        self.seconds
            .values()
            .take(self.seconds.len() - usize::from(partial))
            .map(|(_, point)| *point)
            .collect()
    }
}

/// Passes on the lines behind `offset`.
fn follow(
    file: &mut File,
    offset: u64,
    name: &'static str,
    mut read: impl FnMut(Line<'_>),
) -> Result<(), String> {
    let path = Path::new(name);
    let failed = |error: FolderError| experiment::environment::error_chain(&error);
    file.seek(SeekFrom::Start(offset)).map_err(|error| unreadable(name, &error))?;
    let file = file.try_clone().map_err(|error| unreadable(name, &error))?;
    for_each_line(file, path, |line| {
        read(line);
        Ok(())
    })
    .map_err(failed)
}

fn unreadable(name: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!("{name} is not there."),
        _ => format!("{name} cannot be read: {error}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::ProgressFile;
    use std::fs;
    use tempfile::TempDir;

    fn line(index: usize) -> String {
        let text = include_str!("../../../fuzz/corpus/trials/run").lines().next().unwrap();
        let trial = TrialRecord { index, ..TrialRecord::from_json(text).unwrap() };
        serde_json::to_string(&trial).unwrap() + "\n"
    }

    fn folder() -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in [EXPERIMENT_FILE, HOST_FILE] {
            fs::write(folder.path().join(name), "{}").unwrap();
        }
        folder
    }

    fn write_trials(folder: &TempDir, text: &str) {
        // In place, as a run appends.
        fs::write(folder.path().join(TRIALS_FILE), text).unwrap();
    }

    fn refresh(run: &mut WatchedRun, folder: &TempDir) {
        run.refresh(&|name| File::open(folder.path().join(name)));
    }

    fn numbers(run: &WatchedRun) -> Vec<usize> {
        run.rows.iter().map(|(_, row)| row.number).collect()
    }

    #[test]
    fn trials_are_read_once_each_when_their_line_is_whole() {
        let (folder, mut run) = (folder(), WatchedRun::default());
        let mut progress = ProgressFile::new(folder.path());
        refresh(&mut run, &folder);
        assert_eq!((run.trials, run.problems().len()), (0, 0), "a run without trials yet");
        progress.begin(TrialUnderWay::default());
        let text = line(0) + &line(1);
        for (written, trials) in [(100, 0), (line(0).len(), 1), (text.len() - 1, 1), (text.len(), 2)] {
            write_trials(&folder, &text[..written]);
            refresh(&mut run, &folder);
            assert_eq!((run.trials, run.problems()), (trials, vec![]), "{written} bytes");
        }
        assert_eq!(numbers(&run), [1, 2]);
        let [(first, _), (second, _)] = [0, 1].map(|place| run.rows[place].clone());
        assert!(second.is_after(first) && !first.is_after(second) && !second.replaces(first));
        assert_eq!(first.to_string().parse(), Ok(first));
        assert_eq!((run.position, Position::default().is_after(first)), (second, false));
        // The run is killed in mid-line.
        drop(progress);
        write_trials(&folder, &(text + &line(2)[..50]));
        refresh(&mut run, &folder);
        assert_eq!(run.problems(), ["The last line of trials.jsonl was cut short; that trial is lost."]);
        assert_eq!(numbers(&run), [1, 2]);
    }

    #[test]
    fn replaced_and_shortened_files_begin_anew_and_damaged_lines_are_named() {
        let (folder, mut run) = (folder(), WatchedRun::default());
        write_trials(&folder, &(line(0) + "{\"half\n" + &line(2)));
        refresh(&mut run, &folder);
        assert_eq!(numbers(&run), [1, 3]);
        assert!(
            run.problems()[0].starts_with("Line 2 of trials.jsonl cannot be read"),
            "{:?}",
            run.problems()
        );
        let before = run.position;
        write_trials(&folder, &line(7));
        refresh(&mut run, &folder);
        assert_eq!((numbers(&run), run.problems(), run.position.replaces(before)), (vec![8], vec![], true));
        let before = run.position;
        fs::write(folder.path().join("new"), line(8) + &line(9)).unwrap();
        fs::rename(folder.path().join("new"), folder.path().join(TRIALS_FILE)).unwrap();
        refresh(&mut run, &folder);
        assert_eq!((numbers(&run), run.position.replaces(before)), (vec![9, 10], true));
        fs::remove_dir_all(folder.path()).unwrap();
        refresh(&mut run, &folder);
        assert_eq!((numbers(&run).len(), run.problems().len()), (2, 3), "{:?}", run.problems());
    }

    #[test]
    fn rows_and_charts_are_of_the_last_trials() {
        let (folder, mut run) = (folder(), WatchedRun::default());
        write_trials(&folder, &(0..MAX_ROWS + 2).map(line).collect::<String>());
        refresh(&mut run, &folder);
        assert_eq!((run.trials, run.rows.len(), run.whole.len()), (MAX_ROWS + 2, MAX_ROWS, MAX_WHOLE));
        assert_eq!(numbers(&run)[0], 3);
    }

    #[test]
    fn seconds_of_all_generators_are_added_up() {
        let (folder, mut run) = (folder(), WatchedRun::default());
        let mut progress = ProgressFile::new(folder.path());
        let second = |t_s: u32, completed, p99_us| SeriesPoint {
            t_s: f64::from(t_s),
            completed,
            p99_us,
            ..SeriesPoint::default()
        };
        for ended in 0..2 {
            progress.begin(TrialUnderWay { ended, ..TrialUnderWay::default() });
            progress.second("a", &second(0, 10, Some(3.0)));
            progress.second("b", &second(0, 20, Some(5.0)));
            progress.second("a", &second(1, 30, Some(7.0)));
            refresh(&mut run, &folder);
            let under_way = run.under_way.as_ref().unwrap();
            assert_eq!(under_way.trial.ended, ended);
            assert_eq!(under_way.series(), [second(0, 30, Some(5.0))], "b has not reported the last second");
        }
        progress.second("b", &second(1, 2, None));
        refresh(&mut run, &folder);
        let series = run.under_way.as_ref().unwrap().series();
        assert_eq!(series, [second(0, 30, Some(5.0)), second(1, 32, None)]);
        drop(progress);
        refresh(&mut run, &folder);
        assert!(run.under_way.is_none());
    }
}

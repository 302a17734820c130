//! The course of a history as text: a line of bars per figure, its segments, and its changes with what changed.

use crate::comparison::figure::{self, change, label, percent, value};
use crate::comparison::{skipped, verdict_word};
use crate::folder::FolderError;
use crate::format::counted;
use crate::history_file::HistoryFile;
use crate::terminal::plain;
use experiment::environment::error_chain;
use results::{
    CourseSegment, Estimate, FigureVerdict, HistoryChange, HistoryCourse, HistoryGroup, SeriesCourse,
};
use statistics::words;
use std::fmt::Write as _;

/// Bars of a figure's course; longer courses are folded.
const MAX_BARS: usize = 60;
/// Ranges of numbers that are listed.
const MAX_RANGES: usize = 12;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// State of a history of which [`HistoryFile::readable`] read all that can be read; true if something is wrong with it.
#[must_use]
pub fn state(history: &HistoryFile, end: &Result<(), FolderError>) -> (String, bool) {
    let runs = counted(history.runs.len() as u64, "run", "runs");
    let end = end.as_ref().err().map(|error| format!("; its end is missing: {}", error_chain(error)));
    let damage = skipped(&history.skipped_lines()) + &end.unwrap_or_default();
    (plain(&format!("{runs}{damage}")), !damage.is_empty())
}

/// Text of a history, ending with a line break.
#[must_use]
pub fn text(course: &HistoryCourse) -> String {
    let mut text = format!(
        "{}: {} in {}{}\n",
        plain(&course.file),
        counted(course.runs as u64, "run", "runs"),
        counted(course.groups.len() as u64, "environment", "environments"),
        skipped(&course.skipped_lines)
    );
    for group in &course.groups {
        let facts: Vec<String> =
            group.environment.iter().map(|(name, value)| format!("{name} {value}")).collect();
        let _ = writeln!(
            text,
            "\n{}, {}\n  {}",
            plain(&group.name),
            counted(group.runs as u64, "run", "runs"),
            plain(&facts.join(", "))
        );
        for series in &group.series {
            text.push_str(&of_series(group, series));
        }
    }
    text
}

fn of_series(group: &HistoryGroup, series: &SeriesCourse) -> String {
    let values: Vec<f64> = series.points.iter().map(|point| point.value).collect();
    let place = plain(&place_of(group, series));
    let mut text = format!("\n  {}{place}  {}\n", label(series.key), bars(&values));
    text.push_str(&left_out(&series.left_out));
    for (number, segment) in series.segments.iter().enumerate() {
        if let Some(found) = number.checked_sub(1).and_then(|before| series.changes.get(before)) {
            let _ = writeln!(text, "    {}", plain(&of_change(series, found)));
        }
        let _ = writeln!(text, "    {}", of_segment(series, segment));
    }
    text
}

/// ` of` a cell; empty if the runs have no cells.
pub(crate) fn place_of(group: &HistoryGroup, series: &SeriesCourse) -> String {
    if group.has_modes() { format!(" of {}", words::place(series.cell.key())) } else { String::new() }
}

/// Line of the runs without a value above 0; empty without any.
fn left_out(runs: &[usize]) -> String {
    let noun = match runs {
        [] => return String::new(),
        [_] => "run",
        _ => "runs",
    };
    format!("    {noun} {}: left out, without a usable value above 0\n", ranges(runs))
}

/// Numbers in rising order, those that follow each other as ranges: `3, 7 to 9`. Of many ranges the first are named.
pub(crate) fn ranges(numbers: &[usize]) -> String {
    let all: Vec<&[usize]> = numbers.chunk_by(|one, next| one + 1 == *next).collect();
    let range = |part: &&[usize]| match **part {
        [first, .., last] => format!("{first} to {last}"),
        _ => part[0].to_string(),
    };
    let mut named: Vec<String> = all.iter().take(MAX_RANGES).map(range).collect();
    let rest: usize = all.iter().skip(MAX_RANGES).map(|part| part.len()).sum();
    named.extend((rest > 0).then(|| format!("{rest} more")));
    named.join(", ")
}

/// Number of the run of a point.
pub(crate) fn run_number(series: &SeriesCourse, point: usize) -> usize {
    series.points.get(point).map_or(point + 1, |point| point.number)
}

fn of_segment(series: &SeriesCourse, segment: &CourseSegment) -> String {
    let key = series.key;
    let (first, last) = (run_number(series, segment.from), run_number(series, segment.to - 1));
    let runs = if first == last { format!("run {first}") } else { format!("runs {first} to {last}") };
    if let Some(modes) = segment.bimodal {
        return format!("{runs}: bimodal, {}", figure::modes(key, modes));
    }
    let deviation = segment.deviation.map(|deviation| format!(", runs differ by {}", percent(deviation)));
    let mean = value(key, Some(Estimate::single(segment.mean)));
    format!("{runs}: {mean}{}", deviation.unwrap_or_default())
}

/// Worse or better: whichever is likelier of a run after the change.
pub(crate) fn direction(found: &HistoryChange) -> FigureVerdict {
    if found.superiority < 0.5 { FigureVerdict::Better } else { FigureVerdict::Worse }
}

/// A change in a sentence: run, size and programs.
pub(crate) fn of_change(series: &SeriesCourse, found: &HistoryChange) -> String {
    let started = series.points.get(found.at).and_then(|point| point.started_at.as_deref());
    let started = started.map(|time| format!(", {time}")).unwrap_or_default();
    let programs =
        if found.programs.is_empty() { "the same programs".to_owned() } else { found.programs.join("; ") };
    let verdict = direction(found);
    let probability = match verdict {
        FigureVerdict::Better => 1.0 - found.superiority,
        _ => found.superiority,
    };
    format!(
        "change at run {} ({}{started}): {}, {} with a probability of {}; {programs}",
        run_number(series, found.at),
        found.run,
        change(Some(found.ratio)),
        verdict_word(verdict),
        percent(probability)
    )
}

/// Course of values between their least and their greatest.
fn bars(values: &[f64]) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let range = values.iter().copied().fold(f64::NEG_INFINITY, f64::max) - least;
    let per_bar = values.len().div_ceil(MAX_BARS).max(1);
    let bar = |part: &[f64]| {
        let mean = part.iter().sum::<f64>() / part.len() as f64;
        let share = if range > 0.0 { (mean - least) / range } else { 0.0 };
        BARS[((share * BARS.len() as f64) as usize).min(BARS.len() - 1)]
    };
    values.chunks(per_bar).map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::{
        CoursePoint, Factors, HISTORY_COURSE_SCHEMA, LoadPoint, Metric, Mode, Modes, OwnedCellKey,
    };
    use std::collections::BTreeMap;

    fn estimate(estimate: f64, low: f64, high: f64) -> Estimate {
        Estimate { estimate, low: Some(low), high: Some(high), n: 6, alone: None }
    }

    fn course() -> HistoryCourse {
        let load = LoadPoint { protocol: "http/1.1".to_owned(), rate: Some(1000.0), ..LoadPoint::of_fleet() };
        let value = |run: usize| if run < 6 { 380.0 + run as f64 } else { 420.0 + 30.0 * (run % 2) as f64 };
        // Run 4 is left out.
        let point = |run: usize| CoursePoint {
            number: if run < 3 { run + 1 } else { run + 2 },
            run: format!("commit-{run}"),
            started_at: Some(format!("2026-11-{:02}T10:00:00Z", run + 1)),
            value: value(run),
        };
        let segment =
            |from, to, mean, bimodal| CourseSegment { from, to, mean, deviation: Some(0.012), bimodal };
        let modes = Modes { lower: 420.0, lower_runs: 5, upper: 450.0, upper_runs: 4 };
        let series = SeriesCourse {
            key: Metric::ResponseTimeP50Us,
            cell: OwnedCellKey { mode: Mode::Sidecar, factors: Factors::new(), load },
            points: (0..15).map(point).collect(),
            left_out: vec![4],
            segments: vec![segment(0, 6, 382.0, None), segment(6, 15, 433.0, Some(modes))],
            changes: vec![HistoryChange {
                at: 6,
                run: "commit-6".to_owned(),
                ratio: estimate(1.133, 1.1, 1.17),
                superiority: 1.0,
                programs: vec!["envoy: 1.35 → 1.36".to_owned()],
            }],
        };
        HistoryCourse {
            schema: HISTORY_COURSE_SCHEMA.to_owned(),
            file: "history.jsonl".to_owned(),
            runs: 16,
            skipped_lines: vec![7],
            groups: vec![HistoryGroup {
                source: "run".to_owned(),
                name: "sidecar-cost".to_owned(),
                environment: BTreeMap::from([
                    ("CPUs".to_owned(), "4".to_owned()),
                    ("kernel".to_owned(), "6.1".to_owned()),
                ]),
                runs: 16,
                series: vec![series],
            }],
        }
    }

    #[test]
    fn course_names_changes_and_modes() {
        insta::assert_snapshot!("course", text(&course()));
    }

    #[test]
    fn long_courses_are_folded() {
        let values: Vec<f64> = (0..1000).map(f64::from).collect();
        let shown = bars(&values);
        assert!(
            shown.chars().count() <= MAX_BARS && shown.starts_with('▁') && shown.ends_with('█'),
            "{shown}"
        );
        assert_eq!(bars(&[5.0; 3]), "▁▁▁");
    }

    #[test]
    fn numbers_that_follow_each_other_are_ranges() {
        assert_eq!(ranges(&[3, 7, 8, 9]), "3, 7 to 9");
        let even: Vec<usize> = (1..=100).map(|number| 2 * number).collect();
        assert!(ranges(&even).ends_with("22, 24, 88 more"), "{}", ranges(&even));
    }
}

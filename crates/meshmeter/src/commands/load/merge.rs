//! `meshmeter load merge`: merges result files into one result and writes it to files.

use super::outputs::write_at_end;
use crate::cli::MergeArgs;
use crate::commands::finished::subject::contents;
use crate::failure::{Failure, MEASUREMENT_FAILED};
use crate::output::destination::{self, Destination};
use report::csv::{self, SecondOfRun};
use report::hdr::IntervalLog;
use results::{LatencyHistogram, LoadResult};
use statistics::merge::MergeInput;
use std::path::Path;
use std::process::ExitCode;

pub fn run(args: &MergeArgs) -> Result<ExitCode, Failure> {
    destination::check(&destination::named(&args.files))?;
    let parts = args.results.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    let merged = statistics::merge(parts).map_err(|error| Failure::from_usage(&error).about("merge"))?;
    let mut failures = write_seconds(args, &merged)?;
    failures.extend(write_at_end(&args.files, &merged, Some(report::terminal::load_text(&merged))));
    Failure::all(failures)?;
    Ok(if merged.verdict.valid { ExitCode::SUCCESS } else { ExitCode::from(MEASUREMENT_FAILED) })
}

fn read(path: &Path) -> Result<MergeInput, Failure> {
    let name = path.display().to_string();
    let text = contents(path)?;
    let result = LoadResult::from_json(&text).map_err(|error| {
        Failure::from_usage(&error)
            .about(&format!("read {name}"))
            .with_hint("results are what `meshmeter load --json FILE` writes")
    })?;
    Ok(MergeInput { name, result })
}

/// Writes the files that have a line per second. Unlike a run, a result has neither errors nor due requests
/// per second.
fn write_seconds(args: &MergeArgs, merged: &LoadResult) -> Result<Vec<Failure>, Failure> {
    let mut failures = Vec::new();
    if let Some(path) = &args.files.hdr {
        let log = interval_log(merged)?;
        failures.extend(Destination::from_path(path).write(log.as_bytes()).err());
    }
    if let Some(path) = &args.files.csv {
        let lines = merged.series.iter().map(|point| {
            let length_s = point.length_s(merged.duration_s);
            csv::line(&SecondOfRun { point, length_s, due: None, errors: &[] })
        });
        let lines: String = lines.collect();
        failures
            .extend(Destination::from_path(path).write((csv::HEADER.to_owned() + &lines).as_bytes()).err());
    }
    Ok(failures)
}

fn interval_log(merged: &LoadResult) -> Result<String, Failure> {
    if merged.series_histograms.len() != merged.series.len() {
        return Err(Failure::usage("--hdr: not every result has the histogram of each second")
            .with_hint("run every generator with --series-histograms"));
    }
    let mut log = IntervalLog::new();
    let mut text = log.header(merged.started_at.parse().unwrap_or_default());
    for (point, histogram) in merged.series.iter().zip(&merged.series_histograms) {
        let histogram = LatencyHistogram::decode(histogram)
            .map_err(|error| Failure::from_usage(&error).about("read the histogram of a second"))?;
        let length_s = point.length_s(merged.duration_s);
        text.push_str(&log.interval(None, point.t_s, length_s, &histogram, point.failed));
    }
    text.push_str(&log.never_sent(merged));
    Ok(text)
}

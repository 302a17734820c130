//! Outputs of a run: those written every second, and those written at its end.
//!
//! A failing output does not affect the others: all are written as far as possible, then the failures are
//! reported.

use super::metrics::Metrics;
use super::stream::Stream;
use crate::cli::{OutputArgs, ResultFileArgs};
use crate::failure::Failure;
use crate::output;
use crate::output::destination::{self, Destination};
use load::{Observer, Progress, Second};
use report::csv::{self, SecondOfRun};
use report::hdr::{IntervalLog, percentile_text};
use results::{LatencyHistogram, LoadResult};

/// Tags of the interval log.
const SERVICE_TIME: &str = "service-time";
const SCHEDULE_LAG: &str = "schedule-lag";

/// Outputs of one run.
pub struct Outputs<'a> {
    args: &'a OutputArgs,
    csv: Option<Stream>,
    hdr: Option<HdrStream>,
    series_histograms: Vec<String>,
    metrics: Option<Metrics>,
}

struct HdrStream {
    log: IntervalLog,
    stream: Stream,
    has_header: bool,
}

impl<'a> Outputs<'a> {
    /// True if the engine must report whole seconds.
    pub fn need_whole_seconds(args: &OutputArgs) -> bool {
        args.files.hdr.is_some() || Metrics::are_asked_for(args)
    }

    /// Opens the outputs that are written while the load runs.
    pub fn open(args: &'a OutputArgs) -> Result<Self, Failure> {
        let stream = |path: &Option<_>| {
            path.as_deref().map(|path| Stream::open(&Destination::from_path(path))).transpose()
        };
        let csv = stream(&args.files.csv)?;
        if let Some(csv) = &csv {
            csv.write(csv::HEADER.to_owned());
        }
        let hdr = stream(&args.files.hdr)?;
        let hdr = hdr.map(|stream| HdrStream { log: IntervalLog::new(), stream, has_header: false });
        let metrics = Metrics::are_asked_for(args).then(|| Metrics::start(args)).transpose()?;
        Ok(Self { args, csv, hdr, series_histograms: Vec::new(), metrics })
    }

    /// Stops the export, and records in the result what became of it.
    pub fn finish_metrics(&mut self, result: &mut LoadResult) {
        result.exports = self.metrics.take().map(Metrics::finish).unwrap_or_default();
    }

    /// Writes the remaining outputs. The text for people is printed if nothing else uses standard output.
    pub fn finish(self, result: &mut LoadResult, text: Option<String>) -> Result<(), Failure> {
        result.series_histograms = self.series_histograms;
        let mut failures = Vec::new();
        if let Some(mut hdr) = self.hdr {
            hdr.begin(result.started_at.parse().unwrap_or_default());
            hdr.stream.write(hdr.log.never_sent(result));
            failures.extend(hdr.stream.close().err());
        }
        failures.extend(self.csv.and_then(|csv| csv.close().err()));
        failures.extend(write_at_end(&self.args.files, result, text));
        Failure::all(failures)
    }

    fn second(&mut self, second: &Second) {
        let (start_s, length_s) = (second.point.t_s, second.length_s);
        if let Some(csv) = &self.csv {
            let errors: Vec<_> = second.errors.iter().map(|(kind, count)| (kind.name(), *count)).collect();
            let line = SecondOfRun { point: &second.point, length_s, due: second.due, errors: &errors };
            csv.write(csv::line(&line));
        }
        if let Some(hdr) = &mut self.hdr {
            hdr.begin(second.window_started_at);
            hdr.write(None, (start_s, length_s), &second.response_time, second.point.failed);
            if let Some(detail) = &second.detail {
                hdr.write(Some(SERVICE_TIME), (start_s, length_s), &detail.service_time, 0);
                hdr.write(Some(SCHEDULE_LAG), (start_s, length_s), &detail.schedule_lag, 0);
            }
        }
        if self.args.series_histograms {
            self.series_histograms.push(second.response_time.encode());
        }
    }
}

impl Observer for Outputs<'_> {
    fn progress(&mut self, progress: Progress<'_>) {
        if let Some(metrics) = &mut self.metrics {
            metrics.progress(progress);
        }
        if let Progress::Second(second) = progress {
            self.second(second);
        }
    }
}

impl HdrStream {
    fn begin(&mut self, started_at: jiff::Timestamp) {
        if !self.has_header {
            self.has_header = true;
            self.stream.write(self.log.header(started_at));
        }
    }

    fn write(
        &mut self,
        tag: Option<&str>,
        (start_s, length_s): (f64, f64),
        histogram: &LatencyHistogram,
        censored: u64,
    ) {
        self.stream.write(self.log.interval(tag, start_s, length_s, histogram, censored));
    }
}

/// Writes the outputs made from the whole result, and the text for people if standard output is free.
pub fn write_at_end(args: &ResultFileArgs, result: &LoadResult, text: Option<String>) -> Vec<Failure> {
    let mut failures = Vec::new();
    let outputs = destination::named(args);
    for (option, destination) in &outputs {
        let contents = match *option {
            "--json" => output::json(result).into_bytes(),
            "--percentiles" => percentiles(result),
            "--fortio" => report::fortio::json(result, args.fortio_labels.as_deref()),
            _ => continue,
        };
        failures.extend(destination.write(&contents).err());
    }
    if let Some(text) = text.filter(|_| destination::stdout_is_free(&outputs)) {
        failures.extend(Destination::Stdout.write(text.as_bytes()).err());
    }
    failures
}

fn percentiles(result: &LoadResult) -> Vec<u8> {
    let histogram = LatencyHistogram::decode(&result.response_time_us.histogram).unwrap_or_default();
    percentile_text(&histogram, result.response_time_us.censored).into_bytes()
}

//! Results of other load generators, read for comparison with all that they cannot say.
//!
//! [`read`] recognises the dialect by its contents; each has a file of its own, with the shape of its input and its limits.
//! Values are only what a file has: nothing is derived from a percentile that it lacks, and a percentile without a histogram has no
//! interval. The formats are those of the programs' documentation and sources; files of unknown versions are errors that name
//! what is missing.

mod fields;
mod fortio;
mod hdr_log;
mod k6;
mod nighthawk;
mod oha;
mod steps;
mod urls;
mod vegeta;
mod wrk;

pub use steps::{Step, at_rank};
use urls::Urls;

use crate::clock::Clock;
use crate::figure::Figure;
use crate::latency_histogram::{LatencyHistogram, RecordedValue};
use crate::load::MAX_COUNT;
use crate::url::without_credentials;
use serde_json::Value;
use std::collections::BTreeMap;

/// Longest time that counts as a latency: two days in microseconds. More is a wrong unit or a damaged file.
const MAX_TIME_US: f64 = 2.0 * 86_400.0 * 1e6;

/// Width of a bucket of [`LatencyHistogram`], relative to its upper end.
const BUCKET_WIDTH: f64 = 0.001;

/// A result of another load generator.
#[derive(Clone, Debug, PartialEq)]
pub struct ForeignResult {
    /// The program, such as `fortio`.
    pub tool: &'static str,
    /// Version of the program.
    pub version: Option<String>,
    /// Address under load.
    pub target: Option<String>,
    /// Start, as the file has it.
    pub started_at: Option<String>,
    /// Length of the load, seconds.
    pub duration_s: Option<f64>,
    /// Requests per second that were asked for; absent in a closed loop, and if the file does not tell.
    pub offered: Option<f64>,
    /// Connections or clients.
    pub connections: Option<usize>,
    /// Responses whose times are counted.
    pub answered: Option<u64>,
    /// Requests without a response, which rank above all others.
    pub failed: u64,
    /// Failed requests whose times are among those of the others.
    pub errors: u64,
    /// Responses per second.
    pub rate_completed: Option<f64>,
    /// Start of its times: the intended start, or the send.
    pub clock: Clock,
    /// Figures of the times, microseconds.
    pub times_us: BTreeMap<Figure, f64>,
    /// Histogram, ascending; empty if the file has none.
    pub steps: Vec<Step>,
    /// Limits of the file, in sentences.
    pub limits: Vec<String>,
}

impl ForeignResult {
    fn new(tool: &'static str, clock: Clock) -> Self {
        Self {
            tool,
            version: None,
            target: None,
            started_at: None,
            duration_s: None,
            offered: None,
            connections: None,
            answered: None,
            failed: 0,
            errors: 0,
            rate_completed: None,
            clock,
            times_us: BTreeMap::new(),
            steps: Vec::new(),
            limits: Vec::new(),
        }
    }

    fn limit(&mut self, text: &str) {
        self.limits.push(format!("{}: {text}", self.tool));
    }

    /// Says that times begin with the send.
    fn limit_service_time(&mut self, why: &str) {
        self.limit(&format!(
            "service times, {why}: waiting before a late send is missing (coordinated omission)"
        ));
    }

    /// Counts failed requests whose times are among those of the others, and says so.
    fn add_errors(&mut self, failed: u64) {
        self.errors = failed;
        if failed > 0 {
            self.limit(&format!("the times of {failed} failed requests are among those of the others"));
        }
    }

    /// Takes over times of an object by their keys, in a unit of so many microseconds.
    fn add_times(
        &mut self,
        object: &Value,
        keys: &[(&str, Figure)],
        unit_us: f64,
    ) -> Result<(), ForeignError> {
        for (key, figure) in keys {
            match object.get(key) {
                None => {}
                Some(Value::Null) => self.limit(&format!("`{key}` has no value")),
                Some(value) => {
                    let value = value.as_f64().ok_or_else(|| {
                        ForeignError(format!("{}: its `{key}` is not a number: {value}", self.tool))
                    })?;
                    self.times_us.insert(*figure, value * unit_us);
                }
            }
        }
        Ok(())
    }

    /// Percentiles of the histogram that the file does not give itself. Requests without a response rank above all.
    fn add_percentiles_of_steps(&mut self) {
        let answered = self.steps.iter().map(|step| step.count).sum::<u64>();
        for figure in Figure::TIMES {
            let Some(quantile) = figure.quantile().filter(|quantile| *quantile < 1.0) else { continue };
            if let Some(value) = steps::quantile(&self.steps, answered.saturating_add(self.failed), quantile)
            {
                self.times_us.entry(figure).or_insert(value);
            }
        }
    }

    /// Takes over all values of a histogram, save the greatest ones that stand for requests without a response.
    fn add_histogram(&mut self, histogram: &LatencyHistogram, without_response: u64) {
        self.answered = Some(histogram.count().saturating_sub(without_response));
        let step = |value: RecordedValue| {
            let to_us = value.value_us as f64;
            Step { from_us: (to_us * (1.0 - BUCKET_WIDTH) - 1.0).max(0.0), to_us, count: value.count }
        };
        self.steps = steps::without_last(histogram.recorded().map(step).collect(), without_response);
        if self.failed == 0 && histogram.count() > 0 {
            self.times_us.insert(Figure::Mean, histogram.mean_us());
            self.times_us.insert(Figure::Max, histogram.max_us());
        }
        self.add_percentiles_of_steps();
    }

    /// Checks what every dialect must have.
    fn checked(mut self) -> Result<Self, ForeignError> {
        let zeros: Vec<Figure> =
            self.times_us.iter().filter(|(_, value)| **value == 0.0).map(|(figure, _)| *figure).collect();
        for figure in zeros {
            self.times_us.remove(&figure);
            self.limit(&format!("{} is 0, which has no ratio, and is left out", figure.name()));
        }
        self.target = self.target.as_deref().map(without_credentials);
        let wrong = |text: String| Err(ForeignError(format!("{}: {text}", self.tool)));
        if let Some((figure, value)) =
            self.times_us.iter().find(|(_, value)| !(0.0..=MAX_TIME_US).contains(*value))
        {
            return wrong(format!("{} is {value} µs, which is not a latency", figure.name()));
        }
        let percentiles: Vec<(Figure, f64)> = Figure::TIMES
            .into_iter()
            .filter(|figure| figure.percentile().is_some())
            .filter_map(|figure| Some((figure, *self.times_us.get(&figure)?)))
            .collect();
        if let Some([(lower, _), (higher, _)]) =
            percentiles.windows(2).find(|pair| pair[1].1 < pair[0].1 * 0.999)
        {
            return wrong(format!("{} is below {}", higher.name(), lower.name()));
        }
        let counts = self.steps.iter().map(|step| step.count).chain(self.answered).chain([self.failed]);
        if counts.fold(0_u64, u64::saturating_add) > MAX_COUNT {
            return wrong("it has more requests than any load".to_owned());
        }
        if !self.steps.iter().all(Step::is_valid)
            || !self.steps.is_sorted_by(|one, next| one.to_us <= next.to_us)
        {
            return wrong("its histogram is not ascending".to_owned());
        }
        for (name, value) in
            [("rate", self.rate_completed), ("duration", self.duration_s), ("offered rate", self.offered)]
        {
            if let Some(value) = value.filter(|value| !value.is_finite() || *value < 0.0) {
                return wrong(format!("its {name} is {value}"));
            }
        }
        if self.answered == Some(0) || self.times_us.is_empty() && self.steps.is_empty() {
            return wrong("it has no latency of any response".to_owned());
        }
        Ok(self)
    }
}

/// The contents are not a result that can be read.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct ForeignError(String);

impl ForeignError {
    fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// Names of the dialects, for hints.
pub const DIALECTS: &str = "fortio, k6 (summary or JSON lines), wrk, wrk2, oha, vegeta (encode or report), HdrHistogram logs, \
                            nighthawk";

/// Reads a result of another load generator.
///
/// # Errors
/// Returns an error if the dialect is unknown, or the file is damaged.
pub fn read(contents: &[u8]) -> Result<ForeignResult, ForeignError> {
    let text = std::str::from_utf8(contents).map_err(|error| {
        ForeignError(format!("it is not text: byte {} is not UTF-8", error.valid_up_to()))
    })?;
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let found = if text.starts_with('{') {
        json(text)
    } else if hdr_log::is_one(text) {
        hdr_log::read(text)
    } else if wrk::is_one(text) {
        wrk::read(text)
    } else {
        Err(unknown())
    };
    found?.checked()
}

fn unknown() -> ForeignError {
    ForeignError::new("it is not a result of a known load generator")
}

/// Recognises a document of one dialect.
type IsOne = fn(&Value) -> bool;
/// Reads it.
type Reader = fn(&Value) -> Result<ForeignResult, ForeignError>;

/// A JSON document, or a JSON value per line.
fn json(text: &str) -> Result<ForeignResult, ForeignError> {
    let first_line = text.lines().next().unwrap_or_default();
    if let Ok(first) = serde_json::from_str::<Value>(first_line) {
        if k6::is_line(&first) {
            return k6::read_lines(text);
        }
        if vegeta::is_line(&first) {
            return vegeta::read_lines(text);
        }
    }
    let document: Value =
        serde_json::from_str(text).map_err(|error| ForeignError(format!("it is not JSON: {error}")))?;
    let dialects: [(IsOne, Reader); 5] = [
        (fortio::is_one, fortio::read),
        (k6::is_summary, k6::read_summary),
        (oha::is_one, oha::read),
        (vegeta::is_report, vegeta::read_report),
        (nighthawk::is_one, nighthawk::read),
    ];
    match dialects.iter().find(|(is_one, _)| is_one(&document)) {
        Some((_, read)) => read(&document),
        None => Err(unknown()),
    }
}

/// The figure of a percentile, 0 to 100.
fn figure_of_percentile(percentile: f64) -> Option<Figure> {
    Figure::TIMES.into_iter().find(|figure| figure.percentile() == Some(percentile))
}

/// Lines of a file with their numbers, without blank ones.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(number, line)| (number + 1, line.trim()))
        .filter(|(_, line)| !line.is_empty())
}

#[cfg(test)]
mod tests;

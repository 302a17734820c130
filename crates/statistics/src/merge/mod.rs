//! The results of several generators as one.
//!
//! Counts, bytes, CPU, memory and rates are added; histograms are merged whole, so that every percentile is that of all
//! requests together; seconds are laid over each other by absolute time (`series`). The window reaches from the earliest
//! start to the latest end. A merged result keeps its parts as they were, so that merging again begins from these: neither
//! order nor grouping makes a difference. Clocks of the generators' machines are taken to agree.
//!
//! Left out: the objective, which is for whoever merges to ask again.

mod drivers;
mod series;
#[cfg(test)]
mod tests;
mod verdict;

pub use drivers::merge_drivers;

use crate::{DecodeError, LatencyHistogram};
use experiment::schema::{
    Bytes, GeneratorUsage, GrpcMessages, HistogramSummary, LOAD_SCHEMA, LoadResult, MergedPart,
    MergedResults, PacingUsage, Rates, RequestCounts, SizeSummary, WarmupCounts,
};
use jiff::Timestamp;
use std::collections::BTreeMap;

/// Windows are shorter than this, seconds: ten years. What is longer is no measurement.
const MAX_WINDOW_S: f64 = 10.0 * 366.0 * 86_400.0;

/// Why results cannot be added up.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// There is none.
    #[error("there is no result to merge")]
    Nothing,
    /// Not a result, or one of a later schema.
    #[error("{name}: its schema is `{schema}`, and `{LOAD_SCHEMA}` is expected")]
    Schema {
        /// Which result.
        name: String,
        /// What it says.
        schema: String,
    },
    /// Its window is nowhere in time.
    #[error("{name}: {field} is `{value}`, which is no {expected}")]
    Window {
        /// Which result.
        name: String,
        /// Which field.
        field: &'static str,
        /// What it says.
        value: String,
        /// What was expected.
        expected: &'static str,
    },
    /// A histogram cannot be read.
    #[error("{name}: read the histogram of {field}")]
    Histogram {
        /// Which result.
        name: String,
        /// Which field.
        field: String,
        /// Why.
        #[source]
        source: DecodeError,
    },
    /// A histogram is not of the requests that stand beside it.
    #[error("{name}: the histogram of {field} has {found} values, and {expected} are counted")]
    Count {
        /// Which result.
        name: String,
        /// Which field.
        field: String,
        /// In the histogram.
        found: u64,
        /// Beside it.
        expected: u64,
    },
    /// The same measurement is given twice.
    #[error("{one} and {other} are the same measurement: it would count twice")]
    Twice {
        /// One result.
        one: String,
        /// The other.
        other: String,
    },
}

/// A result with its window in absolute time.
struct Placed {
    part: MergedPart,
    start: Timestamp,
    end: Timestamp,
}

/// Adds up results. Those that are merged themselves stand for their parts.
///
/// # Errors
/// Where there is none, where one is no result that can be read, or where one is given twice.
pub fn merge(parts: Vec<MergedPart>) -> Result<LoadResult, MergeError> {
    let mut placed = Vec::new();
    for part in parts {
        place(part, &mut placed)?;
    }
    placed.sort_by(|one, other| {
        let key = |placed: &Placed| (placed.start, placed.end, placed.part.name.clone());
        key(one).cmp(&key(other))
    });
    refuse_twins(&placed)?;
    let (Some(first), Some(end)) = (placed.first(), placed.iter().map(|placed| placed.end).max()) else {
        return Err(MergeError::Nothing);
    };
    let (start, protocol) = (first.start, first.part.result.protocol);
    let overlap_s = overlap_s(&placed);
    let duration_s = seconds_between(start, end);
    let (series, series_histograms) = series::merge(&placed)?;
    let verdict = verdict::judge(&placed, overlap_s, duration_s);
    let results = || placed.iter().map(|placed| &placed.part.result);
    let requests = requests(results());
    Ok(LoadResult {
        schema: LOAD_SCHEMA.to_owned(),
        version: distinct(results().map(|result| result.version.as_str())).join(", "),
        urls: distinct(results().flat_map(|result| &result.urls).map(String::as_str)),
        started_at: start.to_string(),
        duration_s,
        threads: results().map(|result| result.threads).fold(0, usize::saturating_add),
        connections: results().map(|result| result.connections).fold(0, usize::saturating_add),
        protocol,
        streams: results().map(|result| result.streams).max().unwrap_or(1),
        tls_sessions: added(results().map(|result| &result.tls_sessions)),
        clients: results().map(|result| result.clients).reduce(both).flatten(),
        rate: Rates {
            offered: results().map(|result| result.rate.offered).sum(),
            sent: results().map(|result| result.rate.sent).sum(),
            completed: results().map(|result| result.rate.completed).sum(),
        },
        warmup: WarmupCounts {
            sent: total(results(), |result| result.warmup.sent),
            completed: total(results(), |result| result.warmup.completed),
            failed: total(results(), |result| result.warmup.failed),
        },
        response_time_us: times(&placed, "response_time_us", |result| Some(&result.response_time_us))?,
        service_time_us: times(&placed, "service_time_us", |result| Some(&result.service_time_us))?,
        schedule_lag_us: times(&placed, "schedule_lag_us", |result| Some(&result.schedule_lag_us))?,
        generator_lag_us: times(&placed, "generator_lag_us", |result| Some(&result.generator_lag_us))?,
        connect_time_us: times(&placed, "connect_time_us", |result| Some(&result.connect_time_us))?,
        handshake_time_us: times(&placed, "handshake_time_us", |result| Some(&result.handshake_time_us))?,
        grpc: grpc(&placed)?,
        bytes: Bytes {
            sent: total(results(), |result| result.bytes.sent),
            received: total(results(), |result| result.bytes.received),
        },
        response_size_bytes: sizes(results()),
        generator: generator(&placed, requests.sent),
        requests,
        series,
        series_histograms,
        verdict,
        objective: None,
        merged: Some(MergedResults {
            overlap_s,
            parts: placed.into_iter().map(|placed| placed.part).collect(),
        }),
    })
}

/// Puts a result, or each part of one that is merged itself, at its place in time.
fn place(part: MergedPart, placed: &mut Vec<Placed>) -> Result<(), MergeError> {
    let MergedPart { name, mut result } = part;
    if result.schema != LOAD_SCHEMA {
        return Err(MergeError::Schema { name, schema: result.schema });
    }
    if let Some(merged) = result.merged.take() {
        return merged.parts.into_iter().try_for_each(|part| place(part, placed));
    }
    let Ok(start) = result.started_at.parse::<Timestamp>() else {
        let (field, value) = ("started_at", result.started_at);
        return Err(MergeError::Window { name, field, value, expected: "time" });
    };
    let end = (0.0..MAX_WINDOW_S).contains(&result.duration_s).then(|| {
        start.checked_add(jiff::SignedDuration::from_nanos((result.duration_s * 1e9).round() as i64)).ok()
    });
    let Some(end) = end.flatten() else {
        let (field, value) = ("duration_s", result.duration_s.to_string());
        return Err(MergeError::Window { name, field, value, expected: "length of a measurement" });
    };
    placed.push(Placed { part: MergedPart { name, result }, start, end });
    Ok(())
}

/// Two generators never measure the same to the nanosecond; a file given twice does.
fn refuse_twins(placed: &[Placed]) -> Result<(), MergeError> {
    for (index, one) in placed.iter().enumerate() {
        let at_the_same_time = placed[index + 1..].iter().take_while(|other| other.start == one.start);
        for other in at_the_same_time {
            if one.part.result == other.part.result {
                let (one, other) = (one.part.name.clone(), other.part.name.clone());
                return Err(MergeError::Twice { one, other });
            }
        }
    }
    Ok(())
}

/// For how long all windows were open at once.
fn overlap_s(placed: &[Placed]) -> f64 {
    let latest_start = placed.iter().map(|placed| placed.start).max();
    let earliest_end = placed.iter().map(|placed| placed.end).min();
    match (latest_start, earliest_end) {
        (Some(start), Some(end)) => seconds_between(start, end).max(0.0),
        _ => 0.0,
    }
}

fn seconds_between(start: Timestamp, end: Timestamp) -> f64 {
    end.duration_since(start).as_secs_f64()
}

/// The sum where both are there.
fn both(one: Option<usize>, other: Option<usize>) -> Option<usize> {
    Some(one?.saturating_add(other?))
}

/// Each once, in the order of their first appearance.
fn distinct<'a>(values: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    for value in values.filter(|value| !value.is_empty()) {
        if !seen.iter().any(|known| known == value) {
            seen.push(value.to_owned());
        }
    }
    seen
}

fn total<'a>(results: impl Iterator<Item = &'a LoadResult>, count: impl Fn(&LoadResult) -> u64) -> u64 {
    results.map(count).fold(0, u64::saturating_add)
}

fn added<'a>(counts: impl Iterator<Item = &'a BTreeMap<String, u64>>) -> BTreeMap<String, u64> {
    let mut sum: BTreeMap<String, u64> = BTreeMap::new();
    for (name, count) in counts.flatten() {
        let entry = sum.entry(name.clone()).or_default();
        *entry = entry.saturating_add(*count);
    }
    sum
}

fn requests<'a>(results: impl Iterator<Item = &'a LoadResult> + Clone) -> RequestCounts {
    let total = |count: fn(&RequestCounts) -> u64| total(results.clone(), |result| count(&result.requests));
    RequestCounts {
        scheduled: total(|requests| requests.scheduled),
        sent: total(|requests| requests.sent),
        late: total(|requests| requests.late),
        unsent: total(|requests| requests.unsent),
        completed: total(|requests| requests.completed),
        failed: total(|requests| requests.failed),
        errors: added(results.clone().map(|result| &result.requests.errors)),
        status: added(results.clone().map(|result| &result.requests.status)),
        grpc_status: added(results.map(|result| &result.requests.grpc_status)),
    }
}

/// All values of one distribution.
fn times(
    placed: &[Placed],
    field: &str,
    distribution: impl Fn(&LoadResult) -> Option<&HistogramSummary>,
) -> Result<HistogramSummary, MergeError> {
    let mut whole = LatencyHistogram::new();
    for Placed { part, .. } in placed {
        // Results of before there was such a distribution have nothing in its place.
        let Some(summary) = distribution(&part.result).filter(|summary| summary.count > 0) else {
            continue;
        };
        whole.merge(&histogram(&part.name, field, &summary.histogram, summary.count)?);
    }
    Ok(whole.summary())
}

/// The messages of calls, where any result has them.
fn grpc(placed: &[Placed]) -> Result<Option<GrpcMessages>, MergeError> {
    let parts: Vec<&GrpcMessages> =
        placed.iter().filter_map(|placed| placed.part.result.grpc.as_ref()).collect();
    if parts.is_empty() {
        return Ok(None);
    }
    let total = |count: fn(&GrpcMessages) -> u64| {
        parts.iter().map(|messages| count(messages)).fold(0, u64::saturating_add)
    };
    Ok(Some(GrpcMessages {
        messages_sent: total(|messages| messages.messages_sent),
        messages_received: total(|messages| messages.messages_received),
        message_time_us: times(placed, "grpc.message_time_us", |result| {
            result.grpc.as_ref().map(|messages| &messages.message_time_us)
        })?,
        first_message_time_us: times(placed, "grpc.first_message_time_us", |result| {
            result.grpc.as_ref().map(|messages| &messages.first_message_time_us)
        })?,
    }))
}

/// Reads a histogram that must hold `expected` values.
fn histogram(name: &str, field: &str, text: &str, expected: u64) -> Result<LatencyHistogram, MergeError> {
    let (name, field) = (name.to_owned(), field.to_owned());
    match LatencyHistogram::decode(text) {
        Err(source) => Err(MergeError::Histogram { name, field, source }),
        Ok(histogram) if histogram.count() != expected => {
            Err(MergeError::Count { name, field, found: histogram.count(), expected })
        }
        Ok(histogram) => Ok(histogram),
    }
}

fn sizes<'a>(results: impl Iterator<Item = &'a LoadResult>) -> SizeSummary {
    let (mut all, mut sum, mut squares) = (SizeSummary { min: u64::MAX, ..SizeSummary::default() }, 0.0, 0.0);
    for sizes in results.map(|result| &result.response_size_bytes).filter(|sizes| sizes.count > 0) {
        let count = sizes.count as f64;
        all.count = all.count.saturating_add(sizes.count);
        (all.min, all.max) = (all.min.min(sizes.min), all.max.max(sizes.max));
        sum += sizes.mean * count;
        squares += (sizes.stddev.powi(2) + sizes.mean.powi(2)) * count;
    }
    if all.count == 0 {
        return SizeSummary::default();
    }
    all.mean = sum / all.count as f64;
    all.stddev = (squares / all.count as f64 - all.mean.powi(2)).max(0.0).sqrt();
    all
}

/// What all generators used together. The busiest thread is the busiest of any; what their connections stood on is told
/// where it is one.
fn generator(placed: &[Placed], sent: u64) -> GeneratorUsage {
    let usages = || placed.iter().map(|placed| &placed.part.result.generator);
    let total = |count: fn(&GeneratorUsage) -> u64| usages().map(count).fold(0, u64::saturating_add);
    let first = usages().next().and_then(|usage| usage.network);
    let cpu_user_s: f64 = usages().map(|usage| usage.cpu_user_s).sum();
    let cpu_system_s: f64 = usages().map(|usage| usage.cpu_system_s).sum();
    GeneratorUsage {
        cpu_user_s,
        cpu_system_s,
        cpu_us_per_request: (cpu_user_s + cpu_system_s) * 1e6 / sent.max(1) as f64,
        busiest_thread_fraction: usages().map(|usage| usage.busiest_thread_fraction).fold(0.0, f64::max),
        voluntary_switches: total(|usage| usage.voluntary_switches),
        involuntary_switches: total(|usage| usage.involuntary_switches),
        memory_peak_bytes: total(|usage| usage.memory_peak_bytes),
        network: first.filter(|_| usages().all(|usage| usage.network == first)),
        pacing: pacing(placed),
    }
}

/// How the threads of all generators waited; absent where not all say, or not all were asked the same.
fn pacing(placed: &[Placed]) -> Option<PacingUsage> {
    let results = || placed.iter().map(|placed| &placed.part.result);
    let asked = results().next()?.generator.pacing?.asked;
    let mut merged = PacingUsage { asked, ..PacingUsage::default() };
    let threads: usize = results().map(|result| result.threads).sum();
    for result in results() {
        let of_one = result.generator.pacing.filter(|pacing| pacing.asked == asked)?;
        let weight = result.threads as f64 / threads.max(1) as f64;
        merged.spinning_fraction += weight * of_one.spinning_fraction;
        merged.unbounded_fraction += weight * of_one.unbounded_fraction;
        merged.busiest_working_fraction =
            merged.busiest_working_fraction.max(of_one.busiest_working_fraction);
        // The most that one of them tolerated.
        if of_one.lag_tolerance_us > merged.lag_tolerance_us {
            merged.lag_tolerance_us = of_one.lag_tolerance_us;
        }
        merged.answers_timed_by_kernel |= of_one.answers_timed_by_kernel;
        merged.sleep_cpu_us = merged.sleep_cpu_us.max(of_one.sleep_cpu_us);
    }
    Some(merged)
}

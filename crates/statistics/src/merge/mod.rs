//! Merges the results of several generators into one.
//!
//! Counts, bytes, CPU, memory and rates are added. Histograms are merged losslessly, so every percentile is
//! over all requests. Series are aligned by absolute time (`series`). The window runs from the earliest start
//! to the latest end. A merged result keeps its parts unchanged, and merging it again starts from these:
//! neither order nor grouping makes a difference. The clocks of the generators' machines are assumed to
//! agree.
//!
//! The objective is left out: the caller has to evaluate it again.

mod drivers;
mod error;
mod events;
mod per_url;
mod placed;
mod series;
#[cfg(test)]
mod tests;
mod unanswered;
mod verdict;

pub use drivers::{merge_drivers, merge_generators};
pub use error::MergeError;
pub use placed::MergeInput;

use crate::backlog::together;
use crate::episodes::Slowest;
use jiff::Timestamp;
use placed::{
    Placed, distinct, histogram, overlap_s, place, reject_duplicates, seconds_between, start_offsets_us,
};
use results::{
    Bytes, GeneratorUsage, GrpcMessages, HistogramSummary, IdleCloses, LOAD_SCHEMA, LatencyHistogram,
    LoadResult, MergedPart, MergedResults, PacingUsage, Rates, RequestCounts, SessionResults, SizeSummary,
    SpinPauses, WarmupCounts,
};
use std::collections::BTreeMap;
use unanswered::Unanswered;

/// Merges results. Results that are merged themselves are replaced by their parts.
///
/// # Errors
/// Returns an error if there is no result, if one is not a readable result, or if one is given twice.
pub fn merge(parts: Vec<MergeInput>) -> Result<LoadResult, MergeError> {
    let mut placed = Vec::new();
    for part in parts {
        place(part, &mut placed)?;
    }
    placed.sort_by(|one, other| {
        let key = |placed: &Placed| (placed.start, placed.end, placed.part.name.clone());
        key(one).cmp(&key(other))
    });
    reject_duplicates(&placed)?;
    let (Some(first), Some(end)) = (placed.first(), placed.iter().map(|placed| placed.end).max()) else {
        return Err(MergeError::Nothing);
    };
    let (start, protocol) = (first.start, first.part.result.protocol);
    let overlap_s = overlap_s(&placed);
    let duration_s = seconds_between(start, end);
    let (series, series_histograms) = series::merge(&placed)?;
    let backlog = together(placed.iter().map(|placed| placed.part.result.backlog.as_ref()));
    let verdict = verdict::check(&placed, overlap_s, duration_s, backlog.as_ref());
    let results = || placed.iter().map(|placed| &placed.part.result);
    let requests = requests(results());
    let response_time_us = times(&placed, "response_time_us", |result| Some(&result.response_time_us))?;
    let slowest = slowest(&placed, start);
    let unanswered: Vec<Unanswered<'_>> = results().map(Unanswered::of_result).collect();
    let waits = unanswered::waits(&unanswered);
    let censored_above_us = unanswered::above_us(&unanswered, &waits, &response_time_us)?;
    Ok(LoadResult {
        schema: LOAD_SCHEMA.to_owned(),
        version: distinct(results().map(|result| result.version.as_str())).join(", "),
        build: first
            .part
            .result
            .build
            .clone()
            .filter(|build| results().all(|result| result.build.as_ref() == Some(build))),
        urls: distinct(results().flat_map(|result| &result.urls).map(String::as_str)),
        started_at: start.to_string(),
        start_delay_us: None,
        duration_s,
        interrupted: results().any(|result| result.interrupted),
        threads: results().map(|result| result.threads).fold(0, usize::saturating_add),
        connections: results().map(|result| result.connections).fold(0, usize::saturating_add),
        protocol,
        streams: results().map(|result| result.streams).max().unwrap_or(1),
        connection_settings: first
            .part
            .result
            .connection_settings
            .clone()
            .filter(|settings| results().all(|result| result.connection_settings.as_ref() == Some(settings))),
        idle_closes: results().filter_map(|result| result.idle_closes).reduce(|one, other| IdleCloses {
            connections: one.connections.saturating_add(other.connections),
            requests: one.requests.saturating_add(other.requests),
        }),
        addresses: added(results().map(|result| &result.addresses)),
        tls_sessions: added(results().map(|result| &result.tls_sessions)),
        tls_server_keys: added(results().map(|result| &result.tls_server_keys)),
        clients: results().map(|result| result.clients).reduce(both).flatten(),
        client_stages: if results().all(|result| result.client_stages == first.part.result.client_stages) {
            first.part.result.client_stages.clone()
        } else {
            Vec::new()
        },
        arrivals: first
            .part
            .result
            .arrivals
            .clone()
            .filter(|arrivals| results().all(|result| result.arrivals.as_ref() == Some(arrivals))),
        expected_status: first
            .part
            .result
            .expected_status
            .clone()
            .filter(|expected| results().all(|result| result.expected_status.as_ref() == Some(expected))),
        rate: Rates {
            offered: results().map(|result| result.rate.offered).sum(),
            sent: results().map(|result| result.rate.sent).sum(),
            completed: results().map(|result| result.rate.completed).sum(),
        },
        warmup: WarmupCounts {
            sent: total(results(), |result| result.warmup.sent),
            completed: total(results(), |result| result.warmup.completed),
            completed_in_window: total(results(), |result| result.warmup.completed_in_window),
            failed: total(results(), |result| result.warmup.failed),
            errors: added(results().map(|result| &result.warmup.errors)),
        },
        censored_above_us,
        unanswered_waits_us: waits.to_entries(),
        first_byte_us: events::times_of_requests(&placed, "first_byte_us", |result| {
            result.first_byte_us.as_ref()
        })?,
        first_event_us: events::times_of_requests(&placed, "first_event_us", |result| {
            result.first_event_us.as_ref()
        })?,
        event_gap_us: events::gaps(&placed)?,
        events: events::counts(results()),
        service_time_us: times(&placed, "service_time_us", |result| Some(&result.service_time_us))?,
        schedule_lag_us: times(&placed, "schedule_lag_us", |result| Some(&result.schedule_lag_us))?,
        generator_lag_us: times(&placed, "generator_lag_us", |result| Some(&result.generator_lag_us))?,
        reading_lag_us: times_of_all(&placed, "reading_lag_us", |result| result.reading_lag_us.as_ref())?,
        arrival_uncertainty_us: times_of_all(&placed, "arrival_uncertainty_us", |result| {
            result.arrival_uncertainty_us.as_ref()
        })?,
        episodes: slowest.as_ref().map(|slowest| slowest.episodes(&response_time_us)).unwrap_or_default(),
        slowest: slowest.map(|slowest| slowest.to_requests(0)),
        backlog,
        response_time_us,
        connect_time_us: times(&placed, "connect_time_us", |result| Some(&result.connect_time_us))?,
        handshake_time_us: times(&placed, "handshake_time_us", |result| Some(&result.handshake_time_us))?,
        grpc: grpc(&placed)?,
        bytes: Bytes {
            sent: total(results(), |result| result.bytes.sent),
            received: total(results(), |result| result.bytes.received),
        },
        response_size_bytes: sizes(results().map(|result| &result.response_size_bytes)),
        generator: generator(&placed, requests.sent.saturating_sub(requests.late)),
        requests,
        series,
        series_histograms,
        per_url: per_url::per_url(&placed)?,
        kinds: per_url::kinds(&placed)?,
        sessions: results()
            .all(|result| result.sessions.is_some())
            .then(|| SessionResults::merged(results().filter_map(|result| result.sessions.as_ref()))),
        verdict,
        objective: None,
        exports: results().flat_map(|result| result.exports.clone()).collect(),
        merged: Some(MergedResults {
            overlap_s,
            parts: start_offsets_us(&placed).into_iter().zip(placed).map(merged_part).collect(),
        }),
    })
}

fn merged_part((start_offset_us, placed): (f64, Placed)) -> MergedPart {
    let MergeInput { name, result } = placed.part;
    let GeneratorUsage { cpu_user_s, cpu_system_s, .. } = result.generator;
    let cpu_s = cpu_user_s + cpu_system_s;
    MergedPart {
        name,
        start_offset_us: Some(start_offset_us),
        requests: result.requests.sent,
        p99_us: result.response_time_us.p99,
        cpu_cores: if result.duration_s > 0.0 { cpu_s / result.duration_s } else { 0.0 },
        result: Some(Box::new(result)),
    }
}

/// The sum, if both are present.
fn both(one: Option<usize>, other: Option<usize>) -> Option<usize> {
    Some(one?.saturating_add(other?))
}

fn total<'a>(results: impl Iterator<Item = &'a LoadResult>, count: impl Fn(&LoadResult) -> u64) -> u64 {
    results.map(count).fold(0, u64::saturating_add)
}

fn added<'a>(counts: impl Iterator<Item = &'a BTreeMap<String, u64>>) -> BTreeMap<String, u64> {
    sum_by_name(counts.flatten().map(|(name, count)| (name.as_str(), *count)))
}

fn sum_by_name<'a>(counts: impl Iterator<Item = (&'a str, u64)>) -> BTreeMap<String, u64> {
    let mut sum: BTreeMap<String, u64> = BTreeMap::new();
    for (name, count) in counts {
        let entry = sum.entry(name.to_owned()).or_default();
        *entry = entry.saturating_add(count);
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
        completed_after_window: total(|requests| requests.completed_after_window),
        failed: total(|requests| requests.failed),
        errors: added(results.clone().map(|result| &result.requests.errors)),
        status: added(results.clone().map(|result| &result.requests.status)),
        unexpected_status: unexpected_statuses(results.clone()),
        grpc_status: added(results.map(|result| &result.requests.grpc_status)),
    }
}

/// Statuses that are errors, if any load was told which to expect; loads that were not have errors of their own.
fn unexpected_statuses<'a>(
    results: impl Iterator<Item = &'a LoadResult> + Clone,
) -> Option<BTreeMap<String, u64>> {
    results.clone().any(|result| result.requests.unexpected_status.is_some()).then(|| {
        let errors = results.flat_map(|result| result.requests.error_statuses_by_code());
        sum_by_name(errors)
    })
}

/// Merges one distribution of all results.
fn times(
    placed: &[Placed],
    field: &str,
    distribution: impl Fn(&LoadResult) -> Option<&HistogramSummary>,
) -> Result<HistogramSummary, MergeError> {
    times_with(placed, field, distribution, 0)
}

/// Merges one distribution of all results, with further requests that are without a response.
fn times_with(
    placed: &[Placed],
    field: &str,
    distribution: impl Fn(&LoadResult) -> Option<&HistogramSummary>,
    mut censored: u64,
) -> Result<HistogramSummary, MergeError> {
    let mut whole = LatencyHistogram::new();
    for Placed { part, .. } in placed {
        censored = censored.saturating_add(distribution(&part.result).map_or(0, |summary| summary.censored));
        // Older results do not have all distributions.
        let Some(summary) = distribution(&part.result).filter(|summary| summary.count > 0) else {
            continue;
        };
        whole.merge(&histogram(&part.name, field, &summary.histogram, summary.count)?);
    }
    Ok(whole.summary_with(censored))
}

/// Merges one distribution of all results; `None` if one of them has none.
fn times_of_all(
    placed: &[Placed],
    field: &str,
    distribution: impl Fn(&LoadResult) -> Option<&HistogramSummary>,
) -> Result<Option<HistogramSummary>, MergeError> {
    let is_in_all = placed.iter().all(|placed| distribution(&placed.part.result).is_some());
    is_in_all.then(|| times(placed, field, distribution)).transpose()
}

/// The slowest requests of all generators on one clock, so that a stall shared by several is one episode.
/// `None` if a result has none.
fn slowest(placed: &[Placed], start: Timestamp) -> Option<Slowest> {
    let of_part = |placed: &Placed| {
        let after_ns = (seconds_between(start, placed.start) * 1e9) as u64;
        Slowest::from_requests(placed.part.result.slowest.as_ref()?, after_ns)
    };
    placed.iter().map(of_part).try_fold(Slowest::new(), |mut all, part| {
        all.merge(&part?);
        Some(all)
    })
}

/// The messages of gRPC calls; `None` if no result has any.
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
        read_together: total(|messages| messages.read_together),
        read_together_within_us: parts
            .iter()
            .map(|messages| messages.read_together_within_us)
            .fold(0.0, f64::max),
        first_message_time_us: times(placed, "grpc.first_message_time_us", |result| {
            result.grpc.as_ref().map(|messages| &messages.first_message_time_us)
        })?,
    }))
}

fn sizes<'a>(sizes: impl Iterator<Item = &'a SizeSummary>) -> SizeSummary {
    let (mut all, mut sum, mut squares) = (SizeSummary { min: u64::MAX, ..SizeSummary::default() }, 0.0, 0.0);
    for sizes in sizes.filter(|sizes| sizes.count > 0) {
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

/// Resource usage of all generators. The busiest thread is the busiest of any generator. The network backend
/// is only set if all generators used the same one.
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
        pauses: usages().filter_map(|usage| usage.pauses).reduce(|one, other| SpinPauses {
            count: one.count.saturating_add(other.count),
            longest_us: one.longest_us.max(other.longest_us),
            total_us: one.total_us + other.total_us,
            spun_s: one.spun_s + other.spun_s,
        }),
    }
}

/// How the threads of all generators waited; `None` if a result lacks it, or if the generators had different
/// pacing settings.
fn pacing(placed: &[Placed]) -> Option<PacingUsage> {
    let results = || placed.iter().map(|placed| &placed.part.result);
    let asked = results().next()?.generator.pacing?.asked;
    // Late reading is in the times of one whose responses the kernel does not time.
    let mut merged = PacingUsage { asked, answers_timed_by_kernel: true, ..PacingUsage::default() };
    let threads = results().map(|result| result.threads).fold(0, usize::saturating_add);
    for result in results() {
        let of_one = result.generator.pacing.filter(|pacing| pacing.asked == asked)?;
        let weight = result.threads as f64 / threads.max(1) as f64;
        merged.spinning_fraction += weight * of_one.spinning_fraction;
        merged.unbounded_fraction += weight * of_one.unbounded_fraction;
        merged.busiest_working_fraction =
            merged.busiest_working_fraction.max(of_one.busiest_working_fraction);
        // The largest tolerance of any generator.
        if of_one.lag_tolerance_us > merged.lag_tolerance_us {
            merged.lag_tolerance_us = of_one.lag_tolerance_us;
        }
        merged.answers_timed_by_kernel &= of_one.answers_timed_by_kernel;
        merged.sleep_cpu_us = merged.sleep_cpu_us.max(of_one.sleep_cpu_us);
    }
    Some(merged)
}

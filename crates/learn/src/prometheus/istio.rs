//! Istio's standard metrics (istio.io, "Istio Standard Metrics"): of sidecars and gateways (`reporter` is `source` or
//! `destination`), waypoints (`waypoint`) and ztunnels, which report connections only.

use super::answer::{Labels, Row};
use super::samples::{Samples, is_usable};
use super::vocabulary::{Call, Metric, Named, Part, Vocabulary};
use super::{AnswerError, cadvisor, hubble, linkerd};
use crate::dialect::Dialect;
use crate::parties::{Party, TooMuch};
use crate::telemetry::{Pair, Reporter, Telemetry};
use crate::{NO_HOSTS, is_error_status, is_grpc_error};
use results::units::{parse_duration, shortened_to};
use std::borrow::Cow;
use std::collections::HashMap;

/// Maximum number of series of counters that are kept until the period is known.
const MAX_SERIES: usize = 5_000_000;
/// Difference between periods of answers that counts as none: clocks and late scrapes.
const SAME_PERIOD: f64 = 0.1;
/// Difference between times of answers that counts as none, seconds: queries that are sent one after the other.
const SAME_TIME_S: f64 = 60.0;
/// Maximum number of distinct warnings that are kept.
const MAX_WARNINGS: usize = 20;
/// Maximum length of a warning, characters.
const MAX_WARNING_CHARACTERS: usize = 160;

/// A query, and its purpose.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Query {
    /// Purpose of the answer.
    pub purpose: &'static str,
    /// PromQL.
    pub text: String,
}

impl Query {
    /// Query whose result names its metric and period.
    pub(super) fn new(purpose: &'static str, name: &str, range_s: u64, sum: &str) -> Self {
        let text = format!("label_replace({sum}, \"meshmeter\", \"{name} {range_s}s\", \"\", \"\")");
        Self { purpose, text }
    }
}

const METRICS: [Named; 14] = [
    (
        "istio_requests_total",
        Metric::Requests,
        "request_protocol, response_code, grpc_response_status",
        "rates, protocols, errors",
    ),
    ("istio_requests_total:resets", Metric::Resets, "", "counters that were reset"),
    (
        "istio_request_duration_milliseconds_bucket",
        Metric::Duration(Part::Bucket),
        "le",
        "service times: spread",
    ),
    ("istio_request_duration_milliseconds_sum", Metric::Duration(Part::Sum), "", "service times: mean"),
    ("istio_request_duration_milliseconds_count", Metric::Duration(Part::Count), "", "service times: mean"),
    ("istio_request_bytes_bucket", Metric::RequestBytes(Part::Bucket), "le", "sizes of requests: spread"),
    ("istio_request_bytes_sum", Metric::RequestBytes(Part::Sum), "", "sizes of requests: mean"),
    ("istio_request_bytes_count", Metric::RequestBytes(Part::Count), "", "sizes of requests: mean"),
    ("istio_response_bytes_bucket", Metric::ResponseBytes(Part::Bucket), "le", "sizes of responses: spread"),
    ("istio_response_bytes_sum", Metric::ResponseBytes(Part::Sum), "", "sizes of responses: mean"),
    ("istio_response_bytes_count", Metric::ResponseBytes(Part::Count), "", "sizes of responses: mean"),
    ("istio_tcp_connections_opened_total", Metric::Opened, "", "connections"),
    ("istio_tcp_sent_bytes_total", Metric::Sent, "", "bytes that servers sent over connections"),
    ("istio_tcp_received_bytes_total", Metric::Received, "", "bytes that clients sent over connections"),
];

/// All vocabularies, in the order of their queries.
const VOCABULARIES: [&Vocabulary; 3] = [&VOCABULARY, &linkerd::VOCABULARY, &hubble::VOCABULARY];

const VOCABULARY: Vocabulary = Vocabulary {
    metrics: &METRICS,
    pair: "reporter, source_workload, source_workload_namespace, destination_workload, destination_workload_namespace, \
           destination_service",
    selector: |_| "",
    call,
};

/// Queries of a period that ends at the time of the query. Each result names its metric and period in the label `meshmeter`, so
/// that saved answers need no names. Rows of 0 are left out, apart from buckets of a histogram with values: they bound the
/// others.
#[must_use]
pub fn queries(range_s: u64) -> Vec<Query> {
    let of_metric = |of: &'static Vocabulary, (name, metric, labels, purpose): Named| {
        let (series, function) =
            if metric == Metric::Resets { ("istio_requests_total", "resets") } else { (name, "increase") };
        let comma = if labels.is_empty() { "" } else { ", " };
        let (pair, selector) = (of.pair, (of.selector)(metric));
        let sum = format!("sum by ({pair}{comma}{labels}) ({function}({series}{selector}[{range_s}s]))");
        let sum = match name.strip_suffix("_bucket") {
            Some(histogram) => {
                let count = format!("increase({histogram}_count{selector}[{range_s}s])");
                format!("{sum} and on ({pair}) (sum by ({pair}) ({count}) > 0)")
            }
            None => format!("{sum} > 0"),
        };
        Query::new(purpose, name, range_s, &sum)
    };
    let of_mesh = |of: &'static Vocabulary| {
        of.metrics.iter().map(move |named| of_metric(of, *named)).collect::<Vec<_>>()
    };
    VOCABULARIES.into_iter().flat_map(of_mesh).chain(cadvisor::queries(range_s)).collect()
}

/// A series, as far as its values are kept apart from those of others; histograms have a bound beside it.
#[derive(Clone, Copy, Debug)]
struct Series {
    pair: Pair,
    reporter: Reporter,
    metric: Metric,
    is_grpc: bool,
    is_error: bool,
}

/// Telemetry that is being read.
#[derive(Debug)]
pub(super) struct Reading {
    telemetry: Telemetry,
    /// Period of vectors, seconds; 0 before the first.
    range_s: f64,
    /// Series of counters, until the period of all is known.
    series: Vec<(Series, Samples)>,
    /// Times of the first and the last sample of each series, by the hash of its labels. Of a histogram's buckets only the last.
    covered: HashMap<u64, (f64, f64)>,
}

impl Reading {
    pub(super) fn new(telemetry: Telemetry) -> Self {
        Self { telemetry, range_s: 0.0, series: Vec::new(), covered: HashMap::new() }
    }

    /// Keeps warnings of an answer.
    pub(super) fn warn(&mut self, warnings: Vec<String>) {
        for warning in warnings {
            let warning = shortened_to(&warning, MAX_WARNING_CHARACTERS);
            if self.telemetry.warnings.len() < MAX_WARNINGS {
                self.telemetry.warnings.insert(warning);
            }
        }
    }

    /// Adds a row.
    pub(super) fn row(&mut self, row: &Row) -> Result<(), AnswerError> {
        let labels = &row.metric;
        let named = labels.meshmeter.as_deref().and_then(|text| text.split_once(' '));
        if let (Some((name, range)), Some((at, value))) = (named, row.value)
            && let Some(metric) = cadvisor::metric(name)
        {
            self.period(range, at)?;
            if is_usable(value.0) {
                return cadvisor::take(&mut self.telemetry, metric, value.0, self.range_s);
            }
            self.telemetry.unusable_rows += 1;
            return Ok(());
        }
        let name = named.map_or(labels.name.as_deref(), |(name, _)| Some(name)).unwrap_or_default();
        let find = |of: &Vocabulary| Some((of.call, *of.metrics.iter().find(|(own, ..)| *own == name)?));
        let known = VOCABULARIES.into_iter().find_map(find);
        let Some((call, (name, metric, ..))) = known else {
            self.telemetry.foreign_rows += 1;
            return Ok(());
        };
        let Some(call) = call(labels, metric) else {
            self.telemetry.foreign_rows += 1;
            return Ok(());
        };
        *self.telemetry.rows.entry(name).or_default() += 1;
        let Call { reporter, is_grpc, is_error, .. } = call;
        let series = Series { pair: self.pair(&call)?, reporter, metric, is_grpc, is_error };
        let bound = labels.le.as_deref().and_then(|text| text.parse::<f64>().ok());
        let samples = match (row.value, row.values, named) {
            (Some((at, value)), None, Some((_, range))) => {
                self.period(range, at)?;
                if !is_usable(value.0) {
                    self.telemetry.unusable_rows += 1;
                    return Ok(());
                }
                self.cover(name, labels, (at - self.range_s, at))?;
                return self.add(series, value.0, 0.0, bound).map_err(Into::into);
            }
            (None, Some(samples), _) => samples,
            // One value of a counter has no rate.
            _ => {
                self.telemetry.unusable_rows += 1;
                return Ok(());
            }
        };
        if samples.unusable > 0 {
            self.telemetry.unusable_rows += 1;
        }
        if samples.count > 0 {
            self.cover(name, labels, (samples.first, samples.last))?;
        }
        match metric {
            Metric::Requests | Metric::Responses | Metric::Opened | Metric::Sent | Metric::Received => {
                if self.series.len() >= MAX_SERIES {
                    return Err(TooMuch::Series.into());
                }
                self.telemetry.pair(series.pair)?;
                self.series.push((series, samples));
                Ok(())
            }
            // Only proportions count: those of a short-lived pod need no extrapolation.
            _ => self.add(series, samples.increase, 0.0, bound).map_err(Into::into),
        }
    }

    fn pair(&mut self, call: &Call) -> Result<Pair, TooMuch> {
        let telemetry = &mut self.telemetry;
        let mut party = |[namespace, workload]: [Option<&str>; 2]| -> Result<Party, TooMuch> {
            Ok(Party { namespace: telemetry.name(namespace)?, workload: telemetry.name(workload)? })
        };
        let (from, to) = (party(call.from)?, party(call.to)?);
        Ok(Pair { from, to, host: telemetry.name(call.host.as_deref())?, dialect: call.dialect })
    }

    /// Notes the period of a vector.
    fn period(&mut self, range: &str, at: f64) -> Result<(), AnswerError> {
        let range_s = parse_duration(range).map_or(0.0, |range| range.as_secs_f64());
        if range_s <= 0.0 || !is_usable(at) {
            return Err(AnswerError::Json("the label `meshmeter` has no period".to_owned()));
        }
        if self.range_s > 0.0 && (self.range_s - range_s).abs() > SAME_PERIOD {
            return Err(AnswerError::Periods(self.range_s, range_s));
        }
        if self.range_s > 0.0 && (self.telemetry.at - at).abs() > SAME_TIME_S {
            return Err(AnswerError::Times(self.telemetry.at, at));
        }
        self.range_s = range_s;
        self.telemetry.at = self.telemetry.at.max(at);
        Ok(())
    }

    /// Refuses a series that was there already, at the same time or in a period that overlaps.
    fn cover(&mut self, name: &'static str, labels: &Labels, times: (f64, f64)) -> Result<(), AnswerError> {
        if labels.le.as_deref().is_some_and(|bound| bound != "+Inf") {
            return Ok(());
        }
        let is_full = self.covered.len() >= MAX_SERIES;
        match self.covered.get_mut(&labels.hash) {
            Some(covered) if times.0 < covered.1 && covered.0 < times.1 => {
                return Err(AnswerError::Twice(name));
            }
            Some(covered) => *covered = (covered.0.min(times.0), covered.1.max(times.1)),
            None if is_full => return Err(TooMuch::Series.into()),
            None => drop(self.covered.insert(labels.hash, times)),
        }
        Ok(())
    }

    /// Adds the increase of a series over the period.
    fn add(&mut self, series: Series, value: f64, resets: f64, bound: Option<f64>) -> Result<(), TooMuch> {
        let Series { pair, reporter, metric, is_grpc, is_error } = series;
        let rate = if self.range_s > 0.0 { value / self.range_s } else { 0.0 };
        let reported = self.telemetry.pair(pair)?;
        let (histogram, part, scale) = match metric {
            Metric::Duration(part) => {
                (&mut reported.requests_of(reporter).duration, part, pair.dialect.duration_unit_s())
            }
            Metric::RequestBytes(part) => (&mut reported.requests_of(reporter).request_bytes, part, 1.0),
            Metric::ResponseBytes(part) => (&mut reported.requests_of(reporter).response_bytes, part, 1.0),
            Metric::Requests => {
                let requests = reported.requests_of(reporter);
                requests.rate += rate;
                requests.count += value;
                requests.resets += resets;
                requests.error_rate += if is_error { rate } else { 0.0 };
                requests.grpc_rate += if is_grpc { rate } else { 0.0 };
                return Ok(());
            }
            Metric::Responses => {
                reported.requests_of(reporter).error_rate += if is_error { rate } else { 0.0 };
                return Ok(());
            }
            Metric::Resets => {
                reported.requests_of(reporter).resets += value;
                return Ok(());
            }
            Metric::Opened | Metric::Sent | Metric::Received => {
                let connections = reported.connections_of(reporter);
                match metric {
                    Metric::Opened => {
                        connections.rate += rate;
                        connections.count += value;
                    }
                    Metric::Sent => connections.sent_bytes += value,
                    _ => connections.received_bytes += value,
                }
                connections.resets += resets;
                return Ok(());
            }
        };
        match (part, bound) {
            (Part::Sum, _) => histogram.sum += value * scale,
            (Part::Count, _) => histogram.count += value,
            (Part::Bucket, Some(bound)) if bound > 0.0 => histogram.add(bound * scale, value)?,
            (Part::Bucket, _) => self.telemetry.unusable_rows += 1,
        }
        Ok(())
    }

    /// Adds the series with samples, whose period is that of all samples.
    pub(super) fn finish(mut self) -> Telemetry {
        let usable = || self.series.iter().map(|(_, samples)| samples).filter(|samples| samples.count > 0);
        let start = usable().map(|samples| samples.first).fold(f64::INFINITY, f64::min);
        let end = usable().map(|samples| samples.last).fold(f64::NEG_INFINITY, f64::max);
        if self.range_s <= 0.0 && end > start {
            self.range_s = end - start;
        }
        if end.is_finite() {
            self.telemetry.at = self.telemetry.at.max(end);
        }
        for (series, samples) in std::mem::take(&mut self.series) {
            let increase = samples.increase_in((start, end));
            // Its pair is there already, so there are not too many.
            let _ = self.add(series, increase, samples.resets.into(), None);
        }
        self.telemetry.period_s = self.range_s;
        self.telemetry.pairs.retain(|_, reported| reported.is_used());
        self.telemetry.choose_dialect();
        self.telemetry
    }
}

/// Call of a row. Relabelled ztunnels report connections of the client's side.
fn call(labels: &Labels, _: Metric) -> Option<Call<'_>> {
    let (dialect, reporter) = match labels.reporter.as_deref() {
        Some("source" | "ztunnel") => (Dialect::Istio, Reporter::Source),
        Some("destination") => (Dialect::Istio, Reporter::Destination),
        Some("waypoint") => (Dialect::Istio, Reporter::Waypoint),
        None | Some("") => (Dialect::Unreported, Reporter::Destination),
        Some(_) => return None,
    };
    let host = labels.destination_service.as_deref().filter(|host| !NO_HOSTS.contains(host));
    Some(Call {
        dialect,
        reporter,
        from: [labels.source_workload_namespace.as_deref(), labels.source_workload.as_deref()],
        to: [labels.destination_workload_namespace.as_deref(), labels.destination_workload.as_deref()],
        host: host.map(Cow::Borrowed),
        is_grpc: labels.request_protocol.as_deref().is_some_and(|name| name.eq_ignore_ascii_case("grpc")),
        is_error: is_error(labels),
    })
}

/// True for requests that the server answered with an error, or that got no answer (code 0).
fn is_error(labels: &Labels) -> bool {
    let status = labels.grpc_response_status.as_deref().unwrap_or_default();
    is_error_status(labels.response_code.as_deref().unwrap_or_default())
        || status.parse::<u8>().is_ok_and(is_grpc_error)
}

#[cfg(test)]
mod tests {
    use super::super::answer::FURTHER_LABELS;
    use super::*;

    #[test]
    fn labels_of_queries_are_read() {
        let own = [
            "reporter",
            "source_workload",
            "source_workload_namespace",
            "destination_workload",
            "destination_workload_namespace",
            "destination_service",
            "request_protocol",
            "response_code",
            "grpc_response_status",
            "le",
        ];
        for vocabulary in VOCABULARIES {
            let of_metrics = vocabulary.metrics.iter().map(|(_, _, labels, _)| *labels);
            let labels = of_metrics.chain([vocabulary.pair]).flat_map(|labels| labels.split(", "));
            for label in labels.filter(|label| !label.is_empty()) {
                assert!(own.contains(&label) || FURTHER_LABELS.contains(&label), "{label}");
            }
        }
    }
}

//! Figures of a load so far, as metrics.
//!
//! Times are histograms in seconds; the percentiles of the last second are gauges. All figures start with the
//! measured window, as the result does.

use crate::distribution::Distribution;
use crate::metric::{Families, Labels, with_label};
use results::LatencyHistogram;
use std::collections::BTreeMap;

/// Microseconds per second.
const US_IN_S: f64 = 1e6;
/// Percentiles of the last second with their `quantile` labels; 100 is the maximum.
const TRENDS: [(f64, &str); 6] =
    [(50.0, "0.5"), (90.0, "0.9"), (95.0, "0.95"), (99.0, "0.99"), (99.9, "0.999"), (100.0, "1")];

/// Phase of a load.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum LoadPhase {
    /// Waiting for the agreed start, before connecting.
    Waiting,
    /// Connections are being opened.
    #[default]
    Connecting,
    /// Connections are open; waiting for the start.
    Ready,
    /// The schedule has started, but nothing is measured yet.
    WarmingUp,
    /// The measured window is open.
    Measuring,
    /// The window has closed; waiting for outstanding responses.
    Draining,
}

impl LoadPhase {
    fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Connecting => "connecting",
            Self::Ready => "ready",
            Self::WarmingUp => "warming-up",
            Self::Measuring => "measuring",
            Self::Draining => "draining",
        }
    }
}

/// All figures reported about a load while it runs.
#[derive(Clone, Debug, Default)]
pub struct LoadFigures {
    /// Current phase of the load.
    pub phase: LoadPhase,
    /// Start of the load, in milliseconds since 1970.
    since_ms: i64,
    counted: Counted,
    /// Connections open at the end of the last second.
    connections_open: usize,
    /// Requests due in the last second; `None` in a closed loop.
    offered_rate: Option<f64>,
    response_time: Times,
    service_time: Times,
    schedule_lag: Times,
}

/// Counts since the window opened.
#[derive(Clone, Debug, Default)]
struct Counted {
    sent: u64,
    completed: u64,
    failed: u64,
    errors: BTreeMap<String, u64>,
    statuses: BTreeMap<String, u64>,
    bytes_sent: u64,
    bytes_received: u64,
}

/// Times since the window opened, and the percentiles of its last second in microseconds. A percentile among
/// requests without a response is `None`. There are no percentiles if nothing ended in that second.
#[derive(Clone, Debug, Default)]
struct Times {
    all: Distribution,
    last_second_us: Option<[Option<f64>; TRENDS.len()]>,
}

/// One second of the window.
#[derive(Clone, Debug, Default)]
pub struct SecondFigures<'a> {
    /// Requests sent.
    pub sent: u64,
    /// Complete responses received.
    pub completed: u64,
    /// Requests sent without a complete response.
    pub failed: u64,
    /// Errors by kind.
    pub errors: Vec<(&'a str, u64)>,
    /// Responses by status code.
    pub statuses: Vec<(String, u64)>,
    /// Bytes of the requests sent.
    pub bytes_sent: u64,
    /// Bytes of the complete responses.
    pub bytes_received: u64,
    /// Connections open at the end of the second.
    pub connections_open: usize,
    /// Requests due in the second; `None` in a closed loop.
    pub due: Option<f64>,
    /// Response times, from when requests were due.
    pub response_time: Option<&'a LatencyHistogram>,
    /// Service times, from when requests were sent.
    pub service_time: Option<&'a LatencyHistogram>,
    /// Schedule lag, from when requests were due until they were sent.
    pub schedule_lag: Option<&'a LatencyHistogram>,
}

/// Resource usage of the generator's process.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessFigures {
    /// CPU time since the process started, in seconds.
    pub cpu_s: f64,
    /// Resident memory in bytes.
    pub memory_bytes: u64,
}

impl Times {
    fn add(&mut self, histogram: Option<&LatencyHistogram>, without_response: u64) {
        let Some(histogram) = histogram else { return };
        self.all.add(histogram);
        self.all.add_without_response(without_response);
        let has_any = histogram.count() + without_response > 0;
        self.last_second_us = has_any
            .then(|| TRENDS.map(|(percentile, _)| histogram.percentile_with(percentile, without_response)));
    }
}

impl LoadFigures {
    /// Figures of a load that starts now.
    #[must_use]
    pub fn starting_now() -> Self {
        Self { since_ms: jiff::Timestamp::now().as_millisecond(), ..Self::default() }
    }

    /// Adds a second of the window.
    pub fn add(&mut self, second: &SecondFigures<'_>) {
        let counted = &mut self.counted;
        counted.sent += second.sent;
        counted.completed += second.completed;
        counted.failed += second.failed;
        for (kind, count) in &second.errors {
            *counted.errors.entry((*kind).to_owned()).or_default() += count;
        }
        for (code, count) in &second.statuses {
            *counted.statuses.entry(code.clone()).or_default() += count;
        }
        counted.bytes_sent += second.bytes_sent;
        counted.bytes_received += second.bytes_received;
        self.connections_open = second.connections_open;
        self.offered_rate = second.due;
        self.response_time.add(second.response_time, second.failed);
        self.service_time.add(second.service_time, 0);
        self.schedule_lag.add(second.schedule_lag, 0);
    }

    /// Adds these figures as metrics with these labels.
    pub fn add_to(&self, families: &mut Families, labels: &Labels) {
        families.gauge(
            "meshmeter_phase",
            "Phase of the load.",
            with_label(labels, "phase", self.phase.name()),
            1.0,
        );
        self.add_counts(families, labels);
        families.gauge(
            "meshmeter_connections_open",
            "Connections open, at most one second ago.",
            labels.clone(),
            self.connections_open as f64,
        );
        let Counted { sent, completed, failed, .. } = self.counted;
        families.gauge(
            "meshmeter_requests_in_flight",
            "Requests sent in the window that have neither been answered nor failed.",
            labels.clone(),
            sent.saturating_sub(completed + failed) as f64,
        );
        if let Some(rate) = self.offered_rate {
            families.gauge(
                "meshmeter_offered_rate",
                "Requests that were due in the last second.",
                labels.clone(),
                rate,
            );
        }
        self.add_times(families, labels);
    }

    fn add_counts(&self, families: &mut Families, labels: &Labels) {
        let counted = &self.counted;
        let mut counter = |name, help, labels, count: u64| {
            families.counter(name, help, labels, self.since_ms, count as f64);
        };
        counter(
            "meshmeter_requests_sent_total",
            "Requests sent in the window.",
            labels.clone(),
            counted.sent,
        );
        counter(
            "meshmeter_requests_completed_total",
            "Responses received whole.",
            labels.clone(),
            counted.completed,
        );
        counter(
            "meshmeter_requests_failed_total",
            "Requests sent and not answered whole.",
            labels.clone(),
            counted.failed,
        );
        counter(
            "meshmeter_sent_bytes_total",
            "Bytes of the requests sent.",
            labels.clone(),
            counted.bytes_sent,
        );
        counter(
            "meshmeter_received_bytes_total",
            "Bytes of the whole responses.",
            labels.clone(),
            counted.bytes_received,
        );
        for (code, count) in &counted.statuses {
            let labels = with_label(labels, "code", code);
            counter("meshmeter_responses_total", "Responses by status code.", labels, *count);
        }
        for (kind, count) in &counted.errors {
            let labels = with_label(labels, "kind", kind);
            counter("meshmeter_errors_total", "Errors, by kind.", labels, *count);
        }
    }

    fn add_times(&self, families: &mut Families, labels: &Labels) {
        let times = [
            (
                "meshmeter_response_time_seconds",
                "From when a request was due to the end of its response; failed requests are above every bound and not in the sum.",
                "meshmeter_response_time_quantile_seconds",
                &self.response_time,
            ),
            (
                "meshmeter_service_time_seconds",
                "From when a request was sent to the end of its response.",
                "meshmeter_service_time_quantile_seconds",
                &self.service_time,
            ),
            (
                "meshmeter_schedule_lag_seconds",
                "From when a request was due to when it was sent.",
                "meshmeter_schedule_lag_quantile_seconds",
                &self.schedule_lag,
            ),
        ];
        for (name, help, quantile_name, times) in times {
            families.histogram(name, help, labels.clone(), self.since_ms, &times.all);
            let Some(last_second_us) = times.last_second_us else { continue };
            for ((_, quantile), us) in TRENDS.iter().zip(last_second_us) {
                families.gauge(
                    quantile_name,
                    "Percentiles of the last second, 1 the greatest; +Inf among requests without a response.",
                    with_label(labels, "quantile", *quantile),
                    us.map_or(f64::INFINITY, |us| us / US_IN_S),
                );
            }
        }
    }
}

impl ProcessFigures {
    /// Adds these figures as metrics, with the version of Meshmeter.
    pub fn add_to(&self, families: &mut Families, since_ms: i64) {
        let version = with_label(&Labels::new(), "version", env!("CARGO_PKG_VERSION"));
        families.gauge("meshmeter_build_info", "Version of Meshmeter.", version, 1.0);
        families.counter(
            "process_cpu_seconds_total",
            "CPU of the generator, that of its metrics included.",
            Labels::new(),
            since_ms,
            self.cpu_s,
        );
        families.gauge(
            "process_resident_memory_bytes",
            "Memory of the generator.",
            Labels::new(),
            self.memory_bytes as f64,
        );
    }
}

impl LoadFigures {
    /// All metrics of a generator: load and process.
    #[must_use]
    pub fn families(&self, process: ProcessFigures) -> Families {
        let mut families = Families::default();
        self.add_to(&mut families, &Labels::new());
        process.add_to(&mut families, self.since_ms);
        families
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exposition::text;
    use std::time::Duration;

    fn histogram(values_us: &[u64]) -> LatencyHistogram {
        let mut histogram = LatencyHistogram::new();
        for us in values_us {
            histogram.record(Duration::from_micros(*us));
        }
        histogram
    }

    #[test]
    fn buckets_are_cumulative_and_last_has_all_values() {
        let times = histogram(&[10, 50, 51, 1000, 20_000_000]);
        let mut figures = LoadFigures { phase: LoadPhase::Measuring, ..LoadFigures::default() };
        let second = SecondFigures { response_time: Some(&times), ..SecondFigures::default() };
        figures.add(&second);
        figures.add(&SecondFigures { failed: 3, ..second });
        let text = text(&figures.families(ProcessFigures::default()));
        for expected in [
            "# TYPE meshmeter_response_time_seconds histogram\n",
            "meshmeter_response_time_seconds_bucket{le=\"0.00005\"} 4\n",
            "meshmeter_response_time_seconds_bucket{le=\"0.0001\"} 6\n",
            "meshmeter_response_time_seconds_bucket{le=\"0.001\"} 8\n",
            "meshmeter_response_time_seconds_bucket{le=\"10\"} 8\n",
            "meshmeter_response_time_seconds_bucket{le=\"+Inf\"} 13\n",
            "meshmeter_response_time_seconds_count 13\n",
            // In the last second: 5 answered and 3 not.
            "meshmeter_response_time_quantile_seconds{quantile=\"0.5\"} 0.001\n",
            "meshmeter_response_time_quantile_seconds{quantile=\"0.9\"} +Inf\n",
            "meshmeter_response_time_quantile_seconds{quantile=\"1\"} +Inf\n",
        ] {
            assert!(text.contains(expected), "{expected}{text}");
        }
    }

    #[test]
    fn missing_figures_are_omitted() {
        let mut figures = LoadFigures::default();
        let bare = text(&figures.families(ProcessFigures::default()));
        for absent in ["meshmeter_errors_total", "offered_rate", "quantile"] {
            assert!(!bare.contains(absent), "{bare}");
        }
        figures.add(&SecondFigures {
            sent: 12,
            completed: 7,
            failed: 3,
            errors: vec![("timeout", 3)],
            statuses: vec![("200".to_owned(), 7)],
            due: Some(0.5),
            ..SecondFigures::default()
        });
        let full = text(&figures.families(ProcessFigures { cpu_s: 1.5, memory_bytes: 4096 }));
        for expected in [
            "meshmeter_errors_total{kind=\"timeout\"} 3\n",
            "meshmeter_responses_total{code=\"200\"} 7\n",
            "meshmeter_requests_in_flight 2\n",
            "meshmeter_offered_rate 0.5\n",
            "meshmeter_phase{phase=\"connecting\"} 1\n",
            "process_cpu_seconds_total 1.5\n",
        ] {
            assert!(full.contains(expected), "{expected}{full}");
        }
    }
}

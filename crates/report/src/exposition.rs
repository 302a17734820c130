//! The figures of a load so far as Prometheus reads them: text exposition 0.0.4.
//!
//! Times are classic histograms in seconds. They begin with the measured window, as the result does.

use prometheus::TextEncoder;
use prometheus::proto::{Bucket, Counter, Gauge, Histogram, LabelPair, Metric, MetricFamily, MetricType};
use statistics::LatencyHistogram;
use std::collections::BTreeMap;

/// The type of what [`text`] gives, for HTTP.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Upper bounds of the buckets, microseconds: 50 µs to 10 s.
const BOUNDS_US: [u64; 17] = [
    50, 100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 5_000_000, 10_000_000,
];
/// Microseconds in a second.
const US_IN_S: f64 = 1e6;

/// Everything that is told of a load while it runs.
#[derive(Clone, Debug, Default)]
pub struct LoadFigures {
    /// `waiting`, `connecting`, `warming-up`, `measuring` or `draining`.
    pub phase: &'static str,
    /// Requests sent.
    pub sent: u64,
    /// Responses received whole.
    pub completed: u64,
    /// Requests sent and not answered whole.
    pub failed: u64,
    /// What went wrong, by kind.
    pub errors: BTreeMap<String, u64>,
    /// Responses by status code.
    pub statuses: BTreeMap<String, u64>,
    /// Bytes of the requests sent.
    pub bytes_sent: u64,
    /// Bytes of the responses received whole.
    pub bytes_received: u64,
    /// Connections open at the end of the last second.
    pub connections_open: usize,
    /// Requests due in the last second; absent in closed loop.
    pub offered_rate: Option<f64>,
    /// From when requests were due.
    pub response_time: Times,
    /// From when they were sent.
    pub service_time: Times,
    /// From when they were due to when they were sent.
    pub schedule_lag: Times,
}

/// What the generator's process uses.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessFigures {
    /// CPU since its start, seconds.
    pub cpu_s: f64,
    /// Resident memory, bytes.
    pub memory_bytes: u64,
}

/// A distribution in buckets.
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// Values up to each bound, and above the one before it; those above the last one are in `count` alone.
    buckets: [u64; BOUNDS_US.len()],
    count: u64,
    sum_us: f64,
}

impl Times {
    /// Adds every value of a histogram.
    pub fn add(&mut self, histogram: &LatencyHistogram) {
        for value in histogram.recorded() {
            self.count += value.count;
            let bucket = BOUNDS_US.partition_point(|bound| *bound < value.value_us);
            if let Some(bucket) = self.buckets.get_mut(bucket) {
                *bucket += value.count;
            }
        }
        self.sum_us += histogram.mean_us() * histogram.count() as f64;
    }

    /// Adds requests without a response: above every bound. The sum leaves them out.
    pub fn add_without_response(&mut self, requests: u64) {
        self.count += requests;
    }

    fn metric(&self) -> Metric {
        let mut cumulative = 0;
        let buckets = BOUNDS_US.iter().zip(self.buckets).map(|(bound_us, count)| {
            cumulative += count;
            let mut bucket = Bucket::default();
            bucket.set_upper_bound(*bound_us as f64 / US_IN_S);
            bucket.set_cumulative_count(cumulative);
            bucket
        });
        let mut histogram = Histogram::default();
        histogram.set_bucket(buckets.collect());
        histogram.set_sample_count(self.count);
        histogram.set_sample_sum(self.sum_us / US_IN_S);
        let mut metric = Metric::default();
        metric.set_histogram(histogram);
        metric
    }
}

/// The exposition.
#[must_use]
pub fn text(load: &LoadFigures, process: ProcessFigures) -> String {
    let mut families = vec![
        gauges(
            "meshmeter_build_info",
            "The version that measures.",
            vec![(Some(("version", env!("CARGO_PKG_VERSION"))), 1.0)],
        ),
        gauges("meshmeter_phase", "What the load is at.", vec![(Some(("phase", load.phase)), 1.0)]),
        counter("meshmeter_requests_sent_total", "Requests sent in the window.", load.sent as f64),
        counter("meshmeter_requests_completed_total", "Responses received whole.", load.completed as f64),
        counter(
            "meshmeter_requests_failed_total",
            "Requests sent and not answered whole.",
            load.failed as f64,
        ),
        counter("meshmeter_sent_bytes_total", "Bytes of the requests sent.", load.bytes_sent as f64),
        counter(
            "meshmeter_received_bytes_total",
            "Bytes of the whole responses.",
            load.bytes_received as f64,
        ),
        gauge(
            "meshmeter_connections_open",
            "Connections open a second ago at most.",
            load.connections_open as f64,
        ),
        times(
            "meshmeter_response_time_seconds",
            "From when a request was due to the end of its response; failed requests are above every bound and not in the sum.",
            &load.response_time,
        ),
        times(
            "meshmeter_service_time_seconds",
            "From when a request was sent to the end of its response.",
            &load.service_time,
        ),
        times(
            "meshmeter_schedule_lag_seconds",
            "From when a request was due to when it was sent.",
            &load.schedule_lag,
        ),
        counter("process_cpu_seconds_total", "CPU of the generator, this page included.", process.cpu_s),
        gauge("process_resident_memory_bytes", "Memory of the generator.", process.memory_bytes as f64),
    ];
    families.extend(
        load.offered_rate
            .map(|rate| gauge("meshmeter_offered_rate", "Requests that were due in the last second.", rate)),
    );
    families.extend(counters(
        "meshmeter_responses_total",
        "Responses by status code.",
        "code",
        &load.statuses,
    ));
    families.extend(counters("meshmeter_errors_total", "What went wrong, by kind.", "kind", &load.errors));
    families.sort_by(|one, other| one.name().cmp(other.name()));
    TextEncoder::new().encode_to_string(&families).expect("every family has a name and a metric")
}

fn family(name: &str, help: &str, kind: MetricType, metrics: Vec<Metric>) -> MetricFamily {
    let mut family = MetricFamily::default();
    family.set_name(name.to_owned());
    family.set_help(help.to_owned());
    family.set_field_type(kind);
    family.set_metric(metrics);
    family
}

fn gauge(name: &str, help: &str, value: f64) -> MetricFamily {
    gauges(name, help, vec![(None, value)])
}

fn gauges(name: &str, help: &str, values: Vec<(Option<(&str, &str)>, f64)>) -> MetricFamily {
    let metrics = values.into_iter().map(|(label, value)| {
        let mut gauge = Gauge::default();
        gauge.set_value(value);
        let mut metric = Metric::default();
        metric.set_gauge(gauge);
        metric.set_label(label.map(labelled).into_iter().collect());
        metric
    });
    family(name, help, MetricType::GAUGE, metrics.collect())
}

fn counter(name: &str, help: &str, value: f64) -> MetricFamily {
    family(name, help, MetricType::COUNTER, vec![counted(value, None)])
}

/// A counter for each value of a label; absent where there is none.
fn counters(name: &str, help: &str, label: &str, counts: &BTreeMap<String, u64>) -> Option<MetricFamily> {
    let metrics: Vec<Metric> =
        counts.iter().map(|(value, count)| counted(*count as f64, Some((label, value)))).collect();
    (!metrics.is_empty()).then(|| family(name, help, MetricType::COUNTER, metrics))
}

fn counted(value: f64, label: Option<(&str, &str)>) -> Metric {
    let mut counter = Counter::default();
    counter.set_value(value);
    let mut metric = Metric::default();
    metric.set_counter(counter);
    metric.set_label(label.map(labelled).into_iter().collect());
    metric
}

fn labelled((name, value): (&str, &str)) -> LabelPair {
    let mut label = LabelPair::default();
    label.set_name(name.to_owned());
    label.set_value(value.to_owned());
    label
}

fn times(name: &str, help: &str, times: &Times) -> MetricFamily {
    family(name, help, MetricType::HISTOGRAM, vec![times.metric()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn buckets_are_cumulative_and_end_with_every_value() {
        let mut histogram = LatencyHistogram::new();
        for us in [10, 50, 51, 1000, 20_000_000] {
            histogram.record(Duration::from_micros(us));
        }
        let mut figures = LoadFigures { phase: "measuring", ..LoadFigures::default() };
        figures.response_time.add(&histogram);
        figures.response_time.add(&histogram);
        figures.response_time.add_without_response(3);
        let text = text(&figures, ProcessFigures::default());
        for expected in [
            "# TYPE meshmeter_response_time_seconds histogram\n",
            "meshmeter_response_time_seconds_bucket{le=\"0.00005\"} 4\n",
            "meshmeter_response_time_seconds_bucket{le=\"0.0001\"} 6\n",
            "meshmeter_response_time_seconds_bucket{le=\"0.001\"} 8\n",
            "meshmeter_response_time_seconds_bucket{le=\"10\"} 8\n",
            "meshmeter_response_time_seconds_bucket{le=\"+Inf\"} 13\n",
            "meshmeter_response_time_seconds_count 13\n",
        ] {
            assert!(text.contains(expected), "{expected}{text}");
        }
    }

    #[test]
    fn what_is_not_there_is_left_out() {
        let mut figures = LoadFigures { phase: "connecting", ..LoadFigures::default() };
        let bare = text(&figures, ProcessFigures::default());
        assert!(!bare.contains("meshmeter_errors_total") && !bare.contains("offered_rate"), "{bare}");
        figures.errors.insert("timeout".into(), 3);
        figures.statuses.insert("200".into(), 7);
        figures.offered_rate = Some(0.5);
        let full = text(&figures, ProcessFigures { cpu_s: 1.5, memory_bytes: 4096 });
        for expected in [
            "meshmeter_errors_total{kind=\"timeout\"} 3\n",
            "meshmeter_responses_total{code=\"200\"} 7\n",
            "meshmeter_offered_rate 0.5\n",
            "meshmeter_phase{phase=\"connecting\"} 1\n",
            "process_cpu_seconds_total 1.5\n",
        ] {
            assert!(full.contains(expected), "{expected}{full}");
        }
    }
}

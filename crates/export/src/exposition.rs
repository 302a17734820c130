//! Metrics as Prometheus scrapes them: text exposition 0.0.4, with classic histograms.

use crate::distribution::Distribution;
use crate::metric::{Families, Family, Kind, Point, Value};
use prometheus::TextEncoder;
use prometheus::proto::{Bucket, Counter, Gauge, Histogram, LabelPair, Metric, MetricFamily, MetricType};

/// HTTP content type of [`text`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The metrics in Prometheus text format.
#[must_use]
pub fn text(families: &Families) -> String {
    let families: Vec<MetricFamily> = families.iter().map(family).collect();
    let text = TextEncoder::new().encode_to_string(&families).expect("every family has a name and a metric");
    // The library formats an infinite gauge as Rust does.
    text.replace(" inf\n", " +Inf\n")
}

fn family(family: &Family) -> MetricFamily {
    let mut encoded = MetricFamily::default();
    encoded.set_name(family.name.to_owned());
    encoded.set_help(family.help.to_owned());
    encoded.set_field_type(match family.kind {
        Kind::Gauge => MetricType::GAUGE,
        Kind::Counter => MetricType::COUNTER,
        Kind::Histogram => MetricType::HISTOGRAM,
    });
    encoded.set_metric(family.points.iter().map(|point| metric(family.kind, point)).collect());
    encoded
}

fn metric(kind: Kind, point: &Point) -> Metric {
    let mut metric = Metric::default();
    metric.set_label(point.labels.iter().map(label).collect());
    match (kind, &point.value) {
        (_, Value::Distribution(distribution)) => metric.set_histogram(histogram(distribution)),
        (Kind::Counter, Value::Number(value)) => {
            let mut counter = Counter::default();
            counter.set_value(*value);
            metric.set_counter(counter);
        }
        (_, Value::Number(value)) => {
            let mut gauge = Gauge::default();
            gauge.set_value(*value);
            metric.set_gauge(gauge);
        }
        // An exposition simply omits series that have ended.
        (_, Value::Ended) => {}
    }
    metric
}

fn label((name, value): (&std::borrow::Cow<'static, str>, &String)) -> LabelPair {
    let mut label = LabelPair::default();
    label.set_name(name.to_string());
    label.set_value(value.clone());
    label
}

fn histogram(distribution: &Distribution) -> Histogram {
    let buckets = distribution.cumulative().map(|(bound_s, count)| {
        let mut bucket = Bucket::default();
        bucket.set_upper_bound(bound_s);
        bucket.set_cumulative_count(count);
        bucket
    });
    let mut histogram = Histogram::default();
    histogram.set_bucket(buckets.collect());
    histogram.set_sample_count(distribution.count());
    histogram.set_sample_sum(distribution.sum_s());
    histogram
}

//! OTLP metrics as a collector decodes them.

use super::Received;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as AnyValue;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{Metric, number_data_point};
use prost::Message as _;
use std::collections::BTreeMap;

/// A data point of any metric.
#[derive(Clone, Debug)]
pub struct Point {
    pub attributes: BTreeMap<String, String>,
    pub start_ns: u64,
    pub time_ns: u64,
    /// `None` if the series has ended.
    pub value: Option<f64>,
    /// Counts per bucket, for histograms.
    pub buckets: Vec<u64>,
    pub flags: u32,
}

/// All metrics with their points, in request order.
pub fn read(requests: &[Received]) -> BTreeMap<String, Vec<Point>> {
    let mut metrics: BTreeMap<String, Vec<Point>> = BTreeMap::new();
    for request in requests {
        assert_eq!(request.header("content-type"), Some("application/x-protobuf"));
        assert_eq!(request.path, "/v1/metrics");
        let message = ExportMetricsServiceRequest::decode(request.body.as_slice()).unwrap();
        // The message has no fields beyond the definition.
        assert_eq!(message.encoded_len(), request.body.len());
        for resource in message.resource_metrics {
            let resource_attributes = texts(&resource.resource.unwrap().attributes);
            assert_eq!(resource_attributes["service.name"], "meshmeter");
            for metric in resource.scope_metrics.into_iter().flat_map(|scope| scope.metrics) {
                metrics.entry(metric.name.clone()).or_default().extend(points(metric));
            }
        }
    }
    metrics
}

fn points(metric: Metric) -> Vec<Point> {
    assert!(!metric.description.is_empty() && !metric.unit.is_empty(), "{}", metric.name);
    let (name, data) = (metric.name, metric.data.unwrap());
    let numbers = match data {
        Data::Gauge(gauge) => gauge.data_points,
        Data::Sum(sum) => {
            assert!(sum.is_monotonic && sum.aggregation_temporality == 2, "{name}");
            sum.data_points
        }
        Data::Histogram(histogram) => {
            assert_eq!(histogram.aggregation_temporality, 2, "{name}");
            let point = |point: opentelemetry_proto::tonic::metrics::v1::HistogramDataPoint| {
                let is_present = point.flags & 1 == 0;
                assert_eq!(point.bucket_counts.iter().sum::<u64>(), point.count, "{name}");
                if is_present {
                    assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1, "{name}");
                }
                Point {
                    attributes: texts(&point.attributes),
                    start_ns: point.start_time_unix_nano,
                    time_ns: point.time_unix_nano,
                    value: is_present.then_some(point.count as f64),
                    buckets: point.bucket_counts,
                    flags: point.flags,
                }
            };
            return histogram.data_points.into_iter().map(point).collect();
        }
        other => panic!("{name}: {other:?}"),
    };
    let point = |point: opentelemetry_proto::tonic::metrics::v1::NumberDataPoint| Point {
        attributes: texts(&point.attributes),
        start_ns: point.start_time_unix_nano,
        time_ns: point.time_unix_nano,
        value: point.value.map(|value| match value {
            number_data_point::Value::AsDouble(value) => value,
            number_data_point::Value::AsInt(value) => value as f64,
        }),
        buckets: Vec::new(),
        flags: point.flags,
    };
    numbers.into_iter().map(point).collect()
}

fn texts(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |attribute: &KeyValue| match attribute.value.clone().unwrap().value.unwrap() {
        AnyValue::StringValue(text) => (attribute.key.clone(), text),
        other => panic!("{}: {other:?}", attribute.key),
    };
    attributes.iter().map(text).collect()
}

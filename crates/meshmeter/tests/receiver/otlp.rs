//! OTLP metrics as a collector decodes them, strictly: no unknown fields.

use super::Received;
use super::protobuf::{check_known, descriptor, float, inner, integer, list, messages, number, text};
use prost_reflect::DynamicMessage;
use std::collections::BTreeMap;

/// OTLP 1.10.0, the definitions of metrics, without what is never sent (summaries, exponential histograms, exemplars).
const DEFINITION: &str = r#"
syntax = "proto3";
package opentelemetry.proto;
message ExportMetricsServiceRequest { repeated ResourceMetrics resource_metrics = 1; }
message ResourceMetrics { Resource resource = 1; repeated ScopeMetrics scope_metrics = 2; string schema_url = 3; }
message Resource { repeated KeyValue attributes = 1; uint32 dropped_attributes_count = 2; }
message ScopeMetrics { InstrumentationScope scope = 1; repeated Metric metrics = 2; string schema_url = 3; }
message InstrumentationScope {
  string name = 1;
  string version = 2;
  repeated KeyValue attributes = 3;
  uint32 dropped_attributes_count = 4;
}
message KeyValue { string key = 1; AnyValue value = 2; }
message AnyValue {
  oneof value { string string_value = 1; bool bool_value = 2; int64 int_value = 3; double double_value = 4; }
}
message Metric {
  string name = 1;
  string description = 2;
  string unit = 3;
  oneof data { Gauge gauge = 5; Sum sum = 7; Histogram histogram = 9; }
  repeated KeyValue metadata = 12;
}
enum AggregationTemporality {
  AGGREGATION_TEMPORALITY_UNSPECIFIED = 0;
  AGGREGATION_TEMPORALITY_DELTA = 1;
  AGGREGATION_TEMPORALITY_CUMULATIVE = 2;
}
message Gauge { repeated NumberDataPoint data_points = 1; }
message Sum {
  repeated NumberDataPoint data_points = 1;
  AggregationTemporality aggregation_temporality = 2;
  bool is_monotonic = 3;
}
message Histogram {
  repeated HistogramDataPoint data_points = 1;
  AggregationTemporality aggregation_temporality = 2;
}
message NumberDataPoint {
  repeated KeyValue attributes = 7;
  fixed64 start_time_unix_nano = 2;
  fixed64 time_unix_nano = 3;
  oneof value { double as_double = 4; sfixed64 as_int = 6; }
  uint32 flags = 8;
}
message HistogramDataPoint {
  repeated KeyValue attributes = 9;
  fixed64 start_time_unix_nano = 2;
  fixed64 time_unix_nano = 3;
  fixed64 count = 4;
  optional double sum = 5;
  repeated fixed64 bucket_counts = 6;
  repeated double explicit_bounds = 7;
  uint32 flags = 10;
  optional double min = 11;
  optional double max = 12;
}
"#;

/// Flag of a point of a series that has ended.
const NO_RECORDED_VALUE: u64 = 1;
const CUMULATIVE: i32 = 2;

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
    pub flags: u64,
}

/// All metrics with their points, in request order.
pub fn read(requests: &[Received]) -> BTreeMap<String, Vec<Point>> {
    let descriptor = descriptor(DEFINITION, "opentelemetry.proto.ExportMetricsServiceRequest");
    let mut metrics: BTreeMap<String, Vec<Point>> = BTreeMap::new();
    for request in requests {
        assert_eq!(request.header("content-type"), Some("application/x-protobuf"));
        assert_eq!(request.path, "/v1/metrics");
        let message = DynamicMessage::decode(descriptor.clone(), request.body.as_slice()).unwrap();
        check_known(&message);
        for resource in messages(&message, "resource_metrics") {
            let attributes = texts(&inner(&resource, "resource").unwrap());
            assert_eq!(attributes["service.name"], "meshmeter");
            for scope in messages(&resource, "scope_metrics") {
                inner(&scope, "scope");
                for metric in messages(&scope, "metrics") {
                    metrics.entry(text(&metric, "name")).or_default().extend(points(&metric));
                }
            }
        }
    }
    metrics
}

fn points(metric: &DynamicMessage) -> Vec<Point> {
    let name = text(metric, "name");
    assert!(!text(metric, "description").is_empty() && !text(metric, "unit").is_empty(), "{name}");
    let is_cumulative = |data: &DynamicMessage| {
        data.get_field_by_name("aggregation_temporality").unwrap().as_enum_number() == Some(CUMULATIVE)
    };
    if let Some(gauge) = inner(metric, "gauge") {
        messages(&gauge, "data_points").iter().map(of_a_number).collect()
    } else if let Some(sum) = inner(metric, "sum") {
        let is_monotonic = sum.get_field_by_name("is_monotonic").unwrap().as_bool().unwrap();
        assert!(is_monotonic && is_cumulative(&sum), "{name}");
        messages(&sum, "data_points").iter().map(of_a_number).collect()
    } else {
        let histogram = inner(metric, "histogram").unwrap_or_else(|| panic!("{name}: {metric:?}"));
        assert!(is_cumulative(&histogram), "{name}");
        messages(&histogram, "data_points").iter().map(|point| of_a_histogram(point, &name)).collect()
    }
}

fn of_a_number(point: &DynamicMessage) -> Point {
    let value = if point.has_field_by_name("as_double") {
        Some(float(point, "as_double"))
    } else {
        point.has_field_by_name("as_int").then(|| integer(point, "as_int") as f64)
    };
    Point { value, ..without_value(point) }
}

fn of_a_histogram(point: &DynamicMessage, name: &str) -> Point {
    let buckets: Vec<u64> =
        list(point, "bucket_counts").iter().map(|count| count.as_u64().unwrap()).collect();
    assert_eq!(buckets.iter().sum::<u64>(), number(point, "count"), "{name}");
    let without_value = without_value(point);
    let is_present = without_value.flags & NO_RECORDED_VALUE == 0;
    if is_present {
        assert_eq!(buckets.len(), list(point, "explicit_bounds").len() + 1, "{name}");
    }
    let value = is_present.then(|| number(point, "count") as f64);
    Point { value, buckets, ..without_value }
}

fn without_value(point: &DynamicMessage) -> Point {
    Point {
        attributes: texts(point),
        start_ns: number(point, "start_time_unix_nano"),
        time_ns: number(point, "time_unix_nano"),
        value: None,
        buckets: Vec::new(),
        flags: number(point, "flags"),
    }
}

fn texts(message: &DynamicMessage) -> BTreeMap<String, String> {
    let attribute = |attribute: &DynamicMessage| {
        let value = inner(attribute, "value").unwrap();
        assert!(value.has_field_by_name("string_value"), "{attribute:?}");
        (text(attribute, "key"), text(&value, "string_value"))
    };
    messages(message, "attributes").iter().map(attribute).collect()
}

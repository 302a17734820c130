//! OTLP metrics: frames become an `ExportMetricsServiceRequest`, cumulative since the start of the load.
//!
//! Labels are attributes of the points, not of the resource, so that they become labels again behind a
//! collector. Histograms have explicit bounds. The last bucket is unbounded and contains requests without a
//! response.

mod messages;

use crate::batch::Frame;
use crate::distribution::Distribution;
use crate::metric::{Family, Kind, Labels, Point, Value, unit};
use messages::{
    AnyValue, ExportMetricsServiceRequest, ExportMetricsServiceResponse, Gauge, Histogram,
    HistogramDataPoint, InstrumentationScope, KeyValue, Metric, MetricData, NumberDataPoint, NumberValue,
    Resource, ResourceMetrics, ScopeMetrics, Sum,
};
use prost::Message as _;
use std::collections::BTreeMap;

/// Content type of the body.
pub(crate) const CONTENT_TYPE: &str = "application/x-protobuf";
/// Flag of a point that ends its series.
const NO_RECORDED_VALUE: u32 = 1;
/// Aggregation temporality: counts accumulate from a fixed start.
const CUMULATIVE: i32 = 2;
/// Nanoseconds per millisecond.
const NS_IN_MS: u64 = 1_000_000;

/// An encoded request, and the number of its points.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Encoded {
    pub body: Vec<u8>,
    pub points: u64,
}

/// Encodes these frames as one request. `common`: labels of every point.
pub(crate) fn encode(frames: &[Frame], common: &Labels) -> Encoded {
    let mut metrics: BTreeMap<&str, Metric> = BTreeMap::new();
    let mut points = 0;
    for frame in frames {
        for family in frame.families.iter() {
            let metric = metrics.entry(family.name).or_insert_with(|| empty_metric(family));
            for point in &family.points {
                points += 1;
                add(metric, point, frame.time_ms, common);
            }
        }
    }
    let request = ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(Resource {
                attributes: vec![
                    attribute("service.name", "meshmeter"),
                    attribute("service.version", env!("CARGO_PKG_VERSION")),
                ],
            }),
            scope_metrics: vec![ScopeMetrics {
                scope: Some(InstrumentationScope {
                    name: "meshmeter".to_owned(),
                    version: env!("CARGO_PKG_VERSION").to_owned(),
                }),
                metrics: metrics.into_values().collect(),
            }],
        }],
    };
    Encoded { body: request.encode_to_vec(), points }
}

/// Number of points that the receiver rejected, and the reason.
pub(crate) fn rejected(response: &[u8]) -> Option<(u64, String)> {
    let response = ExportMetricsServiceResponse::decode(response).ok()?;
    let partial = response.partial_success?;
    let points = u64::try_from(partial.rejected_data_points).ok().filter(|points| *points > 0)?;
    Some((points, partial.error_message))
}

fn empty_metric(family: &Family) -> Metric {
    let data = match family.kind {
        Kind::Gauge => MetricData::Gauge(Gauge::default()),
        Kind::Counter => MetricData::Sum(Sum {
            aggregation_temporality: CUMULATIVE,
            is_monotonic: true,
            data_points: Vec::new(),
        }),
        Kind::Histogram => {
            MetricData::Histogram(Histogram { aggregation_temporality: CUMULATIVE, data_points: Vec::new() })
        }
    };
    let unit = match unit(family.name) {
        "seconds" => "s",
        "bytes" => "By",
        _ => "1",
    };
    Metric {
        name: family.name.to_owned(),
        description: family.help.to_owned(),
        unit: unit.to_owned(),
        data: Some(data),
    }
}

fn add(metric: &mut Metric, point: &Point, time_ms: i64, common: &Labels) {
    let (start_time_unix_nano, time_unix_nano) = (nanos(point.since_ms), nanos(time_ms));
    let mut labels = common.clone();
    labels.extend(point.labels.iter().map(|(name, value)| (name.clone(), value.clone())));
    let attributes = labels.iter().map(|(name, value)| attribute(name, value)).collect();
    let flags = if point.value == Value::Ended { NO_RECORDED_VALUE } else { 0 };
    match &mut metric.data {
        Some(MetricData::Gauge(Gauge { data_points }) | MetricData::Sum(Sum { data_points, .. })) => {
            let value = match &point.value {
                Value::Number(value) => Some(NumberValue::AsDouble(*value)),
                Value::Distribution(_) | Value::Ended => None,
            };
            data_points.push(NumberDataPoint {
                attributes,
                start_time_unix_nano,
                time_unix_nano,
                value,
                flags,
            });
        }
        Some(MetricData::Histogram(Histogram { data_points, .. })) => {
            let empty = HistogramDataPoint {
                attributes,
                start_time_unix_nano,
                time_unix_nano,
                flags,
                ..HistogramDataPoint::default()
            };
            data_points.push(match &point.value {
                Value::Distribution(distribution) => HistogramDataPoint {
                    count: distribution.count(),
                    sum: Some(distribution.sum_s()),
                    bucket_counts: distribution.classic().collect(),
                    explicit_bounds: Distribution::bounds_s().collect(),
                    ..empty
                },
                Value::Number(_) | Value::Ended => empty,
            });
        }
        None => {}
    }
}

fn nanos(time_ms: i64) -> u64 {
    u64::try_from(time_ms).unwrap_or(0) * NS_IN_MS
}

fn attribute(key: &str, value: &str) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { string_value: value.to_owned() }) }
}

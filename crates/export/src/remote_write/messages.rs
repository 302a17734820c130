//! Messages of Prometheus remote write: `prometheus.WriteRequest` of 1.0 and `io.prometheus.write.v2.Request`
//! of 2.0, limited to the fields that are sent.

/// 1.0: `prometheus.WriteRequest`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct WriteRequest {
    #[prost(message, repeated, tag = "1")]
    pub timeseries: Vec<TimeSeriesV1>,
    #[prost(message, repeated, tag = "3")]
    pub metadata: Vec<MetadataV1>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct TimeSeriesV1 {
    #[prost(message, repeated, tag = "1")]
    pub labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    pub samples: Vec<Sample>,
    #[prost(message, repeated, tag = "4")]
    pub histograms: Vec<Histogram>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Label {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub value: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct MetadataV1 {
    #[prost(enumeration = "MetricType", tag = "1")]
    pub metric_type: i32,
    #[prost(string, tag = "2")]
    pub metric_family_name: String,
    #[prost(string, tag = "4")]
    pub help: String,
    #[prost(string, tag = "5")]
    pub unit: String,
}

/// 2.0: `io.prometheus.write.v2.Request`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Request {
    #[prost(string, repeated, tag = "4")]
    pub symbols: Vec<String>,
    #[prost(message, repeated, tag = "5")]
    pub timeseries: Vec<TimeSeriesV2>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct TimeSeriesV2 {
    #[prost(uint32, repeated, tag = "1")]
    pub labels_refs: Vec<u32>,
    #[prost(message, repeated, tag = "2")]
    pub samples: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    pub histograms: Vec<Histogram>,
    #[prost(message, optional, tag = "5")]
    pub metadata: Option<MetadataV2>,
    /// Used by release candidates before 2.0-rc.4; in later ones the samples have this time.
    #[prost(int64, tag = "6")]
    pub created_timestamp: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct MetadataV2 {
    #[prost(enumeration = "MetricType", tag = "1")]
    pub metric_type: i32,
    #[prost(uint32, tag = "3")]
    pub help_ref: u32,
    #[prost(uint32, tag = "4")]
    pub unit_ref: u32,
}

/// A sample; the start timestamp exists only in 2.0.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct Sample {
    #[prost(double, tag = "1")]
    pub value: f64,
    #[prost(int64, tag = "2")]
    pub timestamp: i64,
    #[prost(int64, tag = "3")]
    pub start_timestamp: i64,
}

/// A native histogram with integer counts; the start timestamp exists only in 2.0.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Histogram {
    #[prost(oneof = "Count", tags = "1")]
    pub count: Option<Count>,
    #[prost(double, tag = "3")]
    pub sum: f64,
    #[prost(sint32, tag = "4")]
    pub schema: i32,
    #[prost(double, tag = "5")]
    pub zero_threshold: f64,
    #[prost(oneof = "ZeroCount", tags = "6")]
    pub zero_count: Option<ZeroCount>,
    #[prost(message, repeated, tag = "11")]
    pub positive_spans: Vec<BucketSpan>,
    #[prost(sint64, repeated, tag = "12")]
    pub positive_deltas: Vec<i64>,
    #[prost(int64, tag = "15")]
    pub timestamp: i64,
    #[prost(int64, tag = "17")]
    pub start_timestamp: i64,
}

#[derive(Clone, Copy, PartialEq, prost::Oneof)]
pub(super) enum Count {
    #[prost(uint64, tag = "1")]
    Int(u64),
}

#[derive(Clone, Copy, PartialEq, prost::Oneof)]
pub(super) enum ZeroCount {
    #[prost(uint64, tag = "6")]
    Int(u64),
}

/// Consecutive buckets.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(super) struct BucketSpan {
    /// Number of buckets between this span and the previous one.
    #[prost(sint32, tag = "1")]
    pub offset: i32,
    #[prost(uint32, tag = "2")]
    pub length: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, prost::Enumeration)]
#[repr(i32)]
pub(super) enum MetricType {
    Unspecified = 0,
    Counter = 1,
    Gauge = 2,
    Histogram = 3,
}

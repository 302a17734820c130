//! Decodes remote write 2.0 strictly, by the protocol's own definition: no unknown fields, valid references,
//! samples in order.

use super::Received;
use super::protobuf::{check_known, descriptor, float, integer, list, number};
use prost_reflect::DynamicMessage;
use std::collections::BTreeMap;

/// `io.prometheus.write.v2.Request` of 2.0-rc.4, with the field that held the start of a series before.
const DEFINITION: &str = r#"
syntax = "proto3";
package io.prometheus.write.v2;
message Request {
  repeated string symbols = 4;
  repeated TimeSeries timeseries = 5;
}
message TimeSeries {
  repeated uint32 labels_refs = 1;
  repeated Sample samples = 2;
  repeated Histogram histograms = 3;
  Metadata metadata = 5;
  int64 created_timestamp = 6;
}
message Sample { double value = 1; int64 timestamp = 2; int64 start_timestamp = 3; }
message Metadata {
  enum MetricType { METRIC_TYPE_UNSPECIFIED = 0; METRIC_TYPE_COUNTER = 1; METRIC_TYPE_GAUGE = 2; METRIC_TYPE_HISTOGRAM = 3; }
  MetricType type = 1;
  uint32 help_ref = 3;
  uint32 unit_ref = 4;
}
message Histogram {
  oneof count { uint64 count_int = 1; double count_float = 2; }
  double sum = 3;
  sint32 schema = 4;
  double zero_threshold = 5;
  oneof zero_count { uint64 zero_count_int = 6; double zero_count_float = 7; }
  repeated BucketSpan positive_spans = 11;
  repeated sint64 positive_deltas = 12;
  repeated double positive_counts = 13;
  int64 timestamp = 15;
  int64 start_timestamp = 17;
}
message BucketSpan { sint32 offset = 1; uint32 length = 2; }
"#;

/// The value that ends a series (stale marker).
const STALE: u64 = 0x7ff0_0000_0000_0002;

/// Series by labels, each with its samples.
#[derive(Debug, Default)]
pub struct Store(pub BTreeMap<BTreeMap<String, String>, Vec<Stored>>);

#[derive(Clone, Debug)]
pub struct Stored {
    pub time_ms: i64,
    pub start_ms: i64,
    pub value: f64,
    /// Bounds (exclusive and inclusive) and count per bucket, for native histograms.
    pub buckets: Option<Vec<(f64, f64, u64)>>,
}

impl Stored {
    pub fn is_stale(&self) -> bool {
        self.value.to_bits() == STALE
    }
}

impl Store {
    /// Reads requests of version 2.0 in order.
    pub fn read(requests: &[Received]) -> Self {
        let descriptor = descriptor(DEFINITION, "io.prometheus.write.v2.Request");
        let mut store = Self::default();
        for request in requests {
            assert_eq!(request.header("content-encoding"), Some("snappy"));
            assert_eq!(
                request.header("content-type"),
                Some("application/x-protobuf;proto=io.prometheus.write.v2.Request")
            );
            assert_eq!(request.header("x-prometheus-remote-write-version"), Some("2.0.0"));
            assert!(request.header("user-agent").is_some_and(|agent| agent.starts_with("meshmeter/")));
            let body = snap::raw::Decoder::new().decompress_vec(&request.body).unwrap();
            store.add(&DynamicMessage::decode(descriptor.clone(), body.as_slice()).unwrap());
        }
        store
    }

    /// The only series with this name and labels.
    pub fn series(&self, name: &str, labels: &[(&str, &str)]) -> &[Stored] {
        let wanted = |known: &BTreeMap<String, String>| {
            known["__name__"] == name
                && labels.iter().all(|(name, value)| known.get(*name).map(String::as_str) == Some(value))
        };
        let found: Vec<_> = self.0.iter().filter(|(known, _)| wanted(known)).collect();
        assert_eq!(found.len(), 1, "{name}{labels:?} among {:#?}", self.0.keys());
        found[0].1
    }

    fn add(&mut self, request: &DynamicMessage) {
        check_known(request);
        let symbols: Vec<String> =
            list(request, "symbols").iter().map(|text| text.as_str().unwrap().to_owned()).collect();
        assert_eq!(symbols[0], "");
        let mut distinct = symbols.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), symbols.len(), "each text stands once");
        for series in list(request, "timeseries") {
            self.add_series(series.as_message().unwrap(), &symbols);
        }
    }

    fn add_series(&mut self, series: &DynamicMessage, symbols: &[String]) {
        check_known(series);
        let refs: Vec<usize> =
            list(series, "labels_refs").iter().map(|place| place.as_u32().unwrap() as usize).collect();
        let texts: Vec<&String> = refs.iter().map(|place| &symbols[*place]).collect();
        assert!(texts.iter().all(|text| !text.is_empty()) && texts.len().is_multiple_of(2), "{texts:?}");
        assert!(texts.chunks(2).is_sorted_by(|one, other| one[0] < other[0]), "{texts:?}");
        let labels: BTreeMap<String, String> =
            texts.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
        let metadata = series.get_field_by_name("metadata").unwrap();
        let metadata = metadata.as_message().unwrap();
        check_known(metadata);
        let kind = metadata.get_field_by_name("type").unwrap().as_enum_number().unwrap();
        assert!(kind > 0 && !symbols[number(metadata, "help_ref") as usize].is_empty(), "{labels:?}");
        let (samples, histograms) = (list(series, "samples"), list(series, "histograms"));
        assert!(samples.is_empty() != histograms.is_empty(), "{labels:?} has one of both");
        let stored = samples.iter().map(|sample| read_sample(sample.as_message().unwrap()));
        let stored = stored.chain(histograms.iter().map(|one| read_histogram(one.as_message().unwrap())));
        let known = self.0.entry(labels.clone()).or_default();
        for sample in stored {
            assert!(known.last().is_none_or(|last| last.time_ms < sample.time_ms), "{labels:?} in order");
            // Counters and histograms, not gauges.
            assert_eq!(sample.start_ms > 0, kind != 2, "{labels:?}");
            assert!(sample.start_ms <= sample.time_ms, "{labels:?}");
            assert_eq!(integer(series, "created_timestamp"), sample.start_ms);
            known.push(sample);
        }
    }
}

fn read_sample(sample: &DynamicMessage) -> Stored {
    check_known(sample);
    Stored {
        time_ms: integer(sample, "timestamp"),
        start_ms: integer(sample, "start_timestamp"),
        value: float(sample, "value"),
        buckets: None,
    }
}

/// A native histogram; its value is the sum.
fn read_histogram(histogram: &DynamicMessage) -> Stored {
    check_known(histogram);
    let width = |bucket: i32| {
        (f64::from(bucket)
            / f64::from(histogram.get_field_by_name("schema").unwrap().as_i32().unwrap()).exp2())
        .exp2()
    };
    let zero = (f64::NEG_INFINITY, float(histogram, "zero_threshold"), number(histogram, "zero_count_int"));
    let mut buckets = vec![zero];
    let deltas: Vec<i64> =
        list(histogram, "positive_deltas").iter().map(|delta| delta.as_i64().unwrap()).collect();
    let mut deltas = deltas.into_iter();
    let (mut place, mut count) = (0, 0);
    for span in list(histogram, "positive_spans") {
        let span = span.as_message().unwrap();
        check_known(span);
        place += span.get_field_by_name("offset").unwrap().as_i32().unwrap();
        for _ in 0..span.get_field_by_name("length").unwrap().as_u32().unwrap() {
            count += deltas.next().expect("a delta per bucket");
            buckets.push((width(place - 1), width(place), u64::try_from(count).unwrap()));
            place += 1;
        }
    }
    assert_eq!(deltas.next(), None, "a bucket per delta");
    let value = float(histogram, "sum");
    let all: u64 = buckets.iter().map(|(_, _, count)| count).sum();
    assert_eq!(all, number(histogram, "count_int"), "buckets hold every value");
    Stored {
        time_ms: integer(histogram, "timestamp"),
        start_ms: integer(histogram, "start_timestamp"),
        value,
        buckets: Some(buckets),
    }
}

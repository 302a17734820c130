//! Remote write 2.0: each string occurs once in the request, and series refer to it.

use super::messages::{MetadataV2, MetricType, Request, TimeSeriesV2};
use super::series::SeriesSet;
use crate::metric::Kind;
use prost::Message as _;
use std::collections::HashMap;

/// Symbol table of a request. The first string is empty, as the protocol requires.
struct Symbols {
    texts: Vec<String>,
    places: HashMap<String, u32>,
}

impl Symbols {
    fn new() -> Self {
        Self { texts: vec![String::new()], places: HashMap::from([(String::new(), 0)]) }
    }

    fn place(&mut self, text: &str) -> u32 {
        if let Some(place) = self.places.get(text) {
            return *place;
        }
        let place = u32::try_from(self.texts.len()).expect("a request has fewer than 2^32 texts");
        self.texts.push(text.to_owned());
        self.places.insert(text.to_owned(), place);
        place
    }
}

pub(super) fn message(set: SeriesSet) -> Vec<u8> {
    let mut symbols = Symbols::new();
    let mut timeseries = Vec::with_capacity(set.series.len());
    for (labels, mut series) in set.series {
        let labels_refs = labels
            .iter()
            .flat_map(|(name, value)| [&**name, value.as_str()])
            .map(|text| symbols.place(text))
            .collect();
        let metadata = MetadataV2 {
            metric_type: metric_type(series.kind) as i32,
            help_ref: symbols.place(series.help),
            unit_ref: symbols.place(series.unit()),
        };
        series.samples.iter_mut().for_each(|sample| sample.start_timestamp = series.since_ms);
        series.histograms.iter_mut().for_each(|histogram| histogram.start_timestamp = series.since_ms);
        timeseries.push(TimeSeriesV2 {
            labels_refs,
            samples: series.samples,
            histograms: series.histograms,
            metadata: Some(metadata),
            created_timestamp: series.since_ms,
        });
    }
    Request { symbols: symbols.texts, timeseries }.encode_to_vec()
}

/// Metric type in metadata, with the same numbers in both versions.
pub(super) fn metric_type(kind: Kind) -> MetricType {
    match kind {
        Kind::Gauge => MetricType::Gauge,
        Kind::Counter => MetricType::Counter,
        Kind::Histogram => MetricType::Histogram,
    }
}

//! Remote write 1.0.

use super::messages::{Label, MetadataV1, TimeSeriesV1, WriteRequest};
use super::series::{Series, SeriesSet};
use super::v2::metric_type;
use crate::metric::Labels;
use prost::Message as _;
use std::collections::BTreeMap;

pub(super) fn message(set: SeriesSet) -> Vec<u8> {
    let metadata: BTreeMap<&str, MetadataV1> =
        set.series.values().map(|series| (series.family, metadata(series))).collect();
    let timeseries = set.series.into_iter().map(time_series).collect();
    WriteRequest { timeseries, metadata: metadata.into_values().collect() }.encode_to_vec()
}

fn metadata(series: &Series) -> MetadataV1 {
    MetadataV1 {
        metric_type: metric_type(series.kind) as i32,
        metric_family_name: series.family.to_owned(),
        help: series.help.to_owned(),
        unit: series.unit().to_owned(),
    }
}

fn time_series((labels, series): (Labels, Series)) -> TimeSeriesV1 {
    let labels = labels.into_iter().map(|(name, value)| Label { name: name.into_owned(), value });
    TimeSeriesV1 { labels: labels.collect(), samples: series.samples, histograms: series.histograms }
}

//! Series of samples: the intermediate form between metrics and a message.

use super::messages::{Histogram, Sample};
use super::{STALE, native};
use crate::batch::Frame;
use crate::destination::HistogramForm;
use crate::distribution::Distribution;
use crate::metric::{Kind, Labels, Point, Value, unit};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Series by their labels, including the name as `__name__`.
pub(super) struct SeriesSet {
    form: HistogramForm,
    common: Labels,
    pub series: BTreeMap<Labels, Series>,
}

/// Samples of one series, oldest first.
pub(super) struct Series {
    pub family: &'static str,
    pub help: &'static str,
    pub kind: Kind,
    pub since_ms: i64,
    pub samples: Vec<Sample>,
    pub histograms: Vec<Histogram>,
}

/// The metric of a point, and its timestamp.
#[derive(Clone, Copy)]
struct Metric<'a> {
    name: &'static str,
    help: &'static str,
    kind: Kind,
    time_ms: i64,
    point: &'a Point,
}

impl Series {
    pub(super) fn unit(&self) -> &'static str {
        unit(self.family)
    }
}

impl SeriesSet {
    pub(super) fn from_frames(frames: &[Frame], common: &Labels, form: HistogramForm) -> Self {
        let mut set = Self { form, common: common.clone(), series: BTreeMap::new() };
        for frame in frames {
            for family in frame.families.iter() {
                for point in &family.points {
                    set.add(Metric {
                        name: family.name,
                        help: family.help,
                        kind: family.kind,
                        time_ms: frame.time_ms,
                        point,
                    });
                }
            }
        }
        set
    }

    /// Number of samples and histograms in all series.
    pub(super) fn counts(&self) -> (u64, u64) {
        self.series.values().fold((0, 0), |(samples, histograms), series| {
            (samples + series.samples.len() as u64, histograms + series.histograms.len() as u64)
        })
    }

    fn add(&mut self, metric: Metric<'_>) {
        match (metric.kind, &metric.point.value) {
            (Kind::Histogram, value) => {
                let distribution = match value {
                    Value::Distribution(distribution) => Some(&**distribution),
                    Value::Number(_) | Value::Ended => None,
                };
                match self.form {
                    HistogramForm::Classic => self.classic(metric, distribution),
                    HistogramForm::Native => {
                        let histogram = distribution.map_or_else(native::ended, native::histogram);
                        self.native(metric, histogram);
                    }
                }
            }
            (_, Value::Number(value)) => self.number(metric, "", None, *value),
            (_, Value::Ended | Value::Distribution(_)) => self.number(metric, "", None, STALE),
        }
    }

    /// One series per bucket, and the sum and count. All of them end if there is no distribution.
    fn classic(&mut self, metric: Metric<'_>, distribution: Option<&Distribution>) {
        let count = |count: u64| if distribution.is_some() { count as f64 } else { STALE };
        let absent = Distribution::default();
        let counted = distribution.unwrap_or(&absent);
        for (bound_s, cumulative) in counted.cumulative() {
            self.number(metric, "_bucket", Some(bound_s.to_string()), count(cumulative));
        }
        self.number(metric, "_bucket", Some("+Inf".to_owned()), count(counted.count()));
        self.number(metric, "_count", None, count(counted.count()));
        let sum = if distribution.is_some() { counted.sum_s() } else { STALE };
        self.number(metric, "_sum", None, sum);
    }

    fn number(&mut self, metric: Metric<'_>, suffix: &str, bound: Option<String>, value: f64) {
        let series = self.entry(metric, suffix, bound);
        series.samples.push(Sample { value, timestamp: metric.time_ms, start_timestamp: 0 });
    }

    fn native(&mut self, metric: Metric<'_>, histogram: Histogram) {
        let series = self.entry(metric, "", None);
        series.histograms.push(Histogram { timestamp: metric.time_ms, ..histogram });
    }

    fn entry(&mut self, metric: Metric<'_>, suffix: &str, bound: Option<String>) -> &mut Series {
        // A point's own labels override the common ones.
        let mut labels = self.common.clone();
        labels.extend(metric.point.labels.iter().map(|(name, value)| (name.clone(), value.clone())));
        labels.extend(bound.map(|bound| (Cow::Borrowed("le"), bound)));
        labels.retain(|_, value| !value.is_empty());
        labels.insert(Cow::Borrowed("__name__"), format!("{}{suffix}", metric.name));
        self.series.entry(labels).or_insert_with(|| Series {
            family: metric.name,
            help: metric.help,
            kind: metric.kind,
            since_ms: metric.point.since_ms,
            samples: Vec::new(),
            histograms: Vec::new(),
        })
    }
}

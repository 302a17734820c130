//! Metrics at one moment, independent of the export format.

use crate::distribution::Distribution;
pub use results::exposition::Kind;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Labels of a point, sorted by name.
pub type Labels = BTreeMap<Cow<'static, str>, String>;

/// Metrics at one moment, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Families(BTreeMap<&'static str, Family>);

/// A metric with all its points.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    /// Name such as `meshmeter_requests_sent_total`.
    pub name: &'static str,
    /// Help text.
    pub help: &'static str,
    /// Meaning of the values.
    pub kind: Kind,
    /// One per combination of labels.
    pub points: Vec<Point>,
}

/// The value of a metric for one combination of labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Labels in addition to those of the exporter.
    pub labels: Labels,
    /// When a counter or histogram started to count, in milliseconds since 1970; 0 for gauges.
    pub since_ms: i64,
    /// Value at the time of the snapshot.
    pub value: Value,
}

/// Content of a point.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Value of a gauge or counter.
    Number(f64),
    /// Value of a histogram.
    Distribution(Box<Distribution>),
    /// The series ends here.
    Ended,
}

impl Families {
    /// Adds a point of a gauge.
    pub fn gauge(&mut self, name: &'static str, help: &'static str, labels: Labels, value: f64) {
        self.push((name, help, Kind::Gauge), labels, 0, Value::Number(value));
    }

    /// Adds a point of a counter.
    pub fn counter(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: Labels,
        since_ms: i64,
        value: f64,
    ) {
        self.push((name, help, Kind::Counter), labels, since_ms, Value::Number(value));
    }

    /// Adds a point of a histogram.
    pub fn histogram(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: Labels,
        since_ms: i64,
        distribution: &Distribution,
    ) {
        let value = Value::Distribution(Box::new(distribution.clone()));
        self.push((name, help, Kind::Histogram), labels, since_ms, value);
    }

    /// Adds every point of `others`.
    pub fn append(&mut self, others: Self) {
        for family in others.0.into_values() {
            for point in family.points {
                self.push((family.name, family.help, family.kind), point.labels, point.since_ms, point.value);
            }
        }
    }

    /// Adds a point.
    pub(crate) fn push(
        &mut self,
        (name, help, kind): (&'static str, &'static str, Kind),
        labels: Labels,
        since_ms: i64,
        value: Value,
    ) {
        let family = self.0.entry(name).or_insert_with(|| Family { name, help, kind, points: Vec::new() });
        family.points.push(Point { labels, since_ms, value });
    }

    /// Every family, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &Family> {
        self.0.values()
    }
}

/// Adds a label.
#[must_use]
pub(crate) fn with_label(labels: &Labels, name: &'static str, value: impl Into<String>) -> Labels {
    let mut labels = labels.clone();
    labels.insert(Cow::Borrowed(name), value.into());
    labels
}

/// The unit in the suffix of a metric's name; empty if it has none.
pub(crate) fn unit(name: &str) -> &'static str {
    let name = name.strip_suffix("_total").unwrap_or(name);
    if name.ends_with("_per_second") {
        ""
    } else if name.ends_with("_seconds") {
        "seconds"
    } else if name.ends_with("_bytes") {
        "bytes"
    } else {
        ""
    }
}

//! Vocabularies of the dialects: names of metrics, labels of a call, selectors of queries.

use super::answer::Labels;
use crate::dialect::Dialect;
use crate::telemetry::Reporter;
use std::borrow::Cow;

/// A counter, or a part of a histogram.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Metric {
    Requests,
    /// Responses beside requests: errors alone.
    Responses,
    Resets,
    Duration(Part),
    RequestBytes(Part),
    ResponseBytes(Part),
    Opened,
    Sent,
    Received,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Part {
    Bucket,
    Sum,
    Count,
}

impl Metric {
    pub(super) fn is_of_connections(self) -> bool {
        matches!(self, Self::Opened | Self::Sent | Self::Received)
    }
}

/// A metric: its name, the labels by which a query keeps its series apart, and its purpose.
pub(super) type Named = (&'static str, Metric, &'static str, &'static str);

/// Metrics of a mesh.
pub(super) struct Vocabulary {
    pub(super) metrics: &'static [Named],
    /// Labels of a pair of workloads.
    pub(super) pair: &'static str,
    /// Selector of a metric's series.
    pub(super) selector: fn(Metric) -> &'static str,
    /// Call of a row; `None` for rows that are of no call.
    pub(super) call: fn(&Labels, Metric) -> Option<Call<'_>>,
}

/// Ends and kind of a row's call.
pub(super) struct Call<'a> {
    pub(super) dialect: Dialect,
    pub(super) reporter: Reporter,
    /// Namespace and name.
    pub(super) from: [Option<&'a str>; 2],
    pub(super) to: [Option<&'a str>; 2],
    pub(super) host: Option<Cow<'a, str>>,
    pub(super) is_grpc: bool,
    pub(super) is_error: bool,
}

impl Labels {
    /// A label that other meshes than Istio have; `None` without it or without a value.
    pub(super) fn further(&self, name: &str) -> Option<&str> {
        let value = self.further.iter().find(|(own, _)| *own == name).map(|(_, value)| value.as_str());
        value.filter(|value| !value.is_empty())
    }

    pub(super) fn first_of(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.further(name))
    }
}

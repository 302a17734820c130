//! Figures that others published for the question of an experiment, to stand beside its own.

use crate::Mode;
use std::time::Duration;

/// Figures of one source.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedSource {
    /// Who and which version, such as `Istio 1.24, performance and scalability`.
    pub source: String,
    /// What differs between their set-up and this one.
    pub differs: String,
    /// The figures.
    pub figures: Vec<ReferenceFigure>,
}

/// One figure, and what of a run it is to stand beside.
#[derive(Clone, Debug, PartialEq)]
pub struct ReferenceFigure {
    /// The mode that it is of.
    pub mode: Mode,
    /// The rate at which it was measured, requests a second; absent: whatever the lowest of the run is.
    pub rate: Option<f64>,
    /// Of the resources of one component; absent: of each proxy.
    pub component: Option<String>,
    /// What was measured, with its value.
    pub value: ReferenceValue,
}

/// What was measured, with its value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReferenceValue {
    /// CPU for every 1000 requests a second, cores.
    Cpu(f64),
    /// Memory, bytes.
    Memory(u64),
    /// A percentile of the response time.
    ResponseTime(PublishedPercentile, Duration),
    /// What the mode adds to a percentile of mode `none`.
    Added(PublishedPercentile, Duration),
}

/// The percentiles that are published.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PublishedPercentile {
    /// Median.
    P50,
    /// 90th percentile.
    P90,
    /// 99th percentile.
    P99,
}

impl PublishedPercentile {
    /// Such as `p90`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P99 => "p99",
        }
    }
}

impl ReferenceValue {
    /// The word for it in an experiment file, such as `cpu` or `added-p90`.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Cpu(_) => "cpu".to_owned(),
            Self::Memory(_) => "memory".to_owned(),
            Self::ResponseTime(percentile, _) => percentile.name().to_owned(),
            Self::Added(percentile, _) => format!("added-{}", percentile.name()),
        }
    }

    /// Whether it is of a component rather than of requests.
    #[must_use]
    pub fn is_resource(self) -> bool {
        matches!(self, Self::Cpu(_) | Self::Memory(_))
    }
}

//! Contents of the headline: it has the form of the question that a run answers.

use super::contents::{Added, Convergence, Corner, Difference, Effect, GatewayCapacity};
use super::parts::{About, Against, Measured, OfCell, Trials, Usage, Value};
use crate::finding_verdict::FindingVerdict;
use crate::metric::Metric;
use serde::{Deserialize, Serialize};

/// Part of the main answer of a run. In result files the fields that are present tell the forms apart: a form comes
/// before those whose fields it contains.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Headline {
    /// A value of a factor, a version or a program compared with the first one.
    Values(ValuesHeadline),
    /// All factors at their last values compared with all at their first.
    Corner(Corner),
    /// The largest fleet of simulated proxies.
    Fleet(OfCell<Convergence>),
    /// Median of a mode, and its difference to the baseline.
    Added(OfCell<Added>),
    /// Throughput of a mode against the baseline's.
    Loss(OfCell<Loss>),
    /// Change from the minimum to the maximum of a factor, or memory of a proxy per background service.
    Effect(Effect),
    /// Requests that a gateway carries.
    Capacity(OfCell<GatewayCapacity>),
    /// CPU of all proxies.
    Proxies(Usage),
    /// Slowest call between services.
    Call(OfCell<About<String, Value>>),
    /// Median of a mode without a baseline, or throughput of the baseline.
    Measured(OfCell<Measured>),
    /// CPU of a proxy.
    Cpu(OfCell<Value>),
    /// The median falls among requests without a response.
    Unanswered(OfCell<Unanswered>),
    /// No trial is valid.
    Nothing(Nothing),
}

/// A value of a factor, a version or a program compared with the first one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ValuesHeadline {
    /// The difference; its `n` is the number of differences between the two values that are shown.
    #[serde(flatten)]
    pub difference: Difference,
    /// Number of differences between the two values.
    pub of: usize,
}

/// Throughput of a mode against the baseline's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Loss {
    /// Change of the throughput.
    pub figure: Metric,
    /// The change.
    #[serde(flatten)]
    pub change: Against,
}

/// A figure that falls among requests without a response, or proxies never reached.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unanswered {
    /// The figure.
    pub figure: Metric,
    /// That nothing can be told of it.
    pub verdict: FindingVerdict,
}

/// No trial is valid.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Nothing {
    /// That nothing can be told.
    pub verdict: FindingVerdict,
    /// No trial, of those recorded.
    #[serde(flatten)]
    pub trials: Trials,
}

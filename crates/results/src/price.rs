//! `meshmeter.price/1`: what the proxies of a topology take and cost at its full scale, in each measured mode.

use crate::Mode;
use crate::estimate::Estimate;
use crate::size::{Prices, SizeMachine, SizeNote, SizeRun};
use serde::{Deserialize, Serialize};

/// The value of [`PriceResult::schema`].
pub const PRICE_SCHEMA: &str = "meshmeter.price/1";

/// Namespace of node proxies, which belong to none of the topology.
pub const NODE_PROXY_NAMESPACE: &str = "istio-system";

/// Prices of a topology in every measured mode, with everything that they rest on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PriceResult {
    /// Always [`PRICE_SCHEMA`].
    pub schema: String,
    /// Name of the priced topology.
    pub topology: String,
    /// Requests per second of all drivers at the priced scale.
    pub requests_per_s: f64,
    /// Prices; absent: no cost is computed.
    pub prices: Option<Prices>,
    /// Confidence level of every interval, 0 to 1. Intervals only cover the runs.
    pub confidence: f64,
    /// Machine of all runs.
    pub machine: Option<SizeMachine>,
    /// Runs that the prices rest on.
    pub runs: Vec<SizeRun>,
    /// Caveats for the whole answer, such as runs that were cut short. Every output says them first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<SizeNote>,
    /// Every priced mode; empty if the question is refused.
    pub modes: Vec<PricedMode>,
    /// The same by namespace; empty if the topology has a single one.
    pub namespaces: Vec<PricedNamespace>,
    /// Today's proxies by the model against their own usage in the telemetry; absent if the telemetry lacks it.
    pub model_error: Option<ModelError>,
    /// Changes of these prices if settings had other values; absent unless asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what_if: Option<WhatIfPrices>,
    /// Foundation of the prices.
    pub rests_on: Vec<Basis>,
    /// Modes without a price, or reasons why there is no price at all.
    pub refusals: Vec<SizeNote>,
}

/// Proxies of one mode, their resources and cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PricedMode {
    /// The mode.
    pub mode: Mode,
    /// Number of proxies.
    pub proxies: u64,
    /// CPU that they use, cores; absent if it was not measured.
    pub cpu_cores_used: Option<Estimate>,
    /// Sum of their CPU requests, cores.
    pub cpu_cores_reserved: f64,
    /// Memory that they use, bytes; absent if it was not measured.
    pub memory_bytes_used: Option<Estimate>,
    /// Sum of their memory requests, bytes.
    pub memory_bytes_reserved: f64,
    /// Cost of what they use, for 730 hours; absent without prices.
    pub cost_per_month: Option<Estimate>,
    /// Cost of what they reserve, for 730 hours; absent without prices.
    pub cost_per_month_reserved: Option<f64>,
    /// Latency added at each entry point; of a namespace, at those whose target is in it.
    pub entries: Vec<PricedEntry>,
    /// Latency added to each call between services, as its caller measures it; of a namespace, to those of its services. Empty if
    /// the runs have no such calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<PricedCall>,
}

/// Latency that a mode adds for one driver, at the greatest measured load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PricedEntry {
    /// Name of the driver.
    pub name: String,
    /// Differences to the mode's floor; of a change those to the mode without it. Of streams of tokens those of the time to the first
    /// one.
    pub added_us: EntryLatency,
    /// Calls that a response waits for, each caller's before those of its callees: of parallel branches those of the longest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub critical_path: Vec<PricedCall>,
}

/// Latency that a mode adds to a call between services, at the greatest measured load. It contains what is added to the calls that
/// the callee makes meanwhile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PricedCall {
    /// Qualified name of the caller.
    pub from: String,
    /// Qualified name of the callee.
    pub to: String,
    /// Differences to the mode's floor.
    pub added_us: EntryLatency,
}

/// Added latency, microseconds; a percentile is absent if either mode lacks it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EntryLatency {
    /// Difference of the medians.
    pub p50: Option<Estimate>,
    /// Difference of the 99th percentiles.
    pub p99: Option<Estimate>,
}

/// Changes of prices with other values of settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WhatIfPrices {
    /// Each setting with its value, such as `istio.sidecar-scope on`.
    pub settings: Vec<String>,
    /// Modes that the settings touch.
    pub modes: Vec<PriceChange>,
}

/// Change of a mode's proxies, resources and cost: with the settings less without. Differences are taken repeat by repeat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PriceChange {
    /// The mode.
    pub mode: Mode,
    /// Change of the number of proxies.
    pub proxies: i64,
    /// Change of the CPU that they use, cores; absent if it was not measured.
    pub cpu_cores_used: Option<Estimate>,
    /// Change of the sum of their CPU requests, cores.
    pub cpu_cores_reserved: f64,
    /// Change of the memory that they use, bytes; absent if it was not measured.
    pub memory_bytes_used: Option<Estimate>,
    /// Change of the sum of their memory requests, bytes.
    pub memory_bytes_reserved: f64,
    /// Change of the cost of what they use, for 730 hours; absent without prices.
    pub cost_per_month: Option<Estimate>,
    /// Change of the cost of what they reserve, for 730 hours; absent without prices.
    pub cost_per_month_reserved: Option<f64>,
    /// Change of the response times at each entry point, at the greatest measured load.
    pub entries: Vec<PricedEntry>,
}

/// Proxies of one namespace in every priced mode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PricedNamespace {
    /// The namespace; [`NODE_PROXY_NAMESPACE`] for node proxies.
    pub name: String,
    /// Modes in which it has proxies.
    pub modes: Vec<PricedMode>,
}

/// The model against the usage that today's proxies report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelError {
    /// Mode of today's proxies.
    pub mode: Mode,
    /// CPU, cores; absent if the telemetry lacks it.
    pub cpu_cores: Option<ModelCheck>,
    /// Memory, bytes; absent if the telemetry lacks it.
    pub memory_bytes: Option<ModelCheck>,
}

/// A predicted figure against the one in the telemetry.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelCheck {
    /// In the telemetry.
    pub measured: f64,
    /// By the model.
    pub predicted: Estimate,
    /// Error of the model as a fraction of the telemetry's figure: 0.1 if it predicts a tenth too much.
    pub error: f64,
}

/// Something that prices rest on.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Basis {
    /// Name, such as `CPU of a sidecar, mode sidecar`.
    pub what: String,
    /// Origin of its value.
    pub kind: BasisKind,
    /// Value with its unit, as text.
    pub value: String,
}

/// Origin of something that prices rest on.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BasisKind {
    /// The runs.
    Measured,
    /// The mesh's own telemetry and objects.
    Learned,
    /// Published by others.
    Published,
    /// Neither: it may be wrong.
    Assumed,
}

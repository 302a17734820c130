//! How figures of a run rise with a factor whose values are numbers.

use super::estimate::Estimate;
use super::factor::Factors;
use super::finding::FindingVerdict;
use super::fleet_figure::FleetFigure;
use super::load_point::LoadPoint;
use crate::mode::Mode;
use serde::{Deserialize, Serialize};

/// A figure that is set against a factor.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Hash, Ord, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SizedFigure {
    /// A proxy's heap in use before the load, bytes.
    HeapAllocatedBeforeLoadBytes,
    /// A proxy's anonymous memory before the load, bytes.
    MemoryAnonymousBeforeLoadBytes,
    /// A proxy's memory before the load, bytes.
    MemoryBeforeLoadBytes,
    /// Size of a proxy's configuration, bytes.
    ConfigurationSizeBytes,
    /// From an object written to its configuration in force at a proxy, seconds.
    ConfiguredInS,
    /// The same of a further domain at a gateway, seconds.
    FurtherDomainInS,
    /// Median response time, microseconds.
    #[serde(rename = "response_time_p50_us")]
    ResponseTimeP50Us,
    /// 99th percentile of the response time, microseconds.
    #[serde(rename = "response_time_p99_us")]
    ResponseTimeP99Us,
    /// CPU of all proxies for every 1000 completed requests a second, cores.
    #[serde(rename = "proxies_cpu_cores_per_1000_rps")]
    ProxiesCpuCoresPer1000Rps,
    /// A figure of fleets.
    #[serde(untagged)]
    Fleet(FleetFigure),
}

/// How a figure rises with one factor, the others held, over the valid trials.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FactorEffect {
    /// The factor's dotted key.
    pub factor: String,
    /// Its values in the unit of the key (cores, bytes, seconds, a fraction, or a plain number), ascending: two or more.
    pub values: Vec<f64>,
    /// The other factors' values; empty where there is one factor.
    #[serde(default, skip_serializing_if = "Factors::is_empty")]
    pub factors: Factors,
    /// The figure; its unit is at the end of its name.
    pub figure: SizedFigure,
    /// The arrangement of proxies.
    pub mode: Mode,
    /// The proxy that it is of; absent where it is of the whole path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<String>,
    /// The load; absent for what is there before the load, which all loads have. What the factor sets in it (connections,
    /// payload) is that of its least value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadPoint>,
    /// What one more of the factor adds, in the figure's unit: the slope of a line through all values.
    pub per_unit: Estimate,
    /// The figure at the greatest value less that at the least.
    pub from_least_to_greatest: Estimate,
    /// Whether the slope is shown, among all that the run tests; absent in results of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<FindingVerdict>,
}

impl FactorEffect {
    /// Whether the slope is shown; results of earlier versions have the interval alone to tell.
    #[must_use]
    pub fn judged(&self) -> FindingVerdict {
        self.verdict.unwrap_or_else(|| FindingVerdict::of(&self.per_unit))
    }
}

/// A [`FactorEffect`] of the number of background services.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SizeEffect {
    /// The figure; its unit is at the end of its name.
    pub figure: SizedFigure,
    /// The other factors' values; empty where there are none.
    #[serde(default, skip_serializing_if = "Factors::is_empty")]
    pub factors: Factors,
    /// The arrangement of proxies.
    pub mode: Mode,
    /// The proxy that it is of; absent where it is of the whole path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<String>,
    /// The load, whatever the size; absent for what is there before the load, which all loads have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadPoint>,
    /// The sizes that it rests on, other services each, the smallest first: two or more.
    pub sizes: Vec<usize>,
    /// What each other service adds, in the figure's unit: the slope of a line through all sizes.
    pub for_each_service: Estimate,
    /// The figure in the largest mesh less that in the smallest.
    pub from_smallest_to_largest: Estimate,
}

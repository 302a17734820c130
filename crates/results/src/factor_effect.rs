//! Effect of factors with numeric values on figures of a run.

use crate::Mode;
use crate::estimate::Estimate;
use crate::factor::Factors;
use crate::finding_verdict::FindingVerdict;
use crate::fleet_figure::FleetFigure;
use crate::load_point::LoadPoint;
use serde::{Deserialize, Serialize};

/// Figure whose dependence on a factor is estimated.
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
    /// Propagation of a change to a proxy, seconds.
    ConfiguredInS,
    /// Propagation of a further domain to a gateway, seconds.
    FurtherDomainInS,
    /// Median response time, microseconds.
    #[serde(rename = "response_time_p50_us")]
    ResponseTimeP50Us,
    /// 99th percentile of the response time, microseconds.
    #[serde(rename = "response_time_p99_us")]
    ResponseTimeP99Us,
    /// CPU of all proxies per 1000 completed requests/s, cores.
    #[serde(rename = "proxies_cpu_cores_per_1000_rps")]
    ProxiesCpuCoresPer1000Rps,
    /// Responses per second, of a closed loop.
    RateCompleted,
    /// Anonymous memory of all proxies under load, bytes: see
    /// [`ComparedFigure`](crate::factor_difference::ComparedFigure).
    ProxiesMemoryAnonymousBytes,
    /// Figure of a fleet.
    #[serde(untagged)]
    Fleet(FleetFigure),
}

/// Effect of one factor on a figure, other factors equal, over the valid trials.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FactorEffect {
    /// Dotted key of the factor.
    pub factor: String,
    /// Its values in the unit of the key (cores, bytes, seconds, a fraction, or a plain number), ascending:
    /// two or more.
    pub values: Vec<f64>,
    /// The other factors' values; empty if there is one factor.
    #[serde(default, skip_serializing_if = "Factors::is_empty")]
    pub factors: Factors,
    /// The figure. The unit is at the end of its name.
    pub figure: SizedFigure,
    /// Mode.
    pub mode: Mode,
    /// The proxy; absent for a figure of the whole path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<String>,
    /// The load; absent for a figure before the load, which is common to all loads. Parts of it that the
    /// factor sets (connections, payload) have the factor's minimum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadPoint>,
    /// Change per unit of the factor, in the figure's unit: the slope of a line through all values.
    pub per_unit: Estimate,
    /// Figure at the factor's maximum minus figure at its minimum.
    pub from_least_to_greatest: Estimate,
    /// Verdict on the slope, adjusted for all tests of the run; absent in results from earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<FindingVerdict>,
}

impl FactorEffect {
    /// Verdict on the slope; results from earlier versions are judged by the interval alone.
    #[must_use]
    pub fn judged(&self) -> FindingVerdict {
        self.verdict.unwrap_or_else(|| FindingVerdict::from_interval(&self.per_unit))
    }
}

/// [`FactorEffect`] of the number of background services.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SizeEffect {
    /// The figure. The unit is at the end of its name.
    pub figure: SizedFigure,
    /// The other factors' values; empty if there are none.
    #[serde(default, skip_serializing_if = "Factors::is_empty")]
    pub factors: Factors,
    /// Mode.
    pub mode: Mode,
    /// The proxy; absent for a figure of the whole path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<String>,
    /// The load, for any mesh size; absent for a figure before the load, which is common to all loads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadPoint>,
    /// Mesh sizes as numbers of background services, ascending: two or more.
    pub sizes: Vec<usize>,
    /// Change per background service, in the figure's unit: the slope of a line through all sizes.
    pub for_each_service: Estimate,
    /// Figure in the largest mesh minus figure in the smallest.
    pub from_smallest_to_largest: Estimate,
    /// Whether the slope is shown, among all that the run tests; absent in results of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<FindingVerdict>,
}

impl SizeEffect {
    /// Whether the slope is shown; results of earlier versions have the interval alone to tell.
    #[must_use]
    pub fn judged(&self) -> FindingVerdict {
        self.verdict.unwrap_or_else(|| FindingVerdict::from_interval(&self.for_each_service))
    }
}

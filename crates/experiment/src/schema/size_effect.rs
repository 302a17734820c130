//! What figures of a run rise by with the size of the mesh around the pair, where an experiment compares several sizes.

use super::{Estimate, LoadPoint};
use crate::Mode;
use serde::{Deserialize, Serialize};

/// A figure that is set against the size of the mesh.
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
    /// Median response time, microseconds.
    #[serde(rename = "response_time_p50_us")]
    ResponseTimeP50Us,
    /// 99th percentile of the response time, microseconds.
    #[serde(rename = "response_time_p99_us")]
    ResponseTimeP99Us,
    /// CPU of all proxies for every 1000 completed requests a second, cores.
    #[serde(rename = "proxies_cpu_cores_per_1000_rps")]
    ProxiesCpuCoresPer1000Rps,
}

/// What a figure rises by with the number of other services, over the valid trials.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SizeEffect {
    /// The figure; its unit is at the end of its name.
    pub figure: SizedFigure,
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

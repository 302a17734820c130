//! Usage of components over the valid trials of a cell.

use crate::component::Role;
use crate::estimate::Estimate;
use crate::estimates::Estimates;
use crate::footprint::{ConfigurationSummary, HeapSummary};
use crate::metric::Metric;
use serde::{Deserialize, Serialize};

/// Usage of all components of a role together, over the valid trials.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoleTotal {
    /// Role of the components.
    pub role: Role,
    /// Number of components.
    pub components: usize,
    /// Mean CPU, cores.
    pub cpu_cores: Estimate,
    /// CPU per 1000 completed requests/s, cores: the same number as milliseconds of CPU per request.
    pub cpu_cores_per_1000_rps: Estimate,
    /// Memory under load, bytes. Shared pages count for each component.
    pub memory_bytes: Option<Estimate>,
    /// Working set under load, bytes, as a cluster shows it; absent if not all components have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_working_set_bytes: Option<Estimate>,
    /// Anonymous part of it, bytes: pages that are not shared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_anonymous_bytes: Option<Estimate>,
}

/// Usage of one component over the valid trials.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComponentSummary {
    /// Name within the run.
    pub name: String,
    /// Role of the component.
    pub role: Role,
    /// Mean CPU, cores.
    pub cpu_cores: Estimate,
    /// CPU per 1000 completed requests/s, cores.
    pub cpu_cores_per_1000_rps: Estimate,
    /// Its other metrics by key.
    #[serde(flatten)]
    pub estimates: Estimates,
    /// Heap reported by the proxy before the generator started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heap_before_load: Option<HeapSummary>,
    /// Heap reported by the proxy after the generator had ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heap_after_load: Option<HeapSummary>,
    /// Configuration of the proxy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<ConfigurationSummary>,
    /// Distinct reasons why parts of a proxy's footprint could not be read; empty if there were no problems.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<String>,
}

impl ComponentSummary {
    /// Metrics that it has by key: those without a field of their own.
    pub fn by_key() -> impl Iterator<Item = Metric> {
        use Metric::{
            ConfigurationDumpBytes, ConfigurationSizeBytes, CpuCores, CpuCoresPer1000Rps, HeapAfterLoadBytes,
            HeapAllocatedAfterLoadBytes, HeapAllocatedBeforeLoadBytes, HeapBeforeLoadBytes,
        };
        let has_field = |metric: &Metric| {
            matches!(
                metric,
                CpuCores
                    | CpuCoresPer1000Rps
                    | HeapAllocatedBeforeLoadBytes
                    | HeapBeforeLoadBytes
                    | HeapAllocatedAfterLoadBytes
                    | HeapAfterLoadBytes
                    | ConfigurationSizeBytes
                    | ConfigurationDumpBytes
            )
        };
        Metric::of_components().filter(move |metric| !has_field(metric))
    }

    /// Estimate of a metric.
    #[must_use]
    pub fn estimate(&self, metric: Metric) -> Option<Estimate> {
        match metric {
            Metric::CpuCores => Some(self.cpu_cores),
            Metric::CpuCoresPer1000Rps => Some(self.cpu_cores_per_1000_rps),
            Metric::HeapAllocatedBeforeLoadBytes => Some(self.heap_before_load?.allocated_bytes),
            Metric::HeapBeforeLoadBytes => Some(self.heap_before_load?.heap_bytes),
            Metric::HeapAllocatedAfterLoadBytes => Some(self.heap_after_load?.allocated_bytes),
            Metric::HeapAfterLoadBytes => Some(self.heap_after_load?.heap_bytes),
            Metric::ConfigurationSizeBytes => Some(self.configuration?.size_bytes),
            Metric::ConfigurationDumpBytes => Some(self.configuration?.dump_bytes),
            metric => self.estimates.get(metric),
        }
    }
}

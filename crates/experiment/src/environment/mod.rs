//! Interface between a run and its environment: one machine (`lab`), a cluster, or memory in tests.
//!
//! Read [`deploy`], the interface, first. [`in_memory`] is an environment for tests.

mod clock;
pub mod deploy;
mod error;
pub mod in_memory;
mod progress;
mod snapshot;
pub(crate) mod spec;

pub use crate::settings::components::ComponentsSettings;
pub use crate::settings::ingress::{Estate, GatewaySettings, Scenario};
pub use crate::settings::proxy::{AccessLog, MutualTls, ProxySettings};
pub use crate::settings::service::{ServerSettings, TCP_REQUEST_BYTES};
pub use clock::Clock;
pub use error::{EnvironmentError, ErrorContext, LastLines, error_chain};
pub use progress::ProgressSink;
pub use snapshot::{
    Bucket, Buckets, ComponentMemory, ComponentSnapshot, CpuSample, CpuTimes, GatewayCounters,
    GatewaySnapshot, KERNEL, MachineSnapshot, NodeSnapshot, OtherProcess, ProcessId, ProcessSnapshot,
    ServiceRate, ServiceSnapshot, Snapshot, WindowUsage,
};
pub use spec::DeploymentSpec;

/// Requests that the generator reports as sent over a whole trial, warm-up included. The proxies' counters
/// are compared with them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SentLoad {
    /// Number of requests.
    pub requests: u64,
    /// Mean size of a request, bytes; absent if none was sent in the window.
    pub request_bytes: Option<f64>,
}

//! What a run needs of the place where it runs: one machine (`lab`) or, later, a cluster.
//!
//! Read [`deploy`] first, which is the interface; [`in_memory`] is an environment for tests.

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
pub use error::{EnvironmentError, ErrorContext, LastLines, in_one_line};
pub use progress::ProgressSink;
pub use snapshot::{
    Bucket, Buckets, ComponentMemory, ComponentSnapshot, CpuSample, CpuTimes, GatewayCounters,
    GatewaySnapshot, KERNEL, MachineSnapshot, NodeSnapshot, OtherProcess, ProcessId, ProcessSnapshot,
    ServiceRate, ServiceSnapshot, Snapshot, WindowUsage,
};
pub use spec::DeploymentSpec;

/// What the generator says that it sent over a whole trial, warm-up included: what the proxies' counters are held against.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SentLoad {
    /// Requests.
    pub requests: u64,
    /// Bytes of a request, on average; absent where none was sent in the window.
    pub request_bytes: Option<f64>,
}

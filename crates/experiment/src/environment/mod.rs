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

use std::iter::Sum;

/// Requests that the generator reports as sent over a whole trial, warm-up included. The proxies' counters
/// are compared with them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SentLoad {
    /// Number of requests.
    pub requests: u64,
    /// Mean size of a request, bytes; absent if none was sent in the window.
    pub request_bytes: Option<f64>,
}

impl<'a> Sum<&'a SentLoad> for SentLoad {
    /// The mean size is absent if that of any load is.
    fn sum<I: Iterator<Item = &'a Self>>(loads: I) -> Self {
        let sum = |sum: (u64, Option<f64>), load: &Self| {
            let bytes = load.request_bytes.map(|bytes| bytes * load.requests as f64);
            (sum.0 + load.requests, sum.1.zip(bytes).map(|(sum, bytes)| sum + bytes))
        };
        let (requests, bytes) = loads.fold((0, Some(0.0)), sum);
        let bytes = bytes.filter(|_| requests > 0);
        Self { requests, request_bytes: bytes.map(|bytes| bytes / requests as f64) }
    }
}

//! Interface between a run and its environment: one machine (`lab`), a cluster, or memory in tests.
//!
//! Read [`deploy`], the interface, first.

mod clock;
pub mod deploy;
mod error;
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

impl<'a> Sum<&'a Self> for SentLoad {
    /// The mean size is absent if that of any load with requests is.
    fn sum<I: Iterator<Item = &'a Self>>(loads: I) -> Self {
        let loads: Vec<&Self> = loads.filter(|load| load.requests > 0).collect();
        let requests: u64 = loads.iter().map(|load| load.requests).sum();
        let bytes = loads.iter().map(|load| Some(load.request_bytes? * load.requests as f64));
        let bytes = bytes.sum::<Option<f64>>().filter(|_| requests > 0);
        Self { requests, request_bytes: bytes.map(|bytes| bytes / requests as f64) }
    }
}

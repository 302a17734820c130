//! Services that Meshmeter runs itself: arguments of `meshmeter serve`, and the counters that it returns.

use crate::admin::{Admin, AdminError};
use crate::proof::{CallCounters, CountedService};
use experiment::environment::{ServerSettings, TCP_REQUEST_BYTES};
use experiment::topology::Workload;
use results::units::{format_duration, format_fraction};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Path of a service's counters (`docs/service.md`).
pub const COUNTERS_PATH: &str = "/meshmeter/counters";
/// Readiness path of a graph node.
pub const READY_PATH: &str = "/health/ready";

/// Arguments for the synthetic service's behavior, without its listeners. Generator and service agree on
/// sizes if the bytes sent do not include them.
pub fn synthetic_arguments(settings: &ServerSettings, workload: &Workload) -> Vec<String> {
    let mut arguments = vec![
        format!("--size={}", settings.payload_bytes),
        format!("--delay={}", format_duration(settings.delay)),
        format!("--cpu-time={}", format_duration(settings.cpu_time)),
        format!("--error-rate={}", format_fraction(settings.error_fraction)),
    ];
    if !workload.protocol.is_http() {
        arguments.extend([
            format!("--tcp-request-size={TCP_REQUEST_BYTES}"),
            format!("--tcp-reply-size={}", workload.tcp_reply_bytes()),
        ]);
    }
    arguments
}

/// Counters of a service at one moment.
#[derive(Clone, Debug, Default)]
pub struct ServiceReading {
    /// Values by the names of [`CountedService`]. Counters that the service does not keep are missing.
    pub counters: BTreeMap<String, u64>,
    /// Calls of a node, by the callee's qualified name.
    pub calls: BTreeMap<String, CallReading>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub struct CallReading {
    #[serde(flatten)]
    pub counters: CallCounters,
    /// HdrHistogram; empty if it is not measured.
    pub response_time_us: String,
}

#[derive(Deserialize)]
struct Counted {
    requests: u64,
    connections_accepted: u64,
    bytes_received: u64,
    bytes_sent: u64,
    #[serde(default)]
    calls: BTreeMap<String, CallReading>,
}

impl ServiceReading {
    /// Reads the counters. `asked`: number of readings so far, if the service counts their connections among its own.
    pub fn read(admin: &Admin, asked: Option<&AtomicU64>) -> Result<Self, AdminError> {
        let counted: Counted = admin.get_json(COUNTERS_PATH)?;
        let asked = asked.map_or(0, |asked| asked.fetch_add(1, Ordering::Relaxed) + 1);
        let counters = [
            (CountedService::REQUESTS, counted.requests),
            (CountedService::CONNECTIONS, counted.connections_accepted.saturating_sub(asked)),
            (CountedService::RECEIVED_BYTES, counted.bytes_received),
            (CountedService::SENT_BYTES, counted.bytes_sent),
        ];
        let counters = counters.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Ok(Self { counters, calls: counted.calls })
    }
}

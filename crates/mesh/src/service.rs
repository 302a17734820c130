//! Services that Meshmeter runs itself: arguments of `meshmeter serve`, and the counters that it returns.

use crate::admin::{Admin, AdminError};
use crate::proof::{CallCounters, CountedService};
use experiment::environment::{ServerSettings, TCP_REQUEST_BYTES};
use experiment::topology::Workload;
use experiment::units::{format_duration, format_fraction};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where a service returns what it counted (`docs/service.md`).
pub const COUNTERS_PATH: &str = "/meshmeter/counters";
/// Where a node of a graph says whether it is ready.
pub const READY_PATH: &str = "/health/ready";

/// What the synthetic service does, whatever it listens for. Where bytes do not say it, generator and service agree on sizes.
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

/// What a service had counted at one moment.
#[derive(Clone, Debug, Default)]
pub struct ServiceReading {
    /// By the names of [`CountedService`]. One that it does not count is not in here.
    pub counters: BTreeMap<String, u64>,
    /// Of a node: its calls by qualified name of the callee.
    pub calls: BTreeMap<String, CallReading>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub struct CallReading {
    #[serde(flatten)]
    pub counters: CallCounters,
    /// HdrHistogram; empty if it is not measured.
    #[serde(default)]
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
    /// Reads the counters. `asked`: readings so far, of a service that counts their connections among its own.
    pub fn read(admin: &Admin, asked: Option<&AtomicU64>) -> Result<Self, AdminError> {
        let counted: Counted = admin.ask_json(COUNTERS_PATH)?;
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

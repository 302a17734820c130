//! Queries to a running proxy: counters, heap, configuration, liveness.

use crate::admin::liveness::LivenessProbe;
use crate::admin::{Admin, AdminCause, AdminError};
use crate::config_dump::DumpCopy;
use crate::envoy::footprint;
use crate::inbound::Inbound;
use results::{ProxyConfiguration, ProxyHeap};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;

pub trait CounterSource: fmt::Debug + Send + Sync {
    fn is_ready(&self) -> Result<bool, AdminError> {
        Ok(true)
    }

    fn counters(&self) -> Result<BTreeMap<String, u64>, AdminError>;

    fn heap(&self) -> Result<Option<ProxyHeap>, AdminError> {
        Ok(None)
    }

    /// Configuration of its inbound side; absent if it does not show that.
    fn inbound(&self) -> Result<Option<Inbound>, AdminError> {
        Ok(None)
    }

    /// Counts of its configuration, which is also streamed to `copy` without certificates and keys. Absent,
    /// with nothing copied, if the proxy does not report its configuration. The query may leave its heap larger.
    fn configuration(&self, _copy: &mut dyn DumpCopy) -> Result<Option<ProxyConfiguration>, AdminError> {
        Ok(None)
    }

    /// Empty if the proxy serves no requests.
    fn liveness_probes(&self) -> Vec<LivenessProbe> {
        Vec::new()
    }

    fn admin(&self) -> Option<&Admin> {
        None
    }
}

impl CounterSource for Admin {
    fn is_ready(&self) -> Result<bool, AdminError> {
        match self.ask("/ready") {
            Ok(_) => Ok(true),
            Err(AdminError { cause: AdminCause::Status(503) | AdminCause::Connect(_), .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn counters(&self) -> Result<BTreeMap<String, u64>, AdminError> {
        self.counters_at("/stats?format=json&type=Counters")
    }

    fn heap(&self) -> Result<Option<ProxyHeap>, AdminError> {
        let response: Memory = self.get_json("/memory")?;
        Ok(Some(ProxyHeap { allocated_bytes: response.allocated.0, heap_bytes: response.heap_size.0 }))
    }

    fn configuration(&self, copy: &mut dyn DumpCopy) -> Result<Option<ProxyConfiguration>, AdminError> {
        footprint::configuration(self, copy).map(Some)
    }

    fn liveness_probes(&self) -> Vec<LivenessProbe> {
        vec![LivenessProbe { process: None, admin: self.clone(), path: "/ready" }]
    }

    fn admin(&self) -> Option<&Admin> {
        Some(self)
    }
}

/// `/memory`: protobuf's JSON, which writes 64-bit numbers as strings.
#[derive(Deserialize)]
struct Memory {
    allocated: Quoted,
    heap_size: Quoted,
}

#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Quoted(u64);

impl TryFrom<String> for Quoted {
    type Error = std::num::ParseIntError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map(Self)
    }
}

//! A proxy, a service and the calls of a service with their counters.

use super::delta::delta;
use super::evidence::Evidence;
use experiment::schema::ServiceProof;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A proxy of the path with its counters. Listed from client to server.
#[derive(Clone, Debug)]
pub struct CountedProxy {
    pub name: String,
    /// The end of the path that the proxy is at; absent if it is on the path once.
    pub side: Option<&'static str>,
    pub evidence: Evidence,
    /// Before the generator started.
    pub before: BTreeMap<String, u64>,
    /// After the generator's end; or why they could not be read.
    pub after: Result<BTreeMap<String, u64>, String>,
}

impl CountedProxy {
    /// Its name in reasons.
    pub fn called(&self) -> String {
        self.side.map_or_else(|| self.name.clone(), |side| format!("{} at the {side}", self.name))
    }
}

/// A callee with its own counters. One that does not count something lacks that counter: nothing is held against it.
#[derive(Clone, Debug)]
pub struct CountedService {
    /// Before the generator started.
    pub before: BTreeMap<String, u64>,
    /// After the generator's end; or why they could not be read.
    pub after: Result<BTreeMap<String, u64>, String>,
}

impl CountedService {
    pub const REQUESTS: &'static str = "requests";
    pub const CONNECTIONS: &'static str = "connections";
    pub const RECEIVED_BYTES: &'static str = "bytes_received";
    pub const SENT_BYTES: &'static str = "bytes_sent";

    /// Counted in the trial; zero if the service could not be read, or does not count it.
    pub fn proof(&self) -> ServiceProof {
        let rise = |name: &str| self.after.as_ref().map_or(0, |after| delta(&self.before, after, name));
        ServiceProof {
            requests_received: rise(Self::REQUESTS),
            connections: rise(Self::CONNECTIONS),
            received_bytes: rise(Self::RECEIVED_BYTES),
            sent_bytes: rise(Self::SENT_BYTES),
        }
    }
}

/// Calls of a service to one callee, as the calling pods count them.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
pub struct CallCounters {
    /// Attempts of retries are requests of their own.
    pub sent: u64,
    pub answered: u64,
    /// Timed out and answered with an error included.
    pub failed: u64,
    pub retries: u64,
    /// Sent again on another connection, since the callee was closing the one of the first time.
    #[serde(default)]
    pub resent: u64,
    pub connections: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
}

impl CallCounters {
    /// Counted since `before`; absent if a counter fell.
    pub fn since(&self, before: &Self) -> Option<Self> {
        Some(Self {
            sent: self.sent.checked_sub(before.sent)?,
            answered: self.answered.checked_sub(before.answered)?,
            failed: self.failed.checked_sub(before.failed)?,
            retries: self.retries.checked_sub(before.retries)?,
            resent: self.resent.checked_sub(before.resent)?,
            connections: self.connections.checked_sub(before.connections)?,
            bytes_sent: self.bytes_sent.checked_sub(before.bytes_sent)?,
            bytes_received: self.bytes_received.checked_sub(before.bytes_received)?,
        })
    }

    pub fn and(&self, other: &Self) -> Self {
        Self {
            sent: self.sent.saturating_add(other.sent),
            answered: self.answered.saturating_add(other.answered),
            failed: self.failed.saturating_add(other.failed),
            retries: self.retries.saturating_add(other.retries),
            resent: self.resent.saturating_add(other.resent),
            connections: self.connections.saturating_add(other.connections),
            bytes_sent: self.bytes_sent.saturating_add(other.bytes_sent),
            bytes_received: self.bytes_received.saturating_add(other.bytes_received),
        }
    }

    /// Requests that need not have reached the callee: failed ones and those that are still under way.
    pub fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.answered)
    }

    pub fn under_way(&self) -> u64 {
        self.lost().saturating_sub(self.failed).saturating_sub(self.resent)
    }

    /// What its own callee should have counted of it.
    pub(super) fn at_callee(&self) -> ServiceProof {
        ServiceProof {
            requests_received: self.sent,
            connections: self.connections,
            received_bytes: self.bytes_sent,
            sent_bytes: self.bytes_received,
        }
    }
}

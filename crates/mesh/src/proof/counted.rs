//! Edges, proxies and services with their counters.

use super::delta::{Counters, delta};
use super::evidence::Evidence;
use crate::spans::SentSpans;
use experiment::environment::SentLoad;
use results::ServiceProof;
use serde::Deserialize;

/// A proxy on the path with its counters, listed from client to server.
#[derive(Clone, Debug)]
pub struct CountedProxy {
    pub name: String,
    /// The end of the path at which the proxy counts; absent if it is on the path once.
    pub side: Option<&'static str>,
    pub evidence: Evidence,
    /// Before the generator started.
    pub before: Counters,
    /// After the generator ended, or why they could not be read.
    pub after: Result<Counters, String>,
}

impl CountedProxy {
    pub fn rise(&self, name: &str) -> u64 {
        delta(&self.before, &self.after, name)
    }

    /// Requests answered with an error, by the proxy itself or by an upstream.
    pub fn refused(&self) -> u64 {
        let errors = self.evidence.forwarded.iter().flat_map(|forwarded| &forwarded.errors);
        errors.map(|name| self.rise(name)).sum()
    }

    /// Name of the proxy in reasons.
    pub fn called(&self) -> String {
        self.side.map_or_else(|| self.name.clone(), |side| format!("{} at the {side}", self.name))
    }
}

/// A callee with its own counters. A counter that it does not keep is missing and is not checked.
#[derive(Clone, Debug)]
pub struct CountedService {
    /// Before the generator started.
    pub before: Counters,
    /// After the generator ended, or why they could not be read.
    pub after: Result<Counters, String>,
}

impl CountedService {
    pub const REQUESTS: &'static str = "requests";
    pub const CONNECTIONS: &'static str = "connections";
    pub const RECEIVED_BYTES: &'static str = "bytes_received";
    pub const SENT_BYTES: &'static str = "bytes_sent";

    /// Increase during the trial; zero if the service could not be read or lacks the counter.
    pub fn proof(&self) -> ServiceProof {
        let rise = |name: &str| delta(&self.before, &self.after, name);
        ServiceProof {
            requests_received: rise(Self::REQUESTS),
            connections: rise(Self::CONNECTIONS),
            received_bytes: rise(Self::RECEIVED_BYTES),
            sent_bytes: rise(Self::SENT_BYTES),
        }
    }
}

/// Combines the counts of two services, field by field.
pub(super) fn combine(
    one: &ServiceProof,
    other: &ServiceProof,
    combine: impl Fn(u64, u64) -> u64,
) -> ServiceProof {
    ServiceProof {
        requests_received: combine(one.requests_received, other.requests_received),
        connections: combine(one.connections, other.connections),
        received_bytes: combine(one.received_bytes, other.received_bytes),
        sent_bytes: combine(one.sent_bytes, other.sent_bytes),
    }
}

/// Calls of a service to one callee, as counted by the calling pods.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
pub struct CallCounters {
    /// Each retry counts as a request.
    pub sent: u64,
    pub answered: u64,
    /// Includes timeouts and error responses.
    pub failed: u64,
    pub retries: u64,
    /// Sent again on another connection, because the callee was closing the first one.
    pub resent: u64,
    pub connections: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
}

impl CallCounters {
    /// Increase since `before`; absent if a counter decreased.
    pub fn since(&self, before: &Self) -> Option<Self> {
        self.combine(before, u64::checked_sub)
    }

    pub fn and(&self, other: &Self) -> Self {
        self.combine(other, u64::checked_add).unwrap_or_default()
    }

    fn combine(&self, other: &Self, combine: impl Fn(u64, u64) -> Option<u64>) -> Option<Self> {
        Some(Self {
            sent: combine(self.sent, other.sent)?,
            answered: combine(self.answered, other.answered)?,
            failed: combine(self.failed, other.failed)?,
            retries: combine(self.retries, other.retries)?,
            resent: combine(self.resent, other.resent)?,
            connections: combine(self.connections, other.connections)?,
            bytes_sent: combine(self.bytes_sent, other.bytes_sent)?,
            bytes_received: combine(self.bytes_received, other.bytes_received)?,
        })
    }

    /// Requests that may not have reached the callee: failed ones and those still in flight.
    pub fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.answered)
    }

    pub fn under_way(&self) -> u64 {
        self.lost().saturating_sub(self.failed).saturating_sub(self.resent)
    }

    /// The minimum that its callee should have counted.
    pub(super) fn at_callee(&self) -> ServiceProof {
        ServiceProof {
            requests_received: self.sent,
            connections: self.connections,
            received_bytes: self.bytes_sent,
            sent_bytes: self.bytes_received,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Edge<'a> {
    pub from: &'a str,
    pub to: &'a str,
    pub sent: Sent,
    /// Counters of all replicas of the callee; empty if not needed.
    pub service: Vec<&'a CountedService>,
    /// Ordered from caller to callee.
    pub proxies: Vec<EdgeProxy<'a>>,
}

/// Requests over an edge in a trial, as counted by their senders.
#[derive(Clone, Debug)]
pub enum Sent {
    /// Sent by drivers.
    Load(SentLoad),
    /// Sent by the pods of a service.
    Calls {
        /// Counters of the calls, or why they could not be read.
        counted: Result<CallCounters, String>,
        /// Number of requests that the drivers' load should have caused.
        expected: f64,
    },
}

#[derive(Clone, Debug)]
pub struct EdgeProxy<'a> {
    /// Name that all replicas share.
    pub name: &'a str,
    pub side: Option<&'static str>,
    pub evidence: &'a Evidence,
    /// Absent if the proxy never traces.
    pub spans: Option<&'a SentSpans>,
    pub replicas: Vec<&'a Replica>,
}

#[derive(Clone, Debug)]
pub struct Replica {
    /// Unique among replicas.
    pub name: String,
    /// Counters before the drivers started; `after` has those after they ended, or why they could not be read.
    pub before: Counters,
    pub after: Result<Counters, String>,
}

impl Replica {
    /// Increase of a counter, or why it is not known.
    pub fn rise(&self, name: &str) -> Result<u64, String> {
        self.after.as_ref().map_err(Clone::clone)?;
        Ok(delta(&self.before, &self.after, name))
    }
}

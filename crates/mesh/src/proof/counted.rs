//! A proxy and a service with their counters.

use super::delta::delta;
use super::evidence::Evidence;
use experiment::schema::ServiceProof;
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

    /// Counted in the trial; zero if the service could not be read.
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

//! What the service at the end of an edge counted.

use super::delta::delta;
use experiment::schema::ServiceProof;
use std::collections::BTreeMap;

/// What the service counted.
#[derive(Clone, Debug)]
pub struct CountedService {
    /// Its counters before the generator started.
    pub before: BTreeMap<String, u64>,
    /// Its counters after the generator's end; or why they could not be read.
    pub after: Result<BTreeMap<String, u64>, String>,
}

impl CountedService {
    /// Name of its counter of requests.
    pub const REQUESTS: &'static str = "requests";
    /// Name of its counter of connections.
    pub const CONNECTIONS: &'static str = "connections";
    /// Name of its counter of bytes received.
    pub const RECEIVED_BYTES: &'static str = "bytes_received";
    /// Name of its counter of bytes sent.
    pub const SENT_BYTES: &'static str = "bytes_sent";

    /// What it counted in the trial; nothing where it could not be asked.
    #[must_use]
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

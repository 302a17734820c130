//! What the service at the end of an edge counted.

use super::delta::delta;
use experiment::schema::ServiceProof;
use std::collections::BTreeMap;

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

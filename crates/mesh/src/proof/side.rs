//! A proxy at its place on a path, with what it is held against.

use super::counted::CountedProxy;
use super::delta::counter;
use experiment::environment::SentLoad;
use experiment::schema::{ProxyProof, ServiceProof};

/// Why a proxy may count another number of requests than were sent: what the proxies before it did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Explained {
    pub retries: u64,
    /// Need not have come any further.
    pub given_up: u64,
}

impl Explained {
    pub fn and(self, other: Self) -> Self {
        Self {
            retries: self.retries.saturating_add(other.retries),
            given_up: self.given_up.saturating_add(other.given_up),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Side<'a> {
    pub proxy: &'a CountedProxy,
    pub proof: &'a ProxyProof,
    pub sent: &'a SentLoad,
    /// Of the proxies before it.
    pub before: Explained,
    /// Of the proxies before it and of the proxy itself.
    pub with_own: Explained,
    /// The nearest proxy before it that carries connections.
    pub nearer: Option<&'a ProxyProof>,
    /// What was to pass it, as counted behind or before it; absent if nobody counted.
    pub passing: Option<&'a ServiceProof>,
}

impl Side<'_> {
    pub fn counter(&self, name: &str) -> u64 {
        counter(self.proof, name)
    }
}

/// What it means that only `count` of what was expected passed a proxy.
pub(super) fn manner(count: u64) -> &'static str {
    if count == 0 { "traffic did not pass it" } else { "part of the traffic did not pass it" }
}

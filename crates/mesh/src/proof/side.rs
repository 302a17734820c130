//! A proxy on a path, together with the figures that it is checked against.

use super::counted::CountedProxy;
use super::delta::counter;
use experiment::environment::SentLoad;
use experiment::schema::{ProxyProof, ServiceProof};

/// Reasons why a proxy may count more or fewer requests than were sent: actions of the proxies before it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Allowances {
    pub retries: u64,
    /// Requests that may not have reached the next proxy.
    pub given_up: u64,
}

impl Allowances {
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
    /// Totals of the proxies before it.
    pub before: Allowances,
    /// Totals of the proxies before it and of the proxy itself.
    pub with_own: Allowances,
    /// The nearest proxy before it that carries connections.
    pub nearer: Option<&'a ProxyProof>,
    /// Traffic that should have passed it, as counted behind or before it; absent if nobody counted it.
    pub passing: Option<&'a ServiceProof>,
}

impl Side<'_> {
    pub fn counter(&self, name: &str) -> u64 {
        counter(self.proof, name)
    }
}

/// Text for a proxy that only `count` of the expected requests or connections passed.
pub(super) fn manner(count: u64) -> &'static str {
    if count == 0 { "traffic did not pass it" } else { "part of the traffic did not pass it" }
}

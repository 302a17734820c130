//! Where proxies stand on the path of a call, and what drivers request.

use crate::running::Proxy;
use mesh::proof::Evidence;

/// Position of a proxy in [`super::rollout::Rollout::proxies`].
pub(crate) type ProxyId = usize;

#[derive(Debug, Default)]
pub(crate) struct Stations {
    /// Near the caller, in the order in which requests pass them.
    pub at_caller: Vec<Station>,
    pub at_callee: Vec<Station>,
}

/// A proxy on the path of a call; or several that share its requests, one per replica.
#[derive(Clone, Debug)]
pub(crate) struct Station {
    pub name: String,
    pub proxies: Vec<ProxyId>,
    /// The end of the path that this is about, where a proxy is at both.
    pub side: Option<&'static str>,
    pub evidence: Evidence,
}

impl Station {
    /// A proxy that is alone in its place.
    pub fn of_one(proxies: &[Proxy], proxy: ProxyId, evidence: Evidence) -> Self {
        Self { name: proxies[proxy].name.clone(), proxies: vec![proxy], side: None, evidence }
    }
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Destination {
    pub url: String,
    /// What the generator needs besides, as arguments of `meshmeter load`: certificates to trust and to show.
    pub arguments: Vec<String>,
}

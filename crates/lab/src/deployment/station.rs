//! Positions of proxies on the path of a call, and destinations of drivers.

use super::rollout::Rollout;
use crate::running::Proxy;
use experiment::topology::WorkloadId;
use mesh::proof::Evidence;

/// Index of a proxy in [`super::rollout::Rollout::proxies`].
pub(crate) type ProxyId = usize;

#[derive(Debug, Default)]
pub(crate) struct Stations {
    /// Proxies near the caller, in the order in which requests pass them.
    pub at_caller: Vec<Station>,
    pub at_callee: Vec<Station>,
}

/// A proxy on the path of a call, or one proxy per replica if several share its requests.
#[derive(Clone, Debug)]
pub(crate) struct Station {
    pub name: String,
    pub proxies: Vec<ProxyId>,
    /// The end of the path, if a proxy is at both.
    pub side: Option<&'static str>,
    pub evidence: Evidence,
}

impl Station {
    /// The proxies in the pods of a workload; absent if it has none.
    pub fn beside(rollout: &Rollout<'_>, id: WorkloadId, evidence: Evidence) -> Option<Self> {
        let proxies = rollout.pods.workloads[id].proxies.clone();
        let name = rollout.proxy_name(id);
        (!proxies.is_empty()).then_some(Self { name, proxies, side: None, evidence })
    }

    /// A station with a single proxy.
    pub fn of_one(proxies: &[Proxy], proxy: ProxyId, evidence: Evidence) -> Self {
        Self { name: proxies[proxy].name.clone(), proxies: vec![proxy], side: None, evidence }
    }
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Destination {
    pub url: String,
    /// Further arguments for `meshmeter load`: certificates to trust and to present.
    pub arguments: Vec<String>,
}

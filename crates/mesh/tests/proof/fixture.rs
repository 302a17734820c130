//! Helpers that prove a path of one edge from the counters of its proxies and its service.

use experiment::environment::SentLoad;
use mesh::proof::edge::{Edge, EdgeProxy, Replica, Sent, have_settled, prove_edges};
use mesh::proof::{CountedService, Evidence};
use results::PathProof;
use std::collections::BTreeMap;

pub struct CountedProxy {
    pub name: String,
    pub side: Option<&'static str>,
    pub evidence: Evidence,
    pub before: BTreeMap<String, u64>,
    pub after: Result<BTreeMap<String, u64>, String>,
}

pub fn sent(requests: u64) -> SentLoad {
    SentLoad { requests, ..SentLoad::default() }
}

pub fn prove(proxies: &[CountedProxy], sent: &SentLoad, service: Option<&CountedService>) -> PathProof {
    with_edge(proxies, sent, service, prove_edges)
}

pub fn settled(proxies: &[CountedProxy], sent: &SentLoad, service: Option<&CountedService>) -> bool {
    with_edge(proxies, sent, service, have_settled)
}

fn with_edge<T>(
    proxies: &[CountedProxy],
    sent: &SentLoad,
    service: Option<&CountedService>,
    use_edges: impl FnOnce(&[Edge<'_>]) -> T,
) -> T {
    let replica = |proxy: &CountedProxy| Replica {
        name: proxy.name.clone(),
        before: proxy.before.clone(),
        after: proxy.after.clone(),
    };
    let replicas: Vec<Replica> = proxies.iter().map(replica).collect();
    let proxies = proxies.iter().zip(&replicas).map(|(proxy, replica)| EdgeProxy {
        name: &proxy.name,
        side: proxy.side,
        evidence: &proxy.evidence,
        spans: None,
        replicas: vec![replica],
    });
    use_edges(&[Edge {
        from: "client",
        to: "server",
        sent: Sent::Load(*sent),
        service: service.into_iter().collect(),
        proxies: proxies.collect(),
    }])
}

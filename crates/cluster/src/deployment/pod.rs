//! Pods of a deployment with open ports: the counters of their services and of the proxies in them.

use crate::Result;
use crate::plug::ProxyKind;
use crate::pods::PodState;
use crate::port_forward::PortForward;
use experiment::environment::error_chain;
use mesh::admin::{Admin, AdminError};
use mesh::kubernetes::client::ApiClient;
use mesh::proxy::CounterSource;
use mesh::service::ServiceReading;
use mesh::trial::place::RunningProxy;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// A pod of a workload, or of a gateway.
#[derive(Debug)]
pub(super) struct RunningPod {
    /// Name in the topology, or a gateway's name in results.
    pub name: String,
    pub state: PodState,
    /// Port for the counters of its service.
    pub service: Option<PortForward>,
    pub proxy: Option<OpenProxy>,
    /// Number of queries so far.
    pub asked: AtomicU64,
}

/// A proxy whose counters can be read.
#[derive(Debug)]
pub(super) struct OpenProxy {
    /// Name in results.
    pub name: String,
    pub kind: ProxyKind,
    pub source: Box<dyn CounterSource>,
    pub ports: Vec<PortForward>,
}

/// Opens the ports of a proxy, which has this name in results.
pub(super) fn open_proxy(api: &ApiClient, name: &str, pod: &PodState, kind: ProxyKind) -> Result<OpenProxy> {
    let ports = kind.ports.iter().map(|port| PortForward::open(api, &pod.namespace, &pod.name, *port));
    let ports = ports.collect::<Result<Vec<_>>>()?;
    let interfaces: Vec<Admin> = ports.iter().map(|port| port.admin(name)).collect();
    Ok(OpenProxy { name: name.to_owned(), kind, source: (kind.source)(&interfaces), ports })
}

impl RunningProxy for OpenProxy {
    fn name(&self) -> &str {
        &self.name
    }

    fn source(&self) -> &dyn CounterSource {
        &*self.source
    }

    /// If the API is the reason, it says why.
    fn reason(&self, error: &AdminError) -> String {
        let failed = self.ports.last().and_then(PortForward::last_error);
        failed.unwrap_or_else(|| error_chain(&error.cause))
    }
}

impl RunningPod {
    /// Counters of its service. Nodes do not count queries of their counters.
    pub fn read_service(&self, is_node: bool, timeout: Option<Duration>) -> Result<ServiceReading, String> {
        let forward = self.service.as_ref().ok_or("it runs no service")?;
        let admin = forward.admin(&self.name);
        let admin = timeout.map_or_else(|| admin.clone(), |timeout| admin.within(timeout));
        let reading = ServiceReading::read(&admin, (!is_node).then_some(&self.asked));
        reading.map_err(|error| forward.last_error().unwrap_or_else(|| error_chain(&error.cause)))
    }
}

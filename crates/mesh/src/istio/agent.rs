//! An Envoy that pilot-agent runs: a sidecar, a gateway or a waypoint.

use crate::admin::liveness::LivenessProbe;
use crate::admin::{Admin, AdminError};
use crate::config_dump::DumpCopy;
use crate::envoy::traffic::plain_name;
use crate::inbound::Inbound;
use crate::proxy::CounterSource;
use results::{ProxyConfiguration, ProxyHeap};
use std::collections::BTreeMap;

/// Interfaces of a proxy.
#[derive(Debug)]
pub struct AgentProxy {
    pub envoy: Admin,
    /// Status of its agent; absent if it is not read.
    pub agent: Option<Admin>,
}

impl CounterSource for AgentProxy {
    /// True if the agent reports that its Envoy serves a first configuration.
    fn is_ready(&self) -> Result<bool, AdminError> {
        Ok(self.agent.as_ref().is_none_or(|agent| agent.ask("/healthz/ready").is_ok()))
    }

    /// Counters by their plain names.
    fn counters(&self) -> Result<BTreeMap<String, u64>, AdminError> {
        let counters = CounterSource::counters(&self.envoy)?;
        Ok(counters.into_iter().map(|(name, count)| (plain_name(&name), count)).collect())
    }

    fn heap(&self) -> Result<Option<ProxyHeap>, AdminError> {
        self.envoy.heap()
    }

    fn configuration(&self, copy: &mut dyn DumpCopy) -> Result<Option<ProxyConfiguration>, AdminError> {
        self.envoy.configuration(copy)
    }

    fn inbound(&self) -> Result<Option<Inbound>, AdminError> {
        Inbound::of_sidecar(&self.envoy).map(Some)
    }

    fn liveness_probes(&self) -> Vec<LivenessProbe> {
        let question =
            |of, admin: &Admin, path| LivenessProbe { process: Some(of), admin: admin.clone(), path };
        // The agent has no such page, and responds so without querying Envoy.
        let agent = self.agent.iter().map(|agent| question("pilot-agent", agent, "/"));
        [question("Envoy", &self.envoy, "/ready")].into_iter().chain(agent).collect()
    }

    fn admin(&self) -> Option<&Admin> {
        Some(&self.envoy)
    }
}

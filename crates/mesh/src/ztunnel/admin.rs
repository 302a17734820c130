//! The interfaces of a ztunnel.

use super::{footprint, metrics};
use crate::admin::liveness::LivenessProbe;
use crate::admin::{Admin, AdminError};
use crate::config_dump::DumpCopy;
use crate::inbound::Inbound;
use crate::proxy::CounterSource;
use results::ProxyConfiguration;
use std::collections::BTreeMap;

#[derive(Debug)]
pub struct ZtunnelAdmin {
    pub admin: Admin,
    pub statistics: Admin,
    /// Absent if it is not read.
    pub readiness: Option<Admin>,
}

impl CounterSource for ZtunnelAdmin {
    fn is_ready(&self) -> Result<bool, AdminError> {
        Ok(self.readiness.as_ref().is_none_or(|readiness| readiness.ask("/healthz/ready").is_ok()))
    }

    /// Its counters, those of traffic of any pod that it serves.
    fn counters(&self) -> Result<BTreeMap<String, u64>, AdminError> {
        let text = self.statistics.ask_counters("/metrics")?;
        Ok(metrics::counters(&String::from_utf8_lossy(&text)))
    }

    fn configuration(&self, copy: &mut dyn DumpCopy) -> Result<Option<ProxyConfiguration>, AdminError> {
        self.admin.read("/config_dump", |answer| footprint::count(answer, copy)).map(Some)
    }

    fn inbound(&self) -> Result<Option<Inbound>, AdminError> {
        Inbound::of_ztunnel(&self.admin).map(Some)
    }

    fn liveness_probes(&self) -> Vec<LivenessProbe> {
        let probe =
            |admin: &Admin| LivenessProbe { process: None, admin: admin.clone(), path: "/healthz/ready" };
        self.readiness.iter().map(probe).collect()
    }

    fn admin(&self) -> Option<&Admin> {
        Some(&self.admin)
    }
}

//! What a running proxy can be asked: counters, heap, configuration, signs of life.

use crate::admin::liveness::LivenessProbe;
use crate::admin::{Admin, AdminCause, AdminError};
use crate::config_dump::DumpCopy;
use experiment::schema::{ProxyConfiguration, ProxyHeap};
use std::collections::BTreeMap;
use std::fmt;

pub trait CounterSource: fmt::Debug + Send + Sync {
    fn is_ready(&self) -> Result<bool, AdminError> {
        Ok(true)
    }

    fn counters(&self) -> Result<BTreeMap<String, u64>, AdminError>;

    /// Absent if the proxy does not report its heap.
    fn heap(&self) -> Result<Option<ProxyHeap>, AdminError> {
        Ok(None)
    }

    /// Whether this port of the application accepts plaintext; absent if the proxy does not report it.
    fn accepts_plaintext(&self, _port: u16) -> Result<Option<bool>, AdminError> {
        Ok(None)
    }

    /// Its configuration, counted, and copied as it is read: whole, without certificates and keys. Absent, and nothing is
    /// copied, where it tells of none. Telling may leave its heap larger.
    fn configuration(&self, _copy: &mut dyn DumpCopy) -> Result<Option<ProxyConfiguration>, AdminError> {
        Ok(None)
    }

    /// Empty if the proxy serves no requests.
    fn liveness_probes(&self) -> Vec<LivenessProbe> {
        Vec::new()
    }

    /// Absent without an admin interface.
    fn admin(&self) -> Option<&Admin> {
        None
    }
}

/// A proxy that did not respond and is not queried again.
#[derive(Debug)]
pub struct Unresponsive {
    pub proxy: String,
    pub reason: String,
}

impl Unresponsive {
    fn error(&self, path: &str) -> AdminError {
        let cause = AdminCause::NotAsked(self.reason.clone());
        AdminError { proxy: self.proxy.clone(), path: path.to_owned(), cause }
    }
}

impl CounterSource for Unresponsive {
    fn counters(&self) -> Result<BTreeMap<String, u64>, AdminError> {
        Err(self.error("its counters"))
    }

    fn heap(&self) -> Result<Option<ProxyHeap>, AdminError> {
        Err(self.error("its heap"))
    }

    fn configuration(&self, _copy: &mut dyn DumpCopy) -> Result<Option<ProxyConfiguration>, AdminError> {
        Err(self.error("its configuration"))
    }
}

impl CounterSource for Admin {
    fn is_ready(&self) -> Result<bool, AdminError> {
        self.ready()
    }

    fn counters(&self) -> Result<BTreeMap<String, u64>, AdminError> {
        Self::counters(self)
    }

    fn heap(&self) -> Result<Option<ProxyHeap>, AdminError> {
        Self::heap(self).map(Some)
    }

    fn configuration(&self, copy: &mut dyn DumpCopy) -> Result<Option<ProxyConfiguration>, AdminError> {
        Self::configuration(self, copy).map(Some)
    }

    fn liveness_probes(&self) -> Vec<LivenessProbe> {
        vec![LivenessProbe { process: None, admin: self.clone(), path: "/ready" }]
    }

    fn admin(&self) -> Option<&Admin> {
        Some(self)
    }
}

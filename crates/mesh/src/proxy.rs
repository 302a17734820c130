//! What a running proxy can be asked: counters, heap, configuration, signs of life.

use crate::admin::liveness::LivenessProbe;
use crate::admin::{Admin, AdminCause, AdminError};
use crate::config_dump::DumpCopy;
use experiment::schema::{ProxyConfiguration, ProxyHeap};
use std::collections::BTreeMap;
use std::fmt;

/// A proxy that is asked what it counted and what it holds.
pub trait CounterSource: fmt::Debug + Send + Sync {
    /// Whether it serves by now.
    ///
    /// # Errors
    /// It answers neither yes nor "not yet".
    fn is_ready(&self) -> Result<bool, AdminError> {
        Ok(true)
    }

    /// All counters by name.
    ///
    /// # Errors
    /// Where there is no answer in time.
    fn counters(&self) -> Result<BTreeMap<String, u64>, AdminError>;

    /// Its own account of its heap; absent where it gives none.
    ///
    /// # Errors
    /// Where there is no answer in time.
    fn heap(&self) -> Result<Option<ProxyHeap>, AdminError> {
        Ok(None)
    }

    /// Whether it takes plain text for this port of the application; absent where it tells of no such port.
    ///
    /// # Errors
    /// Where there is no answer in time.
    fn accepts_plaintext(&self, _port: u16) -> Result<Option<bool>, AdminError> {
        Ok(None)
    }

    /// Its configuration, counted, and copied as it is read: whole, without certificates and keys. Absent, and nothing is
    /// copied, where it tells of none. Telling may leave its heap larger.
    ///
    /// # Errors
    /// Where there is no answer in time, or not of its shape: the copy is then worth nothing.
    fn configuration(&self, _copy: &mut dyn DumpCopy) -> Result<Option<ProxyConfiguration>, AdminError> {
        Ok(None)
    }

    /// What it answers as long as it does anything; nothing where it answers no questions.
    fn liveness_probes(&self) -> Vec<LivenessProbe> {
        Vec::new()
    }

    /// Where it answers people; absent where it has no admin interface.
    fn admin(&self) -> Option<&Admin> {
        None
    }
}

/// A proxy that did not answer, and is not asked again.
#[derive(Debug)]
pub struct Unresponsive {
    /// The component.
    pub proxy: String,
    /// Why it did not.
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

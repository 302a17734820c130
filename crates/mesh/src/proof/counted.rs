//! A proxy with what it counted.

use super::evidence::Evidence;
use std::collections::BTreeMap;

/// A proxy of the path with its counters. Listed from client to server.
#[derive(Clone, Debug)]
pub struct CountedProxy {
    pub name: String,
    /// The end of the path that the proxy is at; absent if it is on the path once.
    pub side: Option<&'static str>,
    pub evidence: Evidence,
    /// Before the generator started.
    pub before: BTreeMap<String, u64>,
    /// After the generator's end; or why they could not be read.
    pub after: Result<BTreeMap<String, u64>, String>,
}

impl CountedProxy {
    /// Its name in reasons.
    pub fn called(&self) -> String {
        self.side.map_or_else(|| self.name.clone(), |side| format!("{} at the {side}", self.name))
    }
}

//! A proxy with what it counted.

use super::evidence::Evidence;
use std::collections::BTreeMap;

/// One proxy of the path and what it counted. Proxies are listed from client to server.
#[derive(Clone, Debug)]
pub struct CountedProxy {
    /// The component.
    pub name: String,
    /// Which end of the path it stands at here; absent where it stands on the path once.
    pub side: Option<&'static str>,
    /// What of its counters tells of the path.
    pub evidence: Evidence,
    /// Its counters before the generator started.
    pub before: BTreeMap<String, u64>,
    /// Its counters after the generator's end; or why they could not be read.
    pub after: Result<BTreeMap<String, u64>, String>,
}

impl CountedProxy {
    /// What it is called where something is wrong.
    #[must_use]
    pub fn called(&self) -> String {
        self.side.map_or_else(|| self.name.clone(), |side| format!("{} at the {side}", self.name))
    }
}

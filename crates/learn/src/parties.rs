//! Workloads, hosts and endpoints by interned names, hashed as they are read if names are to be given to others.

use crate::labels::Anonymiser;
use experiment::topology::script::DEFAULT_ENDPOINT;
use std::collections::HashMap;

/// Maximum number of pairs of workloads and called hosts.
pub(crate) const MAX_PAIRS: usize = 200_000;
/// Maximum number of distinct names.
const MAX_NAMES: usize = 200_000;
/// Maximum length of a name, bytes; a host name has at most 253.
const MAX_NAME_BYTES: usize = 253;

/// Telemetry beyond what a mesh has.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum TooMuch {
    /// Pairs of workloads.
    #[error("more than {MAX_PAIRS} pairs of workloads")]
    Pairs,
    /// Names.
    #[error("more than {MAX_NAMES} names of workloads, namespaces and hosts")]
    Names,
    /// Length of a name.
    #[error("a name of more than {MAX_NAME_BYTES} bytes")]
    NameBytes,
    /// Bounds of a histogram.
    #[error("a histogram with more than 64 buckets")]
    Buckets,
    /// Series with samples.
    #[error("more than 5000000 series")]
    Series,
}

/// Interned name of a workload, a namespace or a host.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct Name(u32);

/// Name of what a proxy could not identify.
pub(crate) const UNKNOWN: Name = Name(0);

/// A workload.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct Party {
    pub(crate) namespace: Name,
    pub(crate) workload: Name,
}

impl Party {
    pub(crate) fn is_known(self) -> bool {
        self.workload != UNKNOWN
    }
}

/// Callee of a pair.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Callee {
    Workload(Party),
    Host(Name),
}

/// Names by number.
#[derive(Debug)]
pub(crate) struct Interner {
    ids: HashMap<String, Name>,
    texts: Vec<String>,
    /// Number of names that are those of endpoints alone.
    endpoints: usize,
    anonymiser: Option<Anonymiser>,
}

impl Interner {
    pub(crate) fn new(anonymiser: Option<Anonymiser>) -> Self {
        Self { ids: HashMap::new(), texts: vec!["unknown".to_owned()], endpoints: 0, anonymiser }
    }

    pub(crate) fn is_anonymised(&self) -> bool {
        self.anonymiser.is_some()
    }

    /// Interns a name; an absent or empty one, and Istio's `unknown`, is [`UNKNOWN`].
    pub(crate) fn name(&mut self, text: Option<&str>) -> Result<Name, TooMuch> {
        let Some(text) = text.filter(|text| !text.is_empty() && *text != "unknown") else {
            return Ok(UNKNOWN);
        };
        if let Some(name) = self.ids.get(text) {
            return Ok(*name);
        }
        if text.len() > MAX_NAME_BYTES {
            return Err(TooMuch::NameBytes);
        }
        if self.texts.len() >= MAX_NAMES {
            return Err(TooMuch::Names);
        }
        let name = Name(self.texts.len() as u32);
        self.texts.push(match &self.anonymiser {
            Some(anonymiser) => anonymiser.hashed_host(text),
            None => text.to_owned(),
        });
        self.ids.insert(text.to_owned(), name);
        Ok(name)
    }

    /// Interns the name of an endpoint; one that is too long, or beyond this number of them, is [`UNKNOWN`].
    pub(crate) fn endpoint(&mut self, text: &str, max: usize) -> Name {
        let known = self.texts.len();
        if self.endpoints >= max && !self.ids.contains_key(text) {
            return UNKNOWN;
        }
        let name = self.name(Some(text)).unwrap_or(UNKNOWN);
        self.endpoints += self.texts.len() - known;
        name
    }

    pub(crate) fn endpoint_text(&self, name: Name) -> &str {
        if name == UNKNOWN { DEFAULT_ENDPOINT } else { self.text(name) }
    }

    pub(crate) fn text(&self, name: Name) -> &str {
        &self.texts[name.0 as usize]
    }
}

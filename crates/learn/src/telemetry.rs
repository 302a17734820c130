//! Reports of proxies, by pair of workloads and by reporter, whatever mesh they belong to.

use crate::histogram::Histogram;
use crate::labels::Anonymiser;
use std::collections::{BTreeMap, HashMap};

/// Maximum number of pairs of workloads and called hosts.
const MAX_PAIRS: usize = 200_000;
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
    #[error("more than 5000000 series of counters with samples")]
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

/// A caller, a callee, and the host that the caller used.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct Pair {
    pub(crate) from: Party,
    pub(crate) to: Party,
    pub(crate) host: Name,
}

/// Proxy that reports a call, in the order of precedence for rates and sizes.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Reporter {
    Source,
    Waypoint,
    Destination,
}

impl Reporter {
    pub(crate) const ALL: [Self; 3] = [Self::Source, Self::Waypoint, Self::Destination];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Waypoint => "waypoint",
            Self::Destination => "destination",
        }
    }
}

/// Counts and sizes of requests that one kind of reporter saw.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Requests {
    /// Per second.
    pub(crate) rate: f64,
    /// Number counted in the period.
    pub(crate) count: f64,
    /// Requests per second that were answered with an error.
    pub(crate) error_rate: f64,
    /// Requests per second over gRPC.
    pub(crate) grpc_rate: f64,
    /// Resets of counters.
    pub(crate) resets: f64,
    /// Seconds.
    pub(crate) duration: Histogram,
    pub(crate) request_bytes: Histogram,
    pub(crate) response_bytes: Histogram,
}

/// Counts of connections that one kind of reporter saw.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Connections {
    /// Opened per second.
    pub(crate) rate: f64,
    pub(crate) count: f64,
    pub(crate) sent_bytes: f64,
    pub(crate) received_bytes: f64,
    pub(crate) resets: f64,
}

/// Everything reported of a pair.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Reported {
    pub(crate) requests: [Option<Box<Requests>>; 3],
    pub(crate) connections: [Option<Connections>; 3],
}

impl Reported {
    pub(crate) fn requests_of(&mut self, reporter: Reporter) -> &mut Requests {
        self.requests[reporter as usize].get_or_insert_default()
    }

    pub(crate) fn connections_of(&mut self, reporter: Reporter) -> &mut Connections {
        self.connections[reporter as usize].get_or_insert_default()
    }
}

/// Telemetry of a mesh over a period.
#[derive(Debug)]
pub struct Telemetry {
    ids: HashMap<String, Name>,
    texts: Vec<String>,
    pub(crate) pairs: BTreeMap<Pair, Reported>,
    /// Length of the period that rates cover, seconds.
    pub(crate) period_s: f64,
    /// End of the period, seconds since 1970.
    pub(crate) at: f64,
    /// Rows of answers by metric.
    pub(crate) rows: BTreeMap<&'static str, u64>,
    /// Rows of metrics that are not read.
    pub(crate) foreign_rows: u64,
    /// Rows whose numbers cannot be used: not a number, infinite, negative.
    pub(crate) unusable_rows: u64,
    /// CPU of all sidecars, cores.
    pub(crate) sidecar_cpu_cores: Option<f64>,
    /// Memory of all sidecars, bytes.
    pub(crate) sidecar_memory_bytes: Option<f64>,
    pub(crate) anonymiser: Option<Anonymiser>,
}

impl Telemetry {
    /// Empty telemetry. With an anonymiser, names are hashed as they are read.
    #[must_use]
    pub fn new(anonymiser: Option<Anonymiser>) -> Self {
        Self {
            ids: HashMap::new(),
            texts: vec!["unknown".to_owned()],
            pairs: BTreeMap::new(),
            period_s: 0.0,
            at: 0.0,
            rows: BTreeMap::new(),
            foreign_rows: 0,
            unusable_rows: 0,
            sidecar_cpu_cores: None,
            sidecar_memory_bytes: None,
            anonymiser,
        }
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

    pub(crate) fn text(&self, name: Name) -> &str {
        &self.texts[name.0 as usize]
    }

    pub(crate) fn pair(&mut self, pair: Pair) -> Result<&mut Reported, TooMuch> {
        if self.pairs.len() >= MAX_PAIRS && !self.pairs.contains_key(&pair) {
            return Err(TooMuch::Pairs);
        }
        Ok(self.pairs.entry(pair).or_default())
    }
}

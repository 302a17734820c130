//! Reports of proxies, by pair of workloads and by reporter, whatever mesh they belong to.

use crate::dialect::Dialect;
use crate::histogram::Histogram;
use crate::labels::Anonymiser;
use crate::parties::{Interner, MAX_PAIRS, Name, Party, TooMuch};
use crate::traces::Traces;
use results::units::shortened;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of names of unknown protocols.
const MAX_UNKNOWN_PROTOCOLS: usize = 20;

/// A caller, a callee, the host that the caller used, and the dialect in which a proxy says so.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct Pair {
    pub(crate) from: Party,
    pub(crate) to: Party,
    pub(crate) host: Name,
    pub(crate) dialect: Dialect,
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
    /// True if anything was counted. What reports 0 alone is removed: its workloads never talk.
    pub(crate) fn is_used(&mut self) -> bool {
        for requests in &mut self.requests {
            requests.take_if(|own| {
                own.count + own.duration.values() + own.request_bytes.values() + own.response_bytes.values()
                    <= 0.0
            });
        }
        for connections in &mut self.connections {
            connections.take_if(|own| own.count + own.sent_bytes + own.received_bytes <= 0.0);
        }
        self.requests.iter().any(Option::is_some) || self.connections.iter().any(Option::is_some)
    }

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
    pub(crate) names: Interner,
    pub(crate) pairs: BTreeMap<Pair, Reported>,
    /// Workloads in the mesh, where the source says so instead of their proxies.
    pub(crate) members: BTreeSet<Party>,
    /// Dialect of all pairs.
    pub(crate) dialect: Dialect,
    /// Requests per second in other dialects, which are left out.
    pub(crate) left_out: BTreeMap<Dialect, f64>,
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
    /// Rows of protocols that are not read, by the protocol's name: empty if it is hidden, or beyond the first names.
    pub(crate) unknown_protocols: BTreeMap<String, u64>,
    /// CPU of all sidecars, cores.
    pub(crate) sidecar_cpu_cores: Option<f64>,
    /// Memory of all sidecars, bytes.
    pub(crate) sidecar_memory_bytes: Option<f64>,
    /// Warnings of the answers: some may be partial.
    pub(crate) warnings: BTreeSet<String>,
    pub(crate) traces: Option<Box<Traces>>,
}

impl Telemetry {
    /// Empty telemetry. With an anonymiser, names are hashed as they are read.
    #[must_use]
    pub fn new(anonymiser: Option<Anonymiser>) -> Self {
        Self {
            names: Interner::new(anonymiser),
            pairs: BTreeMap::new(),
            members: BTreeSet::new(),
            dialect: Dialect::default(),
            left_out: BTreeMap::new(),
            period_s: 0.0,
            at: 0.0,
            rows: BTreeMap::new(),
            foreign_rows: 0,
            unusable_rows: 0,
            unknown_protocols: BTreeMap::new(),
            sidecar_cpu_cores: None,
            sidecar_memory_bytes: None,
            warnings: BTreeSet::new(),
            traces: None,
        }
    }

    /// Keeps the pairs of the first dialect with requests, or with connections if there are no requests.
    pub(crate) fn choose_dialect(&mut self) {
        let rate =
            |reported: &Reported| reported.requests.iter().flatten().map(|own| own.rate).fold(0.0, f64::max);
        let first = |is_chosen: &dyn Fn(&Reported) -> bool| {
            let has = |dialect: &Dialect| {
                self.pairs.iter().any(|(pair, reported)| pair.dialect == *dialect && is_chosen(reported))
            };
            Dialect::ALL.into_iter().find(has)
        };
        let chosen = first(&|reported| rate(reported) > 0.0).or_else(|| first(&|_| true));
        self.dialect = chosen.unwrap_or_default();
        for (pair, reported) in self.pairs.iter().filter(|(pair, _)| pair.dialect != self.dialect) {
            *self.left_out.entry(pair.dialect).or_default() += rate(reported);
        }
        self.pairs.retain(|pair, _| pair.dialect == self.dialect);
    }

    /// Counts a row of a protocol that is not read.
    pub(crate) fn add_unknown_protocol(&mut self, name: &str) {
        let mut name = if self.is_anonymised() { String::new() } else { shortened(name) };
        let is_full = self.unknown_protocols.len() >= MAX_UNKNOWN_PROTOCOLS;
        if is_full && !self.unknown_protocols.contains_key(&name) {
            name.clear();
        }
        *self.unknown_protocols.entry(name).or_default() += 1;
    }

    pub(crate) fn is_anonymised(&self) -> bool {
        self.names.is_anonymised()
    }

    /// Interns a name.
    pub(crate) fn name(&mut self, text: Option<&str>) -> Result<Name, TooMuch> {
        self.names.name(text)
    }

    pub(crate) fn text(&self, name: Name) -> &str {
        self.names.text(name)
    }

    pub(crate) fn pair(&mut self, pair: Pair) -> Result<&mut Reported, TooMuch> {
        if self.pairs.len() >= MAX_PAIRS && !self.pairs.contains_key(&pair) {
            return Err(TooMuch::Pairs);
        }
        Ok(self.pairs.entry(pair).or_default())
    }
}

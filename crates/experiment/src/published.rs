//! Figures that others published for the question of an experiment, to stand beside its own.

use crate::mode::Mode;
use crate::objective::TimeFigure;
use crate::units::{UnitError, format_change, format_duration, parse_duration};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The margin within which figures of different set-ups agree, where an experiment does not say another.
pub const DEFAULT_MARGIN: f64 = 0.2;

/// Figures of one source.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedSource {
    /// Who and which version, such as `Istio 1.24, performance and scalability`.
    pub source: String,
    /// What differs between their set-up and this one.
    pub differs: String,
    /// How far apart figures may be and still agree, as a fraction of the published one; absent: [`DEFAULT_MARGIN`].
    pub margin: Option<f64>,
    /// The figures.
    pub figures: Vec<ReferenceFigure>,
}

/// One figure, and what of a run it is to stand beside.
#[derive(Clone, Debug, PartialEq)]
pub struct ReferenceFigure {
    /// The mode that it is of.
    pub mode: Mode,
    /// The rate at which it was measured, requests a second; absent: whatever the lowest of the run is.
    pub rate: Option<f64>,
    /// In a closed loop the number of clients with which it was measured; absent: whatever the lowest of the run is.
    pub clients: Option<usize>,
    /// The gateway's CPU limit with which it was measured, cores; absent: whatever the lowest of the run is.
    pub gateway_cpu_cores: Option<f64>,
    /// Of the resources of one component; absent: of each proxy.
    pub component: Option<String>,
    /// What was measured, with its value.
    pub value: ReferenceValue,
}

/// What was measured, with its value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReferenceValue {
    /// CPU for every 1000 requests a second, cores.
    Cpu(f64),
    /// Responses a second in a closed loop.
    Throughput(f64),
    /// The same for each core that a component uses.
    ThroughputPerCpu(f64),
    /// Memory, bytes.
    Memory(MemoryKind, u64),
    /// A figure of the response time or of the service time.
    Time(Clock, TimeFigure, TimeRange),
    /// CPU that a group of containers reserves, cores.
    ReservedCpu(f64),
    /// Memory that a group of containers reserves, bytes.
    ReservedMemory(u64),
    /// CPU of all istiods with a fleet, cores.
    IstiodCpu(f64),
    /// Memory of all istiods with a fleet, bytes.
    IstiodMemory(u64),
    /// The same per proxy of the fleet.
    IstiodMemoryPerProxy(u64),
    /// What the mode adds to a percentile of mode `none`.
    Added(PublishedPercentile, Duration),
    /// A quantity of the mode against the same of another mode under the same load.
    Relative(RelativeQuantity, Mode, Relation),
}

/// From when on the time of a request counts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Clock {
    /// From its intended start: corrected for coordinated omission.
    Response,
    /// From its actual send: uncorrected.
    Service,
}

/// Times that were published as one, or as a range.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TimeRange {
    /// The least.
    pub low: Duration,
    /// The greatest: the least again where it is one time.
    pub high: Duration,
}

/// As an experiment file has it: `2ms..5ms`, or `5ms`.
impl fmt::Display for TimeRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.low != self.high {
            write!(f, "{}..", format_duration(self.low))?;
        }
        f.write_str(&format_duration(self.high))
    }
}

impl FromStr for TimeRange {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (low, high) = text.split_once("..").unwrap_or((text, text));
        let range = Self { low: parse_duration(low)?, high: parse_duration(high)? };
        if range.low > range.high {
            return Err(UnitError {
                given: crate::units::shortened(text),
                quantity: "range",
                expected: "expected the lesser time first".to_owned(),
                example: "2ms..5ms",
            });
        }
        Ok(range)
    }
}

/// What is compared between two modes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RelativeQuantity {
    /// Responses a second in a closed loop.
    Throughput,
    /// CPU of all proxies together for each request.
    Cpu,
}

/// How the one stands to the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Relation {
    /// More or less by a fraction: −0.1 is a tenth less.
    Change(f64),
    /// Without a difference worth telling.
    Alike,
    /// More, by how much is not said.
    Higher,
    /// Less, by how much is not said.
    Lower,
}

impl Relation {
    /// The words that say no number, as they stand in an experiment file.
    pub const WORDS: [(&'static str, Self); 3] =
        [("alike", Self::Alike), ("higher", Self::Higher), ("lower", Self::Lower)];
}

/// As an experiment file has it: `-10%` or a word.
impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Change(change) => f.write_str(&format_change(*change)),
            Self::Alike => f.write_str("alike"),
            Self::Higher => f.write_str("higher"),
            Self::Lower => f.write_str("lower"),
        }
    }
}

/// What counts as memory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MemoryKind {
    /// What the control group is charged with, less inactive page cache: what a cluster shows for a container.
    WorkingSet,
    /// Of all processes, pages of files included.
    Resident,
    /// Pages of no file: heaps and stacks.
    Anonymous,
}

impl MemoryKind {
    /// The word for it in an experiment file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::WorkingSet => "memory",
            Self::Resident => "memory-resident",
            Self::Anonymous => "memory-anonymous",
        }
    }
}

/// The percentiles that are published.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PublishedPercentile {
    /// Median.
    P50,
    /// 90th percentile.
    P90,
    /// 99th percentile.
    P99,
}

impl PublishedPercentile {
    /// Such as `p90`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P99 => "p99",
        }
    }
}

impl ReferenceValue {
    /// The word for it in an experiment file, such as `cpu` or `added-p90`.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Cpu(_) => "cpu".to_owned(),
            Self::Memory(kind, _) => kind.name().to_owned(),
            Self::Time(Clock::Response, figure, _) => figure.name().to_owned(),
            Self::Time(Clock::Service, figure, _) => format!("service-{}", figure.name()),
            Self::ReservedCpu(_) => "reserved-cpu".to_owned(),
            Self::ReservedMemory(_) => "reserved-memory".to_owned(),
            Self::IstiodCpu(_) => "istiod-cpu".to_owned(),
            Self::IstiodMemory(_) => "istiod-memory".to_owned(),
            Self::IstiodMemoryPerProxy(_) => "istiod-memory-per-proxy".to_owned(),
            Self::Added(percentile, _) => format!("added-{}", percentile.name()),
            Self::Throughput(_) | Self::Relative(RelativeQuantity::Throughput, ..) => "throughput".to_owned(),
            Self::ThroughputPerCpu(_) => "throughput-per-cpu".to_owned(),
            Self::Relative(RelativeQuantity::Cpu, ..) => "cpu".to_owned(),
        }
    }

    /// Whether it is of a group of containers: the component is the group's name.
    #[must_use]
    pub fn is_reserved(self) -> bool {
        matches!(self, Self::ReservedCpu(_) | Self::ReservedMemory(_))
    }

    /// Whether it is of a fleet and its control plane.
    #[must_use]
    pub fn is_of_fleet(self) -> bool {
        matches!(self, Self::IstiodCpu(_) | Self::IstiodMemory(_) | Self::IstiodMemoryPerProxy(_))
    }

    /// Whether it is of a component rather than of requests.
    #[must_use]
    pub fn is_resource(self) -> bool {
        matches!(self, Self::Cpu(_) | Self::Memory(..) | Self::ThroughputPerCpu(_)) || self.is_reserved()
    }
}

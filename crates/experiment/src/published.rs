//! Published figures for the question of an experiment, shown next to its own.

use results::units::{UnitError, format_change, format_duration, parse_duration};
use results::{Clock, Metric, Mode};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Default margin within which figures from different setups agree, as a fraction.
pub const DEFAULT_MARGIN: f64 = 0.2;

/// Figures of one source.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedSource {
    /// Author and version, such as `Istio 1.24, performance and scalability`.
    pub source: String,
    /// Differences between their setup and this one.
    pub differs: String,
    /// Maximum difference at which figures still agree, as a fraction of the published one; absent:
    /// [`DEFAULT_MARGIN`].
    pub margin: Option<f64>,
    /// The figures.
    pub figures: Vec<ReferenceFigure>,
}

/// One published figure, and the figure of a run that it is compared with.
#[derive(Clone, Debug, PartialEq)]
pub struct ReferenceFigure {
    /// Mode of the figure.
    pub mode: Mode,
    /// Rate at which it was measured, requests per second; absent: the lowest rate of the run.
    pub rate: Option<f64>,
    /// In a closed loop, the number of clients; absent: the lowest number of the run.
    pub clients: Option<usize>,
    /// Size of the prompts of streams, bytes; absent: the first one of the run.
    pub prompt_bytes: Option<u64>,
    /// CPU limit of the gateway, cores; absent: the lowest limit of the run.
    pub gateway_cpu_cores: Option<f64>,
    /// Component whose resources were measured; absent: each proxy.
    pub component: Option<String>,
    /// Measured quantity and its value.
    pub value: ReferenceValue,
}

/// Measured quantity and its value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReferenceValue {
    /// CPU per 1000 requests/s, cores.
    Cpu(f64),
    /// Responses per second in a closed loop.
    Throughput(f64),
    /// Responses per second in a closed loop, per core that a component uses.
    ThroughputPerCpu(f64),
    /// Memory, bytes: working set, resident or anonymous.
    Memory(Metric, u64),
    /// Figure of the response time or of the service time.
    Time(Metric, TimeRange),
    /// CPU reserved by a group of containers, cores.
    ReservedCpu(f64),
    /// Memory reserved by a group of containers, bytes.
    ReservedMemory(u64),
    /// CPU of all istiods in a fleet experiment, cores.
    IstiodCpu(f64),
    /// Memory of all istiods in a fleet experiment, bytes.
    IstiodMemory(u64),
    /// Memory of all istiods per proxy of the fleet, bytes.
    IstiodMemoryPerProxy(u64),
    /// Percentile of the added latency, compared with mode `none`.
    Added(Metric, Duration),
    /// Quantity of the mode relative to another mode under the same load.
    Relative(RelativeQuantity, Mode, Relation),
}

/// Published time, or range of times.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TimeRange {
    /// Lower end.
    pub low: Duration,
    /// Upper end; equal to the lower end for a single time.
    pub high: Duration,
}

/// Syntax of experiment files: `2ms..5ms`, or `5ms`.
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
                given: results::units::shortened(text),
                quantity: "range",
                expected: "expected the lesser time first".to_owned(),
                example: "2ms..5ms",
            });
        }
        Ok(range)
    }
}

/// Quantity that is compared between two modes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RelativeQuantity {
    /// Responses per second in a closed loop.
    Throughput,
    /// CPU of all proxies per request.
    Cpu,
}

/// Relation between the quantities of two modes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Relation {
    /// More or less by a fraction: −0.1 is a tenth less.
    Change(f64),
    /// No noteworthy difference.
    Alike,
    /// Higher, by an unpublished amount.
    Higher,
    /// Lower, by an unpublished amount.
    Lower,
}

impl Relation {
    /// Keywords of experiment files for relations without a number.
    pub const WORDS: [(&'static str, Self); 3] =
        [("alike", Self::Alike), ("higher", Self::Higher), ("lower", Self::Lower)];
}

/// Syntax of experiment files: `-10%` or a keyword.
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

impl ReferenceValue {
    /// Keyword in experiment files, such as `cpu` or `added-p90`.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Cpu(_) => "cpu".to_owned(),
            Self::Memory(Metric::MemoryResidentBytes, _) => "memory-resident".to_owned(),
            Self::Memory(Metric::MemoryAnonymousBytes, _) => "memory-anonymous".to_owned(),
            Self::Memory(..) => "memory".to_owned(),
            Self::Time(metric, _) if metric.clock() == Some(Clock::ServiceTime) => {
                format!("service-{}", metric.spoiled_by().name())
            }
            Self::Time(metric, _) if metric.clock() == Some(Clock::FirstEvent) => {
                format!("first-token-{}", metric.spoiled_by().name())
            }
            Self::Time(metric, _) => metric.spoiled_by().name().to_owned(),
            Self::ReservedCpu(_) => "reserved-cpu".to_owned(),
            Self::ReservedMemory(_) => "reserved-memory".to_owned(),
            Self::IstiodCpu(_) => "istiod-cpu".to_owned(),
            Self::IstiodMemory(_) => "istiod-memory".to_owned(),
            Self::IstiodMemoryPerProxy(_) => "istiod-memory-per-proxy".to_owned(),
            Self::Added(metric, _) => format!("added-{}", metric.spoiled_by().name()),
            Self::Throughput(_) | Self::Relative(RelativeQuantity::Throughput, ..) => "throughput".to_owned(),
            Self::ThroughputPerCpu(_) => "throughput-per-cpu".to_owned(),
            Self::Relative(RelativeQuantity::Cpu, ..) => "cpu".to_owned(),
        }
    }

    /// True for a figure of a group of containers; the component is then the group's name.
    #[must_use]
    pub fn is_reserved(self) -> bool {
        matches!(self, Self::ReservedCpu(_) | Self::ReservedMemory(_))
    }

    /// True for a figure of a fleet's control plane.
    #[must_use]
    pub fn is_of_fleet(self) -> bool {
        matches!(self, Self::IstiodCpu(_) | Self::IstiodMemory(_) | Self::IstiodMemoryPerProxy(_))
    }

    /// True for a figure of a component rather than of requests.
    #[must_use]
    pub fn is_resource(self) -> bool {
        matches!(self, Self::Cpu(_) | Self::Memory(..) | Self::ThroughputPerCpu(_)) || self.is_reserved()
    }
}

//! Figures of a trial whose driver is a fleet of simulated proxies.

use crate::histogram::LatencyHistogram;
use experiment::schema::{ComparedFigure, Figure, FleetResult, HistogramSummary, SizedFigure, TrialRecord};

/// A figure of a fleet that cells are compared by.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum FleetFigure {
    ConvergenceP50,
    ConvergenceP90,
    ConvergenceP99,
    ConvergenceLast,
    FirstConfigurationLast,
    IstiodCpu,
    IstiodMemory,
    BytesPerProxy,
}

impl FleetFigure {
    /// All figures, in the order in which they are listed.
    pub(crate) const ALL: [Self; 8] = [
        Self::ConvergenceP50,
        Self::ConvergenceP90,
        Self::ConvergenceP99,
        Self::ConvergenceLast,
        Self::FirstConfigurationLast,
        Self::IstiodCpu,
        Self::IstiodMemory,
        Self::BytesPerProxy,
    ];

    /// The figure of a verdict that spoils it.
    pub(crate) fn figure(self) -> Figure {
        match self {
            Self::ConvergenceP50 => Figure::P50,
            Self::ConvergenceP90 => Figure::P90,
            Self::ConvergenceP99 => Figure::P99,
            Self::ConvergenceLast | Self::FirstConfigurationLast => Figure::Max,
            Self::IstiodCpu => Figure::Cpu,
            Self::IstiodMemory => Figure::Memory,
            Self::BytesPerProxy => Figure::Network,
        }
    }

    /// The same between values of a factor.
    pub(crate) fn compared(self) -> ComparedFigure {
        match self {
            Self::ConvergenceP50 => ComparedFigure::ConvergenceP50Us,
            Self::ConvergenceP90 => ComparedFigure::ConvergenceP90Us,
            Self::ConvergenceP99 => ComparedFigure::ConvergenceP99Us,
            Self::ConvergenceLast => ComparedFigure::ConvergenceLastUs,
            Self::FirstConfigurationLast => ComparedFigure::FirstConfigurationLastUs,
            Self::IstiodCpu => ComparedFigure::IstiodCpuS,
            Self::IstiodMemory => ComparedFigure::IstiodMemoryBytes,
            Self::BytesPerProxy => ComparedFigure::BytesPerProxy,
        }
    }

    /// The same against a factor.
    pub(crate) fn sized(self) -> SizedFigure {
        match self {
            Self::ConvergenceP50 => SizedFigure::ConvergenceP50Us,
            Self::ConvergenceP90 => SizedFigure::ConvergenceP90Us,
            Self::ConvergenceP99 => SizedFigure::ConvergenceP99Us,
            Self::ConvergenceLast => SizedFigure::ConvergenceLastUs,
            Self::FirstConfigurationLast => SizedFigure::FirstConfigurationLastUs,
            Self::IstiodCpu => SizedFigure::IstiodCpuS,
            Self::IstiodMemory => SizedFigure::IstiodMemoryBytes,
            Self::BytesPerProxy => SizedFigure::BytesPerProxy,
        }
    }

    /// Whether it is a time, in microseconds.
    pub(crate) fn is_time(self) -> bool {
        self.figure().quantile().is_some()
    }

    /// Its value. Absent where it lies among proxies never reached, or was not measured.
    pub(crate) fn of(self, fleet: &FleetResult) -> Option<f64> {
        let convergence = |figure| of_times(&fleet.convergence_us, figure);
        match self {
            Self::ConvergenceP50 | Self::ConvergenceP90 | Self::ConvergenceP99 | Self::ConvergenceLast => {
                convergence(self.figure())
            }
            Self::FirstConfigurationLast => of_times(&fleet.first_configuration_us, Figure::Max),
            Self::IstiodCpu => fleet.of_istiods(|istiod| istiod.cpu_s),
            Self::IstiodMemory => istiod_memory_bytes(fleet),
            Self::BytesPerProxy => bytes_per_proxy(fleet),
        }
    }

    /// Whether the fleet measured it, if not in every proxy: a figure of a cell among proxies never reached has no estimate.
    pub(crate) fn was_measured(self, trial: &TrialRecord) -> bool {
        let Some(fleet) = trial.fleet() else { return false };
        match self {
            Self::ConvergenceP50 | Self::ConvergenceP90 | Self::ConvergenceP99 | Self::ConvergenceLast => {
                fleet.convergence_us.requests() > 0
            }
            Self::FirstConfigurationLast => fleet.first_configuration_us.requests() > 0,
            _ => self.of(fleet).is_some(),
        }
    }
}

/// A figure of a distribution over proxies; absent without any.
pub(crate) fn of_times(times: &HistogramSummary, figure: Figure) -> Option<f64> {
    times.figure(figure).filter(|_| times.requests() > 0)
}

/// Distribution over all changes of a kind; absent without any, or if a histogram cannot be read.
pub(crate) fn of_kind(fleet: &FleetResult, kind: &str) -> Option<HistogramSummary> {
    let own = fleet.changes.iter().filter(|change| change.kind == kind).map(|change| &change.convergence_us);
    merged(own)
}

/// Several distributions together; absent without any value, or if a histogram cannot be read.
pub(crate) fn merged<'a>(parts: impl Iterator<Item = &'a HistogramSummary>) -> Option<HistogramSummary> {
    let parts: Vec<&HistogramSummary> = parts.filter(|times| times.requests() > 0).collect();
    if let [only] = parts.as_slice() {
        return Some((*only).clone());
    }
    let mut whole = LatencyHistogram::new();
    for part in parts.iter().filter(|part| part.count > 0) {
        whole.merge(&LatencyHistogram::decode(&part.histogram).ok()?);
    }
    let censored = parts.iter().map(|part| part.censored).sum();
    (!parts.is_empty()).then(|| whole.summary_with(censored))
}

/// Greatest resident memory that was read; at the end where no greatest one was.
pub(crate) fn istiod_memory_bytes(fleet: &FleetResult) -> Option<f64> {
    fleet.of_istiods(|istiod| Some(istiod.memory_peak_bytes.or(istiod.memory_bytes)? as f64))
}

pub(crate) fn bytes_per_proxy(fleet: &FleetResult) -> Option<f64> {
    (fleet.proxies.wanted > 0).then(|| fleet.bytes_received as f64 / fleet.proxies.wanted as f64)
}

//! Figures of a trial whose driver is a fleet of simulated proxies.

use results::{Figure, FleetFigure, FleetResult, HistogramSummary, LatencyHistogram, TrialRecord};

/// Value of a figure. `None` if it falls among proxies never reached, or was not measured.
pub(crate) fn value(figure: FleetFigure, trial: &TrialRecord) -> Option<f64> {
    let fleet = trial.fleet()?;
    match figure {
        FleetFigure::ConvergenceP50Us
        | FleetFigure::ConvergenceP90Us
        | FleetFigure::ConvergenceP99Us
        | FleetFigure::ConvergenceLastUs => of_times(&fleet.convergence_us, figure.figure()),
        FleetFigure::FirstConfigurationLastUs => of_times(&fleet.first_configuration_us, Figure::Max),
        FleetFigure::IstiodCpuS => fleet.of_istiods(|istiod| istiod.cpu_s),
        FleetFigure::IstiodMemoryBytes => istiod_memory_bytes(fleet),
        FleetFigure::IstiodMemoryAnonymousBytes => istiod_memory_anonymous_bytes(trial),
        FleetFigure::BytesPerProxy => bytes_per_proxy(fleet),
    }
}

/// True if the fleet measured the figure, even if not in every proxy. If the figure falls among proxies never
/// reached, the cell has no estimate of it.
pub(crate) fn was_measured(figure: FleetFigure, trial: &TrialRecord) -> bool {
    let Some(fleet) = trial.fleet() else { return false };
    match figure {
        FleetFigure::ConvergenceP50Us
        | FleetFigure::ConvergenceP90Us
        | FleetFigure::ConvergenceP99Us
        | FleetFigure::ConvergenceLastUs => fleet.convergence_us.requests() > 0,
        FleetFigure::FirstConfigurationLastUs => fleet.first_configuration_us.requests() > 0,
        _ => value(figure, trial).is_some(),
    }
}

/// A figure of a distribution over proxies; `None` if the distribution is empty.
pub(crate) fn of_times(times: &HistogramSummary, figure: Figure) -> Option<f64> {
    times.figure(figure).filter(|_| times.requests() > 0)
}

/// Distribution over all changes of a kind; `None` if there are none, or if a histogram cannot be decoded.
pub(crate) fn of_kind(fleet: &FleetResult, kind: &str) -> Option<HistogramSummary> {
    let own = fleet.changes.iter().filter(|change| change.kind == kind).map(|change| &change.convergence_us);
    merged(own)
}

/// Merges several distributions; `None` without any value, or if a histogram cannot be decoded.
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

/// Maximum resident memory that was read, or memory at the end if there is no maximum.
pub(crate) fn istiod_memory_bytes(fleet: &FleetResult) -> Option<f64> {
    fleet.of_istiods(|istiod| Some(istiod.memory_peak_bytes.or(istiod.memory_bytes)? as f64))
}

/// Anonymous memory of all istiods that the environment observed; `None` if it could not read that of each.
fn istiod_memory_anonymous_bytes(trial: &TrialRecord) -> Option<f64> {
    let istiods = trial.components.iter().filter(|usage| usage.is_istiod());
    let bytes: Vec<u64> = istiods.map(|usage| usage.memory_anonymous_bytes).collect::<Option<_>>()?;
    (!bytes.is_empty()).then(|| bytes.iter().sum::<u64>() as f64)
}

pub(crate) fn bytes_per_proxy(fleet: &FleetResult) -> Option<f64> {
    (fleet.proxies.wanted > 0).then(|| fleet.bytes_received as f64 / fleet.proxies.wanted as f64)
}

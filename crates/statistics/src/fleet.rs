//! Distributions of a fleet of simulated proxies in a trial.

use crate::curve::whole;
use results::{FleetResult, HistogramSummary};

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
    let reached = parts.iter().copied().filter(|part| part.count > 0);
    let whole = whole(reached).ok()?.unwrap_or_default();
    let censored = parts.iter().map(|part| part.censored).sum();
    (!parts.is_empty()).then(|| whole.summary_with(censored))
}

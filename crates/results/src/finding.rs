//! Findings of a run as data. The crate `report` turns them into sentences.

use crate::Mode;
use crate::cell::Cell;
use crate::estimate::Estimate;
use crate::factor::{CellKey, Conditions, FactorValue, Factors};
use crate::finding_verdict::FindingVerdict;
use crate::load_point::LoadPoint;
use crate::metric::Metric;
use serde::{Deserialize, Serialize};

/// Figure of a finding.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FindingFigure {
    /// A metric.
    Metric(Metric),
    /// Slope of a law, such as `cores per bytes/s`.
    Slope(String),
}

impl From<Metric> for FindingFigure {
    fn from(metric: Metric) -> Self {
        Self::Metric(metric)
    }
}

/// A finding. Fields that do not apply are absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Kind of the finding.
    pub kind: FindingKind,
    /// Sentence that states it. Findings stated together in one sentence have the same text.
    #[serde(default)]
    pub text: String,
    /// Mode that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Mode that it is compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<Mode>,
    /// Factor values; empty in an experiment without factors.
    #[serde(default, skip_serializing_if = "Factors::is_empty")]
    pub factors: Factors,
    /// Value of the factor `subject` that another value is compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<FactorValue>,
    /// For a comparison of factor values: true if both ran the same programs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub same_programs: bool,
    /// The load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadPoint>,
    /// Component, service, driver, call (`from → to`), factor, or reason that it is about. For copies in
    /// several namespaces, the name without its namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Number of candidates from which the subject was selected, or of copies that it represents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidates: Option<usize>,
    /// Qualified name of a driver; for an objective, the slowest driver that does not meet it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Share of requests, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// The figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figure: Option<FindingFigure>,
    /// Value of the figure in `mode`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// With `against`, the difference to it; otherwise the figure with its interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    /// Verdict on the finding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<FindingVerdict>,
    /// Number of trials or repeats that it is based on or about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n: Option<usize>,
    /// Number of trials or repeats recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<usize>,
}

impl Finding {
    /// Creates a finding with only a kind.
    #[must_use]
    pub fn new(kind: FindingKind) -> Self {
        Self { kind, ..Self::default() }
    }

    /// Creates a finding about a cell.
    #[must_use]
    pub fn of_cell(kind: FindingKind, cell: &Cell) -> Self {
        let (n, of) = (Some(cell.valid), Some(cell.places()));
        Self { mode: Some(cell.mode), n, of, ..Self::new(kind).at(cell.conditions()) }
    }

    /// Sets factors and load.
    #[must_use]
    pub fn at(mut self, conditions: Conditions<'_>) -> Self {
        self.factors = conditions.factors.clone();
        self.load = Some(conditions.load.clone());
        self
    }

    /// Sets the subject: a component, a service or similar.
    #[must_use]
    pub fn about(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }

    /// Sets a figure without an interval.
    #[must_use]
    pub fn with_value(mut self, figure: impl Into<FindingFigure>, value: f64) -> Self {
        (self.figure, self.value) = (Some(figure.into()), Some(value));
        self
    }

    /// Sets a figure with its interval.
    #[must_use]
    pub fn with_figure(mut self, figure: impl Into<FindingFigure>, estimate: &Estimate) -> Self {
        self = self.with_value(figure, estimate.estimate);
        self.estimate = Some(*estimate);
        self.n = if estimate.n > 0 { Some(estimate.n) } else { self.n };
        self
    }

    /// Sets the difference of a figure to another mode.
    #[must_use]
    pub fn against(mut self, mode: Mode, difference: &Estimate, verdict: FindingVerdict) -> Self {
        (self.against, self.estimate, self.verdict) = (Some(mode), Some(*difference), Some(verdict));
        self.n = if difference.n > 0 { Some(difference.n) } else { self.n };
        self
    }

    /// Factors and load; absent if it is not about a single load.
    #[must_use]
    pub fn conditions(&self) -> Option<Conditions<'_>> {
        Some(Conditions { factors: &self.factors, load: self.load.as_ref()? })
    }

    /// Cell that it is about; absent if it is about several.
    #[must_use]
    pub fn cell_key(&self) -> Option<CellKey<'_>> {
        Some(self.conditions()?.cell(self.mode?))
    }

    /// Metric that it is about, if any.
    #[must_use]
    pub fn metric(&self) -> Option<Metric> {
        match self.figure {
            Some(FindingFigure::Metric(metric)) => Some(metric),
            _ => None,
        }
    }

    /// True if it is about this metric.
    #[must_use]
    pub fn is_of(&self, metric: Metric) -> bool {
        self.metric() == Some(metric)
    }

    /// True if its verdict is [`FindingVerdict::Shown`].
    #[must_use]
    pub fn is_shown(&self) -> bool {
        self.verdict == Some(FindingVerdict::Shown)
    }
}

/// Kind of a finding.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// Main answer of the run.
    Headline,
    /// Memory, propagation and requests as functions of the mesh size.
    MeshSize,
    /// Change from the minimum to the maximum of a factor, `subject`.
    FactorEffect,
    /// Throughput as a function of a factor (`subject`) by a scaling law; shown unless the law has a lack of
    /// fit.
    Scaling,
    /// Value (in `factors`) of a factor, `subject`, whose values are words, compared with the first one,
    /// `from`.
    FactorDifference,
    /// Ranking of the modes: first the best, then each mode against the nearest better one that it differs
    /// from; then the same pairs under the other loads.
    Order,
    /// All CPUs of the machine were busy: its CPU limits the throughput.
    FullMachine,
    /// CPU of all proxies, and of the control plane, per request.
    CpuPerRequest,
    /// Latency that a mode adds to its baseline.
    AddedLatency,
    /// CPU and memory per proxy.
    ProxyUsage,
    /// CPU of a proxy at the lowest and at the highest rate.
    CpuScaling,
    /// CPU and memory of the control plane.
    ControlPlane,
    /// Cost of a control plane by a law, `subject`: `changing`, `memory`, `configuration` or `connecting`.
    ControlPlaneCost,
    /// Convergence of a fleet, and CPU and memory of its control plane.
    Convergence,
    /// Proxies of a fleet that missed a configuration or change: `n` of `of`.
    NotConverged,
    /// Reserved (`value`) and used (`estimate`) resources.
    Reservation,
    /// Driver with the longest response times, compared with the median over all drivers.
    SlowestDriver,
    /// Call whose median rose most from the baseline.
    GreatestAddedTime,
    /// Service whose CPU, including the proxies in its pods, rose most from the baseline.
    GreatestAddedCpu,
    /// Memory and configuration of the proxies before the load; shown if this is most of the memory under
    /// load.
    Footprint,
    /// Proxies that rejected updates of their configuration.
    RejectedUpdates,
    /// Service time that hides queueing (coordinated omission).
    HiddenWaiting,
    /// Trials of a cell that did not keep up with the offered rate.
    Saturation,
    /// Objective of a cell; `subject` is `met`, `missed` or `not-shown`. Has the first decisive figure, and
    /// with several drivers the slowest one that does not meet it.
    Objective,
    /// Drivers, in a cell with several, that did not meet the objective: `n` of `of` are `subject` (`missed`
    /// or `not-shown`), and the slowest of them is `driver`.
    DriverObjective,
    /// Path verification of a mode.
    Path,
    /// A mode that could not run; `subject` is the reason.
    UnavailableMode,
    /// The run was cut short.
    CutShort,
    /// Trials excluded from all estimates, by reason (`subject`) and cell.
    ExcludedTrials,
    /// Rerun trials, by cell.
    Reruns,
    /// Rerun limit reached; disturbed trials remain.
    NoisyMachine,
    /// The generator was late more often with one mode than chance explains; `value` is the probability of
    /// that.
    LateGenerator,
    /// Percentile with fewer than ten events beyond it; `subject`: `episodes` or `requests`.
    FewSamples,
    /// Only one valid trial.
    SingleTrial,
    /// Percentile of a cell that pauses of the machine can cause: the pauses affect at least as large a share
    /// of the requests, `share`, as lies beyond the percentile.
    MachinePauses,
    /// A published figure (`subject`); `value` is the ratio of this run's figure to it. Shown: agrees; not
    /// shown: differs.
    Published,
    /// A finding of a later version.
    #[default]
    #[serde(other)]
    Text,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_of_later_versions_are_read() {
        let json = r#"{"kind": "of-a-later-version", "text": "T."}"#;
        let finding: Finding = serde_json::from_str(json).unwrap();
        assert_eq!((finding.kind, finding.text.as_str()), (FindingKind::Text, "T."));
    }
}

//! Findings of a run as data. The crate `report` turns them into sentences.

use crate::Mode;
use crate::cell::Cell;
use crate::estimate::Estimate;
use crate::factor::{CellKey, Conditions, FactorValue, Factors};
use crate::finding_verdict::FindingVerdict;
use crate::load_point::LoadPoint;
use serde::{Deserialize, Deserializer, Serialize};

/// Names of figures in [`Finding::figure`]. The unit is at the end of each name.
pub mod figures {
    /// Median response time.
    pub const P50: &str = "response_time_p50_us";
    /// 99th percentile of the response time.
    pub const P99: &str = "response_time_p99_us";
    /// Fraction of failed requests and error statuses.
    pub const ERRORS: &str = "errors";
    /// 99.9th percentile of the response time.
    pub const P99_9: &str = "response_time_p99.9_us";
    /// Mean response time.
    pub const MEAN: &str = "response_time_mean_us";
    /// 99th percentile of the service time.
    pub const SERVICE_P99: &str = "service_time_p99_us";
    /// Responses per second.
    pub const COMPLETED: &str = "rate_completed";
    /// Change of the responses per second, as a fraction.
    pub const COMPLETED_CHANGE: &str = "rate_completed_change";
    /// Change of the CPU of all proxies per request, as a fraction.
    pub const CPU_PER_REQUEST_CHANGE: &str = "cpu_per_request_change";
    /// CPU, cores.
    pub const CPU: &str = "cpu_cores";
    /// CPU per 1000 requests/s, cores: the same number as milliseconds per request.
    pub const CPU_PER_1000_RPS: &str = "cpu_cores_per_1000_rps";
    /// Memory under load, bytes.
    pub const MEMORY: &str = "memory_bytes";
    /// Anonymous memory under load, bytes.
    pub const MEMORY_ANONYMOUS: &str = "memory_anonymous_bytes";
    /// Memory before the load, bytes.
    pub const MEMORY_BEFORE_LOAD: &str = "memory_before_load_bytes";
    /// Anonymous memory before the load, bytes.
    pub const ANONYMOUS_BEFORE_LOAD: &str = "memory_anonymous_before_load_bytes";
    /// Heap in use before the load, bytes.
    pub const HEAP_BEFORE_LOAD: &str = "heap_allocated_before_load_bytes";
    /// Size of a proxy's configuration, bytes.
    pub const CONFIGURATION: &str = "configuration_size_bytes";
    /// Propagation time of a change, seconds.
    pub const CONFIGURED_IN: &str = "configured_in_s";
    /// Change of the anonymous memory of all proxies under load, as a fraction.
    pub const MEMORY_ANONYMOUS_CHANGE: &str = "memory_anonymous_change";
    /// Change of the size of all proxies' configuration, as a fraction.
    pub const CONFIGURATION_CHANGE: &str = "configuration_size_change";
    /// Difference of the time until the last proxy has a changed configuration, microseconds.
    pub const CONFIGURED_LAST: &str = "configured_last_us";
    /// Reserved CPU, cores.
    pub const RESERVED_CPU: &str = "reserved_cpu_cores";
    /// Reserved memory, bytes.
    pub const RESERVED_MEMORY: &str = "reserved_memory_bytes";
    /// Busy CPU of the whole machine, as a fraction.
    pub const MACHINE_BUSY: &str = "machine_busy";
    /// Requests counted by proxies.
    pub const REQUESTS: &str = "requests";
    /// Connections counted by proxies, which do not read the requests in them.
    pub const CONNECTIONS: &str = "connections";

    /// 99th percentile of the time from a change's acknowledgement to its arrival at a fleet's proxies.
    pub const CONVERGENCE_P99: &str = "convergence_p99_us";
    /// Time until the last proxy of a fleet had a change.
    pub const CONVERGENCE_LAST: &str = "convergence_last_us";
    /// CPU of all istiods, cores.
    pub const ISTIOD_CPU_CORES: &str = "istiod_cpu_cores";
    /// CPU time of all istiods; for a comparison of factor values, its change as a fraction.
    pub const ISTIOD_CPU: &str = "istiod_cpu_s";
    /// Memory of all istiods; for a comparison of factor values, its change as a fraction.
    pub const ISTIOD_MEMORY: &str = "istiod_memory_bytes";
    /// Anonymous memory of all istiods.
    pub const ISTIOD_MEMORY_ANONYMOUS: &str = "istiod_memory_anonymous_bytes";
    /// Bytes received by a fleet's proxies, per proxy; for a comparison of factor values, the change as a
    /// fraction.
    pub const BYTES_PER_PROXY: &str = "bytes_per_proxy";

    /// Name of a response-time figure.
    #[must_use]
    pub fn response_time(figure: crate::TimeFigure) -> String {
        format!("response_time_{}_us", figure.name())
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
    /// One of [`figures`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figure: Option<String>,
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
    pub fn with_value(mut self, figure: &str, value: f64) -> Self {
        (self.figure, self.value) = (Some(figure.to_owned()), Some(value));
        self
    }

    /// Sets a figure with its interval.
    #[must_use]
    pub fn with_figure(mut self, figure: &str, estimate: &Estimate) -> Self {
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

    /// True if it is about this figure.
    #[must_use]
    pub fn is_of(&self, figure: &str) -> bool {
        self.figure.as_deref() == Some(figure)
    }

    /// True if its verdict is [`FindingVerdict::Shown`].
    #[must_use]
    pub fn is_shown(&self) -> bool {
        self.verdict == Some(FindingVerdict::Shown)
    }
}

/// Deserializes findings, including those of earlier versions, which were sentences.
pub(super) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Finding>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Text(String),
        Finding(Box<Finding>),
    }
    let written = Vec::<Written>::deserialize(deserializer)?;
    Ok(written
        .into_iter()
        .map(|finding| match finding {
            Written::Text(text) => Finding { text, ..Finding::default() },
            Written::Finding(finding) => *finding,
        })
        .collect())
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
    /// Sentence of an earlier version, or a finding of a later one.
    #[default]
    #[serde(other)]
    Text,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_of_earlier_and_later_versions_are_read() {
        let json = r#"["A sentence.", {"kind": "order", "mode": "sidecar"}, {"kind": "of-a-later-version", "text": "T."}]"#;
        let findings = read(&mut serde_json::Deserializer::from_str(json)).unwrap();
        let kinds: Vec<_> = findings.iter().map(|finding| (finding.kind, finding.text.as_str())).collect();
        let expected =
            [(FindingKind::Text, "A sentence."), (FindingKind::Order, ""), (FindingKind::Text, "T.")];
        assert_eq!(kinds, expected);
        assert_eq!(findings[1].mode, Some(Mode::Sidecar));
    }
}

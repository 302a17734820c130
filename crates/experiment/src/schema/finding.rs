//! Findings of a run as data. Sentences are made from them in crate `report`.

use super::cell::Cell;
use super::estimate::Estimate;
use super::factor::{CellKey, Conditions, FactorValue, Factors};
use super::load_point::LoadPoint;
use crate::mode::Mode;
use serde::{Deserialize, Deserializer, Serialize};

/// Names of figures in [`Finding::figure`]; the unit is at the end of each.
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
    /// Change of the responses per second, a fraction.
    pub const COMPLETED_CHANGE: &str = "rate_completed_change";
    /// Change of the CPU of all proxies per request, a fraction.
    pub const CPU_PER_REQUEST_CHANGE: &str = "cpu_per_request_change";
    /// CPU.
    pub const CPU: &str = "cpu_cores";
    /// CPU per 1000 requests/s: that many milliseconds per request.
    pub const CPU_PER_1000_RPS: &str = "cpu_cores_per_1000_rps";
    /// Memory under load.
    pub const MEMORY: &str = "memory_bytes";
    /// Memory before the load.
    pub const MEMORY_BEFORE_LOAD: &str = "memory_before_load_bytes";
    /// Anonymous memory before the load.
    pub const ANONYMOUS_BEFORE_LOAD: &str = "memory_anonymous_before_load_bytes";
    /// Heap in use before the load.
    pub const HEAP_BEFORE_LOAD: &str = "heap_allocated_before_load_bytes";
    /// Size of a proxy's configuration.
    pub const CONFIGURATION: &str = "configuration_size_bytes";
    /// Propagation of a change.
    pub const CONFIGURED_IN: &str = "configured_in_s";
    /// Change of the memory of all proxies under load, a fraction.
    pub const MEMORY_CHANGE: &str = "memory_change";
    /// Change of the size of all proxies' configuration, a fraction.
    pub const CONFIGURATION_CHANGE: &str = "configuration_size_change";
    /// Difference of the time until the last proxy has a changed configuration.
    pub const CONFIGURED_LAST: &str = "configured_last_us";
    /// Reserved CPU.
    pub const RESERVED_CPU: &str = "reserved_cpu_cores";
    /// Reserved memory.
    pub const RESERVED_MEMORY: &str = "reserved_memory_bytes";
    /// CPU of the whole machine in use, a fraction.
    pub const MACHINE_BUSY: &str = "machine_busy";
    /// Requests that proxies counted.
    pub const REQUESTS: &str = "requests";
    /// Connections that proxies counted: they do not read the requests.
    pub const CONNECTIONS: &str = "connections";

    /// 99th percentile of the time from a change's acknowledgement to its arrival at a fleet's proxies.
    pub const CONVERGENCE_P99: &str = "convergence_p99_us";
    /// Time until the last proxy of a fleet had a change.
    pub const CONVERGENCE_LAST: &str = "convergence_last_us";
    /// CPU of all istiods.
    pub const ISTIOD_CPU_CORES: &str = "istiod_cpu_cores";
    /// CPU time of all istiods; between values of a factor its change, a fraction.
    pub const ISTIOD_CPU: &str = "istiod_cpu_s";
    /// Memory of all istiods; between values of a factor its change, a fraction.
    pub const ISTIOD_MEMORY: &str = "istiod_memory_bytes";
    /// Bytes that a fleet's proxies received per proxy; between values of a factor its change, a fraction.
    pub const BYTES_PER_PROXY: &str = "bytes_per_proxy";

    /// A figure of the response time.
    #[must_use]
    pub fn response_time(figure: crate::TimeFigure) -> String {
        format!("response_time_{}_us", figure.name())
    }
}

/// A finding. Fields that do not apply are absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// What it is about.
    pub kind: FindingKind,
    /// Sentence that states it. Findings that one sentence states together have the same text.
    #[serde(default)]
    pub text: String,
    /// The mode that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The mode that it is compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<Mode>,
    /// Values of the factors; empty in an experiment without any.
    #[serde(default, skip_serializing_if = "Factors::is_empty")]
    pub factors: Factors,
    /// The value of the factor `subject` that another one is compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<FactorValue>,
    /// Of values of a factor: both ran the same programs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub same_programs: bool,
    /// The load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadPoint>,
    /// Component, service, driver, call (`from → to`), factor, or reason that it is about. Copies in several namespaces have
    /// the name without its namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Number of candidates that the subject was picked from, or of copies that it stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidates: Option<usize>,
    /// A driver by its qualified name: of an objective, the slowest of those that do not meet it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// A share of requests, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// One of [`figures`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figure: Option<String>,
    /// The figure itself, in `mode`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// With `against`, the difference to it; else the figure with its interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    /// Whether it is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<FindingVerdict>,
    /// Trials or repeats that it rests on or that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n: Option<usize>,
    /// Trials or repeats recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<usize>,
}

impl Finding {
    /// Without anything but its kind.
    #[must_use]
    pub fn new(kind: FindingKind) -> Self {
        Self { kind, ..Self::default() }
    }

    /// About a cell.
    #[must_use]
    pub fn of_cell(kind: FindingKind, cell: &Cell) -> Self {
        let (n, of) = (Some(cell.valid), Some(cell.places()));
        Self { mode: Some(cell.mode), n, of, ..Self::new(kind).at(cell.conditions()) }
    }

    /// Under these conditions.
    #[must_use]
    pub fn at(mut self, conditions: Conditions<'_>) -> Self {
        self.factors = conditions.factors.clone();
        self.load = Some(conditions.load.clone());
        self
    }

    /// About a component, a service or the like.
    #[must_use]
    pub fn about(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }

    /// With a figure that has no interval.
    #[must_use]
    pub fn with_value(mut self, figure: &str, value: f64) -> Self {
        (self.figure, self.value) = (Some(figure.to_owned()), Some(value));
        self
    }

    /// With a figure and its interval.
    #[must_use]
    pub fn with_figure(mut self, figure: &str, estimate: &Estimate) -> Self {
        self = self.with_value(figure, estimate.estimate);
        self.estimate = Some(*estimate);
        self.n = if estimate.n > 0 { Some(estimate.n) } else { self.n };
        self
    }

    /// With the difference of a figure to another mode.
    #[must_use]
    pub fn against(mut self, mode: Mode, difference: &Estimate, verdict: FindingVerdict) -> Self {
        (self.against, self.estimate, self.verdict) = (Some(mode), Some(*difference), Some(verdict));
        self.n = if difference.n > 0 { Some(difference.n) } else { self.n };
        self
    }

    /// Factors and load; absent where it is not about a load.
    #[must_use]
    pub fn conditions(&self) -> Option<Conditions<'_>> {
        Some(Conditions { factors: &self.factors, load: self.load.as_ref()? })
    }

    /// The cell that it is about; absent where it is about several.
    #[must_use]
    pub fn cell_key(&self) -> Option<CellKey<'_>> {
        Some(self.conditions()?.cell(self.mode?))
    }

    /// Whether it is about this figure.
    #[must_use]
    pub fn is_of(&self, figure: &str) -> bool {
        self.figure.as_deref() == Some(figure)
    }

    /// Whether it is shown.
    #[must_use]
    pub fn is_shown(&self) -> bool {
        self.verdict == Some(FindingVerdict::Shown)
    }
}

/// Reads findings, of earlier versions too: those were sentences.
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

/// What a finding is about.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// The answer.
    Headline,
    /// Memory, propagation and requests against the size of the mesh.
    MeshSize,
    /// Change from the least to the greatest value of a factor, `subject`.
    FactorEffect,
    /// Throughput against a factor (`subject`) by a scaling law; shown unless the law does not describe what was measured.
    Scaling,
    /// A value of a factor, `subject`, whose values are words, against the first one, `from`; `factors` has the value.
    FactorDifference,
    /// Order of the modes: first the best, then each mode against the nearest better one that it differs from; then the
    /// same pairs under the other loads.
    Order,
    /// All CPUs of the machine were busy: throughput is what its CPU allows.
    FullMachine,
    /// CPU of all proxies, and of the control plane, per request.
    CpuPerRequest,
    /// Latency that a mode adds to its baseline.
    AddedLatency,
    /// CPU and memory of each proxy.
    ProxyUsage,
    /// CPU of a proxy at the lowest and at the highest rate.
    CpuScaling,
    /// CPU and memory of the control plane.
    ControlPlane,
    /// What a control plane costs by a law, `subject`: `changing`, `memory`, `configuration` or `connecting`.
    ControlPlaneCost,
    /// Convergence of a fleet, and CPU and memory of the control plane that it connects to.
    Convergence,
    /// Proxies of a fleet that missed a configuration or a change: `n` of `of`.
    NotConverged,
    /// Reserved (`value`) against used (`estimate`).
    Reservation,
    /// The driver with the longest response times, against the median of all drivers.
    SlowestDriver,
    /// The call whose median grew most against the baseline.
    GreatestAddedTime,
    /// The service whose CPU, that of the proxies in its pods included, grew most against the baseline.
    GreatestAddedCpu,
    /// Memory and configuration of the proxies before the load; shown where it is most of the memory under load.
    Footprint,
    /// Proxies that rejected updates of their configuration.
    RejectedUpdates,
    /// Service time that hides waiting.
    HiddenWaiting,
    /// Trials of a cell that did not keep up.
    Saturation,
    /// Objective of a cell; `subject` is `met`, `missed` or `not-shown`. With the first figure that decides it, and of several drivers
    /// the slowest that does not meet it.
    Objective,
    /// Drivers of a cell of several that did not meet the objective: `n` of `of` are `subject` (`missed` or `not-shown`), the slowest
    /// of them is `driver`.
    DriverObjective,
    /// Path verification of a mode.
    Path,
    /// A mode that could not run; `subject` is the reason.
    UnavailableMode,
    /// The run was cut short.
    CutShort,
    /// Trials in no estimate, by reason (`subject`) and cell.
    ExcludedTrials,
    /// Trials that were run again, by cell.
    Reruns,
    /// Rerun limit reached; disturbed trials remain.
    NoisyMachine,
    /// The generator was late with one mode more often than by chance; `value` is the probability of that.
    LateGenerator,
    /// A percentile that rests on fewer than ten events beyond it; `subject`: `episodes` or `requests`.
    FewSamples,
    /// One valid trial alone.
    SingleTrial,
    /// A percentile of a cell that pauses of the machine can make: they reach at least as large a share of the requests, `share`, as
    /// lies beyond it.
    MachinePauses,
    /// A published figure (`subject`); `value` is the ratio of this run's figure to it. Shown: agrees; not shown: differs.
    Published,
    /// A sentence of an earlier version, or a finding of a later one.
    #[default]
    #[serde(other)]
    Text,
}

/// Whether a finding is shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingVerdict {
    /// It is shown, among all that the run tests.
    Shown,
    /// It is not.
    NotShown,
    /// There is no interval.
    CannotTell,
}

impl FindingVerdict {
    /// Of a difference by itself, in either direction.
    #[must_use]
    pub fn of(difference: &Estimate) -> Self {
        match difference.low {
            None => Self::CannotTell,
            Some(_) if difference.excludes_zero() => Self::Shown,
            Some(_) => Self::NotShown,
        }
    }

    /// Of an increase.
    #[must_use]
    pub fn of_increase(difference: &Estimate) -> Self {
        match Self::of(difference) {
            Self::Shown if difference.estimate < 0.0 => Self::NotShown,
            verdict => verdict,
        }
    }
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

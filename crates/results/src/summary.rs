//! `meshmeter.summary/1`: summary of a run's trials.

use crate::Mode;
use crate::added_latency::AddedLatency;
use crate::cell::Cell;
use crate::clock::Clock;
use crate::control_plane_model::ControlPlaneModel;
use crate::corner_difference::CornerDifference;
use crate::disturbed::AcceptedNoise;
use crate::estimate::Estimate;
use crate::factor::{CellKey, Conditions, Factors};
use crate::factor_difference::FactorDifference;
use crate::factor_effect::FactorEffect;
use crate::finding::StatedFinding;
use crate::finding_verdict::FindingVerdict;
use crate::host::Host;
use crate::load_point::LoadPoint;
use crate::published::PublishedFigure;
use crate::scaling::Scaling;
use crate::stream_summary::AddedStreamTimes;
use serde::{Deserialize, Serialize};

/// The value of [`Summary::schema`].
pub const SUMMARY_SCHEMA: &str = "meshmeter.summary/1";

/// Summary of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Always [`SUMMARY_SCHEMA`].
    pub schema: String,
    /// Name of the experiment.
    pub name: String,
    /// Question of the experiment; empty if it has none.
    #[serde(default)]
    pub question: String,
    /// Seed of the trial order.
    pub seed: u64,
    /// Trials planned. A run that was cut short has fewer trials recorded.
    pub trials_planned: usize,
    /// Trials recorded, including rerun ones.
    pub trials_recorded: usize,
    /// Reruns of trials that the machine had disturbed; absent if none was needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retakes: Option<RetakeSummary>,
    /// Noise of the machine that the user accepted in the estimates (`--accept-noise`); absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise_accepted: Option<AcceptedNoise>,
    /// Machine of the run.
    pub host: Host,
    /// One cell per mode, values of the factors that can touch this mode, and load.
    pub cells: Vec<Cell>,
    /// Pairwise comparison of modes with the same server, under each load. Pairs without a figure are left
    /// out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comparisons: Vec<ModeComparison>,
    /// Effects of each numeric factor: on the footprint of a mode's proxies, then on requests under each
    /// load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub factor_effects: Vec<FactorEffect>,
    /// Comparisons of values of each factor whose values are words: the first against each other one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub factor_differences: Vec<FactorDifference>,
    /// Comparisons of all factors at their last values with all at their first, by mode and load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub corner_differences: Vec<CornerDifference>,
    /// Throughput as a function of a CPU limit, workers or replicas by the Universal Scalability Law; absent
    /// unless one of these took three or more values in a closed loop or under a saturating load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scaling: Option<Scaling>,
    /// Cost of the control plane as a function of mesh size and changes; absent if fleets did not vary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_model: Option<ControlPlaneModel>,
    /// Number of differences that the run tests together: what is shown, is shown among these.
    #[serde(default)]
    pub tests: usize,
    /// Findings, the headline first.
    pub findings: Vec<StatedFinding>,
    /// Published figures for the same question.
    pub published: Vec<PublishedFigure>,
}

impl Summary {
    /// The cell with this key; absent if the run has none.
    #[must_use]
    pub fn cell(&self, key: CellKey<'_>) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.key() == key)
    }

    /// Number of planned trials with at least one recorded take; reruns count once.
    #[must_use]
    pub fn places_recorded(&self) -> usize {
        self.trials_recorded - self.retakes.map_or(0, |retakes| retakes.taken).min(self.trials_recorded)
    }
}

/// Reruns of trials that the machine disturbed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RetakeSummary {
    /// Maximum number of reruns per trial.
    pub of_each: usize,
    /// Maximum number of reruns in the whole run.
    pub most: usize,
    /// Number of reruns.
    pub taken: usize,
    /// Of `taken`, valid reruns, which are in the estimates.
    pub valid: usize,
    /// True if the rerun limit was reached and disturbed trials remain: the machine is too noisy for the
    /// experiment.
    pub too_noisy: bool,
}

/// Comparison of two modes with the same factors and load, by repeat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModeComparison {
    /// Values of the factors that can touch either mode. The cell of a mode lacks those that cannot touch it, and is part
    /// of the comparisons of all their values.
    #[serde(default, skip_serializing_if = "Factors::is_empty")]
    pub factors: Factors,
    /// The load.
    pub load: LoadPoint,
    /// The mode.
    pub mode: Mode,
    /// Mode that it is compared with.
    pub than: Mode,
    /// Differences of the response time, microseconds: positive if `mode` is slower than `than`.
    pub response_time_us: AddedLatency,
    /// Differences of the times of streams; absent if responses are not streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<AddedStreamTimes>,
    /// Closed loop: change of the throughput relative to `than`, as a fraction: −0.1 is a tenth less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<Estimate>,
    /// Verdict on the throughput, adjusted for all tests of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_verdict: Option<FindingVerdict>,
    /// CPU of all proxies per request relative to `than`, as a fraction; absent if one of the modes has no
    /// proxy that carries requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_cpu_per_request: Option<Estimate>,
    /// Verdict on the proxy CPU, adjusted for all tests of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_cpu_verdict: Option<FindingVerdict>,
}

impl ModeComparison {
    /// Differences by a clock of loads.
    pub fn times(&mut self, clock: Clock) -> Option<&mut AddedLatency> {
        match clock {
            Clock::ResponseTime => Some(&mut self.response_time_us),
            Clock::FirstEvent => Some(&mut self.streams.as_mut()?.first_event_us),
            Clock::EventGap => Some(&mut self.streams.as_mut()?.event_gap_us),
            Clock::ServiceTime | Clock::FirstByte | Clock::Convergence | Clock::FirstConfiguration => None,
        }
    }

    /// Differences of the times that the load is about: of streams those until the first token.
    #[must_use]
    pub fn leading_times(&self) -> AddedLatency {
        self.streams.map_or(self.response_time_us, |streams| streams.first_event_us)
    }

    /// Change of the throughput, with its verdict.
    #[must_use]
    pub fn judged_throughput(&self) -> Option<(Estimate, FindingVerdict)> {
        self.throughput.zip(self.throughput_verdict)
    }

    /// Change of the CPU per request, with its verdict.
    #[must_use]
    pub fn judged_proxy_cpu(&self) -> Option<(Estimate, FindingVerdict)> {
        self.proxy_cpu_per_request.zip(self.proxy_cpu_verdict)
    }

    /// Factors and load of both modes.
    #[must_use]
    pub fn conditions(&self) -> Conditions<'_> {
        Conditions { factors: &self.factors, load: &self.load }
    }
}

//! `meshmeter.summary/1`: what a run's trials say together.

use super::cell::Cell;
use super::control_plane_model::ControlPlaneModel;
use super::estimate::{AddedLatency, Estimate};
use super::factor::{Conditions, Factors};
use super::factor_difference::FactorDifference;
use super::factor_effect::{FactorEffect, SizeEffect};
use super::finding::{self, Finding, FindingVerdict};
use super::host::Host;
use super::load_point::LoadPoint;
use super::published::PublishedFigure;
use super::scaling::Scaling;
use crate::mode::Mode;
use serde::{Deserialize, Serialize};

/// The value of [`Summary::schema`].
pub const SUMMARY_SCHEMA: &str = "meshmeter.summary/1";

/// The whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Always [`SUMMARY_SCHEMA`].
    pub schema: String,
    /// The experiment's name.
    pub name: String,
    /// What the experiment asks; empty where it does not say.
    #[serde(default)]
    pub question: String,
    /// The seed that ordered the trials.
    pub seed: u64,
    /// Trials planned and trials recorded: a run that was cut short has fewer.
    pub trials_planned: usize,
    /// Trials recorded, those that were taken again included.
    pub trials_recorded: usize,
    /// Trials that were taken again since the machine had disturbed them; absent where none was to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retakes: Option<RetakeSummary>,
    /// Where it was measured.
    pub host: Host,
    /// One per mode, values of the factors and load.
    pub cells: Vec<Cell>,
    /// Every mode against every other that leads to the same server, under each load; those without a figure are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comparisons: Vec<ModeComparison>,
    /// What rises with each factor whose values are numbers: what a mode's proxies hold, then what requests see under each
    /// load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub factor_effects: Vec<FactorEffect>,
    /// Values of each factor whose values are words, the first against each other one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub factor_differences: Vec<FactorDifference>,
    /// Again, those of `istio.surroundings.services`: the size of the mesh.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub size_effects: Vec<SizeEffect>,
    /// Throughput against a CPU limit, workers or replicas by the Universal Scalability Law; absent where none of these took three
    /// values or more in a closed loop or under a saturating load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scaling: Option<Scaling>,
    /// What the control plane costs against the size of its mesh and its changes; absent where fleets did not vary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_model: Option<ControlPlaneModel>,
    /// Findings, the headline first.
    #[serde(deserialize_with = "finding::read")]
    pub findings: Vec<Finding>,
    /// In results of earlier versions, findings about drivers, calls and services; now they are among `findings`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub finding_records: Vec<Finding>,
    /// Figures that others published for the same question.
    pub published: Vec<PublishedFigure>,
}

impl Summary {
    /// Places of the plan of which a trial was recorded: those that were taken again count once.
    #[must_use]
    pub fn places_recorded(&self) -> usize {
        self.trials_recorded - self.retakes.map_or(0, |retakes| retakes.taken).min(self.trials_recorded)
    }
}

/// What became of trials that the machine disturbed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RetakeSummary {
    /// How often each trial may be taken again.
    pub of_each: usize,
    /// How many may be in the whole run.
    pub most: usize,
    /// How many were.
    pub taken: usize,
    /// Of which valid, and in the estimates.
    pub valid: usize,
    /// More would have been, had `most` allowed it: the machine is too noisy for the experiment.
    pub too_noisy: bool,
}

/// One mode against another with the same factors and load, repeat by repeat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModeComparison {
    /// Values of the factors; empty in an experiment without any.
    #[serde(default, skip_serializing_if = "Factors::is_empty")]
    pub factors: Factors,
    /// The load.
    pub load: LoadPoint,
    /// The mode.
    pub mode: Mode,
    /// The mode that it is set against.
    pub than: Mode,
    /// Differences of the response time, microseconds: positive where `mode` is slower than `than`.
    pub response_time_us: AddedLatency,
    /// In a closed loop, responses a second against those of `than`, as a fraction: −0.1 is a tenth less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<Estimate>,
    /// Whether that is shown, among all that the run tests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_verdict: Option<FindingVerdict>,
    /// CPU of all proxies for each request against that of `than`, as a fraction; absent where one of them has no proxy
    /// that carries requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_cpu_per_request: Option<Estimate>,
    /// Whether that is shown, among all that the run tests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_cpu_verdict: Option<FindingVerdict>,
}

impl ModeComparison {
    /// The change of throughput, and whether it is shown.
    #[must_use]
    pub fn judged_throughput(&self) -> Option<(Estimate, FindingVerdict)> {
        judged(self.throughput, self.throughput_verdict)
    }

    /// The change of CPU per request, and whether it is shown.
    #[must_use]
    pub fn judged_proxy_cpu(&self) -> Option<(Estimate, FindingVerdict)> {
        judged(self.proxy_cpu_per_request, self.proxy_cpu_verdict)
    }

    /// Factors and load of both sides.
    #[must_use]
    pub fn conditions(&self) -> Conditions<'_> {
        Conditions { factors: &self.factors, load: &self.load }
    }
}

/// Results of earlier versions have the interval alone to tell.
fn judged(estimate: Option<Estimate>, verdict: Option<FindingVerdict>) -> Option<(Estimate, FindingVerdict)> {
    let estimate = estimate?;
    Some((estimate, verdict.unwrap_or_else(|| FindingVerdict::of(&estimate))))
}

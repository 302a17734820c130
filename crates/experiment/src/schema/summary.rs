//! `meshmeter.summary/1`: what a run's trials say together.

use super::{ConfigurationSummary, HeapSummary, HopProof, Host, LoadPoint, Role, SizeEffect};
use crate::Mode;
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
    /// One for each mode and load.
    pub cells: Vec<Cell>,
    /// Every mode against every other that leads to the same server, under each load; those without a figure are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comparisons: Vec<ModeComparison>,
    /// What rises with the size of the mesh, where several are compared: what a mode's proxies hold, then what requests see
    /// under each load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub size_effects: Vec<SizeEffect>,
    /// The answers, in words. The first is the headline.
    pub findings: Vec<String>,
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

/// One mode under one load: estimates over its valid trials.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The arrangement of proxies.
    pub mode: Mode,
    /// The load offered.
    pub load: LoadPoint,
    /// Trials recorded, those that were taken again included.
    pub trials: usize,
    /// Of which valid: only these enter the estimates, one for each repeat.
    pub valid: usize,
    /// Of `trials`, those that were taken again since the machine had disturbed an earlier take.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retakes: usize,
    /// `valid`, or the commonest reason why not.
    pub verdict: String,
    /// Response time over the valid trials; absent where there is none.
    pub response_time_us: Option<Percentiles>,
    /// What the mode adds to mode `none` at the same load; absent for `none` itself and where there is nothing to compare.
    pub added_us: Option<AddedLatency>,
    /// Responses a second.
    pub rate_completed: Option<Estimate>,
    /// Fraction of sent requests that failed or were answered with an error status, over all trials, 0 to 1.
    pub errors: f64,
    /// What each component used.
    pub components: Vec<ComponentSummary>,
    /// What all components of a role used together: of the proxies and of the control plane.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub totals: Vec<RoleTotal>,
    /// Proof of the path over the valid trials.
    pub path: CellPath,
}

impl Cell {
    /// Places of the plan of which a trial was recorded: those that were taken again count once.
    #[must_use]
    pub fn places(&self) -> usize {
        self.trials - self.retakes.min(self.trials)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// An estimate with its 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Mean over the trials.
    pub estimate: f64,
    /// Lower end of the 95 % interval; absent where a single trial gives none.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

impl Estimate {
    /// Whether the interval lies wholly on one side of zero: a difference is shown.
    #[must_use]
    pub fn excludes_zero(&self) -> bool {
        matches!((self.low, self.high), (Some(low), Some(high)) if low > 0.0 || high < 0.0)
    }
}

/// Percentiles over trials, microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Arithmetic mean; absent in results of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<Estimate>,
    /// Median.
    pub p50: Estimate,
    /// 90th percentile.
    pub p90: Estimate,
    /// 95th percentile; absent in results of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p95: Option<Estimate>,
    /// 99th percentile.
    pub p99: Estimate,
    /// 99.9th percentile.
    #[serde(rename = "p99.9")]
    pub p99_9: Estimate,
}

/// Differences of percentiles to mode `none`, microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AddedLatency {
    /// Of the median.
    pub p50: Estimate,
    /// Of the 90th percentile.
    pub p90: Estimate,
    /// Of the 99th percentile.
    pub p99: Estimate,
}

/// What all components of a role used together, over the valid trials.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoleTotal {
    /// What they are for.
    pub role: Role,
    /// How many they are.
    pub components: usize,
    /// Mean CPU, cores.
    pub cpu_cores: Estimate,
    /// The same for every 1000 completed requests a second: that many milliseconds of CPU for each request.
    pub cpu_cores_per_1000_rps: Estimate,
    /// Memory under load, bytes. Pages that they share count for each.
    pub memory_bytes: Option<Estimate>,
    /// Of which anonymous: pages that nobody shares, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_anonymous_bytes: Option<Estimate>,
}

/// One mode against another under the same load, repeat by repeat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModeComparison {
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
    /// CPU of all proxies for each request against that of `than`, as a fraction; absent where one of them has no proxy
    /// that carries requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_cpu_per_request: Option<Estimate>,
}

/// What one component used, over the valid trials.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComponentSummary {
    /// Name within the run.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// Mean CPU, cores.
    pub cpu_cores: Estimate,
    /// The same for every 1000 completed requests a second.
    pub cpu_cores_per_1000_rps: Estimate,
    /// Memory under load, at the end of the window: resident memory, or the working set where that is more (the working set
    /// leaves out file pages that another group read first, resident memory leaves out the kernel's buffers), bytes; absent
    /// for the kernel.
    pub memory_bytes: Option<Estimate>,
    /// Under load, resident memory of all its processes, pages of their programs' files included, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_resident_bytes: Option<Estimate>,
    /// Under load, what its control group is charged with, less what the kernel could drop at once: what a cluster shows for
    /// a container, bytes. Pages of files are in it only where no other group had read them before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_working_set_bytes: Option<Estimate>,
    /// Under load, anonymous memory (heaps and stacks: pages of no file), bytes: what one more of it would take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_anonymous_bytes: Option<Estimate>,
    /// `memory_bytes` before the generator started; absent where it was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_before_load_bytes: Option<Estimate>,
    /// The same after the generator had ended; absent where it was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_after_load_bytes: Option<Estimate>,
    /// Anonymous memory before the generator started, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_anonymous_before_load_bytes: Option<Estimate>,
    /// The same after the generator had ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_anonymous_after_load_bytes: Option<Estimate>,
    /// A proxy's own account of its heap before the generator started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heap_before_load: Option<HeapSummary>,
    /// The same after the generator had ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heap_after_load: Option<HeapSummary>,
    /// What a proxy was configured with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<ConfigurationSummary>,
    /// From the API's answer to the last object written to the moment at which a proxy showed what follows from them,
    /// seconds; absent where nothing configures the proxy while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configured_in_s: Option<Estimate>,
    /// Why something that a proxy holds could not be read, each reason once; empty where nothing was wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<String>,
    /// Received by the pod's interface, bytes a second.
    pub network_bytes_received_s: Option<Estimate>,
    /// Sent by the pod's interface, bytes a second.
    pub network_bytes_sent_s: Option<Estimate>,
}

/// Proof of the path over the valid trials of a cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CellPath {
    /// Every valid trial proved it.
    pub proven: bool,
    /// The proxies on the path, in its order.
    pub proxies: Vec<String>,
    /// TLS was seen by every proxy that claims it; absent where none claims it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtls: Option<bool>,
    /// What was spoken between neighbours, from client to server, in all those trials; empty where there is no proxy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hops: Vec<HopProof>,
}

/// A figure that a study's authors published.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PublishedFigure {
    /// Who and which version, such as `Istio 1.24`.
    pub source: String,
    /// What was measured.
    pub what: String,
    /// The figure with its unit, as published.
    pub value: String,
    /// This run's figure for the same, with its unit; absent where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<String>,
    /// The same as a number, where it is a single one: cores, bytes, microseconds, or a fraction for what is relative to
    /// another mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_estimate: Option<Estimate>,
    /// Whether this run agrees with what was published: its interval holds the published number (of a change, and not zero
    /// too), lies within a tenth of none where that says `alike`, or on that side of none where it says `higher` or `lower`.
    /// Absent where there is no interval, or where it holds the contrary too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agrees: Option<bool>,
    /// This run's figure over the published one, where both are a single number: of several proxies their mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// What differs between the two.
    pub differs: String,
}

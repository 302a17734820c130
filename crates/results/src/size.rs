//! `meshmeter.size/1`: number, size and cost of proxy replicas for a target load, computed from runs.

use crate::Mode;
use crate::estimate::Estimate;
use crate::factor::Factors;
use crate::host::ComponentVersion;
use crate::published::PublishedFigure;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The value of [`SizeResult::schema`].
pub const SIZE_SCHEMA: &str = "meshmeter.size/1";

/// Full answer, with everything that it is based on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SizeResult {
    /// Always [`SIZE_SCHEMA`].
    pub schema: String,
    /// The question.
    pub asked: SizeQuestion,
    /// Requests per day at the target.
    pub requests_per_day: f64,
    /// Confidence level of every interval, 0 to 1. Intervals only cover the runs.
    pub confidence: f64,
    /// Formulas, one line per figure.
    pub formula: Vec<String>,
    /// Machine of all runs; absent if they are from several machines.
    pub machine: Option<SizeMachine>,
    /// Runs that the answer is based on.
    pub runs: Vec<SizeRun>,
    /// Caveats for the whole answer, such as runs that were cut short. Every output says them first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<SizeNote>,
    /// One answer per mode, proxy and values of factors that are not sizes. Empty if the question is refused.
    pub answers: Vec<SizeAnswer>,
    /// Reasons why there is no answer at all.
    pub refusals: Vec<SizeNote>,
}

impl SizeResult {
    /// True if there is an answer.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        self.answers.iter().any(|answer| !answer.options.is_empty())
    }
}

/// The question.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SizeQuestion {
    /// Target load, requests per second in total.
    pub target_rps: f64,
    /// Bounds that must hold at the target, in the syntax of objectives; absent: only throughput counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective: Option<String>,
    /// True if the objective is that of the runs' experiment because none was given.
    #[serde(default)]
    pub objective_of_experiment: bool,
    /// Share of each replica's capacity kept free at the target, 0 to 1.
    pub headroom: f64,
    /// Prices; absent: no cost is computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
    /// Restricts the answer to this mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Restricts the answer to this component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<String>,
    /// Restricts the answer to responses of this size, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_bytes: Option<u64>,
    /// True if the user accepts noise of the machine: trials that it disturbed count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub accept_noise: bool,
}

/// Prices per hour, in one currency.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Prices {
    /// Price per core.
    #[serde(default)]
    pub cpu_hour: f64,
    /// Price per GB (1 000 000 000 bytes) of memory.
    #[serde(default)]
    pub gb_hour: f64,
    /// Price per replica, independent of its size.
    #[serde(default)]
    pub per_replica_hour: f64,
    /// Currency, such as `USD`; may be empty.
    #[serde(default)]
    pub currency: String,
}

impl Prices {
    /// Hours per month: 365 days of 24 hours, over twelve.
    const HOURS_PER_MONTH: f64 = 730.0;

    /// Cost of these cores, bytes of memory and replicas for 730 hours.
    #[must_use]
    pub fn per_month(&self, cpu_cores: f64, memory_bytes: f64, replicas: f64) -> f64 {
        let per_hour =
            cpu_cores * self.cpu_hour + memory_bytes / 1e9 * self.gb_hour + replicas * self.per_replica_hour;
        per_hour * Self::HOURS_PER_MONTH
    }
}

/// Machine that all runs were measured on.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct SizeMachine {
    /// CPU model, as reported by the kernel.
    pub cpu_model: String,
    /// CPUs online.
    pub cpus: usize,
    /// Threads per core.
    #[serde(default)]
    pub threads_per_core: usize,
    /// Memory, bytes.
    #[serde(default)]
    pub memory_bytes: u64,
    /// Release of the kernel.
    pub kernel: String,
    /// Version of Meshmeter.
    pub meshmeter: String,
}

/// A run that the answer is based on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SizeRun {
    /// Directory, as given.
    pub directory: String,
    /// Name of the experiment.
    pub name: String,
    /// Trials recorded.
    pub trials: usize,
    /// Trials planned; the recorded ones can be more, since trials are rerun, or fewer in a run that was cut short.
    #[serde(default)]
    pub planned: usize,
}

/// Number of replicas of one proxy in one mode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SizeAnswer {
    /// The mode.
    pub mode: Mode,
    /// Component to size, such as `gateway` or `client-proxy`.
    pub component: String,
    /// Number of proxies per replica: 1, or all proxies of a mode that has several.
    pub proxies: usize,
    /// Values of factors that are not sizes of the proxy.
    #[serde(default, skip_serializing_if = "Factors::is_empty")]
    pub factors: Factors,
    /// Protocol of the load.
    pub protocol: String,
    /// Size of the response body, bytes.
    pub payload_bytes: u64,
    /// Connections of the generator under the heaviest load.
    pub connections: usize,
    /// One option per measured size, ascending.
    pub options: Vec<SizeOption>,
    /// Index in `options` of the one with the least `expected_monthly_cost`; without prices, with the least
    /// `expected_cpu_cores`.
    pub recommended: Option<usize>,
    /// CPU and memory that every figure counts, as text.
    pub counted: String,
    /// Programs of the runs that the requests pass, with versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<ComponentVersion>,
    /// Settings of the proxies that cost CPU per request, such as `ingress.scenario waf` or `access log off`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<String>,
    /// Published figures of the component's capacity, CPU and memory, beside those of the runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<PublishedFigure>,
    /// Caveats for all options.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<SizeNote>,
}

impl SizeAnswer {
    /// Recommended option.
    #[must_use]
    pub fn recommendation(&self) -> Option<&SizeOption> {
        self.options.get(self.recommended?)
    }
}

/// One replica size, with the number of replicas and their cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SizeOption {
    /// Index of the run in `runs`.
    pub run: usize,
    /// Indices of further runs that measured the same size at other loads with the same settings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further_runs: Vec<usize>,
    /// Values of factors that are its size, such as `gateway.cpu`; empty if the runs do not vary it.
    #[serde(default, skip_serializing_if = "Factors::is_empty")]
    pub size: Factors,
    /// CPU limit of a replica, cores; absent: none.
    pub cpu_limit_cores: Option<f64>,
    /// Memory limit of a replica, bytes; absent: none.
    pub memory_limit_bytes: Option<u64>,
    /// Capacity of a replica.
    pub capacity: Capacity,
    /// The measured load that the capacity rests on.
    pub measured: SizeMeasurement,
    /// Resource that limits the capacity.
    pub binds: BindingResource,
    /// Number of replicas.
    pub replicas: ReplicaCount,
    /// The number of replicas to plan with, what they use and cost.
    pub planned: SizePlan,
    /// CPU of a replica, cores: its limit, or without one its usage at its share of the target.
    pub replica_cpu_cores: Option<Estimate>,
    /// Memory of a replica, bytes: the measured working set.
    pub replica_memory_bytes: Option<Estimate>,
    /// CPU of all replicas, cores.
    pub cpu_cores: Option<Estimate>,
    /// Memory of all replicas, bytes.
    pub memory_bytes: Option<Estimate>,
    /// Cost of all replicas for 730 hours; absent without prices or CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monthly_cost: Option<Estimate>,
    /// CPU of the needed replicas, averaged over the capacity's interval, cores: their number is a whole one, so
    /// that it differs from the CPU at the estimated capacity.
    pub expected_cpu_cores: Option<f64>,
    /// Cost of the needed replicas for 730 hours, averaged over the capacity's interval; absent without prices or
    /// CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_monthly_cost: Option<f64>,
    /// Requests per day that all replicas support, with headroom kept.
    pub capacity_per_day: Estimate,
    /// Share of the replicas' capacity that the target uses, 0 to 1.
    pub utilisation: f64,
    /// Remaining capacity if one replica fails.
    pub without_one: WithoutOne,
    /// Command that measures the capacity, if the runs did not reach it; absent if only a larger machine would show more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_run: Option<String>,
    /// Caveats: what the run does not support.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<SizeNote>,
}

/// Capacity of one replica.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    /// Requests per second. `high` is absent if the sweep ended before the limit.
    pub rps: Estimate,
    /// True if the runs did not reach the capacity: a replica carries `rps` or more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lower_bound: bool,
    /// How it was determined.
    pub basis: CapacityBasis,
    /// Highest offered rate that is supported (open loop).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried_rps: Option<f64>,
    /// Lowest offered rate that is not supported (open loop).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed_rps: Option<f64>,
    /// Number of clients of the greatest throughput (closed loop).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<usize>,
    /// Lowest number of clients above it that misses the objective (closed loop); absent if a number between
    /// them meets it with less throughput.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed_clients: Option<usize>,
}

impl Capacity {
    /// Lowest rate, or number of clients, that is not supported.
    #[must_use]
    pub fn missed_level(&self) -> Option<f64> {
        self.missed_rps.or(self.missed_clients.map(|clients| clients as f64))
    }
}

/// How a capacity was determined.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CapacityBasis {
    /// Closed loop: the greatest throughput of the numbers of clients that meet the objective.
    ClosedLoopObjective,
    /// Closed loop without an objective: maximum throughput, regardless of the response time.
    ClosedLoop,
    /// Open loop: between the highest rate that meets the objective and the lowest that misses it.
    Objective,
    /// Open loop without an objective: responses per second at a rate that the target does not keep up with.
    Saturation,
    /// Open loop: the highest measured rate, which is supported. The actual capacity may be higher.
    HighestRate,
}

/// Resource that limits a replica's capacity.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BindingResource {
    /// Its CPU limit, or the CPU of all its workers.
    Cpu,
    /// Its memory limit.
    Memory,
    /// The objective, with CPU to spare.
    Objective,
    /// The generator.
    Generator,
    /// All CPUs of the machine, which are shared by generator, service and proxies.
    Machine,
    /// The load of the run, in clients or rate: no resource was exhausted.
    Load,
    /// Contention: more clients lowered the throughput, though no resource was exhausted.
    Contention,
    /// Unknown: the run does not show it.
    Unknown,
}

/// A number of replicas with its interval.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct ReplicaCount {
    /// From the estimated capacity.
    pub estimate: u64,
    /// From the upper end of the capacity interval; absent without an interval. 1 if the capacity has no
    /// upper end.
    pub low: Option<u64>,
    /// From the lower end of the capacity interval; absent without an interval.
    pub high: Option<u64>,
}

/// Number of replicas that suffices with [`SizeResult::confidence`]. Intervals are those of this number's figures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SizePlan {
    /// From [`Self::replica_rps`].
    pub replicas: u64,
    /// True if the runs did not reach the capacity of a replica: at most `replicas` are needed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub upper_bound: bool,
    /// Requests per second that a replica carries at least: the one-sided lower end of its capacity. Without an
    /// interval, the estimate.
    pub replica_rps: f64,
    /// CPU of all replicas, cores.
    pub cpu_cores: Option<Estimate>,
    /// Memory of all replicas, bytes.
    pub memory_bytes: Option<Estimate>,
    /// Cost of all replicas for 730 hours; absent without prices or CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monthly_cost: Option<Estimate>,
    /// Share of the replicas' estimated capacity that the target uses, 0 to 1.
    pub utilisation: f64,
    /// Remaining capacity if one of these replicas fails.
    pub without_one: WithoutOne,
}

/// A measured load, and the figures of the component under it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SizeMeasurement {
    /// Offered requests per second (open loop).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered_rps: Option<f64>,
    /// Number of clients (closed loop).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<usize>,
    /// Trials with valid response times.
    pub trials: usize,
    /// Responses per second.
    pub rate_completed: Option<Estimate>,
    /// Times by their name in objectives, microseconds: the median and the 99th percentile of the response time, of streams
    /// those of the first event (`first-event-p50`), and times that the objective bounds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub response_time_us: BTreeMap<String, Estimate>,
    /// CPU of the component alone, cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_cores: Option<Estimate>,
    /// Responses per second per core that the component used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rps_per_core: Option<Estimate>,
    /// Working set of the component alone, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_working_set_bytes: Option<Estimate>,
    /// Resident memory of the component alone, bytes, or its working set if larger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<Estimate>,
}

/// Remaining capacity if one replica fails.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WithoutOne {
    /// Share of the capacity lost, 0 to 1.
    pub lost: f64,
    /// Requests per second that the remaining replicas support, without headroom.
    pub remaining_rps: f64,
    /// Requests per second that the remaining replicas support, with headroom kept.
    pub remaining_rps_with_headroom: f64,
    /// True if the remaining replicas support the target.
    pub carries_target: bool,
    /// True if the remaining replicas support the target with headroom kept.
    pub carries_target_with_headroom: bool,
    /// Number of replicas that support the target with headroom even if one fails.
    pub replicas_with_spare: u64,
}

/// A caveat: something that the runs do not support, or an assumption beyond the measurements.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct SizeNote {
    /// Kind of the note.
    pub kind: SizeNoteKind,
    /// Detail that the note refers to, such as the measured modes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Text of the note.
    pub text: String,
}

impl SizeNote {
    /// Creates a note without text.
    #[must_use]
    pub fn new(kind: SizeNoteKind) -> Self {
        Self { kind, detail: None, text: String::new() }
    }

    /// Creates a note with a detail.
    #[must_use]
    pub fn naming(kind: SizeNoteKind, detail: impl Into<String>) -> Self {
        Self { detail: Some(detail.into()), ..Self::new(kind) }
    }
}

/// Kind of a note.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SizeNoteKind {
    /// Refusal: the runs were measured on different machines, kernels or versions of Meshmeter.
    MixedMachines,
    /// Runs that were cut short, or have interrupted trials.
    CutShort,
    /// Noise of the machine that the user accepted, here or in a run's report: the answer is also from trials that it disturbed.
    NoiseAccepted,
    /// Refusal: the runs have no such mode, component or payload.
    NotMeasured,
    /// Refusal: no trial is valid.
    NoValidTrial,
    /// Refusal: the objective is missed at every load.
    ObjectiveNeverMet,
    /// Refusal: no load is confirmed to meet the objective.
    ObjectiveNotShown,
    /// The target exceeds the total that the run measured: replicas are extrapolated linearly.
    TargetBeyondSweep,
    /// The highest rate or number of clients is supported: a replica may support more.
    SweepEnded,
    /// A replica's share of the target is below the lowest measured rate, whose CPU is used.
    BelowSweep,
    /// No objective: the throughput is given regardless of response time.
    NoObjective,
    /// A higher rate meets the objective although a lower one misses it.
    NotMonotone,
    /// More clients lowered the throughput, by the intervals.
    MoreClientsCarryLess,
    /// A published figure and that of the runs differ by more than a factor of two.
    PublishedDiffers,
    /// The plan of another size costs less than that of the recommended one, whose expected cost is less.
    OtherPlanCheaper,
    /// Prices without a currency.
    NoCurrency,
    /// The generator limits the throughput.
    GeneratorLimited,
    /// All CPUs of the machine are busy: other programs limit the throughput too.
    MachineFull,
    /// Only one valid trial: no interval.
    SingleTrial,
    /// CPU was not measured.
    CpuNotMeasured,
    /// Memory was not measured.
    MemoryNotMeasured,
    /// A ztunnel serves a whole node: each node has one.
    SharedPerNode,
    /// The proxies of several services count as one replica.
    SeveralServices,
    /// Services called by filters of the proxy are not included in any figure.
    FilterServices,
    /// Versions of components differ between the runs.
    MixedComponents,
    /// Sections of the experiments in which the runs differ, such as `server`.
    MixedSettings,
    /// Trials of some size are left out.
    SizeLeftOut,
    /// Refusal of `price`: the proxies of the mode are not those of pods, nodes and namespaces alone.
    NotPriced,
    /// `price` predicts far beyond the values that the runs measured, or from a single one.
    FarBeyondMeasured,
}

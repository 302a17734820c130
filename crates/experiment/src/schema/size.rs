//! `meshmeter.size/1`: how many replicas of a proxy a target takes, how big, and at what cost, by what runs measured.

use super::estimate::Estimate;
use super::factor::Factors;
use crate::mode::Mode;
use serde::{Deserialize, Serialize};

/// The value of [`SizeResult::schema`].
pub const SIZE_SCHEMA: &str = "meshmeter.size/1";

/// The whole answer, with everything that it rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SizeResult {
    /// Always [`SIZE_SCHEMA`].
    pub schema: String,
    /// What was asked.
    pub asked: SizeQuestion,
    /// Requests per day at the target.
    pub requests_per_day: f64,
    /// Level of every interval, 0 to 1. An interval covers the runs alone.
    pub confidence: f64,
    /// The formula, a line per figure.
    pub formula: Vec<String>,
    /// The machine of all runs; absent where they are of several.
    pub machine: Option<SizeMachine>,
    /// The runs.
    pub runs: Vec<SizeRun>,
    /// One per mode, proxy and values of the factors that are no size. Empty where the question is refused.
    pub answers: Vec<SizeAnswer>,
    /// What the runs do not support: reasons for which there is no answer at all.
    pub refusals: Vec<SizeNote>,
}

impl SizeResult {
    /// Whether anything is answered.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        self.answers.iter().any(|answer| !answer.options.is_empty())
    }
}

/// What was asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SizeQuestion {
    /// Requests per second in all.
    pub target_rps: f64,
    /// Bounds that hold at the target, as typed in objectives; absent: throughput alone counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective: Option<String>,
    /// The objective is that of the runs' experiment: none was given.
    #[serde(default)]
    pub objective_of_experiment: bool,
    /// Share of each replica's capacity that stays free at the target, 0 to 1.
    pub headroom: f64,
    /// Prices; absent: no cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
    /// Only this mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Only this component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<String>,
    /// Only responses of this size, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_bytes: Option<u64>,
}

/// Prices per hour, in one currency.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Prices {
    /// Of a core.
    #[serde(default)]
    pub cpu_hour: f64,
    /// Of a GB (1 000 000 000 bytes) of memory.
    #[serde(default)]
    pub gb_hour: f64,
    /// Of each replica, whatever its size.
    #[serde(default)]
    pub per_replica_hour: f64,
    /// Such as `USD`; empty: not named.
    #[serde(default)]
    pub currency: String,
}

/// The machine that all runs were measured on.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct SizeMachine {
    /// As the kernel names it.
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

/// A run that the answer rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SizeRun {
    /// Its directory, as given.
    pub directory: String,
    /// The experiment's name.
    pub name: String,
    /// Trials recorded.
    pub trials: usize,
}

/// How many replicas of one proxy in one mode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SizeAnswer {
    /// The mode.
    pub mode: Mode,
    /// The component that is counted, such as `gateway` or `client-proxy`.
    pub component: String,
    /// Number of proxies that one replica stands for: 1, or all proxies of a mode that has many.
    pub proxies: usize,
    /// Values of the factors that are no size of the proxy.
    #[serde(default, skip_serializing_if = "Factors::is_empty")]
    pub factors: Factors,
    /// Protocol of the load.
    pub protocol: String,
    /// Size of each response's body, bytes.
    pub payload_bytes: u64,
    /// Connections of the generator under the heaviest load.
    pub connections: usize,
    /// A measured size each, the smallest first.
    pub options: Vec<SizeOption>,
    /// Place among `options` of the cheapest; without prices, of that with the least CPU.
    pub recommended: Option<usize>,
    /// What the runs do not support, for all options.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<SizeNote>,
}

impl SizeAnswer {
    /// The recommended option.
    #[must_use]
    pub fn recommendation(&self) -> Option<&SizeOption> {
        self.options.get(self.recommended?)
    }
}

/// One size of replica: how many of it, and what they cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SizeOption {
    /// Place of the run among `runs`.
    pub run: usize,
    /// Places of further runs that measured the same size at other loads under the same settings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further_runs: Vec<usize>,
    /// Values of the factors that are its size, such as `gateway.cpu`; empty where the runs vary none.
    #[serde(default, skip_serializing_if = "Factors::is_empty")]
    pub size: Factors,
    /// CPU limit of a replica, cores; absent: none.
    pub cpu_limit_cores: Option<f64>,
    /// Memory limit of a replica, bytes; absent: none.
    pub memory_limit_bytes: Option<u64>,
    /// What a replica carries.
    pub capacity: Capacity,
    /// What keeps a replica from carrying more.
    pub binds: BindingResource,
    /// Number of replicas.
    pub replicas: ReplicaCount,
    /// CPU of a replica: its limit, or without one what it uses at its share of the target, cores.
    pub replica_cpu_cores: Option<Estimate>,
    /// Memory of a replica: the measured working set, bytes.
    pub replica_memory_bytes: Option<Estimate>,
    /// CPU of all replicas, cores.
    pub cpu_cores: Option<Estimate>,
    /// Memory of all replicas, bytes.
    pub memory_bytes: Option<Estimate>,
    /// Cost of all replicas for 730 hours; absent without prices, or without CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monthly_cost: Option<Estimate>,
    /// Requests per day that all replicas carry, headroom kept.
    pub capacity_per_day: Estimate,
    /// Share of the replicas' capacity that the target uses, 0 to 1.
    pub utilisation: f64,
    /// What is left where one replica fails.
    pub without_one: WithoutOne,
    /// What the run does not support.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<SizeNote>,
}

/// What one replica carries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    /// Requests per second. `high` is absent where the sweep ended before the limit.
    pub rps: Estimate,
    /// Why it is this.
    pub basis: CapacityBasis,
    /// The highest offered rate that is carried (open loop).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried_rps: Option<f64>,
    /// The lowest offered rate that is not (open loop).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed_rps: Option<f64>,
    /// The number of clients (closed loop).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<usize>,
    /// The lowest number of clients above it that misses the objective (closed loop).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed_clients: Option<usize>,
}

impl Capacity {
    /// The lowest rate, or number of clients, that is not carried.
    #[must_use]
    pub fn missed_level(&self) -> Option<f64> {
        self.missed_rps.or(self.missed_clients.map(|clients| clients as f64))
    }
}

/// Why a capacity is what it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CapacityBasis {
    /// Closed loop: throughput at the most clients that meet the objective.
    ClosedLoopObjective,
    /// Closed loop without an objective: the greatest throughput, at whatever response time.
    ClosedLoop,
    /// Open loop: between the highest rate that meets the objective and the lowest that misses it.
    Objective,
    /// Open loop without an objective: responses per second at a rate that is not kept up with.
    Saturation,
    /// Open loop: the highest measured rate, which is carried. More may be.
    HighestRate,
}

/// What keeps a replica from carrying more.
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
    /// All CPUs of the machine, which generator, service and proxies share.
    Machine,
    /// The number of clients, or the rates of the run: nothing was full.
    Load,
    /// The run does not show it.
    Unknown,
}

/// A number of replicas with its interval.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct ReplicaCount {
    /// For the estimated capacity.
    pub estimate: u64,
    /// For the greatest capacity in the interval; absent without an interval. 1 where the capacity has no upper end.
    pub low: Option<u64>,
    /// For the least capacity in the interval; absent without an interval.
    pub high: Option<u64>,
}

/// What is left where one replica fails.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WithoutOne {
    /// Share of the capacity that is lost, 0 to 1.
    pub lost: f64,
    /// Requests per second that the others carry, without headroom.
    pub remaining_rps: f64,
    /// The others carry the target.
    pub carries_target: bool,
    /// Replicas with which the target is carried, headroom kept, though one fails.
    pub replicas_with_spare: u64,
}

/// Something that the runs do not support, or that an answer rests on beside what was measured.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct SizeNote {
    /// What it is about.
    pub kind: SizeNoteKind,
    /// What it names, such as the measured modes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// In words.
    pub text: String,
}

impl SizeNote {
    /// Without words.
    #[must_use]
    pub fn new(kind: SizeNoteKind) -> Self {
        Self { kind, detail: None, text: String::new() }
    }

    /// The same with what it names.
    #[must_use]
    pub fn naming(kind: SizeNoteKind, detail: impl Into<String>) -> Self {
        Self { detail: Some(detail.into()), ..Self::new(kind) }
    }
}

/// What a note is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SizeNoteKind {
    /// Refusal: the runs were measured on different machines, kernels or versions of Meshmeter.
    MixedMachines,
    /// Refusal: the runs have no such mode, component or payload.
    NotMeasured,
    /// Refusal: no trial is valid.
    NoValidTrial,
    /// Refusal: the objective is missed at every load.
    ObjectiveNeverMet,
    /// Refusal: no load is shown to meet the objective.
    ObjectiveNotShown,
    /// The target is more than the run measured in all: replicas are multiplied.
    TargetBeyondSweep,
    /// The highest rate or number of clients is carried: a replica may carry more.
    SweepEnded,
    /// A replica's share of the target is under the lowest measured rate: its CPU is that of the lowest.
    BelowSweep,
    /// No objective: the throughput is that of whatever response time.
    NoObjective,
    /// A higher rate meets the objective that a lower one misses.
    NotMonotone,
    /// The generator limits the throughput.
    GeneratorLimited,
    /// All CPUs of the machine are busy: programs beside the proxy limit the throughput.
    MachineFull,
    /// One valid trial alone: no interval.
    SingleTrial,
    /// CPU was not measured.
    CpuNotMeasured,
    /// Memory was not measured.
    MemoryNotMeasured,
    /// A ztunnel serves a node: there is one on each.
    SharedPerNode,
    /// The proxies of several services stand for one replica.
    SeveralServices,
    /// Services that filters of the proxy ask are in no figure.
    FilterServices,
    /// Versions of components differ between the runs.
    MixedComponents,
    /// Sections of the experiments in which the runs differ, such as `server`.
    MixedSettings,
    /// Trials of a size are left out.
    SizeLeftOut,
}

//! `meshmeter.trial/1`: one line of `trials.jsonl`, everything that one trial showed.

use super::{ConfigurationPush, HopProof, LoadResult, ProxyHoldings, TracingProof, Verdict};
use crate::Mode;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The value of [`TrialRecord::schema`].
pub const TRIAL_SCHEMA: &str = "meshmeter.trial/1";

/// One trial: one mode under one load, once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
    /// Always [`TRIAL_SCHEMA`].
    pub schema: String,
    /// Place in the order of execution, from 0.
    pub index: usize,
    /// Which repeat of the whole set of cells this trial belongs to, from 0.
    pub repeat: usize,
    /// The arrangement of proxies.
    pub mode: Mode,
    /// The load offered.
    pub load: LoadPoint,
    /// When the trial began, RFC 3339.
    pub started_at: String,
    /// How the trial ended.
    pub outcome: TrialOutcome,
    /// Whether its figures may enter estimates: the generator's own verdict and what the environment saw.
    pub verdict: Verdict,
    /// What the generator measured; absent where it did not get that far.
    pub result: Option<LoadResult>,
    /// What each component used in the generator's measured window.
    pub components: Vec<ComponentUsage>,
    /// Proof that the requests took the path that the mode names.
    pub path: PathProof,
    /// What the machine as a whole did in the window; absent where it was not observed.
    pub machine: Option<MachineUsage>,
    /// Last lines of the logs of components that failed, by component.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub log_tails: BTreeMap<String, Vec<String>>,
    /// What to do about a trial that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
    /// How long the control plane took to configure the proxies; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push: Option<ConfigurationPush>,
    /// Which take it is and why, where the machine disturbed an earlier one; absent on the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retake: Option<Retake>,
}

impl TrialRecord {
    /// Which take of its place in the plan it is, from 1.
    #[must_use]
    pub fn take(&self) -> usize {
        self.retake.as_ref().map_or(1, |retake| retake.take)
    }
}

/// Why a trial was taken again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Retake {
    /// Which take it is: 2 where the first was disturbed.
    pub take: usize,
    /// `index` of the take before it, of the same mode, load and repeat.
    pub of: usize,
    /// Why the figures of that one are in no estimate: the reasons of its verdict.
    pub because: Vec<String>,
}

/// How a trial ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrialOutcome {
    /// The generator ran its whole time.
    Finished,
    /// The user stopped the run; what was measured until then is here.
    Interrupted,
    /// A component could not be started or died.
    Failed,
}

/// The load of one cell of the experiment; where sizes of the mesh are compared too, with the size of which it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadPoint {
    /// Such as `http/1.1`.
    pub protocol: String,
    /// Open loop: requests a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Closed loop: clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<usize>,
    /// Connections kept open by the generator.
    pub connections: usize,
    /// Size of the response body, bytes.
    pub payload_bytes: u64,
    /// `uniform` or `poisson`.
    pub arrival: String,
    /// Other services around the pair; only where the experiment lists several sizes. It stands here so that mode and load
    /// name a cell, as they do without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surrounding_services: Option<usize>,
}

/// What a component is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Hash, Ord, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// A proxy of the mesh.
    Proxy,
    /// The application under the mesh.
    App,
    /// The load generator.
    Generator,
    /// What configures the proxies.
    ControlPlane,
    /// CPU that the kernel spent for no process of the experiment.
    Kernel,
    /// Meshmeter's own sampling.
    Observer,
}

/// What one component used in the measured window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComponentUsage {
    /// Name within the run, such as `client-proxy`.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// The pod that it runs in; absent for the kernel and the observer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// Time between the two readings of its counters, seconds.
    pub window_s: f64,
    /// CPU in user mode over the window, seconds.
    pub cpu_user_s: f64,
    /// CPU in the kernel over the window, seconds.
    pub cpu_system_s: f64,
    /// Where the CPU figures come from: `cgroup-v1`, `cgroup-v2` or `proc`.
    pub cpu_source: String,
    /// Resident memory of all its processes at the end of the window, bytes.
    pub memory_resident_bytes: u64,
    /// Memory in use less what the kernel could drop at once (inactive page cache), as a kubelet counts it, at the end of the window, bytes;
    /// absent where no cgroup tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_working_set_bytes: Option<u64>,
    /// Anonymous memory at the end of the window (heaps and stacks: pages of no file), as its control group counts it, or
    /// the sum of its processes where no group tells it, bytes; absent where nothing does. Pages that an allocator has
    /// given back lazily are in it until the kernel takes them, and not in the working set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_anonymous_bytes: Option<u64>,
    /// Memory before the generator started: the greater of resident memory and working set, bytes; absent where it was not
    /// read, as for the generator and the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_before_load_bytes: Option<u64>,
    /// The same after the generator had ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_after_load_bytes: Option<u64>,
    /// Anonymous memory before the generator started, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_anonymous_before_load_bytes: Option<u64>,
    /// The same after the generator had ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_anonymous_after_load_bytes: Option<u64>,
    /// What a proxy says of itself; absent for what is no proxy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holdings: Option<ProxyHoldings>,
    /// What each process used, where the component has several: an agent and the Envoy that it runs. The component's own
    /// figures are those of all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<ProcessUsage>,
    /// Traffic of the pod's network interface; absent where the component shares it with one nearer to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkUsage>,
    /// Context switches in the window; absent for the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduling: Option<SchedulingUsage>,
    /// Throttling by the CPU limit in the window; absent where no cgroup tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttling: Option<Throttling>,
}

impl ComponentUsage {
    /// A component of which nothing was read but the time between two readings: no CPU (as the process table, `proc`, would
    /// have it), no memory, nothing else.
    #[must_use]
    pub fn of(name: impl Into<String>, role: Role, window_s: f64) -> Self {
        Self {
            name: name.into(),
            role,
            pod: None,
            window_s,
            cpu_user_s: 0.0,
            cpu_system_s: 0.0,
            cpu_source: "proc".to_owned(),
            memory_resident_bytes: 0,
            memory_working_set_bytes: None,
            memory_anonymous_bytes: None,
            memory_before_load_bytes: None,
            memory_after_load_bytes: None,
            memory_anonymous_before_load_bytes: None,
            memory_anonymous_after_load_bytes: None,
            holdings: None,
            processes: Vec::new(),
            network: None,
            scheduling: None,
            throttling: None,
        }
    }

    /// Mean CPU over the window, cores.
    #[must_use]
    pub fn cpu_cores(&self) -> f64 {
        if self.window_s > 0.0 { (self.cpu_user_s + self.cpu_system_s) / self.window_s } else { 0.0 }
    }

    /// Memory at the end of the window: resident memory, or the working set where that is more (the working set leaves out
    /// file pages that another group read first, resident memory leaves out the kernel's buffers), bytes; absent for the
    /// kernel.
    #[must_use]
    pub fn memory_bytes(&self) -> Option<u64> {
        let bytes = self.memory_resident_bytes.max(self.memory_working_set_bytes.unwrap_or(0));
        (self.role != Role::Kernel).then_some(bytes)
    }
}

/// What one process of a component used in the measured window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProcessUsage {
    /// Its name as the kernel has it, such as `envoy`.
    pub name: String,
    /// CPU in user mode, seconds; counted in ticks of the clock (10 ms), coarser than the component's own.
    pub cpu_user_s: f64,
    /// CPU in the kernel, seconds, as coarse.
    pub cpu_system_s: f64,
    /// Resident memory at the end of the window, bytes. Pages that processes share, such as their program's, count for each.
    pub memory_resident_bytes: u64,
    /// Of which anonymous (heap and stacks), bytes; absent in older results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_anonymous_bytes: Option<u64>,
}

/// Traffic of a pod's interface in the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NetworkUsage {
    /// Bytes received, with link headers.
    pub received_bytes: u64,
    /// Bytes sent, with link headers.
    pub sent_bytes: u64,
}

/// Context switches of all threads of a component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SchedulingUsage {
    /// The thread waited for something.
    pub voluntary_switches: u64,
    /// The thread was made to give way.
    pub involuntary_switches: u64,
}

/// Throttling by a CPU limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Throttling {
    /// Enforcement periods in which the component was throttled.
    pub periods: u64,
    /// Time for which it was throttled, seconds.
    pub time_s: f64,
}

/// Whether the requests took the path that the mode names, from the proxies' own counters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PathProof {
    /// Every expected proxy saw every request, with TLS where it is claimed.
    pub proven: bool,
    /// What each proxy counted over the trial.
    pub proxies: Vec<ProxyProof>,
    /// What was missing; empty where the path is proven.
    pub reasons: Vec<String>,
    /// What the service itself counted; absent where the proxies' own counts suffice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceProof>,
    /// What was traced, and the spans that came of it; absent where nothing was to be traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracing: Option<TracingProof>,
    /// What was spoken between neighbours, from client to server; empty where there is no proxy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hops: Vec<HopProof>,
}

/// What the service counted between the start of the generator and its end, warm-up included: the measure of proxies
/// that carry connections without reading the requests in them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServiceProof {
    /// Requests that it read whole.
    pub requests_received: u64,
    /// Connections that it accepted.
    pub connections: u64,
    /// Bytes that it read, without those of TLS.
    pub received_bytes: u64,
    /// Bytes that it sent, without those of TLS.
    pub sent_bytes: u64,
}

/// What one proxy counted between the start of the generator and its end, warm-up included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProxyProof {
    /// The component.
    pub name: String,
    /// Requests that arrived at the listener of this path; of a proxy that counts their bytes (ztunnel), those that these
    /// make; 0 where it carries what it does not read.
    pub requests_received: u64,
    /// Requests that the generator sent; 0 where it carries what it does not read.
    pub requests_expected: u64,
    /// What it carried unread; absent where it reads requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<StreamProof>,
    /// TLS handshakes completed with the peer proxy, as server or as client.
    pub tls_handshakes: u64,
    /// Whether the mode claims mutual TLS at this proxy.
    pub tls_expected: bool,
    /// Whether it would have taken plain text for the service too, by its own configuration; absent where it is not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub takes_plain_text: Option<bool>,
    /// The counters that this was read from, for those who check.
    pub counters: BTreeMap<String, u64>,
}

/// Connections that a proxy carried without reading the requests in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StreamProof {
    /// Connections that took this path through it.
    pub connections: u64,
    /// Connections that the service accepted; 0 where the path leads past this proxy.
    pub connections_expected: u64,
    /// Bytes from the client's side.
    pub received_bytes: u64,
    /// Bytes to the client's side.
    pub sent_bytes: u64,
}

/// The machine as a whole in the measured window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineUsage {
    /// Time between the two readings, seconds.
    pub window_s: f64,
    /// CPUs online.
    pub cpus: usize,
    /// Mean number of busy CPUs, cores.
    pub busy_cores: f64,
    /// Time stolen by the hypervisor, cores.
    pub steal_cores: f64,
    /// Interrupts and soft interrupts as the kernel counted them apart, cores; part of it may also be charged to the
    /// process that was interrupted (kernels without `IRQ_TIME_ACCOUNTING`).
    pub interrupt_cores: f64,
    /// Busy, but charged to no process of the experiment and to no other user process, cores.
    pub kernel_cores: f64,
    /// Processes that do not belong to the experiment, cores.
    pub other_processes_cores: f64,
    /// The greatest of those.
    pub top_other_processes: Vec<TopProcess>,
}

/// A process that is not part of the experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopProcess {
    /// Its command name.
    pub name: String,
    /// Mean CPU over the window, cores.
    pub cpu_cores: f64,
}

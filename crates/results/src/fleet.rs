//! `meshmeter.fleet/1`: measurements of a control plane by a fleet of simulated proxies.

use crate::export::ExportRecord;
use crate::histogram::HistogramSummary;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The value of [`FleetResult::schema`].
pub const FLEET_SCHEMA: &str = "meshmeter.fleet/1";

/// Result of `meshmeter fleet`; in an experiment, the result of a driver that is a fleet. Times are in
/// microseconds unless the name says otherwise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetResult {
    /// Always [`FLEET_SCHEMA`].
    pub schema: String,
    /// Start, RFC 3339.
    pub started_at: String,
    /// From the first connection to the end, seconds.
    pub duration_s: f64,
    /// Addresses of the istiods, `host:port`, in the order of the command line.
    pub istiod: Vec<String>,
    /// xDS variant: `delta` or `state-of-the-world`.
    pub xds: String,
    /// Security: `plaintext`, `token` or `mutual-tls`.
    pub security: String,
    /// Proxies at the end.
    pub proxies: FleetProxies,
    /// Number of proxies by kind: `sidecar`, `gateway`, `waypoint`, `ztunnel`.
    pub kinds: BTreeMap<String, usize>,
    /// Objects of the mesh that the fleet wrote, by kind, and the time it took; absent if it wrote none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mesh: Option<FleetMesh>,
    /// From the start of connecting to an open stream, per connection.
    pub connect_us: HistogramSummary,
    /// From the start of connecting to the first complete configuration, per connection.
    pub first_configuration_us: HistogramSummary,
    /// Convergence: from the acknowledgement of a change's last write to the arrival of its mark, over all
    /// changes and proxies. Proxies that were never reached rank above all values.
    pub convergence_us: HistogramSummary,
    /// Changes, in the order in which they were written.
    pub changes: Vec<FleetChange>,
    /// Bytes received, as bodies of gRPC messages.
    pub bytes_received: u64,
    /// Responses (pushes) received, by short type: `cds`, `eds`, `lds`, `rds`, `nds`, `sds`, `ecds`,
    /// `addresses`, `authorizations`.
    pub pushes: BTreeMap<String, FleetPushes>,
    /// Responses rejected by the fleet (NACK).
    pub rejections: u64,
    /// Responses acknowledged by the fleet (ACK).
    pub acknowledgements: u64,
    /// Protocol violations and broken streams, by kind.
    pub violations: BTreeMap<String, u64>,
    /// Disconnected proxies and their recovery; empty if there were none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cut_off: Vec<FleetOutage>,
    /// Changes as seen by real Envoys next to the fleet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub witnesses: Vec<FleetWitness>,
    /// Timeline of events; seconds from the start.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<FleetEvent>,
    /// Phases of the change period, in order: one per run of changes of the same kind. Churn is a single
    /// phase.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<FleetPhase>,
    /// Connected proxies, pushes and bytes, once per second.
    pub series: Vec<FleetSecond>,
    /// The same figures per istiod, if each of several had its own fleet, in the order of [`Self::istiod`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by_istiod: Vec<FleetOfIstiod>,
    /// Figures reported by the control plane: one entry per istiod, in the order of [`Self::istiod`], then
    /// the API server and etcd.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub control_plane: Vec<ControlPlaneFigures>,
    /// Resources used by the fleet itself, to rule it out as the bottleneck.
    pub fleet: FleetUsage,
    /// Outcome of the export of figures to other systems.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exports: Vec<ExportRecord>,
    /// Whether the figures may be used, and why not.
    pub verdict: FleetVerdict,
}

/// The fleet of one of several istiods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetOfIstiod {
    /// Address, `host:port`.
    pub istiod: String,
    /// See [`FleetResult::proxies`].
    pub proxies: FleetProxies,
    /// See [`FleetResult::first_configuration_us`].
    pub first_configuration_us: HistogramSummary,
    /// See [`FleetResult::convergence_us`].
    pub convergence_us: HistogramSummary,
    /// See [`FleetResult::bytes_received`].
    pub bytes_received: u64,
    /// See [`FleetResult::pushes`].
    pub pushes: BTreeMap<String, FleetPushes>,
    /// See [`FleetResult::rejections`].
    pub rejections: u64,
}

/// Proxy counts of a fleet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetProxies {
    /// Requested number of proxies.
    pub wanted: u64,
    /// Proxies connected at the end.
    pub connected: u64,
    /// Proxies with a complete configuration and every change expected of them.
    pub converged: u64,
    /// Proxies that never received a configuration or a change.
    pub never: u64,
    /// Names of the first twenty of `never`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub never_names: Vec<String>,
}

/// Objects that a fleet wrote before it connected.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetMesh {
    /// Value of the label `meshmeter.io/fleet` of every object that the fleet wrote.
    pub run_id: String,
    /// Name of the topology that its services come from; absent if services are given as numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology: Option<String>,
    /// Number of objects by kind, such as `Service`.
    pub objects: BTreeMap<String, usize>,
    /// From the first write to the API's response to the last, seconds.
    pub written_s: f64,
    /// Time to remove all of them, seconds; absent if they were kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed_s: Option<f64>,
}

/// A change of the mesh and its convergence.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetChange {
    /// Kind, such as `endpoint-added`, `virtual-service`, `service-entry`, `connect-storm`.
    pub kind: String,
    /// Acknowledgement of its last write, seconds from the start.
    pub at: f64,
    /// Number of changes in this entry: more than one if churn made them; 0 means 1.
    #[serde(skip_serializing_if = "is_at_most_one")]
    pub made: u64,
    /// Objects written.
    pub objects: usize,
    /// From sending the first write to the acknowledgement of the last, seconds.
    pub written_s: f64,
    /// Proxies expected to receive it.
    pub expected: u64,
    /// Proxies that received it.
    pub reached: u64,
    /// From the acknowledgement to the arrival, per proxy. Proxies that were never reached rank above all
    /// values.
    pub convergence_us: HistogramSummary,
    /// Istiod that the proxies are connected to, if there are several: index in [`FleetResult::istiod`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub istiod: Option<usize>,
    /// Why the change could not be made or tracked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// Responses of one resource type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetPushes {
    /// Number of responses.
    pub count: u64,
    /// Bytes of the response bodies.
    pub bytes: u64,
    /// Resources in the responses.
    pub resources: u64,
    /// Routes in these resources; 0 for types other than `rds`, and in results from earlier versions.
    #[serde(skip_serializing_if = "is_zero")]
    pub routes: u64,
    /// Removed resources named in the responses.
    pub removed: u64,
    /// Responses from the first write of a change until the next change, by kind of change; `connect` before
    /// the first change.
    pub by_trigger: BTreeMap<String, u64>,
    /// Bytes of the responses in [`Self::by_trigger`]; empty in results from earlier versions.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub bytes_by_trigger: BTreeMap<String, u64>,
}

/// Proxies that lost their connection at the same time for the same cause.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetOutage {
    /// Cause, such as `link-down`, `istiod-killed`.
    pub cause: String,
    /// Time at which the first proxy was disconnected, seconds from the start.
    pub at: f64,
    /// Number of proxies.
    pub proxies: u64,
    /// Names of the first twenty proxies.
    pub names: Vec<String>,
    /// From the disconnect until complete again, per proxy. Proxies that never recovered rank above all
    /// values.
    pub recovery_us: HistogramSummary,
}

/// A change as seen by a real Envoy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetWitness {
    /// Address that the Envoy's statistics are read from, `host:port`.
    pub name: String,
    /// Kind of the change.
    pub kind: String,
    /// [`FleetChange::at`] of the change.
    pub at: f64,
    /// From the acknowledgement of the change to the Envoy's own `update_time`, which has millisecond
    /// resolution; absent if Envoy shows no update since the change.
    pub updated_us: Option<f64>,
    /// Lag behind the last proxy of the fleet; negative if earlier than the first; 0 in between.
    pub difference_us: Option<f64>,
    /// Lag behind the mean arrival at the fleet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub later_us: Option<f64>,
    /// Share of the fleet's proxies that received the change earlier, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<f64>,
    /// Lag behind the nearest arrival at the fleet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest_us: Option<f64>,
}

/// An event of the timeline.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetEvent {
    /// Seconds from the start.
    pub at: f64,
    /// Kind, such as `change`, `istiod-killed`, `istiod-ready`, `all-connected`, `all-converged`.
    pub kind: String,
    /// Human-readable detail; may be empty.
    pub detail: String,
}

/// Value of [`FleetPhase::kind`] for phases without changes.
pub const IDLE_PHASE: &str = "idle";

/// A phase of the change period. Istiod may push the last change of a phase during the next phase; its CPU,
/// responses and bytes are then counted there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetPhase {
    /// Kind of the changes, or [`IDLE_PHASE`].
    pub kind: String,
    /// Start, seconds from the start of the fleet.
    pub at: f64,
    /// Length, seconds.
    pub duration_s: f64,
    /// CPU time of all istiods in it, seconds; absent if one does not report it.
    pub istiod_cpu_s: Option<f64>,
    /// Responses received.
    pub pushes: u64,
    /// Bytes received.
    pub bytes: u64,
}

/// One second of a fleet's measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetSecond {
    /// Start of the second, seconds from the start.
    pub t_s: f64,
    /// Connected proxies at the end of the second.
    pub connected: u64,
    /// Proxies with a complete configuration at the end of the second.
    pub complete: u64,
    /// Responses received.
    pub pushes: u64,
    /// Bytes received.
    pub bytes: u64,
}

/// Figures that an istiod, the API server or etcd reported between the start and the end of the measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ControlPlaneFigures {
    /// Name, such as `istiod`, `kube-apiserver`, `etcd`.
    pub name: String,
    /// Version, if reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// CPU time used, seconds.
    pub cpu_s: Option<f64>,
    /// Resident memory at the end, bytes.
    pub memory_bytes: Option<u64>,
    /// Maximum observed resident memory, bytes.
    pub memory_peak_bytes: Option<u64>,
    /// Part of [`Self::cpu_s`] until every proxy had its first complete configuration, seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_connecting_s: Option<f64>,
    /// Part of [`Self::cpu_s`] while changes were made and tracked, seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_changing_s: Option<f64>,
    /// Goroutines at the end.
    pub goroutines: Option<u64>,
    /// Maximum observed number of goroutines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goroutines_peak: Option<u64>,
    /// Maximum length of the push queue, in proxies, if reported.
    pub push_queue_peak: Option<u64>,
    /// Histograms of istiod's push pipeline while changes were made (over the whole window if there were
    /// none), seconds: `debounce` (which contains the next), `push_context`, `queue` (per proxy), `push` (per
    /// proxy and type), `convergence`.
    pub chain: BTreeMap<String, ReportedHistogram>,
    /// Pushes by type, as counted by istiod.
    pub pushes: BTreeMap<String, u64>,
    /// Push triggers, as named by istiod.
    pub triggers: BTreeMap<String, u64>,
    /// Rejected configurations (NACKs) counted by istiod.
    pub rejections: u64,
    /// Restarts observed.
    #[serde(skip_serializing_if = "is_zero")]
    pub restarts: u64,
    /// Why figures are absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// A Prometheus histogram over a window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportedHistogram {
    /// Number of observations.
    pub count: u64,
    /// Sum of the observations.
    pub sum: f64,
    /// Upper bounds of buckets with cumulative counts, without the last bound, which is infinite.
    pub buckets: Vec<(f64, u64)>,
}

impl ReportedHistogram {
    /// Mean; absent if there are no observations.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }

    /// Adds the observations of another histogram with the same buckets.
    pub fn add(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.sum += other.sum;
        for (bound, count) in &other.buckets {
            match self.buckets.iter_mut().find(|(known, _)| known == bound) {
                Some((_, known)) => *known = known.saturating_add(*count),
                None => self.buckets.push((*bound, *count)),
            }
        }
    }

    /// Observations since an earlier state of this histogram.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let counted = |bound: f64| {
            let bucket = earlier.buckets.iter().find(|(known, _)| *known == bound);
            bucket.map_or(0, |(_, count)| *count)
        };
        let bucket = |(bound, count): &(f64, u64)| (*bound, count.saturating_sub(counted(*bound)));
        Self {
            count: self.count.saturating_sub(earlier.count),
            sum: (self.sum - earlier.sum).max(0.0),
            buckets: self.buckets.iter().map(bucket).collect(),
        }
    }
}

fn is_at_most_one(count: &u64) -> bool {
    *count <= 1
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Resources used by the fleet itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetUsage {
    /// CPU time, seconds.
    pub cpu_s: f64,
    /// Maximum resident memory, bytes.
    pub memory_peak_bytes: u64,
    /// Resident memory once all proxies had settled, bytes.
    pub memory_settled_bytes: Option<u64>,
    /// From the kernel's receipt of a response's last bytes until the fleet read them: how late the fleet
    /// was.
    pub lag_us: HistogramSummary,
    /// Source of arrival times: `kernel` (receive timestamps) or `reading`.
    pub clock: String,
    /// Error bound of arrival times, p99, microseconds. It adds up clock conversion, position of the change
    /// within one read, the resolution of 1 µs, and [`Self::timestamp_check_p99_us`]. Absent if times come
    /// from `reading`: the error is then [`Self::lag_us`]. Results from earlier versions have other bounds:
    /// only the clock conversion, or also the histogram resolution of one in 1024.
    pub timestamp_error_p99_us: Option<f64>,
    /// Deviation of the kernel's receive timestamps from the write times on a loopback connection, p99,
    /// microseconds: the maximum of a check at the start and one at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp_check_p99_us: Option<f64>,
    /// Arrivals of changes followed by more bytes in the same read: their times may be late.
    #[serde(skip_serializing_if = "is_zero")]
    pub arrivals_followed: u64,
    /// Number of threads.
    pub threads: usize,
}

/// Whether a fleet's figures may be used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetVerdict {
    /// True if there are no reasons.
    pub valid: bool,
    /// Reasons, such as `not-converged: 3 proxies …`, `fleet-late: …`, `interrupted`.
    pub reasons: Vec<String>,
    /// Notes on usable figures too, such as `other-processes: …`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

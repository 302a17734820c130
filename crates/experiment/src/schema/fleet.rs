//! `meshmeter.fleet/1`: what a fleet of simulated proxies saw of a control plane.

use super::export::ExportRecord;
use super::histogram::HistogramSummary;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The value of [`FleetResult::schema`].
pub const FLEET_SCHEMA: &str = "meshmeter.fleet/1";

/// Result of `meshmeter fleet`; in an experiment, of a driver that is a fleet. Times are microseconds unless the name says
/// otherwise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetResult {
    /// Always [`FLEET_SCHEMA`].
    pub schema: String,
    /// RFC 3339.
    pub started_at: String,
    /// From the first connection to the end, seconds.
    pub duration_s: f64,
    /// Address of the control plane, `host:port`; with several, in the order of the command line.
    pub istiod: Vec<String>,
    /// `delta` or `state-of-the-world`.
    pub xds: String,
    /// `plaintext`, `token` or `mutual-tls`.
    pub security: String,
    /// Proxies at the end.
    pub proxies: FleetProxies,
    /// Kinds and numbers of proxies: `sidecar`, `gateway`, `waypoint`, `ztunnel`.
    pub kinds: BTreeMap<String, usize>,
    /// Objects of the mesh that the fleet wrote, by kind, and the time it took; absent where it wrote none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mesh: Option<FleetMesh>,
    /// From the start of connecting to an open stream, per connection.
    pub connect_us: HistogramSummary,
    /// From the start of connecting to the first complete configuration, per connection.
    pub first_configuration_us: HistogramSummary,
    /// From the acknowledgement of a change's last write to the arrival of its mark: all changes and proxies. Proxies never
    /// reached rank above all values.
    pub convergence_us: HistogramSummary,
    /// Changes, in the order of their writes.
    pub changes: Vec<FleetChange>,
    /// Bytes received: bodies of gRPC messages.
    pub bytes_received: u64,
    /// Responses (pushes) received, by short type: `cds`, `eds`, `lds`, `rds`, `nds`, `sds`, `ecds`, `addresses`,
    /// `authorizations`.
    pub pushes: BTreeMap<String, FleetPushes>,
    /// Responses that the fleet rejected (NACK).
    pub rejections: u64,
    /// Responses that the fleet acknowledged.
    pub acknowledgements: u64,
    /// Violations of the protocol and broken streams, by kind.
    pub violations: BTreeMap<String, u64>,
    /// Proxies that were cut off and what became of them; empty where none was.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cut_off: Vec<FleetOutage>,
    /// Changes as real Envoys beside the fleet saw them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub witnesses: Vec<FleetWitness>,
    /// What happened when, for a timeline; seconds from the start.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<FleetEvent>,
    /// Parts of the time under changes, in their order: one per run of changes of the same kind. Under churn one is the whole.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<FleetPhase>,
    /// Once per second: connected proxies, pushes and bytes.
    pub series: Vec<FleetSecond>,
    /// The same figures per istiod, where each of several had a whole fleet, in the order of [`Self::istiod`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by_istiod: Vec<FleetOfIstiod>,
    /// The control plane's own figures: an entry per istiod, in the order of [`Self::istiod`], then the API server and etcd.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub control_plane: Vec<ControlPlaneFigures>,
    /// The fleet itself, so that it cannot be blamed unseen.
    pub fleet: FleetUsage,
    /// What became of the figures that were sent to other systems meanwhile.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exports: Vec<ExportRecord>,
    /// Whether the figures may be used, and why not.
    pub verdict: FleetVerdict,
}

/// The fleet of one of several istiods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetOfIstiod {
    /// Address of the istiod, `host:port`.
    pub istiod: String,
    /// As [`FleetResult::proxies`].
    pub proxies: FleetProxies,
    /// As [`FleetResult::first_configuration_us`].
    pub first_configuration_us: HistogramSummary,
    /// As [`FleetResult::convergence_us`].
    pub convergence_us: HistogramSummary,
    /// As [`FleetResult::bytes_received`].
    pub bytes_received: u64,
    /// As [`FleetResult::pushes`].
    pub pushes: BTreeMap<String, FleetPushes>,
    /// As [`FleetResult::rejections`].
    pub rejections: u64,
}

/// Proxies of a fleet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetProxies {
    /// That the fleet was to have.
    pub wanted: u64,
    /// Connected at the end.
    pub connected: u64,
    /// With a complete configuration and every change that was expected of them.
    pub converged: u64,
    /// That missed a configuration or a change for good.
    pub never: u64,
    /// Names of the first twenty of those.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub never_names: Vec<String>,
}

/// Objects that a fleet wrote before it connected.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetMesh {
    /// Value of the label `meshmeter.io/fleet` of every object that the fleet wrote.
    pub run_id: String,
    /// Name of the topology that it has the services of; absent where these are numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology: Option<String>,
    /// Objects by kind, such as `Service`.
    pub objects: BTreeMap<String, usize>,
    /// From the first write to the API's answer for the last, seconds.
    pub written_s: f64,
    /// Time to remove all of them, seconds; absent where they were kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed_s: Option<f64>,
}

/// A change of the mesh and how it reached the proxies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetChange {
    /// Such as `endpoint-added`, `virtual-service`, `service-entry`, `connect-storm`.
    pub kind: String,
    /// When its last write was acknowledged, seconds from the start.
    pub at: f64,
    /// Changes that this entry stands for: more than one where churn made them; 0 reads as 1.
    #[serde(skip_serializing_if = "is_at_most_one")]
    pub made: u64,
    /// Objects written.
    pub objects: usize,
    /// From sending the first write to the acknowledgement of the last, seconds.
    pub written_s: f64,
    /// Proxies that must have it.
    pub expected: u64,
    /// Proxies that it reached.
    pub reached: u64,
    /// From the acknowledgement to the arrival, per proxy; proxies not reached rank above all values.
    pub convergence_us: HistogramSummary,
    /// Which istiod the proxies are connected to, where there are several: index in [`FleetResult::istiod`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub istiod: Option<usize>,
    /// Why the change could not be made or followed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// Responses of one type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetPushes {
    /// Responses.
    pub count: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
    /// Resources in them.
    pub resources: u64,
    /// Resources named as removed.
    pub removed: u64,
    /// Responses between the first write of a change and the next change, by kind of the change; `connect` before the first.
    pub by_trigger: BTreeMap<String, u64>,
    /// Bytes of the responses in [`Self::by_trigger`]; empty in results of earlier versions.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub bytes_by_trigger: BTreeMap<String, u64>,
}

/// Proxies that lost their connection, by the same cause at the same time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetOutage {
    /// Such as `link-down`, `istiod-killed`.
    pub cause: String,
    /// When the first was cut off, seconds from the start.
    pub at: f64,
    /// How many.
    pub proxies: u64,
    /// Names of the first twenty.
    pub names: Vec<String>,
    /// From being cut off to complete again, per proxy; those that never were rank above all values.
    pub recovery_us: HistogramSummary,
}

/// A change as a real Envoy saw it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetWitness {
    /// Address of the Envoy's statistics.
    pub name: String,
    /// Kind of the change.
    pub kind: String,
    /// [`FleetChange::at`] of the change.
    pub at: f64,
    /// From the acknowledgement of the change to the Envoy's own `update_time`, which has whole milliseconds; absent if it
    /// shows none since the change.
    pub updated_us: Option<f64>,
    /// By how much that is later than the last proxy of the fleet, or (negative) earlier than the first; 0 between them.
    pub difference_us: Option<f64>,
    /// By how much that is later than the mean arrival at the fleet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub later_us: Option<f64>,
    /// Share of the fleet's proxies that had the change before, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<f64>,
    /// By how much that is later than the nearest arrival at the fleet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest_us: Option<f64>,
}

/// An event of the timeline.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetEvent {
    /// Seconds from the start.
    pub at: f64,
    /// Such as `change`, `istiod-killed`, `istiod-ready`, `all-connected`, `all-converged`.
    pub kind: String,
    /// In words for people; may be empty.
    pub detail: String,
}

/// The value of [`FleetPhase::kind`] where nothing changes.
pub const IDLE_PHASE: &str = "idle";

/// A part of the time under changes. What istiod still pushes for the last change of a part may be in the next one, with its
/// CPU, responses and bytes alike.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetPhase {
    /// Kind of its changes, or [`IDLE_PHASE`].
    pub kind: String,
    /// Start, seconds from the start of the fleet.
    pub at: f64,
    /// Length, seconds.
    pub duration_s: f64,
    /// CPU time of all istiods in it, seconds; absent where one does not say.
    pub istiod_cpu_s: Option<f64>,
    /// Responses received.
    pub pushes: u64,
    /// Bytes received.
    pub bytes: u64,
}

/// One second of a fleet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetSecond {
    /// Start of the second, seconds from the start.
    pub t_s: f64,
    /// Connected proxies at its end.
    pub connected: u64,
    /// Proxies with a complete configuration at its end.
    pub complete: u64,
    /// Responses received.
    pub pushes: u64,
    /// Bytes received.
    pub bytes: u64,
}

/// What an istiod and its neighbours reported of themselves between the start and the end of the measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ControlPlaneFigures {
    /// Such as `istiod`, `kube-apiserver`, `etcd`.
    pub name: String,
    /// Version, where it says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// CPU time used, seconds.
    pub cpu_s: Option<f64>,
    /// Resident memory at the end, bytes.
    pub memory_bytes: Option<u64>,
    /// Greatest resident memory that was read, bytes.
    pub memory_peak_bytes: Option<u64>,
    /// CPU time of [`Self::cpu_s`] until every proxy had its first complete configuration, seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_connecting_s: Option<f64>,
    /// CPU time of [`Self::cpu_s`] while changes were made and followed, seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_changing_s: Option<f64>,
    /// Goroutines at the end.
    pub goroutines: Option<u64>,
    /// Greatest number of goroutines that was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goroutines_peak: Option<u64>,
    /// Greatest number of proxies that waited for a push, where it is told.
    pub push_queue_peak: Option<u64>,
    /// istiod's own chain of histograms while changes were made (the whole window where none was): `debounce` (which contains
    /// the next), `push_context`, `queue` (per proxy), `push` (per proxy and type), `convergence`; seconds.
    pub chain: BTreeMap<String, ReportedHistogram>,
    /// Pushes by the type that istiod counts.
    pub pushes: BTreeMap<String, u64>,
    /// Triggers of pushes as istiod names them.
    pub triggers: BTreeMap<String, u64>,
    /// Rejected configuration that it counted.
    pub rejections: u64,
    /// Restarts that were seen.
    #[serde(skip_serializing_if = "is_zero")]
    pub restarts: u64,
    /// Why figures are absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// A Prometheus histogram in a window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportedHistogram {
    /// Observations.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
    /// Upper bounds of buckets with the cumulative number of observations; the last bound is infinite and left out.
    pub buckets: Vec<(f64, u64)>,
}

impl ReportedHistogram {
    /// Mean; absent without observations.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }

    /// Adds the observations of another histogram with the same buckets.
    pub fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        for (bound, count) in &other.buckets {
            match self.buckets.iter_mut().find(|(known, _)| known == bound) {
                Some((_, known)) => *known += count,
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

/// What the fleet itself used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetUsage {
    /// CPU time, seconds.
    pub cpu_s: f64,
    /// Greatest resident memory, bytes.
    pub memory_peak_bytes: u64,
    /// Resident memory once all proxies had settled, bytes.
    pub memory_settled_bytes: Option<u64>,
    /// From the kernel's receipt of a response's last bytes to their reading: how late the fleet was.
    pub lag_us: HistogramSummary,
    /// Where times of arrival come from: `kernel` (receive timestamps) or `reading`.
    pub clock: String,
    /// Bound of the error of a change's time of arrival, p99, microseconds: conversion of clocks, position of the change in what
    /// was read at once, 1 µs in which times are kept, and [`Self::timestamp_check_p99_us`]. Absent where reading stamps:
    /// [`Self::lag_us`] is the error then. Results of earlier versions have other bounds: the conversion alone, or with the
    /// precision of histograms, one in 1024.
    pub timestamp_error_p99_us: Option<f64>,
    /// How far the kernel's times of receipt lay from writes to a connection of the loopback, p99, microseconds: the greater of a
    /// check at the start and one at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp_check_p99_us: Option<f64>,
    /// Arrivals of changes that further bytes followed in the same read, so that their time may be late.
    #[serde(skip_serializing_if = "is_zero")]
    pub arrivals_followed: u64,
    /// Threads.
    pub threads: usize,
}

/// Whether a fleet's figures may be used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetVerdict {
    /// No reason against it.
    pub valid: bool,
    /// Such as `not-converged: 3 proxies …`, `fleet-late: …`, `interrupted`.
    pub reasons: Vec<String>,
}

//! `host.json`: machine and versions of a run.

use crate::Mode;
use crate::build::Build;
use crate::calibration::Calibration;
use crate::export::ExportRecord;
use crate::factor::Factors;
use crate::load::Pacing;
use crate::pauses::Pauses;
use serde::{Deserialize, Serialize};

/// Machine that a run was measured on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// CPU model, as reported by the kernel.
    pub cpu_model: String,
    /// CPUs online.
    pub cpus: usize,
    /// Threads per core.
    pub threads_per_core: usize,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Kernel release.
    pub kernel: String,
    /// Clock that the kernel reads time from, such as `tsc`; absent on a cluster and in results from earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_source: Option<String>,
    /// Distribution.
    pub distribution: String,
    /// Architecture, such as `x86_64`.
    pub architecture: String,
    /// Hypervisor, if detected.
    pub virtualization: Option<String>,
    /// Cgroup version used by the lab: `v1`, `v2` or `none`.
    pub cgroups: String,
    /// Privileges of the lab: `root` or `user-namespace`.
    pub privileges: String,
    /// How the proxy's own traffic is distinguished from the application's: `uid` or `mark`; empty if nothing
    /// is redirected.
    #[serde(default)]
    pub redirect_by: String,
    /// Meshmeter and every component, with versions.
    pub versions: Vec<ComponentVersion>,
    /// Build of Meshmeter; absent in results from earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<Build>,
    /// Noise floor: readings when there is nothing to measure; absent on a cluster.
    pub noise_floor: Option<Floor>,
    /// Pacing of the generators in all trials, and its reason; absent in results from earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing: Option<RunPacing>,
    /// Latest calibration of this machine; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibration>,
    /// Modes of the experiment that were unavailable here. They are left out, not substituted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused_modes: Vec<UnavailableMode>,
    /// Cluster that it was measured on; absent for a lab.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterPlace>,
    /// Interruptions after which the run was continued (`meshmeter run --resume`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resumed: Vec<Resumption>,
    /// Outcome of the export of figures to other systems during the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exports: Vec<ExportRecord>,
}

/// Cluster of a run, and what the run uses of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterPlace {
    /// UID of its namespace `kube-system`, which identifies it; absent if this user may not read that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Image of Meshmeter.
    pub image: String,
    /// Mesh of the experiment: `istio`, `linkerd` or `cilium`.
    pub mesh: String,
    /// Revision of istiod, or a tag; absent: the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Label of the nodes on which generators run, as `label=value`; absent: any nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator_nodes: Option<String>,
    /// Source of the usage of services and proxies: `kubelets`, the address of a Prometheus, or `none`.
    pub usage_source: String,
}

/// Continuation of a run that had ended before its last trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumption {
    /// Time of the continuation, RFC 3339.
    pub at: String,
    /// Trials recorded until then.
    pub after_trials: usize,
}

/// Unavailable mode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnavailableMode {
    /// Mode.
    pub mode: Mode,
    /// Components with which it is unavailable, by dotted key; empty: with any.
    #[serde(default, skip_serializing_if = "Factors::is_empty")]
    pub factors: Factors,
    /// What is missing.
    pub reason: String,
    /// How to install it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// Component with its version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComponentVersion {
    /// Name, such as `envoy`.
    pub name: String,
    /// Version reported by the component.
    pub version: String,
    /// SHA-256 of its program, in hexadecimal, which identifies the build. Absent if it is not a single
    /// program, such as the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// What selected the program, if it is not the one installed by `meshmeter lab install`: `option` (such
    /// as `--envoy`), `variable` (such as `MESHMETER_ENVOY`) or `search-path`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub named_by: Option<String>,
    /// Path of the program; only with [`ComponentVersion::named_by`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Image that the component was extracted from; absent if it was built, or selected by the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ComponentImage>,
    /// Requested release of Istio, such as `1.30.4`, that could not provide this component; the pinned one
    /// was used instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_place_of: Option<String>,
}

/// Image in a registry, for one architecture.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComponentImage {
    /// Reference as requested, such as `registry.istio.io/release/pilot:1.30.4`.
    pub reference: String,
    /// Digest of the image index (all architectures); absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index_digest: Option<String>,
    /// Digest of the image manifest (this architecture).
    pub manifest_digest: String,
}

/// Pacing of a run's generators.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPacing {
    /// Pacing of every trial.
    pub pacing: Pacing,
    /// True if the experiment sets it; otherwise it was chosen for the machine and the experiment.
    pub fixed: bool,
    /// Reason for the choice.
    pub reason: String,
}

/// Noise floor: readings of this machine when there is nothing to measure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Floor {
    /// Wake-up delay of a high-resolution timer, median, microseconds.
    pub timer_late_p50_us: f64,
    /// Wake-up delay of a high-resolution timer, 99th percentile, microseconds.
    pub timer_late_p99_us: f64,
    /// Round trip of one byte to another thread over loopback TCP, median, microseconds.
    pub loopback_round_trip_p50_us: f64,
    /// Round trip of one byte over loopback TCP, 99th percentile, microseconds.
    pub loopback_round_trip_p99_us: f64,
    /// Variation of the time of a fixed piece of work: interquartile range over median.
    pub noise_fraction: f64,
    /// Time stolen by the hypervisor during this measurement, cores.
    pub steal_cores: f64,
    /// Gaps observed by a spinning thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pauses: Option<Pauses>,
}

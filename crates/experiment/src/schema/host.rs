//! `host.json`: the machine and the versions behind a run.

use super::calibration::Calibration;
use super::export::ExportRecord;
use super::factor::Factors;
use super::load::Pacing;
use super::pauses::Pauses;
use crate::mode::Mode;
use serde::{Deserialize, Serialize};

/// The machine that a run was measured on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// CPU model, as the kernel names it.
    pub cpu_model: String,
    /// CPUs online.
    pub cpus: usize,
    /// Threads a core.
    pub threads_per_core: usize,
    /// Memory, bytes.
    pub memory_bytes: u64,
    /// Kernel release.
    pub kernel: String,
    /// Distribution.
    pub distribution: String,
    /// Architecture, such as `x86_64`.
    pub architecture: String,
    /// Hypervisor, where one shows itself.
    pub virtualization: Option<String>,
    /// `v1`, `v2` or `none`: which cgroups the lab uses here.
    pub cgroups: String,
    /// Whether the lab ran as `root` or in a `user-namespace`.
    pub privileges: String,
    /// How a proxy's own traffic is told from the application's: `uid` or `mark`; empty where nothing is redirected.
    #[serde(default)]
    pub redirect_by: String,
    /// Meshmeter and every component with its version.
    pub versions: Vec<ComponentVersion>,
    /// The same as `noise_floor`, without pauses in results of earlier versions.
    pub floor: Option<Floor>,
    /// The noise floor: readings when there is nothing to measure. Absent in results of earlier versions: see
    /// [`Host::noise_floor`].
    #[serde(default)]
    pub noise_floor: Option<Floor>,
    /// How the generators of all trials waited, and why; absent in results of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing: Option<RunPacing>,
    /// The newest calibration of this machine; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibration>,
    /// Modes of the experiment that could not run here; nothing stood in for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused_modes: Vec<UnavailableMode>,
    /// What became of the figures that were sent to other systems while the run went on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exports: Vec<ExportRecord>,
}

impl Host {
    /// Notes the noise floor under both of its names.
    pub fn set_noise_floor(&mut self, floor: Floor) {
        self.floor = Some(floor.clone());
        self.noise_floor = Some(floor);
    }

    /// The noise floor, under whichever name it was written.
    #[must_use]
    pub fn noise_floor(&self) -> Option<&Floor> {
        self.noise_floor.as_ref().or(self.floor.as_ref())
    }
}

/// A mode that could not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnavailableMode {
    /// The mode.
    pub mode: Mode,
    /// Components with which it could not, by dotted key; empty: with any.
    #[serde(default, skip_serializing_if = "Factors::is_empty")]
    pub factors: Factors,
    /// What is missing.
    pub reason: String,
    /// How to get it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// A component and its version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComponentVersion {
    /// Such as `envoy`.
    pub name: String,
    /// As the component states it.
    pub version: String,
    /// SHA-256 of its program, in hexadecimal: tells two builds of one version apart. Absent where it is not one program, as
    /// for the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// What named the program, where it is not the one that `meshmeter lab install` puts in place: `option` (such as
    /// `--envoy`), `variable` (such as `MESHMETER_ENVOY`) or `search-path`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub named_by: Option<String>,
    /// Where the program was; with [`ComponentVersion::named_by`] alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Image that the component was taken from; absent where it was built, or named by the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ComponentImage>,
    /// Release of Istio that was asked for and could not provide this component, such as `1.30.4`; the component is the pinned
    /// one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_place_of: Option<String>,
}

/// An image in a registry, for one architecture.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComponentImage {
    /// As it was asked for, such as `registry.istio.io/release/pilot:1.30.4`.
    pub reference: String,
    /// Digest of the index, the image for all architectures; absent where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index_digest: Option<String>,
    /// Digest of the manifest, the image for this architecture.
    pub manifest_digest: String,
}

/// How the generators of a run wait until a request is due.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPacing {
    /// The pacing of every trial.
    pub pacing: Pacing,
    /// Whether the experiment fixes it; else it follows from the machine and the experiment.
    pub fixed: bool,
    /// Why it was chosen.
    pub reason: String,
}

/// The measurement floor: what this machine shows when there is nothing to measure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Floor {
    /// How late a high-resolution timer wakes a thread, median, microseconds.
    pub timer_late_p50_us: f64,
    /// 99th percentile of the same.
    pub timer_late_p99_us: f64,
    /// A byte to a thread on loopback TCP and back, median, microseconds.
    pub loopback_round_trip_p50_us: f64,
    /// 99th percentile of the same.
    pub loopback_round_trip_p99_us: f64,
    /// Spread of a fixed piece of work timed again and again: interquartile range over median.
    pub noise_fraction: f64,
    /// Time stolen by the hypervisor while this was measured, cores.
    pub steal_cores: f64,
    /// Gaps that a spinning thread sees; absent in results of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pauses: Option<Pauses>,
}

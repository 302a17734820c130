//! Counters of every component and of the machine at one moment, and the usage between two of them.
//!
//! Plain values, so that a lab, a cluster and an environment in memory can all make them. Counters are totals since the
//! component started; [`Snapshot::usage_since`] is the only place that takes differences.

use crate::schema::{ComponentUsage, MachineUsage, NetworkUsage, Role, Throttling};
use std::time::Duration;

/// Everything at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Every component, the drivers first, then along the path.
    pub components: Vec<ComponentSnapshot>,
}

/// Counters of one component at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct ComponentSnapshot {
    /// Name within the run, such as `client-proxy`.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// Its pod; absent for the kernel and the observer.
    pub pod: Option<String>,
    /// When its CPU was read, since any fixed moment.
    pub at: Duration,
    /// CPU in user mode, seconds.
    pub cpu_user_s: f64,
    /// CPU in the kernel, seconds.
    pub cpu_system_s: f64,
    /// `cgroup-v1`, `cgroup-v2` or `proc`.
    pub cpu_source: String,
    /// Resident memory of all its processes, bytes; absent where none has any left.
    pub memory_resident_bytes: Option<u64>,
    /// Traffic of the pod's interface.
    pub network: Option<NetworkUsage>,
    /// Throttling by its CPU limit.
    pub throttling: Option<Throttling>,
}

/// What was used between two snapshots.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WindowUsage {
    /// Every component, then the kernel's share and the observer.
    pub components: Vec<ComponentUsage>,
    /// The machine as a whole; absent where the environment does not see it.
    pub machine: Option<MachineUsage>,
}

impl Snapshot {
    /// What was used since an earlier snapshot of the same deployment. Components that only one of them has are left out.
    #[must_use]
    pub fn usage_since(&self, open: &Self) -> WindowUsage {
        let usage = |close: &ComponentSnapshot| {
            let open = open.components.iter().find(|other| other.name == close.name)?;
            Some(close.usage_since(open))
        };
        WindowUsage { components: self.components.iter().filter_map(usage).collect(), machine: None }
    }
}

impl ComponentSnapshot {
    /// A component that has used nothing yet.
    #[must_use]
    pub fn new(name: impl Into<String>, role: Role, at: Duration) -> Self {
        Self {
            name: name.into(),
            role,
            pod: None,
            at,
            cpu_user_s: 0.0,
            cpu_system_s: 0.0,
            cpu_source: "proc".to_owned(),
            memory_resident_bytes: None,
            network: None,
            throttling: None,
        }
    }

    fn usage_since(&self, open: &Self) -> ComponentUsage {
        let window_s = self.at.saturating_sub(open.at).as_secs_f64();
        ComponentUsage {
            pod: self.pod.clone(),
            cpu_user_s: (self.cpu_user_s - open.cpu_user_s).max(0.0),
            cpu_system_s: (self.cpu_system_s - open.cpu_system_s).max(0.0),
            cpu_source: self.cpu_source.clone(),
            memory_resident_bytes: self.memory_resident_bytes.or(open.memory_resident_bytes).unwrap_or(0),
            ..ComponentUsage::of(&self.name, self.role, window_s)
        }
    }
}

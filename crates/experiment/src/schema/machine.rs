//! The machine as a whole in the measured window.

use serde::{Deserialize, Serialize};

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

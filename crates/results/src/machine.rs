//! CPU of the whole machine in the measured window.

use serde::{Deserialize, Serialize};

/// CPU of the whole machine in the measured window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineUsage {
    /// Time between the two readings, seconds.
    pub window_s: f64,
    /// CPUs that the experiment may use: those online, unless an affinity or a cpuset restricts it to some. The figures below are
    /// of these CPUs.
    pub cpus: usize,
    /// Mean number of busy CPUs, cores.
    pub busy_cores: f64,
    /// Time stolen by the hypervisor, cores.
    pub steal_cores: f64,
    /// Interrupts and soft interrupts that the kernel counted separately, cores. Part of it may also be
    /// charged to the interrupted process (kernels without `IRQ_TIME_ACCOUNTING`).
    pub interrupt_cores: f64,
    /// Busy time not charged to any process of the experiment or other user process, cores.
    pub kernel_cores: f64,
    /// CPU of processes outside the experiment, cores.
    pub other_processes_cores: f64,
    /// Processes with the highest CPU among those.
    pub top_other_processes: Vec<TopProcess>,
}

/// Process outside the experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopProcess {
    /// Command name.
    pub name: String,
    /// Mean CPU over the window, cores.
    pub cpu_cores: f64,
}

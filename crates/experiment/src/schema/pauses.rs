//! Pauses of the machine: gaps that a spinning thread sees between two readings of the clock.

use serde::{Deserialize, Serialize};

/// Pauses of this machine. They are the hypervisor's or the kernel's: a gap in which the scheduler ran something else is
/// counted apart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pauses {
    /// Shorter gaps are not counted, microseconds.
    pub threshold_us: f64,
    /// On an idle machine, per CPU: one thread at a time.
    pub idle: Vec<CpuPauses>,
    /// Beside a load of requests over loopback, per CPU: one thread at a time.
    pub loaded: Vec<CpuPauses>,
}

/// Pauses of one CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuPauses {
    /// Number of the CPU.
    pub cpu: usize,
    /// Time for which a thread was spinning there, seconds.
    pub observed_s: f64,
    /// Pauses per second.
    pub per_s: f64,
    /// Pauses of at least a millisecond, per second.
    pub long_per_s: f64,
    /// The share of the time that pauses took, 0 to 1.
    pub fraction: f64,
    /// Median length, microseconds; 0 without a pause, as the following.
    pub p50_us: f64,
    /// 99th percentile of the lengths, microseconds.
    pub p99_us: f64,
    /// Longest, microseconds.
    pub longest_us: f64,
    /// Gaps per second in which the scheduler ran something else; not among the others.
    pub switched_per_s: f64,
}

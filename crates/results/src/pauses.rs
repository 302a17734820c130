//! Pauses of the machine: gaps between two clock readings of a spinning thread.

use serde::{Deserialize, Serialize};

/// Pauses of this machine, caused by the hypervisor or the kernel. Gaps in which the scheduler ran something
/// else are counted separately.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pauses {
    /// Minimum length of counted gaps, microseconds.
    pub threshold_us: f64,
    /// Per CPU on an idle machine, one thread at a time.
    pub idle: Vec<CpuPauses>,
    /// Per CPU during a load of requests over loopback, one thread at a time.
    pub loaded: Vec<CpuPauses>,
}

impl Pauses {
    /// Mean over the CPUs, idle and loaded, weighted by observation time; longest and p99 are the maximum.
    /// Absent if nothing was observed.
    #[must_use]
    pub fn overall(&self) -> Option<CpuPauses> {
        let all = || self.idle.iter().chain(&self.loaded);
        let observed_s: f64 = all().map(|cpu| cpu.observed_s).sum();
        let mean = |figure: fn(&CpuPauses) -> f64| {
            all().map(|cpu| figure(cpu) * cpu.observed_s).sum::<f64>() / observed_s
        };
        let most = |figure: fn(&CpuPauses) -> f64| all().map(figure).fold(0.0, f64::max);
        (observed_s > 0.0).then(|| CpuPauses {
            cpu: 0,
            observed_s,
            per_s: mean(|cpu| cpu.per_s),
            notable_per_s: mean(|cpu| cpu.notable_per_s),
            long_per_s: mean(|cpu| cpu.long_per_s),
            fraction: mean(|cpu| cpu.fraction),
            p50_us: mean(|cpu| cpu.p50_us),
            p99_us: most(|cpu| cpu.p99_us),
            longest_us: most(|cpu| cpu.longest_us),
            by_length: self.by_length(),
            switched_per_s: mean(|cpu| cpu.switched_per_s),
        })
    }

    /// Means over the CPUs; empty unless all have the same thresholds.
    fn by_length(&self) -> Vec<LongPauses> {
        let all: Vec<&CpuPauses> = self.idle.iter().chain(&self.loaded).collect();
        let observed_s: f64 = all.iter().map(|cpu| cpu.observed_s).sum();
        let Some(first) = all.first() else { return Vec::new() };
        let mean = |(index, bound): (usize, &LongPauses)| {
            let mut mean = LongPauses { at_least_us: bound.at_least_us, ..LongPauses::default() };
            for cpu in &all {
                let of_cpu =
                    cpu.by_length.get(index).filter(|other| other.at_least_us == bound.at_least_us)?;
                mean.per_s += of_cpu.per_s * cpu.observed_s / observed_s;
                mean.fraction += of_cpu.fraction * cpu.observed_s / observed_s;
            }
            Some(mean)
        };
        first.by_length.iter().enumerate().map(mean).collect::<Option<_>>().unwrap_or_default()
    }
}

/// Pauses of at least some length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LongPauses {
    /// Minimum length, microseconds.
    pub at_least_us: f64,
    /// Pauses per second.
    pub per_s: f64,
    /// Share of time spent in them, 0 to 1.
    pub fraction: f64,
}

/// Pauses on one CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuPauses {
    /// Number of the CPU.
    pub cpu: usize,
    /// Time that a thread was spinning there, seconds.
    pub observed_s: f64,
    /// Pauses per second.
    pub per_s: f64,
    /// Pauses of at least 100 µs, per second. Shorter ones are mostly the kernel's timer tick.
    pub notable_per_s: f64,
    /// Pauses of at least a millisecond, per second.
    pub long_per_s: f64,
    /// Share of time spent in pauses, 0 to 1.
    pub fraction: f64,
    /// Median length, microseconds; 0 without pauses, like the following.
    pub p50_us: f64,
    /// 99th percentile of the lengths, microseconds.
    pub p99_us: f64,
    /// Longest, microseconds.
    pub longest_us: f64,
    /// Pauses by minimum length, ascending.
    pub by_length: Vec<LongPauses>,
    /// Gaps per second in which the scheduler ran something else; not included in the other figures.
    pub switched_per_s: f64,
}

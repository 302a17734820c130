//! What watching itself costs: this process, listed as a component so that it can be judged.

use super::component::{CpuTimes, scheduling, split};
use super::process;
use experiment::schema::{ComponentUsage, Role};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Instant;

/// What this process had used at one moment.
#[derive(Clone, Debug)]
pub struct ObserverReading {
    at: Instant,
    cpu: CpuTimes,
    switches: BTreeMap<i32, process::Switches>,
    memory: process::ProcessMemory,
}

/// Reads this process.
///
/// # Errors
/// Where `/proc` cannot be read.
pub fn read(ticks_per_second: u64) -> io::Result<ObserverReading> {
    let (proc, pid) = (Path::new("/proc"), std::process::id().cast_signed());
    let times = process::times(proc, pid)?;
    let ns = |ticks: u64| ticks.saturating_mul(1_000_000_000 / ticks_per_second.max(1));
    // The clock is exact where the times of /proc are ticks: watching takes less than a tick.
    let exact = clock_gettime(ClockId::ProcessCPUTime);
    let total_ns = exact.tv_sec.cast_unsigned() * 1_000_000_000 + exact.tv_nsec.cast_unsigned();
    let (user_ns, system_ns) = (ns(times.user_ticks), ns(times.system_ticks));
    Ok(ObserverReading {
        at: Instant::now(),
        cpu: CpuTimes { total_ns, user_ns, system_ns },
        switches: process::switches(proc, pid)?,
        memory: process::memory(proc, pid)?,
    })
}

/// What it used between two readings.
#[must_use]
pub fn usage(open: &ObserverReading, close: &ObserverReading) -> ComponentUsage {
    let (cpu_user_s, cpu_system_s) = split(open.cpu, close.cpu);
    ComponentUsage {
        cpu_user_s,
        cpu_system_s,
        memory_resident_bytes: close.memory.resident_bytes,
        memory_anonymous_bytes: Some(close.memory.anonymous_bytes),
        scheduling: scheduling(&open.switches, &close.switches),
        ..ComponentUsage::of("meshmeter", Role::Observer, close.at.duration_since(open.at).as_secs_f64())
    }
}

//! Readings of this process. It is listed as a component so that the cost of observing is visible.

use super::process::{self, now};
use experiment::environment::{ComponentMemory, ComponentSnapshot, CpuTimes};
use results::Role;
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

pub(super) fn read() -> io::Result<ComponentSnapshot> {
    let (proc, pid) = (Path::new("/proc"), std::process::id().cast_signed());
    let process = process::read(proc, pid).ok_or(io::ErrorKind::NotFound)?;
    // This clock is exact, while times in /proc are ticks: observing takes less than a tick.
    let total = Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default();
    Ok(ComponentSnapshot {
        cpu: CpuTimes { total, user: process.cpu_user, system: process.cpu_system },
        memory: ComponentMemory {
            resident_bytes: Some(process.memory_resident_bytes),
            working_set_bytes: None,
            anonymous_bytes: Some(process.memory_anonymous_bytes),
        },
        processes: BTreeMap::from([(pid, process)]),
        ..ComponentSnapshot::new("meshmeter", Role::Observer, now())
    })
}

//! CPU and memory usage of the fleet itself.

use procfs_core::FromRead as _;
use procfs_core::process::Status;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// CPU time of the calling thread.
pub(crate) fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}

/// Current resident memory of this process in bytes; 0 if the kernel does not report it.
pub(crate) fn memory_bytes() -> u64 {
    status().and_then(|status| status.vmrss).unwrap_or(0) * 1024
}

/// Peak resident memory of this process in bytes; 0 if the kernel does not report it.
pub(crate) fn memory_peak_bytes() -> u64 {
    status().and_then(|status| status.vmhwm).unwrap_or(0) * 1024
}

fn status() -> Option<Status> {
    Status::from_file("/proc/self/status").ok()
}

/// Raises the limit of open files to the number needed; returns the hard limit if that is lower.
pub(crate) fn allow_open_files(needed: u64) -> Result<(), u64> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    if let Some(maximum) = limit.maximum.filter(|maximum| *maximum < needed) {
        // The superuser may raise it.
        let raised = Rlimit { current: Some(needed), maximum: Some(needed) };
        return setrlimit(Resource::Nofile, raised).map_err(|_| maximum);
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(needed), ..limit }).map_err(|_| needed)
}

//! A cgroup: joining, limiting and reading it.

use super::{Version, reading};
use crate::Result;
use experiment::environment::{ComponentMemory, CpuTimes, EnvironmentError};
use results::Throttling;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Enforcement period that the kubelet sets for CPU limits.
const PERIOD_US: u64 = 100_000;

/// Minimum limit: the kernel accepts no quota below 1 ms per period.
const MIN_CORES: f64 = 0.01;
const MAX_CORES: f64 = 100_000.0;

/// A group's directory in one hierarchy.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub(super) struct CgroupDir {
    pub(super) directory: PathBuf,
    /// In version 2: those that the lab needs, all in the same directory.
    pub(super) controllers: Vec<String>,
}

/// A cgroup, in each hierarchy that it needs: of a container, or of the lab (`tree.rs`).
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Cgroup {
    pub version: Version,
    pub(super) branches: Vec<CgroupDir>,
}

impl Cgroup {
    /// The cgroup's directory for a controller; the same for all controllers in version 2.
    pub fn directory(&self, controller: &str) -> Option<&Path> {
        let branch = self.branches.iter().find(|branch| {
            self.version == Version::V2 || branch.controllers.iter().any(|name| name == controller)
        })?;
        Some(&branch.directory)
    }

    /// A process joins by writing `0` to each of these files.
    pub(crate) fn membership_files(&self) -> io::Result<Vec<File>> {
        let open =
            |branch: &CgroupDir| OpenOptions::new().write(true).open(branch.directory.join("cgroup.procs"));
        self.branches.iter().map(open).collect()
    }

    /// PIDs in our PID namespace.
    pub fn processes(&self) -> io::Result<Vec<i32>> {
        let mut pids = Vec::new();
        for branch in &self.branches {
            let text = fs::read_to_string(branch.directory.join("cgroup.procs"))?;
            pids.extend(text.lines().filter_map(|line| line.parse::<i32>().ok()).filter(|&pid| pid > 0));
        }
        pids.sort_unstable();
        pids.dedup();
        Ok(pids)
    }

    /// Limits CPU as a pod's `limits.cpu` does: a quota per period of 100 ms.
    pub fn limit_cpu(&self, cores: f64) -> Result<()> {
        let operation = format!("limit CPU to {cores} cores");
        let quota_us = quota_us(cores).ok_or_else(|| {
            EnvironmentError::new(operation.clone(), "a limit is a number of cores from 0.01 up to 100000")
        })?;
        let result = self.required("cpu").and_then(|directory| match self.version {
            Version::V1 => {
                fs::write(directory.join("cpu.cfs_period_us"), PERIOD_US.to_string())?;
                fs::write(directory.join("cpu.cfs_quota_us"), quota_us.to_string())
            }
            Version::V2 => fs::write(directory.join("cpu.max"), format!("{quota_us} {PERIOD_US}")),
        });
        result.map_err(|error| {
            let refused_as_too_high = error.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error());
            let error = EnvironmentError::new(operation, error);
            if refused_as_too_high {
                error.with_hint(
                    "a limit cannot be higher than that of the control group which meshmeter itself runs in",
                )
            } else {
                error
            }
        })
    }

    /// Limits memory as a pod's `limits.memory` does.
    pub fn limit_memory(&self, bytes: u64) -> Result<()> {
        let file = match self.version {
            Version::V1 => "memory.limit_in_bytes",
            Version::V2 => "memory.max",
        };
        let written =
            self.required("memory").and_then(|directory| fs::write(directory.join(file), bytes.to_string()));
        written.map_err(|error| EnvironmentError::new(format!("limit memory to {bytes} bytes"), error))
    }

    /// CPU time since the cgroup was created. The total is exact in both versions: the scheduler accounts for
    /// it.
    pub fn cpu_usage(&self) -> io::Result<CpuTimes> {
        let usage = match self.version {
            Version::V1 => {
                // The split is read first, so that it can never exceed the total.
                let stat = self.read("cpuacct", "cpuacct.stat")?;
                let usage = self.read("cpuacct", "cpuacct.usage")?;
                reading::cpu_v1(&usage, &stat, rustix::param::clock_ticks_per_second())
            }
            Version::V2 => reading::cpu_v2(&self.read("cpu", "cpu.stat")?),
        };
        usage.ok_or_else(|| malformed("CPU usage"))
    }

    /// Memory charged to the cgroup; its counters do not include resident memory.
    pub fn memory(&self) -> io::Result<ComponentMemory> {
        let usage = match self.version {
            Version::V1 => "memory.usage_in_bytes",
            Version::V2 => "memory.current",
        };
        let stat = self.read("memory", "memory.stat")?;
        let memory = reading::memory(self.version, &self.read("memory", usage)?, &stat);
        memory.ok_or_else(|| malformed("memory"))
    }

    /// Number of processes of the cgroup that the kernel has killed because it was out of memory.
    pub(crate) fn oom_kills(&self) -> u64 {
        let file = match self.version {
            Version::V1 => "memory.oom_control",
            Version::V2 => "memory.events",
        };
        self.read("memory", file).ok().and_then(|text| reading::oom_kills(&text)).unwrap_or(0)
    }

    pub fn throttling(&self) -> io::Result<Throttling> {
        let throttling = reading::throttling(self.version, &self.read("cpu", "cpu.stat")?);
        throttling.ok_or_else(|| malformed("throttling"))
    }

    fn read(&self, controller: &str, file: &str) -> io::Result<String> {
        fs::read_to_string(self.required(controller)?.join(file))
    }

    fn required(&self, controller: &str) -> io::Result<&Path> {
        self.directory(controller)
            .ok_or_else(|| io::Error::other(format!("the cgroup has no {controller} controller")))
    }
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(
        ErrorKind::InvalidData,
        format!("the kernel's account of {what} is not of the shape known"),
    )
}

/// Quota per period in microseconds; `None` for an impossible limit.
fn quota_us(cores: f64) -> Option<u64> {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // The range is checked.
    (MIN_CORES..=MAX_CORES).contains(&cores).then(|| (cores * PERIOD_US as f64).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_limit_is_quota_per_100_ms() {
        assert_eq!(quota_us(0.2), Some(20_000));
        assert_eq!(quota_us(2.0), Some(200_000));
        assert_eq!(quota_us(0.01), Some(1000));
    }

    #[test]
    fn impossible_cpu_limit_is_rejected() {
        for cores in [0.0, -1.0, 0.009, f64::NAN, f64::INFINITY] {
            assert_eq!(quota_us(cores), None, "{cores}");
        }
    }
}

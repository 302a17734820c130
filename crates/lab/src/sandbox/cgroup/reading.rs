//! Parsers of a cgroup's counter files, without I/O.
//!
//! Version 1: kernel documentation `admin-guide/cgroup-v1/{cpuacct,memory}` and `scheduler/sched-bwc`.
//! Version 2: `admin-guide/cgroup-v2`, "CPU Interface Files" and "Memory Interface Files".

use super::Version;
use experiment::environment::{ComponentMemory, CpuTimes};
use results::Throttling;
use std::time::Duration;

fn field(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(' ')?;
        (name == key).then(|| value.trim().parse().ok()).flatten()
    })
}

/// Version 1: `cpuacct.usage` (nanoseconds, exact) and `cpuacct.stat` (clock ticks of 10 ms).
pub fn cpu_v1(usage: &str, stat: &str, ticks_per_second: u64) -> Option<CpuTimes> {
    let tick_ns = 1_000_000_000_u64.checked_div(ticks_per_second)?;
    let ticks = |key| Some(Duration::from_nanos(field(stat, key)?.checked_mul(tick_ns)?));
    let total = Duration::from_nanos(usage.trim().parse().ok()?);
    Some(CpuTimes { total, user: ticks("user")?, system: ticks("system")? })
}

/// Version 2: `cpu.stat` (microseconds). Every cgroup has it, even without the CPU controller.
pub fn cpu_v2(stat: &str) -> Option<CpuTimes> {
    let time = |key| field(stat, key).map(Duration::from_micros);
    Some(CpuTimes { total: time("usage_usec")?, user: time("user_usec")?, system: time("system_usec")? })
}

/// `memory.stat`, and `memory.usage_in_bytes` (version 1) or `memory.current` (version 2). Includes the
/// cgroup's descendants. The working set is computed as the kubelet does; anonymous memory is heap and stacks.
pub fn memory(version: Version, usage: &str, stat: &str) -> Option<ComponentMemory> {
    let (inactive, anonymous) = match version {
        Version::V1 => ("total_inactive_file", "total_rss"),
        Version::V2 => ("inactive_file", "anon"),
    };
    let usage_bytes: u64 = usage.trim().parse().ok()?;
    Some(ComponentMemory {
        resident_bytes: None,
        working_set_bytes: Some(usage_bytes.saturating_sub(field(stat, inactive)?)),
        anonymous_bytes: Some(field(stat, anonymous)?),
    })
}

/// Effect of a CPU limit, from `cpu.stat`; absent without the CPU controller.
pub fn throttling(version: Version, stat: &str) -> Option<Throttling> {
    let time = match version {
        Version::V1 => Duration::from_nanos(field(stat, "throttled_time")?),
        Version::V2 => Duration::from_micros(field(stat, "throttled_usec")?),
    };
    Some(Throttling {
        periods: field(stat, "nr_throttled")?,
        of_periods: Some(field(stat, "nr_periods")?),
        time_s: time.as_secs_f64(),
    })
}

/// OOM kills. Version 1: `memory.oom_control`. Version 2: `memory.events`. Absent in kernels that do not
/// count them.
pub fn oom_kills(events: &str) -> Option<u64> {
    field(events, "oom_kill")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oom_kills_are_counted_in_both_versions() {
        assert_eq!(oom_kills("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"), Some(2));
        assert_eq!(oom_kills("low 0\nhigh 0\nmax 31\noom 1\noom_kill 1\noom_group_kill 0\n"), Some(1));
        assert_eq!(oom_kills("oom_kill_disable 0\nunder_oom 0\n"), None);
    }

    const V1_MEMORY_STAT: &str = include_str!("../../../tests/fixtures/v1_memory.stat");
    const V2_CPU_STAT: &str = include_str!("../../../tests/fixtures/v2_cpu.stat");
    const V2_MEMORY_STAT: &str = include_str!("../../../tests/fixtures/v2_memory.stat");

    #[test]
    fn version_1_cpu_is_exact_in_total_and_split_in_ticks() {
        let usage = cpu_v1("1234567890\n", "user 100\nsystem 23\n", 100);
        let [total, user, system] = [1_234_567_890, 1_000_000_000, 230_000_000].map(Duration::from_nanos);
        assert_eq!(usage, Some(CpuTimes { total, user, system }));
    }

    #[test]
    fn version_2_cpu_is_in_microseconds() {
        let usage = cpu_v2(V2_CPU_STAT).expect("the file is whole");
        assert_eq!(usage.total, Duration::from_micros(27_893_127));
        assert_eq!(usage.user + usage.system, usage.total);
    }

    #[test]
    fn working_set_excludes_inactive_page_cache() {
        let memory_v1 = memory(Version::V1, "7340032\n", V1_MEMORY_STAT).expect("the file is whole");
        assert_eq!(memory_v1.working_set_bytes, Some(7_340_032 - 1_675_264));
        assert_eq!(memory_v1.anonymous_bytes, Some(3_829_760));
        let memory_v2 = memory(Version::V2, "104857600\n", V2_MEMORY_STAT).expect("the file is whole");
        assert_eq!(memory_v2.working_set_bytes, Some(104_857_600 - 20_480_000));
        assert_eq!(memory_v2.anonymous_bytes, Some(70_254_592));
    }

    #[test]
    fn working_set_is_never_negative() {
        // Usage and its parts are read one after the other, and the kernel updates them in batches.
        let memory = memory(Version::V2, "4096\n", V2_MEMORY_STAT).expect("the file is whole");
        assert_eq!(memory.working_set_bytes, Some(0));
    }

    #[test]
    fn throttling_is_in_seconds_in_both_versions() {
        let v1 = throttling(Version::V1, "nr_periods 30\nnr_throttled 29\nthrottled_time 2320000000\n");
        let v2 =
            throttling(Version::V2, "usage_usec 1\nnr_periods 30\nnr_throttled 29\nthrottled_usec 2320000\n");
        assert_eq!(v1, v2);
        assert_eq!(v1, Some(Throttling { periods: 29, of_periods: Some(30), time_s: 2.32 }));
    }

    #[test]
    fn cgroup_without_cpu_controller_has_no_throttling() {
        assert_eq!(throttling(Version::V2, "usage_usec 12\nuser_usec 8\nsystem_usec 4\n"), None);
    }

    #[test]
    fn malformed_counter_file_is_rejected() {
        assert_eq!(cpu_v1("x", "user 1\nsystem 1\n", 100), None);
        assert_eq!(cpu_v1("1", "user 1\n", 100), None);
        assert_eq!(cpu_v2("usage_usec -3\n"), None);
        assert_eq!(memory(Version::V1, "", ""), None);
    }
}

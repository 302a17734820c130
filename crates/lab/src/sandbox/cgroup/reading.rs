//! Parsers of a cgroup's counter files, without I/O.
//!
//! Version 1: kernel documentation `admin-guide/cgroup-v1/{cpuacct,memory}` and `scheduler/sched-bwc`.
//! Version 2: `admin-guide/cgroup-v2`, "CPU Interface Files" and "Memory Interface Files".

/// CPU time since the cgroup was created.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct CpuUsage {
    /// Version 1 counts `user_ns` and `system_ns` in clock ticks (10 ms).
    pub user_ns: u64,
    pub system_ns: u64,
    /// Exact in both versions: the scheduler accounts for it.
    pub total_ns: u64,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Memory {
    pub usage_bytes: u64,
    /// Usage minus inactive page cache, as the kubelet computes it.
    pub working_set_bytes: u64,
    /// Heap and stacks.
    pub anonymous_bytes: u64,
}

/// Effect of a CPU limit since the cgroup was created.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Throttling {
    /// Enforcement periods in which the cgroup was runnable.
    pub periods: u64,
    /// Periods in which the cgroup used up its quota and had to wait.
    pub throttled_periods: u64,
    /// Waiting time, summed over CPUs.
    pub time_ns: u64,
}

fn field(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(' ')?;
        (name == key).then(|| value.trim().parse().ok()).flatten()
    })
}

/// Version 1: `cpuacct.usage` (nanoseconds) and `cpuacct.stat` (clock ticks).
pub fn cpu_usage_v1(usage: &str, stat: &str, ticks_per_second: u64) -> Option<CpuUsage> {
    let tick_ns = 1_000_000_000_u64.checked_div(ticks_per_second)?;
    Some(CpuUsage {
        user_ns: field(stat, "user")?.checked_mul(tick_ns)?,
        system_ns: field(stat, "system")?.checked_mul(tick_ns)?,
        total_ns: usage.trim().parse().ok()?,
    })
}

/// Version 2: `cpu.stat` (microseconds). Every cgroup has it, even without the CPU controller.
pub fn cpu_usage_v2(stat: &str) -> Option<CpuUsage> {
    let ns = |key| field(stat, key)?.checked_mul(1000);
    Some(CpuUsage { user_ns: ns("user_usec")?, system_ns: ns("system_usec")?, total_ns: ns("usage_usec")? })
}

/// Version 1: `memory.usage_in_bytes` and `memory.stat`, including the cgroup's descendants.
pub fn memory_v1(usage: &str, stat: &str) -> Option<Memory> {
    memory(usage, field(stat, "total_inactive_file")?, field(stat, "total_rss")?)
}

/// Version 2: `memory.current` and `memory.stat`.
pub fn memory_v2(current: &str, stat: &str) -> Option<Memory> {
    memory(current, field(stat, "inactive_file")?, field(stat, "anon")?)
}

fn memory(usage: &str, inactive_bytes: u64, anonymous_bytes: u64) -> Option<Memory> {
    let usage_bytes: u64 = usage.trim().parse().ok()?;
    Some(Memory {
        usage_bytes,
        working_set_bytes: usage_bytes.saturating_sub(inactive_bytes),
        anonymous_bytes,
    })
}

/// Version 1: `cpu.stat` (nanoseconds).
pub fn throttling_v1(stat: &str) -> Option<Throttling> {
    throttling(stat, field(stat, "throttled_time")?)
}

/// Version 2: `cpu.stat` (microseconds); absent without the CPU controller.
pub fn throttling_v2(stat: &str) -> Option<Throttling> {
    throttling(stat, field(stat, "throttled_usec")?.checked_mul(1000)?)
}

fn throttling(stat: &str, time_ns: u64) -> Option<Throttling> {
    let (periods, throttled_periods) = (field(stat, "nr_periods")?, field(stat, "nr_throttled")?);
    Some(Throttling { periods, throttled_periods, time_ns })
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
        let usage = cpu_usage_v1("1234567890\n", "user 100\nsystem 23\n", 100);
        let expected = CpuUsage { user_ns: 1_000_000_000, system_ns: 230_000_000, total_ns: 1_234_567_890 };
        assert_eq!(usage, Some(expected));
    }

    #[test]
    fn version_2_cpu_is_in_microseconds() {
        let usage = cpu_usage_v2(V2_CPU_STAT).expect("the file is whole");
        assert_eq!(usage.total_ns, 27_893_127_000);
        assert_eq!(usage.user_ns + usage.system_ns, usage.total_ns);
    }

    #[test]
    fn working_set_excludes_inactive_page_cache() {
        let memory = memory_v1("7340032\n", V1_MEMORY_STAT).expect("the file is whole");
        assert_eq!(memory.usage_bytes, 7_340_032);
        assert_eq!(memory.working_set_bytes, 7_340_032 - 1_675_264);
        assert_eq!(memory.anonymous_bytes, 3_829_760);
        let memory = memory_v2("104857600\n", V2_MEMORY_STAT).expect("the file is whole");
        assert_eq!(memory.working_set_bytes, 104_857_600 - 20_480_000);
        assert_eq!(memory.anonymous_bytes, 70_254_592);
    }

    #[test]
    fn working_set_is_never_negative() {
        // Usage and its parts are read one after the other, and the kernel updates them in batches.
        let memory = memory_v2("4096\n", V2_MEMORY_STAT).expect("the file is whole");
        assert_eq!(memory.working_set_bytes, 0);
    }

    #[test]
    fn throttling_is_in_nanoseconds_in_both_versions() {
        let v1 = throttling_v1("nr_periods 30\nnr_throttled 29\nthrottled_time 2320000000\n");
        let v2 = throttling_v2("usage_usec 1\nnr_periods 30\nnr_throttled 29\nthrottled_usec 2320000\n");
        assert_eq!(v1, v2);
        assert_eq!(v1.map(|throttling| throttling.time_ns), Some(2_320_000_000));
    }

    #[test]
    fn cgroup_without_cpu_controller_has_no_throttling() {
        assert_eq!(throttling_v2("usage_usec 12\nuser_usec 8\nsystem_usec 4\n"), None);
    }

    #[test]
    fn malformed_counter_file_is_rejected() {
        assert_eq!(cpu_usage_v1("x", "user 1\nsystem 1\n", 100), None);
        assert_eq!(cpu_usage_v1("1", "user 1\n", 100), None);
        assert_eq!(cpu_usage_v2("usage_usec -3\n"), None);
        assert_eq!(memory_v1("", ""), None);
    }
}

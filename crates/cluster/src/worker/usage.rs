//! A container's own counters, from the files of its cgroup. They are exact at the moment of reading, unlike
//! a kubelet's.

use super::protocol::Usage;
use std::fs;
use std::path::Path;

/// Reads the counters; absent if the container does not see its cgroup.
pub(super) fn read(root: &Path) -> Option<Usage> {
    let mut usage = of_version_2(root).or_else(|| of_version_1(root))?;
    let devices = fs::read_to_string("/proc/net/dev").unwrap_or_default();
    if let Some((received, sent)) = traffic(&devices) {
        (usage.received_bytes, usage.sent_bytes) = (Some(received), Some(sent));
    }
    Some(usage)
}

/// Number of processes of the container that the kernel has killed at its memory limit. It kills the largest,
/// which is the generator rather than the worker, and a kubelet only watches the worker.
pub(super) fn oom_kills(root: &Path) -> u64 {
    let files = [root.join("memory.events"), root.join("memory/memory.oom_control")];
    let counts = files.iter().filter_map(|file| field(&fs::read_to_string(file).ok()?, "oom_kill"));
    counts.max().unwrap_or(0)
}

fn of_version_2(root: &Path) -> Option<Usage> {
    let stat = fs::read_to_string(root.join("cpu.stat")).ok()?;
    let value = |name: &str| field(&stat, name);
    let microseconds = |name: &str| value(name).map(|us| us.saturating_mul(1000));
    let memory = fs::read_to_string(root.join("memory.stat")).unwrap_or_default();
    let current = number(&root.join("memory.current"));
    let inactive = field(&memory, "inactive_file").unwrap_or(0);
    Some(Usage {
        source: "cgroup-v2".to_owned(),
        cpu_ns: microseconds("usage_usec")?,
        user_ns: microseconds("user_usec").unwrap_or(0),
        system_ns: microseconds("system_usec").unwrap_or(0),
        memory_bytes: current.map(|bytes| bytes.saturating_sub(inactive)),
        anonymous_bytes: field(&memory, "anon"),
        periods: value("nr_periods"),
        throttled_periods: value("nr_throttled"),
        throttled_ns: microseconds("throttled_usec"),
        ..Usage::default()
    })
}

fn of_version_1(root: &Path) -> Option<Usage> {
    let (cpu, cpuacct) = (root.join("cpu"), root.join("cpuacct"));
    let stat = fs::read_to_string(cpu.join("cpu.stat")).unwrap_or_default();
    let memory_dir = root.join("memory");
    let memory = fs::read_to_string(memory_dir.join("memory.stat")).unwrap_or_default();
    let current = number(&memory_dir.join("memory.usage_in_bytes"));
    let inactive = field(&memory, "total_inactive_file").unwrap_or(0);
    Some(Usage {
        source: "cgroup-v1".to_owned(),
        cpu_ns: number(&cpuacct.join("cpuacct.usage"))?,
        user_ns: number(&cpuacct.join("cpuacct.usage_user")).unwrap_or(0),
        system_ns: number(&cpuacct.join("cpuacct.usage_sys")).unwrap_or(0),
        memory_bytes: current.map(|bytes| bytes.saturating_sub(inactive)),
        anonymous_bytes: field(&memory, "total_rss"),
        periods: field(&stat, "nr_periods"),
        throttled_periods: field(&stat, "nr_throttled"),
        throttled_ns: field(&stat, "throttled_time"),
        ..Usage::default()
    })
}

fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The number after a name in a file of `name number` lines.
pub(crate) fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// Bytes received and sent by all devices except loopback.
pub(crate) fn traffic(devices: &str) -> Option<(u64, u64)> {
    let devices = devices.lines().filter_map(|line| {
        let (name, numbers) = line.split_once(':')?;
        let numbers: Vec<u64> = numbers.split_ascii_whitespace().map_while(|one| one.parse().ok()).collect();
        (name.trim() != "lo").then_some((*numbers.first()?, *numbers.get(8)?))
    });
    devices.reduce(|sum, own| (sum.0.saturating_add(own.0), sum.1.saturating_add(own.1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_supports_both_cgroup_versions() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert_eq!(read(root.path()), None);
        write("cpuacct/cpuacct.usage", "5000\n");
        write("cpu/cpu.stat", "nr_periods 4\nnr_throttled 2\nthrottled_time 70\n");
        write("memory/memory.usage_in_bytes", "100\n");
        write("memory/memory.stat", "total_rss 20\ntotal_inactive_file 30\n");
        let first = read(root.path()).unwrap();
        assert_eq!((first.cpu_ns, first.memory_bytes, first.anonymous_bytes), (5000, Some(70), Some(20)));
        assert_eq!((first.throttled_periods, first.throttled_ns), (Some(2), Some(70)));
        assert_eq!(oom_kills(root.path()), 0);
        write("memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
        assert_eq!(oom_kills(root.path()), 1);
        write("memory.events", "low 0\noom 3\noom_kill 2\noom_group_kill 0\n");
        assert_eq!(oom_kills(root.path()), 2);
        write("cpu.stat", "usage_usec 7\nuser_usec 5\nsystem_usec 2\nnr_throttled 1\nthrottled_usec 3\n");
        let second = read(root.path()).unwrap();
        assert_eq!(
            (second.source.as_str(), second.cpu_ns, second.throttled_ns),
            ("cgroup-v2", 7000, Some(3000))
        );
    }

    #[test]
    fn traffic_excludes_loopback() {
        let devices = "Inter-| Receive\n face |bytes\n    lo: 9 9 0 0 0 0 0 0 9 9 0 0 0 0 0 0\n  eth0: 100 1 0 0 0 0 0 0 50 1 0 0 0 0 0 0\n";
        assert_eq!(traffic(devices), Some((100, 50)));
    }
}

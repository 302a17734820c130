//! CPUs that this process may use: its affinity, limited by the quotas of its control groups. See cgroups(7).

use procfs_core::process::MountInfo;
use procfs_core::{FromRead as _, ProcessCGroup, ProcessCGroups};
use rustix::thread::sched_getaffinity;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Number of CPUs, such as 1.5; `None` if the kernel does not report it.
pub(crate) fn usable_cpus() -> Option<f64> {
    let allowed = f64::from(sched_getaffinity(None).ok()?.count());
    Some(quota_cpus().map_or(allowed, |quota| quota.min(allowed)))
}

/// Smallest quota of this process's groups and their ancestors, in CPUs; `None` without one.
fn quota_cpus() -> Option<f64> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let memberships = fs::read_to_string("/proc/self/cgroup").ok()?;
    folders(&mounts, &memberships).iter().filter_map(|folder| quota(folder)).min_by(f64::total_cmp)
}

/// Directories of the groups that may have a quota; for version 1, those of the CPU controller.
fn folders(mountinfo: &str, memberships: &str) -> Vec<PathBuf> {
    let mounts: Vec<MountInfo> =
        mountinfo.lines().filter_map(|line| MountInfo::from_line(line).ok()).collect();
    let groups = ProcessCGroups::from_read(memberships.as_bytes()).map(|groups| groups.0).unwrap_or_default();
    let found = groups.iter().filter_map(|group| Some((mount_of(group, &mounts)?, group)));
    found.flat_map(|(mount, group)| from_group_up(mount, &group.pathname)).collect()
}

fn mount_of<'a>(group: &ProcessCGroup, mounts: &'a [MountInfo]) -> Option<&'a MountInfo> {
    let is_v2 = group.controllers.is_empty();
    let has_quota = is_v2 || group.controllers.iter().any(|controller| controller == "cpu");
    let is_its = |mount: &&MountInfo| match is_v2 {
        true => mount.fs_type == "cgroup2",
        false => mount.fs_type == "cgroup" && mount.super_options.contains_key("cpu"),
    };
    mounts.iter().filter(|_| has_quota).find(is_its)
}

/// A group outside the mounted subtree (`/../…` in a container) is replaced by the mount's root.
fn from_group_up(mount: &MountInfo, group: &str) -> Vec<PathBuf> {
    let below = Path::new(group).strip_prefix(&mount.root).unwrap_or(Path::new(""));
    let is_outside = below.components().any(|part| part == Component::ParentDir);
    let own = mount.mount_point.join(if is_outside { Path::new("") } else { below });
    own.ancestors().take_while(|folder| folder.starts_with(&mount.mount_point)).map(Path::to_owned).collect()
}

/// A group's quota in CPUs. `None` without one: `max` in version 2, -1 in version 1, and no file in topmost
/// groups.
fn quota(folder: &Path) -> Option<f64> {
    let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
    let both = match read("cpu.max") {
        Some(both) => both,
        None => format!("{} {}", read("cpu.cfs_quota_us")?, read("cpu.cfs_period_us")?),
    };
    let mut amounts = both.split_ascii_whitespace().map(str::parse::<f64>);
    let (quota_us, period_us) = (amounts.next()?.ok()?, amounts.next()?.ok()?);
    (quota_us > 0.0 && period_us > 0.0).then(|| quota_us / period_us)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Separate version 1 mounts, and version 2 without controllers.
    const MOUNTS: &str = "\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
32 31 0:29 / /cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
35 31 0:32 / /cgroup/memory rw,relatime - cgroup cgroup rw,memory
41 31 0:38 / /cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";

    #[test]
    fn quota_groups_are_those_of_cpu_controller_up_to_mount() {
        let of = |memberships: &str| -> Vec<String> {
            folders(MOUNTS, memberships).iter().map(|folder| folder.display().to_string()).collect()
        };
        assert_eq!(of("4:memory:/a\n3:cpu:/a/b\n"), ["/cgroup/cpu/a/b", "/cgroup/cpu/a", "/cgroup/cpu"]);
        assert_eq!(of("0::/a\n"), ["/cgroup/unified/a", "/cgroup/unified"]);
        assert_eq!(of("0::/../elsewhere\n"), ["/cgroup/unified/"], "outside of what is mounted");
        assert!(of("4:memory:/a\n").is_empty());
    }

    #[test]
    fn quota_is_a_fraction_of_cpus_in_both_versions() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        assert_eq!(quota(folder.path()), None);
        write("cpu.cfs_quota_us", "-1\n");
        write("cpu.cfs_period_us", "100000\n");
        assert_eq!(quota(folder.path()), None);
        write("cpu.cfs_quota_us", "150000\n");
        assert_eq!(quota(folder.path()), Some(1.5));
        write("cpu.max", "max 100000\n");
        assert_eq!(quota(folder.path()), None);
        write("cpu.max", "50000 100000\n");
        assert_eq!(quota(folder.path()), Some(0.5));
    }

    #[test]
    fn usable_cpus_of_this_process_are_positive() {
        let cpus = usable_cpus().unwrap();
        assert!(cpus > 0.0 && cpus <= 4096.0, "{cpus}");
    }
}

//! Candidate locations for a lab's cgroups, from the mounts and memberships of this process. Pure; see
//! cgroups(7).

use super::group::CgroupDir;
use procfs_core::process::MountInfo;
use procfs_core::{FromRead as _, ProcessCGroup, ProcessCGroups};
use std::path::{Path, PathBuf};

pub const V1_CONTROLLERS: [&str; 3] = ["cpu", "cpuacct", "memory"];

/// Mounts in `/proc/self/mountinfo`.
pub fn parse_mounts(mountinfo: &str) -> Vec<MountInfo> {
    mountinfo.lines().filter_map(|line| MountInfo::from_line(line).ok()).collect()
}

/// Memberships in `/proc/self/cgroup`; empty if it cannot be read. Those of version 2 have no controllers.
pub fn parse_memberships(text: &str) -> Vec<ProcessCGroup> {
    ProcessCGroups::from_read(text.as_bytes()).map(|memberships| memberships.0).unwrap_or_default()
}

pub fn is_v2(mount: &MountInfo) -> bool {
    mount.fs_type == "cgroup2"
}

/// Directory of our own cgroup in each version 1 hierarchy that the lab needs; `None` if a controller is not
/// mounted there.
pub(super) fn v1_homes(mounts: &[MountInfo], memberships: &[ProcessCGroup]) -> Option<Vec<CgroupDir>> {
    let mut homes: Vec<CgroupDir> = Vec::new();
    for wanted in V1_CONTROLLERS {
        let is_of_wanted =
            |mount: &&MountInfo| mount.fs_type == "cgroup" && mount.super_options.contains_key(wanted);
        let mount = mounts.iter().find(is_of_wanted)?;
        let is_in_wanted =
            |membership: &&ProcessCGroup| membership.controllers.iter().any(|name| name == wanted);
        let membership = memberships.iter().find(is_in_wanted)?;
        let directory = folder(mount, &membership.pathname);
        // Controllers that are mounted together share a directory.
        match homes.iter_mut().find(|home| home.directory == directory) {
            Some(home) => home.controllers.push(wanted.to_owned()),
            None => homes.push(CgroupDir { directory, controllers: vec![wanted.to_owned()] }),
        }
    }
    Some(homes)
}

/// Version 2: directories of our own cgroup and its ancestors, nearest first; empty if version 2 is not
/// mounted.
pub fn v2_candidates(mounts: &[MountInfo], memberships: &[ProcessCGroup]) -> Vec<PathBuf> {
    let mount = mounts.iter().find(|mount| is_v2(mount));
    let membership = memberships.iter().find(|membership| membership.controllers.is_empty());
    let (Some(mount), Some(membership)) = (mount, membership) else { return Vec::new() };
    let own = folder(mount, &membership.pathname);
    own.ancestors().take_while(|folder| folder.starts_with(&mount.mount_point)).map(Path::to_owned).collect()
}

/// Directory of a cgroup. For a cgroup outside the mounted part (`/../…` in a container) it is the mount
/// point.
fn folder(mount: &MountInfo, group: &str) -> PathBuf {
    let below = Path::new(group).strip_prefix(&mount.root).unwrap_or(Path::new(""));
    if below.components().any(|part| part == std::path::Component::ParentDir) || below.as_os_str().is_empty()
    {
        return mount.mount_point.clone();
    }
    mount.mount_point.join(below)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Separate version 1 mounts and a version 2 mount without controllers.
    const SEPARATE_MOUNTS: &str = "\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";
    const SEPARATE_MEMBERSHIPS: &str = "\
9:name=systemd:/
4:memory:/sessions/5
2:cpuacct:/
1:cpu:/
0::/
";

    /// A container without a cgroup namespace of its own, on a version 1 host with controllers mounted
    /// together.
    const CONTAINER_MOUNTS: &str = "\
1014 1002 0:33 /docker/3fa4 /sys/fs/cgroup/cpu,cpuacct ro,nosuid,nodev master:14 - cgroup cgroup rw,cpu,cpuacct
1018 1002 0:37 /docker/3fa4 /sys/fs/cgroup/memory ro,nosuid,nodev,noexec,relatime master:18 - cgroup cgroup rw,memory
";
    const CONTAINER_MEMBERSHIPS: &str = "6:cpu,cpuacct:/docker/3fa4/inner\n5:memory:/docker/3fa4\n";

    /// A desktop session under systemd.
    const V2_MOUNTS: &str = "35 24 0:30 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 \
                             rw,nsdelegate,memory_recursiveprot\n";
    const V2_MEMBERSHIPS: &str = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/term.scope\n";

    #[test]
    fn separate_mounts_have_directory_each_in_own_cgroup() {
        let homes = v1_homes(&parse_mounts(SEPARATE_MOUNTS), &parse_memberships(SEPARATE_MEMBERSHIPS));
        let home = |directory: &str, controller: &str| CgroupDir {
            directory: directory.into(),
            controllers: vec![controller.to_owned()],
        };
        assert_eq!(
            homes,
            Some(vec![
                home("/sys/fs/cgroup/cpu", "cpu"),
                home("/sys/fs/cgroup/cpuacct", "cpuacct"),
                home("/sys/fs/cgroup/memory/sessions/5", "memory"),
            ])
        );
    }

    #[test]
    fn controllers_mounted_together_share_directory_below_mounted_part() {
        let homes = v1_homes(&parse_mounts(CONTAINER_MOUNTS), &parse_memberships(CONTAINER_MEMBERSHIPS))
            .expect("all three are mounted");
        assert_eq!(homes.len(), 2);
        assert_eq!(homes[0].directory, Path::new("/sys/fs/cgroup/cpu,cpuacct/inner"));
        assert_eq!(homes[0].controllers, ["cpu", "cpuacct"]);
        assert_eq!(homes[1].directory, Path::new("/sys/fs/cgroup/memory"));
    }

    #[test]
    fn version_2_candidates_are_own_cgroup_and_ancestors() {
        let mounts = parse_mounts(V2_MOUNTS);
        assert_eq!(v1_homes(&mounts, &parse_memberships(V2_MEMBERSHIPS)), None);
        let candidates = v2_candidates(&mounts, &parse_memberships(V2_MEMBERSHIPS));
        assert_eq!(candidates.len(), 6);
        assert!(candidates[0].ends_with("app.slice/term.scope"));
        assert_eq!(candidates[5], Path::new("/sys/fs/cgroup"));
    }

    #[test]
    fn cgroup_outside_mounted_part_is_mount_root() {
        let memberships = parse_memberships("0::/../other\n");
        assert_eq!(v2_candidates(&parse_mounts(V2_MOUNTS), &memberships), [Path::new("/sys/fs/cgroup")]);
    }
}

//! The machine and the versions behind a run, for `host.json`.
//!
//! [`Sources`] are the kernel's and the distribution's files as read; [`describe`] builds a [`Host`] from
//! them without I/O. The owners of other fields fill them in: the lab those that only it knows (cgroups,
//! privileges, redirect), and the noise floor its own.

use crate::sandbox::search_path::search_path;
use components::answer_within;
use results::{ComponentVersion, Host};
use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const VERSION_TIMEOUT: Duration = Duration::from_secs(5);

/// Contents of the machine's files and output of its programs; empty if absent.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    pub cpuinfo: String,
    pub meminfo: String,
    pub os_release: String,
    /// `/sys/class/dmi/id/sys_vendor` and `product_name`, separated by a space.
    pub product: String,
    /// `thread_siblings_list` of the first CPU.
    pub thread_siblings: String,
    pub kernel: String,
    pub clock_source: String,
    pub architecture: String,
    pub iptables: String,
}

impl Sources {
    /// Absent files are not an error; they stay empty.
    pub fn read() -> Self {
        let file = |path: &str| fs::read_to_string(Path::new(path)).unwrap_or_default();
        let dmi = |name: &str| file(&format!("/sys/class/dmi/id/{name}")).trim().to_owned();
        let name = rustix::system::uname();
        Self {
            cpuinfo: file("/proc/cpuinfo"),
            meminfo: file("/proc/meminfo"),
            os_release: file("/etc/os-release"),
            product: format!("{} {}", dmi("sys_vendor"), dmi("product_name")),
            thread_siblings: file("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list"),
            kernel: name.release().to_string_lossy().into_owned(),
            clock_source: file("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            architecture: name.machine().to_string_lossy().into_owned(),
            iptables: iptables_version(),
        }
    }
}

fn iptables_version() -> String {
    answer_within(Command::new("iptables").arg("--version").env("PATH", search_path()), VERSION_TIMEOUT)
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        .unwrap_or_default()
}

pub fn describe(sources: &Sources) -> Host {
    let mut versions =
        vec![version("meshmeter", env!("CARGO_PKG_VERSION")), version("linux", &sources.kernel)];
    // "iptables v1.8.9 (nf_tables)": the backend in parentheses matters as much as the version.
    if let Some((_, rest)) = sources.iptables.split_once(" v") {
        versions.push(version("iptables", rest));
    }
    Host {
        cpu_model: cpu_model(&sources.cpuinfo),
        cpus: value_lines(&sources.cpuinfo, "processor").count().max(1),
        threads_per_core: list_length(&sources.thread_siblings),
        memory_bytes: memory_bytes(&sources.meminfo),
        kernel: sources.kernel.clone(),
        clock_source: Some(sources.clock_source.trim().to_owned()).filter(|source| !source.is_empty()),
        distribution: distribution(&sources.os_release),
        architecture: sources.architecture.clone(),
        virtualization: virtualization(&sources.cpuinfo, &sources.product),
        versions,
        ..Host::default()
    }
}

pub fn version(name: &str, version: &str) -> ComponentVersion {
    ComponentVersion { name: name.to_owned(), version: version.to_owned(), ..ComponentVersion::default() }
}

/// Values of all `key : value` lines of `/proc/cpuinfo`.
fn value_lines<'a>(text: &'a str, key: &'a str) -> impl Iterator<Item = &'a str> {
    text.lines().filter_map(move |line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim())
    })
}

/// The model name on x86. ARM kernels give only numbers, which identify a core design in the vendors' lists.
fn cpu_model(cpuinfo: &str) -> String {
    if let Some(model) = value_lines(cpuinfo, "model name").next() {
        return model.to_owned();
    }
    let first = |key| value_lines(cpuinfo, key).next();
    match (first("CPU implementer"), first("CPU part")) {
        (Some(implementer), Some(part)) => format!("ARM implementer {implementer} part {part}"),
        _ => "unknown".to_owned(),
    }
}

/// The ranges of a list of CPUs such as `0,64` or `0-1`.
pub(super) fn cpu_ranges(list: &str) -> impl Iterator<Item = RangeInclusive<usize>> {
    list.trim().split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse().ok()?..=last.parse().ok()?)
    })
}

/// Number of CPUs in a list; 1 if it is absent.
fn list_length(list: &str) -> usize {
    let length = |range: RangeInclusive<usize>| {
        range.end().checked_sub(*range.start()).map(|more| more.saturating_add(1))
    };
    cpu_ranges(list).filter_map(length).fold(0, usize::saturating_add).max(1)
}

fn memory_bytes(meminfo: &str) -> u64 {
    let total = value_lines(meminfo, "MemTotal").next();
    let kibibytes = total.and_then(|value| value.split_ascii_whitespace().next()?.parse::<u64>().ok());
    kibibytes.unwrap_or(0).saturating_mul(1024)
}

fn distribution(os_release: &str) -> String {
    let value = |key: &str| {
        let value = os_release.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))?;
        Some(value.trim_matches(['"', '\'']).to_owned())
    };
    value("PRETTY_NAME").or_else(|| value("NAME")).unwrap_or_else(|| "unknown".to_owned())
}

const HYPERVISORS: [(&str, &str); 9] = [
    ("kvm", "KVM"),
    ("qemu", "QEMU"),
    ("vmware", "VMware"),
    ("virtualbox", "VirtualBox"),
    ("microsoft corporation virtual machine", "Hyper-V"),
    ("xen", "Xen"),
    ("amazon ec2", "Amazon EC2"),
    ("google compute engine", "Google Compute Engine"),
    ("parallels", "Parallels"),
];

/// The hypervisor's product name, or a generic text if only the CPU's hypervisor flag shows one.
fn virtualization(cpuinfo: &str, product: &str) -> Option<String> {
    let product = product.to_lowercase();
    let named = HYPERVISORS.iter().find(|(mark, _)| product.contains(mark)).map(|(_, name)| *name);
    let flagged = value_lines(cpuinfo, "flags")
        .next()
        .is_some_and(|flags| flags.split_ascii_whitespace().any(|flag| flag == "hypervisor"));
    match (named, flagged) {
        (Some(name), _) => Some(name.to_owned()),
        (None, true) => Some("a hypervisor that does not say its name".to_owned()),
        (None, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const X86: &str = "processor\t: 0\nmodel name\t: AMD EPYC 9R14\nflags\t\t: fpu vme hypervisor\n\n\
                       processor\t: 1\nmodel name\t: AMD EPYC 9R14\nflags\t\t: fpu vme hypervisor\n";
    const ARM: &str = "processor\t: 0\nBogoMIPS\t: 243.75\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n";

    fn sources(cpuinfo: &str, product: &str) -> Sources {
        Sources {
            cpuinfo: cpuinfo.to_owned(),
            meminfo: "MemTotal:       24594472 kB\nMemFree: 1 kB\n".to_owned(),
            os_release: "NAME=\"Debian GNU/Linux\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n"
                .to_owned(),
            product: product.to_owned(),
            thread_siblings: "0,64\n".to_owned(),
            kernel: "6.18.0".to_owned(),
            clock_source: "tsc\n".to_owned(),
            architecture: "x86_64".to_owned(),
            iptables: "iptables v1.8.9 (nf_tables)".to_owned(),
        }
    }

    #[test]
    fn machine_is_described_from_its_files() {
        let host = describe(&sources(X86, "Amazon EC2 m7a.large"));
        assert_eq!(host.cpu_model, "AMD EPYC 9R14");
        assert_eq!((host.cpus, host.threads_per_core), (2, 2));
        assert_eq!(host.memory_bytes, 24_594_472 * 1024);
        assert_eq!(host.distribution, "Debian GNU/Linux 12 (bookworm)");
        assert_eq!(host.virtualization.as_deref(), Some("Amazon EC2"));
        assert_eq!(host.clock_source.as_deref(), Some("tsc"));
        assert!(host.versions.contains(&version("iptables", "1.8.9 (nf_tables)")));
    }

    #[test]
    fn unnamed_hypervisor_and_bare_metal_are_distinguished() {
        let nameless = describe(&sources(X86, " "));
        assert!(nameless.virtualization.unwrap().contains("hypervisor"));
        assert_eq!(describe(&sources(ARM, "Raspberry Pi")).virtualization, None);
    }

    #[test]
    fn arm_cpu_is_named_by_its_numbers() {
        assert_eq!(describe(&sources(ARM, "")).cpu_model, "ARM implementer 0x41 part 0xd0c");
    }

    #[test]
    fn machine_without_readable_files_is_still_host() {
        let host = describe(&Sources::default());
        assert_eq!((host.cpus, host.threads_per_core, host.memory_bytes), (1, 1, 0));
        assert_eq!((host.cpu_model.as_str(), host.distribution.as_str()), ("unknown", "unknown"));
    }

    #[test]
    fn this_machine_can_be_read() {
        let host = describe(&Sources::read());
        assert!(host.memory_bytes > 0 && !host.kernel.is_empty() && !host.architecture.is_empty());
    }
}

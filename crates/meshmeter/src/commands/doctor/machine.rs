//! The machine: cores, memory, kernel, clock, frequency, hypervisor.

use super::check::Check;
use crate::memory::{available_bytes, gibibytes};
use experiment::environment::error_chain;
use results::Host;
use std::fs;
use std::path::Path;
use std::thread::available_parallelism;

/// First kernel with `mount_setattr`, which confines the programs of a lab. Timing needs `epoll_pwait2` of 5.11.
const OLDEST_KERNEL: (u32, u32) = (5, 12);
/// Memory for two Envoys of some 70 MB each, the service, the generator and the page cache.
const COMFORTABLE_MEMORY_BYTES: u64 = 1 << 30;
/// Maximum load average of a quiet machine, as a fraction of its CPUs.
const BUSY_FRACTION: f64 = 0.25;

pub fn checks(host: &Host) -> Vec<Check> {
    let usable = available_parallelism().map_or(1, usize::from);
    vec![
        cores(host, usable),
        memory(host.memory_bytes, available_bytes()),
        quiet(host.cpus, read("/proc/loadavg").as_deref()),
        kernel(&host.kernel),
        clock_source(),
        frequency(),
        virtualization(host.virtualization.as_deref()),
        standard_output(Path::new("/dev/stdout")),
        profiles(),
    ]
}

fn cores(host: &Host, usable: usize) -> Check {
    let used = if usable < host.cpus { format!(", of which {usable} may be used") } else { String::new() };
    let threads = match host.threads_per_core {
        0 | 1 => String::new(),
        threads => format!(", {threads} threads per core"),
    };
    let fact = format!("{} × {}{threads}{used}", host.cpus, host.cpu_model);
    if usable >= 2 {
        Check::ok("cores", fact)
    } else {
        Check::warn(
            "cores",
            fact,
            "generator, proxies and service share one core and wait for each other: use two cores or more",
        )
    }
}

fn memory(total_bytes: u64, available_bytes: Option<u64>) -> Check {
    let Some(available_bytes) = available_bytes else { return Check::unreadable("memory", "/proc/meminfo") };
    let fact = format!("{} of {} free to use", gibibytes(available_bytes), gibibytes(total_bytes));
    if available_bytes >= COMFORTABLE_MEMORY_BYTES {
        Check::ok("memory", fact)
    } else {
        Check::warn("memory", fact, "a run takes about 0.5 GiB: end other programs, or figures show swapping")
    }
}

/// Checks the load average of the last minute, in runnable threads.
fn quiet(cpus: usize, loadavg: Option<&str>) -> Check {
    let average = loadavg.and_then(|text| text.split_ascii_whitespace().next()?.parse::<f64>().ok());
    match average {
        Some(average) if average > BUSY_FRACTION * cpus as f64 => Check::warn(
            "quiet",
            format!("{average:.1} threads ran at once over the last minute"),
            "end other programs while you measure, or give them other cores: they show as noise",
        ),
        Some(average) => Check::ok("quiet", format!("{average:.1} threads ran at once over the last minute")),
        None => Check::unreadable("quiet", "/proc/loadavg"),
    }
}

/// Checks that the name of standard output is a link: Envoy writes its access log to it. A program that replaced it by a file
/// breaks every Envoy on the machine.
fn standard_output(path: &Path) -> Check {
    let name = path.display();
    match fs::read_link(path) {
        Ok(target) if target.starts_with("/proc/self/fd") => {
            Check::ok("standard output", format!("{name} is a link to {}", target.display()))
        }
        _ => Check::warn(
            "standard output",
            format!("{name} is not a link to /proc/self/fd/1"),
            format!("proxies cannot write access logs to it: `ln -sf /proc/self/fd/1 {name}`"),
        ),
    }
}

/// Checks that `--profile` can sample stacks. Runs do without.
fn profiles() -> Check {
    match lab::profile::check() {
        Ok(()) => Check::ok("profiles", "perf samples stacks (`--profile`)"),
        Err(error) => Check::warn(
            "profiles",
            format!("none (`--profile`): {}", error_chain(&error)),
            error.nearest_hint().unwrap_or("see what `perf record -g -- true` says").to_owned(),
        ),
    }
}

fn kernel(release: &str) -> Check {
    match kernel_version(release) {
        Some(version) if version < OLDEST_KERNEL => Check::missing(
            "kernel",
            format!("Linux {release} lacks mount_setattr"),
            "use Linux 5.12 or newer: the confinement of a lab's programs needs it",
        ),
        Some(_) => Check::ok("kernel", format!("Linux {release}")),
        None => Check::warn(
            "kernel",
            format!("release {release:?} names no version"),
            "Linux 5.12 or newer is needed",
        ),
    }
}

/// Major and minor version of a release such as `6.1.0-13-amd64`.
fn kernel_version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn clock_source() -> Check {
    match read("/sys/devices/system/clocksource/clocksource0/current_clocksource") {
        Some(source) if reads_without_system_call(&source) => Check::ok("clock", source),
        Some(source) => Check::warn(
            "clock",
            format!("{source}: every reading is a slow system call"),
            "a clock source of `tsc` gives finer figures: see why the kernel left it (`dmesg | grep -i tsc`)",
        ),
        None => Check::ok("clock", "the kernel does not show its clock source"),
    }
}

/// True for clock sources that the vDSO reads: x86's TSC, the hypervisors' pages, ARM's counter.
fn reads_without_system_call(source: &str) -> bool {
    ["tsc", "kvm-clock", "arch_sys_counter"].contains(&source) || source.starts_with("hyperv_clocksource")
}

fn frequency() -> Check {
    let governor = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    let boost = read("/sys/devices/system/cpu/cpufreq/boost")
        .map(|on| on == "1")
        .or_else(|| read("/sys/devices/system/cpu/intel_pstate/no_turbo").map(|turbo_off| turbo_off == "0"));
    frequency_check(governor.as_deref(), boost)
}

fn frequency_check(governor: Option<&str>, boost: Option<bool>) -> Check {
    let boost_fact = match boost {
        Some(true) => ", boost on",
        Some(false) => ", boost off",
        None => "",
    };
    match governor {
        None => Check::ok("frequency", format!("not visible: host or firmware decides{boost_fact}")),
        Some("performance") => Check::ok("frequency", format!("governor performance{boost_fact}")),
        Some(governor) => Check::warn(
            "frequency",
            format!("governor {governor}{boost_fact}: the clock follows the load, and latency with it"),
            "`cpupower frequency-set --governor performance` while measuring",
        ),
    }
}

fn virtualization(hypervisor: Option<&str>) -> Check {
    match hypervisor {
        Some(name) => {
            Check::ok("virtualization", format!("{name}: other guests may take time, see steal below"))
        }
        None => Check::ok("virtualization", "no hypervisor shows itself"),
    }
}

fn read(path: impl AsRef<Path>) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::check::State;
    use super::*;

    #[test]
    fn name_of_standard_output_that_became_a_file_is_found() {
        let root = tempfile::tempdir().unwrap();
        let (link, file) = (root.path().join("link"), root.path().join("file"));
        std::os::unix::fs::symlink("/proc/self/fd/1", &link).unwrap();
        fs::write(&file, "a table").unwrap();
        assert_eq!(standard_output(&link).state, State::Ok);
        for broken in [file, root.path().join("absent")] {
            let check = standard_output(&broken);
            assert!(check.state == State::Warn && check.remedy.unwrap().contains("ln -sf"), "{}", check.fact);
        }
    }

    #[test]
    fn single_usable_core_is_too_few_on_any_machine() {
        let host = Host { cpu_model: "EPYC".into(), cpus: 8, threads_per_core: 2, ..Host::default() };
        assert_eq!(cores(&host, 8), Check::ok("cores", "8 × EPYC, 2 threads per core"));
        let pinned = cores(&host, 1);
        assert_eq!(pinned.state, State::Warn);
        assert!(pinned.fact.ends_with("of which 1 may be used"), "{pinned:?}");
    }

    #[test]
    fn busy_machine_is_warning() {
        assert_eq!(quiet(2, Some("0.08 0.03 0.01 1/88 4211")).state, State::Ok);
        assert_eq!(quiet(2, Some("1.90 1.03 0.41 3/88 4211")).state, State::Warn);
        assert_eq!(quiet(2, Some("?")).state, State::Warn);
    }

    #[test]
    fn kernel_older_than_5_11_is_missing() {
        assert_eq!(kernel("5.10.0-30-amd64").state, State::Missing);
        assert_eq!(kernel("6.18.0").state, State::Ok);
        assert_eq!(kernel("").state, State::Warn);
    }

    #[test]
    fn kernel_versions_are_read_and_compared_as_numbers() {
        assert_eq!(kernel_version("6.1.0-13-amd64"), Some((6, 1)));
        assert_eq!(kernel_version("5.15-rc1"), Some((5, 15)));
        assert_eq!(kernel_version("unknown"), None);
        assert!(kernel_version("5.11.22").unwrap() < OLDEST_KERNEL);
        assert!(kernel_version("5.12.0").unwrap() >= OLDEST_KERNEL);
        assert!(kernel_version("6.2").unwrap() >= OLDEST_KERNEL);
    }

    #[test]
    fn power_saving_governor_is_warning() {
        assert_eq!(frequency_check(Some("performance"), Some(true)).state, State::Ok);
        assert_eq!(frequency_check(None, None).state, State::Ok);
        let check = frequency_check(Some("powersave"), Some(false));
        assert_eq!(check.state, State::Warn);
        assert!(check.fact.contains("powersave, boost off"), "{check:?}");
        assert!(check.remedy.unwrap().contains("performance"));
    }
}

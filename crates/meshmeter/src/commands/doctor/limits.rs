//! Kernel limits of this process: open files and local ports.

use super::check::Check;
use crate::local_ports;
use rustix::process::{Resource, getrlimit};

/// Each connection takes one file of the generator and one of the server. A run of a preset takes some
/// hundred.
const COMFORTABLE_OPEN_FILES: u64 = 4096;
/// Connections to one address and port that are open, or were closed within the last minute.
const COMFORTABLE_PORTS: u32 = 10_000;

pub fn checks() -> Vec<Check> {
    vec![open_files(getrlimit(Resource::Nofile).maximum), local_ports()]
}

/// Checks the hard limit: the generator raises its soft limit to it.
fn open_files(hard_limit: Option<u64>) -> Check {
    match hard_limit {
        Some(limit) if limit < COMFORTABLE_OPEN_FILES => Check::warn(
            "open files",
            format!("{limit} at most"),
            "raise the hard limit (`ulimit -Hn`, /etc/security/limits.conf) for more connections than that",
        ),
        Some(limit) => Check::ok("open files", format!("{limit} at most")),
        None => Check::ok("open files", "no limit"),
    }
}

fn local_ports() -> Check {
    match local_ports::range() {
        Some((first, last)) => ports_check(first, last),
        None => Check::unreadable("local ports", local_ports::RANGE_FILE),
    }
}

fn ports_check(first: u32, last: u32) -> Check {
    let ports = (last + 1).saturating_sub(first);
    let fact = format!("{first} to {last}: {ports} connections to one address and port");
    if ports >= COMFORTABLE_PORTS {
        Check::ok("local ports", fact)
    } else {
        Check::warn("local ports", fact, "`sysctl net.ipv4.ip_local_port_range='32768 60999'` for more")
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::State;
    use super::*;

    #[test]
    fn low_open_files_limit_is_warning() {
        assert_eq!(open_files(Some(1024)).state, State::Warn);
        assert_eq!(open_files(Some(20_000)).state, State::Ok);
        assert_eq!(open_files(None).state, State::Ok);
    }

    #[test]
    fn port_range_is_counted_inclusively() {
        assert!(ports_check(32_768, 60_999).fact.contains("28232"));
        assert_eq!(ports_check(60_000, 60_999).state, State::Warn);
        assert_eq!(ports_check(5, 4).state, State::Warn);
    }
}

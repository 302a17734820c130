//! CPU that other programs took in the window of a load or a fleet that no environment observes.
//!
//! The rule is that of runs ([`lost_cpu::other_processes`]). Here it gives a note: nothing proves that all of these programs are
//! foreign to what is measured. Servers on this machine that listen at a target's port are not among them, nor are their
//! children. With `--progress json` the reader of the events observes the machine.

use crate::cli::ProgressStyle;
use experiment::environment::{MachineSnapshot, Snapshot};
use lab::observe::{self, HostProc};
use load::{Address, Observer, Progress};
use results::LoadResult;
use statistics::lost_cpu;
use std::collections::BTreeSet;
use std::fs;
use std::net::UdpSocket;
use std::path::Path;

/// The machine at both ends of a window.
#[derive(Debug, Default)]
pub struct OtherPrograms {
    is_watching: bool,
    open: Option<Snapshot>,
    close: Option<Snapshot>,
}

impl OtherPrograms {
    pub fn new(progress: ProgressStyle) -> Self {
        let is_observed = matches!(progress, ProgressStyle::Json) || lab::is_inside();
        Self { is_watching: !is_observed, ..Self::default() }
    }

    pub fn window_opened(&mut self) {
        (self.open, self.close) = (self.read(), None);
    }

    pub fn window_closed(&mut self) {
        self.close = self.read();
    }

    /// `None` if the machine cannot be read: nothing depends on it.
    fn read(&self) -> Option<Snapshot> {
        let host = self.is_watching.then(|| HostProc::new(Path::new("/proc")).ok()).flatten()?;
        observe::read(&[], &host).ok()
    }

    /// Note on programs that took more CPU than is negligible, beside a load on these servers.
    pub fn note(&self, targets: &[Address], result: Option<&LoadResult>) -> Option<String> {
        let (mut open, mut close) = (self.open.clone()?, self.close.clone()?);
        let here: Vec<&Address> = targets.iter().filter(|target| is_here(target)).collect();
        let servers = servers(Path::new("/proc"), &here, close.machine.as_ref()?);
        for machine in [&mut open, &mut close].into_iter().filter_map(|snapshot| snapshot.machine.as_mut()) {
            machine.others.retain(|process, _| !servers.contains(&process.pid));
        }
        let is_unknown = !here.is_empty() && servers.is_empty();
        let reason = beyond_rule(&open, &close, result)?;
        Some(if is_unknown {
            format!("{reason}; the target is on this machine, and may be one of them")
        } else {
            format!("{reason}{CONSEQUENCE}")
        })
    }
}

const CONSEQUENCE: &str = "; figures may include waiting for them";

/// Note on programs that took more CPU than is negligible between two snapshots of a lab.
pub fn note_in_lab(open: &Snapshot, close: &Snapshot) -> Option<String> {
    beyond_rule(open, close, None).map(|reason| format!("{reason}{CONSEQUENCE}"))
}

fn beyond_rule(open: &Snapshot, close: &Snapshot, result: Option<&LoadResult>) -> Option<String> {
    let machine = close.usage_since(open).machine?;
    lost_cpu::other_processes(&machine, result).map(|(reason, _)| reason)
}

impl Observer for OtherPrograms {
    fn progress(&mut self, progress: Progress<'_>) {
        match progress {
            Progress::WindowOpened => self.window_opened(),
            Progress::WindowClosed => self.window_closed(),
            _ => {}
        }
    }
}

/// True if an address is this machine's: a socket can be bound to it, or it is a unix socket.
fn is_here(target: &Address) -> bool {
    target.ip().is_none_or(|address| UdpSocket::bind((address.ip(), 0)).is_ok())
}

/// Processes that listen at the ports and paths of these addresses, as far as the user may see their sockets, and their
/// descendants.
fn servers(proc: &Path, here: &[&Address], machine: &MachineSnapshot) -> BTreeSet<i32> {
    let ports: BTreeSet<u16> = here.iter().filter_map(|address| address.ip()).map(|ip| ip.port()).collect();
    let table = |name: &str| fs::read_to_string(proc.join(name)).unwrap_or_default();
    let mut sockets: BTreeSet<String> =
        ["net/tcp", "net/tcp6"].iter().flat_map(|name| listening(&table(name), &ports)).collect();
    let paths = here.iter().filter_map(|address| match address {
        Address::Unix(path) => path.to_str(),
        Address::Ip(_) => None,
    });
    sockets.extend(paths.flat_map(|path| listening_at_path(&table("net/unix"), path)));
    let listens = |pid: i32| {
        let files = fs::read_dir(proc.join(format!("{pid}/fd"))).into_iter().flatten().flatten();
        let mut links = files.filter_map(|file| fs::read_link(file.path()).ok());
        links.any(|link| link.to_str().is_some_and(|link| sockets.contains(link)))
    };
    let pids = machine.others.keys().map(|process| process.pid);
    let mut servers: BTreeSet<i32> = pids.filter(|pid| !sockets.is_empty() && listens(*pid)).collect();
    loop {
        let is_child = |parent: i32, pid: i32| servers.contains(&parent) && !servers.contains(&pid);
        let children =
            machine.others.iter().filter(|(process, other)| is_child(other.parent_pid, process.pid));
        let more: Vec<i32> = children.map(|(process, _)| process.pid).collect();
        if more.is_empty() {
            return servers;
        }
        servers.extend(more);
    }
}

/// Sockets of a table such as `/proc/net/tcp` that listen at these ports, as links to them read: `socket:[12345]`.
fn listening(table: &str, ports: &BTreeSet<u16>) -> Vec<String> {
    const LISTEN: &str = "0A";
    let socket = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let port = u16::from_str_radix(fields.get(1)?.rsplit_once(':')?.1, 16).ok()?;
        let listens = *fields.get(3)? == LISTEN && ports.contains(&port);
        listens.then(|| format!("socket:[{}]", fields.get(9).copied().unwrap_or_default()))
    };
    table.lines().filter_map(socket).collect()
}

/// Sockets of the table `/proc/net/unix` that listen at this path, as links to them read.
fn listening_at_path(table: &str, path: &str) -> Vec<String> {
    /// `__SO_ACCEPTCON`.
    const LISTENS: &str = "00010000";
    let socket = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        // A path may have spaces.
        let is_listening = *fields.get(3)? == LISTENS && line.ends_with(&format!(" {path}"));
        is_listening.then(|| format!("socket:[{}]", fields.get(6).copied().unwrap_or_default()))
    };
    table.lines().filter_map(socket).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::environment::{OtherProcess, ProcessId};
    use std::collections::BTreeMap;
    use std::net::{SocketAddr, TcpListener};
    use std::os::unix::net::UnixListener;
    use std::time::Duration;

    const TABLE: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
        0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0 100 0 0 10 0\n   \
        1: 0100007F:1F90 0100007F:D2F0 01 00000000:00000000 00:00000000 00000000  1000        0 4712 1 0 20 4 30 10 -1\n   \
        2: 0100007F:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4713 1 0 100 0 0 10 0\n";

    #[test]
    fn listening_sockets_of_target_ports_are_found() {
        assert_eq!(listening(TABLE, &BTreeSet::from([8080])), ["socket:[4711]"]);
        assert!(listening(TABLE, &BTreeSet::new()).is_empty());
        assert!(listening("damaged\n", &BTreeSet::from([8080])).is_empty());
    }

    #[test]
    fn server_of_a_target_and_its_children_are_no_other_programs() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = std::process::id().cast_signed();
        let process = |pid: i32, parent_pid: i32| {
            let other = OtherProcess { parent_pid, ..OtherProcess::default() };
            (ProcessId { pid, started: Duration::ZERO }, other)
        };
        // No PID is negative: only its parent says what the second is.
        let others = BTreeMap::from([process(own, 1), process(-2, own), process(-3, 1)]);
        let machine = MachineSnapshot { others, ..MachineSnapshot::default() };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a socket");
        let _unix_listener = UnixListener::bind(&path).unwrap();
        for address in [listener.local_addr().unwrap().into(), Address::unix_socket(&path).unwrap()] {
            let found = servers(Path::new("/proc"), &[&address], &machine);
            assert_eq!(found, BTreeSet::from([own, -2]), "{address}");
        }
        assert!(servers(Path::new("/proc"), &[], &machine).is_empty());
    }

    /// Snapshots two seconds apart, between which another program took this much CPU on a machine with two CPUs.
    fn programs(cpu: Duration) -> OtherPrograms {
        let snapshot = |at: Duration, cpu: Duration, idle: Duration| {
            let other = OtherProcess { name: "rustc".to_owned(), cpu, ..OtherProcess::default() };
            let others = BTreeMap::from([(ProcessId { pid: -2, started: Duration::ZERO }, other)]);
            let machine = MachineSnapshot { at, cpus: 2, idle, others, ..MachineSnapshot::default() };
            Some(Snapshot { machine: Some(machine), ..Snapshot::default() })
        };
        let window = Duration::from_secs(2);
        let open = snapshot(Duration::ZERO, Duration::ZERO, Duration::ZERO);
        let close = snapshot(window, cpu, 2 * window - cpu);
        OtherPrograms { is_watching: true, open, close }
    }

    #[test]
    fn note_names_programs_that_took_more_than_a_tenth_of_the_cpus() {
        let elsewhere = [Address::from("192.0.2.1:80".parse::<SocketAddr>().unwrap())];
        let note = programs(Duration::from_secs(1)).note(&elsewhere, None).unwrap();
        assert_eq!(
            note,
            "other-processes: others took 0.50 cores (rustc 0.50); figures may include waiting for them"
        );
        assert_eq!(programs(Duration::from_millis(200)).note(&elsewhere, None), None);
        assert_eq!(OtherPrograms::new(ProgressStyle::Json).note(&elsewhere, None), None);
    }

    #[test]
    fn unknown_server_on_this_machine_may_be_one_of_the_programs() {
        // Nothing listens at this port any more.
        let here = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().into();
        let note = programs(Duration::from_secs(1)).note(&[here], None).unwrap();
        assert!(note.ends_with("; the target is on this machine, and may be one of them"), "{note}");
    }
}

//! Processes of a run, found by descent from the started process, never by a name on the machine.

use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Uniquely identified process: its ID and its start time.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Process {
    pub pid: i32,
    started: String,
    arguments: Vec<String>,
    network: PathBuf,
}

impl Process {
    fn read(pid: i32) -> Option<Self> {
        let file = |name: &str| format!("/proc/{pid}/{name}");
        let arguments = fs::read_to_string(file("cmdline")).ok()?;
        Some(Self {
            pid,
            started: stat(pid)?.started,
            arguments: arguments.split('\0').map(str::to_owned).collect(),
            network: fs::read_link(file("ns/net")).ok()?,
        })
    }

    /// Name of its program; for this program, which has several subcommands, the subcommand.
    fn name(&self) -> &str {
        let program = self.arguments.first().map_or("", String::as_str);
        let program = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
        match self.arguments.get(1).map(String::as_str) {
            Some(verb @ ("load" | "serve")) => verb,
            _ => program,
        }
    }

    pub fn is_alive(&self) -> bool {
        stat(self.pid).is_some_and(|stat| stat.started == self.started && !matches!(stat.state, 'Z' | 'X'))
    }

    pub fn signal(&self, signal: Signal) {
        assert!(self.is_alive(), "{} has ended", self.name());
        kill_process(Pid::from_raw(self.pid).expect("a process has a number"), signal).expect("it is ours");
    }
}

impl Process {
    /// Waits until a generator has `count` connections to the service.
    pub fn await_connections(&self, count: usize) {
        // Established, to port 8080 of an address in 10.78.0.0/16, in reverse byte order (proc_pid_net(5)).
        const TO_SERVICE: &str = "4E0A:1F90 01 ";
        let give_up_at = Instant::now() + Duration::from_secs(120);
        let open = || {
            let table = fs::read_to_string(format!("/proc/{}/net/tcp", self.pid)).expect("it has a network");
            table.lines().filter(|line| line.contains(TO_SERVICE)).count()
        };
        while open() < count {
            assert!(Instant::now() < give_up_at, "the generator has no connections");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Location of a component's process in a run.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// The only process of this program.
    Anywhere(&'static str),
    /// In the same pod as this other process.
    Beside(&'static str, &'static str),
    /// In a pod without generator and service.
    Apart(&'static str),
    /// This service of a graph.
    Service(&'static str),
}

/// Processes of a run at one moment.
pub struct Processes(pub BTreeSet<Process>);

impl Processes {
    /// The process with this ID and all its descendants.
    pub fn for_root(root: i32) -> Self {
        let mut pids = vec![root];
        let mut next = 0;
        while let Some(parent) = pids.get(next).copied() {
            pids.extend(children(parent));
            next += 1;
        }
        Self(pids.into_iter().filter_map(Process::read).collect())
    }

    /// The first process of the lab: the child of the started process.
    pub fn inner(&self, outer: i32) -> Option<&Process> {
        self.0.iter().find(|process| stat(process.pid).is_some_and(|stat| stat.parent == outer))
    }

    pub fn find(&self, place: Place) -> Option<&Process> {
        let named = |name: &'static str| self.0.iter().filter(move |process| process.name() == name);
        let networks =
            |name: &'static str| -> Vec<&PathBuf> { named(name).map(|process| &process.network).collect() };
        match place {
            Place::Anywhere(name) => named(name).next(),
            Place::Service(service) => {
                let option = format!("--service={service}");
                named("serve").find(|process| process.arguments.contains(&option))
            }
            Place::Beside(name, other) => {
                named(name).find(|process| networks(other).contains(&&process.network))
            }
            Place::Apart(name) => named(name).find(|process| {
                !networks("load").contains(&&process.network)
                    && !networks("serve").contains(&&process.network)
            }),
        }
    }
}

/// Children of a process, from the kernel's own lists (proc_tid_children(5)): runs are polled often, and a
/// machine has many other processes.
fn children(pid: i32) -> Vec<i32> {
    // A process that has ended has none.
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| list.split_ascii_whitespace().flat_map(str::parse).collect::<Vec<_>>()).collect()
}

struct Stat {
    state: char,
    parent: i32,
    started: String,
}

/// Parses `/proc/<pid>/stat` (proc_pid_stat(5)). A program's name may contain any character, so fields are
/// counted from its end.
fn stat(pid: i32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    Some(Stat {
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        started: (*fields.get(19)?).to_owned(),
    })
}

//! Invariants of readings, whatever the files of `/proc` and `/sys` contain.

use super::host::{Sources, describe};
use super::machine::{other_process, parse_machine};
use super::process::{parse_memory, parse_switches};
use crate::sandbox::interface::traffic;
use crate::sandbox::process_table::parse_stat;
use experiment::environment::{MachineSnapshot, Snapshot};
use std::time::Duration;

/// Length of the window between two readings.
const WINDOW: Duration = Duration::from_secs(20);

/// Reads a text as each of the files, and as two of them if there is a zero byte, and checks that usage of a window is
/// finite, and that the machine is described by what is in them. For fuzzing.
///
/// # Panics
/// Panics if an invariant is violated.
pub fn check_proc_texts(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (first, second) = text.split_once('\0').unwrap_or((&text, &text));
    let close = MachineSnapshot { at: WINDOW, ..machine(second) };
    let usage = snapshot(close).usage_since(&snapshot(machine(first))).machine.expect("both have a machine");
    let cores = [usage.busy_cores, usage.steal_cores, usage.interrupt_cores, usage.kernel_cores];
    assert!(cores.iter().all(|cores| cores.is_finite() && *cores >= 0.0), "{usage:?}");
    assert!(usage.other_processes_cores.is_finite() && usage.busy_cores <= usage.cpus as f64, "{usage:?}");
    check_host(&text);
    let (resident, anonymous) = parse_memory(&text);
    assert!(text.contains("VmRSS:") || resident == 0);
    assert!(text.contains("RssAnon:") || anonymous == 0);
    assert!(parse_switches(&text).is_none() || text.contains("nonvoluntary_ctxt_switches:"));
    let _ = traffic(input, "eth0");
}

/// A machine with this CPU time, and with the process whose `stat` this is.
fn machine(text: &str) -> MachineSnapshot {
    let machine = parse_machine(text, &[]).unwrap_or_default();
    assert!(machine.cpus <= text.lines().count());
    let others = parse_stat(text.as_bytes()).into_iter().map(|stat| other_process((stat.pid, stat)));
    MachineSnapshot { at: Duration::ZERO, others: others.collect(), ..machine }
}

fn snapshot(machine: MachineSnapshot) -> Snapshot {
    Snapshot { machine: Some(machine), ..Snapshot::default() }
}

fn check_host(text: &str) {
    let own = || text.to_owned();
    let host = describe(&Sources {
        cpuinfo: own(),
        meminfo: own(),
        os_release: own(),
        product: own(),
        thread_siblings: own(),
        iptables: own(),
        ..Sources::default()
    });
    assert!(host.cpus >= 1 && host.cpus <= text.lines().count().max(1), "{host:?}");
    assert!(host.threads_per_core >= 1, "{host:?}");
}

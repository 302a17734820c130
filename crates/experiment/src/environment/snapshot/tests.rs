use super::machine::{MachineSnapshot, OtherProcess, ProcessId};
use super::{ComponentMemory, ComponentSnapshot, CpuTimes, ProcessSnapshot, Snapshot};
use results::{MachineUsage, NetworkUsage, Role, SchedulingUsage, TopProcess};
use std::collections::BTreeMap;
use std::time::Duration;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn component(at_ms: u64, total_ms: u64) -> ComponentSnapshot {
    let cpu = CpuTimes { total: ms(total_ms), user: ms(total_ms), system: Duration::ZERO };
    ComponentSnapshot { cpu, ..ComponentSnapshot::new("server", Role::App, ms(at_ms)) }
}

#[test]
fn exact_total_is_split_by_tick_ratio() {
    let open = CpuTimes { total: ms(1000), user: ms(600), system: ms(400) };
    let close = CpuTimes { total: ms(2005), user: ms(1350), system: ms(650) };
    let (user_s, system_s) = close.split_since(open);
    assert!((user_s - 1.005 * 0.75).abs() < 1e-9);
    assert!((system_s - 1.005 * 0.25).abs() < 1e-9);
    let shorter_than_a_tick = CpuTimes { total: ms(1004), ..open };
    assert_eq!(shorter_than_a_tick.split_since(open), (0.004, 0.0));
}

#[test]
fn switches_are_absent_if_thread_has_ended() {
    let with = |threads: &[(i32, u64)]| {
        let switches = threads.iter().map(|(thread, voluntary)| {
            (*thread, SchedulingUsage { voluntary_switches: *voluntary, involuntary_switches: 1 })
        });
        let process = ProcessSnapshot { switches: switches.collect(), ..ProcessSnapshot::default() };
        ComponentSnapshot { processes: BTreeMap::from([(1, process)]), ..component(0, 0) }
    };
    let open = with(&[(1, 10), (2, 20)]);
    let expected = SchedulingUsage { voluntary_switches: 13, involuntary_switches: 1 };
    assert_eq!(with(&[(1, 15), (2, 21), (3, 7)]).switches_since(&open), Some(expected));
    assert_eq!(with(&[(1, 15)]).switches_since(&open), None);
    assert_eq!(with(&[]).switches_since(&with(&[])), None);
}

#[test]
fn ended_component_keeps_memory_of_first_snapshot() {
    let memory = |resident_bytes, working_set| ComponentMemory {
        resident_bytes,
        working_set_bytes: Some(working_set),
        anonymous_bytes: Some(1),
    };
    let open = ComponentSnapshot { memory: memory(Some(50), 70), ..component(0, 0) };
    let usage = ComponentSnapshot { memory: memory(None, 3), ..component(1000, 500) }.usage_since(&open);
    assert_eq!((usage.memory_resident_bytes, usage.memory_working_set_bytes), (50, Some(70)));
    assert!((usage.cpu_cores() - 0.5).abs() < 1e-9 && usage.processes.is_empty());
}

#[test]
fn memory_without_resident_memory_is_that_of_last_snapshot() {
    let memory = |working_set| ComponentMemory {
        working_set_bytes: Some(working_set),
        anonymous_bytes: Some(working_set / 2),
        ..ComponentMemory::default()
    };
    let open = ComponentSnapshot { memory: memory(50), ..component(0, 0) };
    let usage = ComponentSnapshot { memory: memory(70), ..component(1000, 500) }.usage_since(&open);
    assert_eq!((usage.memory_working_set_bytes, usage.memory_anonymous_bytes), (Some(70), Some(35)));
}

#[test]
fn processes_are_listed_if_several() {
    let process = |name: &str, user| ProcessSnapshot {
        name: name.to_owned(),
        cpu_user: ms(user),
        ..ProcessSnapshot::default()
    };
    let open =
        ComponentSnapshot { processes: BTreeMap::from([(7, process("agent", 100))]), ..component(0, 0) };
    let both = BTreeMap::from([(7, process("agent", 150)), (9, process("envoy", 30))]);
    let usage = ComponentSnapshot { processes: both, ..component(1000, 80) }.usage_since(&open);
    let seconds: Vec<_> =
        usage.processes.iter().map(|process| (process.name.as_str(), process.cpu_user_s)).collect();
    assert_eq!(seconds, [("agent", 0.05), ("envoy", 0.03)]);
}

#[test]
fn components_add_up_to_busy_time_of_machine() {
    let bytes = |bytes| Some(NetworkUsage { received_bytes: bytes, sent_bytes: 2 * bytes });
    let snapshot = |at_ms, cpu_ms, idle| Snapshot {
        components: vec![ComponentSnapshot { network: bytes(cpu_ms), ..component(at_ms, cpu_ms) }],
        machine: Some(MachineSnapshot {
            at: ms(at_ms),
            cpus: 2,
            idle: ms(idle),
            ..MachineSnapshot::default()
        }),
        observer: Some(Box::new([1, 4].map(|before| ComponentSnapshot {
            name: "meshmeter".to_owned(),
            role: Role::Observer,
            ..component(at_ms + before, at_ms / 10 + before)
        }))),
        ..Snapshot::default()
    };
    let usage = snapshot(2000, 600, 3000).usage_since(&snapshot(1000, 100, 2000));
    let names: Vec<_> = usage.components.iter().map(|usage| usage.name.as_str()).collect();
    assert_eq!(names, ["server", "meshmeter", "kernel"]);
    assert_eq!(usage.components[0].network, bytes(500));
    // Both readings are the observer's own work.
    assert!((usage.components[1].cpu_user_s - 0.103).abs() < 1e-9, "{usage:?}");
    let sum: f64 = usage.components.iter().map(|component| component.cpu_cores()).sum();
    assert!((sum - usage.machine.unwrap().busy_cores).abs() < 1e-9);
}

#[test]
fn components_of_only_one_snapshot_are_left_out() {
    let close = Snapshot { components: vec![component(1000, 1)], ..Snapshot::default() };
    let usage = close.usage_since(&Snapshot::default());
    assert!(usage.components.is_empty() && usage.machine.is_none());
}

fn process(name: &str, parent_pid: i32, cpu_ms: u64, ended_children_ms: u64) -> OtherProcess {
    let (cpu, ended_children) = (ms(cpu_ms), ms(ended_children_ms));
    OtherProcess { name: name.to_owned(), parent_pid, cpu, ended_children, is_elsewhere: false }
}

fn id(pid: i32) -> ProcessId {
    ProcessId { pid, started: ms(50) }
}

fn machine(at: Duration, others: &[(ProcessId, OtherProcess)]) -> MachineSnapshot {
    MachineSnapshot { at, cpus: 2, others: others.iter().cloned().collect(), ..MachineSnapshot::default() }
}

/// Over ten seconds.
fn usage_of(open: &[(ProcessId, OtherProcess)], close: &[(ProcessId, OtherProcess)]) -> MachineUsage {
    machine(ms(11_000), close).usage_since(&machine(ms(1000), open), 0.0)
}

fn used_ms(usage: &MachineUsage) -> Vec<(&str, u64)> {
    let ms = |process: &TopProcess| (process.cpu_cores * 10_000.0).round() as u64;
    usage.top_other_processes.iter().map(|process| (process.name.as_str(), ms(process))).collect()
}

#[test]
fn short_lived_children_count_as_cpu_of_parent() {
    // cargo's compiler had used 400 ms when the window opened, 600 more in it; another came and went with 1000.
    let open = [(id(10), process("cargo", 1, 70, 0)), (id(11), process("rustc", 10, 400, 0))];
    let usage = usage_of(&open, &[(id(10), process("cargo", 1, 90, 2000))]);
    assert_eq!(used_ms(&usage), [("cargo", 20 + 2000 - 400)]);
}

#[test]
fn cpu_of_ended_parent_goes_to_grandparent() {
    // make's shell and the shell's compiler both end: make's ended children hold all that either ever used.
    let open = [
        (id(9), process("make", 1, 0, 0)),
        (id(10), process("sh", 9, 10, 0)),
        (id(11), process("cc", 10, 400, 0)),
    ];
    let usage = usage_of(&open, &[(id(9), process("make", 1, 0, 1010))]);
    assert_eq!(used_ms(&usage), [("make", 1010 - 400 - 10)]);
}

#[test]
fn parent_that_ignores_sigchld_keeps_its_cpu() {
    let open = [(id(10), process("daemon", 1, 70, 0)), (id(11), process("child", 10, 400, 0))];
    assert_eq!(used_ms(&usage_of(&open, &[(id(10), process("daemon", 1, 570, 0))])), [("daemon", 500)]);
}

#[test]
fn reused_pid_is_another_process() {
    let new = (ProcessId { pid: 10, started: ms(990) }, process("new", 1, 300, 0));
    assert_eq!(used_ms(&usage_of(&[(id(10), process("old", 1, 7000, 0))], &[new])), [("new", 300)]);
}

#[test]
fn kernel_share_is_remainder_of_busy_time() {
    let open = machine(ms(0), &[(id(9), process("chromium", 1, 100, 0))]);
    let close = MachineSnapshot {
        idle: ms(7500),
        interrupt: ms(2000),
        steal: ms(500),
        ..machine(ms(10_000), &[(id(9), process("chromium", 1, 1100, 0)), (id(8), process("idle", 1, 0, 0))])
    };
    let usage = close.usage_since(&open, 0.7);
    // Of 20 CPU seconds 7.5 were idle and 0.5 stolen.
    assert!((usage.busy_cores - 1.2).abs() < 1e-9);
    assert!((usage.interrupt_cores - 0.2).abs() < 1e-9);
    assert!((usage.steal_cores - 0.05).abs() < 1e-9);
    assert!((usage.kernel_cores - 0.4).abs() < 1e-9);
    assert_eq!(usage.top_other_processes, [TopProcess { name: "chromium".to_owned(), cpu_cores: 0.1 }]);
    assert!(close.usage_since(&open, 2.0).kernel_cores.abs() < f64::EPSILON, "never negative");
}

#[test]
fn processes_on_other_cpus_took_none_of_an_experiment_restricted_to_some() {
    // Two of eight CPUs, busy for 12 of 20 CPU seconds, of which the experiment used 10.
    let elsewhere = (id(8), OtherProcess { is_elsewhere: true, ..process("batch", 1, 40_000, 0) });
    let open = machine(ms(0), &[(id(9), process("rustc", 1, 0, 0))]);
    let close = |rustc_ms: u64| MachineSnapshot {
        idle: ms(8000),
        has_other_cpus: true,
        ..machine(ms(10_000), &[elsewhere.clone(), (id(9), process("rustc", 1, rustc_ms, 0))])
    };
    for (rustc_ms, took_ms) in [(500, 500), (30_000, 2000)] {
        let usage = close(rustc_ms).usage_since(&open, 1.0);
        assert!((usage.other_processes_cores - took_ms as f64 / 10_000.0).abs() < 1e-9, "{usage:?}");
        assert_eq!(used_ms(&usage), [("rustc", took_ms)]);
        assert!((usage.busy_cores - 1.2).abs() < 1e-9 && usage.kernel_cores >= 0.0, "{usage:?}");
    }
}

//! Readings of every component and of the machine, as [`Snapshot`]s. The usage of a window is the difference
//! of two.
//!
//! Between the window's ends, while the generators measure, nothing is read but [`read_usage`], once per second. Start with
//! [`read`].
//! `component.rs` reads one component, `machine.rs` the machine, `observer.rs` this process; `process.rs` has
//! the parsers. Not included: time series within the window, and anything that needs tracing or performance
//! counters.

mod component;
pub mod host;
mod host_proc;
mod invariants;
mod machine;
mod observer;
mod process;

pub use component::Watched;
pub use host_proc::HostProc;
pub use invariants::check_proc_texts;
pub use machine::read_times;
pub(crate) use process::now;

use crate::Result;
use experiment::environment::{ComponentSnapshot, ErrorContext as _, Snapshot};

/// Reads CPU and traffic of every component first, closest to the window's end, then the machine, so that the
/// windows match. Processes and memory come last.
pub fn read(watched: &[Watched], host: &HostProc) -> Result<Snapshot> {
    let failed = |what: &str| format!("read the counters of {what}");
    let observer = || observer::read().context(failed("meshmeter"));
    let before = observer()?;
    let read_window = |watched: &Watched| watched.read_window().context(failed(&watched.name));
    let mut components: Vec<ComponentSnapshot> = watched.iter().map(read_window).collect::<Result<_, _>>()?;
    let machine = machine::read(host).context(failed("the machine"))?;
    for (watched, component) in watched.iter().zip(&mut components) {
        watched.read_processes(component);
    }
    let observer = Some(Box::new([before, observer()?]));
    Ok(Snapshot { components, machine: Some(machine), observer, ..Snapshot::default() })
}

/// CPU and memory of every component that has not ended: a few files of the kernel for each.
pub fn read_usage(watched: &[Watched]) -> Vec<ComponentSnapshot> {
    watched.iter().filter_map(|watched| watched.read_usage().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::interface::Interface;
    use results::ComponentUsage;
    use rustix::time::{ClockId, clock_gettime};
    use std::path::Path;
    use std::time::{Duration, Instant};

    fn watched(pid: u32) -> Watched {
        let interface = Some(Interface::of_this_thread("lo").unwrap());
        Watched { interface, ..component::tests::watched(pid) }
    }

    #[test]
    fn busy_cpu_time_is_accounted_for_once() {
        let mut busy = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let watched = [watched(busy.id())];
        let host = HostProc::new(Path::new("/proc")).unwrap();
        let open = read(&watched, &host).unwrap();
        let has_not_run = |close: &Snapshot| close.usage_since(&open).components[0].cpu_cores() <= 0.0;
        let deadline = Instant::now() + Duration::from_secs(60);
        // The sleeps are the measured window: one, unless the machine gave the process no CPU in it.
        let close = loop {
            std::thread::sleep(Duration::from_millis(300));
            let close = read(&watched, &host);
            if !close.as_ref().is_ok_and(has_not_run) || Instant::now() >= deadline {
                break close;
            }
        };
        busy.kill().unwrap();
        busy.wait().unwrap();
        let usage = close.unwrap().usage_since(&open);
        let names: Vec<_> = usage.components.iter().map(|usage| usage.name.as_str()).collect();
        assert_eq!(names, ["server", "meshmeter", "kernel"]);
        let server = &usage.components[0];
        assert!(server.cpu_cores() > 0.0 && server.memory_resident_bytes > 100_000, "{usage:?}");
        assert!(server.network.is_some() && server.scheduling.is_some() && server.throttling.is_none());
        assert_eq!(server.cpu_source, "proc");
        let machine = usage.machine.unwrap();
        let sum: f64 = usage.components.iter().map(ComponentUsage::cpu_cores).sum();
        // Equal, unless the kernel's tick sampling saw less than the processes' exact times.
        assert!(sum + machine.other_processes_cores >= machine.busy_cores - 1e-6, "{sum} of {machine:?}");
    }

    #[test]
    fn usage_within_the_window_is_of_components_that_have_not_ended() {
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        let read = read_usage(&[watched(ended.id()), watched(std::process::id())]);
        assert_eq!(read.len(), 1, "{read:?}");
        assert!(read[0].memory.bytes() > Some(100_000) && read[0].network.is_none(), "{read:?}");
    }

    #[test]
    fn known_cpu_burn_is_read_from_proc() {
        let watched = [watched(std::process::id())];
        let host = HostProc::new(Path::new("/proc")).unwrap();
        let open = read(&watched, &host).unwrap();
        let now = || Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap();
        let end = now() + Duration::from_millis(400);
        while now() < end {
            std::hint::spin_loop();
        }
        let usage = read(&watched, &host).unwrap().usage_since(&open);
        // Other tests of this process may run at the same time, and ticks are 10 ms.
        let cpu_s = usage.components[0].cpu_user_s + usage.components[0].cpu_system_s;
        assert!(cpu_s > 0.36, "{usage:?}");
    }
}

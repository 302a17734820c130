//! Pauses of each CPU: a spinning thread reads the clock again and again, first on an idle machine, then
//! under load.

use super::loopback::{echo, loopback_pair};
use nix::sys::resource::{UsageWho, getrusage};
use results::{CpuPauses, Pauses};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use statistics::pauses::{Gap, PAUSE_THRESHOLD, cpu_pauses};
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Time between two requests of the load.
const LOAD_INTERVAL: Duration = Duration::from_millis(1);
/// Up to this many CPUs are measured one at a time; on larger machines several are measured in parallel.
const MAX_ROUNDS: usize = 8;

/// Measures half of the time on the idle machine, and half under a load of 1000 requests/s over loopback.
pub(super) fn measure(at_most: Duration) -> io::Result<Pauses> {
    let allowed = sched_getaffinity(None)?;
    let cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect();
    let idle = look_at(&cpus, at_most / 2)?;
    let loaded = beside_load(|| look_at(&cpus, at_most / 2))?;
    Ok(Pauses { threshold_us: PAUSE_THRESHOLD.as_secs_f64() * 1e6, idle, loaded })
}

fn look_at(cpus: &[usize], at_most: Duration) -> io::Result<Vec<CpuPauses>> {
    let groups = cpus.chunks(cpus.len().div_ceil(MAX_ROUNDS));
    let each = at_most / u32::try_from(groups.len()).unwrap_or(u32::MAX);
    let look_at_group = |group: &[usize]| {
        thread::scope(|scope| {
            let start = |cpu: &usize| {
                let cpu = *cpu;
                thread::Builder::new().name("floor-spin".into()).spawn_scoped(scope, move || spin(cpu, each))
            };
            let threads = group.iter().map(start).collect::<io::Result<Vec<_>>>()?;
            let panicked = |_| io::Error::other("the spinning thread panicked");
            threads.into_iter().map(|thread| thread.join().map_err(panicked)?).collect::<io::Result<Vec<_>>>()
        })
    };
    Ok(groups.map(look_at_group).collect::<io::Result<Vec<_>>>()?.concat())
}

/// Spins on a CPU. The thread stays pinned to it.
fn spin(cpu: usize, time: Duration) -> io::Result<CpuPauses> {
    let mut only = CpuSet::new();
    only.set(cpu);
    sched_setaffinity(None, &only)?;
    let mut gaps = Vec::with_capacity(1024);
    let mut switches = involuntary_switches()?;
    let start = Instant::now();
    let mut last = start;
    while last - start < time {
        let now = Instant::now();
        let length = now - last;
        last = now;
        if length > PAUSE_THRESHOLD {
            let seen = involuntary_switches()?;
            gaps.push(Gap { length, switched: seen != switches });
            switches = seen;
            last = Instant::now();
        }
    }
    Ok(cpu_pauses(cpu, last - start, &gaps))
}

fn involuntary_switches() -> io::Result<i64> {
    Ok(getrusage(UsageWho::RUSAGE_THREAD)?.involuntary_context_switches())
}

/// Runs `work` while one-byte requests go over loopback and back.
fn beside_load<T>(work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let (near, far) = loopback_pair()?;
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let named = |name: &str| thread::Builder::new().name(name.into());
        let echo = named("floor-echo").spawn_scoped(scope, move || echo(far))?;
        let load = named("floor-load").spawn_scoped(scope, || send_until(near, &ended));
        let done = work();
        ended.store(true, Ordering::Relaxed);
        let panicked = |_| io::Error::other("a thread of the load panicked");
        load?.join().map_err(panicked)??;
        echo.join().map_err(panicked)??;
        done
    })
}

fn send_until(mut near: TcpStream, ended: &AtomicBool) -> io::Result<()> {
    let mut byte = [b'.'];
    while !ended.load(Ordering::Relaxed) {
        near.write_all(&byte)?;
        near.read_exact(&mut byte)?;
        thread::sleep(LOAD_INTERVAL);
    }
    Ok(())
}

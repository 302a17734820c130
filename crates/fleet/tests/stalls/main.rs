//! Fleets in separate processes: times of arrival while the fleet is halted, and the memory that large messages take.
//! There is no test harness: this program is also the fleet's process.

#[path = "../fleet_process/mod.rs"]
mod fleet_process;
#[path = "../setup/mod.rs"]
mod setup;

use fleet_process::{FLEET, FleetOrder, FleetProcess, Outcome, monotonic_ns, run};
use fleet_stub::{Behaviour, Configuration, MarkWrite, Stub, StubSpec};
use libtest_mimic::{Arguments, Failed, Trial};
use rustix::process::{Pid, Signal, kill_process};
use std::process::{Command, ExitCode};
use std::thread;
use std::time::{Duration, Instant};
use std::{env, fs};

const PROXIES: usize = 8;
const SERVICE: usize = 7;
const TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// Duration of the halt after the last write.
const HALT: Duration = Duration::from_millis(300);

#[allow(clippy::print_stderr, reason = "the test shows why its fleet failed")]
fn main() -> ExitCode {
    if let [first, order] = &env::args().skip(1).collect::<Vec<_>>()[..]
        && first == FLEET
    {
        return match run(order) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("fleet: {error}");
                ExitCode::FAILURE
            }
        };
    }
    let trials = vec![
        Trial::test("a_halted_fleet_still_has_the_kernels_times", || passed(halted())),
        Trial::test("large_messages_take_no_memory", || passed(large_messages())),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn passed(outcome: Outcome<()>) -> Result<(), Failed> {
    outcome.map_err(|error| error.to_string().into())
}

fn start_fleet(stub: &Stub) -> Outcome<FleetProcess> {
    let address = stub.address().to_string();
    let order = FleetOrder { address, roots: None, proxies: PROXIES, connect_rate: 1000.0 };
    let mut fleet = FleetProcess::start(Command::new(env::current_exe()?), &order)?;
    let completion = fleet.completion()?;
    if completion.complete != PROXIES as u64 {
        return Err(format!("{completion:?}").into());
    }
    Ok(fleet)
}

/// The kernel receives for a stopped process, and timestamps what it receives.
fn halted() -> Outcome<()> {
    let mut spec = StubSpec::new(Configuration::for_services(20));
    spec.log_writes = true;
    let stub = Stub::start(spec)?;
    let mut fleet = start_fleet(&stub)?;
    fleet.expect(1, PROXIES)?;
    halt(&fleet)?;
    let commanded = Instant::now();
    stub.mark_endpoints(SERVICE, 1)?;
    let writes = all_writes(&stub)?;
    // This does not wait for anything: it is the error that a clock other than the kernel's would show.
    thread::sleep(HALT);
    let continued_ns = monotonic_ns(Instant::now());
    kill_process(pid(&fleet)?, Signal::CONT)?;
    fleet.ask_for_arrivals(commanded)?;
    let arrivals = fleet.arrivals()?;
    for (proxy, arrival_ns) in arrivals.into_iter().enumerate() {
        let name = format!("~proxy-{proxy:05}.");
        let write = writes.iter().find(|write| write.node.contains(&name)).ok_or("a write is missing")?;
        let before_ns = monotonic_ns(write.before);
        // Fleets must be accurate to one millisecond.
        assert!(arrival_ns + 1_000_000 >= before_ns, "{arrival_ns} ns, written at {before_ns} ns");
        assert!(arrival_ns < continued_ns, "{arrival_ns} ns, which is when it was read");
    }
    let result = fleet.finish()?;
    let latest_us = result["fleet"]["lag_us"]["max"].as_f64().ok_or("no lag")?;
    assert!(
        latest_us >= HALT.as_secs_f64() * 1e6 * 0.99,
        "the fleet was halted and reports a lag of {latest_us} us"
    );
    assert_eq!(result["fleet"]["clock"], "kernel");
    Ok(())
}

fn pid(fleet: &FleetProcess) -> Outcome<Pid> {
    Ok(Pid::from_raw(fleet.id().try_into()?).ok_or("a process has an id")?)
}

/// Stops the fleet's process, and returns once it has stopped.
fn halt(fleet: &FleetProcess) -> Outcome<()> {
    kill_process(pid(fleet)?, Signal::STOP)?;
    until("the process stops", || {
        let status = fs::read_to_string(format!("/proc/{}/status", fleet.id()))?;
        Ok(status.lines().any(|line| line.starts_with("State:\tT")).then_some(()))
    })
}

fn all_writes(stub: &Stub) -> Outcome<Vec<MarkWrite>> {
    let mut writes = Vec::new();
    until("the stub writes to all", || {
        writes.extend(stub.take_writes());
        Ok((writes.len() == PROXIES).then_some(()))
    })?;
    Ok(writes)
}

fn until<T>(what: &str, mut look: impl FnMut() -> Outcome<Option<T>>) -> Outcome<T> {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        if Instant::now() >= deadline {
            return Err(format!("in vain: {what}").into());
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// A resource that exceeds the fleet's memory limit passes through.
fn large_messages() -> Outcome<()> {
    const RESOURCE_BYTES: u32 = 60 << 20;
    const MAX_MEMORY_BYTES: u64 = 40 << 20;
    let behaviours = vec![Behaviour::LargeResource(RESOURCE_BYTES)];
    let stub = Stub::start(StubSpec::new(Configuration::for_services(20)).with_behaviours(behaviours))?;
    let fleet = start_fleet(&stub)?;
    let result = fleet.finish()?;
    let received = result["bytes_received"].as_u64().ok_or("no bytes")?;
    assert!(received > PROXIES as u64 * u64::from(RESOURCE_BYTES), "{received} bytes");
    let memory = result["fleet"]["memory_peak_bytes"].as_u64().ok_or("no memory")?;
    assert!(memory <= MAX_MEMORY_BYTES, "{memory} bytes");
    assert_eq!(result["rejections"], 0);
    Ok(())
}

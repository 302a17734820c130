//! Fleets against a stub of a control plane: what they settle to, when changes arrive, and what becomes of violations.

mod arrivals;
mod settling;
#[path = "../setup/mod.rs"]
mod setup;
mod violations;

use fleet_stub::{Configuration, Stub, StubSpec};
use std::thread;
use std::time::{Duration, Instant};

/// Services in the configuration of most tests.
const SERVICES: usize = 20;
/// After which a test fails: only waiting in vain takes so long.
const TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(2);

fn start(spec: StubSpec) -> Stub {
    Stub::start(spec).expect("a port of loopback")
}

fn configuration() -> Configuration {
    Configuration::for_services(SERVICES)
}

fn deadline() -> Instant {
    Instant::now() + TIMEOUT
}

/// Waits for what the other side has counted.
#[track_caller]
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = deadline();
    while !holds() {
        assert!(Instant::now() < deadline, "in vain: {what}");
        thread::sleep(POLL_INTERVAL);
    }
}

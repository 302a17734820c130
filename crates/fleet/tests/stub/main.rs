//! Fleets against a stub of a control plane: how they settle, when changes arrive, and how violations are handled.

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
/// Timeout of a test's waits: only a failing test takes this long.
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

/// Waits for a count of the other side.
#[track_caller]
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = deadline();
    while !holds() {
        assert!(Instant::now() < deadline, "in vain: {what}");
        thread::sleep(POLL_INTERVAL);
    }
}

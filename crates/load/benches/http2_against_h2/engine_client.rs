//! The load engine as a client process.

use crate::contest::Outcome;
use crate::contest::process::resident_bytes;
use crate::task::{Reading, Task};
use load::{
    Arrival, GeneratorShare, IoBackendChoice, LoadSpec, Observer, Progress, Protocol, RateStage,
    RequestTemplate, ScheduleSpec, Start, resolve,
};
use results::Pacing;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Timeout of requests.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Runs the load on one thread.
///
/// # Errors
/// Returns an error if the engine does not run, or any request fails.
pub fn run(task: &Task, address: SocketAddr, network: IoBackendChoice) -> Outcome<Reading> {
    let urls = vec![format!("http://{address}/")];
    let schedule = match task.rate {
        Some(rate) => ScheduleSpec::Open {
            stages: vec![RateStage::steady(f64::from(rate), task.duration)],
            arrival: Arrival::Uniform,
        },
        None => ScheduleSpec::closed(task.clients()),
    };
    let spec = LoadSpec {
        targets: resolve(&urls, &RequestTemplate::default())?,
        urls,
        protocol: Protocol::Http2 { streams: task.streams },
        schedule,
        connections: task.connections,
        share: GeneratorShare::default(),
        opening: load::Opening::default(),
        requests_per_connection: None,
        threads: 1,
        warmup: Duration::ZERO,
        duration: task.duration,
        timeout: TIMEOUT,
        expected_status: None,
        tls: None,
        seed: 1,
        whole_seconds: false,
        per_url: false,
        pacing: Pacing::Economical,
        lag_tolerance: load::DEFAULT_LAG_TOLERANCE,
        start: Start::AtOnce,
        network,
    };
    let mut memory = MemoryAtEnd(0);
    let result = load::run(&spec, &AtomicBool::new(false), &mut memory)?;
    if result.requests.failed > 0 {
        return Err(format!("the engine failed: {:?}", result.requests).into());
    }
    Ok(Reading::new(result.requests.completed, memory.0))
}

/// Resident memory when the window has closed: connections are still open.
struct MemoryAtEnd(u64);

impl Observer for MemoryAtEnd {
    fn progress(&mut self, progress: Progress<'_>) {
        if let Progress::WindowClosed = progress {
            self.0 = resident_bytes("self").unwrap_or(0);
        }
    }
}

//! Samples the counters of all threads once per second.

use crate::shared::Shared;
use crate::usage::{memory_bytes, thread_cpu};
use results::FleetSecond;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of samples: one day. Later seconds are dropped.
const MAX_SECONDS: usize = 24 * 3600;

/// Measurements of a sampler.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    pub(crate) series: Vec<FleetSecond>,
    /// Resident memory in the last second in which all proxies were complete, preferably one without responses.
    pub(crate) memory_settled_bytes: Option<u64>,
    pub(crate) cpu: Duration,
}

/// A thread that takes samples.
#[derive(Debug)]
pub(crate) struct Sampler {
    stop: Arc<AtomicBool>,
    /// Absent once the thread was joined.
    thread: Option<JoinHandle<Samples>>,
}

impl Sampler {
    pub(crate) fn start(shared: Arc<Shared>) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name("fleet-sampler".to_owned())
            .spawn(move || sample(&shared, &stopped))?;
        Ok(Self { stop, thread: Some(thread) })
    }

    pub(crate) fn finish(mut self) -> Samples {
        self.stop();
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }

    fn stop(&self) {
        self.stop.store(true, Relaxed);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.stop();
    }
}

fn sample(shared: &Shared, stopped: &AtomicBool) -> Samples {
    let mut samples = Samples::default();
    let (mut pushes, mut bytes, mut settled_quietly) = (0, 0, false);
    for second in 0_u32.. {
        let end = shared.started + INTERVAL * (second + 1);
        let is_last = wait_until(end, stopped);
        let counters = &shared.counters;
        let (pushes_now, bytes_now) = (counters.pushes.load(Relaxed), counters.bytes.load(Relaxed));
        let point = FleetSecond {
            t_s: f64::from(second),
            connected: counters.connected.load(Relaxed),
            complete: counters.complete.load(Relaxed),
            pushes: pushes_now - pushes,
            bytes: bytes_now - bytes,
        };
        (pushes, bytes) = (pushes_now, bytes_now);
        let is_quiet = point.pushes == 0;
        if point.complete == shared.wanted && (is_quiet || !settled_quietly) {
            settled_quietly = is_quiet;
            samples.memory_settled_bytes = Some(memory_bytes());
        }
        if samples.series.len() < MAX_SECONDS {
            samples.series.push(point);
        }
        if is_last {
            break;
        }
    }
    samples.cpu = thread_cpu();
    samples
}

/// Returns true if the sampler was stopped before `end`.
fn wait_until(end: Instant, stopped: &AtomicBool) -> bool {
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if stopped.load(Relaxed) || left.is_zero() {
            return stopped.load(Relaxed);
        }
        thread::park_timeout(left);
    }
}

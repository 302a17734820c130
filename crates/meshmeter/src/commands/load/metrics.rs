//! The figures so far, served for Prometheus while the load runs.
//!
//! The run's thread adds each second to a snapshot; a thread of its own, of lower priority than those that measure,
//! answers requests from it. Nothing is kept for a reader that does not come.

mod server;

use crate::failure::Failure;
use load::{Observer, Progress, Second, SecondDetail};
use report::exposition::{LoadFigures, ProcessFigures};
use rustix::time::{ClockId, clock_gettime};
use server::Server;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// What is served. Ends with the run.
pub struct Metrics {
    figures: Arc<Mutex<LoadFigures>>,
    _server: Server,
}

impl Metrics {
    /// Listens, and says where.
    pub fn listen(address: SocketAddr) -> Result<Self, Failure> {
        let figures = Arc::new(Mutex::new(LoadFigures { phase: "connecting", ..LoadFigures::default() }));
        let shown = Arc::clone(&figures);
        let page = move || {
            let figures = shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
            report::exposition::text(&figures, process_figures())
        };
        let server = Server::start(address, page).map_err(|error| {
            Failure::environment(&error)
                .about(&format!("listen on {address} for --metrics-listen"))
                .with_hint("name another port, or 0 for any that is free")
        })?;
        anstream::eprintln!("metrics: http://{}/metrics", server.address());
        Ok(Self { figures, _server: server })
    }

    fn change(&self, change: impl FnOnce(&mut LoadFigures)) {
        change(&mut self.figures.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Observer for Metrics {
    fn progress(&mut self, progress: Progress<'_>) {
        match progress {
            Progress::Waiting => self.change(|figures| figures.phase = "waiting"),
            Progress::Connecting => self.change(|figures| figures.phase = "connecting"),
            Progress::Ready => self.change(|figures| figures.phase = "ready"),
            Progress::WarmingUp => self.change(|figures| figures.phase = "warming-up"),
            Progress::WindowOpened => self.change(|figures| figures.phase = "measuring"),
            Progress::Second(second) => self.change(|figures| add(figures, second)),
            Progress::WindowClosed => self.change(|figures| figures.phase = "draining"),
        }
    }
}

fn add(figures: &mut LoadFigures, second: &Second) {
    figures.sent += second.point.sent;
    figures.completed += second.point.completed;
    figures.failed += second.point.failed;
    for (kind, count) in &second.errors {
        *figures.errors.entry(kind.name().to_owned()).or_default() += count;
    }
    for (code, count) in &second.statuses {
        *figures.statuses.entry(code.to_string()).or_default() += count;
    }
    figures.bytes_sent += second.bytes_sent;
    figures.bytes_received += second.bytes_received;
    figures.connections_open = second.connections_open;
    figures.offered_rate = second.due;
    figures.response_time.add(&second.response_time);
    figures.response_time.add_without_response(second.point.failed);
    if let Some(SecondDetail { service_time, schedule_lag }) = &second.detail {
        figures.service_time.add(service_time);
        figures.schedule_lag.add(schedule_lag);
    }
}

/// What this process uses now; 0 where the kernel does not tell.
fn process_figures() -> ProcessFigures {
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|statm| statm.split_whitespace().nth(1)?.parse::<u64>().ok());
    ProcessFigures {
        cpu_s: cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9,
        memory_bytes: pages.unwrap_or(0) * rustix::param::page_size() as u64,
    }
}

//! The figures so far, served to Prometheus and pushed to other systems while the load runs.
//!
//! The run's thread adds each second to a snapshot. Threads of lower priority than the measuring ones serve
//! and send it. The run never waits for a reader or a receiver.

mod server;

use crate::cli::{ExportArgs, OutputArgs};
use crate::commands::metric_labels;
use crate::failure::Failure;
use crate::output::tell;
use export::{Exporter, LoadFigures, LoadPhase, ProcessFigures, SecondFigures, Settings};
use load::{Observer, Progress, Second};
use results::ExportRecord;
use rustix::time::{ClockId, clock_gettime};
use server::Server;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// Snapshot of a load, with its server and its export. Ends with the run.
pub struct Metrics {
    figures: Arc<Mutex<LoadFigures>>,
    export: Option<Export>,
    _server: Option<Server>,
}

/// Periodic export of snapshots.
struct Export {
    exporter: Exporter,
    /// Seconds between two snapshots.
    interval: u64,
    /// Seconds of the window that have passed.
    seconds: u64,
}

impl Metrics {
    /// True if an option requests the figures.
    pub fn are_asked_for(args: &OutputArgs) -> bool {
        args.metrics_listen.is_some() || args.export.is_asked_for()
    }

    /// Listens and prints the address, and starts to send.
    pub fn start(args: &OutputArgs) -> Result<Self, Failure> {
        let figures = Arc::new(Mutex::new(LoadFigures::starting_now()));
        let server = args.metrics_listen.map(|address| listen(address, Arc::clone(&figures))).transpose()?;
        let export = args.export.is_asked_for().then(|| Export::start(&args.export)).transpose()?;
        let mut metrics = Self { figures, export, _server: server };
        metrics.publish();
        Ok(metrics)
    }

    /// Ends all series, with a timeout.
    pub fn finish(mut self) -> Vec<ExportRecord> {
        self.publish();
        self.export.map(|export| export.exporter.finish()).unwrap_or_default()
    }

    fn change(&self, change: impl FnOnce(&mut LoadFigures)) {
        change(&mut self.figures.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn enter(&mut self, phase: LoadPhase) {
        self.change(|figures| figures.phase = phase);
        self.publish();
    }

    fn second(&mut self, second: &Second) {
        self.change(|figures| figures.add(&second_figures(second)));
        if let Some(export) = &mut self.export {
            export.seconds += 1;
            if export.seconds.is_multiple_of(export.interval) {
                self.publish();
            }
        }
    }

    fn publish(&mut self) {
        if let Some(export) = &mut self.export {
            let figures = self.figures.lock().unwrap_or_else(PoisonError::into_inner).clone();
            export.exporter.publish(figures.families(process_figures()));
        }
    }
}

impl Export {
    fn start(args: &ExportArgs) -> Result<Self, Failure> {
        let destinations = args.destinations().map_err(Failure::usage)?;
        let labels = metric_labels::of_process(&std::process::id().to_string(), &args.label);
        let exporter = Exporter::start(Settings { destinations, labels }, |text| tell!("{text}"))
            .map_err(|error| Failure::environment(&error).about("start to send metrics"))?;
        Ok(Self { exporter, interval: args.export_interval.as_secs(), seconds: 0 })
    }
}

fn listen(address: SocketAddr, figures: Arc<Mutex<LoadFigures>>) -> Result<Server, Failure> {
    let page = move || {
        let figures = figures.lock().unwrap_or_else(PoisonError::into_inner).clone();
        export::exposition::text(&figures.families(process_figures()))
    };
    let server = Server::start(address, page).map_err(|error| {
        Failure::environment(&error)
            .about(&format!("listen on {address} for --metrics-listen"))
            .with_hint("name another port, or 0 for any that is free")
    })?;
    tell!("metrics: http://{}/metrics", server.address());
    Ok(server)
}

impl Observer for Metrics {
    fn progress(&mut self, progress: Progress<'_>) {
        match progress {
            Progress::Waiting => self.enter(LoadPhase::Waiting),
            Progress::Connecting => self.enter(LoadPhase::Connecting),
            Progress::Ready => self.enter(LoadPhase::Ready),
            Progress::WarmingUp => self.enter(LoadPhase::WarmingUp),
            Progress::WindowOpened => self.enter(LoadPhase::Measuring),
            Progress::Second(second) => self.second(second),
            Progress::StartMissed => {}
            Progress::WindowClosed => self.enter(LoadPhase::Draining),
        }
    }
}

fn second_figures(second: &Second) -> SecondFigures<'_> {
    SecondFigures {
        sent: second.point.sent,
        completed: second.point.completed,
        failed: second.point.failed,
        errors: second.errors.iter().map(|(kind, count)| (kind.name(), *count)).collect(),
        statuses: second.statuses.iter().map(|(code, count)| (code.to_string(), *count)).collect(),
        bytes_sent: second.bytes_sent,
        bytes_received: second.bytes_received,
        connections_open: second.connections_open,
        due: second.due,
        response_time: Some(&second.response_time),
        service_time: second.detail.as_ref().map(|detail| &detail.service_time),
        schedule_lag: second.detail.as_ref().map(|detail| &detail.schedule_lag),
    }
}

/// Resource usage of this process; 0 if the kernel does not report it.
fn process_figures() -> ProcessFigures {
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|statm| statm.split_whitespace().nth(1)?.parse::<u64>().ok());
    ProcessFigures {
        cpu_s: cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9,
        memory_bytes: pages.unwrap_or(0) * rustix::param::page_size() as u64,
    }
}

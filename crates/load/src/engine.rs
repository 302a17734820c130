//! A run: connect, warm up, measure, drain; then everything into one result.
//!
//! [`run`] starts the threads. What each does is in `worker_task.rs`, how they are led from the connecting to the drain in
//! `course.rs`, and what comes out in `result.rs`.

use self::course::Course;
use self::worker_task::WorkerTask;
use crate::clock::nanos;
use crate::error::LoadError;
use crate::network::foundations;
use crate::pacing::SpareCpu;
use crate::second::{Second, SecondCounts};
use crate::spec::{LoadSpec, ScheduleSpec};
use crate::start::Start;
use crate::worker::{Timeline, WorkerOutcome};
use experiment::schema::LoadResult;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

mod course;
mod result;
mod series;
mod start;
mod window;
mod worker_task;

/// How often the run looks whether it is to stop.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// What a run tells while it goes on.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// The agreed instant of the start is awaited.
    Waiting,
    /// Connections are being opened.
    Connecting,
    /// They are open, and the instant of the start is awaited: see [`Start::OnSignal`].
    Ready,
    /// The schedule has started; nothing is measured yet.
    WarmingUp,
    /// The measured window has just opened.
    WindowOpened,
    /// A second is over. All that were measured are told, in their order; the last come after the window's end.
    Second(&'a Second),
    /// The measured window has just closed; answers to requests on their way are still awaited.
    WindowClosed,
}

/// Is told of the progress of a run, on the thread that called [`run`].
pub trait Observer {
    /// Something happened. Should return soon: the next event waits.
    fn progress(&mut self, progress: Progress<'_>);
}

enum FromWorker {
    Connected(usize),
    /// From which worker.
    Second(usize, Box<SecondCounts>),
    Done(usize, io::Result<Box<WorkerOutcome>>),
}

/// Runs the load to its end, or until `stop` is set, and returns what was measured until then.
///
/// A target that cannot be reached is no error of the engine: the result counts it and is not valid.
///
/// # Errors
/// Where the engine itself cannot run.
pub fn run(spec: &LoadSpec, stop: &AtomicBool, observer: &mut dyn Observer) -> Result<LoadResult, LoadError> {
    let timeline = Timeline {
        window_start: nanos(spec.warmup),
        end: nanos(spec.warmup) + nanos(spec.duration),
        timeout: nanos(spec.timeout),
        connecting: nanos(spec.connecting()),
    };
    let (network, foundations) =
        foundations(spec.network, spec.threads, matches!(spec.schedule, ScheduleSpec::Closed { .. }))?;
    if let Start::At(start) = spec.start {
        observer.progress(Progress::Waiting);
        start::await_connecting(start - spec.warmup, spec.connecting(), stop)?;
    }
    let quota = spec.own_requests().map(|requests| Arc::new(AtomicU64::new(requests)));
    observer.progress(Progress::Connecting);
    let spare_cpu = SpareCpu::default();
    thread::scope(|scope| {
        let (to_run, from_workers) = channel();
        let mut workers = Vec::new();
        for (thread, foundation) in foundations.into_iter().enumerate() {
            let (start, started) = channel();
            let (spare, spares) = channel();
            workers.push(ToWorker { start, spare });
            let (quota, to_run) = (quota.clone(), to_run.clone());
            let spare_cpu = &spare_cpu;
            let task = WorkerTask { spec, timeline, thread, spare_cpu, stop, started, spares, quota, to_run };
            thread::Builder::new()
                .name(format!("load-{thread}"))
                .spawn_scoped(scope, move || {
                    let outcome = task.work(foundation);
                    // The run may have ended with an error of another worker.
                    let _ = task.to_run.send(FromWorker::Done(thread, outcome.map(Box::new)));
                })
                .map_err(LoadError::Thread)?;
        }
        drop(to_run);
        let course = Course { spec, timeline, spare_cpu: &spare_cpu, stop, observer, from_workers, network };
        course.follow(workers)
    })
}

/// The way to one worker.
struct ToWorker {
    /// When the schedule starts.
    start: Sender<Instant>,
    /// Seconds that are done with, empty.
    spare: Sender<SecondCounts>,
}

//! A run: connect, warm up, measure, drain, and combine everything into one result.
//!
//! [`run`] starts the threads. `worker_task.rs` is the body of each thread, `coordinator.rs` directs them from
//! connecting to the drain through the channels of `messages.rs`, and `result.rs` builds the result.

use self::coordinator::Coordinator;
use self::messages::{FromWorker, ToWorker};
use self::worker_task::WorkerTask;
use crate::clock::nanos;
use crate::error::LoadError;
use crate::lookups::FoundAddresses;
use crate::network::io_backends;
use crate::pacing::SpareCpu;
use crate::spec::LoadSpec;
use crate::start::Start;
use crate::worker::Timeline;
use results::LoadResult;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::channel;
use std::thread;

mod coordinator;
mod messages;
mod progress;
mod result;
mod series;
mod start;
mod window;
mod worker_task;

pub use self::progress::{Observer, Progress};

/// Runs the load to its end, or until `stop` is set, and returns what was measured until then.
///
/// An unreachable target is not an error of the engine: the result counts the failures and is not valid.
///
/// # Errors
/// Returns an error if the engine itself cannot run.
pub fn run(spec: &LoadSpec, stop: &AtomicBool, observer: &mut dyn Observer) -> Result<LoadResult, LoadError> {
    let timeline = Timeline {
        window_start: nanos(spec.warmup),
        end: nanos(spec.warmup) + nanos(spec.duration),
        timeout: nanos(spec.timeout),
        connecting: nanos(spec.connecting()),
    };
    let (network, io_backends) = io_backends(spec.network, spec.threads, spec.own_clients().is_some())?;
    if let Start::At(start) = spec.start {
        observer.progress(Progress::Waiting);
        start::await_connecting(start - spec.warmup, spec.connecting(), stop)?;
    }
    let quota = spec.own_requests().map(|requests| Arc::new(AtomicU64::new(requests)));
    observer.progress(Progress::Connecting);
    let spare_cpu = SpareCpu::default();
    let opening = &spec.opening;
    let addresses = FoundAddresses::new(&spec.targets.servers, opening.lookups, opening.sources)
        .map_err(LoadError::Thread)?;
    thread::scope(|scope| {
        let (to_run, from_workers) = channel();
        let mut workers = Vec::new();
        for (thread, io_backend) in io_backends.into_iter().enumerate() {
            let (start, started) = channel();
            let (spare, spares) = channel();
            workers.push(ToWorker { start, spare });
            let (quota, to_run) = (quota.clone(), to_run.clone());
            let (spare_cpu, addresses) = (&spare_cpu, &*addresses);
            let task = WorkerTask {
                spec,
                timeline,
                thread,
                addresses,
                spare_cpu,
                stop,
                started,
                spares,
                quota,
                to_run,
            };
            thread::Builder::new()
                .name(format!("load-{thread}"))
                .spawn_scoped(scope, move || {
                    let outcome = task.work(io_backend);
                    // The run may have ended already, with an error of another worker.
                    let _ = task.to_run.send(FromWorker::Done(thread, outcome.map(Box::new)));
                })
                .map_err(LoadError::Thread)?;
        }
        drop(to_run);
        let coordinator = Coordinator {
            spec,
            timeline,
            addresses: &addresses,
            spare_cpu: &spare_cpu,
            stop,
            observer,
            from_workers,
            network,
        };
        coordinator.follow(workers)
    })
}

//! A thread of the fleet: its event loop, and the commands that it carries out on its proxies.

use crate::core::Core;
use crate::expectation::Goal;
use crate::lifecycle::live;
use crate::proxy::Proxy;
use crate::rotation::rotate;
use crate::spec::Selection;
use crate::target::ResolvedTarget;
use crate::usage::thread_cpu;
use crate::worker::{FinalState, Outcome, Worker, WorkerSpec};
use crate::xds::Mark;
use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::LocalSet;

/// Action on the proxies of a selection.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// Expect them to receive these marks.
    ExpectMarks(Arc<[Mark]>),
    /// Expect them to lose their connection and reconnect.
    ExpectReturn,
    /// End their connections and reconnect at once.
    Reconnect,
    /// End their connections and stay disconnected.
    CutOff,
    /// Request new certificates.
    RotateCertificates,
}

/// Command to a thread.
pub(crate) enum Command {
    /// Begins a change.
    Begin {
        change: usize,
        action: Action,
        selection: Arc<Selection>,
        at: Instant,
        /// Receives the number of awaited connections once the thread has begun the change.
        done: mpsc::Sender<u64>,
    },
    /// Lets proxies that were cut off reconnect.
    Restore {
        change: usize,
    },
    /// Stops expecting a change.
    Abandon {
        change: usize,
    },
    /// Requests the progress of a change.
    Outcomes {
        change: usize,
        reply: mpsc::Sender<Vec<Outcome>>,
    },
    /// Replaces the replicas.
    Targets(Arc<[Arc<ResolvedTarget>]>),
    Finish,
}

/// Result of a thread.
pub(crate) struct WorkerResult {
    pub(crate) core: Core,
    /// Outcomes per change.
    pub(crate) outcomes: Vec<(usize, Vec<Outcome>)>,
    pub(crate) states: Vec<FinalState>,
    pub(crate) cpu: Duration,
}

/// Runs a thread until it is told to finish.
pub(crate) fn run(spec: WorkerSpec, runtime: &Runtime, commands: UnboundedReceiver<Command>) -> WorkerResult {
    let start = spec.start;
    let worker = Rc::new(Worker::new(spec));
    let tasks = LocalSet::new();
    for place in 0..worker.proxies.len() {
        let begin = start + worker.start_of(place);
        tasks.spawn_local(live(Rc::clone(&worker), place, begin.into()));
    }
    runtime.block_on(tasks.run_until(serve(&worker, commands)));
    let states = worker.proxies.iter().map(|proxy| worker.final_state(proxy)).collect();
    let outcomes = worker.all_outcomes();
    // Closes the connections.
    drop(tasks);
    let core = worker.core.replace(Core::new(0, 0));
    WorkerResult { core, outcomes, states, cpu: thread_cpu() }
}

async fn serve(worker: &Rc<Worker>, mut commands: UnboundedReceiver<Command>) {
    while let Some(command) = commands.recv().await {
        match command {
            Command::Begin { change, action, selection, at, done } => {
                let waiting = begin(worker, change, &action, &selection, at);
                // The receiver is gone if the fleet is being dropped.
                let _ = done.send(waiting);
            }
            Command::Restore { change } => worker.restore(change),
            Command::Abandon { change } => {
                worker.core.borrow_mut().abandon(change, &worker.proxies, &worker.shared);
            }
            Command::Outcomes { change, reply } => {
                let _ = reply.send(worker.outcomes(change));
            }
            Command::Targets(targets) => *worker.targets.borrow_mut() = targets,
            Command::Finish => return,
        }
    }
}

/// Begins a change. Returns the number of awaited connections.
fn begin(worker: &Rc<Worker>, change: usize, action: &Action, selection: &Selection, at: Instant) -> u64 {
    let expectation = match action {
        Action::ExpectMarks(marks) => {
            worker.core.borrow_mut().expect_marks(change, marks, &worker.proxies, selection, at)
        }
        Action::RotateCertificates => worker.expect(Goal::Certificate, selection, at),
        Action::ExpectReturn | Action::Reconnect | Action::CutOff => {
            worker.expect(Goal::Return, selection, at)
        }
    };
    let waiting = expectation.waiting() as u64;
    worker.shared.expect(change, waiting);
    worker.core.borrow_mut().expectations.insert(change, expectation);
    let selected = worker.proxies.iter().filter(|proxy| selection.contains(proxy.index, &proxy.spec));
    match action {
        Action::ExpectMarks(_) | Action::ExpectReturn => {}
        Action::Reconnect => selected.for_each(Proxy::order),
        Action::CutOff => selected.for_each(|proxy| {
            proxy.cut_off.set(true);
            proxy.order();
        }),
        Action::RotateCertificates => rotate(worker, change, selected),
    }
    waiting
}

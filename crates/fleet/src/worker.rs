//! A thread of the fleet: its event loop, its proxies, and their shared state.

use crate::certificates::Certificates;
use crate::core::Core;
use crate::expectation::{Expectation, Goal};
use crate::proxy::{Ended, Phase, Proxy, live};
use crate::rotation::rotate;
use crate::shared::Shared;
use crate::spec::{BackoffSpec, CertificateSharing, Keepalive, Selection, Spread};
use crate::target::ResolvedTarget;
use crate::transport::READ_BUFFER_BYTES;
use crate::usage::thread_cpu;
use crate::xds::{Mark, ProxySpec, Session, XdsVariant};
use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::LocalSet;

/// Settings shared by all threads.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) xds: XdsVariant,
    pub(crate) spread: Spread,
    pub(crate) certificates: CertificateSharing,
    pub(crate) connect_rate: Option<f64>,
    pub(crate) message_limit_bytes: usize,
    pub(crate) keepalive: Keepalive,
    pub(crate) backoff: BackoffSpec,
    pub(crate) connect_timeout: Duration,
    pub(crate) seed: u64,
}

/// A connection that a thread must keep up.
#[derive(Clone, Debug)]
pub(crate) struct LinkSpec {
    /// Index among the fleet's connections.
    pub(crate) link: usize,
    /// Index of the proxy in the fleet's spec.
    pub(crate) index: usize,
    /// Index of the target that its figures belong to.
    pub(crate) target: usize,
    pub(crate) proxy: Arc<ProxySpec>,
    pub(crate) token: Option<Arc<str>>,
    /// Local address to connect from; absent: any.
    pub(crate) source: Option<IpAddr>,
}

/// Initial state of a thread.
pub(crate) struct WorkerSpec {
    pub(crate) shared: Arc<Shared>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) targets: Arc<[Arc<ResolvedTarget>]>,
    pub(crate) links: Vec<LinkSpec>,
    /// Start of the whole fleet's connection attempts.
    pub(crate) start: Instant,
}

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

/// Outcome of a change on a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub(crate) link: usize,
    pub(crate) target: usize,
    /// Time since the change's beginning; absent: not reached.
    pub(crate) arrival: Option<Duration>,
}

/// State of a proxy at the end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FinalState {
    pub(crate) link: usize,
    pub(crate) connected: bool,
    pub(crate) complete: bool,
    /// True if every expected change has arrived.
    pub(crate) reached: bool,
}

impl FinalState {
    pub(crate) fn has_converged(&self) -> bool {
        self.complete && self.reached
    }
}

/// Result of a thread.
pub(crate) struct WorkerResult {
    pub(crate) core: Core,
    /// Outcomes per change.
    pub(crate) outcomes: Vec<(usize, Vec<Outcome>)>,
    pub(crate) states: Vec<FinalState>,
    pub(crate) cpu: Duration,
}

/// State of a thread.
pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) settings: Arc<Settings>,
    targets: RefCell<Arc<[Arc<ResolvedTarget>]>>,
    pub(crate) proxies: Vec<Proxy>,
    pub(crate) certificates: Certificates,
    /// Read buffer.
    pub(crate) buffer: RefCell<Vec<u8>>,
    pub(crate) core: RefCell<Core>,
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
                let waiting = worker.begin(change, &action, &selection, at);
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

impl Worker {
    fn new(spec: WorkerSpec) -> Self {
        let WorkerSpec { shared, settings, targets, links, start: _ } = spec;
        let figures = if settings.spread == Spread::Each { targets.len() } else { 1 };
        let proxies = links.into_iter().enumerate().map(|(place, link)| {
            let session = Session::new(Arc::clone(&link.proxy), settings.xds);
            Proxy::new(link, place, session)
        });
        Self {
            proxies: proxies.collect(),
            certificates: Certificates::new(settings.certificates, settings.connect_timeout),
            targets: RefCell::new(targets),
            buffer: RefCell::new(vec![0; READ_BUFFER_BYTES]),
            core: RefCell::new(Core::new(figures, settings.message_limit_bytes)),
            shared,
            settings,
        }
    }

    /// When a proxy starts to connect, relative to the fleet's start.
    fn start_of(&self, place: usize) -> Duration {
        let rate = self.settings.connect_rate.filter(|rate| *rate > 0.0);
        rate.map_or(Duration::ZERO, |rate| Duration::from_secs_f64(self.proxies[place].link as f64 / rate))
    }

    /// Target of a connection. As behind a Service, replicas are chosen in turn at first, and at random on
    /// reconnects.
    pub(crate) fn target_for(&self, proxy: &Proxy, attempt: usize) -> Arc<ResolvedTarget> {
        let targets = self.targets.borrow();
        let place = match self.settings.spread {
            Spread::Each => proxy.target,
            Spread::Shared if attempt == 0 => proxy.index,
            Spread::Shared => mixed(self.settings.seed, proxy.link as u64, attempt as u64) as usize,
        };
        Arc::clone(&targets[place % targets.len()])
    }

    /// Called when a connection or a connection attempt has ended.
    pub(crate) fn ended(&self, proxy: &Proxy, ended: &Ended) {
        let phase = proxy.phase.replace(Phase::Down);
        let now = Instant::now();
        self.core.borrow_mut().ended(proxy, phase, ended, now, &self.shared);
    }

    /// Begins a change. Returns the number of awaited connections.
    fn begin(self: &Rc<Self>, change: usize, action: &Action, selection: &Selection, at: Instant) -> u64 {
        let expectation = match action {
            Action::ExpectMarks(marks) => {
                self.core.borrow_mut().expect_marks(change, marks, &self.proxies, selection, at)
            }
            Action::RotateCertificates => self.expect(Goal::Certificate, selection, at),
            Action::ExpectReturn | Action::Reconnect | Action::CutOff => {
                self.expect(Goal::Return, selection, at)
            }
        };
        let waiting = expectation.waiting() as u64;
        self.shared.expect(change, waiting);
        self.core.borrow_mut().expectations.insert(change, expectation);
        let selected = self.proxies.iter().filter(|proxy| selection.contains(proxy.index, &proxy.spec));
        match action {
            Action::ExpectMarks(_) | Action::ExpectReturn => {}
            Action::Reconnect => selected.for_each(Proxy::order),
            Action::CutOff => selected.for_each(|proxy| {
                proxy.cut_off.set(true);
                proxy.order();
            }),
            Action::RotateCertificates => rotate(self, change, selected),
        }
        waiting
    }

    fn expect(&self, goal: Goal, selection: &Selection, at: Instant) -> Expectation {
        let expected =
            self.proxies.iter().map(|proxy| u16::from(selection.contains(proxy.index, &proxy.spec)));
        let mut expectation = Expectation::new(goal, at, expected.collect());
        // A proxy without a connection cannot lose it before the return.
        let down = self.proxies.iter().filter(|proxy| proxy.phase.get() == Phase::Down);
        down.for_each(|proxy| expectation.lost(proxy.place));
        expectation
    }

    fn restore(&self, change: usize) {
        let core = self.core.borrow();
        let Some(expectation) = core.expectations.get(&change) else { return };
        for proxy in self.proxies.iter().filter(|proxy| expectation.expects(proxy.place)) {
            proxy.cut_off.set(false);
            proxy.order();
        }
    }

    fn outcomes(&self, change: usize) -> Vec<Outcome> {
        let core = self.core.borrow();
        let outcomes = core.expectations.get(&change).into_iter().flat_map(Expectation::outcomes);
        let located = outcomes.map(|(place, arrival)| {
            let proxy = &self.proxies[place];
            Outcome { link: proxy.link, target: proxy.target, arrival }
        });
        located.collect()
    }

    fn all_outcomes(&self) -> Vec<(usize, Vec<Outcome>)> {
        let changes: Vec<_> = self.core.borrow().expectations.keys().copied().collect();
        changes.into_iter().map(|change| (change, self.outcomes(change))).collect()
    }

    fn final_state(&self, proxy: &Proxy) -> FinalState {
        let core = self.core.borrow();
        let phase = proxy.phase.get();
        FinalState {
            link: proxy.link,
            connected: phase != Phase::Down,
            complete: phase == Phase::Complete,
            reached: !core.expectations.values().any(|expectation| expectation.misses(proxy.place)),
        }
    }
}

/// A pseudorandom number.
fn mixed(seed: u64, link: u64, attempt: u64) -> u64 {
    use rand::{RngExt as _, SeedableRng as _};
    let seed = seed ^ link.rotate_left(20) ^ attempt.rotate_left(44);
    rand::rngs::ChaCha8Rng::seed_from_u64(seed).random()
}

//! A running fleet, as its caller sees it.

use crate::error::FleetError;
use crate::proxy::LinkSpec;
use crate::result::{self, Ending};
use crate::sampler::Sampler;
use crate::shared::Shared;
use crate::spec::{ChangeId, ChangeMarks, FleetSpec, Security, Selection, Spread, Target, WrittenAt};
use crate::target::ResolvedTarget;
use crate::thread::{Action, Command, WorkerResult, run};
use crate::transport::{Stamping, check_timestamps, wait_ended};
use crate::usage::{allow_open_files, memory_bytes};
use crate::worker::{Outcome, WorkerSpec};
use crate::xds::{Mark, ProxySpec};
use results::{FleetChange, FleetEvent, FleetResult};
use std::mem;
use std::num::NonZeroUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tokio::runtime;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// Open files in addition to connections: the caller's own, each thread's event loop, connections to the
/// certificate authority.
const SPARE_FILES: u64 = 512;

/// Simulated proxies with their connections. Dropping it closes all connections.
#[derive(Debug)]
pub struct Fleet {
    shared: Arc<Shared>,
    xds: String,
    spread: Spread,
    proxies: Arc<[Arc<ProxySpec>]>,
    targets: Mutex<Vec<Arc<ResolvedTarget>>>,
    threads: Vec<Thread>,
    sampler: Sampler,
    changes: Mutex<Vec<ChangeRecord>>,
    started_at: jiff::Timestamp,
    /// Absent without a loopback: the kernel then starts to stamp shortly after the first connection.
    stamping: Option<Stamping>,
    /// Error of kernel timestamps, measured before the first connection.
    timestamp_check: Option<Duration>,
}

#[derive(Debug)]
struct Thread {
    commands: UnboundedSender<Command>,
    handle: JoinHandle<WorkerResult>,
}

/// A change and the times of its write.
#[derive(Clone, Debug)]
pub(crate) struct ChangeRecord {
    pub(crate) kind: String,
    pub(crate) what: ChangeClass,
    pub(crate) objects: usize,
    pub(crate) begun: Instant,
    pub(crate) written: Option<WrittenAt>,
    pub(crate) failure: Option<String>,
    pub(crate) expected: u64,
}

/// Kind of a change, by which it appears in the result.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ChangeClass {
    /// A change of the mesh: part of the fleet's convergence.
    Mesh,
    /// A change of the proxies: all of them reconnect at once, or get new certificates.
    OfProxies,
    /// Reported both as an outage and as a change.
    Restart,
    /// Reported only as an outage.
    CutOff,
}

/// Progress of a wait.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Waited {
    /// Connections that were awaited.
    pub expected: u64,
    /// Awaited connections that were reached.
    pub reached: u64,
}

impl Waited {
    /// True if all awaited connections were reached.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.reached == self.expected
    }
}

/// Counters of a running fleet.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FleetStatus {
    /// Seconds since the start.
    pub seconds: f64,
    /// Number of connections that the fleet should have.
    pub wanted: u64,
    /// Open connections.
    pub connected: u64,
    /// Connections with a complete configuration.
    pub complete: u64,
    /// Responses received.
    pub pushes: u64,
    /// Total size of their bodies.
    pub bytes: u64,
    /// Resident memory of this process in bytes.
    pub memory_bytes: u64,
}

/// Ends the waits of a fleet from another place, such as a signal thread.
#[derive(Clone, Debug)]
pub struct Interrupter(Arc<Shared>);

impl Interrupter {
    /// Ends all current and future waits of the fleet.
    pub fn interrupt(&self) {
        self.0.interrupt();
    }
}

impl Fleet {
    /// Starts the threads; proxies begin to connect at once.
    ///
    /// # Errors
    /// Returns an error if the spec is invalid or exceeds the limits of this machine.
    pub fn start(mut spec: FleetSpec) -> Result<Self, FleetError> {
        let targets: Vec<_> = spec.targets.iter().map(resolve).collect::<Result<_, _>>()?;
        check(&spec)?;
        let copies = if spec.spread == Spread::Each { targets.len() } else { 1 };
        let wanted = spec.proxies.len() * copies;
        let needed = wanted as u64 + SPARE_FILES;
        allow_open_files(needed).map_err(|limit| FleetError::OpenFiles { needed, limit })?;
        let threads = spec.threads.unwrap_or_else(default_threads).clamp(1, wanted);
        let stamping = Stamping::start().ok();
        let timestamp_check = stamping.as_ref().and_then(|_| check_timestamps());
        let shared = Arc::new(Shared::new(wanted as u64));
        let started_at = jiff::Timestamp::now();
        let own = mem::take(&mut spec.proxies).into_iter();
        let (proxies, credentials): (Vec<_>, Vec<_>) =
            own.map(|(proxy, credentials)| (Arc::new(proxy), credentials)).unzip();
        let settings = Arc::new(spec);
        let mut links = vec![Vec::new(); threads];
        for link in 0..wanted {
            let index = link % proxies.len();
            links[link % threads].push(LinkSpec {
                link,
                index,
                target: link / proxies.len(),
                proxy: Arc::clone(&proxies[index]),
                token: credentials[index].token.clone(),
                source: settings.source_addresses.get(&index).copied(),
            });
        }
        let start = shared.started;
        let threads = links.into_iter().enumerate().map(|(index, links)| {
            let (shared, settings) = (Arc::clone(&shared), Arc::clone(&settings));
            let targets = targets.clone().into();
            Thread::start(index, WorkerSpec { shared, settings, targets, links, start })
        });
        Ok(Self {
            threads: threads.collect::<Result<_, _>>()?,
            sampler: Sampler::start(Arc::clone(&shared)).map_err(FleetError::Thread)?,
            shared,
            xds: settings.xds.name().to_owned(),
            spread: settings.spread,
            proxies: proxies.into(),
            targets: Mutex::new(targets),
            changes: Mutex::new(Vec::new()),
            started_at,
            timestamp_check,
            stamping,
        })
    }

    /// The fleet's start, which all seconds in results are relative to.
    #[must_use]
    pub fn started(&self) -> Instant {
        self.shared.started
    }

    /// A handle that ends the fleet's waits.
    #[must_use]
    pub fn interrupter(&self) -> Interrupter {
        Interrupter(Arc::clone(&self.shared))
    }

    /// Current counters.
    #[must_use]
    pub fn status(&self) -> FleetStatus {
        let counters = &self.shared.counters;
        FleetStatus {
            seconds: self.shared.seconds(Instant::now()),
            wanted: self.shared.wanted,
            connected: counters.connected.load(Relaxed),
            complete: counters.complete.load(Relaxed),
            pushes: counters.pushes.load(Relaxed),
            bytes: counters.bytes.load(Relaxed),
            memory_bytes: memory_bytes(),
        }
    }

    /// Waits until every proxy has a complete configuration, or until `deadline`.
    pub fn wait_complete(&self, deadline: Instant) -> Waited {
        let complete = || self.shared.counters.complete.load(Relaxed);
        self.shared.wait(deadline, || complete() >= self.shared.wanted);
        Waited { expected: self.shared.wanted, reached: complete().min(self.shared.wanted) }
    }

    /// Starts to expect a change. Call it before the change's first write, and [`Self::written`] after its last.
    pub fn expect(&self, change: ChangeMarks) -> ChangeId {
        let ChangeMarks { kind, marks, expected, objects } = change;
        self.begin(kind, ChangeClass::Mesh, objects, &Action::ExpectMarks(marks.into()), expected)
    }

    /// Expects that a selection, which was just cut off from outside, catches up: it receives these marks
    /// once it can be reached again. The result lists this as an outage, even if connections survive.
    pub fn expect_catching_up(&self, cause: &str, marks: Vec<Mark>, selection: Selection) -> ChangeId {
        self.begin(cause.to_owned(), ChangeClass::CutOff, 0, &Action::ExpectMarks(marks.into()), selection)
    }

    /// Records the times of a change's write.
    pub fn written(&self, change: ChangeId, first_sent: Instant, acknowledged: Instant) {
        if let Some(record) = lock(&self.changes).get_mut(change.0) {
            record.written = Some(WrittenAt { first_sent, acknowledged });
        }
    }

    /// Records that a change could not be made or followed: no proxy is expected to receive it.
    pub fn failed(&self, change: ChangeId, failure: impl Into<String>) {
        if let Some(record) = lock(&self.changes).get_mut(change.0) {
            record.failure = Some(failure.into());
            record.expected = 0;
        }
        for thread in &self.threads {
            let _ = thread.commands.send(Command::Abandon { change: change.0 });
        }
    }

    /// Waits until a change has reached all expected connections, or until `deadline`.
    pub fn wait(&self, change: ChangeId, deadline: Instant) -> Waited {
        self.shared.wait(deadline, || self.shared.waiting(change.0) == 0);
        self.reached(change)
    }

    /// Progress of a change.
    #[must_use]
    pub fn reached(&self, change: ChangeId) -> Waited {
        let expected = lock(&self.changes).get(change.0).map_or(0, |record| record.expected);
        Waited { expected, reached: expected.saturating_sub(self.shared.waiting(change.0)) }
    }

    /// A change in the form of the result, as of now: one entry, or one per target.
    #[must_use]
    pub fn change(&self, change: ChangeId) -> Vec<FleetChange> {
        let (sender, receiver) = mpsc::channel();
        for thread in &self.threads {
            // A thread that has ended sends no outcomes.
            let _ = thread.commands.send(Command::Outcomes { change: change.0, reply: sender.clone() });
        }
        drop(sender);
        let outcomes: Vec<Outcome> = receiver.iter().flatten().collect();
        let Some(record) = lock(&self.changes).get(change.0).cloned() else { return Vec::new() };
        result::changes(&record, &outcomes, self.copies(), &self.shared)
    }

    /// Adds an event at the current time to the timeline.
    pub fn event(&self, kind: &str, detail: impl Into<String>) {
        self.shared.event(Instant::now(), kind, detail.into());
    }

    /// Adds an event at another time to the timeline.
    pub fn event_at(&self, event: FleetEvent) {
        self.shared.add_event(event);
    }

    /// The timeline so far.
    #[must_use]
    pub fn events(&self) -> Vec<FleetEvent> {
        self.shared.events()
    }

    /// Waits until a condition holds, or until `deadline`. Returns true if it holds.
    pub fn wait_until(&self, deadline: Instant, mut holds: impl FnMut(&Self) -> bool) -> bool {
        self.shared.wait(deadline, || holds(self))
    }

    /// The fleet's start by the wall clock, in seconds since 1970.
    #[must_use]
    pub fn started_at_unix_s(&self) -> f64 {
        self.started_at.as_nanosecond() as f64 / 1e9
    }

    /// Ends the connections of a selection, which reconnects at once. A connection is reached once it has a
    /// complete configuration again.
    pub fn reconnect(&self, kind: &str, selection: Selection) -> ChangeId {
        self.begin(kind.to_owned(), ChangeClass::OfProxies, 0, &Action::Reconnect, selection)
    }

    /// Expects that a selection loses its connections through an external cause, such as a restart of istiod,
    /// and returns.
    pub fn expect_return(&self, cause: &str, selection: Selection) -> ChangeId {
        self.begin(cause.to_owned(), ChangeClass::Restart, 0, &Action::ExpectReturn, selection)
    }

    /// Ends the connections of a selection, which stays disconnected until [`Self::restore`].
    pub fn cut_off(&self, cause: &str, selection: Selection) -> ChangeId {
        self.begin(cause.to_owned(), ChangeClass::CutOff, 0, &Action::CutOff, selection)
    }

    /// Lets proxies that were cut off connect again.
    pub fn restore(&self, cut_off: ChangeId) {
        self.shared.event(Instant::now(), "restored", String::new());
        for thread in &self.threads {
            let _ = thread.commands.send(Command::Restore { change: cut_off.0 });
        }
    }

    /// Requests new certificates for a selection. A connection is reached once it has one, which its next
    /// connection uses.
    ///
    /// # Errors
    /// Returns an error if a control plane is connected without TLS, over which certificates are requested.
    pub fn rotate_certificates(&self, selection: Selection) -> Result<ChangeId, FleetError> {
        if let Some(target) = lock(&self.targets).iter().find(|target| target.tls.is_none()) {
            return Err(FleetError::NoAuthority(target.address.clone()));
        }
        let kind = "certificate-rotation".to_owned();
        Ok(self.begin(kind, ChangeClass::OfProxies, 0, &Action::RotateCertificates, selection))
    }

    /// Adds a replica, which returning proxies may connect to (only with [`Spread::Shared`]).
    ///
    /// # Errors
    /// Returns an error if its address cannot be resolved or its TLS cannot be set up.
    pub fn add_target(&self, target: &Target) -> Result<(), FleetError> {
        let target = resolve(target)?;
        let mut targets = lock(&self.targets);
        targets.push(target);
        self.announce(&targets);
        Ok(())
    }

    /// Removes a replica: no proxy returns to it, but connected ones stay. The last replica cannot be removed.
    pub fn remove_target(&self, address: &str) {
        let mut targets = lock(&self.targets);
        if targets.iter().any(|target| target.address != address) {
            targets.retain(|target| target.address != address);
            self.announce(&targets);
        }
    }

    fn announce(&self, targets: &[Arc<ResolvedTarget>]) {
        if self.spread == Spread::Shared {
            for thread in &self.threads {
                let _ = thread.commands.send(Command::Targets(targets.into()));
            }
        }
    }

    /// Number of copies of the whole fleet.
    fn copies(&self) -> usize {
        if self.proxies.is_empty() { 1 } else { self.shared.wanted as usize / self.proxies.len() }
    }

    fn begin(
        &self,
        kind: String,
        what: ChangeClass,
        objects: usize,
        action: &Action,
        selection: Selection,
    ) -> ChangeId {
        let at = Instant::now();
        match what {
            ChangeClass::Mesh => self.shared.change_event(at, &kind),
            _ => self.shared.event(at, "action", kind.clone()),
        }
        self.shared.set_trigger(&kind);
        let record =
            ChangeRecord { kind, what, objects, begun: at, written: None, failure: None, expected: 0 };
        let change = {
            let mut changes = lock(&self.changes);
            changes.push(record);
            changes.len() - 1
        };
        let (done, processed) = mpsc::channel();
        let selection = Arc::new(selection);
        for thread in &self.threads {
            let (action, selection, done) = (action.clone(), Arc::clone(&selection), done.clone());
            let _ = thread.commands.send(Command::Begin { change, action, selection, at, done });
        }
        drop(done);
        let expected = processed.iter().sum();
        lock(&self.changes)[change].expected = expected;
        ChangeId(change)
    }

    /// Closes all connections and returns everything measured.
    #[must_use]
    pub fn finish(self) -> FleetResult {
        let duration = self.shared.started.elapsed();
        for thread in &self.threads {
            let _ = thread.commands.send(Command::Finish);
        }
        let threads = self.threads.into_iter().map(Thread::finish).collect();
        let timestamp_check =
            self.timestamp_check.max(self.stamping.and_then(|_stamping| check_timestamps()));
        let targets = self.targets.into_inner().unwrap_or_else(PoisonError::into_inner);
        result::assemble(Ending {
            duration,
            started_at: self.started_at,
            xds: self.xds,
            spread: self.spread,
            proxies: self.proxies,
            targets,
            threads,
            samples: self.sampler.finish(),
            changes: self.changes.into_inner().unwrap_or_else(PoisonError::into_inner),
            timestamp_check,
            shared: self.shared,
        })
    }
}

/// tokio's default.
const MIN_EVENTS_PER_POLL: usize = 1024;

impl Thread {
    fn start(index: usize, spec: WorkerSpec) -> Result<Self, FleetError> {
        // One poll of the kernel reports all connections that have something to read.
        let events = spec.links.len().max(MIN_EVENTS_PER_POLL);
        let mut runtime = runtime::Builder::new_current_thread();
        runtime.enable_all().max_io_events_per_tick(events).on_thread_unpark(wait_ended);
        let runtime = runtime.build().map_err(FleetError::Thread)?;
        let (commands, received) = unbounded_channel();
        let thread = thread::Builder::new().name(format!("fleet-{index}"));
        let handle = thread.spawn(move || run(spec, &runtime, received)).map_err(FleetError::Thread)?;
        Ok(Self { commands, handle })
    }

    fn finish(self) -> WorkerResult {
        self.handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

fn resolve(target: &Target) -> Result<Arc<ResolvedTarget>, FleetError> {
    ResolvedTarget::new(target).map(Arc::new)
}

fn check(spec: &FleetSpec) -> Result<(), FleetError> {
    if spec.targets.is_empty() {
        return Err(FleetError::NoTarget);
    }
    if spec.proxies.is_empty() {
        return Err(FleetError::NoProxies);
    }
    let needs_token = spec.targets.iter().any(|target| target.security != Security::Plaintext);
    let without = spec.proxies.iter().find(|(_, credentials)| credentials.token.is_none());
    match without.filter(|_| needs_token) {
        Some((proxy, _)) => Err(FleetError::NoToken(format!("{}.{}", proxy.name, proxy.namespace))),
        None => Ok(()),
    }
}

fn default_threads() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get).div_ceil(2)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

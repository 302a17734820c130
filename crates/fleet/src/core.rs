//! State shared by the proxies of a thread: store of the sessions, pursuits and figures.

use crate::expectation::{Expectation, Goal};
use crate::figures::{Figures, ReadLag, Reading};
use crate::outage::{Loss, Losses};
use crate::proxy::{Ended, Phase, Proxy};
use crate::shared::Shared;
use crate::spec::Selection;
use crate::transport::{Ending, EndingKind, Stamp};
use crate::xds::{
    Event, Mark, MarkId, Marks, Outbox, ProxyKind, ProxySpec, Receiver, ResourceType, Session, Store,
    StreamBroken,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// State shared by the proxies of a thread.
pub(crate) struct Core {
    store: Store,
    marks: Marks,
    /// The change that each mark belongs to.
    changes: HashMap<MarkId, usize>,
    pub(crate) outbox: Outbox,
    pub(crate) events: Vec<Event>,
    message_limit_bytes: u64,
    /// Figures per target.
    pub(crate) figures: Vec<Figures>,
    pub(crate) read_lag: ReadLag,
    /// Open and past pursuits, by change.
    pub(crate) expectations: BTreeMap<usize, Expectation>,
    pub(crate) losses: Losses,
    /// Kinds of violations and endings that are already in the timeline.
    reported: BTreeSet<&'static str>,
}

impl Core {
    pub(crate) fn new(targets: usize, message_limit_bytes: usize) -> Self {
        Self {
            store: Store::new(),
            marks: Marks::new(),
            changes: HashMap::new(),
            outbox: Outbox::new(),
            events: Vec::new(),
            message_limit_bytes: message_limit_bytes as u64,
            figures: vec![Figures::default(); targets],
            read_lag: ReadLag::default(),
            expectations: BTreeMap::new(),
            losses: Losses::default(),
            reported: BTreeSet::new(),
        }
    }

    /// The part of the state that sessions receive with.
    fn receiver(&mut self) -> Receiver<'_> {
        Receiver {
            store: &mut self.store,
            marks: &self.marks,
            events: &mut self.events,
            message_limit_bytes: self.message_limit_bytes,
        }
    }

    /// Opens the marks of a change and has the sessions of a selection look for those that concern them.
    pub(crate) fn expect_marks(
        &mut self,
        change: usize,
        marks: &[Mark],
        proxies: &[Proxy],
        selection: &Selection,
        at: Instant,
    ) -> Expectation {
        let opened: Vec<_> =
            marks.iter().map(|mark| (self.marks.open(mark.clone()), mark.resource_type)).collect();
        self.changes.extend(opened.iter().map(|(id, _)| (*id, change)));
        let expected = proxies.iter().map(|proxy| {
            if !selection.contains(proxy.index, &proxy.spec) {
                return 0;
            }
            let mut session = proxy.session.borrow_mut();
            let concerning = opened.iter().filter(|(_, of_type)| subscribes(&proxy.spec, *of_type));
            concerning.map(|(id, _)| session.expect(*id)).count() as u16
        });
        Expectation::new(Goal::Marks, at, expected.collect())
    }

    /// Called when the control plane's settings arrive.
    pub(crate) fn connected(&mut self, proxy: &Proxy, elapsed: Duration, shared: &Shared) {
        self.figures[proxy.target].connect.record(elapsed);
        if shared.counters.connected.fetch_add(1, Relaxed) + 1 == shared.wanted {
            shared.event(Instant::now(), "all-connected", String::new());
        }
    }

    /// Called when the stream is open: the session subscribes.
    pub(crate) fn subscribe(&mut self, proxy: &Proxy) {
        proxy.session.borrow_mut().connected(&self.store, &mut self.outbox);
    }

    pub(crate) fn message_started(
        &mut self,
        session: &mut Session,
        length: usize,
    ) -> Result<(), StreamBroken> {
        session.message_start(length as u64, &mut self.receiver())
    }

    pub(crate) fn message_continued(
        &mut self,
        session: &mut Session,
        bytes: &[u8],
        stamp: &Stamp,
    ) -> Result<(), StreamBroken> {
        session.receive(bytes, stamp.received, &mut self.receiver())
    }

    pub(crate) fn message_ended(&mut self, session: &mut Session, stamp: &Stamp) -> Result<(), StreamBroken> {
        self.read_lag.record(stamp);
        let mut receiver = Receiver {
            store: &mut self.store,
            marks: &self.marks,
            events: &mut self.events,
            message_limit_bytes: self.message_limit_bytes,
        };
        session.message_end(stamp.received, &mut receiver, &mut self.outbox)
    }

    /// Counts what a session reported for the last read; `began` is the start of its connection attempt.
    pub(crate) fn take_events(&mut self, proxy: &Proxy, began: Instant, reading: &Reading, shared: &Shared) {
        let mut events = std::mem::take(&mut self.events);
        for (place, event) in events.drain(..).enumerate() {
            match event {
                Event::Response(response) => {
                    let figures = &mut self.figures[proxy.target];
                    figures.responded(&response, shared.trigger.load(Relaxed));
                    shared.counters.pushes.fetch_add(1, Relaxed);
                    shared.counters.bytes.fetch_add(response.bytes, Relaxed);
                }
                Event::Arrived { mark, at } => {
                    self.note_arrival(mark, reading, place < reading.followed_events);
                    self.arrived(proxy, mark, at, shared);
                }
                Event::Complete { at } => self.completed(proxy, began, at, shared),
                Event::Violation { kind, resource_type } => {
                    self.figures[proxy.target].violated(kind.name());
                    let of_type = resource_type.map_or("unknown type", ResourceType::name);
                    self.report(kind.name(), proxy, of_type, shared);
                }
            }
        }
        self.events = events;
    }

    fn note_arrival(&mut self, mark: MarkId, reading: &Reading, is_followed: bool) {
        let expectation = self.changes.get(&mark).and_then(|change| self.expectations.get(change));
        if let Some(expectation) = expectation {
            self.read_lag.record_arrival(reading, is_followed, expectation.begun());
        }
    }

    fn arrived(&mut self, proxy: &Proxy, mark: MarkId, at: Instant, shared: &Shared) {
        let Some(change) = self.changes.get(&mark).copied() else { return };
        let Some(expectation) = self.expectations.get_mut(&change) else { return };
        if expectation.arrived(proxy.place, at) {
            shared.reached(change);
        }
        if expectation.waiting() == 0 {
            self.close_marks(change);
        }
    }

    /// Ends the search for a change's marks and returns these marks.
    fn close_marks(&mut self, change: usize) -> Vec<MarkId> {
        let of_change = self.changes.iter().filter(|(_, of)| **of == change);
        let closed: Vec<_> = of_change.map(|(mark, _)| *mark).collect();
        for mark in &closed {
            self.marks.close(*mark);
            self.changes.remove(mark);
        }
        closed
    }

    /// Stops expecting a change.
    pub(crate) fn abandon(&mut self, change: usize, proxies: &[Proxy], shared: &Shared) {
        let Some(expectation) = self.expectations.remove(&change) else { return };
        (0..expectation.waiting()).for_each(|_| shared.reached(change));
        let closed = self.close_marks(change);
        for proxy in proxies.iter().filter(|proxy| expectation.waits_for(proxy.place)) {
            let mut session = proxy.session.borrow_mut();
            closed.iter().for_each(|mark| session.forget(*mark));
        }
    }

    fn completed(&mut self, proxy: &Proxy, began: Instant, at: Instant, shared: &Shared) {
        proxy.phase.set(Phase::Complete);
        let since = proxy.connecting_since.take().unwrap_or(began);
        // Only the first time counts: a return is timed by its change or outage.
        if !proxy.was_complete.replace(true) {
            self.figures[proxy.target].first_configuration.record(at.saturating_duration_since(since));
        }
        self.losses.recovered(proxy.place, at.saturating_duration_since(shared.started));
        if shared.counters.complete.fetch_add(1, Relaxed) + 1 == shared.wanted {
            shared.event(at, "all-complete", String::new());
            shared.notify();
        }
        for (change, expectation) in &mut self.expectations {
            if expectation.goal == Goal::Return && expectation.arrived(proxy.place, at) {
                shared.reached(*change);
            }
        }
    }

    /// Called when a certificate is signed.
    pub(crate) fn certified(&mut self, change: usize, proxy: &Proxy, at: Instant, shared: &Shared) {
        if self.expectations.get_mut(&change).is_some_and(|expectation| expectation.arrived(proxy.place, at))
        {
            shared.reached(change);
        }
    }

    /// Counts a lost connection or a refused certificate, by its cause.
    pub(crate) fn failed(&mut self, proxy: &Proxy, ending: &Ending, shared: &Shared) {
        let kind = ending.kind.name();
        self.figures[proxy.target].violated(kind);
        self.report(kind, proxy, &ending.detail, shared);
    }

    /// Called when a connection or a connection attempt has ended.
    pub(crate) fn ended(&mut self, proxy: &Proxy, phase: Phase, ended: &Ended, at: Instant, shared: &Shared) {
        proxy.session.borrow_mut().disconnected(&mut self.store);
        match phase {
            Phase::Complete => _ = shared.counters.complete.fetch_sub(1, Relaxed),
            Phase::Connected | Phase::Down => {}
        }
        if phase != Phase::Down {
            shared.counters.connected.fetch_sub(1, Relaxed);
        }
        let mut is_awaited = false;
        for expectation in
            self.expectations.values_mut().filter(|expectation| expectation.goal == Goal::Return)
        {
            is_awaited |= expectation.waits_for(proxy.place);
            if phase != Phase::Down {
                expectation.lost(proxy.place);
            }
        }
        let Ended::By(ending) = ended else { return };
        let kind = ending.kind.name();
        if ending.kind != EndingKind::Broken {
            self.failed(proxy, ending, shared);
        }
        if phase != Phase::Down && !is_awaited {
            let at = at.saturating_duration_since(shared.started);
            self.losses.lost(proxy.place, Loss { link: proxy.link, at, cause: kind, recovered: None });
        }
    }

    /// Adds the first occurrence of each kind to the timeline.
    pub(crate) fn report(&mut self, kind: &'static str, proxy: &Proxy, detail: &str, shared: &Shared) {
        if self.reported.insert(kind) {
            shared.event(Instant::now(), kind, format!("first at {}: {detail}", proxy.name()));
        }
    }
}

/// True if the proxy ever subscribes to this type.
fn subscribes(proxy: &ProxySpec, resource_type: ResourceType) -> bool {
    let is_ztunnel = proxy.kind == ProxyKind::Ztunnel;
    match resource_type {
        ResourceType::Addresses | ResourceType::Authorizations => is_ztunnel,
        ResourceType::Workloads => proxy.kind == ProxyKind::Waypoint,
        ResourceType::NameTables => proxy.kind == ProxyKind::Sidecar && proxy.dns_capture,
        _ => !is_ztunnel,
    }
}

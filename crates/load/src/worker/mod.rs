//! The worker loop: sends due requests on free connections, receives responses, and maintains the
//! connections.
//!
//! A worker is one thread. It is generic over what bytes mean ([`Codec`]) and how they move ([`Network`]),
//! and asks a [`Schedule`] when requests are due. New protocols and schedules use the same loop.

mod backlog;
mod buffers;
mod connection;
mod per_request;
mod pools;
mod receiving;
mod retries;
mod roaming;
mod sending;
mod sessions;
mod steps;
#[cfg(test)]
mod stream_tests;
mod unreachable;
mod upkeep;
mod waiting;

use crate::clock::{Clock, Nanos, SECOND};
use crate::error::ErrorKind;
use crate::lookups::{Addresses, FoundAddresses};
use crate::network::Network;
use crate::pacing::{Pacer, SpareCpu, Spent};
use crate::protocol::Codec;
use crate::recorder::Recorder;
use crate::schedule::Schedule;
use crate::second::SecondCounts;
use crate::source::SourceTurns;
use crate::target::{Assignment, Choice, Chosen, Request, Selector, ServerPer, SessionKind, Target};
use crate::usage::{QueueWait, Switches, thread_cpu};
use backlog::Backlogs;
use buffers::Buffers;
use connection::{Connection, State};
use per_request::PerRequest;
use pools::{Pools, Waiting};
use results::Pacing;
use retries::Retries;
use sessions::Sessions;
use std::io;
use std::iter::zip;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
pub(crate) use unreachable::Unreachable;

/// Time after the end for which a slot that was due before it may still be sent: longer than a thread is usually
/// late.
const END_GRACE: Nanos = 10_000_000;
/// A backlog of at most one part in this many of the window is still sent after its end, within the timeout:
/// a target that stalls at the end then has its due share in the percentiles. A larger backlog is dropped:
/// the target is saturated, and the run ends on time.
const CATCH_UP_SHARE: Nanos = 10;
/// Steps in which an unsent backlog is counted: the waits of its requests are known to one part in this many.
const BACKLOG_STEPS: Nanos = 256;
/// Time for which responses in flight are awaited once the run is interrupted.
const INTERRUPTED_TIMEOUT: Nanos = SECOND;
/// Size of the read buffer, bytes.
const READ_BUFFER_BYTES: usize = 64 * 1024;

/// Phases of a run by its clock, whose 0 is the start of the warm-up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeline {
    pub(crate) window_start: Nanos,
    pub(crate) end: Nanos,
    /// Limit on opening a connection and on each request.
    pub(crate) timeout: Nanos,
    /// Limit on opening all connections before the start.
    pub(crate) connecting: Nanos,
}

/// Settings of a worker other than its schedule.
pub(crate) struct Plan<'a> {
    pub(crate) timeline: Timeline,
    pub(crate) targets: &'a [Target],
    /// Where the targets are.
    pub(crate) addresses: &'a FoundAddresses,
    /// URLs or kinds of requests, with the checks of their responses.
    pub(crate) choices: &'a [Choice],
    /// Kinds of sessions, and the session and step of each choice; empty if requests are independent.
    pub(crate) sessions: (&'a [SessionKind], Vec<(usize, usize)>),
    /// Seed of think times, and the number of the thread.
    pub(crate) seed: (u64, usize),
    pub(crate) server_per: ServerPer,
    /// Local addresses of the connections; `None`: as the kernel chooses.
    pub(crate) sources: Option<SourceTurns>,
    /// Each connection is closed after this many requests.
    pub(crate) requests_per_connection: Option<NonZeroU64>,
    /// Each request opens its own connection, of which there are at most this many at a time.
    pub(crate) most_per_request: Option<usize>,
    /// Seconds are handed over with all their distributions, not only response times.
    pub(crate) whole_seconds: bool,
    /// URLs that are measured apart; 0: none.
    pub(crate) urls: usize,
    pub(crate) pacing: Pacing,
    /// Usual lateness that requests may have with economical pacing.
    pub(crate) lag_tolerance: Nanos,
    /// Reports whether there is a CPU to spare for spinning.
    pub(crate) spare_cpu: &'a SpareCpu,
    pub(crate) stop: &'a AtomicBool,
}

/// Consumes each finished second; may return an empty one for reuse.
pub(crate) trait OnSecond: FnMut(SecondCounts) -> Option<SecondCounts> {}

impl<F: FnMut(SecondCounts) -> Option<SecondCounts>> OnSecond for F {}

/// One thread's part of a run.
pub(crate) struct Worker<'a, C: Codec, N> {
    timeline: Timeline,
    targets: &'a [Target],
    addresses: Addresses<'a>,
    choices: &'a [Choice],
    /// The requests of each target in the protocol's form.
    requests: Vec<Vec<C::Request>>,
    /// Each connection is closed after this many.
    requests_per_connection: u64,
    stop: &'a AtomicBool,
    schedule: Box<dyn Schedule>,
    network: N,
    connections: Vec<Connection<C>>,
    make_codec: Box<dyn Fn() -> C + 'a>,
    most_per_request: Option<usize>,
    /// Present while the schedule is followed, if each request opens its own connection.
    per_request: Option<PerRequest>,
    sources: Option<SourceTurns>,
    /// Selects the server and request of each slot.
    selector: Selector<'a>,
    /// Present if sessions are due instead of requests.
    sessions: Option<Sessions<'a>>,
    pools: Pools,
    /// Any free connection may take the next request, which is for its server: all connections are in the
    /// first pool.
    one_pool: bool,
    in_flight: usize,
    opening: usize,
    retries: Retries,
    /// Connections that may be opened at once.
    max_opening: usize,
    /// Open connections at the last upkeep.
    connections_open: usize,
    /// Time of the window for which connections of each pool could not be opened, added up over those that are open again.
    unreachable: Vec<Nanos>,
    /// Longest time in which a connection was opened.
    slowest_opening: Nanos,
    /// Connections with output that is held to be sent with other due requests: see [`Codec::MULTIPLEXED`].
    unsent: Vec<usize>,
    /// Empty output buffers for connections.
    buffers: Buffers,
    backlogs: Backlogs,
    /// The schedule is followed: from its start until nothing more is sent.
    following: bool,
    /// A connection was closed by its protocol before the start, and not refused.
    was_closed_in_order: bool,
    recorder: Recorder,
    pacer: Pacer<'a>,
    /// Age of the responses being read.
    reading_lag: Nanos,
    /// Last poll of the network: all that had come by then was read before this turn.
    polled_at: Nanos,
    /// The sleep before this turn that the network ended, from when until when.
    slept: Option<(Nanos, Nanos)>,
    queue_wait: Option<QueueWait>,
    /// Several messages of a response may come in one read, whose earliest arrival is kept.
    times_messages: bool,
    /// Nothing follows the response in what was read.
    is_last_of_read: bool,
    /// Lateness with which responses may be read to save CPU; `None` if reading must not be late.
    reads_late: Option<Nanos>,
    next_upkeep: Nanos,
    buffer: Vec<u8>,
}

/// Results of a worker.
pub(crate) struct WorkerOutcome {
    pub(crate) recorder: Recorder,
    /// Time from the start of the schedule until it began to follow it.
    pub(crate) start_delay: Nanos,
    /// Time at which it stopped sending: at the end, or earlier if the run was interrupted.
    pub(crate) stopped_at: Nanos,
    /// Fraction of the window for which this thread was on a CPU, 0 to 1.
    pub(crate) busy_fraction: f64,
    /// `busy_fraction` without the time spent spinning.
    pub(crate) working_fraction: f64,
    /// Context switches of the thread in the window.
    pub(crate) switches: Switches,
    /// Time spent waiting in the window.
    pub(crate) spent: Spent,
    /// CPU time of one sleep.
    pub(crate) sleep_cost: Nanos,
    /// Connections that were there at a time.
    pub(crate) connections: usize,
    /// Fewest requests that a server allowed at once on a connection, if fewer than asked for.
    pub(crate) peer_limit: Option<usize>,
    /// Connections that could not be opened, by server; of all servers together if a request takes any connection. Empty if each
    /// request opens its own.
    pub(crate) unreachable: Vec<Unreachable>,
}

impl<'a, C: Codec, N: Network> Worker<'a, C, N> {
    /// Creates a worker with its connections closed.
    pub(crate) fn new(
        plan: Plan<'a>,
        make_request: impl Fn(&Request) -> C::Request,
        make_codec: impl Fn() -> C + 'a,
        (schedule, selector): (Box<dyn Schedule>, Selector<'a>),
        network: N,
        Assignment { servers, places, roaming }: &Assignment,
    ) -> Self {
        let Plan { timeline, targets, choices, requests_per_connection, whole_seconds, stop, .. } = plan;
        let economical = plan.pacing == Pacing::Economical;
        let reads_late = economical.then_some(plan.lag_tolerance);
        let pacer = Pacer::new(plan.pacing, plan.lag_tolerance, plan.spare_cpu);
        let most_per_request = plan.most_per_request;
        let one_pool =
            (plan.server_per == ServerPer::Connection && !schedule.is_open()) || most_per_request.is_some();
        let pools = if one_pool {
            Pools::new(1, &vec![0; servers.len()], None)
        } else {
            Pools::new(targets.len(), servers, *roaming)
        };
        let (backlogs, unreachable) = (Backlogs::new(pools.len()), vec![0; pools.len()]);
        let (kinds, steps) = plan.sessions;
        let sessions =
            (!kinds.is_empty()).then(|| Sessions::new(kinds, (steps, &selector), timeline.end, plan.seed));
        let requests = targets.iter().map(|target| target.requests.iter().map(&make_request).collect());
        Self {
            timeline,
            targets,
            addresses: Addresses::new(plan.addresses),
            choices,
            requests: requests.collect(),
            requests_per_connection: match most_per_request {
                Some(_) => 1,
                None => requests_per_connection.map_or(u64::MAX, NonZeroU64::get),
            },
            stop,
            schedule,
            network,
            connections: zip(servers, places)
                .map(|(server, place)| {
                    Connection::new(*server, place % targets[*server].spread(), make_codec())
                })
                .collect(),
            make_codec: Box::new(make_codec),
            most_per_request,
            per_request: None,
            sources: plan.sources,
            selector,
            sessions,
            pools,
            one_pool,
            in_flight: 0,
            opening: 0,
            retries: Retries::default(),
            max_opening: upkeep::MAX_OPENING_BEFORE_START,
            connections_open: 0,
            unreachable,
            slowest_opening: 0,
            unsent: Vec::new(),
            buffers: Buffers::default(),
            backlogs,
            following: false,
            was_closed_in_order: false,
            recorder: Recorder::new(timeline.window_start, timeline.end, whole_seconds)
                .with_urls(plan.urls)
                .with_sessions(kinds),
            pacer,
            reading_lag: 0,
            polled_at: 0,
            slept: None,
            queue_wait: if C::MULTIPLEXED { QueueWait::of_thread() } else { None },
            times_messages: C::MULTIPLEXED,
            is_last_of_read: true,
            reads_late,
            next_upkeep: 0,
            buffer: vec![0; READ_BUFFER_BYTES],
        }
    }

    /// Opens the connections before the schedule starts. Returns how many are open.
    pub(crate) fn connect(&mut self, clock: &Clock) -> io::Result<usize> {
        let give_up = clock.now() + self.timeline.connecting;
        loop {
            let now = clock.now();
            self.upkeep(now);
            if self.is_settled() || now >= give_up || self.stop.load(Ordering::Relaxed) {
                break;
            }
            self.network.wait(Duration::from_millis(5))?;
            self.handle_events(clock)?;
        }
        self.wait_for_late_tls_rejection(clock, give_up)?;
        let is_reached = self.most_per_request.is_some() && self.was_closed_in_order;
        Ok(self.count_open().max(usize::from(is_reached)))
    }

    /// True if connecting is finished, successfully or not.
    fn is_settled(&mut self) -> bool {
        self.connections.iter().all(|connection| connection.is_settled(&self.addresses))
            // With more servers than connections, the first ones may be dead.
            && (self.count_open() > 0 || !self.try_others())
    }

    fn try_others(&mut self) -> bool {
        let roaming = self.pools.roaming.as_mut();
        roaming.is_some_and(|roaming| roaming.try_others(|server| self.addresses.of(server).len()))
    }

    fn count_open(&self) -> usize {
        self.connections.iter().filter(|connection| connection.state == State::Open).count()
    }

    /// Follows the schedule to its end. `clock` reads 0 at the start of the warm-up.
    pub(crate) fn run(mut self, clock: &Clock, mut on_second: impl OnSecond) -> io::Result<WorkerOutcome> {
        clock.wait_for_origin();
        let start_delay = clock.now();
        self.restart_times();
        (self.max_opening, self.following) = (usize::MAX, true);
        if let Some(most) = self.most_per_request {
            self.begin_per_request(most);
        }
        let (mut at_start, mut in_window) = ((thread_cpu(), Switches::default(), Spent::default()), false);
        let stopped_at = loop {
            let now = clock.now();
            if !in_window && now >= self.timeline.window_start {
                // A backlog of the warm-up would fill the window with requests that are not measured.
                self.skip_backlog_of_warmup();
                self.pacer.forget_pauses();
                (in_window, at_start) = (true, (thread_cpu(), Switches::of_thread(), self.pacer.spent()));
            }
            let stopped = self.stop.load(Ordering::Relaxed);
            if stopped {
                // What became due while the thread slept is not the target's fault.
                self.send_due(clock)?;
            }
            if stopped || self.has_sent_all(now) || self.gives_up_backlog(now) {
                break now.min(self.timeline.end);
            }
            let is_idle = self.sessions.as_ref().is_none_or(Sessions::is_idle);
            let none_left = self.in_flight == 0 && self.pools.is_empty() && is_idle;
            if let Some(last_answer) = self.schedule.used_up_since().filter(|_| none_left) {
                break last_answer.clamp(self.timeline.window_start, self.timeline.end);
            }
            self.send_due(clock)?;
            self.look_after(clock.now(), &mut on_second);
            self.wait(clock)?;
            self.handle_events(clock)?;
        };
        self.recorder.end_window(stopped_at);
        self.count_addresses();
        let peer_limit = self.connections.iter().filter_map(|connection| connection.codec.peer_limit()).min();
        let busy_s = thread_cpu().saturating_sub(at_start.0).as_secs_f64();
        let switches = Switches::of_thread().since(&at_start.1);
        let spent = self.pacer.spent().since(&at_start.2);
        let window_s = clock.now().saturating_sub(self.timeline.window_start) as f64 / 1e9;
        let unreachable = self.unreachable_until(stopped_at);
        if in_window {
            self.count_unsent(stopped_at);
        }
        self.drain(clock, &mut on_second)?;
        let fraction = |time_s: f64| {
            if in_window && window_s > 0.0 { (time_s / window_s).clamp(0.0, 1.0) } else { 0.0 }
        };
        Ok(WorkerOutcome {
            sleep_cost: self.pacer.sleep_cost(),
            connections: self.connections.len(),
            peer_limit,
            unreachable,
            recorder: self.recorder,
            start_delay,
            stopped_at,
            busy_fraction: fraction(busy_s),
            working_fraction: fraction(busy_s - spent.spun as f64 / 1e9),
            switches,
            spent,
        })
    }

    /// Ends a worker whose run does not start: only what connecting recorded is left.
    pub(crate) fn give_up(self) -> WorkerOutcome {
        WorkerOutcome {
            recorder: self.recorder,
            start_delay: 0,
            stopped_at: 0,
            busy_fraction: 0.0,
            working_fraction: 0.0,
            switches: Switches::default(),
            spent: Spent::default(),
            sleep_cost: self.pacer.sleep_cost(),
            connections: self.connections.len(),
            peer_limit: None,
            unreachable: Vec::new(),
        }
    }

    fn skip_backlog_of_warmup(&mut self) {
        let at = self.timeline.window_start;
        let untaken = self.schedule.skip_until(at);
        self.selector.skip(untaken);
        let mut skipped = untaken;
        for Waiting { chosen, .. } in self.pools.give_up(at) {
            skipped += 1;
            self.cut_session(&chosen);
        }
        skipped += self.sessions.as_mut().map_or(0, |sessions| sessions.give_up(at).len() as u64);
        // A client whose request is dropped continues.
        if !self.schedule.is_open() {
            (0..skipped).for_each(|_| self.schedule.request_ended(at));
        }
    }

    /// Gives up what was due and not sent until `stopped_at`, and counts it with its wait until then.
    fn count_unsent(&mut self, stopped_at: Nanos) {
        for Waiting { due, chosen } in self.pools.give_up(Nanos::MAX) {
            self.recorder.chosen_unsent(due, stopped_at.saturating_sub(due), &chosen);
            self.cut_session(&chosen);
        }
        let steps = self.sessions.as_mut().map(|sessions| sessions.give_up(stopped_at));
        for (due, choice) in steps.into_iter().flatten() {
            self.recorder.step_unsent(stopped_at.saturating_sub(due), choice);
        }
        let mut at = self.schedule.next_due().unwrap_or(stopped_at);
        let step = (stopped_at.saturating_sub(at) / BACKLOG_STEPS).max(1);
        while at < stopped_at {
            at = (at + step).min(stopped_at);
            let slots = self.schedule.skip_until(at);
            let mut arrived = Vec::new();
            self.recorder.unsent(slots, at - 1, stopped_at - at, || {
                let choice = self.selector.choose().choice;
                arrived.extend(self.sessions.as_ref().map(|sessions| sessions.kind_of(choice)));
                choice
            });
            // They are cut before their first step.
            arrived.into_iter().for_each(|kind| self.recorder.session_arrived(kind, at - 1));
        }
    }

    /// The session of a request that is given up ends.
    fn cut_session(&mut self, chosen: &Chosen) {
        if let (Some(sessions), Some(step)) = (&mut self.sessions, chosen.step) {
            sessions.cut(step);
        }
    }

    /// True if the end is reached and nothing due before it is left.
    fn has_sent_all(&self, now: Nanos) -> bool {
        now >= self.timeline.end && self.next_due().is_none() && self.pools.is_empty()
    }

    /// True if the remaining backlog at the end is dropped. In a closed loop it goes on while responses come: at most one request
    /// of each client waits, and dropping these would leave out the slowest.
    fn gives_up_backlog(&self, now: Nanos) -> bool {
        let Timeline { window_start, end, timeout, .. } = self.timeline;
        let is_served = !self.schedule.is_open() && self.in_flight > 0 && now < end + timeout;
        if now < end + END_GRACE || is_served {
            return false;
        }
        let oldest = self.next_due().into_iter().chain(self.pools.oldest_due()).min();
        let backlog = oldest.map_or(0, |due| end.saturating_sub(due));
        backlog > end.saturating_sub(window_start) / CATCH_UP_SHARE || now >= end + timeout
    }

    /// Sends nothing more and waits for responses in flight, each up to its timeout.
    fn drain(&mut self, clock: &Clock, on_second: &mut impl OnSecond) -> io::Result<()> {
        self.following = false;
        let mut give_up = clock.now() + self.timeline.timeout;
        let mut interrupted = false;
        while self.in_flight > 0 && clock.now() < give_up {
            if !interrupted && self.stop.load(Ordering::Relaxed) {
                interrupted = true;
                give_up = give_up.min(clock.now() + INTERRUPTED_TIMEOUT);
            }
            self.network.wait(Duration::from_millis(1))?;
            self.handle_events(clock)?;
            let now = clock.now();
            self.fail_overdue(now);
            let over = self.recorder.take_seconds(now, self.connections_open);
            self.hand_over(over, on_second);
        }
        self.fail_in_flight(
            clock.now(),
            if interrupted { ErrorKind::Interrupted } else { ErrorKind::Timeout },
        );
        let over = self.recorder.take_last_seconds(self.connections_open);
        self.hand_over(over, on_second);
        Ok(())
    }
}

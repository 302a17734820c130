//! The event loop of one thread: accepting, turns of connections, timers, stalls.
//!
//! Connections are registered once, edge-triggered, and never modified. So a request costs one wait (shared
//! with those that arrived together), one read and one write. The first worker accepts, and passes each
//! connection to the worker with the fewest. With separate listeners and few connections, some workers would
//! be idle while others get all the load.

use crate::connection::Connection;
use crate::counters::Tally;
use crate::http3::Http3;
use crate::http3::quic::{Arrival, Quic};
use crate::settings::{Protocol, Settings, Stall};
use crate::shared::Shared;
use crate::turn::Turn;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::{self, Errno};
use rustix::net::{SocketFlags, accept_with};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use rustls::ServerConfig;
use std::collections::{BTreeSet, VecDeque};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Maximum events fetched from the kernel at a time.
const EVENTS_PER_WAIT: usize = 256;
/// Maximum connections accepted before other events get their turn.
const ACCEPTS_PER_TURN: usize = 64;
/// Calls to receive datagrams before other events get their turn.
const DATAGRAM_READS_PER_TURN: usize = 8;
/// Pause before accepting again when there is no room for another connection.
const ACCEPT_REST_NS: u64 = 20_000_000;

/// Tokens of what is watched besides connections. A connection's token has its slot in the low half and a
/// generation above it; a listener's has its index.
const STOP: u64 = u64::MAX;
const INBOX: u64 = u64::MAX - 1;
const SWEEP: u64 = u64::MAX - 2;
const DATAGRAMS: u64 = u64::MAX - 3;
const LISTENERS: u64 = u64::MAX - (1 << 16);

/// Connections in transfer to a worker.
#[derive(Debug)]
pub(crate) struct Inbox {
    /// Each with the index of its listener.
    sockets: Mutex<Vec<(OwnedFd, usize)>>,
    /// The worker must stop: another one failed.
    ended: AtomicBool,
    wakeup_fd: OwnedFd,
}

impl Inbox {
    pub(crate) fn new() -> io::Result<Self> {
        let wakeup_fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { sockets: Mutex::new(Vec::new()), ended: AtomicBool::new(false), wakeup_fd })
    }

    fn put(&self, socket: OwnedFd, listener: usize) {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner).push((socket, listener));
        self.ring();
    }

    /// Stops the worker.
    pub(crate) fn end(&self) {
        self.ended.store(true, Relaxed);
        self.ring();
    }

    fn ring(&self) {
        // Fails only if the counter is at its maximum: the eventfd is signalled already.
        let _ = io::write(&self.wakeup_fd, &1_u64.to_ne_bytes());
    }

    fn take(&self) -> Vec<(OwnedFd, usize)> {
        let _ = io::read(&self.wakeup_fd, &mut [0; 8]);
        std::mem::take(&mut *self.sockets.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The accepting part of the first worker.
#[derive(Debug)]
pub(crate) struct Acceptor {
    /// In the order of the receptions.
    pub listeners: Vec<OwnedFd>,
    pub max_connections: usize,
    pub inboxes: Arc<[Inbox]>,
    pub tallies: Arc<[Arc<Tally>]>,
}

/// How the connections of one listener are handled.
#[derive(Clone, Debug)]
pub(crate) struct Reception {
    pub protocol: Protocol,
    pub tls: Option<Arc<ServerConfig>>,
}

/// A slot for a connection.
#[derive(Debug, Default)]
struct Slot {
    /// Incremented when a connection leaves, so that events meant for it miss the next one in this slot.
    generation: u32,
    connection: Option<Connection>,
}

/// A worker.
#[derive(Debug)]
pub(crate) struct Worker {
    index: usize,
    epoll: OwnedFd,
    inboxes: Arc<[Inbox]>,
    acceptor: Option<Acceptor>,
    receptions: Arc<[Reception]>,
    /// When accepting resumes after a pause.
    accept_at_ns: Option<u64>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Pairs of a time, nanoseconds since the start, and the slot that wants a turn then.
    timers: BTreeSet<(u64, u32)>,
    /// Tokens of connections that want another turn at once.
    again: VecDeque<u64>,
    max_connections: usize,
    stall: Option<Stall>,
    idle_timeout_ns: u64,
    /// Timer that triggers the search for idle connections. Closed with the worker.
    sweep: OwnedFd,
    shared: Shared,
}

impl Worker {
    pub(crate) fn new(
        index: usize,
        settings: &Settings,
        inboxes: &Arc<[Inbox]>,
        acceptor: Option<Acceptor>,
        (receptions, max_connections): (&Arc<[Reception]>, usize),
        shared: Shared,
    ) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &inboxes[index].wakeup_fd, EventData::new_u64(INBOX), EventFlags::IN)?;
        for (index, listener) in acceptor.iter().flat_map(|acceptor| &acceptor.listeners).enumerate() {
            epoll::add(&epoll, listener, EventData::new_u64(LISTENERS + index as u64), EventFlags::IN)?;
        }
        // With a separate periodic timer, rather than a timeout for each wait, most waits need no timer.
        let sweep =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        let period = (settings.idle_timeout / 4).max(Duration::from_millis(1));
        let period = timespec(u64::try_from(period.as_nanos()).unwrap_or(u64::MAX));
        let every = Itimerspec { it_interval: period, it_value: period };
        timerfd_settime(&sweep, TimerfdTimerFlags::empty(), &every)?;
        epoll::add(&epoll, &sweep, EventData::new_u64(SWEEP), EventFlags::IN)?;
        // Kernels before 5.11 and some container sandboxes reject this system call: better to fail now than
        // later.
        epoll::wait(&epoll, spare_capacity(&mut Vec::with_capacity(1)), Some(&timespec(0)))?;
        if let Some(quic) = &shared.quic {
            epoll::add(&epoll, quic, EventData::new_u64(DATAGRAMS), EventFlags::IN)?;
        }
        Ok(Self {
            index,
            epoll,
            inboxes: Arc::clone(inboxes),
            acceptor,
            receptions: Arc::clone(receptions),
            accept_at_ns: None,
            slots: Vec::new(),
            free: Vec::new(),
            timers: BTreeSet::new(),
            again: VecDeque::new(),
            max_connections,
            stall: settings.stall,
            idle_timeout_ns: u64::try_from(settings.idle_timeout.as_nanos()).unwrap_or(u64::MAX),
            sweep,
            shared,
        })
    }

    /// Serves until `stop` is readable or closed at its other end.
    pub(crate) fn run(mut self, stop: BorrowedFd<'_>) -> io::Result<()> {
        epoll::add(&self.epoll, stop, EventData::new_u64(STOP), EventFlags::IN)?;
        // Delays should be accurate to the nanosecond; by default the kernel adds up to 50 µs. If it refuses,
        // they are late.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut events = Vec::with_capacity(EVENTS_PER_WAIT);
        loop {
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), self.longest_wait().as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
            let now_ns = self.shared.now_ns();
            for event in &events {
                let (token, flags) = (event.data.u64(), event.flags);
                if token == STOP || (token == INBOX && self.inboxes[self.index].ended.load(Relaxed)) {
                    self.close_all();
                    return Ok(());
                }
                self.wait_out_stall(stop);
                self.on_event(token, flags, now_ns);
            }
            self.on_time(stop);
        }
    }

    /// Timeout of the next wait; `None` if only an event ends it.
    fn longest_wait(&self) -> Option<Timespec> {
        if !self.again.is_empty() {
            return Some(timespec(0));
        }
        let timer_ns = self.timers.first().map(|(due_ns, _)| *due_ns);
        let next_ns = match (timer_ns, self.accept_at_ns) {
            (Some(timer_ns), Some(accept_ns)) => timer_ns.min(accept_ns),
            (timer_ns, accept_ns) => timer_ns.or(accept_ns)?,
        };
        Some(timespec(next_ns.saturating_sub(self.shared.now_ns())))
    }

    fn on_event(&mut self, token: u64, flags: EventFlags, now_ns: u64) {
        match token {
            INBOX => {
                for (socket, listener) in self.inboxes[self.index].take() {
                    self.adopt(socket, listener);
                }
            }
            SWEEP => self.sweep(now_ns),
            DATAGRAMS => self.receive_datagrams(now_ns),
            LISTENERS.. => self.accept((token - LISTENERS) as usize),
            token => {
                let Some(connection) = self.connection(token) else { return };
                connection.active_ns = now_ns;
                if flags.intersects(EventFlags::ERR | EventFlags::HUP) {
                    return self.close(token as u32);
                }
                if flags.intersects(EventFlags::IN | EventFlags::RDHUP) {
                    connection.has_input(flags.contains(EventFlags::RDHUP));
                }
                self.give_turn(token as u32);
            }
        }
    }

    /// Gives turns to connections that are due and to those that want another.
    fn on_time(&mut self, stop: BorrowedFd<'_>) {
        for _ in 0..self.again.len() {
            self.wait_out_stall(stop);
            if let Some(token) = self.again.pop_front()
                && let Some(connection) = self.connection(token)
            {
                connection.queued = false;
                self.give_turn(token as u32);
            }
        }
        if self.timers.is_empty() && self.accept_at_ns.is_none() {
            return;
        }
        let now_ns = self.shared.now_ns();
        while let Some(&(due_ns, slot)) = self.timers.first()
            && due_ns <= now_ns
        {
            self.wait_out_stall(stop);
            self.give_turn(slot);
        }
        if self.accept_at_ns.is_some_and(|at_ns| at_ns <= now_ns) {
            self.accept_at_ns = None;
            self.watch_listeners(EventFlags::IN);
        }
    }

    /// During a stall, waits until it ends or the server should stop.
    fn wait_out_stall(&self, stop: BorrowedFd<'_>) {
        let Some(stall) = self.stall else { return };
        while let Some(left) = stall.time_left(Duration::from_nanos(self.shared.now_ns())) {
            let left = timespec(u64::try_from(left.as_nanos()).unwrap_or(u64::MAX));
            let mut watched = [PollFd::from_borrowed_fd(stop, PollFlags::IN)];
            if poll(&mut watched, Some(&left)).is_ok_and(|ready| ready > 0) {
                return;
            }
        }
    }

    /// The connection of a token, unless it has ended.
    fn connection(&mut self, token: u64) -> Option<&mut Connection> {
        let slot = self.slots.get_mut(token as u32 as usize)?;
        if u64::from(slot.generation) == token >> 32 { slot.connection.as_mut() } else { None }
    }

    fn give_turn(&mut self, slot: u32) {
        let Slot { generation, connection } = &mut self.slots[slot as usize];
        let Some(connection) = connection else { return };
        let turn = connection.turn(&mut self.shared);
        let timer_ns = if let Turn::WaitUntil(due_ns) = turn { Some(due_ns) } else { None };
        if connection.timer_ns != timer_ns {
            if let Some(due_ns) = std::mem::replace(&mut connection.timer_ns, timer_ns) {
                self.timers.remove(&(due_ns, slot));
            }
            if let Some(due_ns) = timer_ns {
                self.timers.insert((due_ns, slot));
            }
        }
        match turn {
            Turn::Wait | Turn::WaitUntil(_) => {}
            Turn::Again if connection.queued => {}
            Turn::Again => {
                connection.queued = true;
                self.again.push_back(u64::from(*generation) << 32 | u64::from(slot));
            }
            Turn::Close => self.close(slot),
        }
    }

    fn accept(&mut self, listener: usize) {
        for _ in 0..ACCEPTS_PER_TURN {
            let Some(acceptor) = &self.acceptor else { return };
            let open = |tally: &Arc<Tally>| tally.connections_open.load(Relaxed);
            if acceptor.tallies.iter().map(open).sum::<usize>() >= acceptor.max_connections {
                return self.rest_from_accepting();
            }
            match accept_with(&acceptor.listeners[listener], SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok(socket) => {
                    let least =
                        (0..acceptor.tallies.len()).min_by_key(|&worker| open(&acceptor.tallies[worker]));
                    let worker = least.unwrap_or(self.index);
                    acceptor.tallies[worker].connections_open.fetch_add(1, Relaxed);
                    if worker == self.index {
                        self.adopt(socket, listener);
                    } else {
                        acceptor.inboxes[worker].put(socket, listener);
                    }
                }
                Err(Errno::AGAIN) => return,
                // The connection ended, or its network failed, before it was accepted: accept(2).
                Err(
                    Errno::INTR
                    | Errno::CONNABORTED
                    | Errno::PROTO
                    | Errno::NETDOWN
                    | Errno::NETUNREACH
                    | Errno::HOSTDOWN
                    | Errno::HOSTUNREACH
                    | Errno::NONET
                    | Errno::NOPROTOOPT
                    | Errno::OPNOTSUPP,
                ) => {}
                // No file descriptors or no memory: the listener would be ready again at once, and spin.
                Err(_) => return self.rest_from_accepting(),
            }
        }
    }

    fn rest_from_accepting(&mut self) {
        self.watch_listeners(EventFlags::empty());
        self.accept_at_ns = Some(self.shared.now_ns() + ACCEPT_REST_NS);
    }

    fn watch_listeners(&self, flags: EventFlags) {
        for (index, listener) in self.acceptor.iter().flat_map(|acceptor| &acceptor.listeners).enumerate() {
            epoll::modify(&self.epoll, listener, EventData::new_u64(LISTENERS + index as u64), flags)
                .expect("the listener was added to this epoll instance");
        }
    }

    /// A free slot.
    fn take_slot(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as u32
        })
    }

    /// Receives datagrams, and gives their connections turns.
    fn receive_datagrams(&mut self, now_ns: u64) {
        let Some(mut quic) = self.shared.quic.take() else { return };
        let mut touched = Vec::new();
        for _ in 0..DATAGRAM_READS_PER_TURN {
            let received =
                quic.receive(|quic, arrival| touched.extend(self.take_datagram(quic, arrival, now_ns)));
            if received.is_none() {
                break;
            }
        }
        self.shared.quic = Some(quic);
        touched.sort_unstable();
        touched.dedup();
        for slot in touched {
            self.give_turn(slot);
        }
    }

    /// Hands a datagram to its connection, or accepts its client. Returns the slot that wants a turn.
    fn take_datagram(&mut self, quic: &mut Quic, arrival: Arrival, now_ns: u64) -> Option<u32> {
        match arrival {
            Arrival::Event(slot, handle, event) => {
                let connection = self.slots.get_mut(slot as usize)?.connection.as_mut()?;
                connection.active_ns = now_ns;
                connection.http3()?.receive(handle, event);
                Some(slot)
            }
            Arrival::Client(client) if self.shared.connections_open() >= self.max_connections => {
                quic.refuse(*client);
                None
            }
            Arrival::Client(client) => {
                let slot = self.take_slot();
                let Some(link) = quic.accept(*client, slot) else {
                    self.free.push(slot);
                    return None;
                };
                self.shared.tally.connections_accepted.add(1);
                self.shared.tally.connections_open.fetch_add(1, Relaxed);
                let http3 = Http3::new(link, &mut self.shared);
                self.slots[slot as usize].connection = Some(Connection::of_datagrams(http3, now_ns));
                Some(slot)
            }
        }
    }

    /// Takes over a connection that is already counted.
    fn adopt(&mut self, socket: OwnedFd, listener: usize) {
        self.shared.tally.connections_accepted.add(1);
        let slot = self.take_slot();
        let Slot { generation, connection } = &mut self.slots[slot as usize];
        let token = EventData::new_u64(u64::from(*generation) << 32 | u64::from(slot));
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        let watched = epoll::add(&self.epoll, &socket, token, flags);
        let Reception { protocol, tls } = &self.receptions[listener];
        *connection = Some(Connection::new(socket, *protocol, tls.as_ref(), &self.shared));
        // No memory for another watch: this connection exceeds the limit.
        if watched.is_err() {
            self.close(slot);
        }
    }

    fn close(&mut self, slot: u32) {
        let place = &mut self.slots[slot as usize];
        let Some(connection) = place.connection.take() else { return };
        place.generation = place.generation.wrapping_add(1) & GENERATION_MASK;
        if let Some(due_ns) = connection.timer_ns {
            self.timers.remove(&(due_ns, slot));
        }
        self.shared.held_bytes -= connection.held_bytes();
        connection.end(&mut self.shared);
        self.shared.tally.connections_open.fetch_sub(1, Relaxed);
        self.free.push(slot);
    }

    fn close_all(&mut self) {
        let on_their_way = self.inboxes[self.index].take().len();
        self.shared.tally.connections_open.fetch_sub(on_their_way, Relaxed);
        for slot in 0..self.slots.len() {
            self.close(slot as u32);
        }
    }

    /// Closes connections without activity for too long.
    fn sweep(&mut self, now_ns: u64) {
        let _ = io::read(&self.sweep, &mut [0; 8]);
        for slot in 0..self.slots.len() {
            let idle = self.slots[slot].connection.as_ref().is_some_and(|connection| {
                !connection.is_delayed() && now_ns.saturating_sub(connection.active_ns) > self.idle_timeout_ns
            });
            if idle {
                self.close(slot as u32);
            }
        }
    }
}

/// Generations never reach the reserved tokens at the top of the range.
const GENERATION_MASK: u32 = u32::MAX >> 1;

fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}

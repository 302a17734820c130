//! Connections over QUIC, for HTTP/3: one UDP socket each, epoll, and the timers of the transport in the wait's own deadline.
//!
//! The bytes that this network exchanges with its protocol are [`record`]s, since a connection has many streams. [`session`] is TLS, as
//! results want to know it; crate `http3` has sockets and connections.
//!
//! - There is nothing to connect: a slot's handshake begins when it is opened.
//! - What is sent goes to the kernel at once as far as the peer's limits and congestion control allow. What flow control does not allow yet
//!   waits with the connection.
//! - Acknowledgements go out with the next request, or at the end of the turn.
//! - A port that nothing listens on any longer is known from the kernel (ICMP), as if the peer had reset the connection.
//!
//! Not supported: early data (0-RTT), unix sockets, PROXY protocol, io_uring.

pub(crate) mod record;

mod failure;
mod session;
mod timers;

use super::tls::{KnownKeys, TlsTurns};
use super::{Event, Network, Route, Security, sleep};
use crate::error::ErrorKind;
use crate::network::TlsFailure;
use crate::network::wake_timer::WakeTimer;
use bytes::{Bytes, BytesMut};
use http3::ErrorCode;
use http3::quic::quinn_proto::{ClientConfig, DatagramEvent, Endpoint, EndpointConfig};
use http3::quic::{Happening, Link, Socket};
use record::{Record, RecordHead, RecordKind, RecordReader};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::fs::Timespec;
use rustix::io::Errno;
use rustls::pki_types::ServerName;
use session::QuicTls;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use timers::Timers;

/// Maximum events fetched from the kernel in one call.
const MAX_EVENTS: usize = 512;
/// Interval at which datagrams that the kernel had no room for are sent again.
const KEPT_INTERVAL: Duration = Duration::from_millis(1);
/// Bytes of datagrams that one call receives.
const READ_BYTES: usize = 64 * 1024;
/// Receive windows: large enough that they never stall a response.
const STREAM_WINDOW_BYTES: u32 = 16 << 20;
const WINDOW_BYTES: u32 = 1 << 30;
/// Token of the timer's events; no slot has this number.
const WAKE_TIMER: u64 = u64::MAX;

/// See [`Network`].
pub(crate) struct QuicNetwork {
    epoll: OwnedFd,
    wake_timer: WakeTimer,
    endpoint: Endpoint,
    configs: TlsTurns<ClientConfig>,
    /// Requests that a connection may have unanswered.
    most_requests: usize,
    slots: Vec<Slot>,
    /// Slots of the endpoint's connections, by its handle.
    owners: Vec<usize>,
    timers: Timers,
    /// Slots that have something to report in this turn, or may.
    ready: VecDeque<usize>,
    /// The same, after the next wait.
    later: Vec<usize>,
    events: Vec<epoll::Event>,
    /// There may be more to read than was.
    has_unread: bool,
    /// Receive timestamp of the last datagrams.
    arrived: Option<Duration>,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
    known_keys: KnownKeys,
}

#[derive(Default)]
struct Slot {
    open: Option<Open>,
    /// Distinguishes this connection from earlier ones in this slot.
    generation: u32,
    /// It is in one of the queues.
    is_queued: bool,
}

/// A connection.
struct Open {
    socket: Socket,
    link: Link,
    stage: Stage,
    /// The socket has something to read in this turn.
    is_readable: bool,
    /// It has received since it last sent.
    owes: bool,
    /// Records that were not reported yet, of which some bytes were.
    records: Vec<u8>,
    reported: usize,
    /// How it ended, after these records.
    end: Option<Event>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    /// The start of the handshake is not reported yet.
    Begun,
    Handshaking,
    /// The handshake is complete, which is not reported yet.
    Connected,
    Established,
}

impl QuicNetwork {
    /// Creates a network with this many slots, each with at most so many unanswered requests. `configs`: with TLS 1.3.
    pub(crate) fn new(slots: usize, configs: TlsTurns, most_requests: usize) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let wake_timer = WakeTimer::new()?;
        epoll::add(&epoll, &wake_timer, EventData::new_u64(WAKE_TIMER), EventFlags::IN | EventFlags::ET)?;
        // A server of HTTP/3 opens no streams for requests.
        let transport = Arc::new(http3::quic::transport(STREAM_WINDOW_BYTES, WINDOW_BYTES, 0));
        let in_quic = |tls| {
            let mut config = ClientConfig::new(Arc::new(QuicTls::new(tls)?));
            config.transport_config(Arc::clone(&transport));
            Some(config)
        };
        let configs = configs.in_form(in_quic).ok_or_else(|| io::Error::other("HTTP/3 needs TLS 1.3"))?;
        Ok(Self {
            epoll,
            wake_timer,
            endpoint: Endpoint::new(Arc::new(EndpointConfig::default()), None, true, None),
            configs,
            most_requests,
            slots: (0..slots).map(|_| Slot::default()).collect(),
            owners: Vec::new(),
            timers: Timers::default(),
            ready: VecDeque::new(),
            later: Vec::new(),
            events: Vec::with_capacity(MAX_EVENTS),
            has_unread: false,
            arrived: None,
            incoming: vec![0; READ_BYTES],
            outgoing: Vec::new(),
            known_keys: KnownKeys::default(),
        })
    }

    /// Has the slot looked at after the next wait, unless it will be in this turn.
    fn look_at(&mut self, slot: usize) {
        if !std::mem::replace(&mut self.slots[slot].is_queued, true) {
            self.later.push(slot);
        }
    }

    /// Lets connections whose time has come do what is due.
    fn on_time(&mut self) {
        let now = Instant::now();
        while let Some(slot) = self.timers.take_due(now) {
            let Some(open) = &mut self.slots[slot].open else { continue };
            if open.link.has_kept() || open.link.timeout().is_some_and(|due| due <= now) {
                open.link.on_time(now);
                self.proceed(slot, now);
                self.look_at(slot);
            } else {
                self.set_timer(slot);
            }
        }
    }

    fn set_timer(&mut self, slot: usize) {
        let Some(open) = &mut self.slots[slot].open else { return };
        let retry = open.link.has_kept().then(|| Instant::now() + KEPT_INTERVAL);
        if let Some(due) = retry.into_iter().chain(open.link.timeout()).min() {
            self.timers.set(slot, due);
        }
    }

    /// Takes note of what happened on the connection, and sends what is to be sent.
    fn proceed(&mut self, slot: usize, now: Instant) {
        self.take_happenings(slot);
        let Some(open) = &mut self.slots[slot].open else { return };
        open.owes = false;
        if let Err(error) = open.link.transmit(&open.socket, now, &mut self.outgoing) {
            open.broke(error);
        }
        open.link.settle(&mut self.endpoint);
        self.set_timer(slot);
    }

    fn take_happenings(&mut self, slot: usize) {
        let Some(Open { link, records, stage, end, .. }) = &mut self.slots[slot].open else { return };
        link.happenings(&mut |happening| match happening {
            Happening::Connected => *stage = Stage::Connected,
            Happening::Room(stream) => record::push(RecordKind::Room, stream, 0, records),
            Happening::Limited(most) => record::push(RecordKind::Limited, 0, most as u64, records),
            Happening::Data(stream, bytes) => {
                record::push_data(RecordKind::Data, stream, records, |out| out.extend_from_slice(bytes));
            }
            Happening::End(stream) => record::push(RecordKind::End, stream, 0, records),
            Happening::Reset(stream, code) => record::push(RecordKind::Reset, stream, code, records),
            // A response may be complete nevertheless.
            Happening::Stopped(..) | Happening::Written(_) => {}
            Happening::Lost(reason) => {
                let is_open = matches!(stage, Stage::Connected | Stage::Established);
                *end = Some(failure::event(&reason, is_open));
            }
        });
        // Why the handshake failed is known to its session alone.
        if let Some(Event::OpenFailed(error)) = end
            && let Some(failure) = session::failure(link.connection())
        {
            *error = failure.into();
        }
    }

    /// Receives datagrams of the slot's socket, once per turn. Returns false if there are none.
    fn receive(&mut self, slot: usize) -> bool {
        let Some(open) = &mut self.slots[slot].open else { return false };
        if !std::mem::take(&mut open.is_readable) {
            return false;
        }
        let received = match open.socket.receive(&mut self.incoming) {
            Ok(received) => received,
            Err(Errno::AGAIN | Errno::INTR) => return false,
            Err(error) => {
                open.broke(error);
                return true;
            }
        };
        self.has_unread = true;
        self.arrived = received.came;
        let now = Instant::now();
        let remote = open.link.connection().remote_address();
        for datagram in self.incoming[..received.bytes].chunks(received.segment_bytes.max(1)) {
            self.outgoing.clear();
            let datagram = BytesMut::from(datagram);
            let event = self.endpoint.handle(now, remote, None, None, datagram, &mut self.outgoing);
            // A client has no other connections, and owes no answer to what belongs to none.
            let Some(DatagramEvent::ConnectionEvent(handle, event)) = event else { continue };
            let owner = self.owners.get(handle.0).copied().unwrap_or(slot);
            if let Some(open) = &mut self.slots[owner].open
                && open.link.handle() == handle
            {
                open.link.receive(event);
                open.owes = true;
            }
        }
        self.take_happenings(slot);
        true
    }

    /// The next thing to report of a slot in this turn.
    fn report(&mut self, slot: usize, buffer: &mut [u8]) -> Option<Event> {
        loop {
            let open = self.slots[slot].open.as_mut()?;
            if open.stage == Stage::Begun {
                open.stage = Stage::Handshaking;
                return Some(Event::HandshakeStarted);
            }
            if open.stage == Stage::Connected {
                open.stage = Stage::Established;
                // The control stream is the first one of this side.
                return Some(match open.link.open_unidirectional() {
                    Some(_) => Event::Opened,
                    None => Event::OpenFailed(TlsFailure(ErrorKind::Http3Protocol).into()),
                });
            }
            if open.has_records() {
                return Some(Event::Received(open.hand_out(buffer)));
            }
            if open.end.is_some() {
                return open.end.take();
            }
            if !self.receive(slot) {
                break;
            }
        }
        if self.slots[slot].open.as_ref().is_some_and(|open| open.owes) {
            self.proceed(slot, Instant::now());
        }
        if self.slots[slot].open.as_ref().is_some_and(|open| open.has_records() || open.end.is_some()) {
            self.look_at(slot);
        }
        None
    }

    fn carry_out(link: &mut Link, mut bytes: &[u8], now: Instant) {
        let mut reader = RecordReader::default();
        while !bytes.is_empty() {
            let (taken, record) = reader.next(bytes);
            bytes = &bytes[taken..];
            match record {
                Some(Record::Data(stream, data, ends)) => {
                    link.send(stream, Bytes::copy_from_slice(data), ends);
                }
                Some(Record::Other(RecordHead { kind, stream, number })) => match kind {
                    RecordKind::Reset => link.reset(stream, number),
                    RecordKind::Stop => link.stop(stream, number),
                    RecordKind::Close => link.close(number, now),
                    RecordKind::Room
                    | RecordKind::Limited
                    | RecordKind::Data
                    | RecordKind::Last
                    | RecordKind::End => {}
                },
                None => debug_assert!(bytes.is_empty(), "only whole records are sent"),
            }
        }
    }
}

impl Open {
    fn has_records(&self) -> bool {
        self.reported < self.records.len()
    }

    /// Moves bytes of records to the buffer. Returns their number.
    fn hand_out(&mut self, buffer: &mut [u8]) -> usize {
        let rest = &self.records[self.reported..];
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        self.reported += length;
        if self.reported == self.records.len() {
            self.reported = 0;
            if self.records.capacity() > READ_BYTES {
                self.records = Vec::new();
            }
            self.records.clear();
        }
        length
    }

    /// The kernel reports an error: usually that nothing listens there.
    fn broke(&mut self, error: Errno) {
        let is_open = matches!(self.stage, Stage::Connected | Stage::Established);
        let end = match error {
            error if !is_open => Event::OpenFailed(error.into()),
            Errno::CONNREFUSED => Event::Failed(Errno::CONNRESET.into()),
            error => Event::Failed(error.into()),
        };
        self.end.get_or_insert(end);
    }
}

impl Network for QuicNetwork {
    const SENDS_AT_ONCE: bool = true;

    fn grow(&mut self) {
        self.slots.push(Slot::default());
    }

    fn open(
        &mut self,
        slot: usize,
        route: Route<'_>,
        server_name: Option<&ServerName<'static>>,
    ) -> io::Result<()> {
        self.close(slot);
        let (Some(remote), Some(server_name)) = (route.address.ip(), server_name) else {
            return Err(Errno::PROTONOSUPPORT.into());
        };
        let descriptor = route.datagram_socket()?;
        route.connect(&descriptor)?;
        let socket = Socket::new(descriptor, remote.is_ipv4())?;
        let generation = self.slots[slot].generation;
        let token = EventData::new_u64(slot as u64 | u64::from(generation) << 32);
        epoll::add(&self.epoll, &socket, token, EventFlags::IN)?;
        let now = Instant::now();
        let connection = self
            .endpoint
            .connect(now, self.configs.take().clone(), remote, &server_name.to_str())
            .map_err(io::Error::other)?;
        let handle = connection.0.0;
        self.owners.resize(self.owners.len().max(handle + 1), usize::MAX);
        self.owners[handle] = slot;
        self.slots[slot].open = Some(Open {
            socket,
            link: Link::new(connection, None, self.most_requests),
            stage: Stage::Begun,
            is_readable: false,
            owes: false,
            records: Vec::new(),
            reported: 0,
            end: None,
        });
        self.proceed(slot, now);
        self.look_at(slot);
        Ok(())
    }

    fn send(&mut self, slot: usize, bytes: &[u8]) -> io::Result<()> {
        let Some(open) = &mut self.slots[slot].open else { return Err(Errno::NOTCONN.into()) };
        let now = Instant::now();
        Self::carry_out(&mut open.link, bytes, now);
        self.proceed(slot, now);
        if self.slots[slot].open.as_ref().is_some_and(|open| open.has_records() || open.end.is_some()) {
            self.look_at(slot);
        }
        Ok(())
    }

    fn has_sent_all(&self, slot: usize) -> bool {
        self.queued_bytes(slot) == 0
    }

    fn queued_bytes(&self, slot: usize) -> usize {
        self.slots[slot].open.as_ref().map_or(0, |open| open.link.unsent_bytes())
    }

    fn security(&mut self, slot: usize) -> Option<Security> {
        let open = self.slots[slot].open.as_ref()?;
        session::security(open.link.connection(), &mut self.known_keys)
    }

    fn close(&mut self, slot: usize) {
        let place = &mut self.slots[slot];
        let Some(Open { socket, mut link, .. }) = place.open.take() else { return };
        place.generation = place.generation.wrapping_add(1);
        self.timers.clear(slot);
        let now = Instant::now();
        link.close(ErrorCode::None as u64, now);
        // It does not matter to a peer that is gone.
        let _ = link.transmit(&socket, now, &mut self.outgoing);
        link.forget(&mut self.endpoint);
    }

    fn wait(&mut self, at_most: Duration) -> io::Result<bool> {
        let until = Instant::now() + at_most;
        loop {
            self.on_time();
            let now = Instant::now();
            let first = self.timers.first().map_or(until, |due| due.min(until));
            let has_events = !self.later.is_empty();
            self.poll(if has_events { Duration::ZERO } else { first.saturating_duration_since(now) })?;
            self.ready.extend(self.later.drain(..));
            if !self.ready.is_empty() || now >= until {
                return Ok(!self.ready.is_empty());
            }
        }
    }

    fn sleep_through(&mut self, time: Duration) -> io::Result<bool> {
        // Timers of the transport are late by no more than this: they repair losses, and acknowledge.
        sleep(time);
        self.wait(Duration::ZERO)
    }

    fn arrived(&self) -> Option<Duration> {
        self.arrived
    }

    fn has_read_all(&self) -> bool {
        !self.has_unread && self.later.is_empty()
    }

    fn has_more_of_read(&self) -> bool {
        let next = self.ready.front().and_then(|slot| self.slots[*slot].open.as_ref());
        next.is_some_and(|open| open.stage == Stage::Established && open.reported > 0)
    }

    fn next_event(&mut self, buffer: &mut [u8]) -> Option<(usize, Event)> {
        while let Some(slot) = self.ready.pop_front() {
            self.slots[slot].is_queued = false;
            if let Some(event) = self.report(slot, buffer) {
                self.slots[slot].is_queued = true;
                self.ready.push_front(slot);
                return Some((slot, event));
            }
        }
        None
    }
}

/// A peer would keep connections that nobody closes until they have been idle for long.
impl Drop for QuicNetwork {
    fn drop(&mut self) {
        for slot in 0..self.slots.len() {
            self.close(slot);
        }
    }
}

impl QuicNetwork {
    /// Waits for events of sockets for at most this long.
    fn poll(&mut self, at_most: Duration) -> io::Result<()> {
        self.events.clear();
        let timeout = if at_most.is_zero() {
            Some(&Timespec { tv_sec: 0, tv_nsec: 0 })
        } else {
            self.wake_timer.set(at_most)?;
            None
        };
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), timeout) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        self.has_unread = self.events.len() == MAX_EVENTS;
        for index in 0..self.events.len() {
            let data = self.events[index].data.u64();
            if data == WAKE_TIMER {
                self.wake_timer.rang();
                continue;
            }
            let (slot, generation) = (data as u32 as usize, (data >> 32) as u32);
            let place = &mut self.slots[slot];
            if let Some(open) = place.open.as_mut().filter(|_| place.generation == generation) {
                open.is_readable = true;
                self.look_at(slot);
            }
        }
        Ok(())
    }
}

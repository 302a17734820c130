//! Connections over epoll, edge-triggered; a timer in the epoll set ends a wait on time.

use super::rx_timestamp;
use super::wake_timer::WakeTimer;
use super::{Event, Network, ProxyProtocol, Route, sleep};
use crate::target::Address;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::fs::Timespec;
use rustix::io::Errno;
use rustix::net::{self, SendFlags, SocketFlags, sockopt};
use rustls::pki_types::ServerName;
use std::io;
use std::time::Duration;

/// Maximum events fetched from the kernel in one call.
const MAX_EVENTS: usize = 512;
/// Reads per event before the others get their turn. Otherwise a peer that sends faster than it can be read
/// would hold the thread forever.
const MAX_READS_PER_EVENT: u32 = 4;
/// Interval at which connecting to a unix socket with a full queue is tried again.
const QUEUED_INTERVAL: Duration = Duration::from_millis(1);
/// Events of connections.
const INTEREST: EventFlags =
    EventFlags::IN.union(EventFlags::OUT).union(EventFlags::RDHUP).union(EventFlags::ET);
/// The peer has closed its sending side, or the connection broke.
const AT_END: EventFlags = EventFlags::RDHUP.union(EventFlags::HUP).union(EventFlags::ERR);
/// Token of the timer's events; no slot has this number.
const WAKE_TIMER: u64 = u64::MAX;
/// There is something to read, which may be the end of the stream.
const READABLE: EventFlags = EventFlags::IN.union(AT_END);

/// See [`Network`].
pub(crate) struct EpollNetwork {
    epoll: OwnedFd,
    wake_timer: WakeTimer,
    sockets: Vec<Socket>,
    /// Slots whose unix sockets could not be connected yet, with their generations and destinations.
    queued: Vec<(usize, u32, Address)>,
    /// Header that connections begin with.
    proxy_protocol: Option<ProxyProtocol>,
    events: Vec<epoll::Event>,
    /// Events of the last wait that are already handed out.
    handed_out: usize,
    /// Reads done for the event that is being handed out.
    reads: u32,
    /// Receive timestamp of the last bytes received.
    arrived: Option<Duration>,
    /// The last wait returned as many events as fit: there may be more.
    is_full: bool,
    /// Events whose turn ended before everything was read. They are repeated after the next wait, because the
    /// kernel reports each edge once.
    unfinished: Vec<epoll::Event>,
}

#[derive(Default)]
struct Socket {
    descriptor: Option<OwnedFd>,
    /// Distinguishes this connection from earlier ones in this slot, whose events may still be in `events`.
    generation: u32,
    opening: bool,
    /// Reported by the next event.
    connect_error: Option<Errno>,
    /// Bytes that the kernel did not accept at once, and how many of them it has accepted since.
    rest: Vec<u8>,
    rest_sent: usize,
}

impl EpollNetwork {
    /// Creates a network with this many slots.
    pub(crate) fn new(slots: usize, proxy_protocol: Option<ProxyProtocol>) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let wake_timer = WakeTimer::new()?;
        epoll::add(&epoll, &wake_timer, EventData::new_u64(WAKE_TIMER), EventFlags::IN | EventFlags::ET)?;
        Ok(Self {
            wake_timer,
            epoll,
            sockets: (0..slots).map(|_| Socket::default()).collect(),
            queued: Vec::new(),
            proxy_protocol,
            events: Vec::with_capacity(MAX_EVENTS),
            handed_out: 0,
            reads: 0,
            arrived: None,
            is_full: false,
            unfinished: Vec::new(),
        })
    }

    /// Tries again to connect unix sockets whose server has a full queue. A TCP connection would be repeated by the kernel.
    fn connect_queued(&mut self) -> io::Result<()> {
        for (slot, generation, address) in std::mem::take(&mut self.queued) {
            let socket = &mut self.sockets[slot];
            let Some(descriptor) = socket.descriptor.as_ref().filter(|_| socket.generation == generation)
            else {
                continue;
            };
            match Route::from(&address).connect(descriptor) {
                Err(Errno::AGAIN) => self.queued.push((slot, generation, address)),
                outcome => {
                    // Reports its state once more.
                    epoll::modify(&self.epoll, descriptor, socket.data(slot), INTEREST)?;
                    socket.connect_error = outcome.err();
                }
            }
        }
        Ok(())
    }

    /// Marks the current event as used up.
    fn finish_event(&mut self) {
        self.handed_out += 1;
        self.reads = 0;
    }

    /// Interprets an event for its slot. `None`: nothing to report, and the event is used up.
    fn interpret(&mut self, index: usize, buffer: &mut [u8]) -> Option<(usize, Event)> {
        let epoll::Event { flags, data } = self.events[index];
        let (slot, generation) = (data.u64() as u32 as usize, (data.u64() >> 32) as u32);
        let socket = &mut self.sockets[slot];
        if socket.generation != generation || socket.descriptor.is_none() {
            self.finish_event();
            return None;
        }
        if socket.opening {
            let event = socket.opened(self.proxy_protocol);
            // A peer that speaks first may have done so already, and no other event would report it.
            let more = matches!(event, Some(Event::Opened)) && flags.intersects(READABLE);
            if !more {
                self.finish_event();
            }
            return event.map(|event| (slot, event));
        }
        if flags.contains(EventFlags::OUT)
            && let Err(error) = socket.send_rest()
        {
            self.finish_event();
            return Some((slot, Event::Failed(error)));
        }
        let (event, finished) = socket.receive(flags, buffer, &mut self.arrived);
        self.reads += 1;
        if finished {
            self.finish_event();
        } else if self.reads >= MAX_READS_PER_EVENT {
            self.unfinished.push(self.events[index]);
            self.finish_event();
        }
        event.map(|event| (slot, event))
    }
}

impl Network for EpollNetwork {
    const SENDS_AT_ONCE: bool = true;

    fn grow(&mut self) {
        self.sockets.push(Socket::default());
    }

    fn open(
        &mut self,
        slot: usize,
        route: Route<'_>,
        _server_name: Option<&ServerName<'static>>,
    ) -> io::Result<()> {
        self.close(slot);
        let descriptor = route.socket(SocketFlags::NONBLOCK)?;
        let socket = &mut self.sockets[slot];
        epoll::add(&self.epoll, &descriptor, socket.data(slot), INTEREST)?;
        match route.connect(&descriptor) {
            // A connection that is open at once is reported by an event, too.
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(Errno::AGAIN) if route.address.ip().is_none() => {
                self.queued.push((slot, socket.generation, route.address.clone()));
            }
            Err(error) => return Err(error.into()),
        }
        socket.opening = true;
        socket.descriptor = Some(descriptor);
        Ok(())
    }

    fn send(&mut self, slot: usize, bytes: &[u8]) -> io::Result<()> {
        self.sockets[slot].send(bytes)
    }

    fn has_sent_all(&self, slot: usize) -> bool {
        self.sockets[slot].rest.is_empty()
    }

    fn queued_bytes(&self, slot: usize) -> usize {
        let socket = &self.sockets[slot];
        socket.rest.len() - socket.rest_sent
    }

    fn close(&mut self, slot: usize) {
        let socket = &mut self.sockets[slot];
        // Closing the only descriptor of a socket removes it from the epoll set.
        socket.descriptor = None;
        socket.generation = socket.generation.wrapping_add(1);
        socket.opening = false;
        socket.forget_rest();
    }

    fn wait(&mut self, at_most: Duration) -> io::Result<bool> {
        self.events.clear();
        self.handed_out = 0;
        self.reads = 0;
        let at_most = if self.unfinished.is_empty() { at_most } else { Duration::ZERO };
        self.connect_queued()?;
        let at_most = if self.queued.is_empty() { at_most } else { at_most.min(QUEUED_INTERVAL) };
        // The alarm ends the wait if nothing else does.
        let timeout = if at_most.is_zero() {
            Some(&Timespec { tv_sec: 0, tv_nsec: 0 })
        } else {
            self.wake_timer.set(at_most)?;
            None
        };
        // If that many are unfinished, they come first: this bounds their number.
        if self.unfinished.len() < MAX_EVENTS {
            match epoll::wait(&self.epoll, spare_capacity(&mut self.events), timeout) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        // This also covers an alarm that was already handled: the kernel may report an edge twice if it
        // occurred while events were being collected.
        let count = self.events.len();
        self.is_full = count == MAX_EVENTS;
        self.events.retain(|event| event.data.u64() != WAKE_TIMER);
        if self.events.len() < count {
            self.wake_timer.rang();
        }
        self.events.append(&mut self.unfinished);
        Ok(!self.events.is_empty())
    }

    fn sleep_through(&mut self, time: Duration) -> io::Result<bool> {
        sleep(time);
        self.wait(Duration::ZERO)
    }

    fn arrived(&self) -> Option<Duration> {
        self.arrived
    }

    fn has_read_all(&self) -> bool {
        !self.is_full && self.unfinished.is_empty()
    }

    fn next_event(&mut self, buffer: &mut [u8]) -> Option<(usize, Event)> {
        while self.handed_out < self.events.len() {
            let event = self.interpret(self.handed_out, buffer);
            if event.is_some() {
                return event;
            }
        }
        None
    }
}

impl Socket {
    /// Token of its events in a slot.
    fn data(&self, slot: usize) -> EventData {
        EventData::new_u64(slot as u64 | (u64::from(self.generation) << 32))
    }

    /// Result of opening the connection; `None` while it is not known.
    fn opened(&mut self, proxy_protocol: Option<ProxyProtocol>) -> Option<Event> {
        let descriptor = self.descriptor.as_ref()?;
        if let Some(error) = self.connect_error.take() {
            return Some(Event::OpenFailed(error.into()));
        }
        match sockopt::socket_error(descriptor) {
            Err(error) | Ok(Err(error)) => return Some(Event::OpenFailed(error.into())),
            Ok(Ok(())) => {}
        }
        // An event without an error may be premature: a connection is open once it has a peer.
        if net::getpeername(descriptor).is_err() {
            return None;
        }
        self.opening = false;
        if let Some(version) = proxy_protocol
            && let Err(error) = version.header(descriptor).and_then(|header| self.send(&header))
        {
            return Some(Event::OpenFailed(error));
        }
        Some(Event::Opened)
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(descriptor) = &self.descriptor else { return Err(Errno::NOTCONN.into()) };
        let sent = if self.rest.is_empty() { send_now(descriptor, bytes)? } else { 0 };
        // A peer that reads, but never everything, must not make the sent part grow.
        if self.rest_sent > self.rest.len() / 2 {
            self.rest.drain(..std::mem::take(&mut self.rest_sent));
        }
        self.rest.extend_from_slice(&bytes[sent..]);
        Ok(())
    }

    fn send_rest(&mut self) -> io::Result<()> {
        if let (Some(descriptor), false) = (&self.descriptor, self.rest.is_empty()) {
            self.rest_sent += send_now(descriptor, &self.rest[self.rest_sent..])?;
            if self.rest_sent == self.rest.len() {
                self.forget_rest();
            }
        }
        Ok(())
    }

    fn forget_rest(&mut self) {
        self.rest.clear();
        self.rest_sent = 0;
    }

    /// Reads once. The flag means that there is nothing more to read until the next event. A read that leaves
    /// room in the buffer has drained the socket (epoll(7)), unless its end is announced too.
    fn receive(
        &mut self,
        flags: EventFlags,
        buffer: &mut [u8],
        arrived: &mut Option<Duration>,
    ) -> (Option<Event>, bool) {
        if !flags.intersects(READABLE) {
            return (None, true);
        }
        let at_end = flags.intersects(AT_END);
        let Some(descriptor) = &self.descriptor else { return (None, true) };
        let room = buffer.len();
        match rx_timestamp::receive(descriptor, buffer) {
            Ok((0, _)) => (Some(Event::Ended), true),
            Ok((received, came)) => {
                *arrived = came;
                (Some(Event::Received(received)), received < room && !at_end)
            }
            Err(Errno::INTR) => (None, false),
            Err(Errno::AGAIN) => (None, true),
            Err(error) => (Some(Event::Failed(error.into())), true),
        }
    }
}

/// Sends as much as the kernel accepts now.
fn send_now(descriptor: &OwnedFd, bytes: &[u8]) -> io::Result<usize> {
    let mut sent = 0;
    while sent < bytes.len() {
        match net::send(descriptor, &bytes[sent..], SendFlags::NOSIGNAL) {
            Ok(taken) => sent += taken,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(sent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::contract_tests::{Contract, contract_tests};
    use rustix::event::{PollFd, PollFlags, poll};
    use std::io::Read as _;

    impl Contract for EpollNetwork {
        fn with_slots(slots: usize) -> Self {
            Self::new(slots, None).expect("every kernel has epoll")
        }
    }

    contract_tests!(EpollNetwork);

    #[test]
    fn alarm_reported_twice_is_not_an_event() {
        let mut network = EpollNetwork::with_slots(1);
        network.wake_timer.set(Duration::from_micros(1)).unwrap();
        let mut watched = [PollFd::new(&network.wake_timer, PollFlags::IN)];
        let at_most = Timespec { tv_sec: 60, tv_nsec: 0 };
        assert_eq!(poll(&mut watched, Some(&at_most)).unwrap(), 1, "the alarm rings");
        network.wake_timer.rang();
        assert!(!network.wait(Duration::ZERO).unwrap());
        assert!(network.next_event(&mut []).is_none());
    }

    #[test]
    fn sent_part_of_backlog_takes_no_memory() {
        const BACKLOG_BYTES: usize = 16 << 20;
        const STEP_BYTES: usize = 64 << 10;
        let (mut network, mut peer) = EpollNetwork::opened();
        network.send(0, &vec![b'x'; BACKLOG_BYTES]).unwrap();
        // The peer must not wait for what only this thread sends.
        peer.set_nonblocking(true).unwrap();
        let mut step = vec![0; STEP_BYTES];
        for _ in 0..4 * BACKLOG_BYTES / STEP_BYTES {
            let mut read = 0;
            while read < STEP_BYTES {
                network.wait(Duration::ZERO).unwrap();
                assert!(network.next_event(&mut []).is_none());
                match peer.read(&mut step[read..]) {
                    Ok(0) => panic!("the connection is closed"),
                    Ok(length) => read += length,
                    Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
                }
            }
            network.send(0, &step).unwrap();
        }
        while network.queued_bytes(0) == BACKLOG_BYTES {
            network.wait(Duration::ZERO).unwrap();
            assert!(network.next_event(&mut []).is_none());
        }
        assert!((1..BACKLOG_BYTES).contains(&network.queued_bytes(0)));
        assert!(network.sockets[0].rest.len() < 2 * BACKLOG_BYTES);
    }

    #[test]
    fn peer_that_sends_much_is_read_in_turns() {
        let (mut network, _peer) = EpollNetwork::connected(&[b'x'; 10_000]);
        let mut buffer = [0; 1000];
        assert!(network.wait(Duration::from_secs(60)).unwrap());
        assert!(matches!(network.next_event(&mut buffer), Some((0, Event::Opened))));
        let of_a_wait = |network: &mut EpollNetwork, buffer: &mut [u8]| {
            std::iter::from_fn(|| network.next_event(buffer)).count() as u32
        };
        assert_eq!(of_a_wait(&mut network, &mut buffer), MAX_READS_PER_EVENT);
        assert!(!network.has_read_all());
        // Nothing new has arrived, but what is left must be reported at once.
        assert!(network.wait(Duration::from_secs(60)).unwrap());
        assert_eq!(of_a_wait(&mut network, &mut buffer), MAX_READS_PER_EVENT);
        while !network.has_read_all() {
            assert!(network.wait(Duration::from_secs(60)).unwrap());
            of_a_wait(&mut network, &mut buffer);
        }
    }
}

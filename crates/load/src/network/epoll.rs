//! Connections over epoll, edge-triggered, with nanosecond timeouts (`epoll_pwait2`, Linux 5.11).

use super::{Event, Network};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::fs::Timespec;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SendFlags, SocketFlags, SocketType, ipproto, sockopt};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// Events taken from the kernel in one call.
const EVENTS_A_WAIT: usize = 512;

/// See [`Network`].
pub(crate) struct EpollNetwork {
    epoll: OwnedFd,
    sockets: Vec<Socket>,
    events: Vec<epoll::Event>,
    /// Events of the last wait that are handed out already.
    handed_out: usize,
}

#[derive(Default)]
struct Socket {
    descriptor: Option<OwnedFd>,
    /// Told apart from earlier connections in this slot, whose events may still be in `events`.
    generation: u32,
    opening: bool,
    unsent: Vec<u8>,
}

impl EpollNetwork {
    /// Room for so many connections.
    pub(crate) fn new(slots: usize) -> io::Result<Self> {
        Ok(Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            sockets: (0..slots).map(|_| Socket::default()).collect(),
            events: Vec::with_capacity(EVENTS_A_WAIT.min(slots.max(1))),
            handed_out: 0,
        })
    }

    /// What an event means for its slot. `None`: nothing, and the event is used up.
    fn interpret(&mut self, index: usize, buffer: &mut [u8]) -> Option<(usize, Event)> {
        let epoll::Event { flags, data } = self.events[index];
        let (slot, generation) = (data.u64() as u32 as usize, (data.u64() >> 32) as u32);
        let socket = &mut self.sockets[slot];
        if socket.generation != generation || socket.descriptor.is_none() {
            self.handed_out += 1;
            return None;
        }
        if socket.opening {
            self.handed_out += 1;
            return socket.opened().map(|event| (slot, event));
        }
        if flags.contains(EventFlags::OUT)
            && let Err(error) = socket.send_rest()
        {
            self.handed_out += 1;
            return Some((slot, Event::Failed(error)));
        }
        let (event, finished) = socket.receive(flags, buffer);
        if finished {
            self.handed_out += 1;
        }
        event.map(|event| (slot, event))
    }
}

impl Network for EpollNetwork {
    fn open(&mut self, slot: usize, address: SocketAddr) -> io::Result<()> {
        self.close(slot);
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let descriptor = net::socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
        sockopt::set_tcp_nodelay(&descriptor, true)?;
        let socket = &mut self.sockets[slot];
        let data = EventData::new_u64(slot as u64 | (u64::from(socket.generation) << 32));
        let interest = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&self.epoll, &descriptor, data, interest)?;
        match net::connect(&descriptor, &address) {
            // Even a connection that is open at once tells so by an event.
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        socket.opening = true;
        socket.descriptor = Some(descriptor);
        Ok(())
    }

    fn send(&mut self, slot: usize, bytes: &[u8]) -> io::Result<()> {
        let socket = &mut self.sockets[slot];
        let Some(descriptor) = &socket.descriptor else { return Err(Errno::NOTCONN.into()) };
        let sent = if socket.unsent.is_empty() { send_now(descriptor, bytes)? } else { 0 };
        socket.unsent.extend_from_slice(&bytes[sent..]);
        Ok(())
    }

    fn close(&mut self, slot: usize) {
        let socket = &mut self.sockets[slot];
        // Closing the only descriptor of a socket takes it out of the epoll set.
        socket.descriptor = None;
        socket.generation = socket.generation.wrapping_add(1);
        socket.opening = false;
        socket.unsent.clear();
    }

    fn wait(&mut self, at_most: Duration) -> io::Result<bool> {
        self.events.clear();
        self.handed_out = 0;
        let timeout = Timespec {
            tv_sec: i64::try_from(at_most.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(at_most.subsec_nanos()),
        };
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), Some(&timeout)) {
            Ok(count) => Ok(count > 0),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
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
    /// The outcome of opening; absent where it is not known yet.
    fn opened(&mut self) -> Option<Event> {
        let descriptor = self.descriptor.as_ref()?;
        match sockopt::socket_error(descriptor) {
            Err(error) | Ok(Err(error)) => return Some(Event::OpenFailed(error.into())),
            Ok(Ok(())) => {}
        }
        // An event without an error may be premature: a connection is open when it has a peer.
        if net::getpeername(descriptor).is_err() {
            return None;
        }
        self.opening = false;
        Some(Event::Opened)
    }

    fn send_rest(&mut self) -> io::Result<()> {
        if let (Some(descriptor), false) = (&self.descriptor, self.unsent.is_empty()) {
            let sent = send_now(descriptor, &self.unsent)?;
            self.unsent.drain(..sent);
        }
        Ok(())
    }

    /// Reads once. The flag says that there is nothing more to read until the next event: a read that leaves room in the
    /// buffer has emptied the socket (epoll(7)), unless its end is announced too.
    fn receive(&mut self, flags: EventFlags, buffer: &mut [u8]) -> (Option<Event>, bool) {
        let at_end = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        if !flags.contains(EventFlags::IN) && !at_end {
            return (None, true);
        }
        let Some(descriptor) = &self.descriptor else { return (None, true) };
        let room = buffer.len();
        match net::recv(descriptor, buffer, net::RecvFlags::empty()).map(|(_, received)| received) {
            Ok(0) => (Some(Event::Ended), true),
            Ok(received) => (Some(Event::Received(received)), received < room && !at_end),
            Err(Errno::INTR) => (None, false),
            Err(Errno::AGAIN) => (None, true),
            Err(error) => (Some(Event::Failed(error.into())), true),
        }
    }
}

/// Sends what the kernel takes now.
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

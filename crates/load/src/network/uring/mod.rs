//! Connections over io_uring: operations are collected and submitted in the system call that waits for
//! completions. Needs Linux 6.1.
//!
//! Read [`UringNetwork::wait`] first: it submits what the slots need (`socket`), waits, and collects the
//! completions, which `next_event` then interprets one by one. `ring` holds the queues and `buffers` the
//! receive buffers. `tag` distinguishes completions from those of earlier connections in the same slot.
//!
//! A successful send posts no completion, so it does not end a wait for responses: it sends what the kernel
//! accepts at once, and only the remainder is sent by an operation that waits. Each connection has one
//! multishot receive that lasts as long as it is open.
//!
//! Alternatives that were tried, with figures: `docs/decisions/0007-io-uring.md`.

mod buffers;
mod ring;
mod socket;
mod tag;

use super::wake_timer::WakeTimer;
use super::{Event, Network, ProxyProtocol, Route, sleep};
use ring::Completion;
pub(crate) use ring::Ring;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{self, SendFlags, SocketFlags};
use rustls::pki_types::ServerName;
use socket::{Sending, Socket, Stage};
use std::io;
use std::time::Duration;
use tag::{Operation, Tag};

/// The operation that watches the timer.
const WAKE_TIMER: Tag = Tag { operation: Operation::WakeTimer, slot: 0, generation: 0 };

/// Connections of one thread over io_uring.
pub(crate) struct UringNetwork {
    ring: Ring,
    wake_timer: WakeTimer,
    /// The kernel watches the timer.
    alarm_watched: bool,
    sockets: Vec<Socket>,
    /// Header that connections begin with.
    proxy_protocol: Option<ProxyProtocol>,
    /// Slots with operations to submit.
    listed: Vec<usize>,
    /// Operations of closed connections to cancel.
    cancelled: Vec<Tag>,
    completions: Vec<Completion>,
    /// Completions of the last wait that are used up.
    handed_out: usize,
    /// Bytes of the next completion that are already handed out.
    bytes_handed_out: usize,
    /// Receive timestamp of the last bytes received.
    arrived: Option<Duration>,
    /// A receive of the last wait found no buffer: there is more to read.
    lacks_buffers: bool,
}

impl UringNetwork {
    /// Creates a network with this many slots. Only the first thread that waits may use it afterwards.
    pub(crate) fn new(
        mut ring: Ring,
        slots: usize,
        proxy_protocol: Option<ProxyProtocol>,
    ) -> io::Result<Self> {
        ring.reserve(slots)?;
        Ok(Self {
            ring,
            wake_timer: WakeTimer::new()?,
            alarm_watched: false,
            sockets: (0..slots).map(|_| Socket::default()).collect(),
            proxy_protocol,
            listed: Vec::new(),
            cancelled: Vec::new(),
            completions: Vec::new(),
            handed_out: 0,
            bytes_handed_out: 0,
            arrived: None,
            lacks_buffers: false,
        })
    }

    /// Lists the slot as having operations to submit.
    fn list(&mut self, slot: usize) {
        if !self.sockets[slot].listed {
            self.sockets[slot].listed = true;
            self.listed.push(slot);
        }
    }

    /// Queues all pending operations for submission.
    fn hand_over(&mut self) -> io::Result<()> {
        // Cancel operations of old connections first: this frees what new ones may need.
        for tag in self.cancelled.drain(..) {
            self.ring.cancel(tag)?;
        }
        for slot in self.listed.drain(..) {
            let socket = &mut self.sockets[slot];
            socket.listed = false;
            let Some((_, handle)) = socket.descriptor else { continue };
            if let Some(destination) = socket.destination.take() {
                self.ring.connect(handle, destination, socket.tag(Operation::Connect, slot))?;
                socket.stage = Stage::Connecting;
            }
            if socket.stage == Stage::Open && !socket.receiving {
                self.ring.receive(handle, socket.tag(Operation::Receive, slot))?;
                socket.receiving = true;
            }
            let may_send = matches!(socket.stage, Stage::Open | Stage::Ended) && !socket.outgoing.is_empty();
            if may_send && socket.sending == Sending::Idle {
                let tag = socket.tag(Operation::SendNow, slot);
                self.ring.send_now(handle, std::mem::take(&mut socket.outgoing), tag)?;
                socket.sending = Sending::Now;
            } else if may_send && socket.sending == Sending::Blocked {
                let tag = socket.tag(Operation::SendAll, slot);
                self.ring.send_all(handle, std::mem::take(&mut socket.outgoing), tag)?;
                socket.sending = Sending::All;
            }
        }
        Ok(())
    }
}

impl UringNetwork {
    /// Removes the timer's completions from those of a wait, which begin at index `first`.
    fn take_alarm(&mut self, first: usize) {
        for index in (first..self.completions.len()).rev() {
            if self.completions[index].tag == WAKE_TIMER {
                self.alarm_watched = self.completions[index].more;
                self.wake_timer.rang();
                self.completions.remove(index);
            }
        }
    }

    /// Recovers the buffers sent in a wait, whose completions begin at index `first`.
    fn take_back_sent(&mut self, first: usize) {
        for completion in &self.completions[first..] {
            let Tag { operation, slot, .. } = completion.tag;
            if operation == Operation::SendNow {
                // Nothing was closed since it was submitted.
                self.sockets[slot as usize].sending = Sending::Short(completion.outcome.unwrap_or(0));
            }
        }
        for (tag, bytes) in self.ring.take_sent() {
            let slot = tag.slot as usize;
            let socket = &mut self.sockets[slot];
            let taken = if let Sending::Short(taken) = socket.sending { taken } else { bytes.len() };
            let more = socket.handed_back(bytes, taken);
            if more && !socket.listed {
                socket.listed = true;
                self.listed.push(slot);
            }
        }
    }

    /// Interprets a completion for its slot. `None`: nothing to report. The flag means that the completion is
    /// used up.
    fn interpret(&mut self, completion: &Completion, buffer: &mut [u8]) -> (Option<Event>, bool) {
        let slot = completion.tag.slot as usize;
        if self.sockets[slot].generation != completion.tag.generation {
            self.let_go(completion);
            return (None, true);
        }
        match completion.tag.operation {
            Operation::Connect => (Some(self.connected(slot, completion)), true),
            Operation::Receive => self.received(slot, completion, buffer),
            Operation::SendNow | Operation::SendAll => (self.sent(slot, completion), true),
            Operation::Cancel | Operation::WakeTimer => (None, true),
        }
    }

    /// Releases what a completion of an earlier connection holds.
    fn let_go(&mut self, completion: &Completion) {
        self.bytes_handed_out = 0;
        if let Some(buffer) = completion.buffer {
            self.ring.give_back(buffer);
        }
        if completion.tag.operation == Operation::SendAll {
            self.ring.take_back(completion);
        }
    }

    fn connected(&mut self, slot: usize, completion: &Completion) -> Event {
        if let Err(error) = completion.outcome {
            self.sockets[slot].stage = Stage::Ended;
            return Event::OpenFailed(error.into());
        }
        let socket = &mut self.sockets[slot];
        socket.stage = Stage::Open;
        if let (Some(version), Some((descriptor, _))) = (self.proxy_protocol, &socket.descriptor) {
            match version.header(descriptor) {
                Ok(header) => socket.outgoing.extend(header),
                Err(error) => return Event::OpenFailed(error),
            }
        }
        self.list(slot);
        Event::Opened
    }

    fn received(&mut self, slot: usize, completion: &Completion, buffer: &mut [u8]) -> (Option<Event>, bool) {
        let message = completion
            .buffer
            .zip(completion.outcome.ok())
            .map(|(from, length)| (from, self.ring.received(from, length)));
        if let Some((from, (bytes, arrived))) = message.filter(|(_, (bytes, _))| !bytes.is_empty()) {
            self.arrived = arrived;
            let rest = &bytes[self.bytes_handed_out..];
            let copied = rest.len().min(buffer.len());
            buffer[..copied].copy_from_slice(&rest[..copied]);
            if copied < rest.len() {
                self.bytes_handed_out += copied;
                return (Some(Event::Received(copied)), false);
            }
            self.bytes_handed_out = 0;
            self.ring.give_back(from);
            if !completion.more {
                self.receive_again(slot);
            }
            return (Some(Event::Received(copied)), true);
        }
        if let Some(buffer) = completion.buffer {
            self.ring.give_back(buffer);
        }
        let event = match completion.outcome {
            Ok(_) => Some(Event::Ended),
            // Nothing was lost: the data stays in the kernel until a buffer is free, or until the receive is
            // submitted again.
            Err(error @ (Errno::NOBUFS | Errno::INTR | Errno::AGAIN)) => {
                self.lacks_buffers |= error == Errno::NOBUFS;
                self.receive_again(slot);
                return (None, true);
            }
            Err(error) => Some(Event::Failed(error.into())),
        };
        self.sockets[slot].stage = Stage::Ended;
        self.sockets[slot].receiving = false;
        (event, true)
    }

    fn receive_again(&mut self, slot: usize) {
        self.sockets[slot].receiving = false;
        self.list(slot);
    }

    /// Handles a send that was not accepted in full, or the end of a waiting one.
    fn sent(&mut self, slot: usize, completion: &Completion) -> Option<Event> {
        let is_over = completion.tag.operation == Operation::SendAll;
        let bytes = if is_over { self.ring.take_back(completion) } else { None };
        let taken = match completion.outcome {
            Ok(taken) => taken,
            Err(Errno::AGAIN | Errno::INTR) => 0,
            Err(error) => return Some(Event::Failed(error.into())),
        };
        if let Some(bytes) = bytes
            && self.sockets[slot].handed_back(bytes, taken)
        {
            self.list(slot);
        }
        None
    }
}

impl Network for UringNetwork {
    const IN_TURNS: bool = true;
    const SENDS_AT_ONCE: bool = false;

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
        // Blocking: otherwise the kernel would not wait inside an operation.
        let destination = Box::new(route.to_kernel()?);
        let descriptor = route.socket(SocketFlags::empty())?;
        self.ring.enable()?;
        let handle = self.ring.register(slot, &descriptor)?;
        let socket = &mut self.sockets[slot];
        socket.descriptor = Some((descriptor, handle));
        socket.stage = Stage::Due;
        socket.destination = Some(destination);
        self.list(slot);
        Ok(())
    }

    fn send(&mut self, slot: usize, bytes: &[u8]) -> io::Result<()> {
        let socket = &mut self.sockets[slot];
        if !matches!(socket.stage, Stage::Open | Stage::Ended) {
            return Err(Errno::NOTCONN.into());
        }
        socket.outgoing.extend_from_slice(bytes);
        self.list(slot);
        Ok(())
    }

    fn has_sent_all(&self, slot: usize) -> bool {
        self.sockets[slot].has_sent_all()
    }

    fn queued_bytes(&self, slot: usize) -> usize {
        self.sockets[slot].outgoing.len()
    }

    fn close(&mut self, slot: usize) {
        let socket = &mut self.sockets[slot];
        let Some((descriptor, _)) = socket.descriptor.take() else { return };
        send_last_words(&descriptor, socket);
        self.ring.unregister(slot);
        // The kernel keeps the socket open while operations on it are in progress.
        for (is_on_its_way, operation) in [
            (socket.stage == Stage::Connecting, Operation::Connect),
            (socket.receiving, Operation::Receive),
            (socket.sending == Sending::All, Operation::SendAll),
        ] {
            if is_on_its_way {
                self.cancelled.push(socket.tag(operation, slot));
            }
        }
        socket.generation = Tag::next_generation(socket.generation);
        socket.stage = Stage::Closed;
        socket.receiving = false;
        socket.destination = None;
        socket.sending = Sending::Idle;
        socket.outgoing.clear();
    }

    /// Submits all pending operations in the same system call.
    fn wait(&mut self, at_most: Duration) -> io::Result<bool> {
        self.ring.enable()?;
        self.completions.drain(..self.handed_out);
        (self.handed_out, self.lacks_buffers) = (0, false);
        self.hand_over()?;
        if at_most.is_zero() || !self.completions.is_empty() {
            self.ring.submit()?;
        } else {
            self.wake_timer.set(at_most)?;
            if !self.alarm_watched {
                self.ring.watch(&self.wake_timer, WAKE_TIMER)?;
                self.alarm_watched = true;
            }
            self.ring.submit_and_wait()?;
        }
        let first = self.completions.len();
        self.ring.take_completions(&mut self.completions)?;
        self.take_alarm(first);
        self.take_back_sent(first);
        Ok(!self.completions.is_empty())
    }

    fn sleep_through(&mut self, time: Duration) -> io::Result<bool> {
        self.wait(Duration::ZERO)?;
        sleep(time);
        self.wait(Duration::ZERO)
    }

    fn arrived(&self) -> Option<Duration> {
        self.arrived
    }

    fn has_read_all(&self) -> bool {
        !self.lacks_buffers && self.handed_out == self.completions.len()
    }

    fn next_event(&mut self, buffer: &mut [u8]) -> Option<(usize, Event)> {
        while self.handed_out < self.completions.len() {
            let completion = self.completions[self.handed_out];
            let (event, used_up) = self.interpret(&completion, buffer);
            self.handed_out += usize::from(used_up);
            if let Some(event) = event {
                return Some((completion.tag.slot as usize, event));
            }
        }
        None
    }
}

/// Sends what was pending for the next wait, as far as the kernel accepts it, such as a close_notify.
fn send_last_words(descriptor: &OwnedFd, socket: &Socket) {
    let may_send = matches!(socket.stage, Stage::Open | Stage::Ended) && socket.sending == Sending::Idle;
    if may_send && !socket.outgoing.is_empty() {
        // The data does not matter to a peer that is gone.
        let _ = net::send(descriptor, &socket.outgoing, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::contract_tests::{Contract, contract_tests};

    impl Contract for UringNetwork {
        fn with_slots(slots: usize) -> Self {
            let ring = Ring::new();
            Self::new(
                ring.expect("these tests need io_uring: Linux 6.1, not forbidden to this process"),
                slots,
                None,
            )
            .unwrap()
        }
    }

    contract_tests!(UringNetwork);
}

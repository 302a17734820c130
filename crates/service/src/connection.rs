//! One connection: what it has received, what it still has to send, what it waits for.
//!
//! A turn goes as far as it can without waiting: send what is left, answer what is due, read and answer more. The socket
//! is watched edge-triggered, so a turn that ends in [`Turn::Wait`] has always met a socket that would block.
//! Nothing is read while something is unsent or delayed: a client that does not read its responses is not read either.

use crate::output::{Output, Sent};
use crate::receiver::{Receiver, Step};
use crate::request::{Rejection, Reply, Request};
use crate::response::{self, Frame};
use crate::shared::Shared;
use rand::RngExt as _;
use rustix::buffer::spare_capacity;
use rustix::fd::OwnedFd;
use rustix::io::{self, Errno, retry_on_intr};
use rustix::net::{RecvFlags, Shutdown, recv, shutdown};

/// Steps of one turn, after which other connections get theirs.
const STEPS_PER_TURN: usize = 32;
/// Room that a connection with an unfinished head gets at a time, bytes.
const ROOM_BYTES: usize = 4 * 1024;
/// Composed bytes at which requests that came together are no longer answered together.
const SEND_AT_BYTES: usize = 16 * 1024;
/// How long a connection that the server ends is still read, so that its last response is not lost with a reset.
const LINGER_NS: u64 = 1_000_000_000;

/// What a connection needs next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Turn {
    /// Its socket.
    Wait,
    /// Its socket or this time, nanoseconds since the start of the server.
    WaitUntil(u64),
    /// Another turn, after the others.
    Again,
    /// Its end.
    Close,
}

#[derive(Debug)]
enum Phase {
    Receiving,
    /// A request waits for its time.
    Delayed {
        due_ns: u64,
        request: Request,
    },
    /// The last response is on its way.
    Ending {
        rejected: bool,
    },
    /// It was sent; what the client still sends is thrown away.
    Lingering {
        until_ns: u64,
    },
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub socket: OwnedFd,
    receiver: Receiver,
    phase: Phase,
    /// Received and not used yet.
    pending: Vec<u8>,
    /// `pending` was looked at and does not suffice.
    starved: bool,
    output: Output,
    answered: u64,
    readable: bool,
    /// The client will send no more.
    half_closed: bool,
    /// When it last moved, nanoseconds since the start of the server.
    pub active_ns: u64,
    /// Its entry in the worker's timers.
    pub timer_ns: Option<u64>,
    /// It is in the worker's queue for another turn.
    pub queued: bool,
}

impl Connection {
    pub(crate) fn new(socket: OwnedFd, now_ns: u64) -> Self {
        Self {
            socket,
            receiver: Receiver::default(),
            phase: Phase::Receiving,
            pending: Vec::new(),
            starved: true,
            output: Output::default(),
            answered: 0,
            readable: false,
            half_closed: false,
            active_ns: now_ns,
            timer_ns: None,
            queued: false,
        }
    }

    /// Notes that the socket has something to read.
    pub(crate) fn has_input(&mut self, half_closed: bool) {
        self.readable = true;
        self.half_closed |= half_closed;
    }

    /// Whether it waits for its own delayed answer rather than for the client.
    pub(crate) fn is_delayed(&self) -> bool {
        matches!(self.phase, Phase::Delayed { .. })
    }

    /// Bytes of memory that it holds on to for unfinished requests.
    pub(crate) fn held_bytes(&self) -> usize {
        self.pending.capacity()
    }

    /// Takes a turn.
    pub(crate) fn turn(&mut self, shared: &mut Shared) -> Turn {
        shared.held_bytes -= self.held_bytes();
        let turn = self.steps(shared).unwrap_or(Turn::Close);
        shared.held_bytes += self.held_bytes();
        debug_assert!(turn == Turn::Close || shared.composed.is_empty(), "every response was sent or kept");
        shared.composed.clear();
        turn
    }

    fn steps(&mut self, shared: &mut Shared) -> io::Result<Turn> {
        for _ in 0..STEPS_PER_TURN {
            match self.output.send(&self.socket, shared)? {
                Sent::All => {}
                Sent::UntilBlocked => return Ok(Turn::Wait),
                Sent::Some => return Ok(Turn::Again),
            }
            match self.phase {
                Phase::Receiving => {
                    if let Some(turn) = self.receive(shared)? {
                        return Ok(turn);
                    }
                }
                Phase::Delayed { due_ns, .. } if shared.now_ns() < due_ns => {
                    return Ok(Turn::WaitUntil(due_ns));
                }
                Phase::Delayed { .. } => {
                    if let Phase::Delayed { request, .. } =
                        std::mem::replace(&mut self.phase, Phase::Receiving)
                    {
                        self.reply(&request, shared);
                    }
                }
                Phase::Ending { rejected } => {
                    if !rejected && !self.readable && self.pending.is_empty() {
                        return Ok(Turn::Close);
                    }
                    shutdown(&self.socket, Shutdown::Write)?;
                    self.pending = Vec::new();
                    self.phase = Phase::Lingering { until_ns: shared.now_ns() + LINGER_NS };
                }
                Phase::Lingering { until_ns } => {
                    if shared.now_ns() >= until_ns {
                        return Ok(Turn::Close);
                    }
                    shared.received.clear();
                    if !self.readable {
                        return Ok(Turn::WaitUntil(until_ns));
                    }
                    match self.read(&mut shared.received)? {
                        Some(0) => return Ok(Turn::Close),
                        length => shared.tally.bytes_received.add(length.unwrap_or(0) as u64),
                    }
                }
            }
        }
        // What the last step composed has to leave the worker's room before others use it.
        Ok(match self.output.send(&self.socket, shared)? {
            Sent::UntilBlocked => Turn::Wait,
            Sent::All | Sent::Some => Turn::Again,
        })
    }

    /// Reads where needed and answers what is there. Gives a turn where there is nothing to do.
    fn receive(&mut self, shared: &mut Shared) -> io::Result<Option<Turn>> {
        if (self.starved || self.pending.is_empty()) && !self.readable {
            return Ok(Some(Turn::Wait));
        }
        if self.pending.is_empty() {
            // The usual way: into the worker's own room, and nothing stays with the connection.
            let mut received = std::mem::take(&mut shared.received);
            received.clear();
            let outcome = self.read(&mut received);
            if let Ok(Some(1..)) = outcome {
                shared.tally.bytes_received.add(received.len() as u64);
                let used = self.consume(&received, shared);
                self.pending.extend_from_slice(&received[used..]);
            }
            shared.received = received;
            return outcome.map(|outcome| (outcome == Some(0)).then_some(Turn::Close));
        }
        let mut pending = std::mem::take(&mut self.pending);
        if self.starved {
            if shared.held_bytes > Shared::HELD_MAX_BYTES {
                self.reject(&Rejection { status: 503, reason: "too many unfinished requests" }, shared);
                return Ok(None);
            }
            pending.reserve(ROOM_BYTES);
            match self.read(&mut pending)? {
                Some(0) => return Ok(Some(Turn::Close)),
                Some(length) => shared.tally.bytes_received.add(length as u64),
                None => {
                    self.pending = pending;
                    return Ok(None);
                }
            }
        }
        let used = self.consume(&pending, shared);
        pending.drain(..used);
        if !pending.is_empty() {
            self.pending = pending;
        }
        Ok(None)
    }

    /// Reads once, behind what `into` holds: how many bytes, 0 at the end of the stream, nothing where there is none now.
    fn read(&mut self, into: &mut Vec<u8>) -> io::Result<Option<usize>> {
        let room = into.capacity() - into.len();
        match retry_on_intr(|| recv(&self.socket, spare_capacity(into), RecvFlags::empty())) {
            Ok((length, _)) => {
                // Less than there was room for: the socket is drained, and the next byte is a new edge (epoll(7)). The
                // end of the stream may have come with these bytes, and has no edge of its own then.
                self.readable = length == room || self.half_closed;
                Ok(Some(length))
            }
            Err(Errno::AGAIN) => {
                self.readable = false;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Answers the requests in `input` into what the worker composes, as far as they can be answered now, and says how
    /// many bytes it used.
    fn consume(&mut self, input: &[u8], shared: &mut Shared) -> usize {
        let mut used = 0;
        self.starved = false;
        while matches!(self.phase, Phase::Receiving)
            && !self.output.is_waiting()
            && shared.composed.len() < SEND_AT_BYTES
        {
            let (length, step) = self.receiver.advance(&input[used..], &shared.answer);
            used += length;
            match step {
                Ok(Step::More) => {
                    self.starved = true;
                    break;
                }
                Ok(Step::Continue) => shared.composed.extend_from_slice(response::CONTINUE),
                Ok(Step::Request(request)) => self.take(request, shared),
                Err(rejection) => self.reject(&rejection, shared),
            }
        }
        used
    }

    fn take(&mut self, request: Request, shared: &mut Shared) {
        if request.reply != Reply::Counters {
            shared.tally.requests.add(1);
        }
        match response::delay_ns(&request.reply) {
            0 => self.reply(&request, shared),
            delay_ns => {
                let due_ns = shared.now_ns().saturating_add(delay_ns);
                self.phase = Phase::Delayed { due_ns, request };
            }
        }
    }

    fn reply(&mut self, request: &Request, shared: &mut Shared) {
        self.answered += 1;
        let stays = shared.requests_per_connection.is_none_or(|limit| self.answered < limit.get());
        let keep_alive = request.keep_alive && stays;
        let frame = Frame { keep_alive, version_1_0: request.version_1_0, head_only: request.head_only };
        match &request.reply {
            Reply::Filler(answer) => {
                let fails = answer.error_fraction > 0.0 && shared.random.random_bool(answer.error_fraction);
                let status = if fails { 500 } else { answer.status };
                shared.tally.errors.add(u64::from(fails));
                let behind = shared.composer.filler(&mut shared.composed, status, answer.body_bytes, frame);
                self.output.send_filler(behind);
            }
            Reply::Counters => {
                let json = shared.counters().to_json();
                response::write_text(&mut shared.composed, 200, "application/json", &json, frame);
            }
            Reply::Refused { status, reason } => {
                let line = format!("{reason}\n");
                response::write_text(&mut shared.composed, *status, "text/plain", &line, frame);
            }
        }
        if !keep_alive {
            self.phase = Phase::Ending { rejected: false };
        }
    }

    fn reject(&mut self, rejection: &Rejection, shared: &mut Shared) {
        shared.tally.rejected.add(1);
        let frame = Frame { keep_alive: false, version_1_0: false, head_only: false };
        let line = format!("{}\n", rejection.reason);
        response::write_text(&mut shared.composed, rejection.status, "text/plain", &line, frame);
        self.phase = Phase::Ending { rejected: true };
    }
}

//! WebSocket on one connection, after its handshake: each message is echoed after the delay, or answered by a stream of messages on the
//! schedule of a stream of events.
//!
//! Messages are answered one after the other: nothing is read while an answer is unsent or not due, as over HTTP/1.1.

use crate::compute::compute;
use crate::counters::Tally;
use crate::events::{Schedule, filler};
use crate::output::{Output, Sent};
use crate::settings::Answer;
use crate::shared::Shared;
use crate::transport::Transport;
use crate::turn::{LINGER_NS, Turn};
use ::http1::websocket::{FrameReader, Opcode, Received, Sender, write_close, write_frame};
use rustix::io;

/// Steps per turn, after which other connections get theirs.
const STEPS_PER_TURN: usize = 32;
/// Amount of composed output above which further messages are not answered together, bytes.
const SEND_AT_BYTES: usize = 16 * 1024;
/// Maximum size of a message, as over gRPC.
const MAX_MESSAGE_BYTES: u64 = 16 << 20;
/// Codes of close frames (RFC 6455, 7.4.1).
const NORMAL: u16 = 1000;
const INTERNAL_ERROR: u16 = 1011;
const TRY_AGAIN_LATER: u16 = 1013;

#[derive(Debug)]
enum Phase {
    Receiving,
    /// The echo of a message is delayed.
    Delayed {
        due_ns: u64,
    },
    /// A stream of messages is being sent.
    Pushing(Box<Schedule>),
    /// The close frame is being sent.
    Ending,
    /// It is sent; further input is discarded.
    Lingering {
        until_ns: u64,
    },
}

/// A connection that carries messages.
#[derive(Debug)]
pub(crate) struct WebSocket {
    transport: Transport,
    answer: Box<Answer>,
    frames: FrameReader,
    phase: Phase,
    /// Bytes received behind a message that waits.
    pending: Vec<u8>,
    /// The message that is being received, or waits.
    message: Vec<u8>,
    opcode: Opcode,
    output: Output,
    answered: u64,
    /// Answers that are composed and not fully sent.
    unsent_answers: u64,
}

impl WebSocket {
    /// A connection of which these bytes were received after the handshake.
    pub(crate) fn new(transport: Transport, pending: Vec<u8>, answer: Box<Answer>, shared: &Shared) -> Self {
        shared.tally.websocket.connections.add(1);
        Self {
            transport,
            answer,
            frames: FrameReader::new(Sender::Client, MAX_MESSAGE_BYTES),
            phase: Phase::Receiving,
            pending,
            message: Vec::new(),
            opcode: Opcode::Text,
            output: Output::default(),
            answered: 0,
            unsent_answers: 0,
        }
    }

    /// Notes that the socket is readable.
    pub(crate) fn has_input(&mut self, half_closed: bool) {
        self.transport.has_input(half_closed);
    }

    /// True if it waits for its own answer rather than for the client.
    pub(crate) fn is_delayed(&self) -> bool {
        match self.phase {
            Phase::Delayed { .. } => true,
            Phase::Pushing(_) => !self.output.is_waiting(),
            _ => false,
        }
    }

    /// Bytes of memory held for messages.
    pub(crate) fn held_bytes(&self) -> usize {
        self.pending.capacity() + self.message.capacity()
    }

    /// Counts messages cut off by the end of the connection.
    pub(crate) fn count_end(&self, tally: &Tally) {
        let counts = &tally.websocket;
        let waits = matches!(self.phase, Phase::Delayed { .. } | Phase::Pushing(_));
        counts.failed.add(self.unsent_answers + u64::from(waits));
        counts.incomplete.add(u64::from(self.frames.is_within_message()));
    }

    /// Runs one turn.
    pub(crate) fn turn(&mut self, shared: &mut Shared) -> Turn {
        let turn = self.steps(shared).unwrap_or(Turn::Close);
        shared.composed.clear();
        turn
    }

    fn steps(&mut self, shared: &mut Shared) -> io::Result<Turn> {
        for _ in 0..STEPS_PER_TURN {
            match self.send(shared)? {
                Sent::All => {}
                Sent::UntilBlocked => return Ok(Turn::Wait),
                Sent::Some => return Ok(Turn::Again),
            }
            match &mut self.phase {
                Phase::Receiving if !self.pending.is_empty() => {
                    let mut pending = std::mem::take(&mut self.pending);
                    let used = self.consume(&pending, shared);
                    pending.drain(..used);
                    if !pending.is_empty() {
                        self.pending = pending;
                    }
                }
                Phase::Receiving => {
                    if !self.transport.is_readable() {
                        return Ok(Turn::Wait);
                    }
                    let mut received = std::mem::take(&mut shared.received);
                    received.clear();
                    let outcome = self.transport.receive(&mut received);
                    if let Ok(Some(1..)) = outcome {
                        shared.tally.bytes_received.add(received.len() as u64);
                        let used = self.consume(&received, shared);
                        self.pending.extend_from_slice(&received[used..]);
                    }
                    shared.received = received;
                    if outcome? == Some(0) {
                        return Ok(Turn::Close);
                    }
                }
                Phase::Delayed { due_ns } if shared.now_ns() < *due_ns => {
                    return Ok(Turn::WaitUntil(*due_ns));
                }
                Phase::Delayed { .. } => {
                    self.phase = Phase::Receiving;
                    self.echo(shared);
                }
                Phase::Pushing(_) => {
                    if let Some(turn) = self.push(shared) {
                        return Ok(turn);
                    }
                }
                Phase::Ending => {
                    self.transport.end_sending()?;
                    (self.pending, self.message) = (Vec::new(), Vec::new());
                    self.phase = Phase::Lingering { until_ns: shared.now_ns() + LINGER_NS };
                }
                Phase::Lingering { until_ns } => {
                    let until_ns = *until_ns;
                    if shared.now_ns() >= until_ns || self.transport.drain(&mut shared.received)? {
                        return Ok(Turn::Close);
                    }
                    return Ok(Turn::WaitUntil(until_ns));
                }
            }
        }
        // The output of the last step must leave the worker's shared buffer before others use it.
        Ok(match self.send(shared)? {
            Sent::UntilBlocked => Turn::Wait,
            Sent::All | Sent::Some => Turn::Again,
        })
    }

    fn send(&mut self, shared: &mut Shared) -> io::Result<Sent> {
        let sent = self.output.send(&mut self.transport, shared)?;
        if sent == Sent::All {
            shared.tally.websocket.answered.add(std::mem::take(&mut self.unsent_answers));
        }
        Ok(sent)
    }

    /// Answers the messages in `input` as far as they can be answered now. Returns how many bytes it used.
    fn consume(&mut self, input: &[u8], shared: &mut Shared) -> usize {
        let mut used = 0;
        while matches!(self.phase, Phase::Receiving)
            && used < input.len()
            && !self.output.is_waiting()
            && shared.composed.len() < SEND_AT_BYTES
        {
            if self.frames.is_within_message() && shared.held_bytes > Shared::MAX_HELD_BYTES {
                self.reject(TRY_AGAIN_LATER, shared);
                break;
            }
            let content = (self.answer.events.count == 0).then_some(&mut self.message);
            match self.frames.read(&input[used..], content) {
                Ok((length, received)) => {
                    used += length;
                    self.take(received, shared);
                }
                Err(fault) => self.reject(fault.close_code(), shared),
            }
        }
        used
    }

    fn take(&mut self, received: Received, shared: &mut Shared) {
        match received {
            Received::More | Received::Pong => {}
            Received::Ping => write_frame(&mut shared.composed, Opcode::Pong, self.frames.control(), None),
            Received::Close(code) => self.close(code, shared),
            Received::Message { opcode, .. } => {
                self.opcode = opcode;
                shared.tally.websocket.requests.add(1);
                match self.answer.delay_ns() {
                    0 => self.echo(shared),
                    delay_ns => {
                        self.phase = Phase::Delayed { due_ns: shared.now_ns().saturating_add(delay_ns) };
                    }
                }
            }
        }
    }

    /// Answers the message, or closes the connection for an injected error.
    fn echo(&mut self, shared: &mut Shared) {
        compute(self.answer.cpu_time);
        if self.answer.fails(&mut shared.random) {
            shared.tally.errors.add(1);
            shared.tally.websocket.failed.add(1);
            return self.close(Some(INTERNAL_ERROR), shared);
        }
        if self.answer.events.count > 0 {
            let schedule = Schedule::new(&self.answer.events, shared.now_ns(), &mut shared.random);
            self.phase = Phase::Pushing(Box::new(schedule));
            return;
        }
        // An idle connection holds no memory for messages.
        write_frame(&mut shared.composed, self.opcode, &std::mem::take(&mut self.message), None);
        self.is_answered(shared);
    }

    /// Composes the messages that are due, or returns when the next one is.
    fn push(&mut self, shared: &mut Shared) -> Option<Turn> {
        let Phase::Pushing(schedule) = &mut self.phase else { return None };
        let content = filler(self.answer.events.event_bytes);
        while shared.composed.len() < SEND_AT_BYTES {
            if let Some(due_ns) = schedule.next_ns().filter(|due_ns| shared.now_ns() < *due_ns) {
                return shared.composed.is_empty().then_some(Turn::WaitUntil(due_ns));
            }
            write_frame(&mut shared.composed, Opcode::Text, &content, None);
            if schedule.take() {
                self.phase = Phase::Receiving;
                self.is_answered(shared);
                return None;
            }
        }
        None
    }

    fn is_answered(&mut self, shared: &mut Shared) {
        self.answered += 1;
        self.unsent_answers += 1;
        if shared.requests_per_connection.is_some_and(|limit| self.answered >= limit.get()) {
            self.close(Some(NORMAL), shared);
        }
    }

    fn reject(&mut self, code: u16, shared: &mut Shared) {
        shared.tally.rejected.add(1);
        self.close(Some(code), shared);
    }

    fn close(&mut self, code: Option<u16>, shared: &mut Shared) {
        write_close(&mut shared.composed, code, None);
        self.phase = Phase::Ending;
    }
}

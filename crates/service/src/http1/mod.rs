//! HTTP/1.1 on one connection: received bytes, unsent output, and what it waits for.
//!
//! A turn proceeds as far as it can without waiting: it sends what is left, answers what is due, reads and
//! answers more. The socket is watched edge-triggered, so a turn that ends in [`Turn::Wait`] has always hit a
//! socket that would block. Nothing is read while a response is unsent or delayed: a client that does not
//! read its responses is not read either.
//!
//! `receiver` finds `request`s in the bytes, for services of topologies too. A connection that starts with the HTTP/2
//! preface is handed over, and so is one that becomes a WebSocket.

mod receiver;
mod request;

pub use receiver::check_requests;
pub(crate) use receiver::{Receiver, Step, TakeContent};

use crate::compute::compute;
use crate::counters::Tally;
use crate::events::{Frames, Schedule};
use crate::output::{Output, Sent};
use crate::reply::Reply;
use crate::response::{self, Frame, is_bodiless};
use crate::settings::Answer;
use crate::shared::Shared;
use crate::transport::Transport;
use crate::turn::{LINGER_NS, Turn};
use ::http1::Rejection;
use request::Request;
use rustix::io;
use std::time::Duration;

/// Steps per turn, after which other connections get theirs.
const STEPS_PER_TURN: usize = 32;
/// Buffer growth of a connection with an incomplete head, bytes.
const ROOM_BYTES: usize = 4 * 1024;
/// Amount of composed output above which pipelined requests are no longer answered together, bytes.
const SEND_AT_BYTES: usize = 16 * 1024;
/// Rejects requests while those of all clients take too much memory.
const TOO_MUCH_HELD: Rejection = Rejection { status: 503, reason: "too many unfinished requests" };
/// HTTP/2 client preface, with which no HTTP/1.1 request starts (RFC 9113, 3.4).
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// True if a connection that starts with these bytes is HTTP/2; `None` if they are too few to know.
pub(crate) fn is_http2(start: &[u8]) -> Option<bool> {
    let is_known = start.len() >= HTTP2_PREFACE.len() || !HTTP2_PREFACE.starts_with(start);
    is_known.then(|| start.starts_with(HTTP2_PREFACE))
}

#[derive(Debug)]
enum Phase {
    /// The HTTP version is not known yet.
    Starting,
    Receiving,
    /// The response that accepts a WebSocket is being sent.
    Switching(Box<Answer>),
    /// The client speaks HTTP/2, or WebSocket, answered in this way.
    HandingOn(Option<Box<Answer>>),
    /// A response is delayed.
    Delayed {
        due_ns: u64,
        request: Box<Request>,
    },
    /// A stream of events is being sent.
    Streaming(Box<Streaming>),
    /// The last response is being sent.
    Ending {
        rejected: bool,
    },
    /// The last response is sent; further input is discarded.
    Lingering {
        until_ns: u64,
    },
}

/// A stream of events that is being sent.
#[derive(Debug)]
struct Streaming {
    schedule: Schedule,
    frames: Box<Frames>,
    frame: Frame,
}

/// A connection in HTTP/1.1, or with a version that its first bytes will show.
#[derive(Debug)]
pub(crate) struct Http1 {
    transport: Transport,
    receiver: Receiver<Request>,
    phase: Phase,
    /// Received and unused bytes.
    pending: Vec<u8>,
    /// `pending` was parsed and is incomplete.
    starved: bool,
    output: Output,
    answered: u64,
    /// Responses to counted requests that are composed and not fully sent.
    unsent_answers: u64,
}

impl Http1 {
    pub(crate) fn new(transport: Transport) -> Self {
        Self {
            transport,
            receiver: Receiver::default(),
            phase: Phase::Starting,
            pending: Vec::new(),
            starved: true,
            output: Output::default(),
            answered: 0,
            unsent_answers: 0,
        }
    }

    /// Notes that the socket is readable.
    pub(crate) fn has_input(&mut self, half_closed: bool) {
        self.transport.has_input(half_closed);
    }

    /// True if it waits for its own delayed response, or the next event of it, rather than for the client.
    pub(crate) fn is_delayed(&self) -> bool {
        match self.phase {
            Phase::Delayed { .. } => true,
            Phase::Streaming(_) => !self.output.is_waiting(),
            _ => false,
        }
    }

    /// Bytes of memory held for unfinished requests.
    pub(crate) fn held_bytes(&self) -> usize {
        self.pending.capacity() + self.receiver.held_bytes()
    }

    /// Transport and received bytes of a connection that continues as HTTP/2, or as a WebSocket that is answered in this way.
    pub(crate) fn into_parts(self) -> (Transport, Vec<u8>, Option<Box<Answer>>) {
        let answer = if let Phase::HandingOn(answer) = self.phase { answer } else { None };
        (self.transport, self.pending, answer)
    }

    /// Counts requests cut off by the end of the connection.
    pub(crate) fn count_end(&self, tally: &Tally) {
        let counts = &tally.http1;
        counts.failed.add(self.unsent_answers);
        match &self.phase {
            Phase::Delayed { request, .. } => counts.failed.add(u64::from(request.reply != Reply::Counters)),
            Phase::Streaming(_) => counts.failed.add(1),
            Phase::Receiving if !self.pending.is_empty() || self.receiver.is_within_request() => {
                counts.incomplete.add(1);
            }
            _ => {}
        }
    }

    /// Runs one turn; `None` if the connection continues in another protocol.
    pub(crate) fn turn(&mut self, shared: &mut Shared) -> Option<Turn> {
        let turn = self.steps(shared).unwrap_or(Turn::Close);
        debug_assert!(turn == Turn::Close || shared.composed.is_empty(), "every response was sent or kept");
        shared.composed.clear();
        if matches!(self.phase, Phase::HandingOn(_)) { None } else { Some(turn) }
    }

    fn steps(&mut self, shared: &mut Shared) -> io::Result<Turn> {
        for _ in 0..STEPS_PER_TURN {
            match self.send(shared)? {
                Sent::All => {}
                Sent::UntilBlocked => return Ok(Turn::Wait),
                Sent::Some => return Ok(Turn::Again),
            }
            match self.phase {
                Phase::Switching(_) => {
                    if let Phase::Switching(answer) = std::mem::replace(&mut self.phase, Phase::Starting) {
                        self.phase = Phase::HandingOn(Some(answer));
                    }
                }
                Phase::HandingOn(_) => return Ok(Turn::Again),
                Phase::Starting | Phase::Receiving => {
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
                        self.reply(*request, shared);
                    }
                }
                Phase::Streaming(_) => {
                    if let Some(turn) = self.stream(shared) {
                        return Ok(turn);
                    }
                }
                Phase::Ending { rejected } => {
                    if !rejected && self.pending.is_empty() && self.transport.may_close_at_once() {
                        return Ok(Turn::Close);
                    }
                    self.transport.end_sending()?;
                    self.pending = Vec::new();
                    self.phase = Phase::Lingering { until_ns: shared.now_ns() + LINGER_NS };
                }
                Phase::Lingering { until_ns } => {
                    if shared.now_ns() >= until_ns {
                        return Ok(Turn::Close);
                    }
                    shared.received.clear();
                    if !self.transport.is_readable() {
                        return Ok(Turn::WaitUntil(until_ns));
                    }
                    match self.transport.receive(&mut shared.received)? {
                        Some(0) => return Ok(Turn::Close),
                        length => shared.tally.bytes_received.add(length.unwrap_or(0) as u64),
                    }
                }
            }
        }
        // The output of the last step must leave the worker's shared buffer before others use it.
        Ok(match self.send(shared)? {
            Sent::UntilBlocked => Turn::Wait,
            Sent::All | Sent::Some => Turn::Again,
        })
    }

    /// Reads if needed and answers what is there. Returns a turn if there is nothing to do.
    fn receive(&mut self, shared: &mut Shared) -> io::Result<Option<Turn>> {
        if (self.starved || self.pending.is_empty()) && !self.transport.is_readable() {
            return Ok(Some(Turn::Wait));
        }
        if self.receiver.held_bytes() > 0 && shared.held_bytes > Shared::MAX_HELD_BYTES {
            self.reject(&TOO_MUCH_HELD, shared);
            return Ok(None);
        }
        if self.pending.is_empty() {
            // The common case: read into the worker's own buffer, and keep nothing with the connection.
            let mut received = std::mem::take(&mut shared.received);
            received.clear();
            let outcome = self.transport.receive(&mut received);
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
            if shared.held_bytes > Shared::MAX_HELD_BYTES {
                self.reject(&TOO_MUCH_HELD, shared);
                return Ok(None);
            }
            pending.reserve(ROOM_BYTES);
            match self.transport.receive(&mut pending)? {
                Some(0) => {
                    self.pending = pending;
                    return Ok(Some(Turn::Close));
                }
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

    fn send(&mut self, shared: &mut Shared) -> io::Result<Sent> {
        let sent = self.output.send(&mut self.transport, shared)?;
        if sent == Sent::All && self.unsent_answers > 0 {
            shared.tally.http1.answered.add(std::mem::take(&mut self.unsent_answers));
        }
        Ok(sent)
    }

    /// Answers the requests in `input` into the worker's output buffer, as far as they can be answered now.
    /// Returns how many bytes it used.
    fn consume(&mut self, input: &[u8], shared: &mut Shared) -> usize {
        let mut used = 0;
        self.starved = false;
        if matches!(self.phase, Phase::Starting) {
            self.start(input, shared);
        }
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

    /// Detects the HTTP version from the first bytes.
    fn start(&mut self, input: &[u8], shared: &mut Shared) {
        match is_http2(input) {
            None => self.starved = true,
            Some(true) => self.phase = Phase::HandingOn(None),
            Some(false) => {
                self.phase = Phase::Receiving;
                shared.tally.http1.connections.add(1);
            }
        }
    }

    fn take(&mut self, request: Request, shared: &mut Shared) {
        if let (Some(accept), Reply::Filler(answer) | Reply::Events(answer, _)) =
            (&request.websocket, &request.reply)
            && answer.status == 200
        {
            response::write_switch(&mut shared.composed, accept);
            self.phase = Phase::Switching(Box::new(*answer));
            return;
        }
        let request = Request { reply: request.reply.completed(&mut shared.random), ..request };
        if request.reply != Reply::Counters {
            shared.tally.http1.requests.add(1);
        }
        match request.reply.delay_ns() {
            0 => self.reply(request, shared),
            delay_ns => {
                let due_ns = shared.now_ns().saturating_add(delay_ns);
                self.phase = Phase::Delayed { due_ns, request: Box::new(request) };
            }
        }
    }

    fn reply(&mut self, request: Request, shared: &mut Shared) {
        self.answered += 1;
        let stays = shared.requests_per_connection.is_none_or(|limit| self.answered < limit.get());
        let keep_alive = request.keep_alive && stays;
        let Request { reply, version_1_0, head_only, .. } = request;
        let frame = Frame { keep_alive, version_1_0, head_only };
        compute(reply.answer().map_or(Duration::ZERO, |answer| answer.cpu_time));
        let fails = reply.fails(&mut shared.random);
        shared.tally.errors.add(u64::from(fails));
        let reply = if fails { reply.failed() } else { reply };
        let has_content = reply.answer().is_some_and(|answer| !is_bodiless(answer.status));
        let is_counted = reply != Reply::Counters;
        match reply {
            Reply::Events(answer, frames) if has_content && !fails => {
                return self.begin_stream(&answer, frames, frame, shared);
            }
            Reply::Json { answer, json } if has_content => {
                response::write_text(&mut shared.composed, answer.status, "application/json", &json, frame);
            }
            Reply::Filler(answer) | Reply::Events(answer, _) | Reply::Json { answer, .. } => {
                let status = if fails { 500 } else { answer.status };
                let behind = shared.composer.filler(&mut shared.composed, status, answer.body_bytes, frame);
                self.output.send_filler(behind);
            }
            Reply::Counters => {
                let json = shared.counters().to_json();
                response::write_text(&mut shared.composed, 200, "application/json", &json, frame);
            }
            // Replies are completed with their request.
            Reply::Chat(_) => response::write_line(&mut shared.composed, 500, "", frame),
            Reply::Refused { status, reason } => {
                response::write_line(&mut shared.composed, status, &reason, frame);
            }
        }
        self.unsent_answers += u64::from(is_counted);
        if !keep_alive {
            self.phase = Phase::Ending { rejected: false };
        }
    }

    /// Begins a stream of events, whose schedule counts from now.
    fn begin_stream(&mut self, answer: &Answer, frames: Box<Frames>, frame: Frame, shared: &mut Shared) {
        // Only the end of the connection ends a stream over HTTP/1.0.
        let frame = Frame { keep_alive: frame.keep_alive && !frame.version_1_0, ..frame };
        response::write_stream_head(&mut shared.composed, answer.status, frame);
        if frame.head_only {
            return self.stream_ended(frame);
        }
        response::write_part(&mut shared.composed, &frames.opening, frame);
        let schedule = Schedule::new(&answer.events, shared.now_ns(), &mut shared.random);
        self.phase = Phase::Streaming(Box::new(Streaming { schedule, frames, frame }));
    }

    /// Composes the events that are due, or returns when the next one is.
    fn stream(&mut self, shared: &mut Shared) -> Option<Turn> {
        let Phase::Streaming(streaming) = &mut self.phase else { return None };
        let Streaming { schedule, frames, frame } = streaming.as_mut();
        let frame = *frame;
        while shared.composed.len() < SEND_AT_BYTES {
            if let Some(due_ns) = schedule.next_ns().filter(|due_ns| shared.now_ns() < *due_ns) {
                return shared.composed.is_empty().then_some(Turn::WaitUntil(due_ns));
            }
            response::write_part(&mut shared.composed, &frames.event, frame);
            if schedule.take() {
                response::write_part(&mut shared.composed, &frames.closing, frame);
                response::write_stream_end(&mut shared.composed, frame);
                self.stream_ended(frame);
                return None;
            }
        }
        None
    }

    fn stream_ended(&mut self, frame: Frame) {
        self.unsent_answers += 1;
        self.phase = if frame.keep_alive { Phase::Receiving } else { Phase::Ending { rejected: false } };
    }

    fn reject(&mut self, rejection: &Rejection, shared: &mut Shared) {
        shared.tally.rejected.add(1);
        response::write_rejection(&mut shared.composed, rejection);
        self.phase = Phase::Ending { rejected: true };
    }
}

//! Raw TCP on one connection: requests of a fixed size, each answered with a reply of a fixed size.
//!
//! The content of a request is ignored. Byte `i` of every reply is `i mod 251`: because 251 is prime, a reply
//! that lost or duplicated a page or a segment is detectable. Pipelined requests are answered in order.

use crate::compute::compute;
use crate::content::MAX_COPIED_BYTES;
use crate::counters::Tally;
use crate::output::{Output, Sent};
use crate::settings::TcpSizes;
use crate::shared::Shared;
use crate::transport::Transport;
use crate::turn::{LINGER_NS, Turn};
use rustix::io;

/// Byte `i` of a reply is `i` modulo this.
pub const TCP_REPLY_MODULUS: u8 = 251;
/// Steps per turn, after which other connections get theirs.
const STEPS_PER_TURN: usize = 32;
/// Amount of composed output above which pipelined requests are no longer answered together, bytes.
const SEND_AT_BYTES: usize = 16 * 1024;
const PATTERN_BYTES: usize = TCP_REPLY_MODULUS as usize * 64;
/// Replies repeat this from its start.
pub(crate) static PATTERN: [u8; PATTERN_BYTES] = pattern();

const fn pattern() -> [u8; PATTERN_BYTES] {
    let mut bytes = [0; PATTERN_BYTES];
    let mut at = 0;
    while at < PATTERN_BYTES {
        bytes[at] = (at % TCP_REPLY_MODULUS as usize) as u8;
        at += 1;
    }
    bytes
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    /// Receiving a request, and how many bytes of it were read.
    Receiving { read_bytes: u64 },
    /// A reply is delayed.
    Delayed { due_ns: u64 },
    /// The last reply is being sent.
    Ending,
    /// The last reply is sent; further input is discarded.
    Lingering { until_ns: u64 },
}

/// A connection that carries requests of a fixed size.
#[derive(Debug)]
pub(crate) struct Tcp {
    transport: Transport,
    sizes: TcpSizes,
    phase: Phase,
    /// Bytes received after a request that waits.
    received_ahead: u64,
    output: Output,
    answered: u64,
    /// Replies that are composed and not fully sent.
    unsent_answers: u64,
}

impl Tcp {
    pub(crate) fn new(transport: Transport, shared: &Shared) -> Self {
        shared.tally.tcp.connections.add(1);
        Self {
            transport,
            sizes: shared.tcp,
            phase: Phase::Receiving { read_bytes: 0 },
            received_ahead: 0,
            output: Output::new(&PATTERN),
            answered: 0,
            unsent_answers: 0,
        }
    }

    /// Notes that the socket is readable.
    pub(crate) fn has_input(&mut self, half_closed: bool) {
        self.transport.has_input(half_closed);
    }

    /// True if it waits for its own delayed reply rather than for the client.
    pub(crate) fn is_delayed(&self) -> bool {
        matches!(self.phase, Phase::Delayed { .. })
    }

    /// Counts requests cut off by the end of the connection.
    pub(crate) fn count_end(&self, tally: &Tally) {
        tally.tcp.failed.add(self.unsent_answers + u64::from(self.is_delayed()));
        if matches!(self.phase, Phase::Receiving { read_bytes: 1.. }) || self.received_ahead > 0 {
            tally.tcp.incomplete.add(1);
        }
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
            match self.phase {
                Phase::Receiving { .. } if self.received_ahead > 0 => {
                    let length = std::mem::take(&mut self.received_ahead);
                    self.take(length, shared);
                }
                Phase::Receiving { .. } => {
                    if !self.transport.is_readable() {
                        return Ok(Turn::Wait);
                    }
                    shared.received.clear();
                    match self.transport.receive(&mut shared.received)? {
                        Some(0) => return Ok(Turn::Close),
                        Some(length) => {
                            shared.tally.bytes_received.add(length as u64);
                            self.take(length as u64, shared);
                        }
                        None => {}
                    }
                }
                Phase::Delayed { due_ns } if shared.now_ns() < due_ns => return Ok(Turn::WaitUntil(due_ns)),
                Phase::Delayed { .. } => {
                    self.phase = Phase::Receiving { read_bytes: 0 };
                    self.reply(shared);
                }
                Phase::Ending => {
                    self.transport.end_sending()?;
                    self.received_ahead = 0;
                    self.phase = Phase::Lingering { until_ns: shared.now_ns() + LINGER_NS };
                }
                Phase::Lingering { until_ns } => {
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
            shared.tally.tcp.answered.add(std::mem::take(&mut self.unsent_answers));
        }
        Ok(sent)
    }

    /// Consumes received bytes and replies to the requests that they complete, as far as possible without
    /// waiting.
    fn take(&mut self, mut length: u64, shared: &mut Shared) {
        while let Phase::Receiving { read_bytes } = self.phase
            && length > 0
            && !self.output.is_waiting()
            && shared.composed.len() < SEND_AT_BYTES
        {
            let missing = self.sizes.request_bytes.get() - read_bytes;
            if length < missing {
                self.phase = Phase::Receiving { read_bytes: read_bytes + length };
                return;
            }
            length -= missing;
            self.phase = Phase::Receiving { read_bytes: 0 };
            shared.tally.tcp.requests.add(1);
            match shared.answer.delay_ns() {
                0 => self.reply(shared),
                delay_ns => {
                    self.phase = Phase::Delayed { due_ns: shared.now_ns().saturating_add(delay_ns) };
                }
            }
        }
        self.received_ahead = length;
    }

    /// Replies, or closes the connection for an injected error, because raw TCP has no other way to report
    /// it.
    fn reply(&mut self, shared: &mut Shared) {
        compute(shared.answer.cpu_time);
        if shared.answer.fails(&mut shared.random) {
            shared.tally.errors.add(1);
            shared.tally.tcp.failed.add(1);
            self.phase = Phase::Ending;
            return;
        }
        self.answered += 1;
        self.unsent_answers += 1;
        let reply_bytes = self.sizes.reply_bytes.get();
        if reply_bytes <= MAX_COPIED_BYTES {
            shared.composed.extend_from_slice(&PATTERN[..reply_bytes as usize]);
        } else {
            self.output.send_filler(reply_bytes);
        }
        if shared.requests_per_connection.is_some_and(|limit| self.answered >= limit.get()) {
            self.phase = Phase::Ending;
        }
    }
}

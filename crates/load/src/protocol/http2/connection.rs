//! One connection: its open streams, what it may send, and its reactions to what it receives.

use super::encoder::Encoder;
use super::input::FrameReader;
use super::request::{CommonFields, Http2Request};
use super::response::Response;
use super::settings::{PeerSettings, announce};
use super::streams::{PendingBody, Streams};
use super::violation::Violation;
use crate::error::ErrorKind;
use crate::protocol::grpc::OutgoingMessages;
use crate::protocol::{Parsed, ProtocolError, ResponseEnd};
use crate::target::Values;
use http2::frame::{self, DEFAULT_WINDOW_BYTES, FrameHead, HEAD_BYTES, MAX_31_BITS, PREFACE, flag, kind};
use http2::hpack::Decoder;
use http2::{Answers, ErrorCode, push_fields};
use std::collections::VecDeque;

/// The client's side of one HTTP/2 connection, without I/O.
#[derive(Debug)]
pub struct Http2Connection {
    /// Maximum number of concurrent streams, whatever the peer allows.
    most_streams: usize,
    pub(super) phase: Phase,
    pub(super) protocol_sniffer: ProtocolSniffer,
    pub(super) peer: PeerSettings,
    /// Fewest concurrent streams that a peer has allowed so far, on this connection or an earlier one.
    pub(super) fewest_streams: u32,
    pub(super) input: FrameReader,
    pub(super) block: FieldBlock,
    pub(super) decoder: Decoder,
    pub(super) encoder: Encoder,
    pub(super) streams: Streams,
    /// Send window of the connection: content that may be sent now over all streams.
    pub(super) send_window: i64,
    /// Identifiers of streams whose body waits for window, the longest waiting first.
    pub(super) waiting: VecDeque<u32>,
    /// Content received since the last WINDOW_UPDATE to the peer.
    pub(super) received_bytes: u32,
    pub(super) answers: Answers,
    /// The peer is closing the connection because of an error.
    pub(super) peer_blames: bool,
    /// This side has reset a stream: the peer may send frames of it before it knows.
    pub(super) gave_up: bool,
    /// Results to report after the one just reported.
    pub(super) pending_results: VecDeque<Parsed>,
}

/// State of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Phase {
    /// The peer's settings have not arrived: nothing shows that it speaks HTTP/2.
    Greeting,
    /// Requests may be sent.
    Open,
    /// The peer accepts no more requests.
    Closing,
}

/// The first two bytes of a connection, however they were split: they show what a peer speaks instead of
/// HTTP/2.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProtocolSniffer {
    bytes: [u8; 2],
    count: usize,
}

impl ProtocolSniffer {
    /// Adds received bytes.
    fn hear(&mut self, bytes: &[u8]) {
        for (place, byte) in self.bytes[self.count..].iter_mut().zip(bytes) {
            *place = *byte;
            self.count += 1;
        }
    }

    /// True if a TLS record begins like this: an alert (21) or a handshake (22), version 3.
    pub(super) fn is_tls_record(&self) -> bool {
        matches!(self.bytes, [21 | 22, 3])
    }
}

/// The parts of an incomplete field block.
#[derive(Debug, Default)]
pub(super) struct FieldBlock {
    /// Identifier of its stream; 0 if there is no incomplete block.
    pub(super) stream: u32,
    pub(super) ends_stream: bool,
    pub(super) fragments: Vec<u8>,
    /// Bytes of its frames so far.
    pub(super) wire_bytes: usize,
}

impl Http2Connection {
    /// `most_streams`: maximum number of concurrent requests, at least 1.
    #[must_use]
    pub fn new(most_streams: usize, common: &CommonFields) -> Self {
        Self {
            most_streams,
            phase: Phase::Greeting,
            protocol_sniffer: ProtocolSniffer::default(),
            peer: PeerSettings::default(),
            fewest_streams: u32::MAX,
            input: FrameReader::default(),
            block: FieldBlock::default(),
            decoder: Decoder::default(),
            encoder: Encoder::new(&common.0),
            streams: Streams::new(most_streams),
            send_window: i64::from(DEFAULT_WINDOW_BYTES),
            waiting: VecDeque::new(),
            received_bytes: 0,
            answers: Answers::default(),
            peer_blames: false,
            gave_up: false,
            pending_results: VecDeque::new(),
        }
    }

    /// Exclusive upper bound of stream numbers.
    #[must_use]
    pub fn most_streams(&self) -> usize {
        self.most_streams
    }

    /// Fewest requests that the peer has allowed at once, if fewer than this side would send.
    #[must_use]
    pub fn peer_limit(&self) -> Option<usize> {
        let limit = self.fewest_streams as usize;
        (limit < self.most_streams).then_some(limit)
    }

    /// Resets the state for a new connection. Appends the client's preface and settings.
    pub fn open(&mut self, out: &mut Vec<u8>) {
        self.phase = Phase::Greeting;
        self.protocol_sniffer = ProtocolSniffer::default();
        self.peer = PeerSettings::default();
        self.input.reset();
        self.block = FieldBlock::default();
        self.decoder = Decoder::default();
        self.encoder.reset();
        self.streams.reset();
        self.send_window = i64::from(DEFAULT_WINDOW_BYTES);
        self.waiting.clear();
        (self.received_bytes, self.answers) = (0, Answers::default());
        (self.peer_blames, self.gave_up) = (false, false);
        self.pending_results.clear();
        out.extend_from_slice(PREFACE);
        announce(out);
    }

    /// True if another request may be sent now. False until the peer has announced how many it accepts.
    #[must_use]
    pub fn can_send(&self) -> bool {
        let limit = self.most_streams.min(self.peer.max_streams as usize);
        self.phase == Phase::Open && self.streams.open_count() < limit && self.streams.has_identifiers()
    }

    /// Starts a request, for which there must be room. Appends its bytes, with as much of the body as the
    /// peer's window allows, and returns its stream's number.
    pub fn begin(&mut self, request: &Http2Request, values: Values<'_>, out: &mut Vec<u8>) -> usize {
        let id = self.streams.next_id();
        let start = out.len();
        out.extend_from_slice(&[0; HEAD_BYTES]);
        self.encoder.encode(&request.fields, values, out);
        let length = out.len() - start - HEAD_BYTES;
        let has_content = request.call.is_some() || request.has_body();
        let ends_stream = if has_content { 0 } else { flag::END_STREAM };
        if length <= self.peer.max_frame_bytes {
            let flags = flag::END_HEADERS | ends_stream;
            let head = FrameHead { length, kind: kind::HEADERS, flags, stream: id };
            out[start..start + HEAD_BYTES].copy_from_slice(&head.to_bytes());
        } else {
            let block = out.split_off(start + HEAD_BYTES);
            out.truncate(start);
            push_fields(&block, ends_stream, id, self.peer.max_frame_bytes, out);
        }
        let window = i64::from(self.peer.stream_window_bytes);
        let slot =
            self.streams.open(window, Response::new(request.head_only, request.call.as_ref()), request.keep);
        if has_content && !self.push_whole_body(slot, request, values, out) {
            let stream = self.streams.get(slot);
            match &request.call {
                Some(call) => stream.messages = Some(call.outgoing(u64::from(id / 2))),
                None => stream.body = Some(PendingBody::new(request.body(values), true)),
            }
            if !self.send_body(slot, out) {
                self.waiting.push_back(id);
            }
        }
        slot
    }

    /// Sends a body that varies in one frame, without a copy of it. Returns false if there is no room for it, or no such body.
    fn push_whole_body(
        &mut self,
        slot: usize,
        request: &Http2Request,
        values: Values<'_>,
        out: &mut Vec<u8>,
    ) -> bool {
        let Some((body, values)) = request.varying_body(values) else { return false };
        let stream = self.streams.get(slot);
        let (length, window) = (body.length(values), self.send_window.min(stream.send_window));
        if length > self.peer.max_frame_bytes || length as i64 > window {
            return false;
        }
        let head = FrameHead { length, kind: kind::DATA, flags: flag::END_STREAM, stream: stream.id };
        out.extend_from_slice(&head.to_bytes());
        body.write_with(values, out);
        stream.send_window -= length as i64;
        self.send_window -= length as i64;
        self.answers.account();
        true
    }

    /// Bytes of a request that wait for window, plus at least the frame headers that they will need.
    #[must_use]
    pub fn blocked_bytes(&self, slot: usize) -> usize {
        let Some(stream) = self.streams.open_in(slot) else { return 0 };
        let bytes = stream.body.as_ref().map_or(0, |body| body.bytes.len() - body.sent);
        let messages = stream.messages.as_ref().map_or(0, OutgoingMessages::missing_bytes);
        bytes + bytes.div_ceil(self.peer.max_frame_bytes) * HEAD_BYTES + messages
    }

    /// Messages of a call that were sent.
    #[must_use]
    pub fn messages_sent(&self, slot: usize) -> u64 {
        self.streams.messages_sent(slot)
    }

    /// Cancels an open stream; appends a RST_STREAM.
    pub fn cancel(&mut self, slot: usize, out: &mut Vec<u8>) {
        self.give_up(slot, ErrorCode::Cancel, out);
    }

    /// Consumes bytes up to the next result and returns it. Call it again with the remaining bytes. Appends
    /// replies to `out`, also on an error.
    ///
    /// # Errors
    /// Returns an error if the peer violates the protocol: the connection is then unusable.
    pub fn receive(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(usize, Parsed), ProtocolError> {
        if let Some(next) = self.pending_results.pop_front() {
            // The last byte of the frame that produced all these results is consumed with the last of them.
            return Ok((usize::from(self.pending_results.is_empty()).min(bytes.len()), next));
        }
        if self.phase == Phase::Greeting {
            self.protocol_sniffer.hear(bytes);
        }
        let mut input = std::mem::take(&mut self.input);
        let outcome = self.read(&mut input, bytes, out);
        self.input = input;
        match outcome {
            Ok((taken, parsed)) if self.pending_results.is_empty() => Ok((taken, parsed)),
            Ok((taken, parsed)) => Ok((taken - 1, parsed)),
            Err(violation) => Err(self.refuse(violation, out)),
        }
    }

    /// The peer has closed its side of the connection.
    ///
    /// # Errors
    /// Returns an error if a response is missing or incomplete.
    pub fn end(&mut self) -> Result<Option<ResponseEnd>, ProtocolError> {
        match self.phase {
            Phase::Greeting if self.protocol_sniffer.is_tls_record() => {
                Err(ProtocolError(ErrorKind::TlsResponse))
            }
            Phase::Greeting => Err(ProtocolError(ErrorKind::NotHttp2)),
            _ if self.streams.open_count() > 0 && self.peer_blames => Err(ProtocolError(ErrorKind::GoneAway)),
            _ if self.streams.open_count() > 0 => Err(ProtocolError(ErrorKind::Closed)),
            _ if self.input.is_within_frame() => Err(ProtocolError(ErrorKind::Closed)),
            _ => Ok(None),
        }
    }

    /// Ends the connection with an error. Any violation in a peer's first bytes means that it does not speak
    /// HTTP/2.
    fn refuse(&self, violation: Violation, out: &mut Vec<u8>) -> ProtocolError {
        let violation = match self.phase {
            Phase::Greeting if self.protocol_sniffer.is_tls_record() => Violation::TLS,
            Phase::Greeting => Violation::NOT_HTTP2,
            _ => violation,
        };
        let code = violation.code as u32;
        // No stream of the peer was ever processed, because there is none.
        frame::push(kind::GOAWAY, 0, 0, &[[0; 4], code.to_be_bytes()].concat(), out);
        ProtocolError(violation.kind)
    }

    /// Cancels a stream of which the peer may still send frames.
    pub(super) fn give_up(&mut self, slot: usize, code: ErrorCode, out: &mut Vec<u8>) {
        let Some(stream) = self.streams.open_in(slot) else { return };
        frame::push_reset(stream.id, code, out);
        self.gave_up = true;
        self.forget(slot);
    }

    /// Ends a stream on this side.
    pub(super) fn forget(&mut self, slot: usize) {
        let stream = self.streams.get(slot);
        if stream.body.is_some() {
            let id = stream.id;
            self.waiting.retain(|waiting| *waiting != id);
        }
        self.streams.close(slot);
    }

    /// Sends as much of a stream's body or messages as the windows allow. Returns true if nothing is left
    /// waiting.
    pub(super) fn send_body(&mut self, slot: usize, out: &mut Vec<u8>) -> bool {
        let stream = self.streams.get(slot);
        while stream.has_content() {
            let room = usize::try_from(self.send_window.min(stream.send_window)).unwrap_or(0);
            if room == 0 {
                return false;
            }
            let start = out.len();
            out.extend_from_slice(&[0; HEAD_BYTES]);
            let is_last = stream.push_content(room.min(self.peer.max_frame_bytes), out);
            let length = out.len() - start - HEAD_BYTES;
            let flags = if is_last { flag::END_STREAM } else { 0 };
            let head = FrameHead { length, kind: kind::DATA, flags, stream: stream.id };
            out[start..start + HEAD_BYTES].copy_from_slice(&head.to_bytes());
            stream.send_window -= length as i64;
            self.send_window -= length as i64;
            self.answers.account();
        }
        true
    }

    /// Sends as much of all waiting bodies as the windows allow, in the order in which they began to wait.
    pub(super) fn send_bodies(&mut self, out: &mut Vec<u8>) {
        for _ in 0..self.waiting.len() {
            if self.send_window <= 0 {
                return;
            }
            let Some(id) = self.waiting.pop_front() else { return };
            let sent = self.streams.find(id).is_none_or(|slot| self.send_body(slot, out));
            if !sent {
                self.waiting.push_back(id);
            }
        }
    }
}

/// A window enlarged by `by`. Fails if it would exceed the maximum window size.
pub(super) fn widened(window: i64, by: i64) -> Result<i64, Violation> {
    let wider = window + by;
    if wider > i64::from(MAX_31_BITS) { Err(Violation::FLOW_CONTROL) } else { Ok(wider) }
}

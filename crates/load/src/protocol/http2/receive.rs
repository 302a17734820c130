//! Handling of the peer's frames.

use super::connection::{FieldBlock, Http2Connection, Phase, widened};
use super::input::{FrameReader, Piece};
use super::response::NoFields;
use super::settings::{CONNECTION_WINDOW_BYTES, MAX_HEAD_BYTES, STREAM_WINDOW_BYTES};
use super::violation::Violation;
use crate::error::ErrorKind;
use crate::protocol::{Parsed, ResponseEnd};
use http2::frame::{self, FrameHead, HEAD_BYTES, MAX_31_BITS, PING_BYTES, flag, kind};
use http2::{ErrorCode, settings};

/// The result that a frame produces for the caller; usually none.
type ReceiveResult = Result<Option<Parsed>, Violation>;

impl Http2Connection {
    /// Reads up to the next result. If there is none, all bytes are consumed.
    pub(super) fn read(
        &mut self,
        input: &mut FrameReader,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(usize, Parsed), Violation> {
        let mut taken = 0;
        loop {
            let (step, piece) = input.next(&bytes[taken..])?;
            taken += step;
            let Some(piece) = piece else {
                // No HTTP/2 peer starts a frame like this, and a TLS alert is shorter than a frame header.
                let tls = self.phase == Phase::Greeting && self.protocol_sniffer.is_tls_record();
                return if tls { Err(Violation::TLS) } else { Ok((taken, Parsed::Incomplete)) };
            };
            let told = match piece {
                Piece::Data(head, content) => {
                    let told = self.content(&head, content, out)?;
                    if told.is_some() {
                        // The end of a frame has no bytes of its own, for which this would be called again.
                        let (step, end) = input.next(&bytes[taken..])?;
                        taken += step;
                        if let Some(Piece::DataEnd(head)) = end {
                            let ended = self.data_ended(&head, out)?;
                            self.pending_results.extend(ended);
                        }
                    }
                    told
                }
                Piece::DataHead(head) => self.data_begins(&head, out)?,
                Piece::DataEnd(head) => self.data_ended(&head, out)?,
                Piece::Frame(head, payload) => self.frame(&head, payload, out)?,
            };
            if let Some(parsed) = told {
                return Ok((taken, parsed));
            }
        }
    }

    fn frame(&mut self, head: &FrameHead, payload: &[u8], out: &mut Vec<u8>) -> ReceiveResult {
        if self.phase == Phase::Greeting && (head.kind != kind::SETTINGS || head.has(flag::ACK)) {
            return Err(Violation::NOT_HTTP2);
        }
        if self.block.stream != 0 && (head.kind != kind::CONTINUATION || head.stream != self.block.stream) {
            return Err(Violation::PROTOCOL);
        }
        match head.kind {
            kind::HEADERS => self.headers(head, payload, out),
            kind::CONTINUATION => self.continuation(head, payload, out),
            kind::PRIORITY => priority(head),
            kind::RST_STREAM => self.stream_reset(head, payload),
            kind::SETTINGS => self.settings(head, payload, out),
            // This side has disabled server push.
            kind::PUSH_PROMISE => Err(Violation::PROTOCOL),
            kind::PING => self.ping(head, payload, out),
            kind::GOAWAY => self.going_away(head, payload),
            kind::WINDOW_UPDATE => self.window_update(head, payload, out),
            _ => Ok(None),
        }
    }

    /// The slot of a frame's stream; `None` if the stream is closed and the peer may not know yet.
    fn slot_of(&self, head: &FrameHead) -> Result<Option<usize>, Violation> {
        match self.streams.find(head.stream) {
            Some(slot) => Ok(Some(slot)),
            None if !self.streams.was_opened(head.stream) => Err(Violation::PROTOCOL),
            None if self.gave_up => Ok(None),
            None => Err(Violation::STREAM_CLOSED),
        }
    }

    fn data_begins(&mut self, head: &FrameHead, out: &mut Vec<u8>) -> ReceiveResult {
        if self.phase == Phase::Greeting {
            return Err(Violation::NOT_HTTP2);
        }
        if self.block.stream != 0 {
            return Err(Violation::PROTOCOL);
        }
        let length = head.length as u32;
        replenish(&mut self.received_bytes, length, CONNECTION_WINDOW_BYTES, 0, out)?;
        if let Some(slot) = self.slot_of(head)? {
            if length > 0 {
                self.answers.account();
            }
            let stream = self.streams.get(slot);
            stream.response.bytes += HEAD_BYTES as u64 + u64::from(length);
            // A stream that ends needs no more window.
            let id = if head.has(flag::END_STREAM) { None } else { Some(stream.id) };
            match id {
                Some(id) => replenish(&mut stream.received_bytes, length, STREAM_WINDOW_BYTES, id, out)?,
                None if stream.received_bytes + length > STREAM_WINDOW_BYTES => {
                    return Err(Violation::FLOW_CONTROL);
                }
                None => {}
            }
        }
        Ok(None)
    }

    fn content(&mut self, head: &FrameHead, content: &[u8], out: &mut Vec<u8>) -> ReceiveResult {
        let Some(slot) = self.streams.find(head.stream) else { return Ok(None) };
        let stream = self.streams.get(slot);
        let (messages, outcome) = stream.response.content_read(content);
        if let Some(kept) = &mut stream.kept {
            kept.content(content);
        }
        let messages = messages + stream.events.as_mut().map_or(0, |events| events.receive(content));
        let (id, waits) = (stream.id, stream.body.is_some());
        let told = (messages > 0).then_some(Parsed::Messages(slot, messages));
        if let (Some(_), Some(outgoing)) = (told, &mut stream.messages) {
            outgoing.answered(messages);
            if !waits && !self.send_body(slot, out) {
                self.waiting.push_back(id);
            }
        }
        let Err(kind) = outcome else { return Ok(told) };
        let failed = self.malformed(slot, kind, head.has(flag::END_STREAM), out);
        if told.is_some() {
            self.pending_results.push_back(failed);
        }
        Ok(told.or(Some(failed)))
    }

    fn data_ended(&mut self, head: &FrameHead, out: &mut Vec<u8>) -> ReceiveResult {
        match self.streams.find(head.stream) {
            Some(slot) if head.has(flag::END_STREAM) => Ok(Some(self.response_ended(slot, out))),
            _ => Ok(None),
        }
    }

    fn headers(&mut self, head: &FrameHead, payload: &[u8], out: &mut Vec<u8>) -> ReceiveResult {
        let fragment = http2::fragment(head, payload)?;
        self.slot_of(head)?;
        let ends_stream = head.has(flag::END_STREAM);
        let wire_bytes = HEAD_BYTES + head.length;
        if head.has(flag::END_HEADERS) {
            return self.fields(head.stream, fragment, ends_stream, wire_bytes, out);
        }
        self.block.stream = head.stream;
        self.block.ends_stream = ends_stream;
        self.block.wire_bytes = wire_bytes;
        self.block.fragments.extend_from_slice(fragment);
        Ok(None)
    }

    fn continuation(&mut self, head: &FrameHead, payload: &[u8], out: &mut Vec<u8>) -> ReceiveResult {
        if self.block.stream == 0 {
            return Err(Violation::PROTOCOL);
        }
        // Frame headers count, so that endless empty frames reach the limit, too.
        self.block.wire_bytes += HEAD_BYTES + head.length;
        if self.block.wire_bytes > MAX_HEAD_BYTES {
            return Err(Violation::HEAD_TOO_LARGE);
        }
        self.block.fragments.extend_from_slice(payload);
        if !head.has(flag::END_HEADERS) {
            return Ok(None);
        }
        let FieldBlock { stream, ends_stream, fragments, wire_bytes } = std::mem::take(&mut self.block);
        self.fields(stream, &fragments, ends_stream, wire_bytes, out)
    }

    /// A field block is complete: the head of a response, or trailers.
    fn fields(
        &mut self,
        stream: u32,
        block: &[u8],
        ends_stream: bool,
        wire_bytes: usize,
        out: &mut Vec<u8>,
    ) -> ReceiveResult {
        let Some(slot) = self.streams.find(stream) else {
            // It must be decoded nevertheless, because it may change the table.
            self.decoder.decode(block, &mut NoFields)?;
            return Ok(None);
        };
        let stream = self.streams.get(slot);
        let mut fields = stream.response.fields(stream.kept.as_deref());
        self.decoder.decode(block, &mut fields)?;
        let stream = self.streams.get(slot);
        let response = &mut stream.response;
        response.bytes += wire_bytes as u64;
        let is_head = response.status() == 0;
        let outcome = response.head_read(&fields, ends_stream);
        if let (Some(kept), true) = (&mut stream.kept, is_head && response.status() != 0) {
            kept.fields = fields.take_kept();
        }
        match outcome {
            Err(kind) => Ok(Some(self.malformed(slot, kind, ends_stream, out))),
            Ok(()) if ends_stream => Ok(Some(self.response_ended(slot, out))),
            Ok(()) if response.is_event_stream(&fields) => {
                self.streams.get(slot).events = Some(Box::default());
                Ok(Some(Parsed::EventStream(slot)))
            }
            Ok(()) => Ok(None),
        }
    }

    /// The last frame of a response has arrived.
    fn response_ended(&mut self, slot: usize, out: &mut Vec<u8>) -> Parsed {
        let stream = self.streams.get(slot);
        let response = stream.response;
        let of_events = stream.events.as_mut().map_or(Ok(()), |events| events.ended(true));
        let grpc = match response.ended().and_then(|grpc| of_events.map(|()| grpc)) {
            Ok(grpc) => grpc,
            Err(kind) => return self.malformed(slot, kind, true, out),
        };
        self.answers.account();
        self.close(slot, ErrorCode::Cancel, out);
        let reusable = self.phase == Phase::Open && self.streams.has_identifiers();
        Parsed::Response(ResponseEnd {
            stream: slot,
            status: response.status(),
            bytes: response.bytes,
            reusable,
            grpc,
        })
    }

    /// The response on a stream is malformed, for this reason.
    fn malformed(&mut self, slot: usize, kind: ErrorKind, peer_has_ended: bool, out: &mut Vec<u8>) -> Parsed {
        if peer_has_ended {
            self.close(slot, ErrorCode::Protocol, out);
        } else {
            self.give_up(slot, ErrorCode::Protocol, out);
        }
        Parsed::Failed(slot, kind)
    }

    /// Closes a stream that the peer has ended. If the request is still being sent, the peer gets a
    /// RST_STREAM.
    fn close(&mut self, slot: usize, code: ErrorCode, out: &mut Vec<u8>) {
        if self.streams.get(slot).is_sending() {
            self.give_up(slot, code, out);
        } else {
            self.forget(slot);
        }
    }

    fn stream_reset(&mut self, head: &FrameHead, payload: &[u8]) -> ReceiveResult {
        let code = u32_of(payload)?;
        if !self.streams.was_opened(head.stream) {
            return Err(Violation::PROTOCOL);
        }
        let Some(slot) = self.streams.find(head.stream) else { return Ok(None) };
        self.forget(slot);
        let refused = code == ErrorCode::RefusedStream as u32;
        Ok(Some(Parsed::Failed(
            slot,
            if refused { ErrorKind::StreamRefused } else { ErrorKind::StreamReset },
        )))
    }

    fn settings(&mut self, head: &FrameHead, payload: &[u8], out: &mut Vec<u8>) -> ReceiveResult {
        if head.stream != 0 {
            return Err(Violation::PROTOCOL);
        }
        if head.has(flag::ACK) {
            return if payload.is_empty() { Ok(None) } else { Err(Violation::FRAME_SIZE) };
        }
        let settings = settings::parse(payload).ok_or(Violation::FRAME_SIZE)?;
        self.answer(kind::SETTINGS, &[], out)?;
        let had_room = self.can_send();
        let before = self.peer;
        self.peer.apply(settings)?;
        self.fewest_streams = self.fewest_streams.min(self.peer.max_streams);
        self.encoder.limit(self.peer.header_table_bytes);
        let change = i64::from(self.peer.stream_window_bytes) - i64::from(before.stream_window_bytes);
        if change != 0 {
            for (_, stream) in self.streams.all_open() {
                stream.send_window = widened(stream.send_window, change)?;
            }
            self.send_bodies(out);
        }
        if self.phase == Phase::Greeting {
            self.phase = Phase::Open;
        }
        Ok((!had_room && self.can_send()).then_some(Parsed::Room))
    }

    fn ping(&mut self, head: &FrameHead, payload: &[u8], out: &mut Vec<u8>) -> ReceiveResult {
        if head.stream != 0 {
            return Err(Violation::PROTOCOL);
        }
        if payload.len() != PING_BYTES {
            return Err(Violation::FRAME_SIZE);
        }
        if !head.has(flag::ACK) {
            self.answer(kind::PING, payload, out)?;
        }
        Ok(None)
    }

    /// Replies to a frame with one of its kind.
    fn answer(&mut self, kind: u8, payload: &[u8], out: &mut Vec<u8>) -> Result<(), Violation> {
        self.answers.count()?;
        frame::push(kind, flag::ACK, 0, payload, out);
        Ok(())
    }

    /// GOAWAY: the peer accepts no more requests, and has not processed those after the last one that it
    /// names.
    fn going_away(&mut self, head: &FrameHead, payload: &[u8]) -> ReceiveResult {
        if head.stream != 0 {
            return Err(Violation::PROTOCOL);
        }
        let last = payload.first_chunk().map(|bytes| u32::from_be_bytes(*bytes) & MAX_31_BITS);
        let (Some(last), true) = (last, payload.len() >= 8) else { return Err(Violation::FRAME_SIZE) };
        self.phase = Phase::Closing;
        self.peer_blames |= payload[4..8] != [0; 4];
        let unseen: Vec<usize> =
            self.streams.all_open().filter(|(_, stream)| stream.id > last).map(|(slot, _)| slot).collect();
        for slot in unseen {
            self.forget(slot);
            self.pending_results.push_back(Parsed::Failed(slot, ErrorKind::GoneAway));
        }
        self.pending_results.push_back(Parsed::Closing);
        Ok(self.pending_results.pop_front())
    }

    fn window_update(&mut self, head: &FrameHead, payload: &[u8], out: &mut Vec<u8>) -> ReceiveResult {
        let by = u32_of(payload)? & MAX_31_BITS;
        if head.stream == 0 {
            if by == 0 {
                return Err(Violation::PROTOCOL);
            }
            self.send_window = widened(self.send_window, i64::from(by))?;
            self.send_bodies(out);
            return Ok(None);
        }
        if !self.streams.was_opened(head.stream) {
            return Err(Violation::PROTOCOL);
        }
        let Some(slot) = self.streams.find(head.stream) else { return Ok(None) };
        let stream = self.streams.get(slot);
        match widened(stream.send_window, i64::from(by)) {
            Ok(window) if by > 0 => {
                stream.send_window = window;
                // If this was the last of the body, the stream leaves the queue when its turn comes.
                self.send_body(slot, out);
                Ok(None)
            }
            outcome => {
                let overflow = outcome.is_err();
                let code = if overflow { ErrorCode::FlowControl } else { ErrorCode::Protocol };
                self.give_up(slot, code, out);
                let kind = if overflow { ErrorKind::Http2FlowControl } else { ErrorKind::Http2Protocol };
                Ok(Some(Parsed::Failed(slot, kind)))
            }
        }
    }
}

/// Counts received content against a window, and sends a WINDOW_UPDATE when half of it is used.
fn replenish(
    received: &mut u32,
    length: u32,
    window: u32,
    stream: u32,
    out: &mut Vec<u8>,
) -> Result<(), Violation> {
    *received += length;
    if *received > window {
        return Err(Violation::FLOW_CONTROL);
    }
    if *received >= window / 2 {
        frame::push_window_update(stream, *received, out);
        *received = 0;
    }
    Ok(())
}

/// PRIORITY: validated, but has no effect here.
fn priority(head: &FrameHead) -> ReceiveResult {
    match head {
        FrameHead { stream: 0, .. } => Err(Violation::PROTOCOL),
        FrameHead { length: 5, .. } => Ok(None),
        _ => Err(Violation::FRAME_SIZE),
    }
}

/// Parses the payload of a frame that holds one number.
fn u32_of(payload: &[u8]) -> Result<u32, Violation> {
    payload.try_into().map(u32::from_be_bytes).map_err(|_| Violation::FRAME_SIZE)
}

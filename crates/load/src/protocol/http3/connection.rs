//! One connection: its open streams, what it may send, and its reactions to what it receives.

use super::request::Http3Request;
use super::streams::Streams;
use super::violation::Violation;
use crate::error::ErrorKind;
use crate::network::record::{self, Record, RecordHead, RecordKind, RecordReader};
use crate::protocol::http2::response::Response;
use crate::protocol::{KeptResponse, Parsed, ProtocolError, ResponseEnd};
use crate::target::Values;
use http3::ErrorCode;
use http3::control::{self, Control, PeerStreams};
use http3::frame::{FrameReader, Piece, kind};
use http3::qpack::Decoder;
use std::collections::VecDeque;

/// Maximum size of a field section that is accepted, bytes.
const MAX_HEAD_BYTES: usize = 256 * 1024;
/// Identifier of this side's control stream, its first unidirectional one.
const CONTROL_STREAM: u64 = 2;
/// Set in identifiers of unidirectional streams.
const UNIDIRECTIONAL: u64 = 2;

/// The client's side of one HTTP/3 connection, without I/O.
#[derive(Debug)]
pub struct Http3Connection {
    /// Maximum number of concurrent streams, whatever the peer allows.
    most_streams: usize,
    records: RecordReader,
    /// Streams that requests may be sent on.
    room: VecDeque<u64>,
    /// Fewest concurrent streams that a peer has allowed so far, on this connection or an earlier one.
    fewest_streams: usize,
    streams: Streams,
    peer: PeerStreams,
    decoder: Decoder,
    /// The peer accepts no more requests.
    closing: bool,
    /// Results that are not reported yet.
    results: VecDeque<Parsed>,
}

impl Http3Connection {
    /// `most_streams`: maximum number of concurrent requests, at least 1.
    #[must_use]
    pub fn new(most_streams: usize) -> Self {
        Self {
            most_streams,
            records: RecordReader::default(),
            room: VecDeque::new(),
            fewest_streams: usize::MAX,
            streams: Streams::new(most_streams),
            peer: PeerStreams::new(false),
            decoder: Decoder::default(),
            closing: false,
            results: VecDeque::new(),
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
        (self.fewest_streams < self.most_streams).then_some(self.fewest_streams)
    }

    /// Resets the state for a new connection. Appends the beginning of the control stream.
    pub fn open(&mut self, out: &mut Vec<u8>) {
        self.records = RecordReader::default();
        self.room.clear();
        self.streams.reset();
        self.peer = PeerStreams::new(false);
        self.closing = false;
        self.results.clear();
        record::push_data(RecordKind::Data, CONTROL_STREAM, out, |out| {
            control::begin(MAX_HEAD_BYTES as u64, out);
        });
    }

    /// True if another request may be sent now. False until the transport has opened streams.
    #[must_use]
    pub fn can_send(&self) -> bool {
        !self.closing && !self.room.is_empty() && self.streams.open_count() < self.most_streams
    }

    /// Starts a request, for which there must be room. Appends its bytes and returns its stream's number.
    ///
    /// # Panics
    /// If there is no room.
    pub fn begin(&mut self, request: &Http3Request, values: Values<'_>, out: &mut Vec<u8>) -> usize {
        let id = self.room.pop_front().expect("requests are begun where there is room");
        record::push_data(RecordKind::Last, id, out, |out| request.write(values, out));
        self.streams.open(id, Response::new(request.head_only, None), request.keep)
    }

    /// Takes what was kept of the response of this stream, which has just ended.
    pub(super) fn take_kept(&mut self, slot: usize) -> Option<Box<KeptResponse>> {
        self.streams.take_kept(slot)
    }

    /// Gives up an open stream.
    pub fn cancel(&mut self, slot: usize, out: &mut Vec<u8>) {
        self.give_up(slot, ErrorCode::RequestCancelled, out);
    }

    /// Consumes bytes up to the next result and returns it. Call it again with the remaining bytes. Appends replies to `out`, also on an
    /// error.
    ///
    /// # Errors
    /// Returns an error if the peer violates the protocol: the connection is then unusable.
    pub fn receive(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(usize, Parsed), ProtocolError> {
        let mut taken = 0;
        while self.results.is_empty() && taken < bytes.len() {
            let (step, record) = self.records.next(&bytes[taken..]);
            taken += step;
            let Some(record) = record else { continue };
            if let Err(Violation { code, kind }) = self.take(record, out) {
                record::push(RecordKind::Close, 0, code as u64, out);
                return Err(ProtocolError(kind));
            }
            if self.results.len() > 1 {
                // Its last byte is consumed with the last of its results.
                taken -= 1;
                let first = self.results.pop_front().unwrap_or(Parsed::Incomplete);
                return Ok((taken, first));
            }
        }
        let first = self.results.pop_front().unwrap_or(Parsed::Incomplete);
        // A result that was left: with the last one goes the byte that was left for it.
        let of_left = usize::from(taken == 0 && self.results.is_empty()).min(bytes.len());
        Ok((taken.max(of_left), first))
    }

    /// The connection has ended.
    ///
    /// # Errors
    /// Returns an error if a response is missing or incomplete.
    pub fn end(&mut self) -> Result<Option<ResponseEnd>, ProtocolError> {
        if self.streams.open_count() > 0 { Err(ProtocolError(ErrorKind::Closed)) } else { Ok(None) }
    }

    fn take(&mut self, record: Record<'_>, out: &mut Vec<u8>) -> Result<(), Violation> {
        match record {
            Record::Data(id, bytes, _) if id & UNIDIRECTIONAL != 0 => self.beside_requests(id, bytes, out),
            Record::Data(id, bytes, _) => match self.streams.find(id) {
                Some(slot) => self.data(slot, bytes, out),
                // What comes of a stream that was given up.
                None => Ok(()),
            },
            Record::Other(RecordHead { kind, stream, number }) => match kind {
                RecordKind::End | RecordKind::Reset if stream & UNIDIRECTIONAL != 0 => {
                    Ok(self.peer.ended(stream)?)
                }
                RecordKind::End => self.ended(stream, out),
                RecordKind::Reset => {
                    self.was_reset(stream, number);
                    Ok(())
                }
                RecordKind::Room => {
                    let had_room = self.can_send();
                    self.room.push_back(stream);
                    if !had_room && self.can_send() {
                        self.results.push_back(Parsed::Room);
                    }
                    Ok(())
                }
                RecordKind::Limited => {
                    self.fewest_streams = self.fewest_streams.min(number as usize);
                    Ok(())
                }
                RecordKind::Data | RecordKind::Last | RecordKind::Stop | RecordKind::Close => Ok(()),
            },
        }
    }

    /// Bytes of a stream that the peer has opened.
    fn beside_requests(&mut self, id: u64, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Violation> {
        let mut last_seen = None;
        self.peer.receive(id, bytes, &mut |said| match said {
            Control::Settings => {}
            Control::GoAway(id) => last_seen = Some(id),
            Control::Refuse => {
                record::push(RecordKind::Stop, id, ErrorCode::StreamCreation as u64, out);
            }
        })?;
        if let Some(first_unseen) = last_seen {
            self.closing = true;
            for slot in self.streams.from(first_unseen) {
                self.streams.close(slot);
                self.results.push_back(Parsed::Failed(slot, ErrorKind::GoneAway));
            }
            self.results.push_back(Parsed::Closing);
        }
        Ok(())
    }

    /// Bytes of a response.
    fn data(&mut self, slot: usize, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Violation> {
        let stream = self.streams.get(slot);
        stream.response.bytes += bytes.len() as u64;
        let id = stream.id;
        let mut reader = std::mem::take(&mut stream.reader);
        self.frames(slot, &mut reader, bytes, out)?;
        // Unless it was given up.
        if id.is_some() && self.streams.get(slot).id == id {
            self.streams.get(slot).reader = reader;
        }
        Ok(())
    }

    fn frames(
        &mut self,
        slot: usize,
        reader: &mut FrameReader,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Violation> {
        let mut taken = 0;
        loop {
            let (step, piece) = match reader.next(&bytes[taken..], MAX_HEAD_BYTES) {
                Ok(next) => next,
                Err(ErrorCode::ExcessiveLoad) => return Err(Violation::HEAD_TOO_LARGE),
                Err(code) => return Err(code.into()),
            };
            taken += step;
            let outcome = match piece {
                None => return Ok(()),
                Some(Piece::DataHead) => {
                    self.peer.count_useless()?;
                    let stream = self.streams.get(slot);
                    if stream.response.status() == 0 || stream.is_over {
                        return Err(ErrorCode::FrameUnexpected.into());
                    }
                    Ok(())
                }
                Some(Piece::Data(content)) => {
                    self.peer.account();
                    self.content(slot, content)
                }
                Some(Piece::Frame(kind::HEADERS, section)) => self.fields(slot, section)?,
                // This side has allowed no push.
                Some(Piece::Frame(kind::PUSH_PROMISE, _)) => return Err(ErrorCode::Id.into()),
                Some(Piece::Frame(..)) => return Err(ErrorCode::FrameUnexpected.into()),
                Some(Piece::Unknown(_)) => Ok(self.peer.count_useless()?),
            };
            if let Err(kind) = outcome {
                self.give_up(slot, ErrorCode::Message, out);
                self.results.push_back(Parsed::Failed(slot, kind));
                return Ok(());
            }
        }
    }

    fn content(&mut self, slot: usize, content: &[u8]) -> Result<(), ErrorKind> {
        let stream = self.streams.get(slot);
        let (_, outcome) = stream.response.content_read(content);
        if let Some(kept) = &mut stream.kept {
            kept.content(content);
        }
        let events = stream.events.as_mut().map_or(0, |events| events.receive(content));
        match self.results.back_mut() {
            _ if events == 0 => {}
            Some(Parsed::Messages(of, count)) if *of == slot => *count += events,
            _ => self.results.push_back(Parsed::Messages(slot, events)),
        }
        outcome
    }

    /// A field section is complete: the head of a response, or trailers.
    fn fields(&mut self, slot: usize, section: &[u8]) -> Result<Result<(), ErrorKind>, Violation> {
        self.peer.account();
        let stream = self.streams.get(slot);
        if stream.is_over {
            return Err(ErrorCode::FrameUnexpected.into());
        }
        let mut fields = stream.response.fields(stream.kept.as_deref());
        self.decoder.decode(section, &mut fields)?;
        let is_head = stream.response.status() == 0;
        // Trailers end the response, whose stream ends behind them.
        let outcome = stream.response.head_read(&fields, !is_head);
        stream.is_over = !is_head;
        if let (Some(kept), true) = (&mut stream.kept, is_head && stream.response.status() != 0) {
            kept.fields = fields.take_kept();
        }
        if outcome.is_ok() && is_head && stream.response.is_event_stream(&fields) {
            stream.events = Some(Box::default());
            self.results.push_back(Parsed::EventStream(slot));
        }
        Ok(outcome)
    }

    /// The peer has ended a response.
    fn ended(&mut self, id: u64, out: &mut Vec<u8>) -> Result<(), Violation> {
        let Some(slot) = self.streams.find(id) else { return Ok(()) };
        let stream = self.streams.get(slot);
        if !stream.reader.is_between_frames() {
            return Err(ErrorCode::Frame.into());
        }
        let response = stream.response;
        let of_events = stream.events.as_mut().map_or(Ok(()), |events| events.ended(true));
        match response.ended().and_then(|grpc| of_events.map(|()| grpc)) {
            Ok(grpc) => {
                self.peer.account();
                self.streams.close(slot);
                let (status, bytes) = (response.status(), response.bytes);
                self.results.push_back(Parsed::Response(ResponseEnd {
                    stream: slot,
                    status,
                    bytes,
                    reusable: !self.closing,
                    grpc,
                }));
            }
            Err(kind) => {
                self.give_up(slot, ErrorCode::Message, out);
                self.results.push_back(Parsed::Failed(slot, kind));
            }
        }
        Ok(())
    }

    fn was_reset(&mut self, id: u64, code: u64) {
        let Some(slot) = self.streams.find(id) else { return };
        self.streams.close(slot);
        let refused = code == ErrorCode::RequestRejected as u64;
        let kind = if refused { ErrorKind::StreamRefused } else { ErrorKind::StreamReset };
        self.results.push_back(Parsed::Failed(slot, kind));
    }

    /// Gives up a request: neither sends nor receives more of it.
    fn give_up(&mut self, slot: usize, code: ErrorCode, out: &mut Vec<u8>) {
        if let Some(id) = self.streams.close(slot) {
            record::push(RecordKind::Reset, id, code as u64, out);
            record::push(RecordKind::Stop, id, code as u64, out);
        }
    }
}

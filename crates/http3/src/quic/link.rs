//! One QUIC connection.

use super::Socket;
use crate::ErrorCode;
use bytes::Bytes;
use quinn_proto::{
    Connection, ConnectionError, ConnectionEvent, ConnectionHandle, Dir, Endpoint, EndpointEvent, Event,
    ReadError, Side, StreamEvent, StreamId, VarInt, WriteError,
};
use rustix::io::Errno;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Instant;

/// Datagrams that are sent in one call: what the kernel splits at most, within 64 KiB.
const MAX_SEGMENTS: usize = 32;

/// What happened on a connection. Streams have their identifiers (RFC 9000, section 2.1).
#[derive(Debug)]
pub enum Happening<'b> {
    /// The handshake is complete.
    Connected,
    /// This side may send a request on this stream.
    Room(u64),
    /// The peer accepts this many requests at a time, fewer than asked for.
    Limited(usize),
    /// Bytes of a stream.
    Data(u64, &'b [u8]),
    /// A stream has ended.
    End(u64),
    /// The peer has given up sending a stream, with this error code.
    Reset(u64, u64),
    /// The peer reads no more of a stream, with this error code. This side has given up sending it.
    Stopped(u64, u64),
    /// All bytes given for a stream are with the transport, after they had to wait.
    Written(u64),
    /// The connection is over.
    Lost(ConnectionError),
}

/// A connection.
pub struct Link {
    connection: Connection,
    handle: ConnectionHandle,
    /// Destination of its datagrams, unless its socket is connected.
    to: Option<SocketAddr>,
    /// What waits for flow control, by stream.
    unsent: BTreeMap<u64, Unsent>,
    unsent_bytes: usize,
    /// Streams for requests that are opened ahead, of which there should be this many; 0 for a server.
    wanted_ahead: usize,
    opened_ahead: usize,
    /// Streams up to this one have been used.
    used: Option<u64>,
    /// Datagrams that the kernel had no room for, with their size.
    kept: Option<(Vec<u8>, usize)>,
    is_drained: bool,
}

/// What waits to be written to a stream.
#[derive(Default)]
struct Unsent {
    pieces: VecDeque<Bytes>,
    ends: bool,
}

impl Unsent {
    fn bytes(&self) -> usize {
        self.pieces.iter().map(Bytes::len).sum()
    }
}

impl Link {
    /// A connection that an endpoint has just made. `most_requests`: how many requests this side would send at a time; 0 for a server.
    #[must_use]
    pub fn new(
        (handle, connection): (ConnectionHandle, Connection),
        to: Option<SocketAddr>,
        most_requests: usize,
    ) -> Self {
        Self {
            connection,
            handle,
            to,
            unsent: BTreeMap::new(),
            unsent_bytes: 0,
            // As many again may be in use before the next ones can be opened.
            wanted_ahead: 2 * most_requests,
            opened_ahead: 0,
            used: None,
            kept: None,
            is_drained: false,
        }
    }

    /// Its handle at the endpoint.
    #[must_use]
    pub fn handle(&self) -> ConnectionHandle {
        self.handle
    }

    /// The state below.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Takes a datagram.
    pub fn receive(&mut self, event: ConnectionEvent) {
        self.connection.handle_event(event);
    }

    /// When it wants to be told the time.
    #[must_use]
    pub fn timeout(&mut self) -> Option<Instant> {
        self.connection.poll_timeout()
    }

    /// Takes note of the time.
    pub fn on_time(&mut self, now: Instant) {
        self.connection.handle_timeout(now);
    }

    /// Tells everything that happened since the last time.
    pub fn happenings(&mut self, tell: &mut impl FnMut(Happening<'_>)) {
        while let Some(event) = self.connection.poll() {
            match event {
                Event::Connected => {
                    tell(Happening::Connected);
                    let limit = self.open_ahead(tell);
                    if self.wanted_ahead > 0 && limit < self.wanted_ahead / 2 {
                        tell(Happening::Limited(limit));
                    }
                }
                Event::ConnectionLost { reason } => tell(Happening::Lost(reason)),
                Event::Stream(event) => self.stream_event(&event, tell),
                Event::HandshakeDataReady | Event::DatagramReceived | Event::DatagramsUnblocked => {}
            }
        }
        if self.opened_ahead < self.wanted_ahead / 2 {
            self.open_ahead(tell);
        }
    }

    fn stream_event(&mut self, event: &StreamEvent, tell: &mut impl FnMut(Happening<'_>)) {
        match *event {
            StreamEvent::Opened { dir } => {
                while let Some(id) = self.connection.streams().accept(dir) {
                    self.read(id, tell);
                }
            }
            StreamEvent::Readable { id } => self.read(id, tell),
            StreamEvent::Writable { id } => {
                if self.write_rest(id) {
                    tell(Happening::Written(id.into()));
                }
            }
            StreamEvent::Stopped { id, error_code } => {
                self.forget_unsent(id.into());
                let _ = self.connection.send_stream(id).reset(error_code);
                tell(Happening::Stopped(id.into(), error_code.into_inner()));
            }
            StreamEvent::Available { dir: Dir::Bi } => {
                self.open_ahead(tell);
            }
            StreamEvent::Available { dir: Dir::Uni } | StreamEvent::Finished { .. } => {}
        }
    }

    /// Opens streams for requests as far as the peer allows. Returns how many are open and unused. Nothing is sent by that.
    fn open_ahead(&mut self, tell: &mut impl FnMut(Happening<'_>)) -> usize {
        if self.connection.is_handshaking() || self.connection.is_closed() {
            return 0;
        }
        while self.opened_ahead < self.wanted_ahead
            && let Some(id) = self.connection.streams().open(Dir::Bi)
        {
            self.opened_ahead += 1;
            tell(Happening::Room(id.into()));
        }
        self.opened_ahead
    }

    /// Opens a stream for this side alone; `None` if the peer allows no more.
    pub fn open_unidirectional(&mut self) -> Option<u64> {
        self.connection.streams().open(Dir::Uni).map(u64::from)
    }

    /// Reads all that has come of a stream.
    fn read(&mut self, id: StreamId, tell: &mut impl FnMut(Happening<'_>)) {
        let mut stream = self.connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return };
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => tell(Happening::Data(id.into(), &chunk.bytes)),
                Ok(None) => {
                    tell(Happening::End(id.into()));
                    break;
                }
                Err(ReadError::Reset(code)) => {
                    tell(Happening::Reset(id.into(), code.into_inner()));
                    break;
                }
                Err(ReadError::Blocked) => break,
            }
        }
        // What it has to say goes out with the next datagram.
        let _ = chunks.finalize();
    }

    /// Sends bytes of a stream, now or when flow control allows. `ends`: they are its last.
    pub fn send(&mut self, id: u64, mut bytes: Bytes, ends: bool) {
        let Some(stream) = stream_id(id) else { return };
        self.note_use(stream);
        let is_behind_others = self.unsent.contains_key(&id);
        match if is_behind_others { Err(WriteError::Blocked) } else { self.write(stream, &mut bytes) } {
            Ok(()) if ends => self.finish(stream),
            Err(WriteError::Blocked) => {
                self.unsent_bytes += bytes.len();
                let unsent = self.unsent.entry(id).or_default();
                unsent.ends |= ends;
                unsent.pieces.push_back(bytes);
            }
            Ok(()) | Err(WriteError::Stopped(_) | WriteError::ClosedStream) => {}
        }
    }

    /// Writes a piece to a stream, as far as there is room.
    fn write(&mut self, id: StreamId, piece: &mut Bytes) -> Result<(), WriteError> {
        let mut stream = self.connection.send_stream(id);
        while !piece.is_empty() {
            stream.write_chunks(std::slice::from_mut(piece))?;
        }
        Ok(())
    }

    fn finish(&mut self, id: StreamId) {
        // Fails if the peer has stopped it: there is nothing left to end.
        let _ = self.connection.send_stream(id).finish();
    }

    /// A stream that was opened ahead is in use.
    fn note_use(&mut self, id: StreamId) {
        let is_own = id.dir() == Dir::Bi && id.initiator() == Side::Client && self.wanted_ahead > 0;
        if is_own && self.used.is_none_or(|used| used < id.into()) {
            self.used = Some(id.into());
            self.opened_ahead = self.opened_ahead.saturating_sub(1);
        }
    }

    /// Writes what waits for a stream, as far as there is room. Returns true if nothing waits any longer.
    fn write_rest(&mut self, id: StreamId) -> bool {
        let Some(mut unsent) = self.unsent.remove(&id.into()) else { return false };
        while let Some(first) = unsent.pieces.front_mut() {
            let before = first.len();
            let outcome = self.write(id, first);
            self.unsent_bytes -= before - first.len();
            match outcome {
                Ok(()) => unsent.pieces.pop_front(),
                Err(WriteError::Blocked) => {
                    self.unsent.insert(id.into(), unsent);
                    return false;
                }
                Err(WriteError::Stopped(_) | WriteError::ClosedStream) => {
                    self.unsent_bytes -= unsent.bytes();
                    return false;
                }
            };
        }
        if unsent.ends {
            self.finish(id);
        }
        true
    }

    fn forget_unsent(&mut self, id: u64) {
        self.unsent_bytes -= self.unsent.remove(&id).map_or(0, |unsent| unsent.bytes());
    }

    /// Gives up sending a stream.
    pub fn reset(&mut self, id: u64, code: u64) {
        self.forget_unsent(id);
        if let (Some(stream), Ok(code)) = (stream_id(id), VarInt::from_u64(code)) {
            self.note_use(stream);
            let _ = self.connection.send_stream(stream).reset(code);
        }
    }

    /// Asks the peer to send no more of a stream.
    pub fn stop(&mut self, id: u64, code: u64) {
        if let (Some(stream), Ok(code)) = (stream_id(id), VarInt::from_u64(code)) {
            let _ = self.connection.recv_stream(stream).stop(code);
        }
    }

    /// True if bytes of a stream wait for flow control.
    #[must_use]
    pub fn is_waiting(&self, id: u64) -> bool {
        self.unsent.contains_key(&id)
    }

    /// True if the peer has acknowledged all streams but this many.
    pub fn has_delivered_all_but(&mut self, streams: usize) -> bool {
        self.connection.streams().send_streams() <= streams
    }

    /// Bytes that wait for flow control.
    #[must_use]
    pub fn unsent_bytes(&self) -> usize {
        self.unsent_bytes
    }

    /// Ends the connection with this error code.
    pub fn close(&mut self, code: u64, now: Instant) {
        let code = VarInt::from_u64(code).unwrap_or(VarInt::from_u32(ErrorCode::Protocol as u32));
        self.connection.close(now, code, Bytes::new());
    }

    /// Sends what is to be sent now. `room`: a buffer.
    ///
    /// # Errors
    /// Returns an error of the socket.
    pub fn transmit(&mut self, socket: &Socket, now: Instant, room: &mut Vec<u8>) -> Result<(), Errno> {
        if let Some((bytes, segment_bytes)) = &self.kept {
            match socket.send(bytes, *segment_bytes, self.to) {
                Err(Errno::AGAIN) => return Ok(()),
                outcome => {
                    self.kept = None;
                    outcome?;
                }
            }
        }
        loop {
            room.clear();
            let Some(transmit) = self.connection.poll_transmit(now, MAX_SEGMENTS, room) else {
                return Ok(());
            };
            let bytes = &room[..transmit.size];
            let segment_bytes = transmit.segment_size.unwrap_or(transmit.size);
            match socket.send(bytes, segment_bytes, self.to) {
                Err(Errno::AGAIN) => {
                    self.kept = Some((bytes.to_vec(), segment_bytes));
                    return Ok(());
                }
                outcome => outcome?,
            }
        }
    }

    /// True if the kernel had no room for datagrams: it should send again soon.
    #[must_use]
    pub fn has_kept(&self) -> bool {
        self.kept.is_some()
    }

    /// Exchanges with the endpoint what concerns both.
    pub fn settle(&mut self, endpoint: &mut Endpoint) {
        while let Some(event) = self.connection.poll_endpoint_events() {
            self.is_drained |= event.is_drained();
            if let Some(reply) = endpoint.handle_event(self.handle, event) {
                self.connection.handle_event(reply);
            }
        }
    }

    /// True if the endpoint has forgotten it.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.is_drained
    }

    /// Has the endpoint forget the connection, whatever still comes for it.
    pub fn forget(mut self, endpoint: &mut Endpoint) {
        self.settle(endpoint);
        if !self.is_drained {
            endpoint.handle_event(self.handle, EndpointEvent::drained());
        }
    }
}

fn stream_id(id: u64) -> Option<StreamId> {
    VarInt::from_u64(id).ok().map(StreamId::from)
}

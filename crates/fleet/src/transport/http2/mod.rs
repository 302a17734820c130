//! HTTP/2 client with one stream per connection, without I/O: bytes in, events and bytes out (RFC 9113).
//!
//! Omitted, since one stream does not need it: further streams, priorities, push, compression of request headers.

mod frame;
mod invariants;
#[cfg(test)]
mod tests;

use super::ending::{Ending, EndingKind};
use experiment::schema::Build;
pub use invariants::check_connection;

use frame::{FrameHeader, HEADER_BYTES, MAX_PAYLOAD_BYTES, STREAM};
use hpack::FieldReader;
use std::mem;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Receive window of the stream and of the connection. Bytes are consumed as they arrive, so the window
/// bounds only those in flight. Istio's agent has 1 MiB, which is too little for a fleet that shares its threads.
const WINDOW_BYTES: u32 = 4 << 20;
/// Initial window of either side without a setting.
const DEFAULT_WINDOW_BYTES: i64 = 65_535;
/// Maximum size of a header block, frame headers included: endless empty CONTINUATION frames reach it too.
const MAX_BLOCK_BYTES: usize = 64 * 1024;
/// Maximum number of acknowledged PING and SETTINGS frames beyond those that the traffic accounts for, as in the
/// load engine.
const MAX_ANSWERS: u32 = 10_000;
/// Acknowledged frames that each DATA frame with content accounts for, of either side.
const ANSWERS_PER_CONTENT: u32 = 10;
/// Maximum size of requests that wait for the server's window. A server that never grants any is given up.
const MAX_PENDING_BYTES: usize = 32 << 20;

/// Headers of a request.
pub(crate) struct RequestHead<'a> {
    pub(crate) scheme: &'a str,
    pub(crate) authority: &'a str,
    pub(crate) path: &'a str,
    pub(crate) token: Option<&'a str>,
    /// The caller's Kubernetes cluster, as Istio's clients send it.
    pub(crate) cluster_id: &'a str,
}

/// An event of a connection.
#[derive(Debug, PartialEq)]
pub(crate) enum Event<'a> {
    /// The server's settings have arrived: it responds to requests from now on.
    Ready,
    /// Bytes of the response body.
    Data(&'a [u8]),
    /// The response to a ping.
    Pong,
}

/// Header fields that are used.
#[derive(Debug, Default)]
struct Fields {
    status: Option<u16>,
    grpc_status: Option<u8>,
    grpc_message: String,
}

/// State of a connection.
pub(crate) struct Http2 {
    /// Bytes to send to the server.
    out: Vec<u8>,
    /// gRPC messages that wait for the server's window.
    pending: Vec<u8>,
    /// True if no messages follow the pending ones.
    closing: bool,
    /// True once the stream was opened.
    opened: bool,
    /// True once the response headers have arrived.
    answered: bool,
    ready: bool,
    going_away: Option<String>,
    /// Header of the frame being read.
    header: FrameHeader,
    header_bytes: [u8; HEADER_BYTES],
    header_filled: u8,
    /// Remaining bytes of the frame; absent while its header is read.
    remaining: Option<usize>,
    /// Bytes of padding at its end; absent until the padding length has arrived.
    padding: Option<usize>,
    /// Payload of a frame other than DATA, or header blocks.
    collected: Vec<u8>,
    /// Size of the header block being read, or of the frame, with frame headers.
    block_bytes: usize,
    /// Acknowledged frames that the traffic does not account for.
    answers: u32,
    /// Present while the header block in `collected` awaits CONTINUATION frames; true if the stream ends with it.
    continued: Option<bool>,
    /// Received bytes that were not yet returned to the window.
    consumed: u32,
    connection_window: i64,
    stream_window: i64,
    initial_window: i64,
}

impl Http2 {
    pub(crate) fn new() -> Self {
        let mut out = PREFACE.to_vec();
        let settings = [
            (frame::HEADER_TABLE_SIZE, 0),
            (frame::ENABLE_PUSH, 0),
            (frame::INITIAL_WINDOW_SIZE, WINDOW_BYTES),
        ];
        let mut payload = Vec::new();
        for (code, value) in settings {
            payload.extend_from_slice(&code.to_be_bytes());
            payload.extend_from_slice(&value.to_be_bytes());
        }
        frame::write(frame::SETTINGS, 0, 0, &payload, &mut out);
        let increment = WINDOW_BYTES - DEFAULT_WINDOW_BYTES as u32;
        frame::write(frame::WINDOW_UPDATE, 0, 0, &increment.to_be_bytes(), &mut out);
        Self {
            out,
            pending: Vec::new(),
            closing: false,
            opened: false,
            answered: false,
            ready: false,
            going_away: None,
            header: FrameHeader::default(),
            header_bytes: [0; HEADER_BYTES],
            header_filled: 0,
            remaining: None,
            padding: None,
            collected: Vec::new(),
            block_bytes: 0,
            answers: 0,
            continued: None,
            consumed: 0,
            connection_window: DEFAULT_WINDOW_BYTES,
            stream_window: DEFAULT_WINDOW_BYTES,
            initial_window: DEFAULT_WINDOW_BYTES,
        }
    }

    /// Opens the connection's stream.
    pub(crate) fn open(&mut self, head: &RequestHead<'_>) {
        let mut block = Vec::new();
        let bearer = head.token.map(|token| format!("Bearer {token}"));
        let user_agent = Build::this().user_agent();
        let fields = [
            (":method", Some("POST")),
            (":scheme", Some(head.scheme)),
            (":path", Some(head.path)),
            (":authority", Some(head.authority)),
            ("te", Some("trailers")),
            ("content-type", Some("application/grpc")),
            ("user-agent", Some(user_agent.as_str())),
            ("clusterid", Some(head.cluster_id).filter(|name| !name.is_empty())),
            ("authorization", bearer.as_deref()),
        ];
        for (name, value) in fields {
            if let Some(value) = value {
                hpack::encode_literal(name.as_bytes(), value.as_bytes(), &mut block);
            }
        }
        let mut parts = block.chunks(MAX_PAYLOAD_BYTES).peekable();
        let mut kind = frame::HEADERS;
        while let Some(part) = parts.next() {
            let flags = if parts.peek().is_none() { frame::END_HEADERS } else { 0 };
            frame::write(kind, flags, STREAM, part, &mut self.out);
            kind = frame::CONTINUATION;
        }
        self.opened = true;
    }

    /// Sends bytes of the request body, as far as the server's window allows.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
        self.send_pending();
    }

    /// Ends the request body.
    pub(crate) fn finish(&mut self) {
        self.closing = true;
        self.send_pending();
    }

    pub(crate) fn ping(&mut self) {
        frame::write(frame::PING, 0, 0, b"meshmetr", &mut self.out);
    }

    /// Resets the stream.
    pub(crate) fn cancel(&mut self) {
        if self.opened {
            frame::write(frame::RST_STREAM, 0, STREAM, &frame::CANCEL.to_be_bytes(), &mut self.out);
        }
    }

    /// Takes the bytes to send to the server.
    pub(crate) fn take_output(&mut self) -> Vec<u8> {
        mem::take(&mut self.out)
    }

    pub(crate) fn has_output(&self) -> bool {
        !self.out.is_empty()
    }

    pub(crate) fn output_bytes(&self) -> usize {
        self.out.len()
    }

    /// Replaces the cause of a connection's end by a preceding GOAWAY, if there was one.
    pub(crate) fn explain(&self, ending: Ending) -> Ending {
        let explained =
            matches!(ending.kind, EndingKind::Lost | EndingKind::StreamReset | EndingKind::Status(14));
        match &self.going_away {
            Some(detail) if explained => Ending::new(EndingKind::GoAway, detail.clone()),
            _ => ending,
        }
    }

    fn send_pending(&mut self) {
        while !self.pending.is_empty() {
            let window = self.connection_window.min(self.stream_window).max(0) as usize;
            let length = self.pending.len().min(window).min(MAX_PAYLOAD_BYTES);
            if length == 0 {
                return;
            }
            let last = self.closing && length == self.pending.len();
            let flags = if last { frame::END_STREAM } else { 0 };
            frame::write(frame::DATA, flags, STREAM, &self.pending[..length], &mut self.out);
            self.pending.drain(..length);
            self.connection_window -= length as i64;
            self.stream_window -= length as i64;
            self.answers = self.answers.saturating_sub(ANSWERS_PER_CONTENT);
            if last {
                self.closing = false;
            }
        }
        // A settled connection holds no memory for requests.
        self.pending = Vec::new();
        if mem::take(&mut self.closing) {
            frame::write(frame::DATA, frame::END_STREAM, STREAM, &[], &mut self.out);
        }
    }

    /// Processes bytes from the server. An error means the end of the stream, whether intended by the server
    /// or caused by its mistake.
    pub(crate) fn receive(
        &mut self,
        mut bytes: &[u8],
        take: &mut dyn FnMut(Event<'_>) -> Result<(), Ending>,
    ) -> Result<(), Ending> {
        loop {
            let Some(remaining) = self.remaining else {
                if bytes.is_empty() {
                    return Ok(());
                }
                self.receive_header(&mut bytes)?;
                continue;
            };
            if remaining > 0 && bytes.is_empty() {
                return Ok(());
            }
            let (payload, rest) = bytes.split_at(bytes.len().min(remaining));
            bytes = rest;
            self.remaining = Some(remaining - payload.len());
            if self.header.kind == frame::DATA {
                self.receive_data(payload, take)?;
            } else {
                self.collected.extend_from_slice(payload);
            }
            if self.remaining == Some(0) {
                self.remaining = None;
                self.frame_received(take)?;
            }
        }
    }

    fn receive_header(&mut self, bytes: &mut &[u8]) -> Result<(), Ending> {
        let filled = usize::from(self.header_filled);
        let taken = bytes.len().min(HEADER_BYTES - filled);
        self.header_bytes[filled..filled + taken].copy_from_slice(&bytes[..taken]);
        *bytes = &bytes[taken..];
        self.header_filled += taken as u8;
        if usize::from(self.header_filled) < HEADER_BYTES {
            return Ok(());
        }
        self.header_filled = 0;
        self.header = FrameHeader::parse(self.header_bytes);
        let header = self.header;
        if header.length > MAX_PAYLOAD_BYTES {
            return Err(violation(format!("a frame of {} bytes", header.length)));
        }
        if self.continued.is_some() != (header.kind == frame::CONTINUATION) {
            return Err(violation("a header block was interrupted"));
        }
        let of_stream = matches!(header.kind, frame::DATA | frame::HEADERS | frame::CONTINUATION);
        if of_stream && (header.stream != STREAM || !self.opened) {
            return Err(violation(format!("a response on stream {}, which is not open", header.stream)));
        }
        if header.kind == frame::DATA && !self.answered {
            return Err(violation("a body before its head"));
        }
        let begun = if self.continued.is_some() { self.block_bytes } else { 0 };
        self.block_bytes = begun + HEADER_BYTES + header.length;
        if self.block_bytes > MAX_BLOCK_BYTES {
            return Err(violation("a header block is too large"));
        }
        self.padding = (!header.has(frame::PADDED)).then_some(0);
        if header.kind == frame::DATA {
            self.consumed += header.length as u32;
            if header.length > 0 {
                self.answers = self.answers.saturating_sub(ANSWERS_PER_CONTENT);
            }
        }
        self.remaining = Some(header.length);
        Ok(())
    }

    fn receive_data(
        &mut self,
        mut payload: &[u8],
        take: &mut dyn FnMut(Event<'_>) -> Result<(), Ending>,
    ) -> Result<(), Ending> {
        if self.padding.is_none() {
            let Some((length, rest)) = payload.split_first() else { return Ok(()) };
            let padding = usize::from(*length);
            if padding > rest.len() + self.remaining.unwrap_or(0) {
                return Err(violation("padding is larger than its frame"));
            }
            self.padding = Some(padding);
            payload = rest;
        }
        let after = self.remaining.unwrap_or(0);
        let padding = self.padding.unwrap_or(0);
        // Padding is at the end of the frame: any of it that is not still to come is in this part.
        let padded = padding.saturating_sub(after);
        let data = &payload[..payload.len().saturating_sub(padded)];
        if data.is_empty() {
            return Ok(());
        }
        take(Event::Data(data))
    }

    fn frame_received(
        &mut self,
        take: &mut dyn FnMut(Event<'_>) -> Result<(), Ending>,
    ) -> Result<(), Ending> {
        let header = self.header;
        if header.kind == frame::DATA {
            if self.padding.is_none() {
                return Err(violation("padding is cut short"));
            }
            self.give_window_back();
            return if header.has(frame::END_STREAM) { Err(Ending::for_status(0, "")) } else { Ok(()) };
        }
        if matches!(header.kind, frame::HEADERS | frame::CONTINUATION) {
            return self.headers_received();
        }
        let payload = mem::take(&mut self.collected);
        match header.kind {
            frame::SETTINGS if !header.has(frame::ACK) => {
                self.apply_settings(&payload)?;
                self.acknowledge(frame::SETTINGS, &[])?;
                if !mem::replace(&mut self.ready, true) {
                    take(Event::Ready)?;
                }
            }
            frame::PING if payload.len() != frame::PING_BYTES => {
                return Err(violation("a ping of another length"));
            }
            frame::PING if header.has(frame::ACK) => take(Event::Pong)?,
            frame::PING => self.acknowledge(frame::PING, &payload)?,
            frame::WINDOW_UPDATE => self.window_updated(&payload)?,
            frame::RST_STREAM if header.stream == STREAM => {
                let detail = format!("reset with code {}", number(&payload)?);
                return Err(self.explain(Ending::new(EndingKind::StreamReset, detail)));
            }
            frame::GOAWAY => self.goaway_received(&payload)?,
            // Acknowledged settings, priorities, and extension frames.
            _ => {}
        }
        Ok(())
    }

    fn acknowledge(&mut self, kind: u8, payload: &[u8]) -> Result<(), Ending> {
        self.answers += 1;
        if self.answers > MAX_ANSWERS {
            let detail =
                format!("{MAX_ANSWERS} more PING and SETTINGS frames than its responses account for");
            return Err(Ending::new(EndingKind::Http2Flood, detail));
        }
        frame::write(kind, frame::ACK, 0, payload, &mut self.out);
        Ok(())
    }

    fn give_window_back(&mut self) {
        if self.consumed >= WINDOW_BYTES / 4 {
            let increment = mem::take(&mut self.consumed).to_be_bytes();
            frame::write(frame::WINDOW_UPDATE, 0, 0, &increment, &mut self.out);
            frame::write(frame::WINDOW_UPDATE, 0, STREAM, &increment, &mut self.out);
        }
    }

    fn apply_settings(&mut self, payload: &[u8]) -> Result<(), Ending> {
        let (settings, rest) = payload.as_chunks::<6>();
        if !rest.is_empty() {
            return Err(violation("settings are cut short"));
        }
        for [a, b, value @ ..] in settings {
            let value = u32::from_be_bytes(*value);
            if u16::from_be_bytes([*a, *b]) == frame::INITIAL_WINDOW_SIZE {
                self.stream_window += i64::from(value) - self.initial_window;
                self.initial_window = i64::from(value);
            }
        }
        self.send_pending();
        Ok(())
    }

    fn window_updated(&mut self, payload: &[u8]) -> Result<(), Ending> {
        let increment = i64::from(number(payload)? & 0x7fff_ffff);
        if self.header.stream == 0 {
            self.connection_window += increment;
        } else if self.header.stream == STREAM {
            self.stream_window += increment;
        }
        self.send_pending();
        Ok(())
    }

    fn goaway_received(&mut self, payload: &[u8]) -> Result<(), Ending> {
        let code = number(payload.get(4..).unwrap_or_default())?;
        let last_stream = number(payload)? & 0x7fff_ffff;
        let reason = String::from_utf8_lossy(payload.get(8..).unwrap_or_default());
        let detail = format!("GOAWAY with code {code} {reason}").trim_end().to_owned();
        if last_stream < STREAM && self.opened {
            return Err(Ending::new(EndingKind::GoAway, detail));
        }
        // An open stream continues until the server ends it.
        self.going_away = Some(detail);
        Ok(())
    }

    /// Returns an error if too many requests wait for the server's window.
    pub(crate) fn check_pending(&self) -> Result<(), Ending> {
        if self.pending.len() > MAX_PENDING_BYTES {
            return Err(violation("the server grants no window for requests"));
        }
        Ok(())
    }

    fn headers_received(&mut self) -> Result<(), Ending> {
        let header = self.header;
        let ends = self.continued.unwrap_or_else(|| header.has(frame::END_STREAM));
        if header.kind == frame::HEADERS {
            self.strip_headers()?;
        }
        if !header.has(frame::END_HEADERS) {
            self.continued = Some(ends);
            return Ok(());
        }
        self.continued = None;
        let block = mem::take(&mut self.collected);
        let mut fields = Fields::default();
        // A table size of zero was announced, so each block is self-contained.
        hpack::Decoder::with_table_bytes(0)
            .decode(&block, &mut fields)
            .map_err(|error| violation(format!("header compression: {error}")))?;
        if !self.answered && fields.status != Some(200) {
            let status = fields.status.map_or("none".to_owned(), |status| status.to_string());
            return Err(Ending::new(EndingKind::HttpStatus, format!("HTTP status {status}")));
        }
        self.answered = true;
        if !ends {
            return Ok(());
        }
        let Some(code) = fields.grpc_status else {
            return Err(Ending::new(EndingKind::GrpcViolation, "the stream ended without a gRPC status"));
        };
        Err(self.explain(Ending::for_status(code, &fields.grpc_message)))
    }

    /// Strips padding and priority from a HEADERS frame.
    fn strip_headers(&mut self) -> Result<(), Ending> {
        let padding = if self.header.has(frame::PADDED) {
            if self.collected.is_empty() {
                return Err(violation("padding is cut short"));
            }
            usize::from(self.collected.remove(0))
        } else {
            0
        };
        let priority = if self.header.has(frame::PRIORITY) { 5 } else { 0 };
        if padding + priority > self.collected.len() {
            return Err(violation("padding is larger than its frame"));
        }
        self.collected.truncate(self.collected.len() - padding);
        self.collected.drain(..priority);
        Ok(())
    }
}

impl FieldReader for Fields {
    /// Decodes all fields: an undecodable value is a violation even if the field is not used.
    fn wants(&mut self, _name: &[u8]) -> bool {
        true
    }

    fn field(&mut self, name: &[u8], value: &[u8]) {
        let text = String::from_utf8_lossy(value);
        match name {
            b":status" => self.status = text.parse().ok(),
            b"grpc-status" => self.grpc_status = Some(text.parse().unwrap_or(2)),
            b"grpc-message" => self.grpc_message = text.into_owned(),
            _ => {}
        }
    }
}

fn violation(detail: impl Into<String>) -> Ending {
    Ending::new(EndingKind::Http2Violation, detail)
}

fn number(payload: &[u8]) -> Result<u32, Ending> {
    let bytes = payload.first_chunk().ok_or_else(|| violation("a frame is cut short"))?;
    Ok(u32::from_be_bytes(*bytes))
}

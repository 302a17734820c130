//! HTTP/2 client with one stream per connection, without I/O: bytes in, events and bytes out (RFC 9113).
//!
//! Omitted, since one stream does not need it: further streams, priorities, push, compression of request headers.

mod invariants;
#[cfg(test)]
mod tests;

use super::ending::{Ending, EndingKind};
pub use invariants::check_connection;

use http2::frame::{
    self, DEFAULT_MAX_FRAME_BYTES, DEFAULT_WINDOW_BYTES, FrameHead, HEAD_BYTES, MAX_31_BITS, PING_BYTES,
    PREFACE, flag, kind,
};
use http2::hpack::{self, FieldReader};
use http2::{Answers, ErrorCode, FragmentError, MAX_ANSWERS, settings};
use results::Build;
use std::mem;

/// The only stream of a connection.
const STREAM: u32 = 1;
/// Receive window of the stream and of the connection. Bytes are consumed as they arrive, so the window
/// bounds only those in flight. Istio's agent has 1 MiB, which is too little for a fleet that shares its threads.
const WINDOW_BYTES: u32 = 4 << 20;
/// Maximum size of a header block, frame headers included: endless empty CONTINUATION frames reach it too.
const MAX_BLOCK_BYTES: usize = 64 * 1024;
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
    header: FrameHead,
    header_bytes: [u8; HEAD_BYTES],
    header_filled: u8,
    /// Remaining bytes of the frame; absent while its header is read.
    remaining: Option<usize>,
    /// Bytes of padding at its end; absent until the padding length has arrived.
    padding: Option<usize>,
    /// Payload of a frame other than DATA, or header blocks.
    collected: Vec<u8>,
    /// Size of the header block being read, or of the frame, with frame headers.
    block_bytes: usize,
    answers: Answers,
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
            (settings::HEADER_TABLE_SIZE, 0),
            (settings::ENABLE_PUSH, 0),
            (settings::INITIAL_WINDOW_SIZE, WINDOW_BYTES),
        ];
        settings::push(&settings, &mut out);
        frame::push_window_update(0, WINDOW_BYTES - DEFAULT_WINDOW_BYTES, &mut out);
        Self {
            out,
            pending: Vec::new(),
            closing: false,
            opened: false,
            answered: false,
            ready: false,
            going_away: None,
            header: FrameHead::default(),
            header_bytes: [0; HEAD_BYTES],
            header_filled: 0,
            remaining: None,
            padding: None,
            collected: Vec::new(),
            block_bytes: 0,
            answers: Answers::default(),
            continued: None,
            consumed: 0,
            connection_window: i64::from(DEFAULT_WINDOW_BYTES),
            stream_window: i64::from(DEFAULT_WINDOW_BYTES),
            initial_window: i64::from(DEFAULT_WINDOW_BYTES),
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
        http2::push_fields(&block, 0, STREAM, DEFAULT_MAX_FRAME_BYTES, &mut self.out);
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
        frame::push(kind::PING, 0, 0, b"meshmetr", &mut self.out);
    }

    /// Resets the stream.
    pub(crate) fn cancel(&mut self) {
        if self.opened {
            frame::push_reset(STREAM, ErrorCode::Cancel, &mut self.out);
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
            let length = self.pending.len().min(window).min(DEFAULT_MAX_FRAME_BYTES);
            if length == 0 {
                return;
            }
            let last = self.closing && length == self.pending.len();
            let flags = if last { flag::END_STREAM } else { 0 };
            frame::push(kind::DATA, flags, STREAM, &self.pending[..length], &mut self.out);
            self.pending.drain(..length);
            self.connection_window -= length as i64;
            self.stream_window -= length as i64;
            self.answers.account();
            if last {
                self.closing = false;
            }
        }
        // A settled connection holds no memory for requests.
        self.pending = Vec::new();
        if mem::take(&mut self.closing) {
            frame::push(kind::DATA, flag::END_STREAM, STREAM, &[], &mut self.out);
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
            if self.header.kind == kind::DATA {
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
        let taken = bytes.len().min(HEAD_BYTES - filled);
        self.header_bytes[filled..filled + taken].copy_from_slice(&bytes[..taken]);
        *bytes = &bytes[taken..];
        self.header_filled += taken as u8;
        if usize::from(self.header_filled) < HEAD_BYTES {
            return Ok(());
        }
        self.header_filled = 0;
        self.header = FrameHead::parse(&self.header_bytes);
        let header = self.header;
        if header.length > DEFAULT_MAX_FRAME_BYTES {
            return Err(violation(format!("a frame of {} bytes", header.length)));
        }
        if self.continued.is_some() != (header.kind == kind::CONTINUATION) {
            return Err(violation("a header block was interrupted"));
        }
        let of_stream = matches!(header.kind, kind::DATA | kind::HEADERS | kind::CONTINUATION);
        if of_stream && (header.stream != STREAM || !self.opened) {
            return Err(violation(format!("a response on stream {}, which is not open", header.stream)));
        }
        if header.kind == kind::DATA && !self.answered {
            return Err(violation("a body before its head"));
        }
        let begun = if self.continued.is_some() { self.block_bytes } else { 0 };
        self.block_bytes = begun + HEAD_BYTES + header.length;
        if self.block_bytes > MAX_BLOCK_BYTES {
            return Err(violation("a header block is too large"));
        }
        self.padding = (!header.has(flag::PADDED)).then_some(0);
        if header.kind == kind::DATA {
            self.consumed += header.length as u32;
            if header.length > 0 {
                self.answers.account();
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
        if header.kind == kind::DATA {
            if self.padding.is_none() {
                return Err(violation("padding is cut short"));
            }
            self.give_window_back();
            return if header.has(flag::END_STREAM) { Err(Ending::for_status(0, "")) } else { Ok(()) };
        }
        if matches!(header.kind, kind::HEADERS | kind::CONTINUATION) {
            return self.headers_received();
        }
        let payload = mem::take(&mut self.collected);
        match header.kind {
            kind::SETTINGS if !header.has(flag::ACK) => {
                self.apply_settings(&payload)?;
                self.acknowledge(kind::SETTINGS, &[])?;
                if !mem::replace(&mut self.ready, true) {
                    take(Event::Ready)?;
                }
            }
            kind::PING if payload.len() != PING_BYTES => {
                return Err(violation("a ping of another length"));
            }
            kind::PING if header.has(flag::ACK) => take(Event::Pong)?,
            kind::PING => self.acknowledge(kind::PING, &payload)?,
            kind::WINDOW_UPDATE => self.window_updated(&payload)?,
            kind::RST_STREAM if header.stream == STREAM => {
                let detail = format!("reset with code {}", number(&payload)?);
                return Err(self.explain(Ending::new(EndingKind::StreamReset, detail)));
            }
            kind::GOAWAY => self.goaway_received(&payload)?,
            // Acknowledged settings, priorities, and extension frames.
            _ => {}
        }
        Ok(())
    }

    fn acknowledge(&mut self, kind: u8, payload: &[u8]) -> Result<(), Ending> {
        self.answers.count().map_err(|_| {
            let detail =
                format!("{MAX_ANSWERS} more PING and SETTINGS frames than its responses account for");
            Ending::new(EndingKind::Http2Flood, detail)
        })?;
        frame::push(kind, flag::ACK, 0, payload, &mut self.out);
        Ok(())
    }

    fn give_window_back(&mut self) {
        if self.consumed >= WINDOW_BYTES / 4 {
            let increment = mem::take(&mut self.consumed);
            frame::push_window_update(0, increment, &mut self.out);
            frame::push_window_update(STREAM, increment, &mut self.out);
        }
    }

    fn apply_settings(&mut self, payload: &[u8]) -> Result<(), Ending> {
        for (name, value) in settings::parse(payload).ok_or_else(|| violation("settings are cut short"))? {
            if name == settings::INITIAL_WINDOW_SIZE {
                self.stream_window += i64::from(value) - self.initial_window;
                self.initial_window = i64::from(value);
            }
        }
        self.send_pending();
        Ok(())
    }

    fn window_updated(&mut self, payload: &[u8]) -> Result<(), Ending> {
        let increment = i64::from(number(payload)? & MAX_31_BITS);
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
        let last_stream = number(payload)? & MAX_31_BITS;
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
        let ends = self.continued.unwrap_or_else(|| header.has(flag::END_STREAM));
        if header.kind == kind::HEADERS {
            self.collected = http2::fragment(&header, &self.collected).map_err(fragment_violation)?.to_vec();
        }
        if !header.has(flag::END_HEADERS) {
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

fn fragment_violation(error: FragmentError) -> Ending {
    violation(match error {
        FragmentError::NoPaddingLength => "padding is cut short",
        FragmentError::TooMuchPadding | FragmentError::NoPriority => "padding is larger than its frame",
    })
}

fn number(payload: &[u8]) -> Result<u32, Ending> {
    let bytes = payload.first_chunk().ok_or_else(|| violation("a frame is cut short"))?;
    Ok(u32::from_be_bytes(*bytes))
}

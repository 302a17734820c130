//! One response, over HTTP/2 or HTTP/3: its fields, and whether its content matches them.

use crate::error::ErrorKind;
use crate::protocol::grpc::{GrpcCall, GrpcEnd, GrpcFields, GrpcResponse};
use crate::protocol::{KeptField, KeptResponse};
use http2::hpack::FieldReader;

/// A response that is being received.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::protocol) struct Response {
    /// The request's method is `HEAD`.
    head_only: bool,
    /// 0 until its final head has arrived.
    status: u16,
    /// Content length announced in its head.
    content_length: Option<u64>,
    /// Content received, bytes.
    content: u64,
    /// Bytes of all its frames, including headers.
    pub(in crate::protocol) bytes: u64,
    /// Its gRPC state, if it responds to a call.
    grpc: Option<GrpcResponse>,
}

/// Error for fields or content that are not a valid response.
const MALFORMED: ErrorKind = ErrorKind::MalformedResponse;

impl Response {
    /// The response to a request, whose method is `HEAD` or which is a gRPC call.
    pub(in crate::protocol) fn new(head_only: bool, call: Option<&GrpcCall>) -> Self {
        let grpc = call.map(|call| GrpcResponse::new(call.one_answer));
        Self { head_only, grpc, ..Self::default() }
    }

    /// A reader for its fields. `kept`: its kept parts.
    pub(in crate::protocol) fn fields(&self, kept: Option<&KeptResponse>) -> ResponseFields {
        let kept = kept.filter(|kept| kept.keep.fields).map(|_| Vec::new());
        ResponseFields { grpc: self.grpc.map(|_| GrpcFields::default()), kept, ..ResponseFields::default() }
    }

    /// True if these fields are its final head, and announce a stream of events.
    pub(in crate::protocol) fn is_event_stream(&self, fields: &ResponseFields) -> bool {
        fields.event_stream && fields.status == self.status && self.grpc.is_none()
    }

    pub(in crate::protocol) fn status(&self) -> u16 {
        self.status
    }

    /// A field block was read: a final head, an interim head, or trailers if the head is complete.
    pub(in crate::protocol) fn head_read(
        &mut self,
        fields: &ResponseFields,
        ends: bool,
    ) -> Result<(), ErrorKind> {
        if self.status != 0 {
            // Trailers end a response and have no status.
            if !ends || fields.status != 0 || fields.malformed {
                return Err(MALFORMED);
            }
            return match (&mut self.grpc, &fields.grpc) {
                (Some(grpc), Some(fields)) => grpc.trailers_read(fields),
                _ => Ok(()),
            };
        }
        if fields.malformed {
            return Err(MALFORMED);
        }
        match fields.status {
            // Upgrades are not part of HTTP/2, and an interim response does not end the stream.
            0 | 101 => return Err(MALFORMED),
            100..200 => return if ends { Err(MALFORMED) } else { Ok(()) },
            status => self.status = status,
        }
        let bodyless = self.head_only || matches!(self.status, 204 | 304);
        self.content_length = if bodyless { Some(0) } else { fields.content_length };
        match (&mut self.grpc, &fields.grpc) {
            (Some(grpc), Some(fields)) => grpc.head_read(self.status, fields, ends),
            _ => Ok(()),
        }
    }

    /// Consumes content. Returns how many messages of a gRPC stream ended in it, and an error if what follows
    /// them is invalid.
    pub(in crate::protocol) fn content_read(&mut self, content: &[u8]) -> (u32, Result<(), ErrorKind>) {
        if self.status == 0 {
            return (0, Err(MALFORMED));
        }
        let expected = self.content_length.map_or(u64::MAX, |length| length.saturating_sub(self.content));
        let expected = usize::try_from(expected).unwrap_or(usize::MAX).min(content.len());
        self.content += content.len() as u64;
        let read = self.grpc.as_mut().map(|grpc| grpc.content_read(&content[..expected]));
        let (messages, outcome) = read.unwrap_or((0, Ok(())));
        (messages, if expected < content.len() { outcome.and(Err(MALFORMED)) } else { outcome })
    }

    /// The response has ended. Returns the end of the gRPC call, if it is one.
    pub(in crate::protocol) fn ended(&self) -> Result<Option<GrpcEnd>, ErrorKind> {
        let complete = self.content_length.is_none_or(|length| self.content == length);
        if self.status == 0 || !complete {
            return Err(MALFORMED);
        }
        self.grpc.map(|grpc| grpc.ended()).transpose()
    }
}

/// The fields that matter to a client that discards content.
#[derive(Debug, Default)]
pub(in crate::protocol) struct ResponseFields {
    /// 0 if there is none.
    status: u16,
    content_length: Option<u64>,
    /// A regular field has been read.
    in_regular: bool,
    malformed: bool,
    /// The content is a stream of events.
    event_stream: bool,
    /// The fields of a gRPC call, if the response belongs to one.
    grpc: Option<GrpcFields>,
    /// All regular fields, if they are kept.
    kept: Option<Vec<KeptField>>,
}

impl ResponseFields {
    /// Takes the kept fields; none if they are not kept.
    pub(in crate::protocol) fn take_kept(&mut self) -> Vec<KeptField> {
        self.kept.take().unwrap_or_default()
    }
}

impl FieldReader for ResponseFields {
    fn wants(&mut self, name: &[u8]) -> bool {
        if let Some(b':') = name.first() {
            // Pseudo-headers come first, and a response has only one.
            self.malformed |= self.in_regular || name != b":status";
            return true;
        }
        self.in_regular = true;
        self.malformed |= name.is_empty() || name.iter().any(u8::is_ascii_uppercase);
        self.kept.is_some()
            || matches!(name, b"content-length" | b"content-type")
            || (self.grpc.is_some() && GrpcFields::wants(name))
    }

    fn field(&mut self, name: &[u8], value: &[u8]) {
        if let Some(kept) = self.kept.as_mut().filter(|_| self.in_regular) {
            kept.push((name.into(), value.into()));
        }
        if name == b":status" {
            let status = match value {
                [first @ b'1'..=b'9', rest @ ..]
                    if rest.len() == 2 && rest.iter().all(u8::is_ascii_digit) =>
                {
                    [*first, rest[0], rest[1]].iter().fold(0, |sum, digit| sum * 10 + u16::from(digit - b'0'))
                }
                _ => 0,
            };
            self.malformed |= self.status != 0 || status == 0;
            self.status = status;
        } else if name == b"content-length" {
            let length = parse_length(value);
            self.malformed |= length.is_none() || self.content_length.is_some_and(|own| Some(own) != length);
            self.content_length = length;
        } else if let Some(grpc) = &mut self.grpc {
            grpc.field(name, value);
        } else if name == b"content-type" {
            self.event_stream = http1::is_event_stream(value);
        }
    }
}

fn parse_length(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Decodes fields that nobody needs, because every block must be decoded.
pub(in crate::protocol) struct NoFields;

impl FieldReader for NoFields {
    fn wants(&mut self, _: &[u8]) -> bool {
        false
    }

    fn field(&mut self, _: &[u8], _: &[u8]) {}
}

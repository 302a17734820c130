//! One response: what its fields say, and whether its content is what they say.

use super::request::Http2Request;
use crate::error::ErrorKind;
use crate::protocol::grpc::{GrpcEnd, GrpcFields, GrpcResponse};
use hpack::FieldReader;

/// A response that is being received.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Response {
    /// Its method is `HEAD`.
    head_only: bool,
    /// 0 before its head, interim responses aside.
    status: u16,
    /// Of its content, as its head says.
    content_length: Option<u64>,
    /// Content that has come, bytes.
    content: u64,
    /// Bytes of all its frames, heads included.
    pub(super) bytes: u64,
    /// What it is as gRPC, where a call is what it answers.
    grpc: Option<GrpcResponse>,
}

/// Fields, or content, that make no response.
const MALFORMED: ErrorKind = ErrorKind::MalformedResponse;

impl Response {
    /// The response to a request.
    pub(super) fn to(request: &Http2Request) -> Self {
        let grpc = request.call.as_ref().map(|call| GrpcResponse::new(call.one_answer));
        Self { head_only: request.head_only, grpc, ..Self::default() }
    }

    /// A reader of its fields.
    pub(super) fn fields(&self) -> ResponseFields {
        ResponseFields { grpc: self.grpc.map(|_| GrpcFields::default()), ..ResponseFields::default() }
    }

    pub(super) fn status(&self) -> u16 {
        self.status
    }

    /// Its head was read: a final one, an interim one, or trailers where the head is there already.
    pub(super) fn head_read(&mut self, fields: &ResponseFields, ends: bool) -> Result<(), ErrorKind> {
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
            // Upgrades are not part of HTTP/2, and an interim response ends nothing.
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

    /// Some of its content came. Returns how many messages of a gRPC stream ended in it, and whether it makes sense behind
    /// them.
    pub(super) fn content_read(&mut self, content: &[u8]) -> (u32, Result<(), ErrorKind>) {
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

    /// It has ended: as a gRPC call, if it is one.
    pub(super) fn ended(&self) -> Result<Option<GrpcEnd>, ErrorKind> {
        let complete = self.content_length.is_none_or(|length| self.content == length);
        if self.status == 0 || !complete {
            return Err(MALFORMED);
        }
        self.grpc.map(|grpc| grpc.ended()).transpose()
    }
}

/// The fields that matter to a client that forgets content.
#[derive(Debug, Default)]
pub(super) struct ResponseFields {
    /// 0 where there is none.
    status: u16,
    content_length: Option<u64>,
    /// A field that is none of a pseudo-header has come.
    in_regular: bool,
    malformed: bool,
    /// Those that matter to a gRPC call, where it is one.
    grpc: Option<GrpcFields>,
}

impl FieldReader for ResponseFields {
    fn wants(&mut self, name: &[u8]) -> bool {
        if let Some(b':') = name.first() {
            // Pseudo-headers come first, and a response has one.
            self.malformed |= self.in_regular || name != b":status";
            return true;
        }
        self.in_regular = true;
        self.malformed |= name.is_empty() || name.iter().any(u8::is_ascii_uppercase);
        name == b"content-length" || (self.grpc.is_some() && GrpcFields::wants(name))
    }

    fn field(&mut self, name: &[u8], value: &[u8]) {
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
        }
    }
}

fn parse_length(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Reads fields that nobody wants, since a block must be read in any case.
pub(super) struct NoFields;

impl FieldReader for NoFields {
    fn wants(&mut self, _: &[u8]) -> bool {
        false
    }

    fn field(&mut self, _: &[u8], _: &[u8]) {}
}

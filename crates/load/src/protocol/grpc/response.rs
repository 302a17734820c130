//! One response as gRPC has it: what its head, its messages and its trailers must be.

use super::frames::MessageFrames;
use crate::error::ErrorKind;

/// Statuses of gRPC: 0 to 16.
pub(crate) const STATUSES: usize = 17;
/// The status that is meant by a number that is none.
const UNKNOWN: u8 = 2;

/// How a call ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct GrpcEnd {
    /// The status, 0 to 16.
    pub status: u8,
    /// Messages of the response that were not told before its end.
    pub messages: u64,
}

/// A response that is being received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GrpcResponse {
    one_answer: bool,
    /// The head names a compression.
    may_compress: bool,
    status: Option<u8>,
    frames: MessageFrames,
    messages: u64,
}

impl GrpcResponse {
    /// `one_answer`: the method's response is one message.
    pub(crate) fn new(one_answer: bool) -> Self {
        Self { one_answer, may_compress: false, status: None, frames: MessageFrames::default(), messages: 0 }
    }

    /// The head was read; `ends`: nothing follows, so that it stands for the trailers too.
    pub(crate) fn head_read(
        &mut self,
        http_status: u16,
        fields: &GrpcFields,
        ends: bool,
    ) -> Result<(), ErrorKind> {
        if http_status != 200 {
            return Err(ErrorKind::GrpcHttpStatus);
        }
        if !fields.is_grpc {
            return Err(ErrorKind::GrpcContentType);
        }
        self.may_compress = fields.is_encoded;
        if ends { self.trailers_read(fields) } else { Ok(()) }
    }

    /// Trailers were read.
    pub(crate) fn trailers_read(&mut self, fields: &GrpcFields) -> Result<(), ErrorKind> {
        self.status = fields.status;
        Ok(())
    }

    /// Some content came. Returns how many messages of a stream ended in it, and whether it makes sense behind them; the
    /// message of a response that has one is told with its end.
    pub(crate) fn content_read(&mut self, content: &[u8]) -> (u32, Result<(), ErrorKind>) {
        let (ended, outcome) = self.frames.receive(content, self.may_compress);
        self.messages += u64::from(ended);
        (if self.one_answer { 0 } else { ended }, outcome)
    }

    /// It has ended.
    pub(crate) fn ended(&self) -> Result<GrpcEnd, ErrorKind> {
        if !self.frames.is_between() {
            return Err(ErrorKind::GrpcMessageCut);
        }
        let status = self.status.ok_or(ErrorKind::GrpcStatusMissing)?;
        if status == 0 && self.one_answer && self.messages != 1 {
            return Err(ErrorKind::GrpcMessageCount);
        }
        Ok(GrpcEnd { status, messages: if self.one_answer { self.messages } else { 0 } })
    }
}

/// The fields of a head or of trailers that matter to gRPC.
#[derive(Debug, Default)]
pub(crate) struct GrpcFields {
    is_grpc: bool,
    is_encoded: bool,
    status: Option<u8>,
}

impl GrpcFields {
    /// Whether the value of this field is of interest.
    pub(crate) fn wants(name: &[u8]) -> bool {
        matches!(name, b"content-type" | b"grpc-encoding" | b"grpc-status")
    }

    /// A field that is of interest.
    pub(crate) fn field(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b"content-type" => self.is_grpc = is_grpc(value),
            b"grpc-encoding" => self.is_encoded = value != b"identity",
            b"grpc-status" => self.status = Some(status(value)),
            _ => {}
        }
    }
}

/// `application/grpc`, with the format of its messages or without; not `application/grpc-web`.
fn is_grpc(content_type: &[u8]) -> bool {
    matches!(content_type.strip_prefix(b"application/grpc"), Some([] | [b'+' | b';', ..]))
}

/// A number beyond those that there are means that the status is not known, as in every library of gRPC.
fn status(digits: &[u8]) -> u8 {
    let number = std::str::from_utf8(digits).ok().and_then(|text| text.parse::<u8>().ok());
    number.filter(|number| usize::from(*number) < STATUSES).unwrap_or(UNKNOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: &[u8] = &[0, 0, 0, 0, 1, b'x'];

    fn fields(pairs: &[(&str, &str)]) -> GrpcFields {
        let mut fields = GrpcFields::default();
        for (name, value) in pairs {
            assert!(GrpcFields::wants(name.as_bytes()));
            fields.field(name.as_bytes(), value.as_bytes());
        }
        fields
    }

    const HEAD: [(&str, &str); 1] = [("content-type", "application/grpc")];

    /// How a response of one message ends that has this content and these trailers.
    fn end(content: &[u8], trailers: &[(&str, &str)]) -> Result<u8, ErrorKind> {
        let mut response = GrpcResponse::new(true);
        response.head_read(200, &fields(&HEAD), false)?;
        response.content_read(content).1?;
        response.trailers_read(&fields(trailers))?;
        response.ended().map(|end| end.status)
    }

    #[test]
    fn a_response_has_a_message_and_a_status() {
        assert_eq!(end(MESSAGE, &[("grpc-status", "0")]), Ok(0));
        assert_eq!(end(&[], &[("grpc-status", "14")]), Ok(14));
        assert_eq!(end(MESSAGE, &[("grpc-status", "99")]), Ok(2));
        assert_eq!(end(MESSAGE, &[("grpc-status", "ok")]), Ok(2));
    }

    #[test]
    fn what_is_missing_is_named() {
        assert_eq!(end(MESSAGE, &[]), Err(ErrorKind::GrpcStatusMissing));
        assert_eq!(end(&MESSAGE[..5], &[("grpc-status", "0")]), Err(ErrorKind::GrpcMessageCut));
        assert_eq!(end(&[], &[("grpc-status", "0")]), Err(ErrorKind::GrpcMessageCount));
        assert_eq!(end(&MESSAGE.repeat(2), &[("grpc-status", "0")]), Err(ErrorKind::GrpcMessageCount));
    }

    #[test]
    fn a_head_must_be_one_of_grpc_and_may_be_all_there_is() {
        let head = |status, pairs: &[(&str, &str)], ends| {
            let mut response = GrpcResponse::new(true);
            response.head_read(status, &fields(pairs), ends)?;
            response.ended().map(|end| end.status)
        };
        let only = [HEAD[0], ("grpc-status", "12")];
        assert_eq!(head(200, &only, true), Ok(12));
        // Where something follows, the status stands there.
        assert_eq!(head(200, &only, false), Err(ErrorKind::GrpcStatusMissing));
        assert_eq!(head(502, &only, true), Err(ErrorKind::GrpcHttpStatus));
        for (content_type, good) in [
            ("application/grpc+proto", true),
            ("application/grpc;charset=x", true),
            ("application/grpc-web", false),
            ("text/html", false),
        ] {
            let outcome = head(200, &[("content-type", content_type), ("grpc-status", "5")], true);
            assert_eq!(outcome, if good { Ok(5) } else { Err(ErrorKind::GrpcContentType) }, "{content_type}");
        }
        assert_eq!(head(200, &[], true), Err(ErrorKind::GrpcContentType));
    }
}

//! The gRPC view of a response: requirements for its head, messages and trailers.

use super::frames::MessageFrames;
use crate::error::ErrorKind;

/// Number of gRPC statuses, 0 to 16.
pub(crate) const STATUSES: usize = 17;
/// Status used for numbers that are not a gRPC status.
const UNKNOWN: u8 = 2;

/// How a call ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct GrpcEnd {
    /// The status, 0 to 16.
    pub status: u8,
    /// Response messages that were not reported before the end of the call: the single one of a unary
    /// response.
    pub messages: u64,
}

/// A response that is being received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GrpcResponse {
    one_answer: bool,
    /// The head announces a compression.
    may_compress: bool,
    status: Option<u8>,
    frames: MessageFrames,
    messages: u64,
}

impl GrpcResponse {
    /// `one_answer`: the method returns a single response message.
    pub(crate) fn new(one_answer: bool) -> Self {
        Self { one_answer, may_compress: false, status: None, frames: MessageFrames::default(), messages: 0 }
    }

    /// The head was read. `ends`: nothing follows, so it serves as the trailers, too.
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

    /// The trailers were read.
    pub(crate) fn trailers_read(&mut self, fields: &GrpcFields) -> Result<(), ErrorKind> {
        self.status = fields.status;
        Ok(())
    }

    /// Consumes content. Returns how many messages of a stream ended in it, and an error if what follows them
    /// is invalid. A single response message is reported at the end of the call.
    pub(crate) fn content_read(&mut self, content: &[u8]) -> (u32, Result<(), ErrorKind>) {
        let (ended, outcome) = self.frames.receive(content, self.may_compress);
        self.messages += u64::from(ended);
        (if self.one_answer { 0 } else { ended }, outcome)
    }

    /// The response has ended.
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
    /// True if the value of this field is needed.
    pub(crate) fn wants(name: &[u8]) -> bool {
        matches!(name, b"content-type" | b"grpc-encoding" | b"grpc-status")
    }

    /// Takes the value of a field that [`Self::wants`] accepts.
    pub(crate) fn field(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b"content-type" => self.is_grpc = is_grpc(value),
            b"grpc-encoding" => self.is_encoded = value != b"identity",
            b"grpc-status" => self.status = Some(status(value)),
            _ => {}
        }
    }
}

/// `application/grpc`, with or without a message format; not `application/grpc-web`.
fn is_grpc(content_type: &[u8]) -> bool {
    matches!(content_type.strip_prefix(b"application/grpc"), Some([] | [b'+' | b';', ..]))
}

/// Numbers out of range map to UNKNOWN, as in every gRPC library.
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

    /// Ends a response with one message that has this content and these trailers.
    fn end(content: &[u8], trailers: &[(&str, &str)]) -> Result<u8, ErrorKind> {
        let mut response = GrpcResponse::new(true);
        response.head_read(200, &fields(&HEAD), false)?;
        response.content_read(content).1?;
        response.trailers_read(&fields(trailers))?;
        response.ended().map(|end| end.status)
    }

    #[test]
    fn response_has_message_and_status() {
        assert_eq!(end(MESSAGE, &[("grpc-status", "0")]), Ok(0));
        assert_eq!(end(&[], &[("grpc-status", "14")]), Ok(14));
        assert_eq!(end(MESSAGE, &[("grpc-status", "99")]), Ok(2));
        assert_eq!(end(MESSAGE, &[("grpc-status", "ok")]), Ok(2));
    }

    #[test]
    fn incomplete_response_is_error_of_its_kind() {
        assert_eq!(end(MESSAGE, &[]), Err(ErrorKind::GrpcStatusMissing));
        assert_eq!(end(&MESSAGE[..5], &[("grpc-status", "0")]), Err(ErrorKind::GrpcMessageCut));
        assert_eq!(end(&[], &[("grpc-status", "0")]), Err(ErrorKind::GrpcMessageCount));
        assert_eq!(end(&MESSAGE.repeat(2), &[("grpc-status", "0")]), Err(ErrorKind::GrpcMessageCount));
    }

    #[test]
    fn head_must_be_grpc_and_may_be_trailers_only() {
        let head = |status, pairs: &[(&str, &str)], ends| {
            let mut response = GrpcResponse::new(true);
            response.head_read(status, &fields(pairs), ends)?;
            response.ended().map(|end| end.status)
        };
        let only = [HEAD[0], ("grpc-status", "12")];
        assert_eq!(head(200, &only, true), Ok(12));
        // If anything follows, the status must come in the trailers.
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

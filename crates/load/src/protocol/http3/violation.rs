//! Protocol violations of a peer: the error code to send, and the kind under which they are counted.

use crate::error::ErrorKind;
use http2::hpack::CompressionError;
use http3::ErrorCode;

/// A connection error.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Violation {
    pub(super) code: ErrorCode,
    pub(super) kind: ErrorKind,
}

impl Violation {
    pub(super) const HEAD_TOO_LARGE: Self =
        Self { code: ErrorCode::ExcessiveLoad, kind: ErrorKind::HeadTooLarge };
}

impl From<ErrorCode> for Violation {
    fn from(code: ErrorCode) -> Self {
        let kind = match code {
            ErrorCode::ClosedCriticalStream => ErrorKind::Http3ControlClosed,
            ErrorCode::Frame => ErrorKind::Http3Frame,
            ErrorCode::ExcessiveLoad => ErrorKind::Http3Flood,
            ErrorCode::Settings | ErrorCode::MissingSettings => ErrorKind::Http3Settings,
            ErrorCode::Decompression | ErrorCode::EncoderStream | ErrorCode::DecoderStream => {
                ErrorKind::Http3Compression
            }
            _ => ErrorKind::Http3Protocol,
        };
        Self { code, kind }
    }
}

impl From<CompressionError> for Violation {
    fn from(_: CompressionError) -> Self {
        ErrorCode::Decompression.into()
    }
}

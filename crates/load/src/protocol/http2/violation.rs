//! Protocol violations of a peer: the error code to send, and the kind under which they are counted.

use crate::error::ErrorKind;
use http2::hpack::CompressionError;
use http2::{ErrorCode, Flood, FragmentError};

/// A connection error.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Violation {
    pub(super) code: ErrorCode,
    pub(super) kind: ErrorKind,
}

impl Violation {
    pub(super) const PROTOCOL: Self = Self::new(ErrorCode::Protocol, ErrorKind::Http2Protocol);
    pub(super) const STREAM_CLOSED: Self = Self::new(ErrorCode::StreamClosed, ErrorKind::Http2Protocol);
    pub(super) const FRAME_SIZE: Self = Self::new(ErrorCode::FrameSize, ErrorKind::Http2FrameSize);
    pub(super) const FLOW_CONTROL: Self = Self::new(ErrorCode::FlowControl, ErrorKind::Http2FlowControl);
    pub(super) const COMPRESSION: Self = Self::new(ErrorCode::Compression, ErrorKind::Http2Compression);
    pub(super) const FLOOD: Self = Self::new(ErrorCode::EnhanceYourCalm, ErrorKind::Http2Flood);
    pub(super) const HEAD_TOO_LARGE: Self = Self::new(ErrorCode::EnhanceYourCalm, ErrorKind::HeadTooLarge);
    pub(super) const NOT_HTTP2: Self = Self::new(ErrorCode::Protocol, ErrorKind::NotHttp2);
    pub(super) const TLS: Self = Self::new(ErrorCode::Protocol, ErrorKind::TlsResponse);

    const fn new(code: ErrorCode, kind: ErrorKind) -> Self {
        Self { code, kind }
    }
}

impl From<CompressionError> for Violation {
    fn from(_: CompressionError) -> Self {
        Self::COMPRESSION
    }
}

impl From<Flood> for Violation {
    fn from(_: Flood) -> Self {
        Self::FLOOD
    }
}

impl From<FragmentError> for Violation {
    fn from(error: FragmentError) -> Self {
        match error {
            FragmentError::NoPaddingLength | FragmentError::NoPriority => Self::FRAME_SIZE,
            FragmentError::TooMuchPadding => Self::PROTOCOL,
        }
    }
}

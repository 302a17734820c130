//! Error codes.

/// Error codes (RFC 9113, section 7) in use here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum ErrorCode {
    /// `PROTOCOL_ERROR`.
    Protocol = 0x1,
    /// `FLOW_CONTROL_ERROR`.
    FlowControl = 0x3,
    /// `STREAM_CLOSED`.
    StreamClosed = 0x5,
    /// `FRAME_SIZE_ERROR`.
    FrameSize = 0x6,
    /// `REFUSED_STREAM`.
    RefusedStream = 0x7,
    /// `CANCEL`: the stream is no longer needed.
    Cancel = 0x8,
    /// `COMPRESSION_ERROR`.
    Compression = 0x9,
    /// `ENHANCE_YOUR_CALM`.
    EnhanceYourCalm = 0xb,
}

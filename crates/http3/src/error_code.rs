//! Error codes.

/// Error codes (RFC 9114, section 8.1; RFC 9204, section 6) in use here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u64)]
pub enum ErrorCode {
    /// `H3_NO_ERROR`.
    None = 0x100,
    /// `H3_GENERAL_PROTOCOL_ERROR`.
    Protocol = 0x101,
    /// `H3_STREAM_CREATION_ERROR`: a stream of a kind that the peer may not open.
    StreamCreation = 0x103,
    /// `H3_CLOSED_CRITICAL_STREAM`: the control stream or a stream of QPACK has ended.
    ClosedCriticalStream = 0x104,
    /// `H3_FRAME_UNEXPECTED`: a frame that may not come there.
    FrameUnexpected = 0x105,
    /// `H3_FRAME_ERROR`: a frame with a wrong length or content.
    Frame = 0x106,
    /// `H3_EXCESSIVE_LOAD`.
    ExcessiveLoad = 0x107,
    /// `H3_ID_ERROR`: an identifier that cannot be.
    Id = 0x108,
    /// `H3_SETTINGS_ERROR`.
    Settings = 0x109,
    /// `H3_MISSING_SETTINGS`: the control stream does not begin with settings.
    MissingSettings = 0x10a,
    /// `H3_REQUEST_REJECTED`: the server has not processed the request.
    RequestRejected = 0x10b,
    /// `H3_REQUEST_CANCELLED`: the request or its response is no longer needed.
    RequestCancelled = 0x10c,
    /// `H3_REQUEST_INCOMPLETE`: the client's stream ended within the request.
    RequestIncomplete = 0x10d,
    /// `H3_MESSAGE_ERROR`: a malformed request or response.
    Message = 0x10e,
    /// `QPACK_DECOMPRESSION_FAILED`.
    Decompression = 0x200,
    /// `QPACK_ENCODER_STREAM_ERROR`.
    EncoderStream = 0x201,
    /// `QPACK_DECODER_STREAM_ERROR`.
    DecoderStream = 0x202,
}

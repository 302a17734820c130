//! Frames in wire format (RFC 9113, sections 4 and 6).

use crate::ErrorCode;

/// Client connection preface, sent before the first frame (section 3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Size of a frame header.
pub const HEAD_BYTES: usize = 9;
/// Default maximum payload of a frame; neither user announces another.
pub const DEFAULT_MAX_FRAME_BYTES: usize = 16_384;
/// Maximum value of a frame's length field.
pub const MAX_FRAME_BYTES: u32 = (1 << 24) - 1;
/// Maximum size of a flow-control window, and maximum stream identifier.
pub const MAX_31_BITS: u32 = (1 << 31) - 1;
/// Default size of a flow-control window.
pub const DEFAULT_WINDOW_BYTES: u32 = 65_535;
/// Size of a PING's payload (section 6.7).
pub const PING_BYTES: usize = 8;

/// Types of frames.
#[allow(missing_docs)]
pub mod kind {
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const PRIORITY: u8 = 2;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PUSH_PROMISE: u8 = 5;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
}

/// Flags of frames.
#[allow(missing_docs)]
pub mod flag {
    pub const ACK: u8 = 0x1;
    pub const END_STREAM: u8 = 0x1;
    pub const END_HEADERS: u8 = 0x4;
    pub const PADDED: u8 = 0x8;
    pub const PRIORITY: u8 = 0x20;
}

/// A frame header.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct FrameHead {
    /// Length of the payload, bytes.
    pub length: usize,
    /// Type of the frame, of [`kind`].
    pub kind: u8,
    /// Flags, of [`flag`].
    pub flags: u8,
    /// Stream identifier; 0 for the connection.
    pub stream: u32,
}

impl FrameHead {
    /// Parses a frame header.
    #[inline]
    #[must_use]
    pub fn parse(bytes: &[u8; HEAD_BYTES]) -> Self {
        let [high, middle, low, kind, flags, stream @ ..] = *bytes;
        Self {
            length: u32::from_be_bytes([0, high, middle, low]) as usize,
            kind,
            flags,
            // The highest bit is reserved.
            stream: u32::from_be_bytes(stream) & MAX_31_BITS,
        }
    }

    /// The header in wire format.
    #[inline]
    #[must_use]
    pub fn to_bytes(self) -> [u8; HEAD_BYTES] {
        let [_, high, middle, low] = (self.length as u32).to_be_bytes();
        let [first, second, third, fourth] = self.stream.to_be_bytes();
        [high, middle, low, self.kind, self.flags, first, second, third, fourth]
    }

    /// True if a flag is set.
    #[inline]
    #[must_use]
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Appends a frame to `out`.
#[inline]
pub fn push(kind: u8, flags: u8, stream: u32, payload: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&FrameHead { length: payload.len(), kind, flags, stream }.to_bytes());
    out.extend_from_slice(payload);
}

/// Appends a WINDOW_UPDATE.
#[inline]
pub fn push_window_update(stream: u32, bytes: u32, out: &mut Vec<u8>) {
    push(kind::WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes(), out);
}

/// Appends a RST_STREAM.
#[inline]
pub fn push_reset(stream: u32, code: ErrorCode, out: &mut Vec<u8>) {
    push(kind::RST_STREAM, 0, stream, &(code as u32).to_be_bytes(), out);
}

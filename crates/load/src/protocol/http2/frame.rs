//! Frames in wire format (RFC 9113, sections 4 and 6).

/// Client connection preface, sent before the first frame (section 3.4).
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Size of a frame header.
pub(super) const HEAD_BYTES: usize = 9;
/// Default maximum payload of a frame; this side never announces another.
pub(super) const DEFAULT_MAX_FRAME_BYTES: usize = 16_384;
/// Maximum value of a frame's length field.
pub(super) const MAX_FRAME_BYTES: u32 = (1 << 24) - 1;
/// Maximum size of a flow-control window, and maximum stream identifier.
pub(super) const MAX_31_BITS: u32 = (1 << 31) - 1;

pub(super) mod kind {
    pub(in super::super) const DATA: u8 = 0;
    pub(in super::super) const HEADERS: u8 = 1;
    pub(in super::super) const PRIORITY: u8 = 2;
    pub(in super::super) const RST_STREAM: u8 = 3;
    pub(in super::super) const SETTINGS: u8 = 4;
    pub(in super::super) const PUSH_PROMISE: u8 = 5;
    pub(in super::super) const PING: u8 = 6;
    pub(in super::super) const GOAWAY: u8 = 7;
    pub(in super::super) const WINDOW_UPDATE: u8 = 8;
    pub(in super::super) const CONTINUATION: u8 = 9;
}

pub(super) mod flag {
    pub(in super::super) const ACK: u8 = 0x1;
    pub(in super::super) const END_STREAM: u8 = 0x1;
    pub(in super::super) const END_HEADERS: u8 = 0x4;
    pub(in super::super) const PADDED: u8 = 0x8;
    pub(in super::super) const PRIORITY: u8 = 0x20;
}

/// A frame header.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct FrameHead {
    /// Length of the payload, bytes.
    pub(super) length: usize,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

impl FrameHead {
    pub(super) fn parse(bytes: &[u8; HEAD_BYTES]) -> Self {
        let [high, middle, low, kind, flags, stream @ ..] = *bytes;
        Self {
            length: u32::from_be_bytes([0, high, middle, low]) as usize,
            kind,
            flags,
            // The highest bit is reserved.
            stream: u32::from_be_bytes(stream) & MAX_31_BITS,
        }
    }

    pub(super) fn to_bytes(self) -> [u8; HEAD_BYTES] {
        let [_, high, middle, low] = (self.length as u32).to_be_bytes();
        let [first, second, third, fourth] = self.stream.to_be_bytes();
        [high, middle, low, self.kind, self.flags, first, second, third, fourth]
    }

    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Appends a frame to `out`.
pub(super) fn push(kind: u8, flags: u8, stream: u32, payload: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&FrameHead { length: payload.len(), kind, flags, stream }.to_bytes());
    out.extend_from_slice(payload);
}

/// Appends a WINDOW_UPDATE.
pub(super) fn push_window_update(stream: u32, bytes: u32, out: &mut Vec<u8>) {
    push(kind::WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes(), out);
}

/// Appends a RST_STREAM.
pub(super) fn push_reset(stream: u32, code: super::ErrorCode, out: &mut Vec<u8>) {
    push(kind::RST_STREAM, 0, stream, &(code as u32).to_be_bytes(), out);
}

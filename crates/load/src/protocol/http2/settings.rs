//! Settings that both sides announce (RFC 9113, section 6.5).

use super::violation::Violation;
use http2::frame::{
    DEFAULT_MAX_FRAME_BYTES, DEFAULT_WINDOW_BYTES, MAX_31_BITS, MAX_FRAME_BYTES, push_window_update,
};
use http2::settings::{
    self, ENABLE_PUSH, HEADER_TABLE_SIZE, INITIAL_WINDOW_SIZE, MAX_CONCURRENT_STREAMS, MAX_FRAME_SIZE,
    MAX_HEADER_LIST_SIZE,
};

/// Receive window per stream: content that the peer may send before it gets a WINDOW_UPDATE. Replenished when
/// half is used.
pub(super) const STREAM_WINDOW_BYTES: u32 = 16 << 20;
/// Receive window of the connection: large enough that it never stalls a response.
pub(super) const CONNECTION_WINDOW_BYTES: u32 = 1 << 30;
/// Maximum size of a field block that is accepted.
pub(super) const MAX_HEAD_BYTES: usize = 256 * 1024;

/// Appends this side's settings: no server push, large windows, the maximum header list size.
pub(super) fn announce(out: &mut Vec<u8>) {
    let settings = [
        (ENABLE_PUSH, 0),
        (INITIAL_WINDOW_SIZE, STREAM_WINDOW_BYTES),
        (MAX_HEADER_LIST_SIZE, MAX_HEAD_BYTES as u32),
    ];
    settings::push(&settings, out);
    push_window_update(0, CONNECTION_WINDOW_BYTES - DEFAULT_WINDOW_BYTES, out);
}

/// Settings that the peer announced.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct PeerSettings {
    pub(super) header_table_bytes: usize,
    pub(super) max_streams: u32,
    pub(super) stream_window_bytes: u32,
    pub(super) max_frame_bytes: usize,
}

impl Default for PeerSettings {
    fn default() -> Self {
        Self {
            header_table_bytes: http2::hpack::DEFAULT_TABLE_BYTES,
            max_streams: u32::MAX,
            stream_window_bytes: DEFAULT_WINDOW_BYTES,
            max_frame_bytes: DEFAULT_MAX_FRAME_BYTES,
        }
    }
}

impl PeerSettings {
    /// Applies the settings of a frame. Fails on an invalid value.
    pub(super) fn apply(&mut self, settings: impl Iterator<Item = (u16, u32)>) -> Result<(), Violation> {
        for (name, value) in settings {
            match name {
                HEADER_TABLE_SIZE => self.header_table_bytes = value as usize,
                // A server must not enable push.
                ENABLE_PUSH if value != 0 => return Err(Violation::PROTOCOL),
                MAX_CONCURRENT_STREAMS => self.max_streams = value,
                INITIAL_WINDOW_SIZE if value > MAX_31_BITS => return Err(Violation::FLOW_CONTROL),
                INITIAL_WINDOW_SIZE => self.stream_window_bytes = value,
                MAX_FRAME_SIZE if !(DEFAULT_MAX_FRAME_BYTES as u32..=MAX_FRAME_BYTES).contains(&value) => {
                    return Err(Violation::PROTOCOL);
                }
                MAX_FRAME_SIZE => self.max_frame_bytes = value as usize,
                _ => {}
            }
        }
        Ok(())
    }
}

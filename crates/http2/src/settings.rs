//! Settings (RFC 9113, section 6.5).

use crate::frame::{self, kind};

/// `SETTINGS_HEADER_TABLE_SIZE`.
pub const HEADER_TABLE_SIZE: u16 = 1;
/// `SETTINGS_ENABLE_PUSH`.
pub const ENABLE_PUSH: u16 = 2;
/// `SETTINGS_MAX_CONCURRENT_STREAMS`.
pub const MAX_CONCURRENT_STREAMS: u16 = 3;
/// `SETTINGS_INITIAL_WINDOW_SIZE`.
pub const INITIAL_WINDOW_SIZE: u16 = 4;
/// `SETTINGS_MAX_FRAME_SIZE`.
pub const MAX_FRAME_SIZE: u16 = 5;
/// `SETTINGS_MAX_HEADER_LIST_SIZE`.
pub const MAX_HEADER_LIST_SIZE: u16 = 6;

/// Size of a setting: identifier and value.
const BYTES: usize = 6;

/// Appends a SETTINGS frame.
pub fn push(settings: &[(u16, u32)], out: &mut Vec<u8>) {
    let mut payload = Vec::with_capacity(settings.len() * BYTES);
    for (name, value) in settings {
        payload.extend_from_slice(&name.to_be_bytes());
        payload.extend_from_slice(&value.to_be_bytes());
    }
    frame::push(kind::SETTINGS, 0, 0, &payload, out);
}

/// The settings of a payload with their values; `None` if the last one is truncated.
pub fn parse(payload: &[u8]) -> Option<impl Iterator<Item = (u16, u32)> + '_> {
    let (settings, []) = payload.as_chunks::<BYTES>() else { return None };
    Some(
        settings
            .iter()
            .map(|[high, low, value @ ..]| (u16::from_be_bytes([*high, *low]), u32::from_be_bytes(*value))),
    )
}

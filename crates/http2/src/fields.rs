//! Field blocks in HEADERS and CONTINUATION frames (RFC 9113, sections 6.2 and 6.10), and padding.

use crate::frame::{self, FrameHead, flag, kind};

/// Size of the priority in a HEADERS frame.
const PRIORITY_BYTES: usize = 5;

/// Reason why the payload of a frame cannot be taken apart.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FragmentError {
    /// A padded frame without the length of its padding.
    NoPaddingLength,
    /// More padding than payload.
    TooMuchPadding,
    /// The payload ends inside the priority.
    NoPriority,
}

#[inline]
fn unpadded<'b>(head: &FrameHead, payload: &'b [u8]) -> Result<&'b [u8], FragmentError> {
    if !head.has(flag::PADDED) {
        return Ok(payload);
    }
    let (padding, rest) = payload.split_first().ok_or(FragmentError::NoPaddingLength)?;
    let length = rest.len().checked_sub(usize::from(*padding)).ok_or(FragmentError::TooMuchPadding)?;
    Ok(&rest[..length])
}

/// The part of a field block in a HEADERS frame: its payload without padding and priority.
///
/// # Errors
/// Returns an error if these are larger than the frame.
#[inline]
pub fn fragment<'b>(head: &FrameHead, payload: &'b [u8]) -> Result<&'b [u8], FragmentError> {
    let payload = unpadded(head, payload)?;
    if head.has(flag::PRIORITY) {
        return payload.get(PRIORITY_BYTES..).ok_or(FragmentError::NoPriority);
    }
    Ok(payload)
}

/// Appends a field block in as many frames as it needs. `flags`: those of the HEADERS frame, without END_HEADERS.
pub fn push_fields(block: &[u8], flags: u8, stream: u32, max_frame_bytes: usize, out: &mut Vec<u8>) {
    let mut fragments = block.chunks(max_frame_bytes).peekable();
    let (mut frame_kind, mut flags) = (kind::HEADERS, flags);
    while let Some(fragment) = fragments.next() {
        if fragments.peek().is_none() {
            flags |= flag::END_HEADERS;
        }
        frame::push(frame_kind, flags, stream, fragment, out);
        (frame_kind, flags) = (kind::CONTINUATION, 0);
    }
}

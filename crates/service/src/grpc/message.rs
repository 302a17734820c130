//! Serialized messages: the prefix, and a filler field that is not copied if it is long.

use crate::content::{Content, FILLER, MAX_COPIED_BYTES};
use bytes::{BufMut as _, BytesMut};
use prost::Message;

/// Size of a message prefix, bytes.
pub(super) const PREFIX_BYTES: usize = 5;

/// A message followed by a bytes field of filler, given by its number and length. `None` if it exceeds the
/// maximum message size.
pub(crate) fn message_with_filler(message: &impl Message, filler: Option<(u32, u64)>) -> Option<Content> {
    let mut bytes = BytesMut::zeroed(PREFIX_BYTES);
    message.encode(&mut bytes).expect("there is room in memory that grows");
    let filler_bytes = filler.map_or(0, |(field, length)| {
        prost::encoding::encode_key(field, prost::encoding::WireType::LengthDelimited, &mut bytes);
        prost::encoding::encode_varint(length, &mut bytes);
        length
    });
    let length = (bytes.len() - PREFIX_BYTES) as u64 + filler_bytes;
    (&mut bytes[1..PREFIX_BYTES]).put_u32(u32::try_from(length).ok()?);
    if filler_bytes > MAX_COPIED_BYTES {
        return Some(Content::new(bytes, filler_bytes));
    }
    bytes.extend_from_slice(&FILLER[..filler_bytes as usize]);
    Some(Content::new(bytes, 0))
}

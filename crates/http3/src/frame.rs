//! Frames (RFC 9114, section 7), as the bytes of one stream arrive.

use crate::ErrorCode;
use crate::varint;

/// Types of frames.
pub mod kind {
    /// Content.
    pub const DATA: u64 = 0x0;
    /// A field section.
    pub const HEADERS: u64 = 0x1;
    /// A promised push is cancelled.
    pub const CANCEL_PUSH: u64 = 0x3;
    /// Settings.
    pub const SETTINGS: u64 = 0x4;
    /// A server promises a push.
    pub const PUSH_PROMISE: u64 = 0x5;
    /// The end of the connection is near.
    pub const GOAWAY: u64 = 0x7;
    /// Limit of pushes.
    pub const MAX_PUSH_ID: u64 = 0xd;

    /// True for types of HTTP/2 that must not occur in HTTP/3.
    #[must_use]
    pub fn is_of_http2(kind: u64) -> bool {
        matches!(kind, 0x2 | 0x6 | 0x8 | 0x9)
    }

    /// True for the types that this version knows.
    #[must_use]
    pub fn is_known(kind: u64) -> bool {
        matches!(kind, DATA | HEADERS | CANCEL_PUSH | SETTINGS | PUSH_PROMISE | GOAWAY | MAX_PUSH_ID)
    }
}

/// Longest type and length of a frame, bytes.
const MAX_HEAD_BYTES: usize = 2 * varint::MAX_BYTES;

/// Appends the type and length of a frame.
pub fn push_head(kind: u64, length: u64, out: &mut Vec<u8>) {
    varint::encode(kind, out);
    varint::encode(length, out);
}

/// Appends a frame.
pub fn push(kind: u64, payload: &[u8], out: &mut Vec<u8>) {
    push_head(kind, payload.len() as u64, out);
    out.extend_from_slice(payload);
}

/// Appends a HEADERS frame around the field section that `write` appends.
pub fn push_fields(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(kind::HEADERS as u8);
    let start = out.len();
    out.push(0);
    write(out);
    let length = (out.len() - start - 1) as u64;
    if length < 0x40 {
        out[start] = length as u8;
    } else {
        let mut encoded = Vec::with_capacity(varint::MAX_BYTES);
        varint::encode(length, &mut encoded);
        out.splice(start..=start, encoded);
    }
}

/// A frame, or a part of one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Piece<'b> {
    /// The type and length of a DATA frame; its content follows.
    DataHead,
    /// A part of the content of a DATA frame.
    Data(&'b [u8]),
    /// Another frame that this version knows, complete.
    Frame(u64, &'b [u8]),
    /// The type of a frame that this version does not know; its payload is skipped.
    Unknown(u64),
}

/// Splits the bytes of a stream into frames.
#[derive(Debug, Default)]
pub struct FrameReader {
    head: Vec<u8>,
    state: State,
    payload: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Head,
    Data {
        left: u64,
    },
    Skipped {
        left: u64,
    },
    Payload {
        kind: u64,
        length: usize,
    },
}

impl FrameReader {
    /// Takes bytes up to the next piece: their number, and the piece; `None` if more are needed. A frame other than DATA has a payload of at
    /// most `max_bytes`.
    ///
    /// # Errors
    /// Returns the code of a connection error if a frame is larger.
    pub fn next<'b>(
        &'b mut self,
        bytes: &'b [u8],
        max_bytes: usize,
    ) -> Result<(usize, Option<Piece<'b>>), ErrorCode> {
        let mut taken = 0;
        loop {
            let rest = &bytes[taken..];
            match self.state {
                State::Head => {
                    let Some((step, kind, length)) = self.read_head(rest) else {
                        return Ok((bytes.len(), None));
                    };
                    taken += step;
                    if kind == kind::DATA {
                        self.state = State::Data { left: length };
                        return Ok((taken, Some(Piece::DataHead)));
                    }
                    if !kind::is_known(kind) && !kind::is_of_http2(kind) {
                        self.state = State::Skipped { left: length };
                        return Ok((taken, Some(Piece::Unknown(kind))));
                    }
                    let length = usize::try_from(length).ok().filter(|length| *length <= max_bytes);
                    let length = length.ok_or(ErrorCode::ExcessiveLoad)?;
                    self.payload.clear();
                    self.state = State::Payload { kind, length };
                }
                State::Data { left: 0 } | State::Skipped { left: 0 } => self.state = State::Head,
                State::Data { left } => {
                    if rest.is_empty() {
                        return Ok((taken, None));
                    }
                    let content = &rest[..within(left, rest)];
                    self.state = State::Data { left: left - content.len() as u64 };
                    return Ok((taken + content.len(), Some(Piece::Data(content))));
                }
                State::Skipped { left } => {
                    let step = within(left, rest);
                    if step == 0 {
                        return Ok((taken, None));
                    }
                    self.state = State::Skipped { left: left - step as u64 };
                    taken += step;
                }
                State::Payload { kind, length } => {
                    let step = (length - self.payload.len()).min(rest.len());
                    taken += step;
                    if self.payload.is_empty() && step == length {
                        self.state = State::Head;
                        return Ok((taken, Some(Piece::Frame(kind, &rest[..step]))));
                    }
                    self.payload.extend_from_slice(&rest[..step]);
                    if self.payload.len() < length {
                        return Ok((taken, None));
                    }
                    self.state = State::Head;
                    return Ok((taken, Some(Piece::Frame(kind, &self.payload))));
                }
            }
        }
    }

    /// True if the stream may end here: not within a frame.
    #[must_use]
    pub fn is_between_frames(&self) -> bool {
        match self.state {
            State::Head => self.head.is_empty(),
            State::Data { left } | State::Skipped { left } => left == 0,
            State::Payload { .. } => false,
        }
    }

    /// Reads a type and a length: the number of bytes taken, type, length. `None` if all bytes are taken and more are needed.
    fn read_head(&mut self, bytes: &[u8]) -> Option<(usize, u64, u64)> {
        if self.head.is_empty()
            && let Some((kind, of_kind)) = varint::decode(bytes)
            && let Some((length, of_length)) = varint::decode(&bytes[of_kind..])
        {
            return Some((of_kind + of_length, kind, length));
        }
        let before = self.head.len();
        self.head.extend_from_slice(&bytes[..bytes.len().min(MAX_HEAD_BYTES - before)]);
        let (kind, of_kind) = varint::decode(&self.head)?;
        let (length, of_length) = varint::decode(&self.head[of_kind..])?;
        self.head.clear();
        Some((of_kind + of_length - before, kind, length))
    }
}

/// How many of these bytes belong to what has this much left.
fn within(left: u64, bytes: &[u8]) -> usize {
    usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The frames of a stream that arrives in pieces of this size: types with payloads, contents joined.
    fn read(stream: &[u8], step: usize) -> Result<Vec<(u64, Vec<u8>)>, ErrorCode> {
        let (mut reader, mut frames) = (FrameReader::default(), Vec::new());
        for mut bytes in stream.chunks(step) {
            loop {
                let (taken, piece) = reader.next(bytes, 100)?;
                bytes = &bytes[taken..];
                match piece {
                    None => break,
                    Some(Piece::DataHead) => frames.push((kind::DATA, Vec::new())),
                    Some(Piece::Data(content)) => {
                        frames.last_mut().expect("content follows its head").1.extend_from_slice(content);
                    }
                    Some(Piece::Frame(kind, payload)) => frames.push((kind, payload.to_vec())),
                    Some(Piece::Unknown(kind)) => frames.push((kind, Vec::new())),
                }
            }
            assert!(bytes.is_empty(), "what is not taken would be lost");
        }
        assert!(reader.is_between_frames());
        Ok(frames)
    }

    #[test]
    fn frames_are_the_same_however_they_arrive() {
        let mut stream = Vec::new();
        push(kind::HEADERS, b"fields", &mut stream);
        push(kind::DATA, b"", &mut stream);
        push(kind::DATA, &[7; 300], &mut stream);
        push(0x21, &[1; 70], &mut stream);
        push(kind::SETTINGS, b"", &mut stream);
        push_fields(&mut stream, |out| out.extend_from_slice(&[5; 90]));
        let expected = [
            (kind::HEADERS, b"fields".to_vec()),
            (kind::DATA, Vec::new()),
            (kind::DATA, vec![7; 300]),
            (0x21, Vec::new()),
            (kind::SETTINGS, Vec::new()),
            (kind::HEADERS, vec![5; 90]),
        ];
        for step in [1, 2, 3, 64, 1000] {
            assert_eq!(read(&stream, step).as_deref(), Ok(&expected[..]), "{step}");
        }
    }

    #[test]
    fn large_frames_are_refused_before_they_come() {
        let mut stream = Vec::new();
        push_head(kind::HEADERS, 101, &mut stream);
        assert_eq!(read(&stream, 1), Err(ErrorCode::ExcessiveLoad));
        stream.clear();
        push_head(kind::SETTINGS, varint::MAX, &mut stream);
        assert_eq!(read(&stream, 100), Err(ErrorCode::ExcessiveLoad));
    }
}

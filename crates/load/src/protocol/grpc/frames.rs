//! Message frames in the content of a response: each message has a prefix of five bytes, a flag and its
//! length.

use crate::error::ErrorKind;

/// Size of a prefix, bytes.
pub(super) const PREFIX_BYTES: usize = 5;

/// Counts messages in content split at any positions, and keeps none of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MessageFrames {
    prefix: [u8; PREFIX_BYTES],
    /// Received bytes of the prefix.
    prefix_bytes: usize,
    /// Bytes of the message that are still missing.
    missing: usize,
}

impl MessageFrames {
    /// Consumes content. Returns how many messages end in it, and an error if what follows them is invalid.
    /// `may_compress`: the head announced an encoding.
    pub(super) fn receive(&mut self, content: &[u8], may_compress: bool) -> (u32, Result<(), ErrorKind>) {
        let (mut rest, mut ended) = (content, 0);
        loop {
            if self.prefix_bytes < PREFIX_BYTES {
                let step = (PREFIX_BYTES - self.prefix_bytes).min(rest.len());
                self.prefix[self.prefix_bytes..][..step].copy_from_slice(&rest[..step]);
                self.prefix_bytes += step;
                rest = &rest[step..];
                if self.prefix_bytes < PREFIX_BYTES {
                    return (ended, Ok(()));
                }
                match length(self.prefix, may_compress) {
                    Ok(length) => self.missing = length,
                    Err(kind) => return (ended, Err(kind)),
                }
            }
            let step = self.missing.min(rest.len());
            self.missing -= step;
            rest = &rest[step..];
            if self.missing > 0 {
                return (ended, Ok(()));
            }
            self.prefix_bytes = 0;
            ended += 1;
        }
    }

    /// True unless a message has begun and is not complete.
    pub(super) fn is_between(&self) -> bool {
        self.prefix_bytes == 0
    }
}

fn length([flag, length @ ..]: [u8; PREFIX_BYTES], may_compress: bool) -> Result<usize, ErrorKind> {
    match flag {
        1 if !may_compress => Err(ErrorKind::GrpcCompressed),
        0 | 1 => Ok(u32::from_be_bytes(length) as usize),
        _ => Err(ErrorKind::MalformedResponse),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(flag: u8, bytes: &[u8]) -> Vec<u8> {
        [&[flag], &(bytes.len() as u32).to_be_bytes()[..], bytes].concat()
    }

    #[test]
    fn messages_are_counted_in_any_pieces() {
        let content = [message(0, b""), message(0, &[7; 300]), message(0, b"x"), message(0, b"")].concat();
        for piece in 1..=content.len() {
            let mut frames = MessageFrames::default();
            let ended: u32 = content.chunks(piece).map(|bytes| frames.receive(bytes, false).0).sum();
            assert_eq!((ended, frames.is_between()), (4, true), "in pieces of {piece}");
        }
        for cut in 1..content.len() {
            let mut frames = MessageFrames::default();
            assert_eq!(frames.receive(&content[..cut], false).1, Ok(()));
            assert_eq!(frames.is_between(), [5, 310, 316].contains(&cut), "{cut} bytes");
        }
    }

    #[test]
    fn messages_before_invalid_content_count() {
        let content = [message(0, b"x"), message(0, b"yz"), message(7, b"")].concat();
        let outcome = MessageFrames::default().receive(&content, false);
        assert_eq!(outcome, (2, Err(ErrorKind::MalformedResponse)));
    }

    #[test]
    fn compressed_messages_need_encoding_and_other_flags_are_invalid() {
        let receive =
            |flag, may_compress| MessageFrames::default().receive(&message(flag, b"x"), may_compress);
        assert_eq!(receive(1, true), (1, Ok(())));
        assert_eq!(receive(1, false), (0, Err(ErrorKind::GrpcCompressed)));
        assert_eq!(receive(2, true), (0, Err(ErrorKind::MalformedResponse)));
    }
}

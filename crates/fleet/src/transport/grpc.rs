//! gRPC message framing: a flag, a length of four bytes, and the body.

use super::ending::{Ending, EndingKind};

const PREFIX_BYTES: usize = 5;

/// Appends a message to `out`.
pub(crate) fn frame_message(body: &[u8], out: &mut Vec<u8>) {
    out.reserve(PREFIX_BYTES + body.len());
    out.push(0);
    out.extend_from_slice(&u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend_from_slice(body);
}

/// Part of a message.
#[derive(Debug, PartialEq)]
pub(crate) enum Piece<'a> {
    /// Start of a message of this length.
    Start(usize),
    /// Bytes of its body.
    Body(&'a [u8]),
    /// End of the message.
    End,
}

/// Splits the bytes of a stream into messages, without buffering them.
#[derive(Debug, Default)]
pub(crate) struct Deframer {
    prefix: [u8; PREFIX_BYTES],
    prefix_filled: u8,
    /// Bytes of the body still to come.
    remaining: usize,
}

impl Deframer {
    /// Processes bytes of the stream. Messages above `limit_bytes` are rejected before their body is read.
    pub(crate) fn receive(
        &mut self,
        mut bytes: &[u8],
        limit_bytes: usize,
        mut take: impl FnMut(Piece<'_>) -> Result<(), Ending>,
    ) -> Result<(), Ending> {
        while !bytes.is_empty() {
            if self.remaining == 0 {
                let filled = usize::from(self.prefix_filled);
                let taken = bytes.len().min(PREFIX_BYTES - filled);
                self.prefix[filled..filled + taken].copy_from_slice(&bytes[..taken]);
                bytes = &bytes[taken..];
                self.prefix_filled += taken as u8;
                if usize::from(self.prefix_filled) < PREFIX_BYTES {
                    return Ok(());
                }
                self.prefix_filled = 0;
                self.start(limit_bytes)?;
                take(Piece::Start(self.remaining))?;
                if self.remaining == 0 {
                    take(Piece::End)?;
                }
                continue;
            }
            let (body, rest) = bytes.split_at(bytes.len().min(self.remaining));
            bytes = rest;
            self.remaining -= body.len();
            take(Piece::Body(body))?;
            if self.remaining == 0 {
                take(Piece::End)?;
            }
        }
        Ok(())
    }

    fn start(&mut self, limit_bytes: usize) -> Result<(), Ending> {
        let [flag, a, b, c, d] = self.prefix;
        if flag != 0 {
            let detail = format!("a message has flag {flag}; compression was not offered");
            return Err(Ending::new(EndingKind::GrpcViolation, detail));
        }
        self.remaining = u32::from_be_bytes([a, b, c, d]) as usize;
        if self.remaining > limit_bytes {
            let detail = format!("a message of {} bytes; the limit is {limit_bytes}", self.remaining);
            return Err(Ending::new(EndingKind::GrpcViolation, detail));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(stream: &[u8], step: usize) -> Result<Vec<Vec<u8>>, Ending> {
        let (mut deframer, mut messages, mut open) = (Deframer::default(), Vec::new(), None);
        for part in stream.chunks(step) {
            deframer.receive(part, 1000, |piece| {
                match piece {
                    Piece::Start(length) => open = Some((length, Vec::new())),
                    Piece::Body(bytes) => open.as_mut().unwrap().1.extend_from_slice(bytes),
                    Piece::End => {
                        let (length, body) = open.take().unwrap();
                        assert_eq!(length, body.len());
                        messages.push(body);
                    }
                }
                Ok(())
            })?;
        }
        Ok(messages)
    }

    #[test]
    fn messages_do_not_depend_on_split_of_stream() {
        let expected = [b"one".to_vec(), Vec::new(), vec![7; 1000]];
        let mut stream = Vec::new();
        expected.iter().for_each(|message| frame_message(message, &mut stream));
        for step in [1, 2, 5, 6, 7, 4096] {
            assert_eq!(messages(&stream, step).unwrap(), expected, "step {step}");
        }
    }

    #[test]
    fn large_and_compressed_messages_are_rejected_by_prefix() {
        let kind = |stream: &[u8]| messages(stream, 64).unwrap_err().kind;
        assert_eq!(kind(&[0, 0, 0, 4, 0]), EndingKind::GrpcViolation);
        assert_eq!(kind(&[1, 0, 0, 0, 1]), EndingKind::GrpcViolation);
    }
}

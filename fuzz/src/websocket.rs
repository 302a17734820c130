//! Invariants of whatever the other side of a WebSocket sends. Included by the fuzz target and by the test that replays the corpus.

use ::http1::websocket::{Fault, FrameReader, Received, Sender};

/// The first byte says what the messages are and how the rest is cut into pieces.
///
/// # Panics
/// Where something does not hold.
pub fn check(input: &[u8]) {
    load::websocket::check_connection(input);
    let Some((first, bytes)) = input.split_first() else { return };
    for sender in [Sender::Client, Sender::Server] {
        let whole = frames(sender, bytes, bytes.len().max(1));
        assert_eq!(whole, frames(sender, bytes, usize::from(first & 0x3f) + 1));
    }
}

/// The messages and control frames, the content of messages, and the fault that ends them.
fn frames(sender: Sender, bytes: &[u8], piece: usize) -> (Vec<Received>, Vec<u8>, Option<Fault>) {
    let mut reader = FrameReader::new(sender, 1 << 20);
    let (mut received, mut content, mut messages_bytes) = (Vec::new(), Vec::new(), 0);
    for mut part in bytes.chunks(piece) {
        while !part.is_empty() {
            match reader.read(part, Some(&mut content)) {
                Ok((taken, Received::More)) => {
                    assert_eq!(taken, part.len(), "nothing is left over");
                    part = &[];
                }
                Ok((taken, one)) => {
                    if let Received::Message { content_bytes, frame_bytes, .. } = one {
                        assert!(content_bytes < frame_bytes && content_bytes <= 1 << 20);
                        messages_bytes += content_bytes;
                    }
                    part = &part[taken..];
                    received.push(one);
                }
                // How much of a message without its end is there depends on the pieces.
                Err(fault) => {
                    content.truncate(messages_bytes as usize);
                    return (received, content, Some(fault));
                }
            }
        }
    }
    assert!(content.len() as u64 >= messages_bytes, "a message is shorter than it is said to be");
    (received, content, None)
}

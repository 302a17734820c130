//! Invariants of whatever a server of HTTP/1.1 sends. Included by the fuzz target and by the test that replays the corpus.

use load::http1::{Parsed, ResponseEnd, ResponseParser};

/// The first byte says how the rest is cut into pieces, and whether responses have bodies.
///
/// # Panics
/// Where something does not hold.
pub fn check(input: &[u8]) {
    let Some((first, bytes)) = input.split_first() else { return };
    let (head_only, piece) = (first & 0x80 != 0, usize::from(first & 0x7f) + 1);
    let whole = responses(bytes, bytes.len().max(1), head_only);
    let in_pieces = responses(bytes, piece, head_only);
    // How soon garbage is told may depend on the pieces; what it is and what came before it may not.
    assert_eq!(whole.is_some(), in_pieces.is_some(), "an error in one way of cutting alone");
    if whole.is_some() {
        assert_eq!(whole, in_pieces);
    }
}

/// Responses, the number of their events, and what the end of the connection makes of the rest.
type Responses = (Vec<ResponseEnd>, u32, Option<ResponseEnd>);

/// The responses; absent where the bytes are not responses.
fn responses(bytes: &[u8], piece: usize, head_only: bool) -> Option<Responses> {
    let mut parser = ResponseParser::new(head_only);
    let (mut responses, mut events) = (Vec::new(), 0);
    for mut part in bytes.chunks(piece) {
        while !part.is_empty() {
            let (taken, parsed) = parser.receive(part).ok()?;
            assert!(taken <= part.len(), "more is taken than there is");
            match parsed {
                Parsed::Incomplete => assert_eq!(taken, part.len(), "nothing is left over"),
                Parsed::Response(end) => {
                    assert!((100..1000).contains(&end.status), "a status has three digits");
                    responses.push(end);
                }
                Parsed::EventStream(0) => {}
                Parsed::Messages(0, messages) => events += messages,
                other => panic!("HTTP/1.1 has no {other:?}"),
            }
            part = &part[taken..];
        }
    }
    Some((responses, events, parser.end().ok()?))
}

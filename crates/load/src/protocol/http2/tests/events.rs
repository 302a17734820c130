//! Streams of events over HTTP/2.

use super::*;

/// The head of a stream of events: `content-type` with an indexed name and a literal value.
fn head(stream: u32) -> Vec<u8> {
    let value = b"text/event-stream";
    headers(stream, 0, &[STATUS_200, &[0x0f, 31 - 15, value.len() as u8], value].concat())
}

#[test]
fn events_are_counted_before_the_end_of_their_stream_however_frames_are_split() {
    let frames = [
        head(1),
        data(1, 0, b"data: 1\n\nda"),
        data(1, 0, b"ta: 2\n\n: x\n\n"),
        data(1, END_STREAM, b"data: 3\n\ndata: 4\n\n"),
        headers(3, 0, STATUS_200),
        data(3, END_STREAM, b"data: of no stream of events\n\n"),
        head(5),
        data(5, END_STREAM, b"data: 1\n\ndata: 2"),
    ]
    .concat();
    for piece in 1..=frames.len() {
        let mut client = Client::greeted(3, &[]);
        client.get_times(3);
        let (mut events, mut ends) = ([0; 3], Vec::new());
        for bytes in frames.chunks(piece) {
            for parsed in client.receive(bytes).unwrap() {
                match parsed {
                    Parsed::Messages(slot, count) => events[slot] += count,
                    Parsed::EventStream(slot) => assert_eq!(events[slot], 0),
                    other => ends.push(other),
                }
            }
        }
        let [Parsed::Response(first), Parsed::Response(second), third] = &ends[..] else {
            panic!("in pieces of {piece}: {ends:?}")
        };
        assert_eq!((first.stream, second.stream, events), (0, 1, [4, 0, 1]), "in pieces of {piece}");
        assert_eq!(*third, Parsed::Failed(2, ErrorKind::EventCut), "in pieces of {piece}");
        assert!(client.said().iter().all(|frame| frame.0 != kind::GOAWAY));
    }
}

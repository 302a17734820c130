//! Results do not depend on how bytes are split, and no input is harmful.

use super::*;

/// What a server may do next.
#[derive(Clone, Debug)]
enum Act {
    Head { stream: u32, ends: bool },
    Content { stream: u32, bytes: usize, padded: bool, ends: bool },
    Settings(u16, u32),
    Ping,
    Reset(u32),
    WindowUpdate(u32, u32),
    GoAway(u32),
    SplitHead(u32),
    Garbage(Vec<u8>),
}

fn act() -> impl Strategy<Value = Act> {
    let stream = prop::sample::select(vec![1_u32, 3, 5, 7]);
    prop_oneof![
        5 => (stream.clone(), any::<bool>()).prop_map(|(stream, ends)| Act::Head { stream, ends }),
        5 => (stream.clone(), 0..300_usize, any::<bool>(), any::<bool>())
            .prop_map(|(stream, bytes, padded, ends)| Act::Content { stream, bytes, padded, ends }),
        1 => (1..7_u16, 0..70_000_u32).prop_map(|(name, value)| Act::Settings(name, value)),
        1 => Just(Act::Ping),
        1 => stream.clone().prop_map(Act::Reset),
        2 => (prop::sample::select(vec![0_u32, 1, 3]), 0..50_000_u32)
            .prop_map(|(stream, bytes)| Act::WindowUpdate(stream, bytes)),
        1 => (0..9_u32).prop_map(Act::GoAway),
        2 => stream.prop_map(Act::SplitHead),
        1 => prop::collection::vec(any::<u8>(), 1..30).prop_map(Act::Garbage),
    ]
}

fn written(act: &Act) -> Vec<u8> {
    let ends = |ends: bool| if ends { END_STREAM } else { 0 };
    match act {
        Act::Head { stream, ends: last } => headers(*stream, ends(*last), STATUS_200),
        Act::Content { stream, bytes, padded: false, ends: last } => {
            data(*stream, ends(*last), &vec![b'x'; *bytes])
        }
        Act::Content { stream, bytes, padded: true, ends: last } => {
            let payload = [&[7][..], &vec![b'x'; *bytes], &[0; 7]].concat();
            frame(kind::DATA, flag::PADDED | ends(*last), *stream, &payload)
        }
        Act::Settings(name, value) => settings(&[(*name, *value)]),
        Act::Ping => frame(kind::PING, 0, 0, b"12345678"),
        Act::Reset(stream) => reset(*stream, 8),
        Act::WindowUpdate(stream, bytes) => window_update(*stream, *bytes),
        Act::GoAway(last) => goaway(*last, 0),
        Act::SplitHead(stream) => [
            frame(kind::HEADERS, 0, *stream, STATUS_200),
            frame(kind::CONTINUATION, END_HEADERS, *stream, b"\x40\x01a\x01b"),
        ]
        .concat(),
        Act::Garbage(bytes) => bytes.clone(),
    }
}

/// Feeds bytes in pieces of these lengths to a client with four requests, one of them with a waiting body.
/// Returns events, error and output.
fn told(bytes: &[u8], pieces: &[usize]) -> (Vec<Parsed>, Option<ErrorKind>, Vec<u8>) {
    let mut client = Client::greeted(8, &[(4, 1000)]);
    client.get();
    client.post(&[b'x'; 90_000]);
    client.get_times(2);
    client.out.clear();
    let mut events = Vec::new();
    let mut rest = bytes;
    let mut pieces = pieces.iter().cycle();
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at((*pieces.next().unwrap()).clamp(1, rest.len()));
        match client.receive(piece) {
            Ok(more) => events.extend(more),
            // What came before the error in the same piece is not reported by this test's `receive`.
            Err(kind) => return (Vec::new(), Some(kind), client.out),
        }
        rest = behind;
    }
    (events, None, client.out)
}

proptest! {
    #[test]
    fn results_do_not_depend_on_splits(
        acts in prop::collection::vec(act(), 1..40),
        pieces in prop::collection::vec(1..200_usize, 1..5),
    ) {
        let bytes: Vec<u8> = acts.iter().flat_map(written).collect();
        let whole = told(&bytes, &[usize::MAX]);
        prop_assert_eq!(&told(&bytes, &[1]), &whole);
        prop_assert_eq!(&told(&bytes, &pieces), &whole);
    }

    #[test]
    fn protocol_detection_does_not_depend_on_splits(
        bytes in prop::collection::vec(prop::sample::select(vec![0_u8, 3, 21, 22]), 0..20),
        piece in 1..12_usize,
    ) {
        let verdict = |piece: usize| {
            let mut client = Client::new(2);
            let outcome = bytes.chunks(piece).try_for_each(|part| client.receive(part).map(drop));
            outcome.err().or_else(|| client.connection.end().err().map(|error| error.0))
        };
        prop_assert_eq!(verdict(piece), verdict(20));
    }

    #[test]
    fn arbitrary_input_never_panics(
        greeted in any::<bool>(),
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        piece in 1..50_usize,
    ) {
        let mut client = if greeted { Client::greeted(2, &[]) } else { Client::new(2) };
        if greeted {
            client.get();
        }
        for part in bytes.chunks(piece) {
            if client.receive(part).is_err() {
                break;
            }
        }
        let _ = client.connection.end();
    }
}

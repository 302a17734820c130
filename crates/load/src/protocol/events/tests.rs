use super::*;
use proptest::prelude::*;

fn counted(stream: &[u8], pieces: impl Iterator<Item = usize>) -> (u32, Result<(), ErrorKind>) {
    let (mut scanner, mut rest, mut events) = (EventScanner::default(), stream, 0);
    for piece in pieces {
        let (piece, after) = rest.split_at(piece.min(rest.len()));
        events += scanner.receive(piece);
        rest = after;
    }
    events += scanner.receive(rest);
    (events, scanner.ended(true))
}

/// The events with content of a stream, however it is split.
fn events_of(stream: impl AsRef<[u8]>) -> u32 {
    let stream = stream.as_ref();
    let whole = counted(stream, std::iter::empty());
    for piece in 1..stream.len().min(70) {
        assert_eq!(counted(stream, std::iter::repeat_n(piece, stream.len() / piece)), whole, "{piece}");
    }
    for cut in 0..stream.len() {
        assert_eq!(counted(stream, std::iter::once(cut)), whole, "cut at {cut}");
    }
    assert_eq!(whole.1, Ok(()));
    whole.0
}

#[test]
fn lines_end_in_any_way_and_events_with_a_blank_line() {
    for end in ["\n", "\r\n", "\r"] {
        let stream =
            "data: one\n\ndata: two\ndata: lines\nid: 7\n\nevent: x\ndata\ndata: 3\n\n".replace('\n', end);
        assert_eq!(events_of(&stream), 3, "{end:?}");
        assert_eq!(events_of(format!("\u{feff}{stream}")), 3, "{end:?} after a byte order mark");
    }
    assert_eq!(events_of("data: one\r\n\ndata: two\n\r\ndata:three\r\r"), 3);
    // Blank lines without an event between them.
    assert_eq!(events_of("\n\n\r\n\r\rdata:x\n\n\n\n"), 1);
}

#[test]
fn comments_other_fields_and_empty_data_are_not_content() {
    for stream in [
        ":\n\n",
        ": data: x\n\n",
        "data:\n\n",
        "data: \n\n",
        "data\n\n",
        "event: x\nid: 3\nretry: 10\n\n",
        "database: x\n\n",
    ] {
        assert_eq!(events_of(stream), 0, "{stream:?}");
    }
    // A token may be a space or a line break.
    assert_eq!(events_of("data:  \n\ndata:\ndata:\n\n"), 2);
}

#[test]
fn frames_around_tokens_are_not_content() {
    let choice = |delta: &str| {
        format!(r#"{{"id":"c","choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]}}"#)
    };
    for (content, data) in [
        (false, choice(r#"{"role":"assistant","content":""}"#)),
        (false, choice(r#"{"role":"assistant","content":null}"#)),
        (false, choice(r#"{"role":"assistant"}"#)),
        (true, choice(r#"{"role":"assistant","content":"He"}"#)),
        (true, choice(r#"{"content":" "}"#)),
        (true, choice(r#"{"content":"say \"content\":\"\""}"#)),
        (true, choice(r#"{"reasoning_content":"hm"}"#)),
        (true, choice(r#"{"tool_calls":[{"index":0,"function":{"name":"f"}}]}"#)),
        (false, choice(r#"{"tool_calls":[]}"#)),
        (false, choice("{}")),
        (true, r#"{"choices":[{"index":0,"text":"a"}]}"#.to_owned()),
        (false, r#"{"choices":[{"index":0,"text":"","finish_reason":"stop"}]}"#.to_owned()),
        // The number of prompt filters and usage.
        (false, r#"{"choices":[],"usage":{"completion_tokens":9}}"#.to_owned()),
        (false, r#"{"error":{"message":"overloaded"}}"#.to_owned()),
        (false, r#"{"type":"response.created","response":{}}"#.to_owned()),
        (true, r#"{"type":"response.output_text.delta","delta":"Hi"}"#.to_owned()),
        (false, r#"{"type":"response.output_text.done","text":"Hi"}"#.to_owned()),
        (false, r#"{"type":"message_start","message":{"role":"assistant"}}"#.to_owned()),
        (false, r#"{"type":"ping"}"#.to_owned()),
        (true, r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"Hi"}}"#.to_owned()),
        (false, r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#.to_owned()),
        (false, "[DONE]".to_owned()),
        // Data of other applications are content, whatever they look like.
        (true, r#"{"price":3}"#.to_owned()),
        (true, r#"{"type":"trade","price":3}"#.to_owned()),
        (true, r#"{"choices":3}"#.to_owned()),
        (true, "{".to_owned()),
        (true, "[1]".to_owned()),
    ] {
        assert_eq!(events_of(format!("event: e\ndata: {data}\n\n")), u32::from(content), "{data}");
    }
    // An object in several lines of data.
    assert_eq!(events_of("data: {\"choices\":\ndata: []}\n\n"), 0);
}

#[test]
fn long_lines_and_data_are_content_that_is_not_kept() {
    let token = "x".repeat(3 * MAX_KEPT_BYTES);
    let lines = "data: 0123456789\n".repeat(MAX_KEPT_BYTES / 4);
    for (stream, events) in [
        (format!("data: {token}\n\ndata: y\n\n"), 2),
        (format!("{lines}\n"), 1),
        (format!(":{token}\n\n"), 0),
    ] {
        for piece in [1, 1000, MAX_KEPT_BYTES, MAX_KEPT_BYTES + 1, stream.len()] {
            let (mut scanner, mut found) = (EventScanner::default(), 0);
            for bytes in stream.as_bytes().chunks(piece) {
                found += scanner.receive(bytes);
                assert!(scanner.line.len() + scanner.data.len() <= 2 * MAX_KEPT_BYTES);
            }
            assert_eq!(found, events, "in pieces of {piece}");
        }
    }
}

#[test]
fn stream_that_ends_within_an_event_is_cut() {
    let token = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    let message = "data: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"a\"}}\n\n";
    let response = "data: {\"type\":\"response.output_text.delta\",\"delta\":\"a\"}\n\n";
    for (stream, framed, ended) in [
        ("data: x\n\n".to_owned(), false, Ok(())),
        ("data: x\n\n: comm".to_owned(), true, Ok(())),
        ("data: x\n\ndata: y\n".to_owned(), true, Err(ErrorKind::EventCut)),
        ("data: x\n\ndata: y".to_owned(), false, Err(ErrorKind::EventCut)),
        ("data: x\n\ndata: {\"choices\":[]}\n".to_owned(), true, Err(ErrorKind::EventCut)),
        // Many servers leave out the last line break.
        ("data: x\n\ndata: [DONE]\n".to_owned(), false, Ok(())),
        ("data: x\n\ndata: [DONE]".to_owned(), true, Ok(())),
        // Only its own end says that a stream without a frame is whole.
        (token.to_owned(), false, Err(ErrorKind::Closed)),
        (token.to_owned(), true, Ok(())),
        (format!("{token}data: [DONE]\n\n"), false, Ok(())),
        (message.to_owned(), false, Err(ErrorKind::Closed)),
        (format!("{message}data: {{\"type\":\"ping\"}}\n\n"), false, Err(ErrorKind::Closed)),
        (format!("{message}data: {{\"type\":\"message_stop\"}}\n\n"), false, Ok(())),
        (format!("{message}data: {{\"type\":\"error\"}}\n\n"), false, Ok(())),
        (response.to_owned(), false, Err(ErrorKind::Closed)),
        (format!("{response}data: {{\"type\":\"response.incomplete\"}}\n\n"), false, Ok(())),
    ] {
        for piece in 1..=stream.len() {
            let mut scanner = EventScanner::default();
            let events: u32 = stream.as_bytes().chunks(piece).map(|bytes| scanner.receive(bytes)).sum();
            assert_eq!((events, scanner.ended(framed)), (1, ended), "{stream:?} in pieces of {piece}");
        }
    }
}

#[test]
fn next_stream_has_nothing_of_the_one_before() {
    let mut scanner = EventScanner::default();
    assert_eq!(scanner.receive(b"data: x\n\ndata: {\"choices\":[]}\ndata"), 1);
    scanner.begin();
    assert_eq!(scanner.receive("\u{feff}\n".as_bytes()), 0);
    assert_eq!(scanner.ended(false), Ok(()));
}

proptest! {
    #[test]
    fn splits_do_not_matter(
        stream in "(\u{feff})?((data|event|:|id)?(: ?)?(x|\\[DONE\\]|\\{\"choices\":\\[\\]\\})?[\r\n]{1,2}){0,12}[a-z]{0,3}",
        pieces in proptest::collection::vec(0_usize..20, 0..12),
    ) {
        let whole = counted(stream.as_bytes(), std::iter::empty());
        prop_assert_eq!(counted(stream.as_bytes(), pieces.into_iter()), whole);
        prop_assert_eq!(counted(stream.as_bytes(), std::iter::repeat_n(1, stream.len())), whole);
    }

    #[test]
    fn input_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = counted(&bytes, std::iter::empty());
    }
}

//! Content under flow control, in both directions.

use super::*;

#[test]
fn body_is_sent_as_far_as_window_allows_and_rest_follows() {
    let mut client = Client::greeted(1, &[(4, 10)]);
    client.post(&[b'x'; 25]);
    assert_eq!(client.connection.blocked_bytes(0), 15 + 9);
    assert_eq!(client.sent_content(), [(1, 10, false)]);
    client.receive(&window_update(1, 4)).unwrap();
    assert_eq!(client.sent_content(), [(1, 4, false)]);
    client.receive(&window_update(0, 100)).unwrap();
    assert_eq!(client.sent_content(), []);
    client.receive(&window_update(1, 1000)).unwrap();
    assert_eq!(client.sent_content(), [(1, 11, true)]);
    assert_eq!(client.connection.blocked_bytes(0), 0);
    client.receive(&window_update(1, 1000)).unwrap();
    assert!(client.out.is_empty());
}

#[test]
fn body_that_varies_is_sent_whole_if_there_is_room_and_in_pieces_otherwise() {
    let mut neutral = neutral(Method::POST, b"");
    neutral.body = Body::with_ranges(b"id={1..100000}");
    let request = Http2Request::new(&neutral, &CommonFields::default());
    let mut client = Client::greeted(2, &[(4, 6)]);
    for (number, sent, rest) in [(123, (1, 6, true), None), (12_345, (3, 6, false), Some((3, 2, true)))] {
        client.connection.begin(&request, [number].as_slice().into(), &mut client.out);
        assert_eq!(client.sent_content(), [sent]);
        client.receive(&window_update(sent.0, 100)).unwrap();
        assert_eq!(client.sent_content(), Vec::from_iter(rest));
    }
}

#[test]
fn connection_window_is_shared_in_order_of_waiting() {
    let mut client = Client::greeted(3, &[(4, 1 << 20)]);
    // The connection window is 65 535 bytes until the first WINDOW_UPDATE.
    client.post(&[b'x'; 60_000]);
    client.post(&[b'x'; 10_000]);
    client.post(&[b'x'; 10_000]);
    let frames: Vec<_> = client.sent_content();
    assert_eq!(frames.iter().map(|frame| frame.1).sum::<usize>(), 65_535);
    client.receive(&window_update(0, 1000)).unwrap();
    assert_eq!(client.sent_content(), [(3, 1000, false)]);
    client.receive(&window_update(0, 1000)).unwrap();
    // A stream that got some window queues behind those still waiting.
    assert_eq!(client.sent_content(), [(5, 1000, false)]);
    client.receive(&window_update(0, 100_000)).unwrap();
    assert_eq!(client.sent_content(), [(3, 3465, true), (5, 9000, true)]);
}

#[test]
fn frames_use_peers_maximum_size() {
    let mut client = Client::greeted(1, &[(4, 1 << 20), (5, 20_000)]);
    client.post(&[b'x'; 50_000]);
    let frames: Vec<_> = client.sent_content();
    assert_eq!(frames, [(1, 20_000, false), (1, 20_000, false), (1, 10_000, true)]);
}

#[test]
fn peer_may_change_window_of_open_streams() {
    let mut client = Client::greeted(1, &[(4, 100)]);
    client.post(&[b'x'; 300]);
    assert_eq!(client.sent_content(), [(1, 100, false)]);
    // The window is 100 below zero.
    client.receive(&settings(&[(4, 0)])).unwrap();
    client.receive(&window_update(1, 100)).unwrap();
    assert_eq!(client.sent_content(), []);
    client.receive(&window_update(1, 1)).unwrap();
    assert_eq!(client.sent_content(), [(1, 1, false)]);
    client.receive(&settings(&[(4, 199)])).unwrap();
    assert_eq!(client.sent_content(), [(1, 199, true)]);
    // A new stream starts with the new window.
    client.receive(&headers(1, END_STREAM, STATUS_200)).unwrap();
    client.post(&[b'x'; 300]);
    assert_eq!(client.sent_content(), [(3, 199, false)]);
}

#[test]
fn response_before_end_of_request_ends_both() {
    let mut client = Client::greeted(1, &[(4, 10)]);
    client.post(&[b'x'; 25]);
    client.said();
    assert_eq!(client.receive(&headers(1, END_STREAM, STATUS_200)), Ok(vec![response(0, 200, 10)]));
    let cancel = (ErrorCode::Cancel as u32).to_be_bytes().to_vec();
    assert_eq!(client.said(), [(kind::RST_STREAM, 0, 1, cancel)]);
    client.receive(&window_update(0, 1000)).unwrap();
    assert!(client.out.is_empty());
    assert!(client.connection.waiting.is_empty());
}

#[test]
fn cancelled_streams_hold_up_nothing() {
    let mut client = Client::greeted(1, &[(4, 0)]);
    for _ in 0..100 {
        let slot = client.post(b"body");
        client.connection.cancel(slot, &mut client.out);
    }
    assert!(client.connection.waiting.is_empty());
}

#[test]
fn excessive_window_is_error_of_stream_or_connection() {
    let most = (1_u32 << 31) - 1;
    let mut client = Client::greeted(2, &[]);
    client.get_times(2);
    let failed = Parsed::Failed(0, ErrorKind::Http2FlowControl);
    assert_eq!(client.receive(&window_update(1, most)), Ok(vec![failed]));
    let failed = Parsed::Failed(1, ErrorKind::Http2Protocol);
    assert_eq!(client.receive(&window_update(3, 0)), Ok(vec![failed]));
    assert_eq!(client.receive(&window_update(0, most)), Err(ErrorKind::Http2FlowControl));
}

#[test]
fn window_updates_are_sent_in_large_steps() {
    let mut client = Client::greeted(1, &[]);
    client.get();
    client.said();
    client.receive(&headers(1, 0, STATUS_200)).unwrap();
    let content = data(1, 0, &[b'x'; 16_384]);
    let (mut frames, mut given) = (0_u32, Vec::new());
    while given.is_empty() {
        client.receive(&content).unwrap();
        frames += 1;
        given = client.said();
    }
    assert_eq!(frames * 16_384, STREAM_WINDOW_BYTES / 2);
    assert_eq!(given, [(kind::WINDOW_UPDATE, 0, 1, (STREAM_WINDOW_BYTES / 2).to_be_bytes().to_vec())]);
    // Content of cancelled streams counts for the connection window, too.
    client.connection.cancel(0, &mut client.out);
    client.said();
    while given[0].2 != 0 {
        client.receive(&content).unwrap();
        frames += 1;
        given = [client.said(), given].concat();
    }
    assert_eq!(frames * 16_384, CONNECTION_WINDOW_BYTES / 2);
}

#[test]
fn peer_exceeding_window_is_flow_control_error() {
    let mut client = Client::greeted(1, &[]);
    client.get();
    client.receive(&headers(1, 0, STATUS_200)).unwrap();
    client.connection.received_bytes = CONNECTION_WINDOW_BYTES - 10;
    assert_eq!(client.receive(&data(1, 0, &[b'x'; 11])), Err(ErrorKind::Http2FlowControl));
}

#[test]
fn padding_counts_for_windows_but_not_as_content() {
    let mut client = Client::greeted(1, &[]);
    client.get();
    let padded = [&[200][..], b"seven b", &[0; 200]].concat();
    let bytes = [
        frame(
            kind::HEADERS,
            END_HEADERS | flag::PADDED | flag::PRIORITY,
            1,
            &[&[2][..], &[0; 5], STATUS_200, b"\x0f\x0d\x017", &[0; 2]].concat(),
        ),
        frame(kind::DATA, flag::PADDED | END_STREAM, 1, &padded),
    ]
    .concat();
    for piece in [1, 2, 10, 100, bytes.len()] {
        let mut client = Client::greeted(1, &[]);
        client.get();
        let events: Vec<_> = bytes.chunks(piece).flat_map(|part| client.receive(part).unwrap()).collect();
        assert_eq!(events, [response(0, 200, bytes.len() as u64)], "in pieces of {piece}");
        assert_eq!(client.connection.received_bytes, 208);
    }
}

use super::*;
use crate::protocol::kept::MAX_KEPT_BODY_BYTES;
use proptest::prelude::*;

/// Feeds `bytes` in pieces of `piece` bytes; returns the responses and the number of bytes left over.
fn feed(
    bytes: &[u8],
    piece: usize,
    head_only: bool,
) -> Result<(Vec<ResponseEnd>, Option<ResponseEnd>), ProtocolError> {
    let mut parser = ResponseParser::new(head_only);
    let mut responses = Vec::new();
    for mut part in bytes.chunks(piece.max(1)) {
        while !part.is_empty() {
            let (taken, parsed) = parser.receive(part)?;
            part = &part[taken..];
            if let Parsed::Response(end) = parsed {
                responses.push(end);
            }
        }
    }
    let last = parser.end()?;
    Ok((responses, last))
}

fn statuses(bytes: &[u8]) -> Vec<(u16, bool)> {
    let whole = feed(bytes, usize::MAX, false).expect("well-formed");
    for piece in 1..40 {
        assert_eq!(feed(bytes, piece, false).expect("well-formed"), whole, "in pieces of {piece}");
    }
    whole.0.into_iter().chain(whole.1).map(|end| (end.status, end.reusable)).collect()
}

#[test]
fn lengths_and_keep_alive() {
    let two = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    assert_eq!(statuses(two), [(200, true), (503, false)]);
    assert_eq!(statuses(b"HTTP/1.1 200 OK\nContent-Length: 2\n\r\nhi"), [(200, true)]);
    assert_eq!(statuses(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi"), [(200, false)]);
    assert_eq!(
        statuses(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: Keep-Alive\r\n\r\nhi"),
        [(200, true)]
    );
}

#[test]
fn chunks_extensions_and_trailers() {
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n4;a=b\r\nWiki\r\n1A\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\nExpires: never\r\n\r\n";
    assert_eq!(statuses(chunked), [(200, true)]);
}

#[test]
fn responses_without_a_body() {
    let bytes = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n";
    assert_eq!(statuses(bytes), [(204, true), (304, true)]);
    let (responses, _) = feed(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", 7, true).unwrap();
    assert_eq!(responses.len(), 1);
}

#[test]
fn connection_end_completes_body_of_unknown_length() {
    assert_eq!(statuses(b"HTTP/1.1 200 OK\r\n\r\nas long as it lasts"), [(200, false)]);
}

#[test]
fn truncated_and_invalid_responses_are_errors_of_their_kind() {
    let many_headers = [b"HTTP/1.1 200 OK\r\n".to_vec(), b"A: b\r\n".repeat(5000), b"\r\n".to_vec()].concat();
    let endless_head = [b"HTTP/1.1 200 OK\r\n".to_vec(), b"A: bcdefghijkl\r\n".repeat(30_000)].concat();
    let cases: [(&[u8], ErrorKind); 12] = [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", ErrorKind::Closed),
        (b"HTTP/1.1 200 OK\r\nContent-Le", ErrorKind::Closed),
        (b"SSH-2.0-OpenSSH_9.2\r\n", ErrorKind::MalformedResponse),
        (b"\x15\x03\x01\x00\x02\x02\x46", ErrorKind::TlsResponse),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
            ErrorKind::MalformedResponse,
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello", ErrorKind::MalformedResponse),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n", ErrorKind::MalformedResponse),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", ErrorKind::MalformedResponse),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n", ErrorKind::MalformedResponse),
        (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", ErrorKind::MalformedResponse),
        (&many_headers, ErrorKind::HeadTooLarge),
        (&endless_head, ErrorKind::HeadTooLarge),
    ];
    for (bytes, kind) in cases {
        for piece in [1, 1000, usize::MAX] {
            let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]);
            assert_eq!(feed(bytes, piece, false), Err(ProtocolError(kind)), "{shown:?} in pieces of {piece}");
        }
    }
}

#[test]
fn long_head_is_read_in_full() {
    let head =
        [b"HTTP/1.1 200 OK\r\nX: ".to_vec(), vec![b'x'; 100_000], b"\r\nContent-Length: 1\r\n\r\n!".to_vec()]
            .concat();
    for piece in [1, 4096, usize::MAX] {
        assert_eq!(feed(&head, piece, false).unwrap().0.len(), 1, "in pieces of {piece}");
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic_and_pieces_do_not_matter(
        prefix in prop::sample::select(vec![
            &b""[..], b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n",
        ]),
        tail in prop::collection::vec(prop::sample::select(b"\r\n:0aF; 5HTP/1.\x15\x03".to_vec()), 0..200),
        piece in 1_usize..50,
    ) {
        let bytes = [prefix, &tail[..]].concat();
        // For invalid input, the pieces may affect how soon it is rejected, but not whether it is.
        let whole = feed(&bytes, usize::MAX, false).map_err(drop);
        prop_assert_eq!(feed(&bytes, piece, false).map_err(drop), whole);
    }
}

#[test]
fn repeated_head_is_reused_only_if_identical() {
    let parse = |parser: &mut ResponseParser, bytes: &[u8]| {
        parser.receive(bytes).map(|(taken, parsed)| (taken, format!("{parsed:?}")))
    };
    let first: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let others: [&[u8]; 6] = [
        first,
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: 21\r\n\r\nit is longer than that",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n",
        b"HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nno",
        b"nonsense",
    ];
    for other in others {
        for head_only in [false, true] {
            let (mut warm, mut fresh) = (ResponseParser::new(false), ResponseParser::new(head_only));
            parse(&mut warm, first).expect("well-formed");
            warm.begin(head_only);
            assert_eq!(parse(&mut warm, other), parse(&mut fresh, other), "{}", other.escape_ascii());
        }
    }
}

/// Everything reported for a stream in pieces, and for the end of the connection. Events are added up.
fn stream_of(bytes: &[u8], piece: usize) -> Result<(Vec<Parsed>, Option<ResponseEnd>), ErrorKind> {
    let mut parser = ResponseParser::new(false);
    let mut reported = Vec::new();
    for mut part in bytes.chunks(piece.max(1)) {
        while !part.is_empty() {
            let (taken, parsed) = parser.receive(part).map_err(|error| error.0)?;
            part = &part[taken..];
            match (parsed, reported.last_mut()) {
                (Parsed::Incomplete, _) => {}
                (Parsed::Messages(0, more), Some(Parsed::Messages(0, events))) => *events += more,
                (parsed, _) => reported.push(parsed),
            }
        }
    }
    Ok((reported, parser.end().map_err(|error| error.0)?))
}

#[test]
fn events_of_streams_are_counted_before_their_end() {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n";
    let chunked = format!(
        "{head}Transfer-Encoding: chunked\r\n\r\n5\r\n: x\n\n\r\n9\r\ndata: 1\n\n\r\n12\r\ndata: 2\n\ndata: 3\n\n\r\n0\r\n\r\n"
    );
    let sized = format!("{head}Content-Length: 18\r\n\r\ndata: 1\n\ndata: 2\n\n");
    let end = |length: usize, reusable| ResponseEnd {
        stream: 0,
        status: 200,
        bytes: length as u64,
        reusable,
        grpc: None,
    };
    let two = sized.clone() + &sized;
    let of_sized = [Parsed::EventStream(0), Parsed::Messages(0, 2), Parsed::Response(end(sized.len(), true))];
    let until_end = format!("{head}\r\ndata: 1\n\n");
    for (bytes, reported, at_end) in [
        (
            &chunked,
            vec![Parsed::EventStream(0), Parsed::Messages(0, 3), Parsed::Response(end(chunked.len(), true))],
            None,
        ),
        (&two, of_sized.repeat(2), None),
        (&until_end, vec![Parsed::EventStream(0), Parsed::Messages(0, 1)], Some(end(until_end.len(), false))),
    ] {
        for piece in 1..=bytes.len() {
            assert_eq!(
                stream_of(bytes.as_bytes(), piece),
                Ok((reported.clone(), at_end)),
                "in pieces of {piece}"
            );
        }
    }
    let cut = format!("{head}Content-Length: 16\r\n\r\ndata: 1\n\ndata: 2");
    let closed = format!("{head}Content-Length: 99\r\n\r\ndata: 1\n\n");
    for piece in 1..=cut.len() {
        assert_eq!(stream_of(cut.as_bytes(), piece), Err(ErrorKind::EventCut), "in pieces of {piece}");
        assert_eq!(stream_of(closed.as_bytes(), piece), Err(ErrorKind::Closed), "in pieces of {piece}");
    }
    // An empty body has no events.
    let none = format!("{head}Content-Length: 0\r\n\r\n");
    assert_eq!(stream_of(none.as_bytes(), 99), Ok((vec![Parsed::Response(end(none.len(), true))], None)));
}

#[test]
fn kept_parts_are_those_of_the_final_response_however_it_comes() {
    let head = "HTTP/1.1 103 Early Hints\r\nX-A: early\r\n\r\nHTTP/1.1 200 OK\r\nX-A: b\r\nSet-Cookie: c=d; Path=/\r\nx-a:  e \r\n";
    let chunked =
        format!("{head}Transfer-Encoding: chunked\r\n\r\n4;a=b\r\nWiki\r\n5\r\npedia\r\n0\r\nX-T: u\r\n\r\n");
    let sized = format!("{head}Content-Length: 9\r\n\r\nWikipedia");
    let until_end = format!("{head}\r\nWikipedia");
    let (body, fields) = (Keep { body: true, fields: false }, Keep { body: false, fields: true });
    let mut parser = ResponseParser::new(false);
    for bytes in [&chunked, &sized, &sized, &until_end] {
        for (piece, keep) in (1..=bytes.len()).flat_map(|piece| [(piece, body), (piece, fields)]) {
            parser.begin(false);
            parser.keep(keep);
            for mut part in bytes.as_bytes().chunks(piece) {
                while !part.is_empty() {
                    part = &part[parser.receive(part).expect("well-formed").0..];
                }
            }
            parser.end().expect("complete");
            let kept = parser.take_kept().expect("it is kept");
            let values = |name: &str| {
                let named = kept.fields.iter().filter(|(known, _)| **known == *name.as_bytes());
                named.map(|(_, value)| std::str::from_utf8(value).unwrap()).collect::<Vec<_>>()
            };
            if keep.body {
                assert_eq!(
                    (&kept.body[..], kept.fields.len()),
                    (&b"Wikipedia"[..], 0),
                    "in pieces of {piece}"
                );
            } else {
                assert_eq!(
                    (kept.body.len(), values("x-a"), values("set-cookie")),
                    (0, vec!["b", "e"], vec!["c=d; Path=/"])
                );
                assert!(values("x-t").is_empty(), "a trailer");
            }
        }
    }
    parser.begin(false);
    assert!(parser.take_kept().is_none());
}

#[test]
fn kept_body_is_bounded() {
    let mut kept = Keep { body: true, fields: false }.begin().expect("it is kept");
    (0..5).for_each(|_| kept.content(&vec![b'x'; MAX_KEPT_BODY_BYTES / 4 + 1]));
    assert_eq!(kept.body.len(), MAX_KEPT_BODY_BYTES);
}

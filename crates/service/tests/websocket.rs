//! WebSocket on the service, by a client of another implementation.

mod client;

use client::{Running, settings};
use service::{Answer, Settings};
use std::net::TcpStream;
use std::num::NonZeroU64;
use std::time::{Duration, Instant};
use tungstenite::error::ProtocolError;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{Bytes, Error, Message, WebSocket};

/// A connection that is opened at this target.
fn open(server: &Running, target: &str) -> Result<WebSocket<TcpStream>, u16> {
    let stream = server.client().stream();
    let url = format!("ws://{}{target}", server.address());
    match tungstenite::client(url, stream) {
        Ok((socket, _)) => Ok(socket),
        Err(tungstenite::HandshakeError::Failure(Error::Http(response))) => Err(response.status().as_u16()),
        Err(error) => panic!("{target}: {error}"),
    }
}

/// The code with which the server closes the connection.
fn close_code(socket: &mut WebSocket<TcpStream>) -> Option<CloseCode> {
    loop {
        match socket.read() {
            Ok(Message::Close(frame)) => return frame.map(|frame| frame.code),
            Ok(_) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn messages_are_echoed_in_order() {
    let server = Running::start(&settings(1024));
    let mut socket = open(&server, "/ws").unwrap();
    let messages =
        [Message::text("hello"), Message::text(""), Message::binary(vec![7; 200_000]), Message::text("é")];
    for message in &messages {
        socket.write(message.clone()).unwrap();
        socket.write(Message::Ping(Bytes::from_static(b"beat"))).unwrap();
    }
    socket.flush().unwrap();
    for message in messages {
        assert_eq!(socket.read().unwrap(), message);
        assert_eq!(socket.read().unwrap(), Message::Pong(Bytes::from_static(b"beat")));
    }
    socket.close(None).unwrap();
    assert_eq!(close_code(&mut socket), None);
    assert!(matches!(socket.read(), Err(Error::ConnectionClosed)));
    let counters = server.stop();
    let websocket = counters.websocket;
    assert_eq!((websocket.connections, websocket.requests, websocket.answered), (1, 4, 4), "{counters:?}");
    assert_eq!((websocket.failed, websocket.incomplete), (0, 0));
    assert_eq!((counters.requests, counters.http1.connections, counters.http1.requests), (4, 1, 0));
}

#[test]
fn echo_waits_for_its_delay() {
    let server = Running::start(&settings(0));
    let mut socket = open(&server, "/?delay=30ms").unwrap();
    let begun = Instant::now();
    for _ in 0..3 {
        socket.send(Message::text("x")).unwrap();
        socket.read().unwrap();
    }
    assert!(begun.elapsed() >= Duration::from_millis(90));
}

#[test]
fn each_message_subscribes_to_a_stream_of_messages() {
    let server = Running::start(&settings(0));
    let mut socket = open(&server, "/?events=3&first=20ms&gap=10ms&event-bytes=5").unwrap();
    for _ in 0..2 {
        let begun = Instant::now();
        socket.send(Message::text("subscribe")).unwrap();
        for _ in 0..3 {
            assert_eq!(socket.read().unwrap(), Message::text("01234"));
        }
        assert!(begun.elapsed() >= Duration::from_millis(40));
    }
    drop(socket);
    assert_eq!(server.stop().websocket.answered, 2);
}

#[test]
fn requests_for_a_connection_can_be_refused() {
    let server = Running::start(&settings(3));
    for (target, status) in [("/?status=403", 403), ("/?status=503", 503), ("/?delay=5", 400)] {
        assert_eq!(open(&server, target).map(|_| ()), Err(status), "{target}");
    }
    let mut client = server.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
    assert_eq!(client.read_response(false).status, 400);
    // Another protocol than WebSocket is not asked for with success, and not refused (RFC 9110, 7.8).
    client.send("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n");
    assert_eq!(client.read_response(false).text(), (200, "000".into()));
    assert_eq!(server.stop().websocket.connections, 0);
}

#[test]
fn server_closes_with_the_code_of_its_reason() {
    let server = Running::start(&Settings { requests_per_connection: NonZeroU64::new(2), ..settings(0) });
    let mut socket = open(&server, "/").unwrap();
    for _ in 0..2 {
        socket.send(Message::text("x")).unwrap();
        assert_eq!(socket.read().unwrap(), Message::text("x"));
    }
    assert_eq!(close_code(&mut socket), Some(CloseCode::Normal));
    let mut socket = open(&server, "/?error-rate=100%").unwrap();
    socket.send(Message::text("x")).unwrap();
    assert_eq!(close_code(&mut socket), Some(CloseCode::Error));
    let mut too_large = open(&server, "/").unwrap();
    let _ = too_large.send(Message::binary(vec![0; (16 << 20) + 1]));
    assert_eq!(close_code(&mut too_large), Some(CloseCode::Size));
    let mut unmasked = open(&server, "/").unwrap();
    std::io::Write::write_all(unmasked.get_mut(), b"\x81\x01x").unwrap();
    assert_eq!(close_code(&mut unmasked), Some(CloseCode::Protocol));
    let counters = server.stop();
    assert_eq!((counters.errors, counters.rejected), (1, 2), "{counters:?}");
    assert_eq!((counters.websocket.requests, counters.websocket.failed), (3, 1));
}

#[test]
fn message_without_its_end_is_incomplete() {
    let server = Running::start(&Settings { answer: Answer::default(), ..settings(0) });
    let mut socket = open(&server, "/").unwrap();
    std::io::Write::write_all(socket.get_mut(), b"\x01\x81\0\0\0\0x").unwrap();
    socket.get_mut().shutdown(std::net::Shutdown::Write).unwrap();
    assert!(matches!(
        socket.read(),
        Err(Error::Protocol(ProtocolError::ResetWithoutClosingHandshake)
            | Error::Io(_)
            | Error::ConnectionClosed)
    ));
    assert_eq!(server.stop().websocket.incomplete, 1);
}

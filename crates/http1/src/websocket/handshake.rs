//! The handshake: a request that asks for WebSocket, and the response that agrees (RFC 6455, 4).

use crate::fields::elements;
use crate::request::Rejection;
use crate::response::ResponseParser;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use httparse::Request;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

/// Appended to the client's key before it is hashed (RFC 6455, 1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// Size of a key before its encoding.
const KEY_BYTES: usize = 16;

/// The key of a client for these random bytes.
#[must_use]
pub fn new_key(random: [u8; KEY_BYTES]) -> String {
    STANDARD.encode(random)
}

/// The value with which a server accepts this key.
#[must_use]
pub fn accept_of(key: &[u8]) -> String {
    STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, &[key, GUID].concat()))
}

/// The key of a request that asks for WebSocket; `None` if it asks for another protocol, which may be ignored.
///
/// # Errors
/// Returns an error if it asks for WebSocket in a way that RFC 6455 does not allow.
pub fn requested_key<'a>(request: &Request<'_, 'a>) -> Result<Option<&'a [u8]>, Rejection> {
    let refused = |reason| Err(Rejection { status: 400, reason });
    let (mut key, mut version, mut asks, mut is_option) = (None, None, false, false);
    for header in request.headers.iter() {
        let (name, value) = (header.name.as_bytes(), header.value);
        asks |= has_element(name, value, "Upgrade", b"websocket");
        is_option |= has_element(name, value, "Connection", b"upgrade");
        if is_named(name, "Sec-WebSocket-Key") {
            if key.replace(value).is_some() {
                return refused("expected one Sec-WebSocket-Key");
            }
        } else if is_named(name, "Sec-WebSocket-Version") {
            version = Some(value);
        }
    }
    if !asks {
        return Ok(None);
    }
    if request.method != Some("GET") || request.version != Some(1) || !is_option {
        return refused("a WebSocket begins with GET, HTTP/1.1 and `Connection: Upgrade`");
    }
    if version != Some(b"13") {
        return refused("expected `Sec-WebSocket-Version: 13`");
    }
    match key {
        Some(key) if STANDARD.decode(key).is_ok_and(|key| key.len() == KEY_BYTES) => Ok(Some(key)),
        _ => refused("expected 16 bytes in Base64 as Sec-WebSocket-Key"),
    }
}

/// True if this response with status 101, whose head was kept, accepts the key, without anything that was not offered.
#[must_use]
pub fn is_accepted(response: &ResponseParser, key: &str) -> bool {
    let expected = accept_of(key.as_bytes());
    let (mut accepts, mut upgrade, mut connection, mut surplus) = (0, false, false, false);
    response.kept_fields(|name, value| {
        upgrade |= has_element(name, value, "Upgrade", b"websocket");
        connection |= has_element(name, value, "Connection", b"upgrade");
        if is_named(name, "Sec-WebSocket-Accept") {
            accepts += 1;
            surplus |= value != expected.as_bytes();
        }
        surplus |= is_named(name, "Sec-WebSocket-Extensions");
    });
    accepts == 1 && upgrade && connection && !surplus
}

fn is_named(name: &[u8], expected: &str) -> bool {
    name.eq_ignore_ascii_case(expected.as_bytes())
}

fn has_element(name: &[u8], value: &[u8], expected: &str, element: &[u8]) -> bool {
    is_named(name, expected) && elements(value).any(|one| one.eq_ignore_ascii_case(element))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_request;

    /// Those of RFC 6455, 1.3.
    const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
    const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

    #[test]
    fn key_is_accepted_as_in_the_standard() {
        assert_eq!(accept_of(KEY.as_bytes()), ACCEPT);
        assert_eq!(new_key(*b"the sample nonce"), KEY);
    }

    #[test]
    fn request_asks_for_websocket_only_with_all_its_fields() {
        let asked = |line: &str, fields: &str| {
            let head = format!("{line}\r\nHost: a\r\n{fields}\r\n");
            let parsed = parse_request(head.as_bytes(), |request, framing| {
                (framing.upgrades, requested_key(request).map(|key| key.map(<[u8]>::to_vec)))
            });
            parsed.expect("a request").expect("a whole one").1
        };
        let whole = "Upgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\nSec-WebSocket-Version: 13\r\n";
        let key = format!("Sec-WebSocket-Key: {KEY}\r\n");
        let get = "GET / HTTP/1.1";
        assert_eq!(asked(get, &format!("{whole}{key}")), (true, Ok(Some(KEY.as_bytes().to_vec()))));
        assert_eq!(asked(get, "Upgrade: h2c\r\nConnection: Upgrade\r\n"), (true, Ok(None)));
        assert_eq!(asked(get, ""), (false, Ok(None)));
        for (line, fields) in [
            (get, whole.to_owned()),
            (get, format!("{whole}{key}{key}")),
            (get, format!("{whole}Sec-WebSocket-Key: AAAA\r\n")),
            (get, format!("Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n{key}")),
            (get, format!("Upgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Version: 8\r\n{key}")),
            ("POST / HTTP/1.1", format!("{whole}{key}")),
            ("GET / HTTP/1.0", format!("{whole}{key}")),
        ] {
            assert!(matches!(asked(line, &fields), (true, Err(_))), "{line} {fields}");
        }
    }

    #[test]
    fn response_accepts_only_its_own_key() {
        let accepted = |fields: &str| {
            let mut parser = ResponseParser::new(1024);
            let head = format!("HTTP/1.1 101 Switching Protocols\r\n{fields}\r\n");
            assert_eq!(parser.receive_switch(head.as_bytes()), Ok((head.len(), Some(101))));
            is_accepted(&parser, KEY)
        };
        let switch = "upgrade: websocket\r\nconnection: Upgrade\r\n";
        let accept = format!("Sec-WebSocket-Accept: {ACCEPT}\r\n");
        assert!(accepted(&format!("{switch}{accept}")));
        for fields in [
            switch.to_owned(),
            format!("{switch}{accept}{accept}"),
            format!("{switch}Sec-WebSocket-Accept: {KEY}\r\n"),
            format!("{switch}{accept}Sec-WebSocket-Extensions: permessage-deflate\r\n"),
            format!("upgrade: websocket\r\n{accept}"),
            format!("connection: upgrade\r\n{accept}"),
        ] {
            assert!(!accepted(&fields), "{fields}");
        }
    }
}

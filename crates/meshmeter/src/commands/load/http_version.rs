//! HTTP version of `meshmeter load`.

use crate::cli::{HttpArgs, HttpVersion, LoadArgs};
use crate::failure::Failure;
use load::{IoBackendChoice, Protocol, Replies, Targets, TlsVersion};

/// Concurrent requests per HTTP/2 or HTTP/3 connection if no number is given.
const DEFAULT_STREAMS: usize = 32;

/// Protocol selected by the options.
pub fn plan(args: &LoadArgs, targets: &Targets) -> Result<Protocol, Failure> {
    let HttpArgs { http, streams } = args.http;
    match http {
        HttpVersion::Http1 if streams.is_some() => Err(Failure::usage(
            "--streams is for HTTP/2 and HTTP/3: HTTP/1.1 has one request at a time on a connection",
        )
        .with_hint("add --http 2, or use more --connections")),
        HttpVersion::Http1 => Ok(Protocol::Http1),
        HttpVersion::Http2 => Ok(Protocol::Http2 { streams: or_default(streams) }),
        HttpVersion::Http3 => {
            check_http3(args, targets)?;
            Ok(Protocol::Http3 { streams: or_default(streams) })
        }
    }
}

/// Protocol under gRPC: always HTTP/2.
pub fn of_grpc(args: &HttpArgs) -> Result<Protocol, Failure> {
    if args.http == HttpVersion::Http3 {
        return Err(Failure::usage("--http 3 is for https:// URLs: gRPC is sent over HTTP/2"));
    }
    Ok(Protocol::Http2 { streams: or_default(args.streams) })
}

/// Answers over WebSocket in the order of their messages.
pub fn in_order(args: &HttpArgs) -> Replies {
    Replies::InOrder(args.streams.map_or(1, |streams| streams as usize))
}

fn or_default(streams: Option<u32>) -> usize {
    streams.map_or(DEFAULT_STREAMS, |streams| streams as usize)
}

/// QUIC is UDP with TLS 1.3 inside.
fn check_http3(args: &LoadArgs, targets: &Targets) -> Result<(), Failure> {
    if targets.servers.iter().any(|target| target.server_name.is_none()) {
        return Err(Failure::usage("--http 3 is for https:// URLs: QUIC is always encrypted"));
    }
    let contradiction = [
        ("--unix-socket", targets.unix_socket().is_some(), "HTTP/3 is over UDP"),
        ("--proxy-protocol", args.connecting.proxy_protocol.is_some(), "its header is for TCP"),
        ("--tls-version 1.2", args.handshakes.tls_version == Some(TlsVersion::V1_2), "QUIC has TLS 1.3"),
        (
            "--network io-uring",
            args.network.network == IoBackendChoice::IoUring,
            "HTTP/3 is over UDP sockets on epoll",
        ),
    ];
    let contradiction = contradiction.into_iter().find(|(_, is_given, _)| *is_given);
    contradiction.map_or(Ok(()), |(option, _, reason)| {
        Err(Failure::usage(format!("{option} does not go with --http 3: {reason}")))
    })
}

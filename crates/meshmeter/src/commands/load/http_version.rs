//! HTTP version of `meshmeter load`.

use crate::cli::{HttpArgs, HttpVersion};
use crate::failure::Failure;
use load::{Protocol, Replies};

/// Concurrent requests per HTTP/2 connection if no number is given.
const DEFAULT_STREAMS: usize = 32;

/// Protocol selected by the options.
pub fn plan(args: &HttpArgs) -> Result<Protocol, Failure> {
    match (args.http, args.streams) {
        (HttpVersion::Http1, Some(_)) => {
            Err(Failure::usage("--streams is for HTTP/2: HTTP/1.1 has one request at a time on a connection")
                .with_hint("add --http 2, or use more --connections"))
        }
        (HttpVersion::Http1, None) => Ok(Protocol::Http1),
        (HttpVersion::Http2, streams) => Ok(http2(streams)),
    }
}

/// Protocol under gRPC: always HTTP/2.
pub fn of_grpc(args: &HttpArgs) -> Protocol {
    http2(args.streams)
}

/// Answers over WebSocket in the order of their messages.
pub fn in_order(args: &HttpArgs) -> Replies {
    Replies::InOrder(args.streams.map_or(1, |streams| streams as usize))
}

fn http2(streams: Option<u32>) -> Protocol {
    Protocol::Http2 { streams: streams.map_or(DEFAULT_STREAMS, |streams| streams as usize) }
}

//! HTTP version of `meshmeter load`, and options that would have no effect.

use crate::cli::{HttpArgs, HttpVersion};
use crate::failure::Failure;
use load::Protocol;

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

fn http2(streams: Option<u32>) -> Protocol {
    Protocol::Http2 { streams: streams.map_or(DEFAULT_STREAMS, |streams| streams as usize) }
}

/// Rejects HTTP options for other URLs.
pub fn check_unused_options(args: &HttpArgs) -> Result<(), Failure> {
    let options = [("--http", args.http != HttpVersion::default()), ("--streams", args.streams.is_some())];
    match options.iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(Failure::usage(format!("{option} is for http:// and https:// URLs"))),
        None => Ok(()),
    }
}

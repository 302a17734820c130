//! Options that have no effect with some kinds of URLs.

use crate::cli::{Bidirectional, HttpVersion, LoadArgs};
use crate::failure::Failure;
use load::Family::{self, Grpc, Http, Raw, WebSocket};

const HTTP_URLS: &str = "http:// and https://";
const GRPC_URLS: &str = "grpc:// and grpcs://";
const RAW_URLS: &str = "tcp:// and tls://";
const WEBSOCKET_URLS: &str = "ws:// and wss://";

/// Rejects the first option that was given for URLs of another kind.
pub fn check(args: &LoadArgs, family: Family) -> Result<(), Failure> {
    let LoadArgs { grpc, http, raw, .. } = args;
    let options: [(&str, bool, &[Family], &str); 13] = [
        ("--message", grpc.message.is_some(), &[Grpc], GRPC_URLS),
        ("--stream-messages", grpc.stream_messages.is_some(), &[Grpc], GRPC_URLS),
        ("--bidi", grpc.bidi != Bidirectional::default(), &[Grpc], GRPC_URLS),
        ("--proto", !grpc.proto.is_empty(), &[Grpc], GRPC_URLS),
        ("--protoset", !grpc.protoset.is_empty(), &[Grpc], GRPC_URLS),
        ("--expect-status", !args.expect_status.is_empty(), &[Http], HTTP_URLS),
        ("--http", http.http != HttpVersion::default(), &[Http, Grpc], HTTP_URLS),
        ("--streams", http.streams.is_some(), &[Http, Grpc, WebSocket], HTTP_URLS),
        ("--pushes", args.websocket.pushes.is_some(), &[WebSocket], WEBSOCKET_URLS),
        ("--reply-size", raw.reply_size.is_some(), &[Raw], RAW_URLS),
        ("--no-reply-check", raw.no_reply_check, &[Raw], RAW_URLS),
        // A call has a method of its own, which its check explains.
        ("--method", args.method != http::Method::GET, &[Http, Grpc], HTTP_URLS),
        ("--header", !args.header.is_empty(), &[Http, Grpc, WebSocket], HTTP_URLS),
    ];
    let unused =
        options.into_iter().find(|(_, is_given, families, _)| *is_given && !families.contains(&family));
    unused.map_or(Ok(()), |(option, _, _, urls)| Err(Failure::usage(format!("{option} is for {urls} URLs"))))
}

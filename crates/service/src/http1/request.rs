//! A request: its response, and what its head says about the connection.

use super::receiver::TakeContent;
use crate::reply::Reply;
use crate::settings::Answer;
use ::http1::websocket::{accept_of, requested_key};
use ::http1::{Framing, Rejection};

/// A valid request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Request {
    pub reply: Reply,
    /// The client wants to reuse this connection.
    pub keep_alive: bool,
    /// The client speaks HTTP/1.0 and must be told that the connection stays open.
    pub version_1_0: bool,
    /// The method is HEAD: the response has no body.
    pub head_only: bool,
    /// The client asks for a WebSocket: the value with which its key is accepted.
    pub websocket: Option<Box<str>>,
}

impl TakeContent for Request {
    fn take_content(&mut self, content: &[u8]) {
        self.reply.take_content(content);
    }
}

impl Request {
    pub(crate) fn new(parsed: &httparse::Request<'_, '_>, framing: &Framing, defaults: &Answer) -> Self {
        let method = parsed.method.unwrap_or_default();
        let key = if framing.upgrades && framing.body.is_done() { requested_key(parsed) } else { Ok(None) };
        let reply = match key {
            Err(Rejection { status, reason }) => Reply::Refused { status, reason: reason.into() },
            Ok(_) if framing.expects_else => {
                Reply::Refused { status: 417, reason: "expected no expectation but 100-continue".into() }
            }
            Ok(_) => Reply::to(method, parsed.path.unwrap_or_default(), defaults),
        };
        let websocket = key.ok().flatten().map(|key| accept_of(key).into());
        let Framing { keep_alive, version_1_0, .. } = *framing;
        Self { reply, keep_alive, version_1_0, head_only: method == "HEAD", websocket }
    }
}

//! A request: its response, and what its head says about the connection.

use super::receiver::TakeContent;
use crate::reply::Reply;
use crate::settings::Answer;
use ::http1::Framing;

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
}

impl TakeContent for Request {
    fn take_content(&mut self, content: &[u8]) {
        self.reply.take_content(content);
    }
}

impl Request {
    pub(crate) fn new(parsed: &httparse::Request<'_, '_>, framing: &Framing, defaults: &Answer) -> Self {
        let method = parsed.method.unwrap_or_default();
        let reply = if framing.expects_else {
            Reply::Refused { status: 417, reason: "expected no expectation but 100-continue".into() }
        } else {
            Reply::to(method, parsed.path.unwrap_or_default(), defaults)
        };
        let Framing { keep_alive, version_1_0, .. } = *framing;
        Self { reply, keep_alive, version_1_0, head_only: method == "HEAD" }
    }
}

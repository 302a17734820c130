//! Unary gRPC calls.

use crate::grpc::{PAYLOAD_FIELD, message_with_filler};
use crate::node::body::FilledBody;
use http::header::{CONTENT_TYPE, TE};
use http::{HeaderMap, HeaderValue, Method, Request};

/// Maximum payload: the maximum length of a message, less the bytes before the payload.
pub(super) const MAX_PAYLOAD_BYTES: u64 = u32::MAX as u64 - 64;

/// A request whose message has a payload of this size.
pub(super) fn request(payload_bytes: u64) -> Request<FilledBody> {
    let message = message_with_filler(&(), Some((PAYLOAD_FIELD, payload_bytes.min(MAX_PAYLOAD_BYTES))));
    let body = message.map(FilledBody::new).unwrap_or_default();
    let mut request = Request::new(body);
    *request.method_mut() = Method::POST;
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    request.headers_mut().insert(TE, HeaderValue::from_static("trailers"));
    request
}

/// The status of a call, from its trailers, or from its head if it has no message.
pub(super) fn status(fields: &HeaderMap) -> Option<Result<(), String>> {
    let status = fields.get("grpc-status")?;
    if status == "0" {
        return Some(Ok(()));
    }
    let message = fields.get("grpc-message").map(|message| String::from_utf8_lossy(message.as_bytes()));
    let status = String::from_utf8_lossy(status.as_bytes());
    Some(Err(format!("grpc-status {status}: {}", message.unwrap_or_default())))
}

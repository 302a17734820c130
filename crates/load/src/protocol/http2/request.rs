//! A request in HTTP/2 form.

use super::encoder::{Dictionary, RequestFields};
use crate::protocol::grpc::GrpcCall;
use crate::target::Request;
use http::Method;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, HeaderName, TE, TRANSFER_ENCODING, UPGRADE};
use std::sync::Arc;

/// Fields and body, compressed once before the run.
#[derive(Clone, Debug)]
pub struct Http2Request {
    pub(super) fields: RequestFields,
    pub(super) body: Arc<[u8]>,
    /// Messages sent instead of a body, for a gRPC call.
    pub(super) call: Option<GrpcCall>,
    /// The response has no body because the method is `HEAD`.
    pub(super) head_only: bool,
}

/// The fields that the requests of a run have in common: peers need to receive them only once per connection.
#[derive(Clone, Debug, Default)]
pub struct CommonFields(pub(super) Dictionary);

impl CommonFields {
    /// Collects the common fields of these requests.
    pub fn from_requests<'r>(requests: impl Iterator<Item = &'r Request>) -> Self {
        let mut dictionary = Dictionary::default();
        for request in requests {
            for_each_field(request, |name, value| dictionary.add(name, value.as_bytes()));
            if request.call.is_some() {
                // A gRPC path is the name of a method: all calls share it.
                let mut path = Vec::new();
                request.path.write(&[], &mut path);
                dictionary.add_constant(b":path", &path);
            }
        }
        Self(dictionary)
    }
}

impl Http2Request {
    /// `common`: the fields of the run that the request belongs to.
    #[must_use]
    pub fn new(request: &Request, common: &CommonFields) -> Self {
        let CommonFields(dictionary) = common;
        let mut fields = RequestFields::default();
        for_each_field(request, |name, value| match value {
            Value::Bytes(value) => fields.push(name, value, dictionary),
            Value::Path => fields.push_path(&request.path, dictionary),
        });
        Self {
            fields,
            body: Arc::clone(&request.body),
            call: request.call.clone(),
            head_only: request.method == Method::HEAD,
        }
    }
}

enum Value<'r> {
    Bytes(&'r [u8]),
    Path,
}

impl Value<'_> {
    /// Paths are never in a table.
    fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Path => b"",
        }
    }
}

/// Calls `field` for every field of a request in order: pseudo-headers first, without those that HTTP/2
/// replaces.
fn for_each_field(request: &Request, mut field: impl FnMut(&[u8], Value<'_>)) {
    let given = |name: HeaderName| request.headers.iter().find(|(given, _)| *given == name);
    let authority = given(HOST).map_or(request.authority.as_bytes(), |(_, value)| value.as_bytes());
    field(b":method", Value::Bytes(request.method.as_str().as_bytes()));
    field(b":scheme", Value::Bytes(request.scheme.as_bytes()));
    field(b":authority", Value::Bytes(authority));
    field(b":path", Value::Path);
    for (name, value) in &request.headers {
        if !is_of_the_connection(name, value.as_bytes()) {
            field(name.as_str().as_bytes(), Value::Bytes(value.as_bytes()));
        }
    }
    let has_length = request.may_have_body() && request.call.is_none();
    if has_length && given(CONTENT_LENGTH).is_none() {
        field(b"content-length", Value::Bytes(request.body.len().to_string().as_bytes()));
    }
}

/// True for connection-specific fields, which must not be sent in HTTP/2 (RFC 9113, section 8.2.2); `Host`
/// becomes `:authority`.
fn is_of_the_connection(name: &HeaderName, value: &[u8]) -> bool {
    let others = ["keep-alive", "proxy-connection"];
    [HOST, CONNECTION, TRANSFER_ENCODING, UPGRADE].contains(name)
        || others.contains(&name.as_str())
        || (*name == TE && value != b"trailers")
}

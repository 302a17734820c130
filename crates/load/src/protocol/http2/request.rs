//! A request in HTTP/2 form.

use super::encoder::{Dictionary, RequestFields};
use crate::protocol::Keep;
use crate::protocol::grpc::GrpcCall;
use crate::target::{Body, Request, Text, Values};
use http::Method;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, HeaderName, TE, TRANSFER_ENCODING, UPGRADE};
use std::sync::Arc;

/// Fields and body, compressed once before the run.
#[derive(Clone, Debug)]
pub struct Http2Request {
    pub(super) fields: RequestFields,
    body: Body,
    /// Number of placeholders in the fields.
    gaps: usize,
    /// Messages sent instead of a body, for a gRPC call.
    pub(super) call: Option<GrpcCall>,
    /// The response has no body because the method is `HEAD`.
    pub(super) head_only: bool,
    pub(super) keep: Keep,
}

/// The fields that the requests of a run have in common: peers need to receive them only once per connection.
#[derive(Clone, Debug, Default)]
pub struct CommonFields(pub(super) Dictionary);

impl CommonFields {
    /// Collects the common fields of these requests.
    pub fn from_requests<'r>(requests: impl Iterator<Item = &'r Request>) -> Self {
        let mut dictionary = Dictionary::default();
        for request in requests {
            for_each_field(request, |name, value| {
                if let Value::Bytes(value) = value {
                    dictionary.add(name, value);
                }
            });
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
            Value::Text(value) => fields.push_varying(name, value),
        });
        if request.sends_cookies {
            fields.push_cookies();
        }
        Self {
            gaps: fields.gaps(),
            fields,
            body: request.body.clone(),
            call: request.call.clone(),
            head_only: request.method == Method::HEAD,
            keep: request.keep,
        }
    }

    pub(super) fn has_body(&self) -> bool {
        !self.body.is_empty()
    }

    /// A body that varies, and of these values those in its placeholders.
    pub(super) fn varying_body<'v>(&self, values: Values<'v>) -> Option<(&Text, Values<'v>)> {
        match &self.body {
            Body::Varying(text) if self.call.is_none() => Some((text, values.after(self.gaps))),
            _ => None,
        }
    }

    /// The body of the request with these values in its placeholders.
    pub(super) fn body(&self, values: Values<'_>) -> Arc<[u8]> {
        self.body.bytes(values.after(self.gaps))
    }
}

/// The value of a field.
pub(in crate::protocol) enum Value<'r> {
    Bytes(&'r [u8]),
    /// With placeholders for numbers; never in a table.
    Text(&'r Text),
}

impl<'r> From<&'r Text> for Value<'r> {
    fn from(text: &'r Text) -> Self {
        text.as_literal().map_or(Self::Text(text), Self::Bytes)
    }
}

/// Calls `field` for every field of a request in order: pseudo-headers first, without those that HTTP/2 and HTTP/3
/// replace.
pub(in crate::protocol) fn for_each_field(request: &Request, mut field: impl FnMut(&[u8], Value<'_>)) {
    let authority =
        request.header(&HOST).map_or(Value::Bytes(request.authority.as_bytes()), |host| host.value().into());
    field(b":method", Value::Bytes(request.method.as_str().as_bytes()));
    field(b":scheme", Value::Bytes(request.scheme.as_bytes()));
    field(b":authority", authority);
    field(b":path", (&request.path).into());
    for header in &request.headers {
        if !is_of_the_connection(header.name(), header.value()) {
            field(header.name().as_str().as_bytes(), header.value().into());
        }
    }
    // Optional in HTTP/2: frames say where a body that varies ends.
    let has_length = request.may_have_body() && request.call.is_none();
    let body = request.body.constant().filter(|_| has_length && request.header(&CONTENT_LENGTH).is_none());
    if let Some(body) = body {
        field(b"content-length", Value::Bytes(body.len().to_string().as_bytes()));
    }
}

/// True for connection-specific fields, which must not be sent in HTTP/2 (RFC 9113, section 8.2.2); `Host`
/// becomes `:authority`.
fn is_of_the_connection(name: &HeaderName, value: &Text) -> bool {
    let others = ["keep-alive", "proxy-connection"];
    [HOST, CONNECTION, TRANSFER_ENCODING, UPGRADE].contains(name)
        || others.contains(&name.as_str())
        || (*name == TE && value.as_literal() != Some(b"trailers"))
}

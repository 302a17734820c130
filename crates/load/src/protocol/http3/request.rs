//! A request in HTTP/3 form.

use crate::protocol::Keep;
use crate::protocol::http2::encoder::{is_secret, push_value};
use crate::protocol::http2::request::{Value, for_each_field};
use crate::target::{Body, Request, Text, Values};
use http::Method;
use http2::hpack::text;
use http3::frame::{self, kind};
use http3::qpack;

/// Fields and body, compressed once before the run.
#[derive(Clone, Debug)]
pub struct Http3Request {
    parts: Vec<Part>,
    /// Number of placeholders in the fields.
    gaps: usize,
    body: Body,
    /// The response has no body because the method is `HEAD`.
    pub(super) head_only: bool,
    pub(super) keep: Keep,
}

#[derive(Clone, Debug)]
enum Part {
    /// Whole fields.
    Constant(Vec<u8>),
    /// A field up to its value, and its value with placeholders, of which so many come before.
    Varying(Vec<u8>, Text, usize),
    /// The cookies of the session: nothing without any.
    Cookies,
}

impl Http3Request {
    /// Compresses a request, which is no gRPC call.
    #[must_use]
    pub fn new(request: &Request) -> Self {
        let (mut parts, mut gaps) = (Vec::new(), 0);
        let mut constant = Vec::new();
        qpack::begin(&mut constant);
        for_each_field(request, |name, value| match value {
            Value::Bytes(value) => qpack::push(name, value, is_secret(name), &mut constant),
            Value::Text(value) => {
                parts.push(Part::Constant(std::mem::take(&mut constant)));
                let mut start = Vec::new();
                qpack::push_name(name, is_secret(name), &mut start);
                parts.push(Part::Varying(start, value.clone(), gaps));
                gaps += value.places().count();
            }
        });
        parts.push(Part::Constant(constant));
        if request.sends_cookies {
            parts.push(Part::Cookies);
        }
        Self {
            parts,
            gaps,
            body: request.body.clone(),
            head_only: request.method == Method::HEAD,
            keep: request.keep,
        }
    }

    /// Appends the frames of the request, with `values` in its placeholders.
    pub(super) fn write(&self, values: Values<'_>, out: &mut Vec<u8>) {
        frame::push_fields(out, |out| self.write_fields(values, out));
        if !self.body.is_empty() {
            frame::push(kind::DATA, &self.body.bytes(values.after(self.gaps)), out);
        }
    }

    fn write_fields(&self, values: Values<'_>, out: &mut Vec<u8>) {
        for part in &self.parts {
            match part {
                Part::Constant(bytes) => out.extend_from_slice(bytes),
                Part::Varying(start, value, gaps_before) => {
                    out.extend_from_slice(start);
                    push_value(value, values.after(*gaps_before), out);
                }
                Part::Cookies if values.cookies.is_empty() => {}
                Part::Cookies => {
                    qpack::push_name(b"cookie", true, out);
                    text::encode(values.cookies, 7, 0, out);
                }
            }
        }
    }
}

//! OTLP messages, as in `opentelemetry/proto/collector/trace/v1/trace_service.proto`, limited to the fields
//! used here. They are read in place: decoded, a message of the smallest spans takes twelve times its size.

use prost::DecodeError;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

/// The message is not an export.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Malformed;

impl From<DecodeError> for Malformed {
    fn from(_: DecodeError) -> Self {
        Self
    }
}

const SERVICE_NAME: &str = "service.name";

/// Fields of a message that contain bytes, with their numbers. Others are skipped.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn read(&mut self) -> Result<Option<(u32, &'a [u8])>, Malformed> {
        while !self.0.is_empty() {
            let (number, wire_type) = decode_key(&mut self.0)?;
            if wire_type != WireType::LengthDelimited {
                skip_field(wire_type, number, &mut self.0, DecodeContext::default())?;
                continue;
            }
            let length = usize::try_from(decode_varint(&mut self.0)?).unwrap_or(usize::MAX);
            let (content, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
            self.0 = rest;
            return Ok(Some((number, content)));
        }
        Ok(None)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, &'a [u8]), Malformed>;

    /// Nothing follows an error.
    fn next(&mut self) -> Option<Self::Item> {
        let field = self.read();
        if field.is_err() {
            self.0 = &[];
        }
        field.transpose()
    }
}

/// Senders of an export (`ExportTraceServiceRequest`) with their numbers of spans, in order, one name maybe
/// several times.
pub(super) fn senders(export: &[u8]) -> impl Iterator<Item = Result<(&str, u64), Malformed>> {
    Fields(export).filter_map(|field| match field {
        Ok((1, resource_spans)) => Some(sender(resource_spans)),
        Ok(_) => None,
        Err(error) => Some(Err(error)),
    })
}

/// `ResourceSpans`.
fn sender(resource_spans: &[u8]) -> Result<(&str, u64), Malformed> {
    let (mut name, mut spans) = (None, 0);
    for field in Fields(resource_spans) {
        match field? {
            (1, resource) => name = name.or(service_name(resource)?),
            (2, scope_spans) => spans += count_spans(scope_spans)?,
            _ => {}
        }
    }
    Ok((name.unwrap_or_default(), spans))
}

/// Value of the attribute of a `Resource`; empty if it is not text, absent if there is none.
fn service_name(resource: &[u8]) -> Result<Option<&str>, Malformed> {
    let mut name = None;
    for field in Fields(resource) {
        if let (1, attribute) = field? {
            let (key, value) = key_value(attribute)?;
            name = name.or((key == SERVICE_NAME).then_some(value));
        }
    }
    Ok(name)
}

/// `KeyValue`; the value is empty if it is not text.
fn key_value(attribute: &[u8]) -> Result<(&str, &str), Malformed> {
    let (mut key, mut value) = ("", "");
    for field in Fields(attribute) {
        match field? {
            (1, own) => key = text(own)?,
            (2, any_value) => {
                for field in Fields(any_value) {
                    if let (1, own) = field? {
                        value = text(own)?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok((key, value))
}

fn text(bytes: &[u8]) -> Result<&str, Malformed> {
    std::str::from_utf8(bytes).map_err(|_| Malformed)
}

/// Number of spans in a `ScopeSpans`, which are not decoded.
fn count_spans(scope_spans: &[u8]) -> Result<u64, Malformed> {
    let mut spans = 0;
    for field in Fields(scope_spans) {
        spans += u64::from(field?.0 == 2);
    }
    Ok(spans)
}

#[cfg(test)]
#[macro_use]
#[path = "../../../../../fuzz/src/replay.rs"]
mod replay;
#[cfg(test)]
#[path = "../../../../../fuzz/src/spans.rs"]
mod spans;

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use prost::Message;
    use std::collections::BTreeMap;

    #[derive(Clone, PartialEq, Message)]
    struct Export {
        #[prost(message, repeated, tag = "1")]
        resource_spans: Vec<ResourceSpans>,
    }

    #[derive(Clone, PartialEq, Message)]
    struct ResourceSpans {
        #[prost(message, optional, tag = "1")]
        resource: Option<Resource>,
        #[prost(message, repeated, tag = "2")]
        scope_spans: Vec<ScopeSpans>,
    }

    #[derive(Clone, PartialEq, Message)]
    struct Resource {
        #[prost(message, repeated, tag = "1")]
        attributes: Vec<Attribute>,
    }

    #[derive(Clone, PartialEq, Message)]
    struct Attribute {
        #[prost(string, tag = "1")]
        key: String,
        #[prost(message, optional, tag = "2")]
        value: Option<AttributeValue>,
    }

    /// Absent if the value is not text.
    #[derive(Clone, PartialEq, Message)]
    struct AttributeValue {
        #[prost(string, optional, tag = "1")]
        text: Option<String>,
    }

    #[derive(Clone, PartialEq, Message)]
    struct ScopeSpans {
        /// Not decoded.
        #[prost(bytes = "vec", repeated, tag = "2")]
        spans: Vec<Vec<u8>>,
    }

    /// Number of spans of an export by sender; absent if the message is not an export.
    fn spans_by_service(export: &[u8]) -> Option<BTreeMap<&str, u64>> {
        let mut counted = BTreeMap::new();
        for sender in senders(export) {
            let (name, spans) = sender.ok()?;
            *counted.entry(name).or_default() += spans;
        }
        Some(counted)
    }

    fn resource_spans(name: &str, spans: &[&[u8]]) -> ResourceSpans {
        let attribute = |key: &str, text: Option<&str>| Attribute {
            key: key.into(),
            value: Some(AttributeValue { text: text.map(Into::into) }),
        };
        ResourceSpans {
            resource: Some(Resource {
                attributes: vec![attribute("telemetry.sdk", None), attribute(SERVICE_NAME, Some(name))],
            }),
            scope_spans: vec![ScopeSpans { spans: spans.iter().map(|span| span.to_vec()).collect() }],
        }
    }

    /// An export of empty spans.
    pub fn export_of(name: &str, spans: usize) -> Vec<u8> {
        Export { resource_spans: vec![resource_spans(name, &vec![b"".as_slice(); spans])] }.encode_to_vec()
    }

    #[test]
    fn spans_are_counted_by_sender() {
        let export = Export {
            resource_spans: vec![
                resource_spans("client.mesh-1", &[b"", b"a"]),
                resource_spans("server.mesh-1", &[b"b"]),
                resource_spans("client.mesh-1", &[b"c"]),
                ResourceSpans { resource: None, scope_spans: Vec::new() },
            ],
        };
        let export = export.encode_to_vec();
        let expected = [("", 0), ("client.mesh-1", 3), ("server.mesh-1", 1)];
        assert_eq!(spans_by_service(&export).unwrap(), expected.into());
    }

    corpora! {
        corpus_of_exports_passes: "spans", spans::check;
    }

    #[test]
    fn invalid_export_differs_from_empty_one() {
        assert_eq!(spans_by_service(b""), Some(BTreeMap::new()));
        assert_eq!(spans_by_service(b"{\"resourceSpans\":[]}"), None);
    }
}

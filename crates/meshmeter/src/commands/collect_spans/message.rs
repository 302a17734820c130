//! OTLP messages, as in `opentelemetry/proto/collector/trace/v1/trace_service.proto`, limited to the fields
//! used here.

use prost::Message;
use std::collections::BTreeMap;

const SERVICE_NAME: &str = "service.name";

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
pub(super) fn spans_by_service(export: &[u8]) -> Option<BTreeMap<String, u64>> {
    let export = Export::decode(export).ok()?;
    let mut counted: BTreeMap<String, u64> = BTreeMap::new();
    for resource_spans in export.resource_spans {
        let attributes = resource_spans.resource.map(|resource| resource.attributes).unwrap_or_default();
        let name = attributes.into_iter().find(|attribute| attribute.key == SERVICE_NAME);
        let name = name.and_then(|attribute| attribute.value?.text).unwrap_or_default();
        let spans: usize = resource_spans.scope_spans.iter().map(|scope| scope.spans.len()).sum();
        *counted.entry(name).or_default() += spans as u64;
    }
    Some(counted)
}

#[cfg(test)]
#[path = "../../../../../fuzz/src/replay.rs"]
mod replay;
#[cfg(test)]
#[path = "../../../../../fuzz/src/spans.rs"]
mod spans;

#[cfg(test)]
mod tests {
    use super::*;

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
        let counted = spans_by_service(&export.encode_to_vec()).unwrap();
        let expected = [("", 0), ("client.mesh-1", 3), ("server.mesh-1", 1)];
        assert_eq!(counted, expected.map(|(name, spans)| (name.to_owned(), spans)).into());
    }

    #[test]
    fn corpus_of_exports_passes() {
        replay::replay("spans", spans::check);
    }

    #[test]
    fn invalid_export_differs_from_empty_one() {
        assert_eq!(spans_by_service(b""), Some(BTreeMap::new()));
        assert_eq!(spans_by_service(b"{\"resourceSpans\":[]}"), None);
    }
}

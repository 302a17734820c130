//! Exports of spans that are kept on request, as JSON lines: one `ExportTraceServiceRequest` per line, as the file exporter of the
//! OpenTelemetry collector writes them, with the fields that `meshmeter learn` reads.

use hyper::body::Bytes;
use prost::{DecodeError, Message, Oneof};
use serde::{Serialize, Serializer};

/// Maximum size of all exports that are kept.
const MAX_KEPT_BYTES: usize = 64 << 20;

/// Exports since the request to keep them.
#[derive(Debug, Default)]
pub(super) struct Kept {
    exports: Vec<Bytes>,
    bytes: usize,
    /// Exports beyond the limit.
    pub(super) left_out: u64,
}

impl Kept {
    pub(super) fn add(&mut self, export: Bytes) {
        if self.bytes + export.len() > MAX_KEPT_BYTES {
            self.left_out += 1;
            return;
        }
        self.bytes += export.len();
        self.exports.push(export);
    }

    /// A line per export. They were read once, so none is malformed in what is counted; one that is elsewhere is left out.
    pub(super) fn lines(&self) -> Vec<u8> {
        let mut lines = Vec::new();
        for export in &self.exports {
            lines.extend(json(export).unwrap_or_default());
        }
        lines
    }
}

/// An export as a line of JSON.
fn json(export: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let mut line = serde_json::to_vec(&Export::decode(export)?).unwrap_or_default();
    line.push(b'\n');
    Ok(line)
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
struct Export {
    #[prost(message, repeated, tag = "1")]
    resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<Attribute>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
struct ScopeSpans {
    #[prost(message, repeated, tag = "2")]
    spans: Vec<Span>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
struct Span {
    #[prost(bytes = "vec", tag = "1")]
    #[serde(serialize_with = "hexadecimal")]
    trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    #[serde(serialize_with = "hexadecimal")]
    span_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    #[serde(serialize_with = "hexadecimal")]
    parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    name: String,
    #[prost(int32, tag = "6")]
    kind: i32,
    #[prost(fixed64, tag = "7")]
    #[serde(serialize_with = "as_text")]
    start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    #[serde(serialize_with = "as_text")]
    end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    attributes: Vec<Attribute>,
    #[prost(message, optional, tag = "15")]
    status: Option<Status>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
struct Status {
    #[prost(string, tag = "2")]
    message: String,
    #[prost(int32, tag = "3")]
    code: i32,
}

#[derive(Clone, PartialEq, Message, Serialize)]
struct Attribute {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
struct AnyValue {
    #[prost(oneof = "Value", tags = "1, 2, 3, 4")]
    #[serde(flatten)]
    value: Option<Value>,
}

#[derive(Clone, PartialEq, Oneof, Serialize)]
enum Value {
    #[prost(string, tag = "1")]
    #[serde(rename = "stringValue")]
    Text(String),
    #[prost(bool, tag = "2")]
    #[serde(rename = "boolValue")]
    Truth(bool),
    #[prost(int64, tag = "3")]
    #[serde(rename = "intValue")]
    Whole(i64),
    #[prost(double, tag = "4")]
    #[serde(rename = "doubleValue")]
    Number(f64),
}

fn hexadecimal<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

/// JSON of protocol buffers has numbers of 64 bits as text.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn as_text<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn export(name: &str) -> Bytes {
        let attribute = |key: &str, value: Value| Attribute {
            key: key.to_owned(),
            value: Some(AnyValue { value: Some(value) }),
        };
        let span = Span {
            trace_id: vec![0xab; 16],
            span_id: vec![1; 8],
            name: name.to_owned(),
            kind: 2,
            start_time_unix_nano: 1_800_000_000_000_000_000,
            end_time_unix_nano: 1_800_000_000_000_000_001,
            attributes: vec![attribute("http.status_code", Value::Whole(200))],
            ..Span::default()
        };
        let resource =
            Resource { attributes: vec![attribute("service.name", Value::Text("web.shop".to_owned()))] };
        let spans =
            ResourceSpans { resource: Some(resource), scope_spans: vec![ScopeSpans { spans: vec![span] }] };
        Export { resource_spans: vec![spans] }.encode_to_vec().into()
    }

    #[test]
    fn exports_are_json_lines_of_otlp() {
        let mut kept = Kept::default();
        kept.add(export("GET"));
        kept.add(export("POST"));
        let lines = String::from_utf8(kept.lines()).unwrap();
        assert_eq!(lines.lines().count(), 2);
        let first: serde_json::Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
        let of = &first["resourceSpans"][0];
        let name = &of["resource"]["attributes"][0];
        assert_eq!(
            (&name["key"], &name["value"]["stringValue"]),
            (&"service.name".into(), &"web.shop".into())
        );
        let span = &of["scopeSpans"][0]["spans"][0];
        assert_eq!(span["traceId"], "ab".repeat(16));
        assert_eq!((&span["kind"], &span["startTimeUnixNano"]), (&2.into(), &"1800000000000000000".into()));
        assert_eq!(span["attributes"][0]["value"]["intValue"], 200);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut kept = Kept::default();
        let export = export(&"x".repeat(1 << 20));
        (0..70).for_each(|_| kept.add(export.clone()));
        assert!((1..10).contains(&kept.left_out) && kept.bytes <= MAX_KEPT_BYTES, "{}", kept.left_out);
    }
}

//! Values of any type and attributes of spans as text, and the limit on its length.

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read};

/// Maximum length of a text in a file with spans, bytes.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// Attributes that are read: their name in some convention (OpenTelemetry's semantic conventions, old and new; Envoy; Istio;
/// OpenTracing), and the name that they have here.
const ATTRIBUTES: [(&str, &str); 41] = [
    ("service.name", "service"),
    ("istio.canonical_service", "canonical"),
    ("k8s.deployment.name", "deployment"),
    ("istio.namespace", "namespace"),
    ("k8s.namespace.name", "namespace"),
    ("service.namespace", "namespace"),
    ("node_id", "node"),
    ("component", "component"),
    ("upstream_cluster", "upstream"),
    ("upstream_cluster.name", "upstream"),
    ("downstream_cluster", "downstream"),
    ("peer.service", "peer"),
    ("server.address", "host"),
    ("net.peer.name", "host"),
    ("peer.hostname", "host"),
    ("http.url", "url"),
    ("url.full", "url"),
    ("url.path", "path"),
    ("http.target", "path"),
    ("http.path", "path"),
    ("http.route", "route"),
    ("http.status_code", "status"),
    ("http.response.status_code", "status"),
    ("grpc.status_code", "grpc"),
    ("rpc.grpc.status_code", "grpc"),
    ("rpc.system", "rpc"),
    ("error", "error"),
    ("span.kind", "kind"),
    ("request_size", "request"),
    ("http.request.body.size", "request"),
    ("http.request_content_length", "request"),
    ("http.request.header.content-length", "request"),
    ("messaging.message.body.size", "request"),
    ("response_size", "response"),
    ("http.response.body.size", "response"),
    ("http.response_content_length", "response"),
    ("http.response.header.content-length", "response"),
    ("upstream_cluster_name", "upstream"),
    ("net.peer.ip", "address"),
    ("network.peer.address", "address"),
    ("peer.address", "address"),
];

/// A scalar as text; the first value inside of OTLP's `{"stringValue": …}`; empty for lists and for `null`.
#[derive(Clone, Debug, Default)]
pub(super) struct Text(pub(super) String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Scalar;
        impl<'de> Visitor<'de> for Scalar {
            type Value = Text;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a value")
            }
            fn visit_str<E>(self, text: &str) -> Result<Text, E> {
                Ok(Text(text.to_owned()))
            }
            fn visit_bool<E>(self, value: bool) -> Result<Text, E> {
                Ok(Text(value.to_string()))
            }
            fn visit_u64<E>(self, number: u64) -> Result<Text, E> {
                Ok(Text(number.to_string()))
            }
            fn visit_i64<E>(self, number: i64) -> Result<Text, E> {
                Ok(Text(number.to_string()))
            }
            fn visit_f64<E>(self, number: f64) -> Result<Text, E> {
                Ok(Text(number.to_string()))
            }
            fn visit_unit<E>(self) -> Result<Text, E> {
                Ok(Text::default())
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Text, A::Error> {
                let mut first = None;
                while map.next_key::<IgnoredAny>()?.is_some() {
                    match first {
                        None => first = Some(map.next_value::<Text>()?),
                        Some(_) => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(first.unwrap_or_default())
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Text, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Text::default())
            }
        }
        deserializer.deserialize_any(Scalar)
    }
}

/// Attributes by the name that they have here: a map, or a list of keys and values.
#[derive(Clone, Debug, Default)]
pub(super) struct Attributes(BTreeMap<&'static str, String>);

#[derive(Default, Deserialize)]
#[serde(default)]
struct Attribute {
    key: Text,
    value: Text,
}

impl Attributes {
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn set(&mut self, key: &str, value: String) {
        if let Some((_, name)) = ATTRIBUTES.iter().find(|(own, _)| *own == key)
            && !value.is_empty()
        {
            self.0.entry(name).or_insert(value);
        }
    }
}

impl<'de> Deserialize<'de> for Attributes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Attributes;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("attributes")
            }
            fn visit_unit<E>(self) -> Result<Attributes, E> {
                Ok(Attributes::default())
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Attributes, A::Error> {
                let mut attributes = Attributes::default();
                while let Some((key, value)) = map.next_entry::<String, Text>()? {
                    attributes.set(&key, value.0);
                }
                Ok(attributes)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Attributes, A::Error> {
                let mut attributes = Attributes::default();
                while let Some(Attribute { key, value }) = list.next_element()? {
                    attributes.set(&key.0, value.0);
                }
                Ok(attributes)
            }
        }
        deserializer.deserialize_any(Pairs)
    }
}

/// Input that fails at a text of more than [`MAX_TEXT_BYTES`], before it is in memory.
pub(super) struct Limited<R> {
    input: R,
    /// Length of the text so far; `None` outside of one.
    text: Option<usize>,
    is_escaped: bool,
}

impl<R> Limited<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, text: None, is_escaped: false }
    }
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.input.read(buffer)?;
        for byte in &buffer[..length] {
            self.text = match (self.text, byte) {
                (None, b'"') => Some(0),
                (None, _) => None,
                (Some(_), b'"') if !self.is_escaped => None,
                (Some(length), _) => Some(length + 1),
            };
            self.is_escaped = self.text.is_some() && *byte == b'\\' && !self.is_escaped;
            if self.text.is_some_and(|length| length > MAX_TEXT_BYTES) {
                return Err(io::Error::other("a text of more than 1 MiB"));
            }
        }
        Ok(length)
    }
}

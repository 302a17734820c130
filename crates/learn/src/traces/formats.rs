//! Spans out of JSON, one by one: OTLP (also JSON lines, as the OpenTelemetry collector's file exporter writes them), Jaeger's
//! API and Zipkin v2. The format is that of the content.

use super::text::{Attributes, Text};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::marker::PhantomData;
use std::rc::Rc;

/// Maximum number of spans that wait for what a file has behind them: the sender of OTLP's, the processes of Jaeger's.
const MAX_WAITING: usize = 20_000;

/// A span as a file has it.
#[derive(Debug, Default)]
pub(super) struct Raw {
    pub(super) trace: u128,
    pub(super) id: u64,
    /// 0 without a parent.
    pub(super) parent: u64,
    /// Nanoseconds since 1970.
    pub(super) start: i64,
    pub(super) end: i64,
    /// In lower case, such as `server` or `span_kind_server`.
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) service: String,
    pub(super) peer: String,
    pub(super) is_error: bool,
    pub(super) attributes: Attributes,
    pub(super) of_sender: Rc<Attributes>,
}

impl Raw {
    /// Attribute of the span, or of its sender.
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.get(name).or_else(|| self.of_sender.get(name))
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct OtlpSpan {
    trace_id: Text,
    span_id: Text,
    parent_span_id: Text,
    name: Text,
    kind: Text,
    start_time_unix_nano: Text,
    end_time_unix_nano: Text,
    attributes: Attributes,
    status: Option<OtlpStatus>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OtlpStatus {
    code: Text,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OtlpResource {
    attributes: Attributes,
}

impl OtlpSpan {
    fn raw(self, of_sender: &Rc<Attributes>) -> Raw {
        Raw {
            trace: trace_id(&self.trace_id.0),
            id: span_id(&self.span_id.0),
            parent: span_id(&self.parent_span_id.0),
            start: number(&self.start_time_unix_nano.0),
            end: number(&self.end_time_unix_nano.0),
            kind: match self.kind.0.as_str() {
                "1" => "internal".to_owned(),
                "2" => "server".to_owned(),
                "3" => "client".to_owned(),
                "4" => "producer".to_owned(),
                "5" => "consumer".to_owned(),
                name => name.to_lowercase(),
            },
            name: self.name.0,
            is_error: self
                .status
                .is_some_and(|status| ["2", "STATUS_CODE_ERROR"].contains(&status.code.0.as_str())),
            attributes: self.attributes,
            of_sender: Rc::clone(of_sender),
            ..Raw::default()
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct JaegerTrace {
    spans: Bounded<JaegerSpan>,
    processes: HashMap<String, JaegerProcess>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct JaegerSpan {
    #[serde(rename = "traceID")]
    trace: Text,
    #[serde(rename = "spanID")]
    id: Text,
    #[serde(rename = "parentSpanID")]
    parent: Text,
    references: Option<Vec<JaegerReference>>,
    #[serde(rename = "operationName")]
    name: Text,
    #[serde(rename = "startTime")]
    start: Text,
    duration: Text,
    tags: Attributes,
    #[serde(rename = "processID")]
    process_id: Text,
    process: Option<JaegerProcess>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct JaegerReference {
    #[serde(rename = "refType")]
    kind: Text,
    #[serde(rename = "spanID")]
    id: Text,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct JaegerProcess {
    #[serde(rename = "serviceName")]
    service: Text,
    tags: Attributes,
}

/// Name of a process, and its attributes.
type Sender = (String, Rc<Attributes>);

impl JaegerProcess {
    fn sender(self) -> Sender {
        (self.service.0, Rc::new(self.tags))
    }
}

impl JaegerSpan {
    fn raw(self, processes: &HashMap<String, Sender>) -> Raw {
        let own = self.process.map(JaegerProcess::sender);
        let (service, of_sender) =
            own.or_else(|| processes.get(&self.process_id.0).cloned()).unwrap_or_default();
        // The parent is the first reference, apart from what a span merely follows.
        let mut references = self.references.unwrap_or_default();
        references.sort_by_key(|reference| reference.kind.0 == "FOLLOWS_FROM");
        let parent = references.into_iter().next();
        let start = nanoseconds(&self.start.0);
        Raw {
            trace: trace_id(&self.trace.0),
            id: span_id(&self.id.0),
            parent: span_id(&parent.map_or(self.parent.0, |parent| parent.id.0)),
            start,
            end: start.saturating_add(nanoseconds(&self.duration.0)),
            name: self.name.0,
            service,
            attributes: self.tags,
            of_sender,
            ..Raw::default()
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ZipkinSpan {
    trace_id: Text,
    id: Text,
    parent_id: Text,
    kind: Text,
    name: Text,
    timestamp: Text,
    duration: Text,
    local_endpoint: Option<ZipkinEndpoint>,
    remote_endpoint: Option<ZipkinEndpoint>,
    tags: Attributes,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ZipkinEndpoint {
    service_name: Text,
}

impl ZipkinSpan {
    fn raw(self) -> Raw {
        let service = |endpoint: Option<ZipkinEndpoint>| endpoint.unwrap_or_default().service_name.0;
        let start = nanoseconds(&self.timestamp.0);
        Raw {
            trace: trace_id(&self.trace_id.0),
            id: span_id(&self.id.0),
            parent: span_id(&self.parent_id.0),
            start,
            end: start.saturating_add(nanoseconds(&self.duration.0)),
            kind: self.kind.0.to_lowercase(),
            name: self.name.0,
            service: service(self.local_endpoint),
            peer: service(self.remote_endpoint),
            attributes: self.tags,
            ..Raw::default()
        }
    }
}

fn hashed(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish() | 1
}

/// Identity of a span: 16 hexadecimal digits, or anything else (some tools write base64). 0 if it is empty.
fn span_id(text: &str) -> u64 {
    u64::from_str_radix(text, 16).unwrap_or_else(|_| if text.is_empty() { 0 } else { hashed(text) })
}

fn trace_id(text: &str) -> u128 {
    u128::from_str_radix(text, 16).unwrap_or_else(|_| hashed(text).into())
}

/// Whole number of a text, 0 if it has none.
fn number(text: &str) -> i64 {
    let number = text.parse::<i64>().ok().or_else(|| text.parse::<f64>().ok().map(|number| number as i64));
    number.unwrap_or_default().clamp(i64::MIN / 4, i64::MAX / 4)
}

/// Nanoseconds of a text with microseconds, the unit of Jaeger and Zipkin.
fn nanoseconds(text: &str) -> i64 {
    number(text).saturating_mul(1_000)
}

/// List of which elements beyond a limit are dropped.
struct Bounded<T>(Vec<T>);

impl<T> Default for Bounded<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Bounded<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for List<T> {
            type Value = Bounded<T>;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a list of spans")
            }
            fn visit_unit<E>(self) -> Result<Bounded<T>, E> {
                Ok(Bounded::default())
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Bounded<T>, A::Error> {
                let mut kept = Vec::new();
                while kept.len() < MAX_WAITING {
                    let Some(element) = list.next_element()? else { return Ok(Bounded(kept)) };
                    kept.push(element);
                }
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Bounded(kept))
            }
        }
        deserializer.deserialize_any(List(PhantomData))
    }
}

/// A file that is being read.
pub(super) struct Document<'a> {
    /// Takes a span; returns false to stop.
    pub(super) sink: &'a mut dyn FnMut(Raw) -> bool,
    /// Set once there is a value: an input that ends before is complete.
    pub(super) begun: bool,
    sender: Option<Rc<Attributes>>,
    waiting: Vec<OtlpSpan>,
}

impl<'a> Document<'a> {
    pub(super) fn new(sink: &'a mut dyn FnMut(Raw) -> bool) -> Self {
        Self { sink, begun: false, sender: None, waiting: Vec::new() }
    }

    /// Seed of the whole document.
    pub(super) fn seed(&mut self) -> Walk<'_, 'a> {
        Walk { place: Place::Document, document: self }
    }

    fn take<E: serde::de::Error>(&mut self, raw: Raw) -> Result<(), E> {
        if (self.sink)(raw) { Ok(()) } else { Err(E::custom("stopped")) }
    }

    fn otlp<E: serde::de::Error>(&mut self, span: OtlpSpan) -> Result<(), E> {
        match &self.sender {
            Some(sender) => {
                let raw = span.raw(sender);
                self.take(raw)
            }
            None if self.waiting.len() < MAX_WAITING => {
                self.waiting.push(span);
                Ok(())
            }
            None => {
                let text = format!("more than {MAX_WAITING} spans before the `resource` that sent them");
                Err(E::custom(text))
            }
        }
    }

    fn sent_by<E: serde::de::Error>(&mut self, sender: Attributes) -> Result<(), E> {
        self.sender = Some(Rc::new(sender));
        std::mem::take(&mut self.waiting).into_iter().try_for_each(|span| self.otlp(span))
    }
}

/// Place in a document, by its format.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Place {
    Document,
    OtlpSenders,
    OtlpSender,
    OtlpScopes,
    OtlpScope,
    OtlpSpans,
    JaegerTraces,
    ZipkinSpan,
    ZipkinTrace,
}

/// Walks through a document down to its spans, of which one at a time is in memory.
pub(super) struct Walk<'w, 'a> {
    place: Place,
    document: &'w mut Document<'a>,
}

impl<'a> Walk<'_, 'a> {
    fn at(&mut self, place: Place) -> Walk<'_, 'a> {
        Walk { place, document: self.document }
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_, '_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("traces as OTLP, Jaeger or Zipkin write them")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        // Empty lists of some programs.
        if self.place == Place::Document { Err(E::custom("null")) } else { Ok(()) }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        if matches!(self.place, Place::ZipkinSpan | Place::ZipkinTrace) {
            let span = ZipkinSpan::deserialize(MapAccessDeserializer::new(map))?;
            return self.document.take(span.raw());
        }
        self.document.begun = true;
        let mut is_known = matches!(self.place, Place::OtlpSender | Place::OtlpScope);
        if self.place == Place::OtlpSender {
            self.document.sender = None;
        }
        while let Some(Text(key)) = map.next_key()? {
            let place = match (self.place, key.as_str()) {
                (Place::Document, "resourceSpans" | "resource_spans" | "batches") => Place::OtlpSenders,
                (Place::Document, "data") => Place::JaegerTraces,
                (Place::OtlpSender, "resource") => {
                    let sender = map.next_value::<Option<OtlpResource>>()?.unwrap_or_default();
                    self.document.sent_by(sender.attributes)?;
                    continue;
                }
                (Place::OtlpSender, "scopeSpans" | "scope_spans" | "instrumentationLibrarySpans") => {
                    Place::OtlpScopes
                }
                (Place::OtlpScope, "spans") => Place::OtlpSpans,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            is_known = true;
            map.next_value_seed(self.at(place))?;
        }
        if self.place == Place::OtlpSender && self.document.sender.is_none() {
            self.document.sent_by(Attributes::default())?;
        }
        let foreign = "neither `resourceSpans` of OTLP, `data` of Jaeger nor a list of Zipkin";
        if is_known { Ok(()) } else { Err(A::Error::custom(foreign)) }
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        self.document.begun = true;
        match self.place {
            Place::OtlpSpans => {
                while let Some(span) = list.next_element()? {
                    self.document.otlp(span)?;
                }
            }
            Place::JaegerTraces => {
                while let Some(JaegerTrace { spans, processes }) = list.next_element()? {
                    let processes =
                        processes.into_iter().map(|(id, process)| (id, process.sender())).collect();
                    spans.0.into_iter().try_for_each(|span| self.document.take(span.raw(&processes)))?;
                }
            }
            place => {
                let inner = match place {
                    Place::Document => Place::ZipkinTrace,
                    Place::ZipkinTrace => Place::ZipkinSpan,
                    Place::OtlpSenders => Place::OtlpSender,
                    Place::OtlpScopes => Place::OtlpScope,
                    _ => return Err(A::Error::custom("a list where a span should be")),
                };
                while list.next_element_seed(self.at(inner))?.is_some() {}
            }
        }
        Ok(())
    }
}

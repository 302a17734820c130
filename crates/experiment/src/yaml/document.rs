//! YAML as a tree of nodes with source positions. The only module that uses the YAML library.
//!
//! Scalars stay text: the reader of each key decides what `0x10`, `off` or `1e3` mean. Merge keys and
//! duplicate keys are rejected. Depth, size and aliases are bounded, so that every file parses quickly.

use crate::diagnostic::{ExperimentError, Place, Source};
use serde::Serialize;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy, NonFiniteFloatPolicy};
use serde_saphyr::{Error, Location, Options, Spanned};
use std::fmt;
use std::sync::Arc;

/// Maximum nesting depth of lists and maps: topology scripts nest deepest.
const MAX_DEPTH: usize = 40;

/// Value with its place.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) value: Value,
}

impl Node {
    /// Entries of a map; empty for other values.
    pub(crate) fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Map(entries) => entries,
            _ => &[],
        }
    }
}

/// Content of a node.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// Nothing, or `null`.
    Empty,
    /// Text as written, without quotes.
    Scalar(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// Key and value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_place: Place,
    pub(crate) node: Node,
}

/// Parses the text of a source.
pub(crate) fn read(source: &Arc<Source>) -> Result<Node, Box<ExperimentError>> {
    serde_saphyr::from_str_with_options::<RawNode>(&source.text, options())
        .map(|raw| raw.into_node(source))
        .map_err(|error| syntax_error(&error, source))
}

/// Parses YAML documents that are Kubernetes objects.
pub(crate) fn objects(source: &Arc<Source>) -> Result<Vec<serde_json::Value>, Box<ExperimentError>> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: 64,
            flow_nesting_limit: 64,
            max_events: 1_000_000,
            max_nodes: 500_000,
            max_aliases: 1_000,
            max_anchors: 1_000,
            max_documents: 10_000,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 100_000,
            max_replay_stack_depth: 8,
        },
        duplicate_keys: DuplicateKeyPolicy::Error,
    };
    serde_saphyr::from_multiple_with_options(&source.text, options)
        .map_err(|error| syntax_error(&error, source))
}

/// Writes a value as YAML.
pub(crate) fn write(value: &impl Serialize) -> String {
    serde_saphyr::to_string(value).expect("strings, numbers, lists and maps can be written")
}

/// Strict options, with limits far above any real experiment file.
fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH,
            max_events: 1_000_000,
            max_nodes: 500_000,
            max_aliases: 100,
            max_anchors: 100,
            max_documents: 2,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 100_000,
            max_replay_stack_depth: 8,
        },
        duplicate_keys: DuplicateKeyPolicy::Error,
        merge_keys: MergeKeyPolicy::Error,
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
    }
}

/// Translates an error of the library.
fn syntax_error(error: &Error, source: &Arc<Source>) -> Box<ExperimentError> {
    let error = error.without_snippet();
    let location = error.location();
    let span = location.map_or(0..0, |location| byte_span(&location, &source.text));
    let place = Place { source: Arc::clone(source), span };
    match error {
        Error::DuplicateMappingKey { key, .. } => {
            let key = results::units::shortened(key.as_deref().unwrap_or("a key"));
            place.error(format!("`{key}` is given twice"), "expected each key once")
        }
        Error::MergeKeyNotAllowed { .. } => {
            place.error("merge keys (`<<`) are not read", "expected the keys themselves")
        }
        Error::MultipleDocuments { .. } => {
            place.error("there is a second document", "expected one document in one file")
        }
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => place.error(
            "the file is too deep or too large once its aliases are followed",
            "the limit was reached here",
        ),
        _ => {
            let text = error.to_string();
            let reason = text.rsplit_once(" at line ").map_or(text.as_str(), |(reason, _)| reason);
            place.error("this is not YAML that can be read", reason)
        }
    }
}

/// Byte range of a location. Counted from characters if the library gives only those.
fn byte_span(location: &Location, text: &str) -> std::ops::Range<usize> {
    let span = location.span();
    if let (Some(start), Some(length)) = (span.byte_offset(), span.byte_len()) {
        let start = usize::try_from(start).unwrap_or(usize::MAX);
        return start..start.saturating_add(usize::try_from(length).unwrap_or(0));
    }
    let byte_of = |character: u64| {
        let character = usize::try_from(character).unwrap_or(usize::MAX);
        text.char_indices().nth(character).map_or(text.len(), |(byte, _)| byte)
    };
    byte_of(span.offset())..byte_of(span.offset().saturating_add(span.len()))
}

/// Node as parsed by the library.
struct RawNode(Spanned<RawValue>);

enum RawValue {
    Empty,
    /// String with quotes resolved.
    Text(String),
    /// Number or boolean. Its text is taken from the source; this is the fallback.
    Typed(String),
    List(Vec<RawNode>),
    Map(Vec<(Spanned<String>, RawNode)>),
}

impl RawNode {
    fn into_node(self, source: &Arc<Source>) -> Node {
        let Spanned { value, referenced, defined } = self.0;
        let place_of = |location: &Location| Place {
            source: Arc::clone(source),
            span: byte_span(location, &source.text),
        };
        let value = match value {
            RawValue::Empty => Value::Empty,
            RawValue::Text(text) => Value::Scalar(text),
            RawValue::Typed(text) => {
                let written =
                    source.text.get(byte_span(&defined, &source.text)).filter(|raw| !raw.is_empty());
                Value::Scalar(written.map_or(text, str::to_owned))
            }
            RawValue::List(items) => {
                Value::List(items.into_iter().map(|item| item.into_node(source)).collect())
            }
            RawValue::Map(entries) => Value::Map(
                entries
                    .into_iter()
                    .map(|(key, node)| Entry {
                        key_place: place_of(&key.referenced),
                        key: key.value,
                        node: node.into_node(source),
                    })
                    .collect(),
            ),
        };
        Node { place: place_of(&referenced), value }
    }
}

impl<'de> Deserialize<'de> for RawNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Spanned::deserialize(deserializer).map(Self)
    }
}

impl<'de> Deserialize<'de> for RawValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawValueVisitor)
    }
}

struct RawValueVisitor;

/// Methods for values that are not strings.
macro_rules! typed {
    ($($visit:ident: $type:ty),+) => {
        $(fn $visit<E>(self, value: $type) -> Result<RawValue, E> {
            Ok(RawValue::Typed(value.to_string()))
        })+
    };
}

impl<'de> Visitor<'de> for RawValueVisitor {
    type Value = RawValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a scalar, a list or a map")
    }

    fn visit_str<E>(self, text: &str) -> Result<RawValue, E> {
        Ok(RawValue::Text(text.to_owned()))
    }

    typed!(visit_bool: bool, visit_u64: u64, visit_i64: i64, visit_u128: u128, visit_i128: i128, visit_f64: f64);

    fn visit_unit<E>(self) -> Result<RawValue, E> {
        Ok(RawValue::Empty)
    }

    fn visit_none<E>(self) -> Result<RawValue, E> {
        Ok(RawValue::Empty)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<RawValue, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(RawValue::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<RawValue, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(RawValue::Map(map))
    }
}

//! JSON Schema (draft 2020-12) of tables of keys.
//!
//! A file that the reader accepts is valid under the schema, provided that numbers are written without quotes, and text
//! that looks like a number or a boolean with quotes. The reverse does not hold: the schema does not know which keys
//! contradict each other, and sees the values of numbers and not their text (`2.0`, `.5`, `0x10`).

use super::{DescribedKey, Key, Kind, MAX_VALUES, SWITCH};
use serde_json::{Map, Value, json};

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Schema of a file whose root is `root`, with definitions.
pub(crate) fn document(
    title: &str,
    description: &str,
    root: Value,
    definitions: Vec<(&str, Value)>,
) -> Value {
    let mut all: Map<String, Value> =
        scalars().into_iter().map(|(name, quantity)| (name.to_owned(), quantity)).collect();
    all.extend(definitions.into_iter().map(|(name, definition)| (name.to_owned(), definition)));
    let Value::Object(mut document) = root else { unreachable!("a file is a map") };
    document.insert("$schema".into(), DIALECT.into());
    document.insert("title".into(), title.into());
    document.insert("description".into(), description.into());
    document.insert("$defs".into(), Value::Object(all));
    Value::Object(document)
}

/// Map with these keys and no others.
pub(crate) fn map<'a>(keys: impl IntoIterator<Item = &'a Key>) -> Value {
    let keys: Vec<DescribedKey> = keys.into_iter().map(DescribedKey::from).collect();
    map_with_factors(&keys, |_| false)
}

/// Map with these keys and no others. `is_factor` tells which keys also take a list of values.
pub(crate) fn map_with_factors(keys: &[DescribedKey], is_factor: impl Fn(&str) -> bool) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for DescribedKey { key, default } in keys {
        let mut schema = value(key.value);
        if is_factor(key.name) {
            schema = json!({"anyOf": [
                schema,
                {"type": "array", "items": schema, "minItems": 1, "maxItems": MAX_VALUES, "uniqueItems": true},
            ]});
        }
        if let Value::Object(schema) = &mut schema {
            schema.insert("description".into(), key.summary.into());
            if let Some(default) = default {
                schema.insert("default".into(), default.clone());
            }
        }
        if key.is_required {
            required.push(key.name);
        }
        properties.insert(key.name.to_owned(), schema);
    }
    let mut map = json!({"type": "object", "properties": properties, "additionalProperties": false});
    if !required.is_empty() {
        map["required"] = json!(required);
    }
    map
}

impl From<&Key> for DescribedKey {
    fn from(key: &Key) -> Self {
        Self { key: *key, default: key.default.map(|default| default_value(key.value, default)) }
    }
}

/// Schema of a value.
pub(crate) fn value(kind: Kind) -> Value {
    match kind {
        Kind::Text => named("text"),
        Kind::Matching(pattern) => json!({"type": "string", "pattern": pattern()}),
        Kind::Whole(least, most) => json!({"type": "integer", "minimum": least, "maximum": most}),
        Kind::Duration | Kind::PositiveDuration | Kind::DurationUpTo(_) | Kind::Milliseconds => {
            named("duration")
        }
        Kind::Size | Kind::SizeFor(..) => named("size"),
        Kind::Rate => named("rate"),
        Kind::Fraction => named("fraction"),
        Kind::Cores => named("cores"),
        Kind::OneOf(words) => one_of(&words()),
        Kind::Switch => one_of(&SWITCH.map(|(word, _)| word)),
        Kind::OneOrSeveral(kind) => json!({"anyOf": [value(*kind), list(0, *kind)]}),
        Kind::OneOrDistinct(kind) => {
            let mut several = list(1, *kind);
            several["uniqueItems"] = json!(true);
            json!({"anyOf": [value(*kind), several]})
        }
        Kind::List(least, kind) => list(least, *kind),
        Kind::Either(kinds) => json!({"anyOf": kinds.iter().map(|kind| value(*kind)).collect::<Vec<_>>()}),
        Kind::Map(keys) => map(keys),
        Kind::OneKey(keys) => {
            let mut map = map(keys);
            map["minProperties"] = json!(1);
            map["maxProperties"] = json!(1);
            map
        }
        Kind::MapOf(pattern, kind) => json!({
            "type": "object",
            "patternProperties": {pattern: value(*kind)},
            "additionalProperties": false,
            "minProperties": 1,
        }),
        Kind::Named(name) => named(name),
    }
}

fn named(name: &str) -> Value {
    json!({"$ref": format!("#/$defs/{name}")})
}

fn list(least: usize, kind: Kind) -> Value {
    json!({"type": "array", "items": value(kind), "minItems": least})
}

/// Words. `true` and `false` without quotes are booleans, and so are `on` and `off` in YAML 1.1.
fn one_of(words: &[&str]) -> Value {
    let mut values: Vec<Value> = words.iter().map(|word| json!(word)).collect();
    for (boolean, synonyms) in [(true, ["true", "on"]), (false, ["false", "off"])] {
        if synonyms.iter().any(|word| words.contains(word)) {
            values.push(json!(boolean));
        }
    }
    json!({"enum": values})
}

/// Default as an editor would insert it.
fn default_value(kind: Kind, default: &str) -> Value {
    match kind {
        Kind::Whole(..) => json!(default.parse::<u64>().expect("the default of an integer is one")),
        Kind::Switch => json!(SWITCH.iter().any(|(word, is_on)| *word == default && *is_on)),
        _ => json!(default),
    }
}

/// Text, and quantities with units as in [`results::units`].
fn scalars() -> [(&'static str, Value); 6] {
    const NUMBER: &str = r"[0-9]+(\.[0-9]+)?";
    let text = |pattern: String| json!({"type": "string", "pattern": format!(r"^\s*{pattern}\s*$")});
    let described = |description: &str, mut forms: Value| {
        forms["description"] = description.into();
        forms
    };
    [
        // Without quotes a version may look like a number.
        ("text", json!({"type": ["string", "number", "boolean"]})),
        (
            "duration",
            described(
                "a number with a unit: 250us, 5ms, 1.5s, 2m, 1h, or several: 1m30s",
                text(format!(r"({NUMBER}\s*(ns|us|µs|μs|ms|s|min|m|h)\s*)+")),
            ),
        ),
        (
            "size",
            described(
                "bytes, or a number with a unit: 1024, 1KB (1000), 1KiB (1024), 1.5MiB",
                json!({"anyOf": [
                    {"type": "integer", "minimum": 0},
                    text(format!(r"{NUMBER}\s*([bB]|[kKmMgG]([bB]|[iI][bB]?))?")),
                ]}),
            ),
        ),
        (
            "rate",
            described(
                "per second unless it says otherwise: 1000, 10k, 1.2Mrps, 600/m, 345M/day",
                json!({"anyOf": [
                    {"type": "number", "exclusiveMinimum": 0, "maximum": 1e9},
                    text(format!(r"{NUMBER}\s*[kKMG]?\s*(/s|rps|/m|/min|/h|/d|/day)?")),
                ]}),
            ),
        ),
        (
            "fraction",
            described(
                "0 to 1, or a percentage: 0.001, 0.1%",
                json!({"anyOf": [
                    {"type": "number", "minimum": 0, "maximum": 1},
                    text(format!(r"{NUMBER}\s*%?")),
                ]}),
            ),
        ),
        (
            "cores",
            described(
                "CPU cores as in a pod's resource limits: 500m, 0.5, 2",
                json!({"anyOf": [
                    {"type": "number", "minimum": 0.001, "maximum": 100_000},
                    text(format!(r"{NUMBER}\s*m?")),
                ]}),
            ),
        ),
    ]
}

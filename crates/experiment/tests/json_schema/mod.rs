//! Checks a value against a schema: the keywords of JSON Schema that Meshmeter's schemas use, written from the
//! standard (draft 2020-12). Any other keyword fails the test.

use regex::Regex;
use serde_json::{Map, Value};

/// Keywords that constrain nothing.
const ANNOTATIONS: [&str; 5] = ["$schema", "$defs", "title", "description", "default"];

/// Violations of a schema, each with its place; empty if the value is valid.
pub fn violations(document: &Value, value: &Value) -> Vec<String> {
    let mut violations = Vec::new();
    check(document, document, value, "", &mut violations);
    violations
}

fn check(document: &Value, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    let schema = schema.as_object().expect("a schema is a map");
    for (keyword, argument) in schema {
        match keyword.as_str() {
            "$ref" => check(document, target(document, argument), value, at, found),
            "anyOf" => {
                let fits = |one: &Value| {
                    let mut inner = Vec::new();
                    check(document, one, value, at, &mut inner);
                    inner.is_empty()
                };
                if !argument.as_array().unwrap().iter().any(fits) {
                    found.push(format!("{at}: {value} fits none of anyOf"));
                }
            }
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(document, argument, item, &format!("{at}[{index}]"), found);
                }
            }
            "properties" | "patternProperties" | "additionalProperties" => {}
            keyword if ANNOTATIONS.contains(&keyword) => {}
            keyword => {
                if !holds(keyword, argument, value) {
                    found.push(format!("{at}: {value} violates {keyword} {argument}"));
                }
            }
        }
    }
    if let Value::Object(entries) = value {
        members(document, schema, entries, at, found);
    }
}

fn target<'a>(document: &'a Value, reference: &Value) -> &'a Value {
    let pointer = reference.as_str().unwrap().strip_prefix('#').expect("schemas refer to themselves alone");
    document.pointer(pointer).unwrap_or_else(|| panic!("{reference} leads nowhere"))
}

/// `properties`, `patternProperties` and `additionalProperties`, which depend on each other.
fn members(
    document: &Value,
    schema: &Map<String, Value>,
    entries: &Map<String, Value>,
    at: &str,
    found: &mut Vec<String>,
) {
    for (key, member) in entries {
        let at = format!("{at}.{key}");
        let mut is_known = false;
        if let Some(own) = schema.get("properties").and_then(|properties| properties.get(key)) {
            is_known = true;
            check(document, own, member, &at, found);
        }
        for (pattern, own) in schema.get("patternProperties").and_then(Value::as_object).into_iter().flatten()
        {
            if Regex::new(pattern).unwrap().is_match(key) {
                is_known = true;
                check(document, own, member, &at, found);
            }
        }
        if !is_known && schema.get("additionalProperties") == Some(&Value::Bool(false)) {
            found.push(format!("{at}: unknown key"));
        }
    }
}

/// Keywords that a value holds or violates by itself. They apply to their type alone.
fn holds(keyword: &str, argument: &Value, value: &Value) -> bool {
    let limit = || argument.as_f64().unwrap();
    let least = |count: Option<usize>| count.is_none_or(|count| count as u64 >= argument.as_u64().unwrap());
    let most = |count: Option<usize>| count.is_none_or(|count| count as u64 <= argument.as_u64().unwrap());
    let (items, members) = (value.as_array().map(Vec::len), value.as_object().map(Map::len));
    match keyword {
        "type" => match argument {
            Value::Array(types) => types.iter().any(|one| is_of_type(one.as_str().unwrap(), value)),
            _ => is_of_type(argument.as_str().unwrap(), value),
        },
        "enum" => argument.as_array().unwrap().contains(value),
        "pattern" => {
            let pattern = Regex::new(argument.as_str().unwrap()).unwrap();
            value.as_str().is_none_or(|text| pattern.is_match(text))
        }
        "minimum" => value.as_f64().is_none_or(|number| number >= limit()),
        "maximum" => value.as_f64().is_none_or(|number| number <= limit()),
        "exclusiveMinimum" => value.as_f64().is_none_or(|number| number > limit()),
        "minItems" => least(items),
        "maxItems" => most(items),
        "uniqueItems" => value
            .as_array()
            .is_none_or(|items| items.iter().enumerate().all(|(index, item)| !items[..index].contains(item))),
        "minProperties" => least(members),
        "maxProperties" => most(members),
        "required" => value.as_object().is_none_or(|entries| {
            argument.as_array().unwrap().iter().all(|key| entries.contains_key(key.as_str().unwrap()))
        }),
        _ => panic!("the checker does not know the keyword {keyword}"),
    }
}

fn is_of_type(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "null" => value.is_null(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => panic!("the checker does not know the type {name}"),
    }
}

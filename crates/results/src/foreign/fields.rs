//! Fields of JSON documents by their path.

use super::ForeignError;
use serde_json::Value;

/// The value at a path; absent if a part of it is missing or null.
pub(super) fn at<'a>(document: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(document, |value, key| value.get(key)).filter(|value| !value.is_null())
}

/// A number at a path.
pub(super) fn number(document: &Value, path: &[&str]) -> Option<f64> {
    at(document, path)?.as_f64()
}

/// A whole number at a path, also one in quotes, as protobuf's JSON has it.
pub(super) fn count(document: &Value, path: &[&str]) -> Option<u64> {
    let value = at(document, path)?;
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

/// A text at a path.
pub(super) fn text(document: &Value, path: &[&str]) -> Option<String> {
    at(document, path)?.as_str().map(str::to_owned)
}

/// An array at a path; empty if it is missing.
pub(super) fn array<'a>(document: &'a Value, path: &[&str]) -> &'a [Value] {
    at(document, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A number that must be there.
pub(super) fn needed(document: &Value, path: &[&str], tool: &str) -> Result<f64, ForeignError> {
    number(document, path)
        .ok_or_else(|| ForeignError::new(format!("{tool}: it has no number `{}`", path.join("."))))
}

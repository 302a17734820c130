//! Header fields that a request passes on to its calls.

use http::{HeaderMap, HeaderName, HeaderValue};

/// Header fields that are forwarded to callees unchanged.
#[derive(Clone, Debug, Default)]
pub(crate) struct PassedFields(Vec<(HeaderName, HeaderValue)>);

impl PassedFields {
    /// W3C Trace Context and Baggage, B3 (single and multiple), the request ID that proxies write, and the
    /// token that policies of a mesh may require at every hop.
    pub(crate) fn from_headers(fields: &HeaderMap) -> Self {
        let passed = fields.iter().filter(|(name, _)| is_passed(name.as_str()));
        Self(passed.map(|(name, value)| (name.clone(), value.clone())).collect())
    }

    /// The same for raw header fields; names in any case.
    pub(crate) fn of_bytes<'f>(fields: impl Iterator<Item = (&'f str, &'f [u8])>) -> Self {
        let passed = fields.filter(|(name, _)| is_passed(name)).filter_map(|(name, value)| {
            Some((HeaderName::from_bytes(name.as_bytes()).ok()?, HeaderValue::from_bytes(value).ok()?))
        });
        Self(passed.collect())
    }

    /// Names in lower case, and values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_bytes()))
    }

    pub(crate) fn write(&self, fields: &mut HeaderMap) {
        for (name, value) in &self.0 {
            fields.append(name.clone(), value.clone());
        }
    }
}

/// `name`: in any case.
fn is_passed(name: &str) -> bool {
    const PASSED: [&str; 6] = ["traceparent", "tracestate", "baggage", "b3", "x-request-id", "authorization"];
    const PREFIX: &str = "x-b3-";
    PASSED.iter().any(|passed| passed.eq_ignore_ascii_case(name))
        || name.get(..PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(PREFIX))
}

//! Kinds of sessions: requests one after the other, with values taken from responses and times between them.

use super::{Request, Targets};
use crate::protocol::KeptResponse;
use http::header::COOKIE;
use regex::bytes::Regex;
use results::json_part;
use std::time::Duration;

/// Maximum size of a value taken from a response, bytes.
const MAX_VALUE_BYTES: usize = 16 << 10;

/// Kind of session.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionKind {
    /// Name in results.
    pub name: String,
    /// Share among the sum of all weights; at least 1.
    pub weight: u32,
    /// Number of values that its steps take from responses.
    pub values: usize,
    /// Not empty.
    pub steps: Vec<Step>,
}

/// Step of a session, beside its request.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Times between the response before and the step, equally likely; empty for none.
    pub think: Vec<Duration>,
    /// Values taken from the response.
    pub extract: Vec<Extract>,
    /// The session goes on if the step fails.
    pub goes_on: bool,
}

/// Value taken from a response.
#[derive(Clone, Debug, PartialEq)]
pub struct Extract {
    /// Index among the values of the session.
    pub value: usize,
    /// Where it is.
    pub origin: Origin,
}

/// Part of a response.
#[derive(Clone, Debug)]
pub enum Origin {
    /// JSON pointer into the body: the text of a string, anything else as JSON.
    Json(String),
    /// The first header of this name, in lower case.
    Header(String),
    /// First match in the body: its first group, or the whole of it without one.
    Regex(Regex),
}

impl PartialEq for Origin {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Json(one), Self::Json(other)) | (Self::Header(one), Self::Header(other)) => one == other,
            (Self::Regex(one), Self::Regex(other)) => one.as_str() == other.as_str(),
            _ => false,
        }
    }
}

impl Step {
    fn needs_body(&self) -> bool {
        self.extract.iter().any(|extract| !matches!(extract.origin, Origin::Header(_)))
    }

    /// Takes the values from a response. Returns false if one is not there, or does not fit a line of text of at most
    /// [`MAX_VALUE_BYTES`]: it is empty then.
    pub(crate) fn extract(&self, response: &KeptResponse, values: &mut [Box<[u8]>]) -> bool {
        let mut are_all_there = true;
        for Extract { value, origin } in &self.extract {
            let found: Option<Box<[u8]>> = match origin {
                Origin::Json(pointer) => {
                    let part = json_part(&response.body, pointer).ok().flatten();
                    part.map(|part| part.as_bytes().into())
                }
                Origin::Header(name) => {
                    let mut named = response.fields.iter().filter(|(known, _)| **known == *name.as_bytes());
                    named.next().map(|(_, value)| value.clone())
                }
                Origin::Regex(regex) => regex.captures(&response.body).and_then(|captures| {
                    let group = captures.get(regex.captures_len() - 1)?;
                    Some(group.as_bytes().into())
                }),
            };
            let found = found.filter(|found| found.len() <= MAX_VALUE_BYTES && is_line(found));
            are_all_there &= found.is_some();
            values[*value] = found.unwrap_or_default();
        }
        are_all_there
    }
}

/// True for text that a header can have.
fn is_line(text: &[u8]) -> bool {
    text.iter().all(|byte| *byte == b'\t' || (*byte >= b' ' && *byte != 0x7f))
}

impl Targets {
    /// Makes the kinds of requests steps of these sessions: the first ones those of the first session, and so on. Sessions are due
    /// instead of requests, by their weights.
    #[must_use]
    pub fn with_sessions(mut self, sessions: Vec<SessionKind>) -> Self {
        let steps = sessions.iter().flat_map(|session| {
            let weights = std::iter::once(session.weight).chain(std::iter::repeat(0));
            session.steps.iter().zip(weights)
        });
        for ((step, weight), choice) in steps.zip(&mut self.choices) {
            choice.weight = weight;
            for (server, request) in &choice.options {
                let request: &mut Request = &mut self.servers[*server].requests[*request];
                request.keep.fields = true;
                request.keep.body |= step.needs_body();
                request.sends_cookies = request.header(&COOKIE).is_none();
            }
        }
        self.sessions = sessions;
        self
    }

    /// Session and step of each choice; empty without sessions.
    pub(crate) fn steps(&self) -> Vec<(usize, usize)> {
        let sessions = self.sessions.iter().enumerate();
        sessions.flat_map(|(session, kind)| (0..kind.steps.len()).map(move |step| (session, step))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_taken_from_json_headers_and_matches() {
        let origins = [
            Origin::Json("/a/0".to_owned()),
            Origin::Json("/b".to_owned()),
            Origin::Header("x-id".to_owned()),
            Origin::Regex(Regex::new(r#""c": "(\w+)""#).unwrap()),
            Origin::Regex(Regex::new("[0-9]+").unwrap()),
        ];
        let extract = |origins: &[Origin]| {
            let extract = origins.iter().enumerate();
            let extract = extract.map(|(value, origin)| Extract { value, origin: origin.clone() });
            Step { think: Vec::new(), extract: extract.collect(), goes_on: false }
        };
        let field = |name: &str, value: &str| (name.as_bytes().into(), value.as_bytes().into());
        let response = KeptResponse {
            body: br#"{"a": ["x y"], "b": {"d": 1}, "c": "word", "line": "e\nf"}"#.to_vec(),
            fields: vec![field("x-other", "1"), field("x-id", "first"), field("x-id", "second")],
            ..KeptResponse::default()
        };
        let taken = |origins: &[Origin], response: &KeptResponse| {
            let mut values = vec![Box::from(&b"before"[..]); origins.len()];
            let are_there = extract(origins).extract(response, &mut values);
            let text = |value: Box<[u8]>| String::from_utf8(value.into()).unwrap();
            (are_there, values.into_iter().map(text).collect::<Vec<_>>())
        };
        let (are_there, values) = taken(&origins, &response);
        assert!(are_there);
        assert_eq!(values, ["x y", r#"{"d":1}"#, "first", "word", "1"]);
        let nothing = taken(&origins, &KeptResponse::default());
        assert_eq!(nothing, (false, vec![String::new(); 5]));
        for missing in [
            Origin::Json("/line".to_owned()),
            Origin::Json("/e".to_owned()),
            Origin::Header("x".to_owned()),
            Origin::Regex(Regex::new("z+").unwrap()),
        ] {
            assert_eq!(
                taken(std::slice::from_ref(&missing), &response),
                (false, vec![String::new()]),
                "{missing:?}"
            );
        }
    }
}

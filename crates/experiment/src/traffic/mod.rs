//! Traffic files: kinds of requests with weights, and the data that their templates are filled with.
//!
//! [`read`] turns YAML into a [`TrafficFile`], or an error with its place. [`mod@keys`] has the keys, [`reader`] reads the kinds,
//! [`expect`] their checks, [`sessions`] sessions of several requests, [`data`] their data out of CSV ([`csv`]) and JSON lines, and [`template`] finds the placeholders. The crate `load` draws
//! values and makes requests of templates.

mod csv;
mod data;
mod expect;
mod keys;
mod reader;
mod sessions;
mod template;
#[cfg(test)]
mod tests;

use crate::diagnostic::{ExperimentError, Place};
use crate::keys::words::words;
use crate::topology::distribution::Distribution;
use regex::bytes::Regex;
use results::ExpectedStatuses;
use std::time::Duration;

pub use keys::json_schema;
pub use reader::read;
pub use template::{Piece, Template};

/// Traffic of a load.
#[derive(Clone, Debug)]
pub struct TrafficFile {
    /// URL without the paths of the requests.
    pub url: String,
    /// Kinds of requests; not empty. With sessions, those of their steps, one after the other.
    pub requests: Vec<RequestKind>,
    /// Sessions; empty if requests are independent.
    pub sessions: Vec<SessionKind>,
    /// Data, to which templates refer by index.
    pub data: Vec<Data>,
    /// Sources of the data.
    pub sources: Vec<Source>,
}

/// Kind of request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RequestKind {
    /// Name in results, unique.
    pub name: String,
    /// Share among the sum of all weights; at least 1.
    pub weight: u32,
    /// Such as `GET`.
    pub method: String,
    /// Path and query.
    pub path: Template,
    /// Path and query as written, with `*` for secrets in the query.
    pub shown_path: String,
    /// In order. Several of one name were written as a list.
    pub headers: Vec<Header>,
    /// Body; empty for none.
    pub body: Body,
    /// Checks of the response.
    pub expect: Expectation,
}

/// Kind of session.
#[derive(Clone, Debug)]
pub struct SessionKind {
    /// Name in results, unique.
    pub name: String,
    /// Share among the sum of all weights; at least 1.
    pub weight: u32,
    /// Number of values that its steps extract.
    pub values: usize,
    /// Not empty.
    pub steps: Vec<Step>,
}

/// Step of a session, beside its request.
#[derive(Clone, Debug)]
pub struct Step {
    /// Time between the response before and the step.
    pub think: Think,
    /// Values taken from the response.
    pub extract: Vec<Extract>,
    /// Behaviour of the session if the step fails.
    pub on_failure: OnFailure,
}

/// Time between steps.
#[derive(Clone, Debug)]
pub enum Think {
    /// Of this distribution, seconds.
    Drawn(Distribution),
    /// One of these, equally likely; not empty.
    Listed(Vec<Duration>),
}

impl Default for Think {
    fn default() -> Self {
        Self::Drawn(Distribution::Fixed(0.0))
    }
}

/// Value that a step takes from its response.
#[derive(Clone, Debug)]
pub struct Extract {
    /// Index among the values of the session.
    pub value: usize,
    /// Where it is.
    pub origin: Origin,
}

/// Part of a response.
#[derive(Clone, Debug)]
pub enum Origin {
    /// JSON pointer into the body.
    Json(String),
    /// The first header of this name, in lower case.
    Header(String),
    /// First match in the body: its group, or the whole of it without one.
    Regex(Regex),
}

/// Behaviour of a session after a step that failed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum OnFailure {
    /// It ends.
    #[default]
    End,
    /// Its next step follows.
    Continue,
}

words!(OnFailure { End = "end", Continue = "continue" });

/// Header of a kind of request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Header {
    /// Name as written.
    pub name: String,
    /// Value.
    pub value: Template,
    place: Place,
}

impl Header {
    /// Error at the place of the header.
    #[must_use]
    pub fn error(&self, message: impl Into<String>) -> Box<ExperimentError> {
        let error =
            self.place.error(message, "expected to be left out").with_hint("leave it out of `headers`");
        error.without_secrets()
    }
}

/// Body of a kind of request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Body {
    /// Text with placeholders.
    Template(Template),
    /// This many bytes of filler.
    Filler(u64),
}

impl Body {
    /// Size without data, bytes.
    fn bytes(&self) -> u64 {
        match self {
            Self::Template(template) => template.text_bytes(),
            Self::Filler(bytes) => *bytes,
        }
    }
}

/// Checks of responses.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Expectation {
    /// Right statuses; absent: no check.
    pub status: Option<ExpectedStatuses>,
    /// Minimum size of the response, head included.
    pub min_bytes: Option<u64>,
    /// Maximum size of the response, head included.
    pub max_bytes: Option<u64>,
    /// Texts that the body contains.
    pub text: Vec<String>,
    /// JSON pointers into the body, and the values there as text.
    pub json: Vec<(String, String)>,
}

/// Values by name.
#[derive(Clone, Debug, PartialEq)]
pub struct Data {
    /// Name in templates.
    pub name: String,
    /// Index of its source. Data of one source have values of the same row in a request.
    pub source: usize,
    /// A value for each number or row of the source.
    pub values: Values,
}

/// Values of data.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// The numbers of the source themselves.
    Numbers,
    /// A text per row.
    Rows(Rows),
    /// Filler with sizes of this distribution, bytes. The source numbers [`FILLER_SIZES`] of its quantiles, evenly spaced.
    Filler(Distribution),
}

/// Number of different sizes of filler.
pub const FILLER_SIZES: u64 = 4096;

impl Data {
    /// The texts, if there is one per row.
    #[must_use]
    pub fn rows(&self) -> Option<&Rows> {
        match &self.values {
            Values::Rows(rows) => Some(rows),
            Values::Numbers | Values::Filler(_) => None,
        }
    }
}

/// Numbers, or rows of a file, of which each request takes one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Source {
    /// First number; 0 for rows.
    pub first: u64,
    /// Number of values, at least 1; absent: without end.
    pub count: Option<u64>,
    /// Order in which they are taken.
    pub order: Order,
    /// Behaviour after the last one.
    pub at_end: AtEnd,
}

/// Order in which requests take values.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Order {
    /// One after the other.
    #[default]
    Turn,
    /// Drawn independently.
    Random,
}

words!(Order { Turn = "turn", Random = "random" });

/// Behaviour after the last value.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum AtEnd {
    /// The first one.
    #[default]
    Again,
    /// Nothing: requests without a value are errors.
    Stop,
}

words!(AtEnd { Again = "again", Stop = "stop" });

/// Texts, one per row.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Rows {
    text: String,
    /// End of each in the text.
    ends: Vec<usize>,
}

impl Rows {
    fn push(&mut self, row: &str) {
        self.text.push_str(row);
        self.ends.push(self.text.len());
    }

    /// The texts, in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.text[start..*end])
    }

    /// Number of rows.
    #[must_use]
    pub fn count(&self) -> usize {
        self.ends.len()
    }
}

//! Keys of a traffic file.

use super::{AtEnd, OnFailure, Order};
use crate::keys::words::words_of;
use crate::keys::{Key, Kind, json_schema};
use crate::topology::file::keys::{SIZES, TIMES, size_definition, time_definition};
use serde_json::Value;

/// Maximum number of kinds of requests: each has a histogram of its own in every thread.
pub(super) const MAX_KINDS: usize = 1000;
/// Maximum weight of a kind, as of a URL.
pub(super) const MAX_WEIGHT: usize = 1_000_000;
/// Maximum bound of a range and first unique number: JSON keeps greater ones inexactly.
pub(super) const MAX_NUMBER: usize = 1 << 53;
/// Maximum length of the name of a kind or of data.
pub(super) const MAX_NAME_LENGTH: usize = 64;
/// Maximum size of a body, bytes.
pub(super) const MAX_BODY_BYTES: u64 = 64 << 20;
/// Maximum size of all bodies together, bytes: they are held in memory.
pub(super) const MAX_BODIES_BYTES: u64 = 1 << 30;

/// Maximum size of a compiled regular expression, bytes.
pub(super) const MAX_REGEX_BYTES: usize = 1 << 20;

/// Name of data, as templates have it.
const DATA_NAME: &str = "^[A-Za-z_][A-Za-z0-9_-]{0,63}$";
/// JSON pointer (RFC 6901).
const POINTER: &str = "^(/.*)?$";
/// Name of a header (RFC 9110, token).
const HEADER_NAME: &str = "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$";

/// Schema of a traffic file, as JSON Schema (draft 2020-12).
#[must_use]
pub fn json_schema() -> Value {
    json_schema::document(
        "Meshmeter traffic",
        "Kinds of requests or sessions of a load, and their data (docs/traffic-file.md).",
        json_schema::map(&ROOT),
        vec![size_definition(), time_definition()],
    )
}

fn method() -> String {
    "^[A-Z][A-Z-]*$".to_owned()
}

fn status() -> String {
    "^([2-9][0-9]{2}|[2-5](xx|XX))$".to_owned()
}

fn pointer() -> String {
    POINTER.to_owned()
}

const HEADERS: Kind = Kind::MapOf(HEADER_NAME, &Kind::OneOrSeveral(&Kind::Text));

pub(super) const ROOT: [Key; 5] = [
    Key::new(
        "url",
        Kind::Text,
        "scheme, host and port of the server; a path comes before that of each request",
    )
    .required(),
    Key::new(
        "headers",
        HEADERS,
        "headers of all requests; a request's own of the same name, in any case, replaces one",
    ),
    Key::new(
        "requests",
        Kind::List(1, &Kind::Map(&REQUEST)),
        "the kinds of requests, at least one; with `sessions` those that their steps name",
    ),
    Key::new(
        "sessions",
        Kind::List(1, &Kind::Map(&SESSION)),
        "the kinds of sessions, instead of single requests",
    ),
    Key::new(
        "data",
        Kind::MapOf(DATA_NAME, &Kind::Map(&DATA)),
        "values by name: `{name}` in a path, a header or a body is the value of the request",
    ),
];

const NAME: Key = Key::new("name", Kind::Text, "name in results, unique; method and path if absent");
const WEIGHT: Key =
    Key::new("weight", Kind::Whole(1, MAX_WEIGHT as u64), "share among the sum of all weights").default("1");
const METHOD: Key = Key::new("method", Kind::Matching(method), "method").default("GET");
const PATH: Key = Key::new("path", Kind::Text, "path and query, from `/` on");
const OWN_HEADERS: Key =
    Key::new("headers", HEADERS, "headers by name; a list is sent as several of the name");
const BODY: Key = Key::new("body", Kind::Text, "body");
const BODY_FILE: Key = Key::new("body-file", Kind::Text, "file that has the body, relative to this file");
const BODY_SIZE: Key = Key::new("body-size", Kind::Size, "size of a body of filler, up to 64MiB");
const EXPECTED: Key = Key::new(
    "expect",
    Kind::Map(&EXPECT),
    "checks of the response; one that fails makes the request an error",
);

pub(super) const REQUEST: [Key; 9] =
    [NAME, WEIGHT, METHOD, PATH.required(), OWN_HEADERS, BODY, BODY_FILE, BODY_SIZE, EXPECTED];

const BETWEEN: Key = Key::new(
    "think",
    Kind::Either(&[TIMES, Kind::OneKey(&THINK)]),
    "time between the response before and a step, up to 24h",
)
.default("0s");
const ON_FAILURE: Key = Key::new(
    "on-failure",
    Kind::OneOf(words_of::<OnFailure>),
    "after a step that failed the session has come to its `end`, or its steps `continue`",
)
.default("end");

pub(super) const SESSION: [Key; 5] = [
    Key::new("name", Kind::Text, "name in results, unique").required(),
    WEIGHT,
    BETWEEN,
    ON_FAILURE,
    Key::new(
        "steps",
        Kind::List(1, &Kind::Either(&[Kind::Text, Kind::Map(&STEP)])),
        "requests, one after the other: the name of one, or a map",
    )
    .required(),
];

pub(super) const STEP: [Key; 12] = [
    Key::new("request", Kind::Text, "name of a request, instead of the keys of one"),
    NAME,
    METHOD,
    PATH,
    OWN_HEADERS,
    BODY,
    BODY_FILE,
    BODY_SIZE,
    EXPECTED,
    Key::new(
        "extract",
        Kind::MapOf(DATA_NAME, &Kind::OneKey(&EXTRACT)),
        "values taken from the response, by name: `{name}` in later steps of the session",
    ),
    BETWEEN,
    ON_FAILURE,
];

pub(super) const EXTRACT: [Key; 3] = [
    Key::new("json", Kind::Matching(pointer), "JSON pointer into the body"),
    Key::new("header", Kind::Text, "name of a header"),
    Key::new("regex", Kind::Text, "regular expression on the body, whose group is the value"),
];

pub(super) const THINK: [Key; 1] =
    [Key::new("file", Kind::Text, "file with a time per line, which are drawn from the seed")];

pub(super) const EXPECT: [Key; 5] = [
    Key::new(
        "status",
        Kind::OneOrSeveral(&Kind::Either(&[Kind::Whole(200, 999), Kind::Matching(status)])),
        "right statuses, such as 200 or 2xx; below 400 if absent",
    ),
    Key::new("min-bytes", Kind::Size, "minimum size of the response, head included"),
    Key::new("max-bytes", Kind::Size, "maximum size of the response, head included"),
    Key::new("text", Kind::OneOrSeveral(&Kind::Text), "texts that the body contains"),
    Key::new(
        "json",
        Kind::MapOf(POINTER, &Kind::Text),
        "values in the body, by JSON pointer: the text of a string, anything else as JSON",
    ),
];

fn yes() -> Vec<&'static str> {
    vec!["true"]
}

const NUMBER: Kind = Kind::Whole(0, MAX_NUMBER as u64);

pub(super) const DATA: [Key; 11] = [
    Key::new("unique", Kind::OneOf(yes), "numbers of which no two requests have the same"),
    Key::new("from", NUMBER, "first of the unique numbers").default("1"),
    Key::new("range", Kind::List(2, &NUMBER), "numbers from the first bound to the second"),
    Key::new("values", Kind::List(1, &Kind::Text), "these values"),
    Key::new("filler", SIZES, "text of a constant or random size, up to 64MiB"),
    Key::new(
        "csv",
        Kind::Text,
        "file with values separated by commas; its first line has the names of the columns",
    ),
    Key::new("column", Kind::Text, "column of the file; its only one if absent"),
    Key::new("json-lines", Kind::Text, "file with a JSON value per line"),
    Key::new(
        "pointer",
        Kind::Matching(pointer),
        "JSON pointer to the part of each line, such as `/user/id`; all of it if absent",
    ),
    Key::new(
        "order",
        Kind::OneOf(words_of::<Order>),
        "`turn`: one value after the other; `random`: drawn from the seed",
    )
    .default("turn"),
    Key::new(
        "at-end",
        Kind::OneOf(words_of::<AtEnd>),
        "after the last value `again`, from the first one, or `stop`: requests without a value are errors",
    )
    .default("again"),
];

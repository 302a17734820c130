//! Keys of a topology file in Meshmeter's own format. Those of isotope's are in [`super::dialect`].

use super::limits::{MAX_DOCUMENTS, MAX_REPLICAS, MAX_RETRIES};
use super::names::{MAX_NAME_LENGTH, MAX_NAMESPACE_LENGTH};
use crate::keys::{Key, Kind, json_schema, names};
use crate::protocol::Protocol;
use serde_json::Value;

/// Definition of a step by itself.
const ONE_STEP: &str = "one-step";
/// Definition of an item of a script: a step, or concurrent steps.
const STEP: &str = "step";
/// Definition of an item of `parallel`: a step, or a sequence.
const BRANCH: &str = "branch";
/// Definitions of constant or random amounts, and of requests and limits.
const SIZE: &str = "amount";
const TIME: &str = "time";
const RESERVED: &str = "resources";

/// Schema of a topology file in Meshmeter's own format, as JSON Schema (draft 2020-12).
#[must_use]
pub fn json_schema() -> Value {
    json_schema::document(
        "Meshmeter topology",
        "Services, the calls between them, and where drivers offer load (docs/topology.md).",
        json_schema::map(&ROOT),
        definitions(),
    )
}

/// Definitions that the schemas of files and of inline topologies refer to.
pub(crate) fn definitions() -> Vec<(&'static str, Value)> {
    vec![
        (ONE_STEP, json_schema::value(Kind::OneKey(&STEP_KEYS))),
        (STEP, json_schema::value(Kind::Either(&[Kind::Named(ONE_STEP), BRANCHES]))),
        (BRANCH, json_schema::value(Kind::Either(&[Kind::Named(ONE_STEP), STEPS]))),
        size_definition(),
        time_definition(),
        (RESERVED, json_schema::value(Kind::Map(&LIMITS))),
    ]
}

/// Definition of a constant or random size.
pub(crate) fn size_definition() -> (&'static str, Value) {
    (SIZE, json_schema::value(Kind::Either(&[Kind::Size, Kind::OneKey(&DISTRIBUTION)])))
}

/// Definition of a constant or random time.
pub(crate) fn time_definition() -> (&'static str, Value) {
    (TIME, json_schema::value(Kind::Either(&[Kind::Duration, Kind::OneKey(&DISTRIBUTION_OF_TIMES)])))
}

const STEPS: Kind = Kind::List(0, &Kind::Named(STEP));
/// A list in a script is parallel, and a list in it a sequence.
const BRANCHES: Kind = Kind::List(1, &Kind::Named(BRANCH));

/// Name of a Service.
fn name() -> String {
    format!("^[a-z]([a-z0-9-]{{0,{}}}[a-z0-9])?$", MAX_NAME_LENGTH - 2)
}

fn namespace() -> String {
    format!("^[a-z0-9]([a-z0-9-]{{0,{}}}[a-z0-9])?$", MAX_NAMESPACE_LENGTH - 2)
}

fn protocols() -> Vec<&'static str> {
    Protocol::ALL.map(Protocol::name).to_vec()
}

/// Keys of a distribution of amounts of a kind.
const fn distribution(kind: &'static Kind, log_normal: &'static [Key]) -> [Key; 3] {
    [
        Key::new("uniform", Kind::List(2, kind), "lower and upper bound"),
        Key::new("exponential", *kind, "mean"),
        Key::new("log-normal", Kind::Map(log_normal), "median and 99th percentile"),
    ]
}

const fn log_normal(kind: Kind) -> [Key; 2] {
    [
        Key::new("median", kind, "median, more than 0").required(),
        Key::new("p99", kind, "99th percentile, at least the median").required(),
    ]
}

pub(super) const LOG_NORMAL: [Key; 2] = log_normal(Kind::Size);
const LOG_NORMAL_TIMES: [Key; 2] = log_normal(Kind::Duration);
pub(super) const DISTRIBUTION: [Key; 3] = distribution(&Kind::Size, &LOG_NORMAL);
const DISTRIBUTION_OF_TIMES: [Key; 3] = distribution(&Kind::Duration, &LOG_NORMAL_TIMES);

pub(crate) const SIZES: Kind = Kind::Named(SIZE);
pub(crate) const TIMES: Kind = Kind::Named(TIME);

pub(crate) const ROOT: [Key; 6] = [
    Key::new(
        "name",
        Kind::Matching(namespace),
        "name of the topology, and of the namespaces of its copies; the file's name if absent",
    ),
    Key::new("defaults", Kind::Map(&DEFAULTS), "values for every service"),
    Key::new("services", Kind::List(1, &Kind::Map(&SERVICE)), "the services, at least one").required(),
    Key::new("databases", Kind::List(0, &Kind::Map(&DATABASE)), "databases outside the mesh"),
    Key::new(
        "drivers",
        Kind::List(1, &Kind::Map(&DRIVER)),
        "sources of load and their targets; one at the first service that no other calls if absent",
    ),
    Key::new("clients", Kind::List(0, &Kind::Map(&CLIENT)), "the workloads in which drivers run"),
];

const NAMESPACE: Key = Key::new("namespace", Kind::Matching(namespace), "namespace of the workload");
const PROTOCOL: Key =
    Key::new("protocol", Kind::OneOf(protocols), "protocol of the requests to it").default("http/1.1");
const REPLICAS: Key = Key::new("replicas", Kind::Whole(1, MAX_REPLICAS as u64), "pods").default("1");
const IN_MESH: Key =
    Key::new("in-mesh", Kind::Switch, "whether it has a proxy in modes with proxies").default("true");
const RESOURCES: Key = Key::new("resources", Kind::Named(RESERVED), "requests and limits, per container");
const SCRIPT: Key = Key::new("script", STEPS, "steps, one after the other, before the response");
const RESPONSE: Key = Key::new("response", SIZES, "size of the response's body").default("0");
const ERROR_RATE: Key =
    Key::new("error-rate", Kind::Fraction, "fraction of requests answered with an error").default("0%");
const NAME: Key = Key::new("name", Kind::Matching(name), "name, unique in its namespace").required();

pub(super) const DEFAULTS: [Key; 9] = [
    Key::new("namespace", Kind::Matching(namespace), "namespace of every workload"),
    PROTOCOL,
    REPLICAS,
    IN_MESH,
    RESOURCES,
    Key::new("request", SIZES, "size of calls").default("0"),
    RESPONSE,
    ERROR_RATE,
    SCRIPT,
];

pub(super) const SERVICE: [Key; 10] = [
    NAME,
    NAMESPACE,
    PROTOCOL,
    REPLICAS,
    IN_MESH,
    RESOURCES,
    Key::new(
        "endpoints",
        Kind::MapOf(r"^/[A-Za-z0-9/_.~:@!$&'()*+,;=%-]*$", &Kind::Map(&ENDPOINT)),
        "paths; without it the service is its own endpoint `/`",
    ),
    SCRIPT,
    RESPONSE,
    ERROR_RATE,
];

pub(super) const ENDPOINT: [Key; 3] = [SCRIPT, RESPONSE, ERROR_RATE];
pub(super) const ENDPOINT_NAMES: [&str; ENDPOINT.len()] = names(&ENDPOINT);

pub(super) const DATABASE: [Key; 3] = [NAME, NAMESPACE, RESOURCES];

pub(super) const CLIENT: [Key; 4] = [NAME, NAMESPACE, IN_MESH, RESOURCES];

pub(super) const DRIVER: [Key; 4] = [
    Key::new("name", Kind::Text, "name, unique in its namespace").default("generator"),
    Key::new("in", Kind::Text, "client that it runs in").default("client"),
    Key::new("target", Kind::Text, "service that it offers load to").required(),
    Key::new("endpoint", Kind::Text, "path that it requests").default("/"),
];

pub(super) const LIMITS: [Key; 2] = [
    Key::new("requests", Kind::Map(&AMOUNTS), "reserved, up to the limits"),
    Key::new("limits", Kind::Map(&AMOUNTS), "at most"),
];

pub(super) const AMOUNTS: [Key; 2] =
    [Key::new("cpu", Kind::Cores, "CPU"), Key::new("memory", Kind::Size, "memory")];

pub(super) const STEP_KEYS: [Key; 6] = [
    Key::new(
        "call",
        Kind::Either(&[Kind::Text, Kind::Map(&CALL)]),
        "a request to another service; if it fails, the caller's response is an error",
    ),
    Key::new("parallel", BRANCHES, "concurrent steps; a list among them is a branch of several steps"),
    Key::new("sleep", TIMES, "waits, up to 1h"),
    Key::new("cpu", TIMES, "computes for this much CPU time, up to 1h"),
    Key::new("memory", SIZES, "holds this much memory until the response, up to 1GiB"),
    Key::new("query", Kind::Map(&QUERY), "an operation on a database"),
];

const PROBABILITY: Key = Key::new("probability", Kind::Fraction, "how often it is made").default("100%");
const TIMEOUT: Key = Key::new("timeout", Kind::Duration, "timeout, per attempt").default("15s");

pub(super) const CALL: [Key; 6] = [
    Key::new("service", Kind::Text, "callee: a name, or `namespace/name`").required(),
    Key::new("endpoint", Kind::Text, "path of the callee").default("/"),
    Key::new("size", SIZES, "size of the request's body; `defaults.request` if absent"),
    PROBABILITY,
    Key::new("retries", Kind::Whole(0, MAX_RETRIES as u64), "retries after a failure").default("0"),
    TIMEOUT,
];

pub(super) const QUERY: [Key; 8] = [
    Key::new("database", Kind::Text, "database: a name, or `namespace/name`").required(),
    Key::new("find", Kind::Text, "reads documents of this collection"),
    Key::new("insert", Kind::Text, "adds documents to this collection"),
    Key::new("update", Kind::Text, "changes documents of this collection"),
    Key::new("documents", Kind::Whole(1, MAX_DOCUMENTS as u64), "number of documents").default("1"),
    Key::new("size", Kind::Size, "size of each document, up to 15MiB").default("512"),
    PROBABILITY,
    TIMEOUT,
];

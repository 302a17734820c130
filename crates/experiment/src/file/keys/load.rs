//! Keys of the sections `load`, `objective` and `resolve`.

use crate::keys::{Key, Kind};
use crate::protocol::Protocol;
use results::Pacing;

pub(in crate::file) const MAX_GENERATORS: usize = 1000;
pub(in crate::file) const MAX_THREADS: usize = 256;
/// Maximum connections or clients per generator: more would exhaust the ephemeral ports to one address.
pub(in crate::file) const MAX_CONNECTIONS: usize = 25_000;
/// More than a connection carries in any trial.
pub(in crate::file) const MAX_REQUESTS_PER_CONNECTION: usize = 1_000_000_000;

/// A status, or a class of statuses.
const STATUS: Kind = Kind::Either(&[
    Kind::Whole(200, 999),
    Kind::Matching(|| r"^\s*([2-9][0-9]{2}|[2-9](xx|XX))\s*$".to_owned()),
]);

pub(super) const LOAD: [Key; 14] = [
    Key::new(
        "protocol",
        Kind::OneOf(|| Protocol::ALL.map(Protocol::name).to_vec()),
        "protocol of the generator and of every hop",
    )
    .default("http/1.1"),
    Key::new("payload", Kind::Size, "size of each response's body, up to 1GiB").default("1KiB"),
    Key::new(
        "connections",
        Kind::Whole(1, MAX_CONNECTIONS as u64),
        "connections that each driver keeps open; 4, in closed loop one per client",
    ),
    Key::new(
        "requests-per-connection",
        Kind::Whole(1, MAX_REQUESTS_PER_CONNECTION as u64),
        "requests after which a generator replaces a connection by a new one; never if absent",
    ),
    Key::new(
        "rate",
        Kind::OneOrDistinct(&Kind::Rate),
        "open loop: requests/s of each driver. This or `clients`",
    ),
    Key::new(
        "clients",
        Kind::OneOrDistinct(&Kind::Whole(1, MAX_CONNECTIONS as u64)),
        "closed loop: clients of each driver, which send again after each response. This or `rate`",
    ),
    Key::new(
        "arrival",
        Kind::OneOf(|| vec!["uniform", "poisson"]),
        "distribution of open-loop requests: evenly spread, or at random",
    )
    .default("uniform"),
    Key::new("warmup", Kind::Duration, "time under load before the measured window").default("1s"),
    Key::new("duration", Kind::Duration, "the measured window").default("10s"),
    Key::new("timeout", Kind::Duration, "after this a request counts as failed").default("5s"),
    Key::new(
        "expect-status",
        Kind::OneOrDistinct(&STATUS),
        "statuses that responses must have, such as `200` or `3xx`: any other is an error; those below 400 if absent",
    ),
    Key::new("threads", Kind::Whole(1, MAX_THREADS as u64), "threads of each generator").default("1"),
    Key::new(
        "generators",
        Kind::Whole(1, MAX_GENERATORS as u64),
        "generators that share the load of each driver, each in its own pod",
    )
    .default("1"),
    Key::new(
        "pacing",
        Kind::OneOf(|| vec![Pacing::Economical.name(), Pacing::Precise.name()]),
        "pacing of the generators in every trial; chosen once for the run if absent",
    ),
];

const fn at_percentile(name: &'static str) -> Key {
    Key::new(
        name,
        Kind::Duration,
        "maximum response time at this percentile, in every cell and of each driver",
    )
}

pub(super) const OBJECTIVE: [Key; 10] = [
    Key::new("mean", Kind::Duration, "maximum mean response time"),
    at_percentile("p50"),
    at_percentile("p75"),
    at_percentile("p90"),
    at_percentile("p95"),
    at_percentile("p99"),
    at_percentile("p99.9"),
    at_percentile("p99.99"),
    Key::new("max", Kind::Duration, "maximum of all response times; a request without a response misses it"),
    Key::new("errors", Kind::Fraction, "maximum fraction of failed requests"),
];

pub(super) const RESOLVE: [Key; 2] = [
    Key::new("p50", Kind::Duration, "smallest difference of the median that the run should show"),
    Key::new("p99", Kind::Duration, "smallest difference of the 99th percentile that the run should show"),
];

//! Keys of the section `load`.

use crate::definition::{Arrival, LoadLevels, LoadSettings};
use crate::keys::Kind;
use crate::keys::settings::keys;
use crate::keys::words::words_of;
use crate::protocol::Protocol;
use crate::settings::service::ServerSettings;
use crate::yaml::written::Yaml;
use results::units::format_size;
use results::{ExpectedStatuses, Pacing};

/// Maximum connections or clients per generator: more would exhaust the ephemeral ports to one address.
pub(in crate::file) const MAX_CONNECTIONS: usize = 25_000;
/// More than a connection carries in any trial.
const MAX_REQUESTS_PER_CONNECTION: u64 = 1_000_000_000;

/// A status, or a class of statuses.
const STATUS: Kind = Kind::Either(&[
    Kind::Whole(200, 999),
    Kind::Matching(|| r"^\s*([2-9][0-9]{2}|[2-5](xx|XX))\s*$".to_owned()),
]);
const CLIENTS: Kind = Kind::Whole(1, MAX_CONNECTIONS as u64);

/// The section: settings of the load, and the size of the responses, which is a setting of the service.
#[derive(Clone)]
pub(in crate::file) struct LoadSection {
    pub(in crate::file) load: LoadSettings,
    pub(in crate::file) payload_bytes: u64,
}

impl Default for LoadSection {
    fn default() -> Self {
        Self { load: LoadSettings::default(), payload_bytes: ServerSettings::default().payload_bytes }
    }
}

keys!(LoadSection {
    own load.protocol: "protocol", Kind::OneOf(words_of::<Protocol>), "protocol of the generator and of every hop",
        |protocol| text(protocol.name());
    own payload_bytes: "payload", Kind::Size, "size of each response's body, up to 1GiB",
        |bytes| text(&format_size(*bytes));
    key load.connections: "connections", CLIENTS,
        "connections that each driver keeps open; 4, in closed loop one per client";
    key load.requests_per_connection: "requests-per-connection", Kind::Whole(1, MAX_REQUESTS_PER_CONNECTION),
        "requests after which a generator replaces a connection by a new one; never if absent";
    section load.stream: "stream", Kind::Named("load.stream"),
        "responses are streams of tokens, as of a language model";
    own load.levels: "rate", Kind::OneOrDistinct(&Kind::Rate), "open loop: requests/s of each driver. This or `clients`",
        written_rates;
    own load.levels: "clients", Kind::OneOrDistinct(&CLIENTS),
        "closed loop: clients of each driver, which send again after each response. This or `rate`",
        written_clients;
    own load.levels: "arrival", Kind::OneOf(words_of::<Arrival>),
        "distribution of open-loop requests: evenly spread, or at random",
        written_arrival;
    key load.warmup: "warmup", Kind::PositiveDuration, "time under load before the measured window";
    key load.duration: "duration", Kind::PositiveDuration, "the measured window";
    key load.timeout: "timeout", Kind::PositiveDuration, "after this a request counts as failed";
    own load.expected_status: "expect-status", Kind::OneOrDistinct(&STATUS),
        "statuses that responses must have, such as `200` or `3xx`: any other is an error; those below 400 if absent",
        written_statuses;
    key load.threads: "threads", Kind::Whole(1, 256), "threads of each generator";
    key load.generators: "generators", Kind::Whole(1, 1000),
        "generators that share the load of each driver, each in its own pod";
    own load.pacing: "pacing", Kind::OneOf(|| vec![Pacing::Economical.name(), Pacing::Precise.name()]),
        "pacing of the generators in every trial; chosen once for the run if absent",
        |pacing| pacing.and_then(|pacing: Pacing| text(pacing.name()));
});

fn text(text: &str) -> Option<Yaml> {
    Some(Yaml::Text(text.to_owned()))
}

fn written_rates(levels: &LoadLevels) -> Option<Yaml> {
    match levels {
        LoadLevels::Open { rates, .. } if !rates.is_empty() => {
            Some(Yaml::List(rates.iter().map(|rate| Yaml::rate(*rate)).collect()))
        }
        _ => None,
    }
}

fn written_clients(levels: &LoadLevels) -> Option<Yaml> {
    let LoadLevels::Closed { clients } = levels else { return None };
    Some(Yaml::List(clients.iter().map(|clients| Yaml::Number(*clients as u64)).collect()))
}

fn written_arrival(levels: &LoadLevels) -> Option<Yaml> {
    let LoadLevels::Open { arrival, .. } = levels else { return None };
    text(arrival.name())
}

fn written_statuses(expected: &Option<ExpectedStatuses>) -> Option<Yaml> {
    let statuses = expected.as_ref()?.patterns().iter().map(|status| Yaml::Text(status.to_string()));
    Some(Yaml::List(statuses.collect()))
}

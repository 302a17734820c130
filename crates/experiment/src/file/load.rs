//! The section `load`.

use super::keys::load::{LoadSection, MAX_CONNECTIONS};
use super::overrides::Scale;
use super::topology::{self, Entry};
use crate::definition::{Arrival, LoadLevels, LoadSettings};
use crate::diagnostic::ExperimentError;
use crate::keys::MAX_VALUES;
use crate::keys::settings;
use crate::keys::words::Words as _;
use crate::protocol::Protocol;
use crate::settings::stream::StreamSettings;
use crate::yaml::section::{Field, Item, Section};
use results::units::{parse_rate, parse_size};
use results::{ExpectedStatuses, InvalidStatus, Pacing};

type Result<T> = std::result::Result<T, Box<ExperimentError>>;

const DEFAULT_CONNECTIONS: usize = 4;
const MAX_PAYLOAD_BYTES: u64 = 1 << 30;

/// Reads the section.
pub(super) fn load(section: &Section<'_>, entry: Option<&Entry>, scale: &Scale) -> Result<LoadSettings> {
    let given = settings::read::<LoadSection>(section)?.load;
    let protocol = match section.field("protocol")? {
        Some(field) => {
            let protocol = field.choice(Protocol::WORDS)?;
            match entry {
                Some(entry) if entry.replaces(&field) => entry.protocol,
                Some(entry) if entry.protocol != protocol => {
                    return Err(topology::contradiction(&field, entry.protocol.name()));
                }
                _ => protocol,
            }
        }
        None => entry.map_or_else(Protocol::default, |entry| entry.protocol),
    };
    let levels = levels(section, scale)?;
    let expected_status =
        section.field("expect-status")?.map(|field| expected_status(&field, protocol)).transpose()?;
    let default_connections = matches!(levels, LoadLevels::Open { .. }).then_some(DEFAULT_CONNECTIONS);
    Ok(LoadSettings {
        protocol,
        connections: given.connections.or(default_connections),
        levels,
        expected_status,
        pacing: section.field("pacing")?.map(|field| pacing(&field)).transpose()?,
        stream: StreamSettings { declared: section.has("stream"), ..given.stream },
        ..given
    })
}

fn expected_status(field: &Field<'_>, protocol: Protocol) -> Result<ExpectedStatuses> {
    if !protocol.has_http_statuses() {
        return Err(field.key_place.error(
            format!("`{}` has no effect with `load.protocol: {protocol}`", field.path),
            "expected only with HTTP, whose responses have such statuses",
        ));
    }
    let patterns = distinct(field, "status", None, |item| {
        item.text.parse().map_err(|error: InvalidStatus| {
            let given = results::units::shortened(item.text);
            item.place.error(format!("`{}`: `{given}` is not a status", field.path), error.to_string())
        })
    })?;
    Ok(ExpectedStatuses::new(patterns).expect("a list in a file is not empty"))
}

fn pacing(field: &Field<'_>) -> Result<Pacing> {
    if field.text()?.trim() == Pacing::Auto.name() {
        return Err(field
            .place()
            .error(
                "`load.pacing: auto` follows the load of the machine, which differs between modes",
                "expected `economical` or `precise`",
            )
            .with_hint("leave it out: the run then chooses one pacing for all of its trials"));
    }
    field.choice(&[Pacing::Economical, Pacing::Precise].map(|pacing| (pacing.name(), pacing)))
}

/// Rates or clients, and the arrival process of rates.
fn levels(section: &Section<'_>, scale: &Scale) -> Result<LoadLevels> {
    let arrival = section.field("arrival")?;
    match (section.field("rate")?, section.field("clients")?) {
        (Some(_), Some(clients)) => Err(clients
            .key_place
            .error("`load.rate` and `load.clients` contradict each other", "expected one of the two")
            .with_hint("`rate` is open loop (requests are due at fixed times), `clients` is closed loop (each sends again when answered)")),
        (None, None) => Err(section.missing("`load.rate` or `load.clients`", "rate: [500, 1000]")),
        (Some(rate), None) => {
            let read = |item: &Item<'_>| Ok(item.quantity(&rate.path, parse_rate)? * scale.factor);
            let rates = distinct(&rate, "level", Some(scale), read)?;
            let arrival = arrival.map_or(Ok(Arrival::Uniform), |field| field.choice(Arrival::WORDS))?;
            Ok(LoadLevels::Open { rates, arrival })
        }
        (None, Some(clients)) => {
            if let Some(arrival) = arrival {
                return Err(arrival.key_place.error(
                    "`load.arrival` has no effect with `load.clients`",
                    "expected only with `rate`: clients send when they were answered",
                ));
            }
            let read = |item: &Item<'_>| {
                let given = item.whole(&clients.path, 1..=MAX_CONNECTIONS)?;
                let scaled = (given as f64 * scale.factor).round().max(1.0) as usize;
                if scaled > MAX_CONNECTIONS {
                    return Err(scale.place.as_ref().unwrap_or(item.place).error(
                        format!("`{}` would be {scaled}", clients.path),
                        format!("expected at most {MAX_CONNECTIONS}"),
                    ));
                }
                Ok(scaled)
            };
            Ok(LoadLevels::Closed { clients: distinct(&clients, "level", Some(scale), read)? })
        }
    }
}

/// Values of a list, which must be distinct. Scaling can make values equal.
fn distinct<T: PartialEq>(
    field: &Field<'_>,
    kind: &str,
    scale: Option<&Scale>,
    read: impl Fn(&Item<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let items = field.one_or_list()?;
    if items.len() > MAX_VALUES {
        return Err(field.place().error(
            format!("`{}` has {} {kind}s", field.path, items.len()),
            format!("expected at most {MAX_VALUES}"),
        ));
    }
    let mut levels = Vec::new();
    for item in items {
        let level = read(&item)?;
        if levels.contains(&level) {
            let error = item.place.error(
                format!("`{}` has the same {kind} twice", field.path),
                format!("expected each {kind} once"),
            );
            return Err(match scale {
                Some(scale) => scale.explain(error),
                None => error,
            });
        }
        levels.push(level);
    }
    Ok(levels)
}

pub(super) fn payload(field: &Field<'_>) -> Result<u64> {
    let bytes = field.quantity(parse_size)?;
    if bytes > MAX_PAYLOAD_BYTES {
        return Err(field.place().error(format!("`{}` is too large", field.path), "expected at most 1GiB"));
    }
    Ok(bytes)
}

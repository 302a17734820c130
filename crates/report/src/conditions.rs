//! Labels for the factors and load of a cell: what distinguishes it from other cells, and separately what all
//! cells have in common.

use crate::format;
use experiment::file::label::setting;
use results::units::format_duration;
use results::{BACKGROUND_SERVICES, Conditions, FactorValue, Factors, LoadPoint, StreamLoad};
use std::time::Duration;

/// Labels for the conditions of a run's cells.
#[derive(Clone, Debug)]
pub struct ConditionLabels {
    distinct: Vec<(Factors, LoadPoint)>,
    varying: Varying,
}

#[derive(Clone, Copy, Debug, Default)]
struct Varying {
    protocol: bool,
    connections: bool,
    payload: bool,
    arrival: bool,
    services: bool,
}

impl ConditionLabels {
    /// The distinct conditions, in the order in which they first appear.
    pub fn new<'a>(all: impl IntoIterator<Item = Conditions<'a>>) -> Self {
        let mut distinct: Vec<Conditions<'_>> = Vec::new();
        for conditions in all {
            if !distinct.contains(&conditions) {
                distinct.push(conditions);
            }
        }
        let differs = |field: &dyn Fn(&LoadPoint, &LoadPoint) -> bool| {
            distinct.windows(2).any(|pair| !field(pair[0].load, pair[1].load))
        };
        let varying = Varying {
            protocol: differs(&|one, other| one.protocol == other.protocol),
            // In a closed loop each client has its own connection, unless the file says otherwise.
            connections: differs(&|one, other| one.connections == other.connections)
                && distinct.iter().any(|at| at.load.clients != Some(at.load.connections)),
            payload: differs(&|one, other| one.payload_bytes == other.payload_bytes),
            arrival: differs(&|one, other| one.arrival == other.arrival),
            services: differs(&|one, other| one.surrounding_services == other.surrounding_services),
        };
        let owned = distinct.iter().map(|at| (at.factors.clone(), at.load.clone())).collect();
        Self { distinct: owned, varying }
    }

    /// The distinct conditions.
    pub fn all(&self) -> impl Iterator<Item = Conditions<'_>> {
        self.distinct.iter().map(|(factors, load)| Conditions { factors, load })
    }

    /// The distinct conditions without those of cells that are compared under several others, since factors cannot touch their
    /// mode.
    pub fn comparable(&self) -> impl Iterator<Item = Conditions<'_>> {
        self.all().filter(|at| !self.all().any(|other| other != *at && at.covers(other)))
    }

    /// `1000/s`, followed by whatever else differs: `1000/s, 16 connections, 2 workers`.
    #[must_use]
    pub fn label(&self, at: Conditions<'_>) -> String {
        self.label_without(at, "")
    }

    /// The label without one factor. Fleets differ only by their factors.
    #[must_use]
    pub fn label_without(&self, at: Conditions<'_>, left_out: &str) -> String {
        let named = at.factors.iter().filter(|(key, _)| *key != left_out);
        let level = self.level_without(at, left_out);
        let parts = Some(level).filter(|_| !at.load.is_fleet()).into_iter();
        let parts: Vec<String> = parts.chain(named.map(|(key, value)| factor(key, value, at.load))).collect();
        if parts.is_empty() { strength(at.load) } else { parts.join(", ") }
    }

    /// The label without factors: `1000/s`, followed by what else differs between the loads.
    #[must_use]
    pub fn level(&self, at: Conditions<'_>) -> String {
        self.level_without(at, "")
    }

    fn level_without(&self, at: Conditions<'_>, left_out: &str) -> String {
        let (load, varying) = (at.load, self.varying);
        let parts = [
            (varying.services, BACKGROUND_SERVICES, load.surrounding_services.map(other_services)),
            (varying.connections, "load.connections", Some(connections(load))),
            (varying.payload, "load.payload", Some(format::payload(load.payload_bytes))),
            (varying.protocol, "load.protocol", Some(load.protocol.clone())),
            (varying.arrival, "load.arrival", Some(load.arrival.clone())),
        ];
        let of_no_factor = parts
            .into_iter()
            .filter(|(varies, key, _)| *varies && *key != left_out && !at.factors.contains_key(*key));
        of_no_factor
            .filter_map(|(.., part)| part)
            .fold(strength(load), |label, part| format!("{label}, {part}"))
    }

    /// What all loads have in common: `HTTP/1.1, 4 connections, 1 KiB responses, uniform arrivals`.
    #[must_use]
    pub fn shared(&self) -> String {
        let Some((_, load)) = self.distinct.first().filter(|(_, load)| !load.is_fleet()) else {
            return String::new();
        };
        let same_connections = self.all().all(|other| other.load.connections == load.connections);
        let mut parts = Vec::new();
        if !self.varying.protocol {
            parts.push(protocol(load));
        }
        if !self.varying.connections && same_connections {
            parts.push(connections(load));
        }
        let of_all = |each| self.all().all(|other| other.load.requests_per_connection == Some(each));
        if let Some(each) = load.requests_per_connection.filter(|each| of_all(*each)) {
            parts.push(requests_per_connection(each));
        }
        match &load.stream {
            Some(stream) => parts.extend(self.of_all_streams(stream)),
            None if !self.varying.payload => {
                parts.push(format!("{} responses", format::payload(load.payload_bytes)));
            }
            None => {}
        }
        if !self.varying.arrival && load.rate.is_some() {
            parts.push(format!("{} arrivals", load.arrival));
        }
        parts.join(", ")
    }

    /// What all streams have in common: `2 kB prompts`, `20 tokens`, `the first after 50ms`, `one every 20ms`.
    fn of_all_streams(&self, stream: &StreamLoad) -> Vec<String> {
        let of_all =
            |has: &dyn Fn(&StreamLoad) -> bool| self.all().all(|at| at.load.stream.as_ref().is_some_and(has));
        // The noun is once in what is left of the parts.
        let has_tokens = of_all(&|one| one.tokens == stream.tokens);
        let has_first = of_all(&|one| one.first == stream.first);
        let noun = |is_named: bool| if is_named { "" } else { " token" };
        let parts = [
            (of_all(&|one| one.prompt_bytes == stream.prompt_bytes), {
                format!("{} prompts", format::payload(stream.prompt_bytes))
            }),
            (has_tokens, format::counted(stream.tokens as u64, "token", "tokens")),
            (has_first, format!("the first{} after {}", noun(has_tokens), stream.first)),
            (
                of_all(&|one| one.gap == stream.gap),
                format!("one{} every {}", noun(has_tokens || has_first), stream.gap),
            ),
            (stream.pause_s > 0.0 && of_all(&|one| one.pause_s == stream.pause_s), {
                format!("pauses of {}", format_duration(Duration::from_secs_f64(stream.pause_s)))
            }),
        ];
        parts.into_iter().filter(|(is_common, _)| *is_common).map(|(_, text)| text).collect()
    }
}

/// A factor's value as text.
fn factor(key: &str, value: &FactorValue, load: &LoadPoint) -> String {
    match (key, load.surrounding_services) {
        (BACKGROUND_SERVICES, Some(services)) => other_services(services),
        ("load.connections", _) => connections(load),
        ("load.requests-per-connection", _) => {
            load.requests_per_connection.map_or_else(|| setting(key, value), requests_per_connection)
        }
        ("load.payload", _) => format::payload(load.payload_bytes),
        _ => setting(key, value),
    }
}

fn other_services(services: usize) -> String {
    format!("{} background services", format::count(services as u64))
}

/// Display name of the protocol.
fn protocol(load: &LoadPoint) -> String {
    match load.protocol.as_str() {
        "grpc" => "gRPC".to_owned(),
        "tcp" => "raw TCP".to_owned(),
        http => http.to_uppercase(),
    }
}

fn strength(load: &LoadPoint) -> String {
    match (load.rate, load.clients) {
        (Some(rate), _) => format::offered_rate(rate),
        (None, Some(clients)) if load.stream.is_some() => {
            format::counted(clients as u64, "stream", "streams")
        }
        (None, Some(clients)) => format::counted(clients as u64, "client", "clients"),
        (None, None) if load.is_fleet() => "a fleet".to_owned(),
        (None, None) => "any rate".to_owned(),
    }
}

fn connections(load: &LoadPoint) -> String {
    format::counted(load.connections as u64, "connection", "connections")
}

fn requests_per_connection(each: usize) -> String {
    format!("{} per connection", format::counted(each as u64, "request", "requests"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: &Factors = &Factors::new();

    fn labels(loads: &[LoadPoint]) -> ConditionLabels {
        ConditionLabels::new(loads.iter().map(|load| Conditions { factors: NONE, load }))
    }

    fn label(labels: &ConditionLabels, load: &LoadPoint) -> String {
        labels.label(Conditions { factors: NONE, load })
    }

    fn load(rate: f64, connections: usize) -> LoadPoint {
        LoadPoint {
            protocol: "http/1.1".to_owned(),
            rate: Some(rate),
            clients: None,
            connections,
            requests_per_connection: None,
            payload_bytes: 1024,
            stream: None,
            arrival: "uniform".to_owned(),
            surrounding_services: None,
        }
    }

    #[test]
    fn protocols_have_display_names() {
        for (name, shown) in [("http/2", "HTTP/2"), ("grpc", "gRPC"), ("tcp", "raw TCP")] {
            let load = LoadPoint { protocol: name.to_owned(), ..load(500.0, 4) };
            let shared = labels(&[load]).shared();
            assert!(shared.starts_with(&format!("{shown}, 4 connections")), "{shared}");
        }
    }

    #[test]
    fn streams_name_their_tokens_whatever_varies() {
        let stream = |tokens: usize, first: &str| LoadPoint {
            stream: Some(StreamLoad {
                prompt_bytes: 1000,
                tokens,
                first: first.to_owned(),
                gap: "1ms".to_owned(),
                pause_s: 0.0,
            }),
            ..load(500.0, 4)
        };
        for (other, shared) in [
            (stream(20, "50ms"), "20 tokens, the first after 50ms, one every 1ms"),
            (stream(1, "50ms"), "the first token after 50ms, one every 1ms"),
            (stream(20, "9ms"), "20 tokens, one every 1ms"),
            (stream(1, "9ms"), "prompts, one token every 1ms"),
        ] {
            let named = labels(&[stream(20, "50ms"), other]).shared();
            assert!(named.contains(shared) && named.contains("prompts, "), "{named}");
        }
    }

    #[test]
    fn label_names_what_differs() {
        let named = labels(&[load(500.0, 4), load(1000.0, 4), load(500.0, 4)]);
        assert_eq!(named.all().count(), 2);
        assert_eq!(label(&named, &load(500.0, 4)), "500/s");
        assert_eq!(named.shared(), "HTTP/1.1, 4 connections, 1\u{a0}KiB responses, uniform arrivals");
        let among = |services| LoadPoint { surrounding_services: Some(services), ..load(500.0, 4) };
        let named = labels(&[among(0), among(1000)]);
        assert_eq!(label(&named, &among(0)), "500/s, 0 background services");
        assert_eq!(label(&named, &among(1000)), "500/s, 1000 background services");
        let named = labels(&[load(500.0, 4), load(500.0, 1)]);
        assert_eq!(label(&named, &load(500.0, 1)), "500/s, 1 connection");
    }

    #[test]
    fn replaced_connections_are_named_once() {
        let replaced = |each| LoadPoint { requests_per_connection: Some(each), ..load(500.0, 4) };
        let named = labels(&[replaced(1)]);
        assert_eq!(label(&named, &replaced(1)), "500/s");
        let shared =
            "HTTP/1.1, 4 connections, 1 request per connection, 1\u{a0}KiB responses, uniform arrivals";
        assert_eq!(named.shared(), shared);
        let at = |each: usize| {
            let value = FactorValue::from_typed(&each.to_string());
            (Factors::from([("load.requests-per-connection".to_owned(), value)]), replaced(each))
        };
        let (one, other) = (at(1), at(100));
        let conditions = [&one, &other].map(|(factors, load)| Conditions { factors, load });
        let named = ConditionLabels::new(conditions);
        assert_eq!(named.label(conditions[1]), "500/s, 100 requests per connection");
        assert!(!named.shared().contains("per connection"), "{}", named.shared());
    }

    #[test]
    fn label_names_each_factor_once() {
        let factors = |connections: usize, workers: &str| {
            Factors::from([
                ("load.connections".to_owned(), FactorValue::from_typed(&connections.to_string())),
                ("proxy.workers".to_owned(), FactorValue::from_typed(workers)),
            ])
        };
        let (one, other) = ((factors(2, "1"), load(500.0, 2)), (factors(4, "2"), load(500.0, 4)));
        let conditions = [&one, &other].map(|(factors, load)| Conditions { factors, load });
        let named = ConditionLabels::new(conditions);
        assert_eq!(named.label(conditions[1]), "500/s, 4 connections, 2 workers");
    }

    #[test]
    fn label_omits_connections_equal_to_clients() {
        let closed = |clients, connections| LoadPoint {
            rate: None,
            clients: Some(clients),
            connections,
            ..load(1.0, connections)
        };
        let named = labels(&[closed(1, 1), closed(20, 20)]);
        assert_eq!(label(&named, &closed(20, 20)), "20 clients");
        assert_eq!(named.shared(), "HTTP/1.1, 1\u{a0}KiB responses");
        let named = labels(&[closed(1, 1), closed(20, 4)]);
        assert_eq!(label(&named, &closed(20, 4)), "20 clients, 4 connections");
    }
}

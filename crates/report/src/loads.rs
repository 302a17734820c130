//! How loads are named: each by what tells it from the others, and once by what they share.

use crate::format;
use experiment::schema::LoadPoint;

/// Labels for a set of loads.
#[derive(Clone, Debug)]
pub struct LoadLabels {
    loads: Vec<LoadPoint>,
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

impl LoadLabels {
    /// The different loads among these, in the order of their first appearance.
    pub fn new<'a>(loads: impl IntoIterator<Item = &'a LoadPoint>) -> Self {
        let mut distinct: Vec<LoadPoint> = Vec::new();
        for load in loads {
            if !distinct.contains(load) {
                distinct.push(load.clone());
            }
        }
        let differs = |field: &dyn Fn(&LoadPoint, &LoadPoint) -> bool| {
            distinct.windows(2).any(|pair| !field(&pair[0], &pair[1]))
        };
        let varying = Varying {
            protocol: differs(&|one, other| one.protocol == other.protocol),
            // In a closed loop each client has a connection of its own, unless the file says otherwise.
            connections: differs(&|one, other| one.connections == other.connections)
                && distinct.iter().any(|load| load.clients != Some(load.connections)),
            payload: differs(&|one, other| one.payload_bytes == other.payload_bytes),
            arrival: differs(&|one, other| one.arrival == other.arrival),
            services: differs(&|one, other| one.surrounding_services == other.surrounding_services),
        };
        Self { loads: distinct, varying }
    }

    /// The different loads.
    #[must_use]
    pub fn loads(&self) -> &[LoadPoint] {
        &self.loads
    }

    /// `1000/s`, with whatever else differs: `1000/s, 16 connections`.
    #[must_use]
    pub fn label(&self, load: &LoadPoint) -> String {
        let mut parts = vec![strength(load)];
        if let Some(services) = load.surrounding_services.filter(|_| self.varying.services) {
            parts.push(format!("{} other services", format::count(services as u64)));
        }
        if self.varying.connections {
            parts.push(connections(load));
        }
        if self.varying.payload {
            parts.push(format::payload(load.payload_bytes));
        }
        if self.varying.protocol {
            parts.push(load.protocol.clone());
        }
        if self.varying.arrival {
            parts.push(load.arrival.clone());
        }
        parts.join(", ")
    }

    /// What all loads share: `HTTP/1.1, 4 connections, 1 KiB responses, uniform arrivals`.
    #[must_use]
    pub fn shared(&self) -> String {
        let Some(load) = self.loads.first() else { return String::new() };
        let same_connections = self.loads.iter().all(|other| other.connections == load.connections);
        let mut parts = Vec::new();
        if !self.varying.protocol {
            parts.push(protocol(load));
        }
        if !self.varying.connections && same_connections {
            parts.push(connections(load));
        }
        if !self.varying.payload {
            parts.push(format!("{} responses", format::payload(load.payload_bytes)));
        }
        if !self.varying.arrival && load.rate.is_some() {
            parts.push(format!("{} arrivals", load.arrival));
        }
        parts.join(", ")
    }
}

/// As people write it.
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
        (None, Some(clients)) => format::counted(clients as u64, "client", "clients"),
        (None, None) => "any rate".to_owned(),
    }
}

fn connections(load: &LoadPoint) -> String {
    format::counted(load.connections as u64, "connection", "connections")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(rate: f64, connections: usize) -> LoadPoint {
        LoadPoint {
            protocol: "http/1.1".to_owned(),
            rate: Some(rate),
            clients: None,
            connections,
            payload_bytes: 1024,
            arrival: "uniform".to_owned(),
            surrounding_services: None,
        }
    }

    #[test]
    fn protocols_are_named_as_people_write_them() {
        for (name, shown) in [("http/2", "HTTP/2"), ("grpc", "gRPC"), ("tcp", "raw TCP")] {
            let load = LoadPoint { protocol: name.to_owned(), ..load(500.0, 4) };
            let shared = LoadLabels::new(&[load]).shared();
            assert!(shared.starts_with(&format!("{shown}, 4 connections")), "{shared}");
        }
    }

    #[test]
    fn a_label_says_what_differs() {
        let labels = LoadLabels::new(&[load(500.0, 4), load(1000.0, 4), load(500.0, 4)]);
        assert_eq!(labels.loads().len(), 2);
        assert_eq!(labels.label(&load(500.0, 4)), "500/s");
        assert_eq!(labels.shared(), "HTTP/1.1, 4 connections, 1\u{a0}KiB responses, uniform arrivals");
        let among = |services| LoadPoint { surrounding_services: Some(services), ..load(500.0, 4) };
        let labels = LoadLabels::new(&[among(0), among(1000)]);
        assert_eq!(labels.label(&among(0)), "500/s, 0 other services");
        assert_eq!(labels.label(&among(1000)), "500/s, 1000 other services");
        let labels = LoadLabels::new(&[load(500.0, 4), load(500.0, 1)]);
        assert_eq!(labels.label(&load(500.0, 1)), "500/s, 1 connection");
    }

    #[test]
    fn a_connection_for_each_client_goes_without_saying() {
        let closed = |clients, connections| LoadPoint {
            rate: None,
            clients: Some(clients),
            connections,
            ..load(1.0, connections)
        };
        let labels = LoadLabels::new(&[closed(1, 1), closed(20, 20)]);
        assert_eq!(labels.label(&closed(20, 20)), "20 clients");
        assert_eq!(labels.shared(), "HTTP/1.1, 1\u{a0}KiB responses");
        let labels = LoadLabels::new(&[closed(1, 1), closed(20, 4)]);
        assert_eq!(labels.label(&closed(20, 4)), "20 clients, 4 connections");
    }
}

//! What an Envoy holds: its configuration counted from its own dump of it, and its heap.
//!
//! [`count`] reads a dump as it comes and keeps only counts: a gateway's may have more than a hundred megabytes. What it
//! leaves out: filters and filter chains, routes that a scope holds within itself, and endpoints that a cluster only
//! learns from the connections that pass (`ORIGINAL_DST`). Making a dump costs Envoy's main thread seconds where it is
//! large and leaves its heap a quarter larger, so it is asked for when all else has been read ([`Admin::configuration`]).

use super::admin::{Admin, AdminError};
use experiment::schema::{ConfigurationCounts, ProxyConfiguration};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt;
use std::io::{BufReader, Read};
use std::marker::PhantomData;

/// Everything, endpoints included.
const DUMP: &str = "/config_dump?include_eds";

/// The counters that say how many updates were refused. Which of them a proxy keeps is a matter of its configuration.
const REFUSED: &str = "/stats?format=json&type=Counters&filter=update_rejected$";

impl Admin {
    /// Its configuration, counted.
    ///
    /// # Errors
    /// Where there is no answer in time, or not of that shape.
    pub fn configuration(&self) -> Result<ProxyConfiguration, AdminError> {
        let refused: u64 = self.counters_at(REFUSED)?.values().sum();
        let mut configuration = self.read(DUMP, |answer| count(answer))?;
        // A proxy may keep no counter of what it refused and still show it in the dump, or have forgotten it there.
        configuration.counts.rejected_updates = configuration.counts.rejected_updates.max(Some(refused));
        Ok(configuration)
    }
}

/// Counts what a dump has, as it is read. The updates that it shows as refused are those last tried.
///
/// # Errors
/// Where it cannot be read to its end, or is no dump.
pub fn count(dump: impl Read) -> Result<ProxyConfiguration, serde_json::Error> {
    let position = Cell::new(0);
    // The counting stands behind the buffer: the JSON reader takes one byte at a time.
    let reader = Positioned { reader: BufReader::with_capacity(64 * 1024, dump), position: &position };
    let mut json = serde_json::Deserializer::from_reader(reader);
    let mut held = Held::default();
    Dump { held: &mut held, position: &position }.deserialize(&mut json)?;
    json.end()?;
    Ok(held.configuration(position.get()))
}

/// What was counted so far.
#[derive(Default)]
struct Held {
    size_bytes: u64,
    clusters: u64,
    listeners: u64,
    route_tables: u64,
    virtual_hosts: u64,
    routes: u64,
    endpoints: u64,
    secrets: u64,
    refused: u64,
    /// Clusters whose endpoints come from the connections that pass, not from the configuration.
    learning: BTreeSet<String>,
}

impl Held {
    fn configuration(&self, dump_bytes: u64) -> ProxyConfiguration {
        let counts = ConfigurationCounts {
            clusters: Some(self.clusters),
            listeners: Some(self.listeners),
            route_tables: Some(self.route_tables),
            virtual_hosts: Some(self.virtual_hosts),
            routes: Some(self.routes),
            endpoints: Some(self.endpoints),
            certificates: Some(self.secrets),
            rejected_updates: Some(self.refused),
            ..ConfigurationCounts::default()
        };
        ProxyConfiguration { size_bytes: self.size_bytes, dump_bytes, counts }
    }

    /// Counts one list of a section.
    fn list<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "static_clusters" | "dynamic_active_clusters" => {
                map.next_value_seed(Each::new(|entry: ClusterEntry| {
                    self.clusters += 1;
                    self.refused += u64::from(entry.error_state.is_some());
                    if entry.cluster.kind == "ORIGINAL_DST" {
                        self.learning.insert(entry.cluster.name);
                    }
                }))
            }
            "static_listeners" => map.next_value_seed(Each::new(|_: IgnoredAny| self.listeners += 1)),
            "dynamic_listeners" => map.next_value_seed(Each::new(|entry: Entry| {
                self.listeners += u64::from(entry.active_state.is_some());
                // One that never was in force is there a second time, without a name.
                self.refused += u64::from(entry.name.is_some() && entry.error_state.is_some());
            })),
            "static_route_configs" | "dynamic_route_configs" => {
                map.next_value_seed(Each::new(|entry: RouteEntry| {
                    self.refused += u64::from(entry.error_state.is_some());
                    let Some(table) = entry.route_config else { return };
                    self.route_tables += 1;
                    self.virtual_hosts += table.virtual_hosts.len() as u64;
                    self.routes += table.virtual_hosts.iter().map(|host| host.routes.0).sum::<u64>();
                }))
            }
            "static_endpoint_configs" | "dynamic_endpoint_configs" => {
                map.next_value_seed(Each::new(|entry: EndpointEntry| {
                    // Envoy writes the clusters before the endpoints: its sections are in the order of the alphabet.
                    if self.learning.contains(&entry.endpoint_config.cluster_name) {
                        return;
                    }
                    let localities = entry.endpoint_config.endpoints;
                    self.endpoints += localities.iter().map(|locality| locality.lb_endpoints.0).sum::<u64>();
                }))
            }
            "static_secrets" | "dynamic_active_secrets" => map.next_value_seed(Each::new(|entry: Entry| {
                self.secrets += 1;
                self.refused += u64::from(entry.error_state.is_some());
            })),
            _ => map.next_value::<IgnoredAny>().map(drop),
        }
    }
}

/// An element of most lists.
#[derive(Deserialize)]
struct Entry {
    name: Option<IgnoredAny>,
    /// A listener that takes connections.
    active_state: Option<IgnoredAny>,
    /// The last update was refused.
    error_state: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct ClusterEntry {
    #[serde(default)]
    cluster: Cluster,
    error_state: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Cluster {
    name: String,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct RouteEntry {
    route_config: Option<RouteTable>,
    error_state: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct RouteTable {
    #[serde(default)]
    virtual_hosts: Vec<VirtualHost>,
}

#[derive(Deserialize)]
struct VirtualHost {
    #[serde(default)]
    routes: Length,
}

#[derive(Deserialize)]
struct EndpointEntry {
    #[serde(default)]
    endpoint_config: Assignment,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Assignment {
    cluster_name: String,
    endpoints: Vec<Locality>,
}

#[derive(Deserialize)]
struct Locality {
    #[serde(default)]
    lb_endpoints: Length,
}

/// The length of a list, whatever is in it.
#[derive(Default)]
struct Length(u64);

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut length = 0;
        Each::new(|_: IgnoredAny| length += 1).deserialize(deserializer)?;
        Ok(Self(length))
    }
}

/// The whole answer: an object whose `configs` is a list of sections.
struct Dump<'a> {
    held: &'a mut Held,
    position: &'a Cell<u64>,
}

impl<'de> DeserializeSeed<'de> for Dump<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Dump<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a configuration dump")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { held, position } = self;
        let mut found = false;
        while let Some(key) = map.next_key::<String>()? {
            if key == "configs" {
                found = true;
                map.next_value_seed(Sections(Dump { held: &mut *held, position }))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        if found { Ok(()) } else { Err(serde::de::Error::missing_field("configs")) }
    }
}

/// The list of sections.
struct Sections<'a>(Dump<'a>);

impl<'de> DeserializeSeed<'de> for Sections<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Sections<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the sections of a configuration dump")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Dump { held, position } = self.0;
        while seq.next_element_seed(Section(Dump { held: &mut *held, position }))?.is_some() {}
        Ok(())
    }
}

/// One section: `ClustersConfigDump`, `RoutesConfigDump` and so on, each with lists of its own.
struct Section<'a>(Dump<'a>);

impl<'de> DeserializeSeed<'de> for Section<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Section<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a section of a configuration dump")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Dump { held, position } = self.0;
        // The opening brace was read, and the closing one is when the map ends.
        let begins_at = position.get().saturating_sub(1);
        let mut is_size = true;
        while let Some(key) = map.next_key::<String>()? {
            if key == "@type" {
                let kind: String = map.next_value()?;
                is_size = !kind.ends_with(".BootstrapConfigDump") && !kind.ends_with(".SecretsConfigDump");
            } else {
                held.list(&key, &mut map)?;
            }
        }
        if is_size {
            held.size_bytes += position.get().saturating_sub(begins_at);
        }
        Ok(())
    }
}

/// A list whose elements are looked at one after the other.
struct Each<T, F>(F, PhantomData<T>);

impl<T, F: FnMut(T)> Each<T, F> {
    fn new(look: F) -> Self {
        Self(look, PhantomData)
    }
}

impl<'de, T: Deserialize<'de>, F: FnMut(T)> DeserializeSeed<'de> for Each<T, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T: Deserialize<'de>, F: FnMut(T)> Visitor<'de> for Each<T, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<(), A::Error> {
        while let Some(element) = seq.next_element()? {
            (self.0)(element);
        }
        Ok(())
    }
}

/// Tells how far it was read.
struct Positioned<'a, R> {
    reader: R,
    position: &'a Cell<u64>,
}

impl<R: Read> Read for Positioned<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.position.set(self.position.get() + read as u64);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Envoy's own, with a shorter list of extensions and other text for the certificate.
    const RECORDED: &str = include_str!("../../tests/fixtures/envoy_config_dump.json");

    #[test]
    fn a_recorded_dump_is_counted() {
        let configuration = count(RECORDED.as_bytes()).unwrap();
        let counts = ConfigurationCounts {
            // Three services with three endpoints each in two localities, and one by its name.
            clusters: Some(4),
            endpoints: Some(10),
            // A third was refused.
            listeners: Some(2),
            rejected_updates: Some(1),
            // One that the proxy asked for, with two routes for each service, and one within a listener.
            route_tables: Some(2),
            virtual_hosts: Some(4),
            routes: Some(7),
            certificates: Some(1),
            ..ConfigurationCounts::default()
        };
        assert_eq!(configuration.counts, counts);
        assert_eq!(configuration.dump_bytes, RECORDED.len() as u64);
        assert_eq!(configuration.size_bytes, 2126 + 5435 + 6450 + 77 + 2211, "all but bootstrap and secrets");
    }

    #[test]
    fn lists_that_are_left_out_are_empty() {
        let configuration = count(br#"{"configs":[{"@type":"x.ClustersConfigDump"}]}"#.as_slice()).unwrap();
        assert_eq!(configuration.counts.clusters, Some(0));
        assert_eq!(configuration.counts.workloads, None);
        assert_eq!((configuration.size_bytes, configuration.dump_bytes), (32, 46));
    }

    #[test]
    fn endpoints_that_connections_left_behind_are_no_configuration() {
        let endpoints = |name: &str| {
            let endpoints = json!([{"lb_endpoints": [{}, {}]}]);
            json!({"endpoint_config": {"cluster_name": name, "endpoints": endpoints}})
        };
        let cluster = |name: &str, kind: &str| json!({"cluster": {"name": name, "type": kind}});
        let dump = json!({"configs": [
            {"dynamic_active_clusters": [cluster("inbound", "ORIGINAL_DST"), cluster("outbound", "EDS")]},
            {"dynamic_endpoint_configs": [endpoints("inbound"), endpoints("outbound")]},
        ]});
        let configuration = count(dump.to_string().as_bytes()).unwrap();
        assert_eq!((configuration.counts.clusters, configuration.counts.endpoints), (Some(2), Some(2)));
    }

    #[test]
    fn what_is_no_dump_is_an_error() {
        let cases: [(&str, &str); 5] = [
            ("", "EOF while parsing a value"),
            ("{}", "missing field `configs`"),
            (r#"{"configs":7}"#, "expected the sections of a configuration dump"),
            (r#"{"configs":[{"static_clusters":{}}]}"#, "expected a list"),
            (&RECORDED[..RECORDED.len() / 2], "EOF while parsing"),
        ];
        for (text, expected) in cases {
            let error = count(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}

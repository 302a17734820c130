//! An Envoy's configuration, counted from its dump.
//! [`count`] reads a dump as it comes, copies it without its secrets and keeps only counts: a gateway's may have more than
//! a hundred megabytes. Not counted: filters and filter chains, routes within a scope, and endpoints that a cluster learns
//! from the connections that pass (`ORIGINAL_DST`). A large dump costs Envoy's main thread seconds and leaves its heap a
//! quarter larger, so it is requested once, when all else has been read ([`configuration`]).

use crate::admin::{Admin, AdminError};
use crate::config_dump::list::{Each, Length, Object, ReadEntries, Sections};
use crate::config_dump::{self, DumpCopy, Tee};
use experiment::schema::{ConfigurationCounts, ProxyConfiguration};
use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::Read;

const DUMP: &str = "/config_dump?include_eds";
/// The counters that say how many updates were refused. Which of them a proxy keeps is a matter of its configuration.
const REFUSED: &str = "/stats?format=json&type=Counters&filter=update_rejected$";

pub(crate) fn configuration(
    admin: &Admin,
    copy: &mut dyn DumpCopy,
) -> Result<ProxyConfiguration, AdminError> {
    let refused = admin.counters_at(REFUSED)?.values().copied().fold(0, u64::saturating_add);
    let mut configuration = admin.read(DUMP, |response| count(response, copy))?;
    // A proxy may keep no counter of what it refused and still show it in the dump, or have forgotten it there.
    configuration.counts.rejected_updates = configuration.counts.rejected_updates.max(Some(refused));
    Ok(configuration)
}

/// Counts a dump and copies it as it is read. Rejected updates are those last tried.
fn count(dump: impl Read, copy: &mut dyn DumpCopy) -> Result<ProxyConfiguration, serde_json::Error> {
    let held = RefCell::default();
    let tee = Tee::new(copy);
    let dump_bytes = config_dump::read(dump, &tee, Object(Dump { held: &held, tee: &tee }))?;
    Ok(held.into_inner().configuration(dump_bytes))
}

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
    fn configuration(self, dump_bytes: u64) -> ProxyConfiguration {
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

#[derive(Deserialize)]
struct Entry {
    name: Option<IgnoredAny>,
    active_state: Option<IgnoredAny>,
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

#[derive(Clone, Copy)]
struct Dump<'a, 'c> {
    held: &'a RefCell<Held>,
    tee: &'a Tee<'c>,
}

impl ReadEntries for Dump<'_, '_> {
    fn read_entries<'de, A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut found = false;
        while let Some(key) = map.next_key::<String>()? {
            if key == "configs" {
                found = true;
                map.next_value_seed(Sections(Section(self)))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        if found { Ok(()) } else { Err(serde::de::Error::missing_field("configs")) }
    }
}

/// One section: `ClustersConfigDump`, `RoutesConfigDump` and so on, each with lists of its own.
#[derive(Clone, Copy)]
struct Section<'a, 'c>(Dump<'a, 'c>);

impl ReadEntries for Section<'_, '_> {
    fn read_entries<'de, A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Dump { held, tee } = self.0;
        let mut held = held.borrow_mut();
        // The opening brace was read, and the closing one is when the map ends.
        let begins_at = tee.position().saturating_sub(1);
        // Envoy begins a section with its type. One that does not might be anything, and is not copied.
        tee.hold();
        let (mut is_first, mut is_size) = (true, true);
        while let Some(key) = map.next_key::<String>()? {
            if key == "@type" {
                let kind: String = map.next_value()?;
                let is_secret = kind.ends_with(".SecretsConfigDump");
                is_size = !is_secret && !kind.ends_with(".BootstrapConfigDump");
                if is_first && is_secret {
                    tee.redact(&format!("\"@type\": {}", Value::from(kind)));
                } else if is_first {
                    tee.release();
                }
            } else {
                if is_first {
                    tee.redact("");
                }
                held.list(&key, &mut map)?;
            }
            is_first = false;
        }
        tee.resume("}");
        if is_size {
            held.size_bytes += tee.position().saturating_sub(begins_at);
        }
        Ok(())
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
        let configuration = count(RECORDED.as_bytes(), &mut Vec::new()).unwrap();
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
        let configuration =
            count(br#"{"configs":[{"@type":"x.ClustersConfigDump"}]}"#.as_slice(), &mut Vec::new()).unwrap();
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
        let configuration = count(dump.to_string().as_bytes(), &mut Vec::new()).unwrap();
        assert_eq!((configuration.counts.clusters, configuration.counts.endpoints), (Some(2), Some(2)));
    }

    #[test]
    fn the_copy_is_what_envoy_wrote_without_its_secrets() {
        let mut copy = Vec::new();
        count(RECORDED.as_bytes(), &mut copy).unwrap();
        let copy = String::from_utf8(copy).unwrap();
        assert!(RECORDED.contains("dynamic_active_secrets") && !copy.contains("dynamic_active_secrets"));
        let mut expected: Value = serde_json::from_str(RECORDED).unwrap();
        for section in expected["configs"].as_array_mut().unwrap() {
            if section["@type"].as_str().unwrap().ends_with(".SecretsConfigDump") {
                *section = json!({"@type": section["@type"]});
            }
        }
        assert_eq!(serde_json::from_str::<Value>(&copy).unwrap(), expected);
        let secrets = RECORDED.find(".SecretsConfigDump").unwrap();
        let before = &RECORDED[..RECORDED[..secrets].rfind('{').unwrap()];
        assert!(copy.starts_with(before), "what is copied is as Envoy wrote it");
    }

    #[test]
    fn a_section_that_does_not_begin_with_its_type_is_counted_and_not_copied() {
        let cases = [
            (
                r#"{"configs":[{"static_clusters":[{}],"@type":"x.SecretsConfigDump"}],"a":1}"#,
                r#"{"configs":[{}],"a":1}"#,
            ),
            (r#"{"configs":[{ }, {"static_clusters":[{}]}]}"#, r#"{"configs":[{ }, {}]}"#),
            (
                r#"{"configs":[{"@type":"a\"b.SecretsConfigDump","x":1}]}"#,
                r#"{"configs":[{"@type": "a\"b.SecretsConfigDump"}]}"#,
            ),
        ];
        for (dump, expected) in cases {
            let mut copy = Vec::new();
            let configuration = count(dump.as_bytes(), &mut copy).unwrap();
            assert_eq!(String::from_utf8(copy).unwrap(), expected);
            assert_eq!(configuration.dump_bytes, dump.len() as u64);
        }
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
            let error = count(text.as_bytes(), &mut Vec::new()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}

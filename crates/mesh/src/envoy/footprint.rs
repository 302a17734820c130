//! An Envoy's configuration, counted from its config dump.
//! [`count`] reads a dump section by section, copies it without its secrets and keeps only counts: a
//! gateway's dump may exceed a hundred megabytes. Filters, filter chains, routes within a scope, and
//! endpoints that a cluster learns from connections (`ORIGINAL_DST`) are not counted.
//! A large dump costs Envoy's main thread seconds and leaves its heap a quarter larger. It is therefore
//! requested once, after everything else has been read ([`configuration`]).

use crate::admin::{Admin, AdminError};
use crate::config_dump::{self, DumpCopy, SECTIONS};
use results::{ConfigurationCounts, ProxyConfiguration};
use serde::Deserialize;
use serde::de::{Error as _, IgnoredAny};
use serde_json::json;
use std::collections::BTreeSet;
use std::io::Read;

const DUMP: &str = "/config_dump?include_eds";
/// Counters of rejected updates. The proxy's configuration determines which of them it keeps.
const REJECTED: &str = "/stats?format=json&type=Counters&filter=update_rejected$";

pub(crate) fn configuration(
    admin: &Admin,
    copy: &mut dyn DumpCopy,
) -> Result<ProxyConfiguration, AdminError> {
    let rejected = admin.counters_at(REJECTED)?.values().copied().fold(0, u64::saturating_add);
    let mut configuration = admin.read(DUMP, |response| count(response, copy))?;
    // A proxy may drop the counter of an update that its dump shows as rejected, or the reverse.
    configuration.counts.rejected_updates = configuration.counts.rejected_updates.max(Some(rejected));
    Ok(configuration)
}

/// Counts a dump and copies it as a stream, without certificates and keys. Counts an update as rejected if it
/// was the last one tried.
pub(crate) fn count(dump: impl Read, copy: &mut dyn DumpCopy) -> serde_json::Result<ProxyConfiguration> {
    let mut sections = Sections::new();
    let dump_bytes = config_dump::read(dump, &mut |key, text| {
        if key != SECTIONS {
            return Ok(());
        }
        copy.push(if sections.any { b",\n  " } else { b"{\n \"configs\": [\n  " });
        let copied = sections.add(text)?;
        copy.push(copied.as_deref().unwrap_or(text).as_bytes());
        Ok(())
    })?;
    if !sections.any {
        return Err(serde_json::Error::missing_field(SECTIONS));
    }
    copy.push(b"\n ]\n}\n");
    Ok(ProxyConfiguration { size_bytes: sections.size_bytes, dump_bytes, counts: sections.counts })
}

/// Counts of the sections read so far.
struct Sections {
    any: bool,
    size_bytes: u64,
    counts: ConfigurationCounts,
    /// Clusters that learn their endpoints from connections (`ORIGINAL_DST`), not from the configuration.
    learning: BTreeSet<String>,
}

impl Sections {
    fn new() -> Self {
        let counts = ConfigurationCounts {
            clusters: Some(0),
            listeners: Some(0),
            route_tables: Some(0),
            virtual_hosts: Some(0),
            routes: Some(0),
            endpoints: Some(0),
            certificates: Some(0),
            rejected_updates: Some(0),
            ..ConfigurationCounts::default()
        };
        Self { any: false, size_bytes: 0, counts, learning: BTreeSet::new() }
    }

    /// Adds a section. Returns the replacement for its text in the copy, if it must not be copied: secrets
    /// are not, nor is a section without a type, which might hold anything.
    fn add(&mut self, text: &str) -> serde_json::Result<Option<String>> {
        let section: Section = serde_json::from_str(text)?;
        let is_secret = section.kind.ends_with(".SecretsConfigDump");
        self.any = true;
        if !is_secret && !section.kind.ends_with(".BootstrapConfigDump") {
            self.size_bytes += text.len() as u64;
        }
        let copied = match &*section.kind {
            "" => Some("{}".to_owned()),
            kind => is_secret.then(|| json!({"@type": kind}).to_string()),
        };
        self.add_entries(section);
        Ok(copied)
    }

    fn add_entries(&mut self, section: Section) {
        let Self { counts, learning, .. } = self;
        let rejected = &mut counts.rejected_updates;
        for entry in section.static_clusters.into_iter().chain(section.dynamic_active_clusters) {
            add(&mut counts.clusters, 1);
            add(rejected, usize::from(entry.error_state.is_some()));
            if entry.cluster.kind == "ORIGINAL_DST" {
                learning.insert(entry.cluster.name);
            }
        }
        add(&mut counts.listeners, section.static_listeners.len());
        for entry in section.dynamic_listeners {
            add(&mut counts.listeners, usize::from(entry.active_state.is_some()));
            // A listener that never became active appears a second time, without a name.
            add(rejected, usize::from(entry.name.is_some() && entry.error_state.is_some()));
        }
        for entry in section.static_route_configs.into_iter().chain(section.dynamic_route_configs) {
            add(rejected, usize::from(entry.error_state.is_some()));
            let Some(table) = entry.route_config else { continue };
            add(&mut counts.route_tables, 1);
            add(&mut counts.virtual_hosts, table.virtual_hosts.len());
            add(&mut counts.routes, table.virtual_hosts.iter().map(|host| host.routes.len()).sum());
        }
        for entry in section.static_endpoint_configs.into_iter().chain(section.dynamic_endpoint_configs) {
            let Assignment { cluster_name, endpoints } = entry.endpoint_config;
            // Clusters come before endpoints: Envoy writes its sections in alphabetical order.
            if !learning.contains(&cluster_name) {
                add(
                    &mut counts.endpoints,
                    endpoints.iter().map(|locality| locality.lb_endpoints.len()).sum(),
                );
            }
        }
        for entry in section.static_secrets.into_iter().chain(section.dynamic_active_secrets) {
            add(&mut counts.certificates, 1);
            add(rejected, usize::from(entry.error_state.is_some()));
        }
    }
}

fn add(count: &mut Option<u64>, by: usize) {
    *count = count.map(|count| count + by as u64);
}

/// One section, such as `ClustersConfigDump` or `RoutesConfigDump`, each with its own lists.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Section {
    #[serde(rename = "@type")]
    kind: String,
    static_clusters: Vec<Entry>,
    dynamic_active_clusters: Vec<Entry>,
    static_listeners: Vec<IgnoredAny>,
    dynamic_listeners: Vec<Entry>,
    static_route_configs: Vec<Entry>,
    dynamic_route_configs: Vec<Entry>,
    static_endpoint_configs: Vec<Entry>,
    dynamic_endpoint_configs: Vec<Entry>,
    static_secrets: Vec<Entry>,
    dynamic_active_secrets: Vec<Entry>,
}

/// An entry of any list, with the fields that are counted.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Entry {
    name: Option<IgnoredAny>,
    active_state: Option<IgnoredAny>,
    error_state: Option<IgnoredAny>,
    cluster: Cluster,
    route_config: Option<RouteTable>,
    endpoint_config: Assignment,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Cluster {
    name: String,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RouteTable {
    virtual_hosts: Vec<VirtualHost>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct VirtualHost {
    routes: Vec<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Assignment {
    cluster_name: String,
    endpoints: Vec<Locality>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Locality {
    lb_endpoints: Vec<IgnoredAny>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// A recorded Envoy dump, with a shortened list of extensions and a replaced certificate.
    const RECORDED: &str = include_str!("../../tests/fixtures/envoy_config_dump.json");

    #[test]
    fn recorded_dump_is_counted() {
        let configuration = count(RECORDED.as_bytes(), &mut Vec::new()).unwrap();
        let counts = ConfigurationCounts {
            // Three services with three endpoints each in two localities, and one service resolved by name.
            clusters: Some(4),
            endpoints: Some(10),
            // A third one was rejected.
            listeners: Some(2),
            rejected_updates: Some(1),
            // One requested over RDS, with two routes per service, and one inline in a listener.
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
    fn absent_lists_count_as_empty() {
        let configuration =
            count(br#"{"configs":[{"@type":"x.ClustersConfigDump"}]}"#.as_slice(), &mut Vec::new()).unwrap();
        assert_eq!(configuration.counts.clusters, Some(0));
        assert_eq!(configuration.counts.workloads, None);
        assert_eq!((configuration.size_bytes, configuration.dump_bytes), (32, 46));
    }

    #[test]
    fn endpoints_learned_from_connections_are_not_counted() {
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
    fn copy_is_dump_without_secrets() {
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
        assert!(copy.starts_with(before) && copy.ends_with("}\n ]\n}\n"), "it is as Envoy wrote it");
    }

    #[test]
    fn section_of_secrets_or_without_type_is_counted_but_not_copied() {
        let cases = [
            (
                r#"{"configs":[{"static_clusters":[{}],"@type":"x.SecretsConfigDump"}],"a":1}"#,
                r#"{"@type":"x.SecretsConfigDump"}"#,
            ),
            (r#"{"configs":[{"static_clusters":[{}]}]}"#, "{}"),
            (
                r#"{"configs":[{"@type":"a\"b.SecretsConfigDump","static_clusters":[{}]}]}"#,
                r#"{"@type":"a\"b.SecretsConfigDump"}"#,
            ),
        ];
        for (dump, expected) in cases {
            let mut copy = Vec::new();
            let configuration = count(dump.as_bytes(), &mut copy).unwrap();
            let expected = format!("{{\n \"configs\": [\n  {expected}\n ]\n}}\n");
            assert_eq!(String::from_utf8(copy).unwrap(), expected);
            assert_eq!(configuration.dump_bytes, dump.len() as u64);
            assert_eq!(configuration.counts.clusters, Some(1));
        }
    }

    #[test]
    fn invalid_dump_is_error() {
        let cases: [(&str, &str); 5] = [
            ("", "EOF while parsing a value"),
            ("{}", "missing field `configs`"),
            (r#"{"configs":7}"#, "expected the sections of a configuration dump"),
            (r#"{"configs":[{"static_clusters":{}}]}"#, "expected a sequence"),
            (&RECORDED[..RECORDED.len() / 2], "EOF while parsing"),
        ];
        for (text, expected) in cases {
            let error = count(text.as_bytes(), &mut Vec::new()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}

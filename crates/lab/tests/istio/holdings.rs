//! The configuration of each proxy as reported by the proxy itself. Its counts match the kept copy, which has
//! no keys.

use crate::modes::{settings, spec};
use crate::trial::{Trial, trial};
use experiment::MeshSettings;
use experiment::environment::DeploymentSpec;
use experiment::mesh_settings::BackgroundSettings;
use lab::Lab;
use lab::environment::LocalLab;
use results::{ComponentUsage, Mode, ProxyConfiguration, ProxyFootprint};
use serde_json::Value;
use std::sync::Arc;

fn surrounded(mode: Mode) -> DeploymentSpec {
    let background_services = BackgroundSettings { services: 7, endpoints: 3 };
    let settings = MeshSettings { background_services, ..settings() };
    DeploymentSpec { istio: Arc::new(settings), ..spec(mode) }
}

fn holdings(component: &ComponentUsage) -> &ProxyFootprint {
    let held = component.holdings.as_ref().expect("a proxy says what it holds");
    assert_eq!(held.unread, Vec::<String>::new(), "{}", component.name);
    held
}

fn configuration(trial: &Trial, name: &str) -> ProxyConfiguration {
    holdings(trial.component(name)).configuration.expect("it tells of its configuration")
}

/// The kept configuration, after checking that it contains nothing that looks like a certificate or a key.
fn kept(trial: &Trial, name: &str) -> Value {
    let text = &trial.configurations[name];
    // As PEM and as base64 of PEM, which are the forms in which proxies write them.
    for secret in ["-----BEGIN", "LS0tLS1CRUdJTi", "private_key", "privateKey"] {
        assert!(!text.contains(secret), "{secret} is in the configuration that was kept of {name}");
    }
    serde_json::from_str(text).expect("what is kept is JSON")
}

/// Anonymous memory is a part of resident memory. It need not be a part of the working set: pages that an
/// allocator gave back lazily are reclaimable at once.
fn check_memory(component: &ComponentUsage) {
    let moments = [component.memory_before_load_bytes, component.memory_after_load_bytes];
    assert!(moments.iter().all(|memory| *memory > Some(5_000_000)), "{component:?}");
    let anonymous = component.memory_anonymous_bytes.expect("the control group or the processes tell it");
    assert!((1_000_000..component.memory_resident_bytes).contains(&anonymous), "{component:?}");
    assert!(component.memory_working_set_bytes.is_none_or(|bytes| bytes > 1_000_000), "{component:?}");
    let moments = [component.memory_anonymous_before_load_bytes, component.memory_anonymous_after_load_bytes];
    assert!(moments.iter().all(|memory| *memory > Some(1_000_000)), "{component:?}");
    if !component.processes.is_empty() {
        // The kernel sums up its per-CPU counts only from time to time.
        let of_processes = component.processes.iter().filter_map(|process| process.memory_anonymous_bytes);
        assert!(of_processes.sum::<u64>().abs_diff(anonymous) < 5_000_000, "{component:?}");
    }
}

/// The elements of a list in a section of Envoy's config dump.
fn list<'a>(kept: &'a Value, name: &str) -> Vec<&'a Value> {
    let sections = kept["configs"].as_array().expect("Envoy's dump has sections");
    sections.iter().filter_map(|section| section[name].as_array()).flatten().collect()
}

/// Number of these elements that belong to background services, by a text in each element.
fn surroundings<'a>(all: impl IntoIterator<Item = &'a Value>, text: impl Fn(&Value) -> &Value) -> usize {
    let is_other = |one: &&Value| text(one).as_str().is_some_and(|text| text.contains("surroundings"));
    all.into_iter().filter(is_other).count()
}

pub fn sidecar_configuration_matches_mesh(_lab: &Lab, local_lab: &LocalLab) {
    let trial = trial(local_lab, &surrounded(Mode::Sidecar), |_| ());
    for name in ["client-proxy", "server-proxy"] {
        check_memory(trial.component(name));
        assert!(holdings(trial.component(name)).heap_after_load.is_some(), "Envoy tells of its heap");
        let configuration = configuration(&trial, name);
        assert!(configuration.dump_bytes > configuration.size_bytes, "{configuration:?}");
        let counts = configuration.counts;
        assert_eq!(counts.certificates, Some(2), "its own, and those that it trusts");
        let kept = kept(&trial, name);
        let clusters = [list(&kept, "static_clusters"), list(&kept, "dynamic_active_clusters")].concat();
        assert_eq!(counts.clusters, Some(clusters.len() as u64));
        assert_eq!(surroundings(clusters, |cluster| &cluster["cluster"]["name"]), 7);
        let tables = [list(&kept, "static_route_configs"), list(&kept, "dynamic_route_configs")].concat();
        assert_eq!(counts.route_tables, Some(tables.len() as u64));
        let hosts = tables.iter().filter_map(|table| table["route_config"]["virtual_hosts"].as_array());
        let hosts: Vec<&Value> = hosts.flatten().collect();
        assert_eq!(counts.virtual_hosts, Some(hosts.len() as u64));
        assert_eq!(surroundings(hosts, |host| &host["name"]), 7);
        let endpoints = list(&kept, "dynamic_endpoint_configs");
        let of_others = endpoints.iter().map(|endpoints| &endpoints["endpoint_config"]);
        let of_others =
            of_others.filter(|config| surroundings([*config], |config| &config["cluster_name"]) > 0);
        let localities = of_others.filter_map(|config| config["endpoints"].as_array()).flatten();
        let addresses: usize = localities.map(|one| one["lb_endpoints"].as_array().map_or(0, Vec::len)).sum();
        assert_eq!(addresses, 21);
        assert!(counts.endpoints >= Some(21), "{counts:?}");
    }
}

pub fn ztunnel_configuration_matches_mesh(_lab: &Lab, local_lab: &LocalLab) {
    let trial = trial(local_lab, &surrounded(Mode::Ambient), |_| ());
    let ztunnel = trial.component("ztunnel");
    check_memory(ztunnel);
    assert_eq!(holdings(ztunnel).heap_after_load, None, "it tells of no heap");
    let configuration = configuration(&trial, "ztunnel");
    assert!(configuration.dump_bytes > configuration.size_bytes, "{configuration:?}");
    let kept = kept(&trial, "ztunnel");
    let list = |name: &str| kept[name].as_array().expect("ztunnel's dump has such a list");
    let length = |name: &str| Some(list(name).len() as u64);
    let counts = configuration.counts;
    assert_eq!(counts.services, length("services"));
    assert_eq!(counts.workloads, length("workloads"));
    assert_eq!(counts.policies, length("policies"));
    assert_eq!(counts.certificates, Some(2), "one for each pod");
    assert_eq!(surroundings(list("services"), |service| &service["namespace"]), 7, "of all namespaces");
    assert_eq!(surroundings(list("workloads"), |workload| &workload["namespace"]), 21);
    assert_eq!(counts.endpoints, Some(22), "three for each of those, and the server");
    assert!(list("certificates").is_empty(), "they were not kept");
    assert!(trial.observation.evidence.push.expect("istiod configured it").in_force_s["ztunnel"] > 0.0);
}

//! Settings of proxies, control plane and service that differ from their defaults, as text. They have a cost,
//! so nobody should have to look for them in the experiment's YAML.

use crate::format;
use experiment::environment::{ProxySettings, ServerSettings};
use experiment::mesh_settings::{IngressApi, IngressTls, LuaScript, TelemetrySetting, WorkloadKeys};
use experiment::{Experiment, MeshKind, MeshSettings};
use results::Mode;
use results::units::format_duration;

/// Settings of the control plane; empty if all are defaults.
pub fn of_control_plane(experiment: &Experiment, modes: &[Mode]) -> String {
    of_all_values(experiment, |one| control_plane(one, modes))
}

/// Settings that slow down proxies or the service; empty if there are none.
pub fn of_service(experiment: &Experiment) -> String {
    of_all_values(experiment, |one| service(&one.server, &one.proxy))
}

/// Parts of each combination of the factors' values; those that only some have are marked.
pub(super) fn of_all_values(experiment: &Experiment, parts: impl Fn(&Experiment) -> Vec<String>) -> String {
    let of_each: Vec<Vec<String>> = experiment.each_combination().map(|(_, one)| parts(one)).collect();
    let mut distinct: Vec<&String> = Vec::new();
    for part in of_each.iter().flatten() {
        if !distinct.contains(&part) {
            distinct.push(part);
        }
    }
    let text = |part: &String| match of_each.iter().all(|parts| parts.contains(part)) {
        true => part.clone(),
        false => format!("{part} (in some cells)"),
    };
    distinct.into_iter().map(text).collect::<Vec<_>>().join(", ")
}

fn control_plane(experiment: &Experiment, modes: &[Mode]) -> Vec<String> {
    if experiment.mesh != MeshKind::Istio {
        return Vec::new();
    }
    let settings = &experiment.istio;
    let mut parts = of_requests(settings);
    match settings.telemetry {
        TelemetrySetting::Auto => {}
        TelemetrySetting::On => parts.push("Istio’s telemetry".to_owned()),
        TelemetrySetting::Off => parts.push("no telemetry of Istio’s".to_owned()),
    }
    if settings.sidecar_scope {
        parts.push("sidecars with only their own namespace".to_owned());
    }
    if settings.dns_capture {
        let allocated = if settings.dns_auto_allocate { ", addresses auto-allocated" } else { "" };
        parts.push(format!("DNS captured by the proxies{allocated}"));
    }
    if settings.workload_keys == WorkloadKeys::Ecdsa {
        parts.push("ECDSA keys of the proxies".to_owned());
    }
    let around = settings.background_services;
    if around.services > 0 {
        let services = counted(around.services, "background service", "background services");
        parts.push(format!("{services} of {} each", counted(around.endpoints, "address", "addresses")));
    }
    if modes.contains(&Mode::Ingress) {
        let tls = match settings.ingress.tls {
            IngressTls::Off => "no TLS from clients",
            IngressTls::Simple => "TLS from clients",
            IngressTls::Mutual => "mutual TLS with clients",
        };
        let api = match settings.ingress.api {
            IngressApi::Istio => "Istio's own objects",
            IngressApi::Kubernetes => "the Gateway API",
        };
        parts.push(format!("an ingress gateway ({tls}, described by {api})"));
    }
    if let Some(extra) = &settings.extra {
        parts.push(counted(extra.objects.len(), "further object", "further objects"));
    }
    parts
}

/// Settings that act on each request or connection.
fn of_requests(settings: &MeshSettings) -> Vec<String> {
    let mut parts = Vec::new();
    let mut add = |part: Option<String>| parts.extend(part);
    let rules = |count: usize, sort: &str| {
        (count > 0)
            .then(|| format!("{} by {sort}", counted(count, "authorization rule", "authorization rules")))
    };
    add(settings.tracing_fraction.map(|share| format!("{} of the requests traced", format::percent(share))));
    add(rules(settings.authorization.paths, "path"));
    add(rules(settings.authorization.identities, "identity"));
    add(settings.authorization.jwt.then(|| "a token (JWT) verified per request".to_owned()));
    add(settings.lua.as_ref().map(|script| {
        match script {
            LuaScript::BuiltIn => "Meshmeter's Lua script",
            LuaScript::Inline(_) => "a Lua script of the experiment's own",
        }
        .to_owned()
    }));
    add(settings.wasm.as_ref().map(|module| {
        let name = module.file_name().unwrap_or(module.as_os_str());
        format!("the WebAssembly module {}", name.to_string_lossy())
    }));
    add(settings.retries.map(|attempts| counted(attempts, "retry", "retries")));
    add(settings.timeout.map(|timeout| format!("routes that give up after {}", format_duration(timeout))));
    parts
}

fn service(server: &ServerSettings, proxy: &ProxySettings) -> Vec<String> {
    let limit = |cores: Option<f64>, whose: &str| {
        cores.map(|cores| format!("{whose} limited to {}", format::cores(cores)))
    };
    let delay = (!server.delay.is_zero()).then(|| format!("answers after {}", format_duration(server.delay)));
    let cpu_time = (!server.cpu_time.is_zero())
        .then(|| format!("{} of CPU for each answer", format_duration(server.cpu_time)));
    let errors = (server.error_fraction > 0.0).then(|| {
        format!("{} of the requests answered with an error", format::percent(server.error_fraction))
    });
    let limits = [limit(proxy.cpu_limit_cores, "each proxy"), limit(server.cpu_limit_cores, "the service")];
    [delay, cpu_time, errors].into_iter().chain(limits).flatten().collect()
}

fn counted(count: usize, one: &str, several: &str) -> String {
    format::counted(count as u64, one, several)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERYTHING: &str = "\
name: a
mesh: istio
modes: [sidecar, ingress]
load: {rate: 100}
proxy: {cpu: 500m}
server: {delay: 5ms, error-rate: 20%, cpu: 2}
istio:
  tracing: 12.5%
  authorization: {paths: 500, identities: 1, jwt: on}
  lua: |
    function envoy_on_request(handle) end
  wasm: filters/count.wasm
  retries: 1
  timeout: 2s
  sidecar-scope: on
  dns-capture: on
  dns-auto-allocate: on
  workload-keys: ecdsa
  background-services: {services: 300, endpoints: 1}
  ingress: {tls: mutual, api: kubernetes}
  extra: |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: a}
";

    #[test]
    fn every_changed_setting_is_described() {
        let experiment = Experiment::parse(EVERYTHING, "everything").unwrap();
        let with_spaces = |text: String| text.replace('\u{a0}', " ");
        insta::assert_snapshot!(with_spaces(of_control_plane(&experiment, &experiment.modes)), @"12.5 % of the requests traced, 500 authorization rules by path, 1 authorization rule by identity, a token (JWT) verified per request, a Lua script of the experiment's own, the WebAssembly module count.wasm, 1 retry, routes that give up after 2s, sidecars with only their own namespace, DNS captured by the proxies, addresses auto-allocated, ECDSA keys of the proxies, 300 background services of 1 address each, an ingress gateway (mutual TLS with clients, described by the Gateway API), 1 further object");
        insta::assert_snapshot!(with_spaces(of_service(&experiment)), @"answers after 5ms, 20 % of the requests answered with an error, each proxy limited to 0.500 cores, the service limited to 2.00 cores");
    }

    #[test]
    fn every_value_of_a_factor_is_described() {
        let text = "{name: a, mesh: istio, modes: [sidecar], load: {rate: 100}, proxy: {cpu: [250m, 1]}, \
                    istio: {retries: 2, authorization: {paths: [0, 500]}}}";
        let experiment = Experiment::parse(text, "factors").unwrap();
        let rules = "500 authorization rules by path (in some cells)";
        assert_eq!(of_control_plane(&experiment, &experiment.modes), format!("2 retries, {rules}"));
        let limits = ["0.250", "1.00"]
            .map(|cores| format!("each proxy limited to {cores}\u{a0}cores (in some cells)"));
        assert_eq!(of_service(&experiment), limits.join(", "));
    }

    #[test]
    fn default_settings_have_no_description() {
        let text = "name: a\nmesh: istio\nmodes: [none, sidecar]\nload: {rate: 100}\n";
        let experiment = Experiment::parse(text, "defaults").unwrap();
        assert_eq!(of_control_plane(&experiment, &experiment.modes), "");
        assert_eq!(of_service(&experiment), "");
    }
}

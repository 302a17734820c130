//! Configuration that istiod sends to proxies with and without Istio's telemetry, and to upstream Envoy. The
//! proxies are simulated, and an Envoy that claims to be Istio's build is a script.

use crate::cases::LogFolder;
use crate::fleet_changes::connect;
use crate::trial::spec;
use experiment::environment::deploy::Environment as _;
use experiment::environment::{DeploymentSpec, error_chain};
use experiment::mesh_settings::TelemetrySetting;
use experiment::settings::fleet::{FleetSettings, ProxyKind};
use lab::environment::LocalLab;
use mesh::admin::Admin;
use mesh::names::{ISTIOD, ISTIOD_HTTP_PORT};
use population::{Placement, Population, Proxy, remove};
use results::Mode;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

const RUN: &str = "telemetry";
/// A hundred times the usual duration.
const TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
const METADATA: &str = "io.istio.http.peer_metadata";
const STATS: &str = "stats.PluginConfig";
const ALPN: &str = "istio.alpn";

/// An Envoy that accepts any configuration.
fn istios_envoy(folder: &Path) -> PathBuf {
    let script = "case \"$*\" in *--version*) echo 'envoy  version: 0/1.40.0/Clean/RELEASE/BoringSSL';; esac";
    test_support::program(folder, "envoy", script).into()
}

fn with(telemetry: TelemetrySetting, envoy: Option<&Path>) -> DeploymentSpec {
    let mut spec = spec(Mode::None);
    Arc::make_mut(&mut spec.istio).telemetry = telemetry;
    spec.components.envoy = envoy.map(Path::to_path_buf);
    spec
}

/// istiod's configuration for a proxy, once it contains `awaited`.
fn dump(istiod: &Admin, proxy: &Proxy, awaited: &str) -> String {
    let page = format!("/debug/config_dump?proxyID={}.{}", proxy.name, proxy.namespace);
    let give_up_at = Instant::now() + TIMEOUT;
    loop {
        let dump = istiod.get_long(&page).unwrap_or_else(|error| panic!("{}", error_chain(&error)));
        let dump = String::from_utf8_lossy(&dump).into_owned();
        if dump.contains(awaited) {
            return dump;
        }
        assert!(Instant::now() < give_up_at, "{} has no {awaited}", proxy.name);
        thread::sleep(POLL_INTERVAL);
    }
}

/// Filters that istiod sends to each kind of proxy.
fn filters(lab: &LocalLab, spec: &DeploymentSpec) -> BTreeMap<&'static str, Vec<&'static str>> {
    let logs = LogFolder::create();
    let brought_up = lab.bring_up(spec, logs.path());
    drop(brought_up.unwrap_or_else(|error| panic!("{}", error_chain(&error))));
    let control_plane = lab.running_control_plane().expect("it lives on");
    let settings = FleetSettings {
        proxies: 3,
        kinds: "gateway=1,waypoint=1,sidecar".parse().expect("they are kinds"),
        services: 3,
        pods: 3,
        namespaces: 1,
        gateways: 1,
        ..FleetSettings::default()
    };
    let placement = Placement { run_id: RUN.to_owned(), ..Placement::default() };
    let population = Population::new(&settings, &placement).expect("it fits");
    let api = control_plane.api();
    population.write(api, &|_, _| ()).unwrap_or_else(|error| panic!("{}", error_chain(&error)));
    let fleet = connect(lab, api, &population);
    let istiod = control_plane.pod().admin(ISTIOD, ISTIOD_HTTP_PORT);
    let of_proxy = |proxy: &Proxy| {
        let (kind, last) = match proxy.kind {
            ProxyKind::Sidecar => ("sidecar", "||service-1."),
            ProxyKind::Gateway => ("gateway", "http_connection_manager"),
            ProxyKind::Waypoint => ("waypoint", "|service-1."),
            ProxyKind::Ztunnel => ("ztunnel", ""),
        };
        let dump = dump(&istiod, proxy, last);
        (kind, [METADATA, STATS, ALPN].into_iter().filter(|filter| dump.contains(filter)).collect())
    };
    let sent = population.proxies().iter().map(of_proxy).collect();
    assert_eq!(fleet.finish().rejections, 0);
    let removed = remove(api, RUN, &|_| ()).unwrap_or_else(|error| panic!("{}", error_chain(&error)));
    assert_eq!(removed.remaining, Vec::<String>::new());
    sent
}

pub fn istiod_sends_filters_by_proxy_and_setting(lab: &LocalLab) {
    let folder = tempfile::tempdir().expect("there is room");
    let envoy = istios_envoy(folder.path());
    let sent = |telemetry, envoy| filters(lab, &with(telemetry, envoy));
    let all = |sidecar: &[&'static str], gateway: &[&'static str], waypoint: &[&'static str]| {
        BTreeMap::from([
            ("sidecar", sidecar.to_vec()),
            ("gateway", gateway.to_vec()),
            ("waypoint", waypoint.to_vec()),
        ])
    };
    let upstream = sent(TelemetrySetting::Auto, None);
    assert_eq!(upstream, all(&[], &[], &[]), "upstream's Envoy lacks them all");
    let on = sent(TelemetrySetting::Auto, Some(&envoy));
    assert_eq!(on, all(&[METADATA, STATS, ALPN], &[METADATA, STATS, ALPN], &[METADATA, STATS]));
    let off = sent(TelemetrySetting::Off, Some(&envoy));
    assert_eq!(off, all(&[ALPN], &[ALPN], &[METADATA]));
}

pub fn telemetry_without_its_filters_is_rejected(lab: &LocalLab) {
    let refused = |mode| {
        let mut spec = spec(mode);
        Arc::make_mut(&mut spec.istio).telemetry = TelemetrySetting::On;
        lab.check_settings(&spec)
    };
    let error = refused(Mode::Sidecar).expect_err("upstream's Envoy has no telemetry");
    let text = error_chain(&error);
    assert!(text.contains("istio.telemetry: on") && text.contains("is upstream's build of Envoy"), "{text}");
    let hint = error.hint.expect("there is something to do");
    assert!(hint.contains("lab install --istio") && hint.contains("--envoy PATH"), "{hint}");
    refused(Mode::None).expect("there is no Envoy");
}

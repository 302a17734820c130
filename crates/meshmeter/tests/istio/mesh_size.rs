//! Footprint of proxies by the size of the mesh around a pair, and how long their configuration takes to
//! propagate.

use crate::cases::LogFolder;
use crate::trial::{Trial, bring_up, settings, spec, trial};
use experiment::MeshSettings;
use experiment::environment::DeploymentSpec;
use experiment::mesh_settings::BackgroundSettings;
use lab::environment::LocalLab;
use results::{ComponentUsage, Mode, ProxyConfiguration, ProxyHeap};
use std::sync::Arc;

const SERVICES: u64 = 200;
const ENDPOINTS: u64 = 3;

fn surrounded_by(services: u64, mode: Mode, sidecar_scope: bool) -> DeploymentSpec {
    let background_services =
        BackgroundSettings { services: services as usize, endpoints: ENDPOINTS as usize };
    let istio = MeshSettings { sidecar_scope, background_services, ..settings() };
    DeploymentSpec { istio: Arc::new(istio), ..spec(mode) }
}

fn component<'a>(trial: &'a Trial, proxy: &str) -> &'a ComponentUsage {
    let found = trial.observation.usage.components.iter().find(|component| component.name == proxy);
    found.unwrap_or_else(|| panic!("there is no component {proxy}"))
}

/// Configuration of a proxy, its heap and its memory before the load.
fn held(trial: &Trial, proxy: &str) -> (ProxyConfiguration, ProxyHeap, u64) {
    let component = component(trial, proxy);
    let holdings = component.holdings.as_ref().expect("a proxy says what it holds");
    assert!(holdings.unread.is_empty(), "{:?}", holdings.unread);
    let memory_bytes = component.memory_before_load_bytes.expect("it ran before the load");
    (
        holdings.configuration.expect("it has a configuration"),
        holdings.heap_before_load.expect("it tells of its heap"),
        memory_bytes,
    )
}

/// All configuration propagated after it was written, and soon.
fn check_push(trial: &Trial, what: &str) {
    let push = trial.observation.evidence.push.as_ref().expect("proxies were configured");
    assert!(push.objects > 0 && push.written_s > 0.0 && push.written_s < 120.0, "{what}: {push:?}");
    assert!(!push.in_force_s.is_empty(), "{what}");
    assert!(push.in_force_s.values().all(|seconds| *seconds > 0.0 && *seconds < 120.0), "{what}: {push:?}");
}

/// From the second change on, the Services are written again as they are.
pub fn other_services_get_other_endpoints(lab: &LocalLab) {
    let logs = LogFolder::create();
    for endpoints in [1, 3, 2, 1] {
        let background_services = BackgroundSettings { services: 5, endpoints };
        let istio = MeshSettings { background_services, ..settings() };
        let spec = DeploymentSpec { istio: Arc::new(istio), ..spec(Mode::Sidecar) };
        drop(bring_up(lab, &spec, logs.path()));
    }
}

pub fn a_sidecar_holds_the_whole_mesh_unless_it_is_scoped(lab: &LocalLab) {
    let proven = |what: &str, spec: &DeploymentSpec| {
        let trial = trial(lab, spec, |_| ());
        trial.check_proven(what, &["client-proxy", "server-proxy"]);
        check_push(&trial, what);
        trial
    };
    let whole = proven("whole", &surrounded_by(SERVICES, Mode::Sidecar, false));
    let scoped = proven("scoped", &surrounded_by(SERVICES, Mode::Sidecar, true));
    // The services of earlier trials are gone.
    let alone = proven("alone", &surrounded_by(0, Mode::Sidecar, false));
    for proxy in ["client-proxy", "server-proxy"] {
        let [(whole, whole_heap, whole_memory), (scoped, scoped_heap, _), (alone, alone_heap, alone_memory)] =
            [&whole, &scoped, &alone].map(|trial| held(trial, proxy));
        let what = format!(
            "{proxy}:\n{whole:?} {whole_heap:?} {whole_memory}\n{scoped:?} {scoped_heap:?}\n{alone:?} {alone_heap:?} {alone_memory}"
        );
        let more = |count: Option<u64>, than: Option<u64>| {
            count.zip(than).map(|(count, than)| count.wrapping_sub(than))
        };
        let (counts, fewer) = (&whole.counts, &alone.counts);
        assert_eq!(more(counts.clusters, fewer.clusters), Some(SERVICES), "{what}");
        assert_eq!(more(counts.endpoints, fewer.endpoints), Some(SERVICES * ENDPOINTS), "{what}");
        assert!(more(counts.virtual_hosts, fewer.virtual_hosts) >= Some(SERVICES), "{what}");
        // A cluster with its endpoints and routes takes some 7 kB of JSON and some 75 kB of memory.
        assert!(whole.size_bytes > alone.size_bytes + SERVICES * 1_000, "{what}");
        assert!(whole_heap.allocated_bytes > alone_heap.allocated_bytes + SERVICES * 20_000, "{what}");
        assert!(whole_memory > alone_memory + SERVICES * 20_000, "{what}");
        assert!(scoped.counts.clusters <= alone.counts.clusters, "{what}");
        assert!(scoped.counts.endpoints <= alone.counts.endpoints, "{what}");
        assert!(scoped.size_bytes <= alone.size_bytes, "{what}");
        assert!(scoped_heap.allocated_bytes + SERVICES * 20_000 < whole_heap.allocated_bytes, "{what}");
    }
}

pub fn a_gateway_holds_the_whole_mesh(lab: &LocalLab) {
    let [whole, alone] = [SERVICES, 0].map(|services| {
        let trial = trial(lab, &surrounded_by(services, Mode::Ingress, false), |_| ());
        trial.check_proven("ingress", &["ingress-gateway", "server-proxy"]);
        check_push(&trial, "ingress");
        held(&trial, "ingress-gateway")
    });
    assert_eq!(whole.0.counts.clusters, alone.0.counts.clusters.map(|clusters| clusters + SERVICES));
    assert_eq!(
        whole.0.counts.endpoints,
        alone.0.counts.endpoints.map(|endpoints| endpoints + SERVICES * ENDPOINTS)
    );
    assert!(whole.0.size_bytes > alone.0.size_bytes + SERVICES * 1_000);
}

/// A ztunnel receives all services; a waypoint only those that it serves.
pub fn a_ztunnel_holds_the_whole_mesh_and_a_waypoint_does_not(lab: &LocalLab) {
    let [whole, alone] = [SERVICES, 0].map(|services| {
        let trial = trial(lab, &surrounded_by(services, Mode::AmbientWaypoint, false), |_| ());
        trial.check_path("waypoint");
        check_push(&trial, "waypoint");
        let configuration = |proxy| {
            let holdings = component(&trial, proxy).holdings.as_ref().expect("a proxy says what it holds");
            holdings.configuration.expect("it has a configuration")
        };
        [configuration("ztunnel"), configuration("waypoint")]
    });
    let [ztunnel, waypoint] = [0, 1].map(|proxy| (whole[proxy], alone[proxy]));
    assert_eq!(ztunnel.0.counts.services, ztunnel.1.counts.services.map(|services| services + SERVICES));
    assert!(ztunnel.0.size_bytes > ztunnel.1.size_bytes + SERVICES * 100);
    assert_eq!(waypoint.0.counts.clusters, waypoint.1.counts.clusters);
}

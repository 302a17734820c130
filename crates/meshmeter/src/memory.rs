//! Estimates the memory that a deployment needs on this machine, and compares it with what is available
//! before anything starts.
//!
//! Figures are working sets measured in runs (docs/topology.md, "Resources of a topology"), slightly rounded
//! up. They are rough, so only a deployment far beyond the machine's memory is an error.

use crate::failure::Failure;
use experiment::dataplane::{Entry, ModeParts, ProxyProgram};
use experiment::environment::DeploymentSpec;
use experiment::mesh_settings::ZtunnelPlacement;
use experiment::settings::fleet::{FleetSettings, ProxyKind};
use experiment::topology::Topology;
use experiment::topology::needs::ProcessMemory;
use experiment::{MeshKind, Plan, PlannedTrial};
use std::collections::BTreeSet;
use std::fs;

const MB: u64 = 1_000_000;
/// `meshmeter serve --topology` under load.
const SERVICE_BYTES: u64 = 5 * MB;
/// `meshmeter load`.
const DRIVER_BYTES: u64 = 8 * MB;
/// FerretDB with a small collection.
const DATABASE_BYTES: u64 = 30 * MB;
/// 200 Envoys with static files took 2.8 GB.
const STATIC_ENVOY_BYTES: u64 = 14 * MB;
/// An Envoy, as sidecar or waypoint, with its agent (31 MB), and what istiod holds for it.
pub const ENVOY_BYTES: u64 = 32 * MB;
/// A ztunnel that knows up to 2000 services.
const ZTUNNEL_BYTES: u64 = 28 * MB;
/// kube-apiserver (550 MB), etcd (50 MB) and istiod (50 MB), and program pages that all Envoys share (80 MB).
const CONTROL_PLANE_BYTES: u64 = 730 * MB;
/// Configuration per service in each Envoy that receives it: 200 services take 20 MB, 10 000 nearly 1 GB.
pub const CONFIGURATION_BYTES: u64 = 100_000;

/// Configuration per route in a gateway and in istiod: 100 000 routes took 675 MB and 410 MB.
const ROUTE_BYTES: u64 = 11_000;

/// Memory of istiod per service and pod in the mesh (470 MB for 1000 services and 2000 pods), and per byte of
/// a connected proxy's configuration (0.75).
const ISTIOD_OBJECT_BYTES: u64 = 150_000;
const ISTIOD_HELD_FRACTION: f64 = 0.75;
/// Configuration sent to a proxy per service and per pod: 2.1 MB for 1000 services and 2000 pods; 0.5 MB to a
/// ztunnel.
const SENT_SERVICE_BYTES: u64 = 1600;
const SENT_POD_BYTES: u64 = 250;
const SENT_ZTUNNEL_BYTES: u64 = 160;
/// Memory of kube-apiserver and etcd per object: 957 and 121 MB for 6000 objects.
const API_OBJECT_BYTES: u64 = 80_000;
/// Memory of the fleet itself, and per proxy: 2000 proxies take 111 MB.
const FLEET_BYTES: u64 = 60 * MB;
const FLEET_PROXY_BYTES: u64 = 60_000;

/// Share of the available memory above which a run prints a warning.
const WARN_FRACTION: f64 = 0.8;
/// Share above which it cannot fit, however rough the estimate is.
const FAIL_FRACTION: f64 = 1.5;

/// Memory of a deployment, bytes.
pub fn needed_bytes(spec: &DeploymentSpec) -> u64 {
    let topology = &spec.topology;
    let services = topology.size().services;
    let told = if spec.istio.sidecar_scope {
        services / topology.namespaces().len().max(1)
    } else {
        services + spec.istio.background_services.services
    };
    let configuration = told as u64 * CONFIGURATION_BYTES;
    let ModeParts { data_plane, entry, .. } = spec.parts();
    let proxies = data_plane.proxies();
    let of = |program: Option<ProxyProgram>| match program {
        None => 0,
        Some(ProxyProgram::StaticEnvoy) => STATIC_ENVOY_BYTES,
        Some(ProxyProgram::AgentEnvoy) => ENVOY_BYTES + configuration,
        // Linkerd's proxies run on clusters alone, whose memory is not estimated; they are like a ztunnel.
        Some(ProxyProgram::Ztunnel | ProxyProgram::Linkerd) => ZTUNNEL_BYTES,
    };
    let (of_each_pod, of_node) = match spec.istio.ztunnel {
        ZtunnelPlacement::Shared => (0, of(proxies.node)),
        ZtunnelPlacement::PerPod => (of(proxies.node), 0),
    };
    let waypoints = waypoints(topology) as u64 * of(proxies.namespace);
    let gateways = match entry {
        Entry::Direct => 0,
        Entry::Gateway | Entry::Ingress => {
            let targets: BTreeSet<_> = topology.drivers.iter().map(|driver| driver.target).collect();
            targets.len() as u64 * (ENVOY_BYTES + configuration + spec.ingress.routes() as u64 * ROUTE_BYTES)
        }
    };
    let control_plane = if spec.mesh == MeshKind::Istio { CONTROL_PLANE_BYTES } else { 0 };
    topology.memory_bytes(&ProcessMemory {
        service: SERVICE_BYTES,
        database: DATABASE_BYTES,
        driver: DRIVER_BYTES,
        proxy: of(proxies.pod) + of_each_pod,
        shared: control_plane + of_node + waypoints + gateways,
    })
}

/// Memory of a fleet, and of what its control plane holds in addition to its programs, in bytes. Each of
/// `istiods` holds the mesh; they share the proxies, or each has the `copies` of them that are compared.
pub fn fleet_bytes(fleet: &FleetSettings, istiods: usize, copies: usize) -> u64 {
    let count = |count: usize| count as u64;
    let share = if fleet.scope { count(fleet.namespaces.max(1)) } else { 1 };
    let (services, pods) = (count(fleet.services), count(fleet.pods));
    let envoys = count(fleet.proxies - fleet.count_of(ProxyKind::Ztunnel).min(fleet.proxies));
    let of_envoy = (services * SENT_SERVICE_BYTES + pods * SENT_POD_BYTES) / share;
    let of_ztunnel = (services + pods) * SENT_ZTUNNEL_BYTES;
    let sent = envoys * of_envoy + count(fleet.count_of(ProxyKind::Ztunnel)) * of_ztunnel;
    let proxies = (sent as f64 * ISTIOD_HELD_FRACTION) as u64 + count(fleet.proxies) * FLEET_PROXY_BYTES;
    let witnesses = count(fleet.witnesses) * (ENVOY_BYTES + services * CONFIGURATION_BYTES / share);
    FLEET_BYTES
        + proxies * count(copies)
        + (services + pods) * ISTIOD_OBJECT_BYTES * count(istiods)
        + count(fleet.objects()) * API_OBJECT_BYTES
        + witnesses
}

/// Compares a fleet with its own lab to the available memory. Returns a warning as a sentence.
///
/// # Errors
/// Returns an error if it cannot fit.
pub fn check_fleet(fleet: &FleetSettings, istiods: usize, available: u64) -> Result<Option<String>, Failure> {
    check_fits(fleet_need(fleet, istiods, istiods), available, FLEET_HINT)
}

const FLEET_HINT: &str =
    "fewer proxies, a smaller mesh, or a scope (`--scope`, `fleet.scope: on`) takes less";

/// Memory needed, in bytes, and a description of what needs it.
fn fleet_need(fleet: &FleetSettings, istiods: usize, copies: usize) -> (u64, String) {
    let FleetSettings { proxies, services, pods, .. } = *fleet;
    let needed = CONTROL_PLANE_BYTES + fleet_bytes(fleet, istiods, copies);
    (needed, format!("a fleet of {proxies} proxies with {services} services and {pods} pods"))
}

/// Compares a need with what is available.
fn check_fits((needed, what): (u64, String), available: u64, hint: &str) -> Result<Option<String>, Failure> {
    let fraction = needed as f64 / available as f64;
    if fraction <= WARN_FRACTION {
        return Ok(None);
    }
    let message =
        format!("{what} takes about {}, and {} are available", gibibytes(needed), gibibytes(available));
    if fraction <= FAIL_FRACTION { Ok(Some(message)) } else { Err(Failure::broken(message).with_hint(hint)) }
}

/// Number of waypoints: one per namespace that has a service in the mesh.
pub fn waypoints(topology: &Topology) -> usize {
    let members = topology.workloads.iter().filter(|workload| workload.in_mesh && workload.serves());
    members.map(|workload| workload.namespace.as_str()).collect::<BTreeSet<_>>().len()
}

/// Memory available to processes, bytes; `None` if the kernel does not report it.
pub fn available_bytes() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.split_ascii_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

/// Compares the deployment of a plan that needs most memory with what is available. Returns a warning as a
/// sentence.
///
/// # Errors
/// Returns an error if it cannot fit.
pub fn check(plan: &Plan, available: u64) -> Result<Option<String>, Failure> {
    let needs = plan.trials.chunk_by(|one, next| one.deployment == next.deployment);
    let needs = needs.map(|trials| need(&trials[0]));
    let Some(((needed, what), hint)) = needs.max_by_key(|((needed, _), _)| *needed) else { return Ok(None) };
    check_fits((needed, what), available, hint)
}

/// Need of a trial's deployment, and a hint if that is too large.
fn need(trial: &PlannedTrial) -> ((u64, String), &'static str) {
    if let Some(fleet) = &trial.fleet {
        return (fleet_need(fleet, trial.spec.istio.istiod.replicas, 1), FLEET_HINT);
    }
    let topology = &trial.spec.topology;
    let what = format!("topology {} ({}) in mode {}", topology.name, topology.size(), trial.spec.mode);
    ((needed_bytes(&trial.spec), what), TOPOLOGY_HINT)
}

const TOPOLOGY_HINT: &str = "a smaller topology, such as `--set topology.namespaces=5`, or `--set istio.sidecar-scope=true`, takes less";

pub fn gibibytes(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::Experiment;

    fn plan(mode: &str, namespaces: usize) -> Plan {
        let text = format!(
            "{{name: x, mesh: istio, modes: [none, {mode}], load: {{rate: 100}}, repeats: 1, \
             topology: {{shape: tiered, namespaces: {namespaces}}}}}"
        );
        Plan::new(&Experiment::parse(&text, "test").unwrap(), 1)
    }

    const GIB: u64 = 1 << 30;

    #[test]
    fn fifty_tenants_fit_into_24_gib_and_a_thousand_do_not() {
        for mode in ["sidecar", "ambient", "ambient-waypoint"] {
            assert!(check(&plan(mode, 50), 22 * GIB).is_ok(), "{mode}");
            assert!(matches!(check(&plan(mode, 25), 22 * GIB), Ok(None)), "{mode}");
        }
        let failure = check(&plan("sidecar", 1000), 22 * GIB).unwrap_err();
        let text = format!("{failure:?}");
        assert!(text.contains("in mode sidecar") && text.contains("1000 namespaces"), "{text}");
        assert!(matches!(check(&plan("ambient", 700), 22 * GIB), Ok(Some(_))));
    }

    #[test]
    fn estimate_near_available_memory_is_a_warning() {
        let plan = plan("sidecar", 5);
        let needed =
            needed_bytes(&plan.trials.iter().find(|trial| trial.spec.parts().has_sidecars()).unwrap().spec);
        assert!(matches!(check(&plan, needed * 2), Ok(None)));
        assert!(
            check(&plan, needed).unwrap().unwrap().contains("topology tiered (5 namespaces, 20 services")
        );
        assert!(check(&plan, needed / 2).is_err());
    }

    #[test]
    fn fleet_estimates_match_measured_memory() {
        let fleet = |proxies: usize, scope: bool| FleetSettings {
            proxies,
            services: 1000,
            pods: 2000,
            namespaces: 50,
            scope,
            ..FleetSettings::default()
        };
        // 2000 sidecars took 3.3 GB in istiod, 1 GB in the API server, and 0.2 GB in etcd and the fleet.
        let (needed, _) = fleet_need(&fleet(2000, false), 1, 1);
        assert!((4_500_000_000..7_000_000_000).contains(&needed), "{needed}");
        assert!(matches!(check_fleet(&fleet(2000, false), 1, 22 * GIB), Ok(None)));
        assert!(check_fleet(&fleet(2000, false), 2, 9 * GIB).unwrap().is_some());
        let failure = format!("{:?}", check_fleet(&fleet(20_000, false), 1, 20 * GIB).unwrap_err());
        assert!(failure.contains("a fleet of 20000 proxies with 1000 services and 2000 pods"), "{failure}");
        assert!(matches!(check_fleet(&fleet(20_000, true), 1, 22 * GIB), Ok(None)));
        let text = "{name: x, mesh: istio, modes: [control-plane], repeats: 1, fleet: {proxies: [10, 20000], services: 1000, pods: 20000}}";
        let plan = Plan::new(&Experiment::parse(text, "test").unwrap(), 1);
        assert!(check(&plan, 22 * GIB).is_err());
    }

    #[test]
    fn available_memory_is_read_from_kernel() {
        assert!(available_bytes().is_some_and(|bytes| bytes > 1 << 20));
    }
}

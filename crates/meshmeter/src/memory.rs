//! Estimate of the memory that a deployment takes on this machine, held against what is available before anything starts.
//!
//! Figures are working sets that runs measured (docs/topology.md, "What a topology takes"), a little rounded up. They are
//! rough, so only a deployment that is far beyond the machine is an error.

use crate::failure::Failure;
use experiment::dataplane::{DataPlane, Entry, ModeParts};
use experiment::environment::DeploymentSpec;
use experiment::mesh_settings::ZtunnelPlacement;
use experiment::topology::Topology;
use experiment::topology::needs::ProcessMemory;
use experiment::{MeshKind, Plan};
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
/// An Envoy, as sidecar or waypoint, with its agent (31 MB), and what istiod holds of it.
pub const ENVOY_BYTES: u64 = 32 * MB;
/// A ztunnel that knows up to 2000 services.
const ZTUNNEL_BYTES: u64 = 28 * MB;
/// kube-apiserver (550 MB), etcd (50 MB) and istiod (50 MB), and program pages that all Envoys share (80 MB).
const CONTROL_PLANE_BYTES: u64 = 730 * MB;
/// Configuration per service in each Envoy that is told of it: 200 take 20 MB, 10 000 nearly 1 GB.
pub const CONFIGURATION_BYTES: u64 = 100_000;

/// Configuration per route of a gateway and in istiod: 100 000 took 675 MB and 410 MB.
const ROUTE_BYTES: u64 = 11_000;

/// Above this share of the available memory a run is warned of.
const WARN_FRACTION: f64 = 0.8;
/// Above this share it cannot fit, whatever the estimate is worth.
const FAIL_FRACTION: f64 = 1.5;

/// Memory of a deployment, bytes.
pub fn needed_bytes(spec: &DeploymentSpec) -> u64 {
    let topology = &spec.topology;
    let services = topology.size().services;
    let told = if spec.istio.sidecar_scope {
        services / topology.namespaces().len().max(1)
    } else {
        services + spec.istio.surroundings.services
    };
    let configuration = told as u64 * CONFIGURATION_BYTES;
    let ModeParts { data_plane, entry, .. } = spec.parts();
    let (per_pod, others) = match data_plane {
        DataPlane::None => (0, 0),
        DataPlane::StaticEnvoy => (STATIC_ENVOY_BYTES, 0),
        DataPlane::Sidecar => (ENVOY_BYTES + configuration, 0),
        DataPlane::Ztunnel | DataPlane::ZtunnelWaypoint => {
            let (per_pod, shared) = match spec.istio.ztunnel {
                ZtunnelPlacement::Shared => (0, ZTUNNEL_BYTES),
                ZtunnelPlacement::PerPod => (ZTUNNEL_BYTES, 0),
            };
            let waypoints = match data_plane {
                DataPlane::ZtunnelWaypoint => waypoints(topology) as u64,
                _ => 0,
            };
            (per_pod, shared + waypoints * (ENVOY_BYTES + configuration))
        }
    };
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
        proxy: per_pod,
        shared: control_plane + others + gateways,
    })
}

/// Waypoints: one per namespace that has a service in the mesh.
pub fn waypoints(topology: &Topology) -> usize {
    let members = topology.workloads.iter().filter(|workload| workload.in_mesh && workload.serves());
    members.map(|workload| workload.namespace.as_str()).collect::<BTreeSet<_>>().len()
}

/// Memory that processes may still take here, bytes; absent where the kernel does not say.
pub fn available_bytes() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.split_ascii_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

/// The deployment of a plan that takes most memory, held against what is available. A warning is a sentence.
///
/// # Errors
/// It cannot fit.
pub fn check(plan: &Plan, available: u64) -> Result<Option<String>, Failure> {
    let needs = plan.trials.chunk_by(|one, next| one.deployment == next.deployment);
    let needs = needs.map(|trials| (needed_bytes(&trials[0].spec), &trials[0].spec));
    let Some((needed, spec)) = needs.max_by_key(|(needed, _)| *needed) else { return Ok(None) };
    let fraction = needed as f64 / available as f64;
    if fraction <= WARN_FRACTION {
        return Ok(None);
    }
    let topology = &spec.topology;
    let message = format!(
        "topology {} ({}) takes about {} in mode {}, and {} are available",
        topology.name,
        topology.size(),
        gibibytes(needed),
        spec.mode,
        gibibytes(available)
    );
    if fraction <= FAIL_FRACTION {
        return Ok(Some(message));
    }
    Err(Failure::broken(message).with_hint(
        "a smaller topology, such as `--set topology.namespaces=5`, or `--set istio.sidecar-scope=true`, takes less",
    ))
}

fn gibibytes(bytes: u64) -> String {
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
    fn estimate_above_most_of_the_memory_is_a_warning() {
        let plan = plan("sidecar", 5);
        let needed = needed_bytes(&plan.trials.iter().find(|trial| trial.mode.has_sidecars()).unwrap().spec);
        assert!(matches!(check(&plan, needed * 2), Ok(None)));
        assert!(
            check(&plan, needed).unwrap().unwrap().contains("topology tiered (5 namespaces, 20 services")
        );
        assert!(check(&plan, needed / 2).is_err());
    }

    #[test]
    fn kernel_tells_what_is_available() {
        assert!(available_bytes().is_some_and(|bytes| bytes > 1 << 20));
    }
}

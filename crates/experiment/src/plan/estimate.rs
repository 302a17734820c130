//! Estimated duration of a run.

use super::Plan;
use super::trial::PlannedTrial;
use crate::dataplane::Entry;
use crate::environment::spec::DeploymentSpec;
use crate::mesh_kind::MeshKind;
use crate::settings::fleet::FleetSettings;
use results::Mode;
use std::time::Duration;

/// Overhead of a trial in addition to its load: starting pods and proxies, reading counters, teardown.
/// Measured in the lab on two cores. Only used for the estimated duration.
fn overhead(spec: &DeploymentSpec) -> Duration {
    let told = if spec.mode == Mode::None { 0 } else { spec.istio.background_services.services };
    // The overhead of a pair is included below.
    let further_pods = u32::try_from(spec.topology.pods().saturating_sub(2)).unwrap_or(u32::MAX);
    let of_a_pod =
        if spec.mesh.parts(spec.mode).has_sidecars() { TIME_PER_POD_WITH_SIDECAR } else { TIME_PER_POD };
    TIME_PER_PUSHED_SERVICE * u32::try_from(told).unwrap_or(u32::MAX)
        + of_a_pod * further_pods
        + of_the_estate(spec)
        + of_an_arrangement(spec)
}

/// Pod with one process.
const TIME_PER_POD: Duration = Duration::from_millis(50);

/// Pod whose sidecar gets a certificate and its configuration.
const TIME_PER_POD_WITH_SIDECAR: Duration = Duration::from_millis(500);

/// Domains of a gateway: objects that are written, pushed and removed, or a larger file.
fn of_the_estate(spec: &DeploymentSpec) -> Duration {
    if spec.parts().entry == Entry::Direct {
        return Duration::ZERO;
    }
    let of_a_domain = if spec.mesh == MeshKind::Istio { TIME_PER_DOMAIN } else { TIME_PER_STATIC_DOMAIN };
    let [domains, routes] =
        [spec.ingress.domains, spec.ingress.routes()].map(|count| u32::try_from(count).unwrap_or(u32::MAX));
    of_a_domain * domains.saturating_sub(1) + TIME_PER_ROUTE * routes.saturating_sub(1)
}

/// Domain under a control plane.
const TIME_PER_DOMAIN: Duration = Duration::from_millis(15);

/// Domain in a static file.
const TIME_PER_STATIC_DOMAIN: Duration = Duration::from_millis(1);

/// Exact path of a domain.
const TIME_PER_ROUTE: Duration = Duration::from_micros(150);

fn of_an_arrangement(spec: &DeploymentSpec) -> Duration {
    match (spec.mesh, spec.mode) {
        (MeshKind::Envoy, _) => Duration::from_millis(800),
        (_, Mode::None) => Duration::from_secs(1),
        // Its own control plane.
        (_, Mode::ControlPlane) => CONTROL_PLANE_START,
        // With tracing, the last spans arrive five seconds late.
        (_, _) if spec.istio.tracing_fraction.is_some_and(|share| share > 0.0) => Duration::from_secs(9),
        // Proxies get their certificates and configuration from the control plane.
        _ => Duration::from_secs(4),
    }
}

/// Background service, until it is written to or removed from the API and istiod has processed it.
const TIME_PER_SERVICE: Duration = Duration::from_millis(6);

/// Background service in every trial: pushed to the proxies, and part of their config dumps.
const TIME_PER_PUSHED_SERVICE: Duration = Duration::from_millis(2);

/// Start of a control plane, when its version changes; with a fleet, once per deployment.
const CONTROL_PLANE_START: Duration = Duration::from_secs(12);

impl Plan {
    /// Estimated duration of the run without reruns.
    #[must_use]
    pub fn estimated_time(&self) -> Duration {
        let shares = |trial: &PlannedTrial| {
            trial.spec.mesh == MeshKind::Istio && trial.spec.mode != Mode::ControlPlane
        };
        let sharing: Vec<&PlannedTrial> = self.trials.iter().filter(|trial| shares(trial)).collect();
        let starts = sharing.chunk_by(|one, next| one.has_control_plane_of(next)).count();
        let control_planes = CONTROL_PLANE_START * u32::try_from(starts).unwrap_or(u32::MAX);
        let trials = self.trials.iter().map(PlannedTrial::load_time).sum::<Duration>();
        let deployments = self.trials.chunk_by(|one, next| one.deployment == next.deployment);
        let overheads = deployments.map(|shared| overhead(&shared[0].spec)).sum::<Duration>();
        control_planes + self.changed_services() * TIME_PER_SERVICE + overheads + trials
    }

    /// Estimated duration of the run with the maximum number of reruns.
    #[must_use]
    pub fn longest_time(&self) -> Duration {
        let longest = self.trials.iter().map(PlannedTrial::estimated_time).max().unwrap_or_default();
        self.estimated_time() + longest * u32::try_from(self.max_reruns()).unwrap_or(u32::MAX)
    }

    /// Background services written or removed between the trials of the run, including before the first.
    fn changed_services(&self) -> u32 {
        let mut before: Option<&PlannedTrial> = None;
        let changes = self.trials.iter().map(|trial| {
            let last = before.replace(trial).filter(|last| last.has_control_plane_of(trial));
            let there = last.map_or(0, |last| last.spec.istio.background_services.services);
            trial.spec.istio.background_services.services.abs_diff(there)
        });
        u32::try_from(changes.sum::<usize>()).unwrap_or(u32::MAX)
    }
}

/// Writing and removing a fleet's mesh, and the first configuration of all proxies.
fn preparation(fleet: &FleetSettings) -> Duration {
    let [objects, proxies, changes, visible] = [
        fleet.objects(),
        fleet.proxies,
        fleet.number_of_changes(),
        // Each proxy receives every service and pod, or with scoping those of its own namespace.
        (fleet.services + fleet.pods) / if fleet.scope { fleet.namespaces } else { 1 },
    ]
    .map(|count| u32::try_from(count).unwrap_or(u32::MAX));
    OF_AN_OBJECT.saturating_mul(objects)
        + TIME_PER_PROXY.saturating_mul(proxies)
        + TIME_PER_PROXY_AND_OBJECT.saturating_mul(proxies.saturating_mul(visible))
        + TIME_PER_CHANGE.saturating_mul(changes)
}

/// Object, written and removed.
const OF_AN_OBJECT: Duration = Duration::from_millis(12);

/// Proxy: its certificate, connection and subscriptions.
const TIME_PER_PROXY: Duration = Duration::from_millis(5);

/// Configuration for one service or pod on one proxy.
const TIME_PER_PROXY_AND_OBJECT: Duration = Duration::from_nanos(4_000);

/// Change until it has arrived everywhere, in addition to the time between changes.
const TIME_PER_CHANGE: Duration = Duration::from_millis(500);

impl PlannedTrial {
    /// True if both trials can share a control plane.
    fn has_control_plane_of(&self, other: &Self) -> bool {
        let [one, other] = [self, other].map(|trial| &trial.spec);
        let programs =
            |spec: &DeploymentSpec| (spec.components.istio.clone(), spec.components.istiod.clone());
        programs(one) == programs(other) && one.istio.telemetry == other.istio.telemetry
    }

    fn load_time(&self) -> Duration {
        self.warmup + self.duration + self.fleet.as_deref().map_or(Duration::ZERO, preparation)
    }

    /// Estimate for a trial with its own deployment.
    fn estimated_time(&self) -> Duration {
        self.load_time() + overhead(&self.spec)
    }
}

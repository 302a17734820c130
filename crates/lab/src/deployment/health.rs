//! Failed components: those that have died, were stopped, or do not respond.

use super::LabDeployment;
use crate::Result;
use crate::liveness;
use crate::running::RunningService;
use experiment::environment::deploy::{ComponentFailure, HealthProbe};

impl LabDeployment<'_> {
    pub(super) fn failure(&self, probe: HealthProbe) -> Option<ComponentFailure> {
        if probe == HealthProbe::Responses && self.failed().is_none() {
            self.probe_responses();
        }
        self.failed()
    }

    /// The first component that has died or was stopped, and how. A driver may end, but not be stopped.
    pub(super) fn failed(&self) -> Option<ComponentFailure> {
        let components = self.components().map(|(name, container)| (name, container.failed()));
        let drivers = self
            .drivers
            .containers()
            .map(|(name, _, driver)| (name, driver.has_exited().map_or_else(|| driver.stopped(), |_| None)));
        let mut failed = components.chain(drivers);
        failed.find_map(|(name, how)| Some(ComponentFailure { component: name.to_owned(), how: how? }))
    }

    /// Probes every component that responds to requests. The control plane is probed only if it is part of
    /// the deployment.
    fn probe_responses(&self) {
        let proxies = self.proxies().flat_map(|proxy| {
            proxy.counters.liveness_probes().into_iter().map(|question| (&proxy.container, question))
        });
        let supporting = self.supporting.iter();
        let supporting = supporting.filter_map(|other| Some((&other.container, other.liveness.clone()?)));
        // If its own count is needed, a service would count the probe as well. It is queried for that count
        // later.
        let is_disturbed =
            |service: &RunningService| service.counts_own_queries() && self.needs_service_counts();
        let services = self.pods.services().filter(|(_, service)| !is_disturbed(service));
        let services = services.map(|(_, service)| (&service.container, service.liveness()));
        let asked: Vec<_> = proxies.chain(services).chain(supporting).collect();
        let control_plane = self.lab.running_control_plane();
        let control_plane = control_plane.filter(|_| !self.supporting.is_empty());
        liveness::probe_all(&asked, || {
            if let Some(control_plane) = control_plane {
                control_plane.probe_api();
            }
        });
    }

    pub(super) fn check_alive(&self, operation: &str) -> Result<()> {
        self.components().try_for_each(|(_, container)| container.check(operation))
    }

    pub(super) fn needs_service_counts(&self) -> bool {
        let mut stations = self.edges.iter().flat_map(|edge| &edge.stations);
        stations.any(|station| station.evidence.needs_service())
    }
}

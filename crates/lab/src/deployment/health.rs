//! Failed components: those that have died, were stopped, or do not respond.

use super::LabDeployment;
use crate::Result;
use crate::liveness;
use crate::running::RunningService;
use experiment::environment::deploy::{ComponentFailure, HealthProbe};
use mesh::trial::place::need_services;

/// Containers per poll in which stopped processes are looked for. That takes some 70 µs for each, and at two polls per second
/// watching must stay under 1 % of a core. A trial that ends looks at all of them.
const STOPS_PER_POLL: usize = 25;

impl LabDeployment<'_> {
    pub(super) fn failure(&mut self, probe: HealthProbe) -> Option<ComponentFailure> {
        match probe {
            HealthProbe::Polled => return self.poll(),
            HealthProbe::Processes => {}
            HealthProbe::Responses if self.failed().is_none() => self.probe_responses(),
            HealthProbe::Responses => {}
        }
        self.failed()
    }

    /// The first component that has died or was stopped, and how. A driver may end, but not be stopped.
    pub(super) fn failed(&self) -> Option<ComponentFailure> {
        self.find_failure(|_| true)
    }

    /// Looks for dead components, and for stopped ones among the next few.
    fn poll(&mut self) -> Option<ComponentFailure> {
        let number = self.components().count() + self.drivers.containers().count();
        let polled = self.next_polled..self.next_polled + STOPS_PER_POLL;
        self.next_polled = if polled.end < number { polled.end } else { 0 };
        self.find_failure(|place| polled.contains(&place))
    }

    /// `looks_for_stops` tells whether to look for stopped processes in the component at a place.
    fn find_failure(&self, looks_for_stops: impl Fn(usize) -> bool) -> Option<ComponentFailure> {
        let components = self.components().map(|(name, container)| (name, container, false));
        let drivers = self.drivers.containers().map(|(name, _, driver)| (name, driver, true));
        components.chain(drivers).enumerate().find_map(|(place, (name, container, is_driver))| {
            let how = match (is_driver, looks_for_stops(place)) {
                (false, true) => container.failed(),
                (false, false) => container.failed_or_died(),
                (true, true) if container.has_exited().is_none() => container.stopped(),
                (true, _) => None,
            };
            Some(ComponentFailure { component: name.to_owned(), how: how? })
        })
    }

    /// Probes every component that responds to requests. The control plane is probed only if it is part of
    /// the deployment.
    fn probe_responses(&self) {
        let proxies = self.on_paths().flat_map(|proxy| {
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
        need_services(&self.edges)
    }
}

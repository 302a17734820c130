//! Fleets: where the control plane is, and what a fleet asks for.

use super::LabDeployment;
use crate::Result;
use crate::istio::ControlPlane;
use experiment::environment::EnvironmentError;
use experiment::schema::{FleetAnswer, FleetAsk};
use std::rc::Rc;

impl LabDeployment<'_> {
    /// Arguments of `meshmeter fleet` that say where the control plane is.
    pub(super) fn fleet_arguments(&self, fleet: &str) -> Result<Vec<String>> {
        let control_plane = self.control_plane().ok_or_else(|| {
            EnvironmentError::new(format!("start {fleet}"), "this deployment has no control plane")
        })?;
        let istiods = control_plane.discovery_addresses();
        let istiods = istiods.into_iter().map(|address| format!("--istiod={address}"));
        let kubeconfig = format!("--kubeconfig={}", control_plane.kubeconfig().display());
        Ok(istiods.chain([kubeconfig]).collect())
    }

    /// Does what a fleet has asked for, and answers.
    pub(super) fn carry_out(&mut self, fleet: &str, ask: &FleetAsk) {
        let failure = format!("{ask:?} is not possible in this deployment");
        self.drivers.answer(fleet, &FleetAnswer { failure: Some(failure), ..FleetAnswer::default() });
    }

    fn control_plane(&self) -> Option<Rc<ControlPlane>> {
        self.parts.namespaces.as_ref()?;
        self.lab.running_control_plane()
    }
}

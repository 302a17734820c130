//! Destinations of drivers' requests.

use super::ClusterDeployment;
use crate::gateway::{self, Destination};
use crate::objects::url;
use experiment::topology::DriverPlacement;

impl ClusterDeployment<'_> {
    /// Target of a driver: a gateway, or the service itself.
    pub(super) fn destination_of(&self, driver: &DriverPlacement) -> Destination {
        let context = self.context();
        gateway::destination(&context, driver, self.certificates.as_ref()).unwrap_or_else(|| {
            let url = url(&self.spec.topology, driver.target, &driver.endpoint, &self.cluster.settings);
            Destination { probe_url: url.clone(), url, arguments: Vec::new(), is_gateway: false }
        })
    }
}

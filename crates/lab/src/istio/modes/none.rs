//! `none`: client and server talk directly, by the Service's address, as pods of a cluster without a mesh do.

use super::{Memberships, Trial};
use crate::arrangement::LocalLab;
use crate::arrangement::service::SERVICE_PORT;
use crate::arrangement::started::Started;
use crate::istio::redirect::{ServiceAddress, service_rules};
use crate::redirect;
use experiment::environment::{DeploymentSpec, EnvironmentError};
use mesh::kubernetes::workloads::Membership;
use std::path::Path;

pub(super) fn can_run(place: &LocalLab) -> Result<(), EnvironmentError> {
    place.istio_programs()?;
    redirect::programs().map(drop)
}

pub(super) fn bring_up(
    place: &LocalLab,
    spec: &DeploymentSpec,
    log_dir: &Path,
) -> Result<Started, EnvironmentError> {
    let outside = Memberships { client: Membership::Outside, server: Membership::Outside };
    let mut trial = Trial::begin(place, spec, log_dir, outside)?;
    let mut objects = trial.service_objects();
    objects.extend(trial.objects_of_settings());
    let (_, service) = trial.write(&objects)?;
    let address = ServiceAddress { service, port: SERVICE_PORT, endpoint: trial.server_endpoint() };
    trial.pods.client.load_rules(service_rules(&[address]))?;
    trial.started()
}

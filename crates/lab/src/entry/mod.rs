//! Entries: how drivers reach the workloads that they offer load to. One file each.

mod gateway;
pub(crate) mod ingress;

use crate::Result;
use crate::deployment::part::{Nothing, Part};
use crate::local_lab::LocalLab;
use experiment::dataplane::Entry;
use experiment::environment::{DeploymentSpec, EnvironmentError};

pub(crate) fn part<'lab>(
    entry: Entry,
    lab: &'lab LocalLab,
    spec: &DeploymentSpec,
) -> Result<Box<dyn Part + 'lab>> {
    if spec.ingress.declared && entry != Entry::Direct {
        let reason = "this version has no gateways with several domains";
        return Err(EnvironmentError::new("bring up the domains of `ingress`", reason));
    }
    Ok(match entry {
        Entry::Direct => Box::new(Nothing),
        Entry::Gateway => Box::new(gateway::StaticGateway::new(lab.envoy()?)),
        Entry::Ingress => Box::new(ingress::Ingress::default()),
    })
}

pub(crate) fn check(entry: Entry, lab: &LocalLab) -> Result<()> {
    match entry {
        // Ingress gateways are run from what sidecars are.
        Entry::Direct | Entry::Ingress => Ok(()),
        Entry::Gateway => lab.envoy().map(drop),
    }
}

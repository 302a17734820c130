//! Entries: how drivers reach the workloads that they load. One file each.

mod domains;
pub(crate) mod further_domain;
mod gateway;
pub(crate) mod ingress;

use crate::Result;
use crate::deployment::part::{Nothing, Part};
use crate::programs::ChosenPrograms;
use experiment::dataplane::Entry;

pub(crate) fn part(entry: Entry, programs: &ChosenPrograms) -> Result<Box<dyn Part + '_>> {
    Ok(match entry {
        Entry::Direct => Box::new(Nothing),
        Entry::Gateway => Box::new(gateway::StaticGateway::new(programs.envoy()?)),
        Entry::Ingress => Box::new(ingress::Ingress::default()),
    })
}

pub(crate) fn check(entry: Entry, programs: &ChosenPrograms) -> Result<()> {
    match entry {
        // Ingress gateways use the same programs as sidecars.
        Entry::Direct | Entry::Ingress => Ok(()),
        Entry::Gateway => programs.envoy().map(drop),
    }
}

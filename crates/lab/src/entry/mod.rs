//! Entries: how drivers reach the workloads that they load. One file each.

mod gateway;
mod ingress;

use crate::Result;
use crate::programs::ChosenPrograms;
use crate::rollout::part::{Nothing, Part};
use experiment::dataplane::Entry;
use std::collections::BTreeMap;

pub(crate) fn part(entry: Entry, programs: &ChosenPrograms) -> Result<Box<dyn Part + '_>> {
    Ok(match entry {
        Entry::Direct => Box::new(Nothing),
        Entry::Gateway => {
            Box::new(gateway::StaticGateway { envoy: programs.envoy()?, gateways: BTreeMap::new() })
        }
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

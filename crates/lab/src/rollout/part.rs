//! A part of a deployment next to its workloads: a data plane, an entry or an exit.

use super::Rollout;
use super::station::{Destination, Stations};
use crate::Result;
use experiment::topology::{Call, DriverPlacement};
use mesh::istio::propagation::Expected;
use mesh::trial::place::ProxyId;
use serde_json::Value;

/// What a mode adds to the workloads of a topology. A deployment calls the methods in the order in which they
/// are listed here.
pub(crate) trait Part {
    /// Starts proxies and redirects traffic. Proxies need not be ready yet.
    fn start(&mut self, _rollout: &mut Rollout<'_>) -> Result<()> {
        Ok(())
    }

    fn proxies_are_ready(&mut self, _rollout: &mut Rollout<'_>) -> Result<()> {
        Ok(())
    }

    /// Objects that route traffic through its proxies. They are written together with the Services.
    fn objects(&self, _rollout: &Rollout<'_>) -> Vec<Value> {
        Vec::new()
    }

    fn expected(&self, _rollout: &Rollout<'_>) -> Vec<(ProxyId, Vec<Expected>)> {
        Vec::new()
    }

    fn stations(&self, _rollout: &Rollout<'_>, _call: Call) -> Stations {
        Stations::default()
    }

    /// Destination of a driver, unless it is the target's Service or address.
    fn destination(&self, _rollout: &Rollout<'_>, _driver: &DriverPlacement) -> Option<Destination> {
        None
    }
}

/// Direct entry, no exit, or no proxies: the part of a mode that adds nothing.
pub(crate) struct Nothing;

impl Part for Nothing {}

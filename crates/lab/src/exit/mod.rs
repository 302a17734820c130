//! Exits: how calls leave the mesh for external services: past the caller's sidecar, through it, or through
//! an egress gateway.
//!
//! An external service is a pod that the mesh knows only by a ServiceEntry. Callers speak TLS with it, so
//! proxies carry opaque TCP and are checked against the service's own count. With [`Exit::Bypass`], redirect
//! rules exclude the service's address, and the callers' sidecars must not have carried anything.

mod egress;
pub(crate) mod hops;
mod sni_proxy;

use crate::Result;
use crate::rollout::part::{Nothing, Part};
use experiment::dataplane::{DataPlane, Exit, ModeParts};
use experiment::environment::{DeploymentSpec, EnvironmentError};
use experiment::topology::Runs;
use results::Mode;

pub(crate) fn part<'a>(exit: Exit) -> Box<dyn Part + 'a> {
    match exit {
        Exit::None => Box::new(Nothing),
        _ => Box::new(egress::Egress::default()),
    }
}

pub(crate) fn check(exit: Exit, mode: Mode) -> Result<()> {
    if exit != Exit::Sni {
        return Ok(());
    }
    let found = sni_proxy::find();
    found.map(drop).map_err(|error| EnvironmentError { operation: format!("run mode {mode}"), ..error })
}

/// Rejects databases in modes with proxies but no exit: their queries would leave on a path that cannot be
/// proven.
pub(crate) fn check_databases(spec: &DeploymentSpec) -> Result<()> {
    let ModeParts { data_plane, exit, .. } = spec.parts();
    let mut workloads = spec.topology.workloads.iter();
    let database = workloads.find(|workload| matches!(workload.runs, Runs::Database));
    match database {
        Some(database) if data_plane != DataPlane::None && exit == Exit::None => {
            let reason =
                format!("the topology has a database outside the mesh, {}", database.qualified_name());
            let hint = "modes for it: none, egress-bypass, egress-sidecar, egress-gateway, egress-gateway-mtls, egress-sni";
            Err(EnvironmentError::new(format!("run mode {}", spec.mode), reason).with_hint(hint))
        }
        _ => Ok(()),
    }
}

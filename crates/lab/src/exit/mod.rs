//! Exits: how calls leave the mesh for external services: past the caller's sidecar, through it, or by an egress gateway.
//!
//! An external service is a pod that the mesh knows only by a ServiceEntry. Callers speak TLS with it, so proxies carry
//! opaque TCP and are checked against the service's own count. With [`Exit::Bypass`] redirect rules exclude the service's
//! address, and the callers' sidecars must have carried nothing.

mod egress;
pub(crate) mod hops;
mod sni_proxy;

use crate::Result;
use crate::deployment::part::Part;
use experiment::Mode;
use experiment::dataplane::Exit;
use experiment::environment::EnvironmentError;

pub(crate) fn part<'a>(exit: Exit) -> Box<dyn Part + 'a> {
    match exit {
        Exit::None => Box::new(egress::NoExternalServices),
        exit => Box::new(egress::Egress::new(exit)),
    }
}

pub(crate) fn check(exit: Exit, mode: Mode) -> Result<()> {
    if exit != Exit::Sni {
        return Ok(());
    }
    let found = sni_proxy::find();
    found.map(drop).map_err(|error| EnvironmentError { operation: format!("run mode {mode}"), ..error })
}

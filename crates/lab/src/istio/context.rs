//! Context that a deployment under a control plane passes to its proxies.

use super::{ControlPlane, IstioPrograms, MeshNamespaces};
use crate::context::DeploymentContext;
use std::path::PathBuf;
use std::rc::Rc;

#[derive(Debug)]
pub(crate) struct MeshContext<'a> {
    pub programs: &'a IstioPrograms,
    pub control_plane: Rc<ControlPlane>,
    /// One mesh namespace per namespace of the topology, in the same order.
    pub namespaces: MeshNamespaces,
    /// Path at which proxies find the WebAssembly module that they run.
    pub wasm_module: Option<PathBuf>,
}

impl MeshContext<'_> {
    pub fn proxies<'a>(&'a self, context: &'a DeploymentContext<'a>) -> MeshProxies<'a> {
        let root_certificate = self.control_plane.root_certificate();
        MeshProxies { context, programs: self.programs, root_certificate }
    }
}

/// Context, programs and CA certificate that proxies under a control plane are started with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MeshProxies<'a> {
    pub context: &'a DeploymentContext<'a>,
    pub programs: &'a IstioPrograms,
    /// CA certificate of the mesh, PEM.
    pub root_certificate: &'a str,
}

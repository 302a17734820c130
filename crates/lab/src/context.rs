//! What a deployment passes to everything that it starts, apart from the pods.

use crate::certificates::RunAuthority;
use crate::component_name::lab_name;
use crate::container::{ContainerSpec, ContainerUser};
use crate::istio::{ControlPlane, IstioPrograms, MeshNamespaces};
use crate::lab::Lab;
use components::Overrides;
use experiment::environment::DeploymentSpec;
use experiment::topology::Resources;
use mesh::names::file_name;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;

#[derive(Debug)]
pub(crate) struct DeploymentContext<'a> {
    pub lab: &'a Lab,
    pub meshmeter: &'a Path,
    pub authority: &'a RunAuthority,
    pub overrides: &'a Overrides,
    pub spec: &'a DeploymentSpec,
    pub log_dir: &'a Path,
    /// Number of the deployment within its run, from 1.
    pub number: usize,
}

/// Environment variables of a container.
pub(crate) fn variables<'a, V: Into<OsString>>(
    variables: impl IntoIterator<Item = (&'a str, V)>,
) -> BTreeMap<String, OsString> {
    variables.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect()
}

impl DeploymentContext<'_> {
    /// A container for this component. Its log is among the logs of the deployment.
    pub fn container(&self, component: &str, program: &Path) -> ContainerSpec {
        let log = self.log_dir.join(format!("{}.log", file_name(component)));
        ContainerSpec::new(lab_name(component), program, log)
    }

    /// A container for a proxy, with the CPU limit of proxies.
    pub fn proxy_container(&self, component: &str, program: &Path) -> ContainerSpec {
        let limits = self.proxy_resources().limits;
        ContainerSpec { limits, user: ContainerUser::Proxy, ..self.container(component, program) }
    }

    /// Limits of every proxy except the gateway that drivers reach ([`Self::gateway_resources`]).
    pub fn proxy_resources(&self) -> ProxyResources {
        let proxy = &self.spec.proxy;
        ProxyResources { limits: Resources::cpu_limit(proxy.cpu_limit_cores), workers: proxy.workers }
    }

    /// Limits of the gateway that drivers reach.
    pub fn gateway_resources(&self) -> ProxyResources {
        let DeploymentSpec { gateway, proxy, .. } = self.spec;
        ProxyResources { limits: gateway.limits(proxy), workers: gateway.workers(proxy) }
    }
}

/// CPU limit and worker threads of a proxy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProxyResources {
    pub limits: Resources,
    pub workers: usize,
}

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

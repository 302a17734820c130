//! What a deployment passes to everything that it starts, apart from the pods.

use crate::certificates::RunAuthority;
use crate::component_name::lab_name;
use crate::container::{ContainerSpec, ContainerUser};
use crate::lab::Lab;
use components::Overrides;
use experiment::environment::DeploymentSpec;
use experiment::topology::Resources;
use mesh::names::file_name;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

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

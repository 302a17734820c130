//! A control plane that is reachable from the machine: `kubectl` and `istioctl` run in the user's own shell.
//!
//! Two ports of the machine's loopback lead to the API and to istiod, which authenticate clients. Interfaces
//! without authentication (istiod's debug pages, Envoys' admin) stay inside the lab: see `meshmeter lab exec`
//! and `lab forward`.

use super::control_plane::ControlPlane;
use super::credentials::API_PORT;
use crate::Result;
use crate::certificates::write_private;
use crate::lab::Lab;
use crate::sandbox::port_forward::PortForward;
use mesh::kubernetes::workloads::service_account;
use mesh::names::SYSTEM_NAMESPACE;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Number of machine ports that it needs, an argument of [`crate::enter_with_ports`].
pub const FORWARDED_PORTS: usize = 2;
const KUBECONFIG: &str = "kubeconfig";

/// The service account whose tokens authenticate `istioctl`.
const ISTIOCTL_ACCOUNT: &str = "default";

/// A control plane that the machine can reach until this is dropped.
#[derive(Debug)]
pub struct OpenedControlPlane {
    api: PortForward,
    discovery: PortForward,
    kubeconfig: PathBuf,
}

impl OpenedControlPlane {
    /// Opens the ports and writes a kubeconfig to the lab's directory, with default namespace `namespace`.
    pub fn open(lab: &Lab, control_plane: &ControlPlane, namespace: &str) -> Result<Self> {
        let api = lab.forward_port(control_plane.pod(), API_PORT)?;
        let discovery = control_plane.forward_discovery(lab)?;
        // In a cluster a controller creates one in each namespace.
        let account = |namespace: &str| service_account(ISTIOCTL_ACCOUNT, namespace);
        control_plane.api().apply(&[account(SYSTEM_NAMESPACE), account(namespace)])?;
        let name = format!("meshmeter-{}", lab.id());
        let content = control_plane.credentials().kubeconfig_at(api.address(), &name, namespace);
        let kubeconfig = lab.private_dir().join(KUBECONFIG);
        write_private(&kubeconfig, content.to_string().as_bytes(), None)?;
        Ok(Self { api, discovery, kubeconfig })
    }

    pub fn api(&self) -> SocketAddr {
        self.api.address()
    }

    pub fn discovery(&self) -> SocketAddr {
        self.discovery.address()
    }

    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }
}

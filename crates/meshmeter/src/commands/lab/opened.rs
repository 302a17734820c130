//! A control plane that is reachable from the machine: `kubectl` and `istioctl` run in the user's own shell.
//!
//! Two ports of the machine's loopback lead to the API and to istiod, which authenticate clients. Interfaces
//! without authentication (istiod's debug pages, Envoys' admin) stay inside the lab: see `meshmeter lab exec`
//! and `lab forward`.

use experiment::environment::{EnvironmentError, ErrorContext as _};
use lab::Lab;
use lab::istio::ControlPlane;
use lab::sandbox::port_forward::{self, PortForward};
use mesh::certificates::write_private;
use mesh::kubernetes::kubeconfig::kubeconfig;
use mesh::kubernetes::workloads::service_account;
use mesh::names::SYSTEM_NAMESPACE;
use serde_json::Value;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;

const KUBECONFIG: &str = "kubeconfig";

/// The service account whose tokens authenticate `istioctl`.
const ISTIOCTL_ACCOUNT: &str = "default";

/// A control plane that the machine can reach until this is dropped.
pub struct OpenedControlPlane {
    pub api: PortForward,
    pub discovery: PortForward,
    pub kubeconfig: PathBuf,
}

impl OpenedControlPlane {
    /// Reserves ports of the machine, from [`lab::enter_after`].
    pub fn reserve_ports() -> Result<[TcpListener; 2], EnvironmentError> {
        Ok([port_forward::listen(0)?, port_forward::listen(0)?])
    }

    /// Opens the ports and writes a kubeconfig to the lab's directory, with default namespace `namespace`.
    pub fn open(
        lab: &Lab,
        control_plane: &ControlPlane,
        namespace: &str,
        ports: [TcpListener; 2],
    ) -> Result<Self, EnvironmentError> {
        let [api, discovery] = control_plane.forward_ports(ports)?;
        // In a cluster a controller creates one in each namespace.
        let account = |namespace: &str| service_account(ISTIOCTL_ACCOUNT, namespace);
        control_plane.api().apply(&[account(SYSTEM_NAMESPACE), account(namespace)])?;
        let own = fs::read(control_plane.kubeconfig()).context("read the lab's own kubeconfig")?;
        let own: Value = serde_json::from_slice(&own).context("read the lab's own kubeconfig")?;
        let name = format!("meshmeter-{}", lab.id());
        let content = kubeconfig_at(&own, api.address(), &name, namespace);
        let kubeconfig = lab.private_dir().join(KUBECONFIG);
        write_private(&kubeconfig, content.to_string().as_bytes(), None)?;
        Ok(Self { api, discovery, kubeconfig })
    }
}

/// A kubeconfig of the same user for an API at another address, which must be among the names of the API's
/// certificate. All its entries have this name, so that it can be merged with those of other labs and clusters
/// (`KUBECONFIG=a:b`).
fn kubeconfig_at(own: &Value, address: SocketAddr, name: &str, namespace: &str) -> Value {
    let authority_data = own["clusters"][0]["cluster"]["certificate-authority-data"].as_str();
    let server = format!("https://{address}");
    let user = &own["users"][0]["user"];
    kubeconfig(name, &server, Some(namespace), authority_data.unwrap_or_default(), user)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::net::Ipv4Addr;

    #[test]
    fn kubeconfigs_of_two_labs_can_be_merged() {
        // The client certificate identifies the administrator; there is no other user.
        let user = json!({"client-certificate-data": "YQ==", "client-key-data": "Yg=="});
        let own = kubeconfig("meshmeter", "https://10.77.0.2:6443", None, "Yw==", &user);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 40123));
        let kubeconfig = kubeconfig_at(&own, address, "meshmeter-abc234", "mesh-1");
        let cluster = &kubeconfig["clusters"][0]["cluster"];
        assert_eq!(cluster["server"], "https://127.0.0.1:40123");
        assert_eq!(cluster["certificate-authority-data"], "Yw==");
        for list in ["clusters", "users", "contexts"] {
            assert_eq!(kubeconfig[list][0]["name"], "meshmeter-abc234", "{list}");
        }
        assert_eq!(kubeconfig["contexts"][0]["context"]["namespace"], "mesh-1");
        assert_eq!(kubeconfig["users"][0]["user"], user);
    }
}

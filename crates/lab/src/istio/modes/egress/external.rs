//! The service outside the mesh: a pod that the API knows nothing of, and a service that speaks TLS itself.

use crate::arrangement::LocalLab;
use crate::arrangement::service::start_service_outside;
use crate::arrangement::started::PrivateFolder;
use crate::certificates::{CertificateError, CredentialFiles};
use crate::container::{Container, ContainerUser};
use crate::pod::Pod;
use experiment::Protocol;
use experiment::environment::{DeploymentSpec, EnvironmentError};
use mesh::istio::objects::egress::{EXTERNAL_HOST, EXTERNAL_PORT};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;

/// A service outside the mesh.
pub(in crate::istio::modes) struct External {
    /// Its pod's address.
    pub address: Ipv4Addr,
    /// Its certificate and key, and the authority that clients trust.
    pub folder: PrivateFolder,
}

impl External {
    /// Starts it in this pod with a certificate of the run's authority. `namespace` names its folder.
    pub fn start(
        place: &LocalLab,
        spec: &DeploymentSpec,
        namespace: &str,
        pod: &mut Pod,
        log_dir: &Path,
    ) -> Result<(Self, Container), EnvironmentError> {
        let failed = |error: CertificateError| {
            EnvironmentError::new("make the certificate of the service outside", error)
        };
        let credentials = place.authority().issue_server(&[EXTERNAL_HOST], &[]).map_err(failed)?;
        let name = format!("{namespace}-external");
        let folder = PrivateFolder(place.lab().create_private_dir(&name, ContainerUser::Lab)?);
        let files = credentials.write(folder.path(), None).map_err(failed)?;
        let container = start_service_outside(pod, spec, &files, EXTERNAL_PORT, place.meshmeter(), log_dir)?;
        Ok((Self { address: pod.address(), folder }, container))
    }

    /// Where it listens.
    pub fn socket_address(&self) -> SocketAddrV4 {
        SocketAddrV4::new(self.address, EXTERNAL_PORT)
    }

    /// What the client requests: it opens TLS itself, whatever the protocol.
    pub fn url(&self, protocol: Protocol) -> String {
        let place = format!("{EXTERNAL_HOST}:{EXTERNAL_PORT}");
        match protocol {
            Protocol::Http1 | Protocol::Http2 => format!("https://{place}/"),
            Protocol::Grpc => format!("grpcs://{place}/meshmeter.v1.Echo/Unary"),
            Protocol::Tcp => format!("tls://{place}"),
        }
    }

    /// Whom the generator trusts.
    pub fn client_arguments(&self) -> Vec<String> {
        let files = CredentialFiles::in_folder(self.folder.path());
        vec![format!("--cacert={}", files.authority.display())]
    }
}

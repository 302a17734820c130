//! Credentials of the lab's API and of its clients.
//!
//! The control plane has a CA of its own. It issues one certificate for the API server and one for its
//! administrator (Meshmeter, istiod, and users of the kubeconfig). The API signs the tokens of service
//! accounts with a separate key. All files are in a directory that only the lab's user may enter, and are
//! removed with the control plane.

use crate::Result;
use crate::certificates::{RunAuthority, SigningKey, write_private};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use experiment::environment::ErrorContext;
use mesh::kubernetes::kubeconfig::kubeconfig;
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

pub const API_PORT: u16 = 6443;

/// Members of this group may do anything, whatever the RBAC rules (`system:masters`).
const ADMINISTRATORS: &str = "system:masters";

#[derive(Debug)]
pub struct ApiCredentials {
    pub certificate: PathBuf,
    pub key: PathBuf,
    pub client_authority: PathBuf,
    pub token_signing_key: PathBuf,
    pub token_checking_key: PathBuf,
    pub kubeconfig: PathBuf,
    pub kubeconfig_content: Value,
}

impl ApiCredentials {
    pub fn create(folder: &Path, address: Ipv4Addr) -> Result<Self> {
        let operation = "make the lab API's credentials";
        let authority = RunAuthority::create().context(operation)?;
        let names = ["kubernetes.default.svc", "kubernetes.default", "kubernetes", "localhost"];
        let addresses = [address.into(), Ipv4Addr::LOCALHOST.into()];
        let server = authority.issue_server(&names, &addresses).context(operation)?;
        let administrator = authority.issue_client("meshmeter", ADMINISTRATORS).context(operation)?;
        let tokens = SigningKey::create().context(operation)?;
        let user = json!({
            "client-certificate-data": BASE64_STANDARD.encode(&administrator.certificate_pem),
            "client-key-data": BASE64_STANDARD.encode(&administrator.key_pem),
        });
        let authority_data = BASE64_STANDARD.encode(&server.authority_pem);
        let kubeconfig =
            kubeconfig("meshmeter", &format!("https://{address}:{API_PORT}"), None, &authority_data, &user);
        let write = |name: &str, content: &str| {
            let path = folder.join(name);
            write_private(&path, content.as_bytes(), None).map(|()| path)
        };
        Ok(Self {
            certificate: write("api.pem", &server.certificate_pem)?,
            key: write("api-key.pem", &server.key_pem)?,
            client_authority: write("authority.pem", &server.authority_pem)?,
            token_signing_key: write("token-key.pem", &tokens.private_pem)?,
            token_checking_key: write("token-public.pem", &tokens.public_pem)?,
            kubeconfig: write("kubeconfig", &kubeconfig.to_string())?,
            kubeconfig_content: kubeconfig,
        })
    }

    /// The same administrator's kubeconfig for an API at another address, which must be among the names of
    /// the API's certificate. All its entries have this name, so that it can be merged with those of other
    /// labs and clusters (`KUBECONFIG=a:b`).
    pub fn kubeconfig_at(&self, address: SocketAddr, name: &str, namespace: &str) -> Value {
        let own = &self.kubeconfig_content;
        let authority_data = own["clusters"][0]["cluster"]["certificate-authority-data"].as_str();
        kubeconfig(
            name,
            &format!("https://{address}"),
            Some(namespace),
            authority_data.unwrap_or_default(),
            &own["users"][0]["user"],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn credential_files_are_private_and_kubeconfig_has_no_paths() {
        let folder = tempfile::tempdir().unwrap();
        let credentials = ApiCredentials::create(folder.path(), Ipv4Addr::new(10, 77, 0, 2)).unwrap();
        for entry in std::fs::read_dir(folder.path()).unwrap() {
            let entry = entry.unwrap();
            assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", entry.path());
        }
        let cluster = &credentials.kubeconfig_content["clusters"][0]["cluster"];
        assert_eq!(cluster["server"], "https://10.77.0.2:6443");
        let authority =
            BASE64_STANDARD.decode(cluster["certificate-authority-data"].as_str().unwrap()).unwrap();
        assert!(authority.starts_with(b"-----BEGIN CERTIFICATE-----"));
    }

    #[test]
    fn kubeconfigs_of_two_labs_can_be_merged() {
        let folder = tempfile::tempdir().unwrap();
        let credentials = ApiCredentials::create(folder.path(), Ipv4Addr::new(10, 77, 0, 2)).unwrap();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 40123));
        let kubeconfig = credentials.kubeconfig_at(address, "meshmeter-abc234", "mesh-1");
        assert_eq!(kubeconfig["clusters"][0]["cluster"]["server"], "https://127.0.0.1:40123");
        for list in ["clusters", "users", "contexts"] {
            assert_eq!(kubeconfig[list][0]["name"], "meshmeter-abc234", "{list}");
        }
        assert_eq!(kubeconfig["contexts"][0]["context"]["namespace"], "mesh-1");
        // The client certificate identifies the administrator; there is no other user.
        let user = &kubeconfig["users"][0]["user"];
        assert_eq!(user, &credentials.kubeconfig_content["users"][0]["user"]);
        assert!(user["client-certificate-data"].is_string() && user["client-key-data"].is_string());
    }
}

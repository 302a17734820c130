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
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

pub const API_PORT: u16 = 6443;

/// Members of this group may do anything, whatever the RBAC rules (`system:masters`).
const ADMINISTRATORS: &str = "system:masters";

#[derive(Debug)]
pub struct ApiCredentials {
    /// Options of kube-apiserver that name its files.
    pub options: Vec<String>,
    pub kubeconfig: PathBuf,
    pub kubeconfig_content: Value,
}

impl ApiCredentials {
    /// Writes the kubeconfig to `folder`, and the files of kube-apiserver to `servers`, whose owner is given.
    pub fn create(folder: &Path, servers: &Path, owner: Option<u32>, address: Ipv4Addr) -> Result<Self> {
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
            let path = servers.join(name);
            write_private(&path, content.as_bytes(), owner).map(|()| path)
        };
        let files = [
            ("tls-cert-file", "api.pem", &server.certificate_pem),
            ("tls-private-key-file", "api-key.pem", &server.key_pem),
            ("client-ca-file", "authority.pem", &server.authority_pem),
            ("service-account-signing-key-file", "token-key.pem", &tokens.private_pem),
            ("service-account-key-file", "token-public.pem", &tokens.public_pem),
        ];
        let options = files
            .into_iter()
            .map(|(option, name, content)| Ok(format!("--{option}={}", write(name, content)?.display())));
        let path = folder.join("kubeconfig");
        write_private(&path, kubeconfig.to_string().as_bytes(), None)?;
        Ok(Self {
            options: options.collect::<Result<_>>()?,
            kubeconfig: path,
            kubeconfig_content: kubeconfig,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn credential_files_are_private_and_kubeconfig_has_no_paths() {
        let folder = tempfile::tempdir().unwrap();
        let credentials =
            ApiCredentials::create(folder.path(), folder.path(), None, Ipv4Addr::new(10, 77, 0, 2)).unwrap();
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
}

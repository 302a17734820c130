//! Certificates for the test servers.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;

/// Names of files.
pub(crate) const CERTIFICATE: &str = "certificate.pem";
pub(crate) const KEY: &str = "key.pem";

/// Issues a certificate for loopback, as files and as the configuration of a server.
pub(crate) fn certify(folder: &Path) -> Arc<ServerConfig> {
    let key = KeyPair::generate().expect("a P-256 key");
    let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
    let certificate = CertificateParams::new(names).expect("names").self_signed(&key).expect("a certificate");
    fs::write(folder.join(CERTIFICATE), certificate.pem()).expect("a file");
    fs::write(folder.join(KEY), key.serialize_pem()).expect("a file");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("the key that was just made");
    let configuration = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has the default versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .expect("the certificate that was just made");
    Arc::new(configuration)
}

//! Certificate authorities that the system trusts. A container image often has none: then every public server would
//! be of an unknown issuer, so the errors here say what was looked at and what helps.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_native_certs::CertificateResult;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;

/// Far larger than any bundle of authorities; bounds the cost of a wrong file.
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// There is not one usable authority.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the system has no certificate authorities ({looked_at}): name a file of them with SSL_CERT_FILE")]
pub struct NoAuthorities {
    looked_at: String,
}

/// The system's authorities, or those of `SSL_CERT_FILE` and `SSL_CERT_DIR`. Unusable ones are ignored if there
/// are others.
///
/// # Errors
/// Returns an error if there is none.
pub fn of_system() -> Result<RootCertStore, NoAuthorities> {
    from_loaded(rustls_native_certs::load_native_certs())
}

fn from_loaded(loaded: CertificateResult) -> Result<RootCertStore, NoAuthorities> {
    let mut roots = RootCertStore::empty();
    let (_, unusable) = roots.add_parsable_certificates(loaded.certs);
    if !roots.is_empty() {
        return Ok(roots);
    }
    let mut looked_at: Vec<String> = loaded.errors.iter().map(ToString::to_string).collect();
    if unusable > 0 {
        looked_at.push(format!("{unusable} certificates cannot be used"));
    }
    if looked_at.is_empty() {
        looked_at.push("nothing in /etc/ssl/certs, /etc/pki/tls/certs and other usual places".to_owned());
    }
    Err(NoAuthorities { looked_at: looked_at.join("; ") })
}

/// Content of a file of certificates or keys (PEM).
///
/// # Errors
/// Returns an error if the file cannot be read or is larger than 16 MiB.
pub fn read_pem_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let length = File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut text)?;
    if length as u64 > MAX_FILE_BYTES { Err(io::Error::other("larger than 16 MiB")) } else { Ok(text) }
}

/// TLS settings of a client that verifies servers by these authorities. Without any, handshakes fail for that
/// reason: whether there will be one is not known yet.
///
/// # Panics
/// Panics if the cryptographic library lacks the default versions of TLS, which it has.
#[must_use]
pub fn client_config(roots: Result<RootCertStore, NoAuthorities>) -> ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("the provider has the default versions");
    match roots {
        Ok(roots) => builder.with_root_certificates(roots),
        Err(reason) => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(RejectingVerifier { reason, provider })),
    }
    .with_no_client_auth()
}

/// Rejects every certificate, for one reason.
#[derive(Debug)]
struct RejectingVerifier {
    reason: NoAuthorities,
    provider: Arc<CryptoProvider>,
}

impl RejectingVerifier {
    fn error(&self) -> Error {
        Error::General(self.reason.to_string())
    }
}

impl ServerCertVerifier for RejectingVerifier {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Err(self.error())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(self.error())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(self.error())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_and_unusable_authorities_are_reported() {
        let absent = from_loaded(CertificateResult::default()).unwrap_err().to_string();
        assert!(absent.contains("/etc/ssl/certs") && absent.contains("SSL_CERT_FILE"), "{absent}");
        let mut garbage = CertificateResult::default();
        garbage.certs.push(CertificateDer::from(vec![1, 2, 3]));
        let garbage = from_loaded(garbage).unwrap_err().to_string();
        assert!(garbage.contains("1 certificates cannot be used"), "{garbage}");
        let named = rustls_native_certs::load_certs_from_paths(Some("/nowhere/ca.pem".as_ref()), None);
        let named = from_loaded(named).unwrap_err().to_string();
        assert!(named.contains("/nowhere/ca.pem"), "{named}");
    }

    #[test]
    fn handshakes_without_authorities_fail_for_that_reason() {
        let reason = from_loaded(CertificateResult::default()).unwrap_err();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = RejectingVerifier { reason: reason.clone(), provider };
        let (certificate, name) =
            (CertificateDer::from(vec![]), ServerName::try_from("shop.example").unwrap());
        let rejected = verifier.verify_server_cert(&certificate, &[], &name, &[], UnixTime::now());
        assert!(rejected.unwrap_err().to_string().contains(&reason.to_string()));
        assert!(!verifier.supported_verify_schemes().is_empty());
    }
}

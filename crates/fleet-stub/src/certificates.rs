//! Certificates of stubs: valid, expired, or of an untrusted authority.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    date_time_ymd,
};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::error::Error;
use std::sync::Arc;

/// Validity of a certificate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Validity {
    /// Valid until far into the future.
    Valid,
    /// Expired in the year before last.
    Expired,
}

/// A certificate authority.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    /// Creates an authority with its own key.
    ///
    /// # Errors
    /// Returns an error if the operating system provides no random numbers.
    pub fn new(name: &str) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name.push(DnType::CommonName, name);
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Ok(Self { issuer: CertifiedIssuer::self_signed(parameters, KeyPair::generate()?)? })
    }

    /// Certificate of the authority, PEM.
    #[must_use]
    pub fn certificate_pem(&self) -> String {
        self.issuer.pem()
    }

    /// TLS of a server with this name, for HTTP/2; clients need no certificate.
    ///
    /// # Errors
    /// Returns an error if the name is not a valid server name.
    pub fn server(
        &self,
        name: &str,
        validity: Validity,
    ) -> Result<Arc<ServerConfig>, Box<dyn Error + Send + Sync>> {
        let mut parameters = CertificateParams::new(vec![name.to_owned()])?;
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        if validity == Validity::Expired {
            parameters.not_before = date_time_ymd(2020, 1, 1);
            parameters.not_after = date_time_ymd(2021, 1, 1);
        }
        let key = KeyPair::generate()?;
        let certificate = parameters.signed_by(&key, &self.issuer)?;
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let chain = vec![certificate.der().clone()];
        let mut server =
            ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()?
                .with_no_client_auth()
                .with_single_cert(chain, key)?;
        server.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Arc::new(server))
    }
}

//! Server-side TLS: certificate and key from files or generated, and client certificate requirements.

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Validity of a generated certificate: longer than any server runs for tests.
const VALIDITY: Duration = Duration::from_secs(365 * 24 * 3600);
/// How long ago its validity starts, to allow for clock differences.
const BACKDATED: Duration = Duration::from_secs(3600);

/// Certificate, key, and client certificate requirements. Its `Debug` output does not include the key.
#[derive(Clone, Debug)]
pub struct Tls {
    config: Arc<ServerConfig>,
}

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("read the {content} in {}", path.display())]
    Read {
        /// The expected content.
        content: &'static str,
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// A file is not PEM.
    #[error("read the {content} in {}", path.display())]
    Pem {
        /// The expected content.
        content: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: pem::Error,
    },
    /// A PEM file contains something else.
    #[error("there is no {content} in {}", path.display())]
    Absent {
        /// The expected content.
        content: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// The certificate and the key are unusable.
    #[error("use the certificate and its key")]
    Unfit(#[source] rustls::Error),
    /// The client authorities are unusable.
    #[error("use the certificates in {} as authorities of clients", path.display())]
    ClientAuthority {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A certificate could not be generated.
    #[error("make a certificate for {names}")]
    Make {
        /// The names for the certificate.
        names: String,
        /// The cause.
        source: rcgen::Error,
    },
}

impl TlsError {
    /// What to do about it, if there is a remedy.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Pem { .. } | Self::Absent { .. } => Some(
                "expected PEM: blocks that begin with -----BEGIN CERTIFICATE----- or -----BEGIN PRIVATE KEY-----",
            ),
            Self::Unfit(_) => Some("the key must belong to the first certificate in the file"),
            Self::Read { .. } | Self::ClientAuthority { .. } | Self::Make { .. } => None,
        }
    }
}

impl Tls {
    /// TLS with the certificate (chain) and the private key in these PEM files. With `client_authority`,
    /// clients must present a certificate of one of its authorities.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read, contains something else, or key and certificate do not
    /// match.
    pub fn from_files(
        certificate: &Path,
        key: &Path,
        client_authority: Option<&Path>,
    ) -> Result<Self, TlsError> {
        const KEY: &str = "private key";
        let chain = certificates(certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&read(key, KEY)?).map_err(|source| match source {
            pem::Error::NoItemsFound => TlsError::Absent { content: KEY, path: key.to_owned() },
            source => TlsError::Pem { content: KEY, path: key.to_owned(), source },
        })?;
        Self::new(chain, key, client_authority)
    }

    /// TLS with a generated certificate for these names and addresses, signed by a new authority whose
    /// certificate is returned as PEM. Both keys stay in this process.
    ///
    /// # Errors
    /// Returns an error if a name is not a host name or the cryptographic library fails.
    pub fn own(names: &[String], client_authority: Option<&Path>) -> Result<(Self, String), TlsError> {
        let (authority, chain, key) =
            own_certificate(names).map_err(|source| TlsError::Make { names: names.join(", "), source })?;
        Ok((Self::new(vec![chain], key, client_authority)?, authority))
    }

    fn new(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
        client_authority: Option<&Path>,
    ) -> Result<Self, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Unfit)?;
        let builder = match client_authority {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let failed = |source| TlsError::ClientAuthority { path: path.to_owned(), source };
                let mut roots = RootCertStore::empty();
                for certificate in certificates(path)? {
                    roots.add(certificate).map_err(|error| failed(error.into()))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                    .build()
                    .map_err(|error| failed(error.into()))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let config = builder.with_single_cert(chain, key).map_err(TlsError::Unfit)?;
        Ok(Self { config: Arc::new(config) })
    }

    /// The configuration of a listener, with the protocols to offer in ALPN, best first; none: no ALPN.
    pub(crate) fn listener(&self, protocols: &[&[u8]]) -> Arc<ServerConfig> {
        let mut config = ServerConfig::clone(&self.config);
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        Arc::new(config)
    }
}

/// The authority as PEM, the certificate that it signed, and that certificate's key.
type OwnCertificate = (String, CertificateDer<'static>, PrivateKeyDer<'static>);

fn own_certificate(names: &[String]) -> Result<OwnCertificate, rcgen::Error> {
    let mut parameters = dated(CertificateParams::default());
    parameters.distinguished_name.push(DnType::CommonName, "meshmeter serve: authority");
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let authority_key = KeyPair::generate()?;
    let authority = parameters.self_signed(&authority_key)?.pem();
    let issuer = Issuer::new(parameters, authority_key);

    let mut parameters = dated(CertificateParams::new(names)?);
    parameters.distinguished_name.push(DnType::CommonName, "meshmeter serve");
    parameters.is_ca = IsCa::ExplicitNoCa;
    parameters.use_authority_key_identifier_extension = true;
    parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate()?;
    let certificate = parameters.signed_by(&key, &issuer)?;
    let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(|_| rcgen::Error::CouldNotParseKeyPair)?;
    Ok((authority, certificate.der().clone(), key))
}

fn dated(mut parameters: CertificateParams) -> CertificateParams {
    let now = SystemTime::from(jiff::Timestamp::now());
    parameters.not_before = (now - BACKDATED).into();
    parameters.not_after = (now + VALIDITY).into();
    parameters.distinguished_name = DistinguishedName::new();
    parameters
}

/// All certificates in the file: at least one.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    const CERTIFICATE: &str = "certificate";
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&read(path, CERTIFICATE)?)
        .collect::<Result<_, _>>()
        .map_err(|source| TlsError::Pem { content: CERTIFICATE, path: path.to_owned(), source })?;
    if certificates.is_empty() {
        return Err(TlsError::Absent { content: CERTIFICATE, path: path.to_owned() });
    }
    Ok(certificates)
}

fn read(path: &Path, content: &'static str) -> Result<Vec<u8>, TlsError> {
    roots::read_pem_file(path).map_err(|source| TlsError::Read { content, path: path.to_owned(), source })
}

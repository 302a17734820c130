//! TLS client settings of a run: trusted authorities and client certificate, fixed before the run.
//!
//! Versions 1.2 and 1.3 with the key exchanges and ciphers of rustls on ring; ALPN offers the protocol of the
//! run. Sessions are resumed only on request. Otherwise every handshake is a full one, and reconnecting costs
//! the same each time.

mod identity;
mod pem;
mod unverified;

use crate::network::TlsTurns;
pub use identity::ClientIdentity;
use rustls::client::{Resumption, WantsClientCert};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ConfigBuilder, DEFAULT_VERSIONS, RootCertStore, SupportedProtocolVersion};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How servers are verified.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Verification {
    /// Against the authorities that this system trusts.
    #[default]
    SystemRoots,
    /// Against the authorities in this file (PEM), and no others.
    Authorities(PathBuf),
    /// Not at all: any certificate is accepted.
    Off,
}

/// Handshake settings.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Handshakes {
    /// The only version offered; `None`: 1.2 and 1.3.
    pub version: Option<TlsVersion>,
    /// Sessions are resumed with up to this number of servers; 0: none, every handshake is a full one.
    pub resumed_servers: usize,
}

/// TLS version.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TlsVersion {
    /// TLS 1.2.
    V1_2,
    /// TLS 1.3.
    V1_3,
}

impl TlsVersion {
    fn supported(self) -> &'static SupportedProtocolVersion {
        match self {
            Self::V1_2 => &TLS12,
            Self::V1_3 => &TLS13,
        }
    }
}

/// TLS 1.3 tickets kept per server: each is good for one session.
const TICKETS_PER_SERVER: usize = 8;

/// TLS client settings of a run, shared by its connections: those of each identity, or of a client without any.
#[derive(Clone, Debug)]
pub struct TlsClient(Vec<Arc<ClientConfig>>);

/// TLS cannot be set up as requested.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("read the {content} in `{}`", path.display())]
    Read {
        /// The expected content.
        content: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        cause: io::Error,
    },
    /// A file is not PEM.
    #[error("read the {content} in `{}`", path.display())]
    Pem {
        /// The expected content.
        content: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        cause: rustls::pki_types::pem::Error,
    },
    /// A file contains nothing of the expected kind.
    #[error("there is no {content} in `{}`", path.display())]
    Absent {
        /// The expected content.
        content: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// An authority's certificate is unusable.
    #[error("trust the certificates in `{}`", path.display())]
    Authority {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        cause: rustls::Error,
    },
    /// The system has no trusted authorities.
    #[error("verify the server")]
    NoSystemRoots(#[source] roots::NoAuthorities),
    /// The client's certificate and key are unusable.
    #[error("use the certificate in `{}` with the key in `{}`", certificate.display(), key.display())]
    Identity {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// The cause.
        #[source]
        cause: rustls::Error,
    },
    /// The names of the client's files are not those of pairs.
    #[error(
        "`{}` and `{}` do not name pairs of files: a range of numbers in both, such as {{1..100}}, of the same length, or in the \
         first alone; at most {} pairs", certificate.display(), key.display(), identity::MAX_IDENTITIES
    )]
    Pairs {
        /// The certificates' name.
        certificate: PathBuf,
        /// The keys' name.
        key: PathBuf,
    },
    /// The cryptographic library does not support what TLS needs.
    #[error("set up TLS")]
    Library(#[source] rustls::Error),
}

impl TlsClient {
    /// Reads the trusted authorities and the client's identities, which connections present in turn.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read or used, or if the system has no trusted authorities.
    pub fn new(
        verification: &Verification,
        identities: &[ClientIdentity],
        handshakes: Handshakes,
    ) -> Result<Self, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let only = handshakes.version.map(|version| [version.supported()]);
        let versions = only.as_ref().map_or(DEFAULT_VERSIONS, |only| &only[..]);
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)
            .map_err(TlsError::Library)?;
        let builder = match verification {
            Verification::SystemRoots => {
                builder.with_root_certificates(roots::of_system().map_err(TlsError::NoSystemRoots)?)
            }
            Verification::Authorities(path) => builder.with_root_certificates(authorities(path)?),
            Verification::Off => unverified::accept_any_certificate(builder, provider),
        };
        let of = |identity| {
            let mut config = with_identity(builder.clone(), identity)?;
            // A session is resumed as the client that it was begun by.
            config.resumption = match handshakes.resumed_servers {
                0 => Resumption::disabled(),
                servers => Resumption::in_memory_sessions(servers.saturating_mul(TICKETS_PER_SERVER)),
            };
            Ok(Arc::new(config))
        };
        if identities.is_empty() {
            return Ok(Self(vec![of(None)?]));
        }
        identities.iter().map(|identity| of(Some(identity))).collect::<Result<_, _>>().map(Self)
    }

    /// The settings for a client other than the load engine. No ALPN protocol is set.
    #[must_use]
    pub fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.0[0])
    }

    /// Number of identities, if there are several.
    pub(crate) fn identities(&self) -> Option<usize> {
        Some(self.0.len()).filter(|identities| *identities > 1)
    }

    /// The settings for the connections of one thread among several, in turn, which offer this protocol by ALPN.
    pub(crate) fn speaking(&self, alpn: Option<&[u8]>, worker: (usize, usize)) -> TlsTurns {
        let alpn: Vec<Vec<u8>> = alpn.map(<[u8]>::to_vec).into_iter().collect();
        let speaking = |config: &Arc<ClientConfig>| {
            let mut config = ClientConfig::clone(config);
            config.alpn_protocols.clone_from(&alpn);
            Arc::new(config)
        };
        TlsTurns::new(self.0.iter().map(speaking).collect(), worker)
    }
}

fn authorities(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in pem::certificates(path)? {
        roots.add(certificate).map_err(|cause| TlsError::Authority { path: path.to_owned(), cause })?;
    }
    Ok(roots)
}

fn with_identity(
    builder: ConfigBuilder<ClientConfig, WantsClientCert>,
    identity: Option<&ClientIdentity>,
) -> Result<ClientConfig, TlsError> {
    let Some(ClientIdentity { certificate, key }) = identity else {
        return Ok(builder.with_no_client_auth());
    };
    builder
        .with_client_auth_cert(pem::certificates(certificate)?, pem::private_key(key)?)
        .map_err(|cause| TlsError::Identity { certificate: certificate.clone(), key: key.clone(), cause })
}

//! Specification of a fleet.

use crate::xds::{Mark, ProxyKind, ProxySpec, XdsVariant};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Default maximum size of a message in bytes; larger ones are rejected.
pub const DEFAULT_MESSAGE_LIMIT_BYTES: usize = 64 << 20;
/// Default of gRPC clients.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// A fleet of simulated proxies.
#[derive(Clone, Debug)]
pub struct FleetSpec {
    /// Control planes; at least one.
    pub targets: Vec<Target>,
    /// Distribution of proxies over several targets.
    pub spread: Spread,
    /// The discovery service's variant.
    pub xds: XdsVariant,
    /// The proxies and their credentials.
    pub proxies: Vec<(ProxySpec, Credentials)>,
    /// Local addresses that some proxies connect from, by index in `proxies`. They let the environment cut
    /// these proxies off.
    pub source_addresses: BTreeMap<usize, IpAddr>,
    /// Sharing of certificates; only used with mutual TLS.
    pub certificates: CertificateSharing,
    /// Number of threads; absent: half of the CPUs.
    pub threads: Option<usize>,
    /// New connections per second at the start; absent: all at once.
    pub connect_rate: Option<f64>,
    /// Maximum size of a message in bytes; larger ones are rejected, and their stream is reset.
    pub message_limit_bytes: usize,
    /// Detection of dead connections.
    pub keepalive: Keepalive,
    /// Backoff between connection attempts.
    pub backoff: BackoffSpec,
    /// Timeout from the start of connecting to the control plane's first HTTP/2 settings.
    pub connect_timeout: Duration,
    /// Seed of the random backoff.
    pub seed: u64,
}

impl FleetSpec {
    /// A fleet with one target and default settings.
    #[must_use]
    pub fn new(target: Target, proxies: Vec<(ProxySpec, Credentials)>) -> Self {
        Self {
            targets: vec![target],
            spread: Spread::Shared,
            xds: XdsVariant::Delta,
            proxies,
            source_addresses: BTreeMap::new(),
            certificates: CertificateSharing::ServiceAccount,
            threads: None,
            connect_rate: None,
            message_limit_bytes: DEFAULT_MESSAGE_LIMIT_BYTES,
            keepalive: Keepalive::default(),
            backoff: BackoffSpec::default(),
            connect_timeout: CONNECT_TIMEOUT,
            seed: 0,
        }
    }
}

/// A control plane.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// `host:port`.
    pub address: String,
    /// Name required in its certificate, such as `istiod.istio-system.svc`.
    pub server_name: String,
    /// Security of its connections.
    pub security: Security,
    /// Authorities that may sign its certificate (PEM); unused with [`Security::Plaintext`].
    pub roots: Arc<[u8]>,
}

/// Security of connections to a control plane.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Security {
    /// Plaintext without credentials: istiod's port 15010.
    Plaintext,
    /// TLS with the server's certificate; the proxy sends a token. This is istiod's port 15012, the default
    /// of Istio's agent.
    #[default]
    Token,
    /// Mutual TLS with a certificate that the control plane's own authority signs for the proxy's token.
    MutualTls,
}

impl Security {
    /// Name of the value in user input.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Plaintext => "plaintext",
            Self::Token => "token",
            Self::MutualTls => "mutual-tls",
        }
    }
}

/// Credentials of a proxy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Credentials {
    /// Token of its service account, with istiod's audience.
    pub token: Option<Arc<str>>,
}

/// Sharing of certificates.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum CertificateSharing {
    /// Proxies of a thread share the certificate of their service account.
    #[default]
    ServiceAccount,
    /// Each proxy has its own certificate, like real ones.
    None,
}

/// Distribution of proxies over targets.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Spread {
    /// Each target has the whole fleet, to compare control planes.
    Each,
    /// Each proxy connects to one of the targets, which are replicas of one control plane, and may reach
    /// another one when it reconnects.
    #[default]
    Shared,
}

/// HTTP/2 pings on idle connections.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Keepalive {
    /// Idle time before a ping is sent. istiod closes connections that ping more often than every 15 s.
    pub interval: Duration,
    /// Timeout of a ping, after which the connection is closed.
    pub timeout: Duration,
}

impl Default for Keepalive {
    /// Values of Istio's agent.
    fn default() -> Self {
        Self { interval: Duration::from_secs(30), timeout: Duration::from_secs(10) }
    }
}

/// Exponential backoff between connection attempts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BackoffSpec {
    /// Upper bound of the first wait.
    pub base: Duration,
    /// Upper bound of all waits.
    pub max: Duration,
}

impl Default for BackoffSpec {
    /// Values of Envoy.
    fn default() -> Self {
        Self { base: Duration::from_millis(500), max: Duration::from_secs(30) }
    }
}

/// A subset of a fleet's proxies.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Selection {
    /// All proxies.
    #[default]
    All,
    /// Proxies in these namespaces.
    Namespaces(BTreeSet<String>),
    /// Proxies of these kinds.
    Kinds(BTreeSet<ProxyKind>),
    /// Proxies at these indices in [`FleetSpec::proxies`].
    Proxies(BTreeSet<usize>),
}

impl Selection {
    /// True if the selection contains the proxy at this index in [`FleetSpec::proxies`].
    #[must_use]
    pub fn contains(&self, index: usize, proxy: &ProxySpec) -> bool {
        match self {
            Self::All => true,
            Self::Namespaces(namespaces) => namespaces.contains(&proxy.namespace),
            Self::Kinds(kinds) => kinds.contains(&proxy.kind),
            Self::Proxies(indices) => indices.contains(&index),
        }
    }
}

/// A change that proxies are expected to receive.
#[derive(Clone, Debug)]
pub struct ChangeMarks {
    /// Kind of change, such as `endpoint-added`.
    pub kind: String,
    /// Expected marks; each proxy must receive all those of the types that it subscribes to.
    pub marks: Vec<Mark>,
    /// Proxies that must receive them.
    pub expected: Selection,
    /// Number of objects that the change writes.
    pub objects: usize,
}

/// Identifies a change in a fleet.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Hash, Ord, PartialOrd)]
pub struct ChangeId(pub(crate) usize);

/// Times of a change's writes.
#[derive(Clone, Copy, Debug)]
pub struct WrittenAt {
    /// When the first write was sent.
    pub first_sent: Instant,
    /// When the last write was acknowledged.
    pub acknowledged: Instant,
}

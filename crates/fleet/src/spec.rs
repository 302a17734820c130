//! Specification of a fleet.

use crate::xds::{Mark, ProxyKind, ProxySpec, XdsVariant};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Messages above this are refused unless the spec says otherwise.
pub const DEFAULT_MESSAGE_LIMIT_BYTES: usize = 64 << 20;
/// As gRPC's clients.
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
    /// The proxies and what they show of themselves.
    pub proxies: Vec<(ProxySpec, Credentials)>,
    /// Local addresses that some proxies connect from, by their places in `proxies`: so that the environment can cut them off.
    pub source_addresses: BTreeMap<usize, IpAddr>,
    /// Sharing of certificates, with mutual TLS.
    pub certificates: CertificateSharing,
    /// Threads; absent: half of the CPUs.
    pub threads: Option<usize>,
    /// New connections per second at the start; absent: all at once.
    pub connect_rate: Option<f64>,
    /// Larger messages are refused, and their stream reset.
    pub message_limit_bytes: usize,
    /// Detection of links that are down.
    pub keepalive: Keepalive,
    /// Waits between attempts to connect.
    pub backoff: BackoffSpec,
    /// From the start of connecting to the control plane's first HTTP/2 settings.
    pub connect_timeout: Duration,
    /// Of the random waits between attempts.
    pub seed: u64,
}

impl FleetSpec {
    /// A fleet with one target and the usual settings.
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
    /// The name that its certificate must have, such as `istiod.istio-system.svc`.
    pub server_name: String,
    /// Security of connections.
    pub security: Security,
    /// Authorities that may have signed its certificate (PEM); not read with [`Security::Plaintext`].
    pub roots: Arc<[u8]>,
}

/// Security of connections to a control plane.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Security {
    /// In plain text, without credentials: istiod's port 15010.
    Plaintext,
    /// TLS by the server's certificate; the proxy shows a token: istiod's port 15012, the default of Istio's agent.
    #[default]
    Token,
    /// Mutual TLS with a certificate that the control plane's own authority signs for the proxy's token.
    MutualTls,
}

impl Security {
    /// The word that users type.
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
    /// A token of its service account, for istiod's audience.
    pub token: Option<Arc<str>>,
}

/// Sharing of certificates.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum CertificateSharing {
    /// Those of a service account, in each thread.
    #[default]
    ServiceAccount,
    /// None: each has its own, as real proxies do.
    None,
}

/// Distribution of proxies over targets.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Spread {
    /// Each target has the whole fleet: control planes are compared.
    Each,
    /// Each proxy is connected to one of the targets, replicas of one control plane, and may find another when it reconnects.
    #[default]
    Shared,
}

/// HTTP/2 pings on connections that are silent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Keepalive {
    /// Silence after which a ping is sent. istiod ends connections that ping more often than every 15 s.
    pub interval: Duration,
    /// Silence after a ping that ends the connection.
    pub timeout: Duration,
}

impl Default for Keepalive {
    /// As Istio's agent.
    fn default() -> Self {
        Self { interval: Duration::from_secs(30), timeout: Duration::from_secs(10) }
    }
}

/// Exponential waits between attempts to connect.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BackoffSpec {
    /// The first wait's upper bound.
    pub base: Duration,
    /// Upper bound of all waits.
    pub max: Duration,
}

impl Default for BackoffSpec {
    /// As Envoy.
    fn default() -> Self {
        Self { base: Duration::from_millis(500), max: Duration::from_secs(30) }
    }
}

/// Some of a fleet's proxies.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Selection {
    /// Every one.
    #[default]
    All,
    /// Those of these namespaces.
    Namespaces(BTreeSet<String>),
    /// Those of these kinds.
    Kinds(BTreeSet<ProxyKind>),
    /// Those at these places in [`FleetSpec::proxies`].
    Proxies(BTreeSet<usize>),
}

impl Selection {
    /// True for a proxy of the selection, given its place in [`FleetSpec::proxies`].
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
    /// Such as `endpoint-added`.
    pub kind: String,
    /// Expected marks: all of the types that a proxy subscribes to.
    pub marks: Vec<Mark>,
    /// The proxies that must have them.
    pub expected: Selection,
    /// Objects that the change writes.
    pub objects: usize,
}

/// A change in a fleet.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Hash, Ord, PartialOrd)]
pub struct ChangeId(pub(crate) usize);

/// Times of a change's write.
#[derive(Clone, Copy, Debug)]
pub struct WrittenAt {
    /// Sending of the first write.
    pub first_sent: Instant,
    /// Acknowledgement of the last write.
    pub acknowledged: Instant,
}

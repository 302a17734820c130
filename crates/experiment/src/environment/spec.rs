//! What a deployment consists of: settings of a mode, its proxies and its services.

use crate::topology::{Topology, pair};
use crate::{MeshKind, MeshSettings, Mode, Protocol};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// The pods, proxies and service that one trial needs.
#[derive(Clone, Debug, PartialEq)]
pub struct DeploymentSpec {
    /// Who configures the proxies.
    pub mesh: MeshKind,
    /// Where they stand.
    pub mode: Mode,
    /// Workloads, calls and drivers.
    pub topology: Arc<Topology>,
    /// What every hop of the path carries.
    pub protocol: Protocol,
    /// How the proxies are set.
    pub proxy: ProxySettings,
    /// What is asked of the control plane.
    pub istio: Arc<MeshSettings>,
    /// The synthetic service.
    pub server: ServerSettings,
    /// CPU limit of the generator, cores; absent: none.
    pub client_cpu_limit_cores: Option<f64>,
}

impl DeploymentSpec {
    /// An arrangement with every default.
    #[must_use]
    pub fn new(mesh: MeshKind, mode: Mode) -> Self {
        Self {
            mesh,
            mode,
            topology: Arc::new(pair(1, 1, &ServerSettings::default(), mode.is_egress(), None)),
            protocol: Protocol::default(),
            proxy: ProxySettings::default(),
            istio: Arc::default(),
            server: ServerSettings::default(),
            client_cpu_limit_cores: None,
        }
    }
}

/// Switches of the proxies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProxySettings {
    /// Worker threads of each proxy.
    pub workers: usize,
    /// Mutual TLS between proxies. A single gateway has no peer proxy and is not affected.
    pub mtls: MutualTls,
    /// Access log.
    pub access_log: AccessLog,
    /// CPU limit of each proxy, cores; absent: none.
    pub cpu_limit_cores: Option<f64>,
}

impl Default for ProxySettings {
    fn default() -> Self {
        Self { workers: 2, mtls: MutualTls::Strict, access_log: AccessLog::Off, cpu_limit_cores: None }
    }
}

/// Mutual TLS between proxies.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MutualTls {
    /// Proxies speak it, and take nothing else.
    #[default]
    Strict,
    /// Proxies speak it with each other, and take plain text too.
    Permissive,
    /// Plain text alone.
    Off,
}

impl MutualTls {
    /// Whether the proxies of a path speak it with each other.
    #[must_use]
    pub fn is_spoken(self) -> bool {
        self != Self::Off
    }

    /// The name that users type.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Permissive => "permissive",
            Self::Off => "off",
        }
    }
}

/// What a proxy writes of each request.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AccessLog {
    /// Nothing.
    #[default]
    Off,
    /// A line of text.
    Text,
    /// A JSON object.
    Json,
}

/// Settings of the synthetic service.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerSettings {
    /// Size of the response body, bytes.
    pub payload_bytes: u64,
    /// Time before each answer.
    pub delay: Duration,
    /// Fraction of requests answered with status 500, 0 to 1.
    pub error_fraction: f64,
    /// CPU limit, cores; absent: none.
    pub cpu_limit_cores: Option<f64>,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self { payload_bytes: 1024, delay: Duration::ZERO, error_fraction: 0.0, cpu_limit_cores: None }
    }
}

/// Size of a request over raw TCP, bytes: about that of an HTTP request without a body. Generator and service must agree.
pub const TCP_REQUEST_BYTES: u64 = 100;

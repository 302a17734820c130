//! Settings of the proxies, common to all meshes.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Settings of the proxies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProxySettings {
    /// Worker threads of each proxy.
    pub workers: usize,
    /// Mutual TLS between proxies. Has no effect on a single gateway, which has no peer proxy.
    pub mtls: MutualTls,
    /// Access log.
    pub access_log: AccessLog,
    /// CPU limit of each proxy, cores; absent: none.
    pub cpu_limit_cores: Option<f64>,
    /// CPU that each proxy spends per request beyond its own, with static Envoy.
    #[serde(default)]
    pub cpu_time: Duration,
}

impl Default for ProxySettings {
    fn default() -> Self {
        Self {
            workers: 2,
            mtls: MutualTls::Strict,
            access_log: AccessLog::Off,
            cpu_limit_cores: None,
            cpu_time: Duration::ZERO,
        }
    }
}

/// Mutual TLS between proxies.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MutualTls {
    /// Required: proxies reject plaintext.
    #[default]
    Strict,
    /// Used between proxies, but plaintext is accepted too.
    Permissive,
    /// Off: plaintext.
    Off,
}

impl MutualTls {
    /// True if the proxies of a path use mutual TLS between each other.
    #[must_use]
    pub fn is_spoken(self) -> bool {
        self != Self::Off
    }

    /// Name that users type.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Permissive => "permissive",
            Self::Off => "off",
        }
    }
}

/// Access log format, one entry per request.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AccessLog {
    /// No access log.
    #[default]
    Off,
    /// A line of text.
    Text,
    /// A JSON object.
    Json,
}

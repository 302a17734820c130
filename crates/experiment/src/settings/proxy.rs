//! Switches of the proxies that every mesh has.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Switches of the proxies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProxySettings {
    /// Worker threads of each proxy.
    pub workers: usize,
    /// Mutual TLS between proxies. A single gateway has no peer proxy and is not affected.
    pub mtls: MutualTls,
    /// Access log of each proxy.
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
    /// Proxies use it and accept nothing else.
    #[default]
    Strict,
    /// Proxies use it with each other and accept plaintext too.
    Permissive,
    /// Plaintext.
    Off,
}

impl MutualTls {
    /// Whether the proxies of a path use it with each other.
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

/// Access log of a proxy, per request.
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

//! Settings of the proxies, common to all meshes.

use super::service::MAX_CPU_TIME;
use crate::keys::Kind;
use crate::keys::settings::keys;
use crate::keys::words::{words, words_of};
use std::time::Duration;

/// Settings of the proxies.
#[derive(Clone, Debug, PartialEq)]
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

keys!(ProxySettings {
    key workers: "workers", Kind::Whole(1, 128), "worker threads of each proxy";
    key mtls: "mtls" as "mTLS", Kind::OneOf(words_of::<MutualTls>),
        "mutual TLS between proxies: only that (`strict`), also plaintext (`permissive`), or none (`off`)";
    key access_log: "access-log", Kind::OneOf(words_of::<AccessLog>),
        "access log of a proxy per request; per connection if it does not read requests";
    key cpu_limit_cores: "cpu" as "proxy CPU", Kind::Cores, "CPU limit of each proxy";
    rare cpu_time: "cpu-time" as "CPU time per request", Kind::DurationUpTo(MAX_CPU_TIME),
        "additional CPU of each proxy per request, with `mesh: envoy`: a known effect to detect";
});

/// Mutual TLS between proxies.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
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
}

words!(MutualTls { Strict = "strict", Permissive = "permissive", Off = "off"; "on" = Strict, "true" = Strict, "false" = Off });

/// Access log format, one entry per request.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum AccessLog {
    /// No access log.
    #[default]
    Off,
    /// A line of text.
    Text,
    /// A JSON object.
    Json,
}

words!(AccessLog { Off = "off", Text = "text", Json = "json" });

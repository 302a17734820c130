//! Settings of the synthetic service.

use crate::keys::Kind;
use crate::keys::settings::keys;
use std::time::Duration;

/// Settings of the synthetic service.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerSettings {
    /// Size of the response body, bytes.
    pub payload_bytes: u64,
    /// Delay before each response.
    pub delay: Duration,
    /// Additional CPU time per response.
    pub cpu_time: Duration,
    /// Fraction of responses with status 500, 0 to 1.
    pub error_fraction: f64,
    /// CPU limit, cores; absent: none.
    pub cpu_limit_cores: Option<f64>,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            payload_bytes: 1024,
            delay: Duration::ZERO,
            cpu_time: Duration::ZERO,
            error_fraction: 0.0,
            cpu_limit_cores: None,
        }
    }
}

// The payload is a key of the section `load`.
keys!(ServerSettings {
    key delay: "delay", Kind::Duration, "time before each response";
    rare cpu_time: "cpu-time" as "service CPU time", Kind::DurationUpTo(MAX_CPU_TIME),
        "additional CPU per response, after the delay";
    key error_fraction: "error-rate", Kind::Fraction, "fraction of requests answered with status 500";
    key cpu_limit_cores: "cpu" as "service CPU", Kind::Cores, "CPU limit of the service";
});

/// Maximum of [`ServerSettings::cpu_time`]: a thread that computes serves no other requests.
pub const MAX_CPU_TIME: Duration = Duration::from_secs(1);

/// Size of a request over raw TCP, bytes: about that of an HTTP request without a body. Generator and service
/// must use the same value.
pub const TCP_REQUEST_BYTES: u64 = 100;

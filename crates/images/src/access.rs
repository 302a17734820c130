//! What a caller decides about access to a registry.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How registries are reached. The default suits public registries.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// Docker's configuration file, which has the credentials. Without one: `config.json` in `$DOCKER_CONFIG` or
    /// `~/.docker`, if it exists.
    pub docker_config: Option<PathBuf>,
    /// HTTP without TLS. Registries on loopback need no leave: those that speak no TLS are asked without.
    pub plain_http: bool,
    /// PEM file of further certificate authorities, beside those of the system.
    pub roots: Option<PathBuf>,
    /// URL of a proxy that takes the place of `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` in the environment. Registries on
    /// loopback are never reached through a proxy.
    pub proxy: Option<String>,
    /// Bounds on what a registry may send.
    pub limits: Limits,
}

/// Bounds on what a registry may send, and on the time it may take.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Size of a manifest, an index or a configuration, bytes.
    pub manifest_bytes: u64,
    /// Size of one wanted file, bytes.
    pub file_bytes: u64,
    /// Size of one layer as it is sent, bytes.
    pub layer_bytes: u64,
    /// Size of one layer once uncompressed, bytes.
    pub uncompressed_layer_bytes: u64,
    /// Entries of all layers that are read.
    pub entries: usize,
    /// Time without a single byte.
    pub idle_timeout: Duration,
    /// Time for a connection, with its TLS handshake.
    pub connect_timeout: Duration,
    /// Time for a whole manifest, token or configuration.
    pub document_timeout: Duration,
    /// Pause before a request is repeated, doubled each time.
    pub retry_pause: Duration,
    /// Longest pause that a registry may ask for (`Retry-After`).
    pub max_retry_after: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            manifest_bytes: 4 << 20,
            file_bytes: 1 << 30,
            layer_bytes: 4 << 30,
            uncompressed_layer_bytes: 8 << 30,
            entries: 500_000,
            idle_timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(15),
            document_timeout: Duration::from_secs(60),
            retry_pause: Duration::from_millis(500),
            max_retry_after: Duration::from_secs(60),
        }
    }
}

/// Operating system and architecture, in the words of OCI (those of Go): `linux`, `amd64`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Platform {
    /// Operating system.
    pub os: String,
    /// Architecture of the processor.
    pub architecture: String,
}

impl Platform {
    /// This machine's.
    pub fn host() -> Self {
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        Self { os: std::env::consts::OS.to_owned(), architecture: architecture.to_owned() }
    }
}

impl std::fmt::Display for Platform {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)
    }
}

/// Follows an extraction, and ends it.
pub trait Watch {
    /// Bytes of layers that have come, of those that the layers known to be needed have. Both grow.
    fn progress(&mut self, bytes: u64, of: u64);
    /// Whether to give up. Called at least five times per second.
    fn interrupted(&mut self) -> bool;
}

/// Shows nothing, never gives up.
impl Watch for () {
    fn progress(&mut self, _bytes: u64, _of: u64) {}
    fn interrupted(&mut self) -> bool {
        false
    }
}

//! Settings with which a caller accesses a registry.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How registries are accessed. The default suits public registries.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// Docker's configuration file, which has the credentials. If absent: `config.json` in `$DOCKER_CONFIG`
    /// or `~/.docker`, if it exists.
    pub docker_config: Option<PathBuf>,
    /// HTTP without TLS. Registries on loopback do not need this: if they do not speak TLS, plain HTTP is
    /// used.
    pub plain_http: bool,
    /// PEM file with further CA certificates, in addition to the system's.
    pub roots: Option<PathBuf>,
    /// URL of a proxy, which replaces `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` from the environment.
    /// Registries on loopback are never reached through a proxy.
    pub proxy: Option<String>,
    /// Value of the header `User-Agent`; absent: none is sent.
    pub user_agent: Option<String>,
    /// Limits on the data that a registry sends.
    pub limits: Limits,
}

/// Limits on the data that a registry sends, and on the time it takes.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Size of a manifest, an index or a configuration in bytes.
    pub manifest_bytes: u64,
    /// Size of one wanted file in bytes.
    pub file_bytes: u64,
    /// Compressed size of one layer in bytes.
    pub layer_bytes: u64,
    /// Uncompressed size of one layer in bytes.
    pub uncompressed_layer_bytes: u64,
    /// Number of entries of all layers that are read.
    pub entries: usize,
    /// Size of the paths and link targets of all these entries in bytes.
    pub name_bytes: usize,
    /// Time without a single byte.
    pub idle_timeout: Duration,
    /// Time for a connection, with its TLS handshake.
    pub connect_timeout: Duration,
    /// Time for a whole manifest, token or configuration.
    pub document_timeout: Duration,
    /// Pause before a request is retried; it doubles each time.
    pub retry_pause: Duration,
    /// Maximum pause that a registry may request (`Retry-After`).
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
            name_bytes: 64 << 20,
            idle_timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(15),
            document_timeout: Duration::from_secs(60),
            retry_pause: Duration::from_millis(500),
            max_retry_after: Duration::from_secs(60),
        }
    }
}

/// Operating system and architecture in the terms of OCI, which are Go's: `linux`, `amd64`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Platform {
    /// Operating system.
    pub os: String,
    /// Architecture of the processor.
    pub architecture: String,
}

impl Platform {
    /// The platform of this machine.
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

/// Observes an extraction and may end it.
pub trait Watch {
    /// Bytes of layers received, and the total size of the layers known to be needed. Both grow.
    fn progress(&mut self, bytes: u64, of: u64);
    /// Returns true to abort. Called at least five times per second.
    fn interrupted(&mut self) -> bool;
}

/// Shows nothing and never aborts.
impl Watch for () {
    fn progress(&mut self, _bytes: u64, _of: u64) {}
    fn interrupted(&mut self) -> bool {
        false
    }
}

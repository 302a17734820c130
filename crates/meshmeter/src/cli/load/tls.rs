//! Options of `meshmeter load` for TLS handshakes.

use super::TLS_HEADING;
use clap::{Args, ValueEnum};
use load::TlsVersion;

/// Options for TLS handshakes.
#[derive(Debug, Args)]
#[command(next_help_heading = TLS_HEADING)]
pub struct TlsHandshakeArgs {
    /// Offer only this version of TLS [default: 1.2 and 1.3]
    #[arg(long, value_enum, value_name = "VERSION")]
    pub tls_version: Option<TlsVersionName>,

    /// Resume earlier sessions when a connection is reopened, instead of a full handshake each time. The
    /// result counts both kinds
    #[arg(long)]
    pub resume_sessions: bool,
}

/// TLS versions.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum TlsVersionName {
    /// TLS 1.2
    #[value(name = "1.2")]
    V1_2,
    /// TLS 1.3
    #[value(name = "1.3")]
    V1_3,
}

impl From<TlsVersionName> for TlsVersion {
    fn from(name: TlsVersionName) -> Self {
        match name {
            TlsVersionName::V1_2 => Self::V1_2,
            TlsVersionName::V1_3 => Self::V1_3,
        }
    }
}

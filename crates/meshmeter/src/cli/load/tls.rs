//! Options of `meshmeter load` that say how TLS handshakes are made.

use super::TLS_HEADING;
use clap::{Args, ValueEnum};
use load::TlsVersion;

/// See the module.
#[derive(Debug, Args)]
#[command(next_help_heading = TLS_HEADING)]
pub struct TlsHandshakeArgs {
    /// Offer this version of TLS alone [default: 1.2 and 1.3]
    #[arg(long, value_enum, value_name = "VERSION")]
    pub tls_version: Option<TlsVersionName>,

    /// Resume earlier sessions where a connection is opened again, instead of a full handshake each time. The result counts
    /// both
    #[arg(long)]
    pub resume_sessions: bool,
}

/// A version of TLS.
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

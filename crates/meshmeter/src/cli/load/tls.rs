//! Options of `meshmeter load` for TLS handshakes.

use super::TLS_HEADING;
use crate::cli::words::{one_of, word};
use clap::Args;
use clap::builder::TypedValueParser;
use load::TlsVersion;

/// Options for TLS handshakes.
#[derive(Debug, Args)]
#[command(next_help_heading = TLS_HEADING)]
pub struct TlsHandshakeArgs {
    /// Offer only this version of TLS [default: 1.2 and 1.3]
    #[arg(long, value_name = "VERSION", value_parser = version_parser())]
    pub tls_version: Option<TlsVersion>,

    /// Resume earlier sessions when a connection is reopened, instead of a full handshake each time. The
    /// result counts both kinds
    #[arg(long)]
    pub resume_sessions: bool,
}

fn version_parser() -> impl TypedValueParser<Value = TlsVersion> {
    one_of([(word("1.2", "TLS 1.2"), TlsVersion::V1_2), (word("1.3", "TLS 1.3"), TlsVersion::V1_3)])
}

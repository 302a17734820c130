//! Options of `meshmeter serve` for TLS.

use super::parse_address;
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Where and how TLS is served.
#[derive(Debug, Args)]
#[command(next_help_heading = "TLS")]
pub struct TlsArgs {
    /// Serve HTTPS too, on 127.0.0.1:8443 unless --tls-listen says otherwise. Without --tls-cert a certificate is made for it, and an
    /// authority that signs nothing else
    #[arg(long)]
    pub tls: bool,

    /// Address and port to listen on for HTTPS: HTTP/1.1, or HTTP/2 and gRPC where the client offers h2 (ALPN)
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = parse_address)]
    pub tls_listen: Option<SocketAddr>,

    /// Certificate to show, PEM, followed by those that signed it
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// Its private key, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// Host name or IP address that the certificate made here is for; may be given again [default: localhost, 127.0.0.1, ::1]
    #[arg(long, value_name = "NAME", conflicts_with = "tls_cert")]
    pub tls_name: Vec<String>,

    /// Write the certificate of the authority made here to this file, for clients to trust: `meshmeter load --cacert FILE`
    #[arg(long, value_name = "FILE", conflicts_with = "tls_cert")]
    pub tls_ca_out: Option<PathBuf>,

    /// Demand a certificate of every client (mutual TLS), signed by an authority in this file, PEM
    #[arg(long, value_name = "FILE")]
    pub client_ca: Option<PathBuf>,
}

//! Options of `meshmeter serve` for TLS.

use super::parse_address;
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Addresses and certificates for TLS.
#[derive(Debug, Args)]
#[command(next_help_heading = "TLS")]
pub struct TlsArgs {
    /// Also serve HTTPS, on 127.0.0.1:8443 unless --tls-listen is given. Without --tls-cert, generates a
    /// certificate, and a CA that signs nothing else
    #[arg(long)]
    pub tls: bool,

    /// Address and port to listen on for HTTPS: HTTP/1.1, or HTTP/2 and gRPC if the client offers h2 (ALPN)
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = parse_address)]
    pub tls_listen: Option<SocketAddr>,

    /// Serve HTTP/3, too: on the port of HTTPS, over UDP. Implies --tls
    #[arg(long)]
    pub http3: bool,

    /// Server certificate, PEM, followed by its issuers
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// Private key of the certificate, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// Host name or IP address for the generated certificate; may be given several times [default: localhost,
    /// 127.0.0.1, ::1]
    #[arg(long, value_name = "NAME", conflicts_with = "tls_cert")]
    pub tls_name: Vec<String>,

    /// Write the certificate of the generated CA to this file, for clients to trust:
    /// `meshmeter load --cacert FILE`
    #[arg(long, value_name = "FILE", conflicts_with = "tls_cert")]
    pub tls_ca_out: Option<PathBuf>,

    /// Require client certificates (mutual TLS), signed by a CA in this file, PEM
    #[arg(long, value_name = "FILE")]
    pub client_ca: Option<PathBuf>,
}

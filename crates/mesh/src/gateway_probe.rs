//! Client requests to a gateway, each on its own connection, that show which domains and paths it serves.

use crate::Result;
use crate::admin::dial::{Connection, Dial};
use experiment::environment::ErrorContext as _;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::sync::Arc;
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Generous, since the service behind the gateway may be configured to be slow.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
/// The gateway has no route.
const NOT_FOUND: u16 = 404;
/// The route has no cluster, or the cluster has no endpoints.
const UNAVAILABLE: u16 = 503;
const MAX_STATUS_LINE_BYTES: u64 = 1024;

#[derive(Clone, Debug)]
pub struct GatewayProbe {
    dial: Arc<dyn Dial>,
    /// Absent: cleartext.
    tls: Option<Arc<ClientConfig>>,
    /// Header lines such as `authorization: Bearer …`.
    pub headers: Vec<String>,
}

/// Certificates of a client, PEM.
#[derive(Clone, Copy, Debug)]
pub struct ClientCredential<'a> {
    /// The authority that signs the gateway's certificate.
    pub authority: &'a str,
    /// The client's own certificate and key; absent if the gateway requests none.
    pub own: Option<(&'a str, &'a str)>,
}

impl GatewayProbe {
    pub fn new(dial: impl Dial + 'static, tls: Option<&ClientCredential<'_>>) -> Result<Self> {
        let tls = tls.map(client_config).transpose().context("prepare a client of the gateway")?;
        Ok(Self { dial: Arc::new(dial), tls: tls.map(Arc::new), headers: Vec::new() })
    }

    /// Status of the response to a request for `path` on `host`; `server_name` is the SNI. Returns an error
    /// if the gateway refuses the connection or closes it without a response.
    pub fn status(&self, server_name: &str, host: &str, path: &str) -> io::Result<u16> {
        let Connection::Tcp(stream) = self.dial.dial(CONNECT_TIMEOUT).map_err(io::Error::other)? else {
            return Err(io::Error::other("a gateway listens on a TCP port"));
        };
        stream.set_read_timeout(Some(RESPONSE_TIMEOUT))?;
        stream.set_write_timeout(Some(RESPONSE_TIMEOUT))?;
        let Some(tls) = &self.tls else { return self.exchange(stream, host, path) };
        let name = ServerName::try_from(server_name.to_owned()).map_err(io::Error::other)?;
        let connection = ClientConnection::new(Arc::clone(tls), name).map_err(io::Error::other)?;
        self.exchange(StreamOwned::new(connection, stream), host, path)
    }

    /// Succeeds if the service behind the gateway, or a filter of the gateway, answers for a domain;
    /// otherwise returns the reason.
    pub fn is_served(&self, host: &str, path: &str) -> Result<(), String> {
        match self.status(host, host, path) {
            Ok(status @ (NOT_FOUND | UNAVAILABLE)) => Err(format!("status {status}")),
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn exchange(&self, mut stream: impl Read + Write, host: &str, path: &str) -> io::Result<u16> {
        let headers: String = self.headers.iter().map(|header| format!("{header}\r\n")).collect();
        let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{headers}\r\n");
        stream.write_all(request.as_bytes())?;
        stream.flush()?;
        let mut line = String::new();
        BufReader::new(stream.take(MAX_STATUS_LINE_BYTES)).read_line(&mut line)?;
        let status =
            line.strip_prefix("HTTP/1.").and_then(|rest| rest.split(' ').nth(1)?.trim().parse().ok());
        status.ok_or_else(|| match line.as_str() {
            "" => io::Error::from(io::ErrorKind::UnexpectedEof),
            _ => io::Error::new(io::ErrorKind::InvalidData, format!("the response begins with {line:?}")),
        })
    }
}

fn client_config(
    credential: &ClientCredential<'_>,
) -> Result<ClientConfig, Box<dyn std::error::Error + Send + Sync>> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(credential.authority.as_bytes()) {
        roots.add(certificate?)?;
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    Ok(match credential.own {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = CertificateDer::pem_slice_iter(certificate.as_bytes()).collect::<Result<_, _>>()?;
            builder.with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(key.as_bytes())?)?
        }
    })
}

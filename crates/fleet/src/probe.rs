//! Checks that an istiod is behind an address, before a mesh is written for it.

use crate::error::FleetError;
use crate::spec::Target;
use crate::target::ResolvedTarget;
use rustls::{ClientConnection, Stream};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

/// The client connection preface with an empty SETTINGS frame (RFC 9113, 3.4).
const OPENING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00";
const FRAME_HEAD_BYTES: usize = 9;
/// Offset of the type in a frame header, and the type of SETTINGS.
const SETTINGS: (usize, u8) = (3, 4);

/// Reason why there is no istiod at an address.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The target is invalid.
    #[error(transparent)]
    Target(#[from] FleetError),
    /// Nothing listens there, or there is no route to it.
    #[error("connect to istiod at {address}")]
    Connect {
        /// Address as given.
        address: String,
        /// Error of the socket.
        #[source]
        cause: io::Error,
    },
    /// The certificate is not the expected one, or the port does not use TLS.
    #[error("TLS with istiod at {address}")]
    Tls {
        /// Address as given.
        address: String,
        /// Error of the TLS handshake.
        #[source]
        cause: io::Error,
    },
    /// The server does not speak HTTP/2.
    #[error("what listens at {address} is not an istiod: it does not speak HTTP/2")]
    NotHttp2 {
        /// Address as given.
        address: String,
    },
}

impl ProbeError {
    /// Hint for the user, if there is one.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Target(_) => None,
            Self::Connect { .. } => {
                Some("is istiod there? its port for proxies is 15012, in plaintext 15010")
            }
            Self::Tls { .. } => Some(
                "istiod's authority is read from the kubeconfig's cluster: name another with --istiod-ca FILE, and the name \
                 in its certificate with --istiod-name NAME",
            ),
            Self::NotHttp2 { .. } => Some("istiod's port for proxies is 15012, in plaintext 15010"),
        }
    }
}

/// Connects once, without a client certificate, and waits for the server's HTTP/2 settings.
///
/// # Errors
/// Returns an error if there cannot be an istiod.
pub fn probe(target: &Target, timeout: Duration) -> Result<(), ProbeError> {
    let resolved = ResolvedTarget::new(target)?;
    let address = || resolved.address.clone();
    let connect = |cause| ProbeError::Connect { address: address(), cause };
    let mut socket = TcpStream::connect_timeout(&resolved.socket_address, timeout).map_err(connect)?;
    socket.set_read_timeout(Some(timeout)).map_err(connect)?;
    socket.set_write_timeout(Some(timeout)).map_err(connect)?;
    let speaks_http2 = match &resolved.tls {
        None => exchange_settings(&mut socket).unwrap_or(false),
        Some(config) => {
            let tls = |cause| ProbeError::Tls { address: address(), cause };
            let mut connection = ClientConnection::new(Arc::clone(config), resolved.server_name.clone())
                .map_err(|error| tls(io::Error::other(error)))?;
            connection.complete_io(&mut socket).map_err(tls)?;
            exchange_settings(&mut Stream::new(&mut connection, &mut socket)).unwrap_or(false)
        }
    };
    if speaks_http2 { Ok(()) } else { Err(ProbeError::NotHttp2 { address: address() }) }
}

fn exchange_settings(stream: &mut (impl Read + Write)) -> io::Result<bool> {
    stream.write_all(OPENING)?;
    stream.flush()?;
    let mut head = [0; FRAME_HEAD_BYTES];
    stream.read_exact(&mut head)?;
    let (place, settings) = SETTINGS;
    Ok(head[place] == settings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Security;
    use std::net::{SocketAddr, TcpListener};
    use std::thread;

    const TIMEOUT: Duration = Duration::from_secs(20);

    fn target(address: SocketAddr, security: Security) -> Target {
        let authority = rcgen::generate_simple_self_signed(["istiod".to_owned()]).unwrap();
        Target {
            address: address.to_string(),
            server_name: "istiod".to_owned(),
            security,
            roots: authority.cert.pem().into_bytes().into(),
        }
    }

    /// A server that reads the preface and sends this response to one client.
    fn server(says: &'static [u8]) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let mut first = [0; 16];
            client.read_exact(&mut first).unwrap();
            client.write_all(says).unwrap();
            // Reads until the client has read everything and closes.
            let _ = io::copy(&mut client, &mut io::sink());
        });
        address
    }

    #[test]
    fn server_with_settings_may_be_an_istiod() {
        let address = server(b"\x00\x00\x00\x04\x00\x00\x00\x00\x00");
        probe(&target(address, Security::Plaintext), TIMEOUT).unwrap();
    }

    #[test]
    fn server_without_http2_is_not_an_istiod() {
        let address = server(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        let error = probe(&target(address, Security::Plaintext), TIMEOUT).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("what listens at {address} is not an istiod: it does not speak HTTP/2")
        );
    }

    #[test]
    fn server_without_tls_is_error_with_address() {
        let address = server(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        let error = probe(&target(address, Security::Token), TIMEOUT).unwrap_err();
        assert_eq!(error.to_string(), format!("TLS with istiod at {address}"));
        assert!(error.hint().unwrap().contains("--istiod-ca"));
    }

    #[test]
    fn closed_port_is_error_with_address() {
        let error =
            probe(&target(SocketAddr::from(([127, 0, 0, 1], 1)), Security::Token), TIMEOUT).unwrap_err();
        assert_eq!(error.to_string(), "connect to istiod at 127.0.0.1:1");
    }
}

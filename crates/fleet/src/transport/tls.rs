//! TLS of one connection, without I/O: records are decrypted in the buffer that they were read into.

use super::ending::{Ending, EndingKind};
use rustls::client::{ClientConnectionData, Resumption, UnbufferedClientConnection};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, EncryptError, InsufficientSizeError, UnbufferedStatus,
};
use rustls::{ClientConfig, RootCertStore};
use std::mem;
use std::sync::Arc;

const ALPN: &[u8] = b"h2";
/// Initial buffer size of a handshake message.
const MESSAGE_BYTES: usize = 512;

/// Configuration of clients that trust `roots` (PEM) and have no certificate.
pub(crate) fn client_config(roots: &[u8]) -> Result<ClientConfig, rustls::Error> {
    let config = builder(roots)?.with_no_client_auth();
    Ok(with_protocol(config))
}

/// Like [`client_config`], with a client certificate.
pub(crate) fn client_config_with_identity(
    roots: &[u8],
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ClientConfig, rustls::Error> {
    let config = builder(roots)?.with_client_auth_cert(chain, key)?;
    Ok(with_protocol(config))
}

fn builder(
    roots: &[u8],
) -> Result<rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert>, rustls::Error> {
    let mut store = RootCertStore::empty();
    for root in CertificateDer::pem_slice_iter(roots) {
        let root = root.map_err(|error| rustls::Error::General(format!("read the roots: {error}")))?;
        store.add(root)?;
    }
    if store.is_empty() {
        return Err(rustls::Error::General("there is no certificate among the roots".to_owned()));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(builder.with_root_certificates(store))
}

/// Disables session resumption: each connection makes a full handshake, like a proxy's first one, and no
/// tickets are kept.
fn with_protocol(mut config: ClientConfig) -> ClientConfig {
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.resumption = Resumption::disabled();
    config
}

/// TLS state of one connection.
pub(super) struct TlsSession {
    connection: UnbufferedClientConnection,
    established: bool,
    /// Start of an incomplete record.
    rest: Vec<u8>,
}

impl TlsSession {
    pub(super) fn new(config: Arc<ClientConfig>, server_name: ServerName<'static>) -> Result<Self, Ending> {
        let connection =
            UnbufferedClientConnection::new(config, server_name).map_err(|error| Ending::for_tls(&error))?;
        Ok(Self { connection, established: false, rest: Vec::new() })
    }

    pub(super) fn is_established(&self) -> bool {
        self.established
    }

    /// Length of the incomplete record kept so far.
    pub(super) fn rest_length(&self) -> usize {
        self.rest.len()
    }

    /// Takes the start of the incomplete record; the next bytes continue it.
    pub(super) fn take_rest(&mut self) -> Vec<u8> {
        mem::take(&mut self.rest)
    }

    /// Decrypts records, of which the last may be incomplete, and passes on their plaintext. Handshake
    /// messages are appended to `outgoing`.
    pub(super) fn receive(
        &mut self,
        records: &mut [u8],
        outgoing: &mut Vec<u8>,
        plain: &mut dyn FnMut(&[u8]) -> Result<(), Ending>,
    ) -> Result<(), Ending> {
        let mut taken = 0;
        loop {
            let UnbufferedStatus { discard, state, .. } =
                self.connection.process_tls_records(&mut records[taken..]);
            match state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(record) = traffic.next_record() {
                        plain(record.map_err(|error| Ending::for_tls(&error))?.payload)?;
                    }
                }
                Ok(ConnectionState::EncodeTlsData(data)) => encode(data, outgoing)?,
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                Ok(ConnectionState::WriteTraffic(_)) if !self.established => {
                    self.established = true;
                    if self.connection.alpn_protocol() != Some(ALPN) {
                        return Err(Ending::new(EndingKind::Tls, "the server does not offer HTTP/2"));
                    }
                }
                Ok(ConnectionState::PeerClosed | ConnectionState::Closed) => {
                    return Err(Ending::new(EndingKind::Lost, "the server closed the connection"));
                }
                Ok(_) => {
                    taken += discard;
                    break;
                }
                Err(error) => {
                    let ending = Ending::for_tls(&error);
                    self.send_alert(&mut records[taken..], outgoing);
                    return Err(ending);
                }
            }
            taken += discard;
        }
        self.rest = records[taken..].to_vec();
        Ok(())
    }

    /// Appends the alert for an error on this side.
    fn send_alert(&mut self, records: &mut [u8], outgoing: &mut Vec<u8>) {
        if let Ok(ConnectionState::EncodeTlsData(data)) = self.connection.process_tls_records(records).state {
            // The connection is lost anyway.
            let _ = encode(data, outgoing);
        }
    }

    /// Encrypts `bytes` and appends them to `outgoing`.
    pub(super) fn encrypt(&mut self, bytes: &[u8], outgoing: &mut Vec<u8>) -> Result<(), Ending> {
        loop {
            let mut rest = mem::take(&mut self.rest);
            let UnbufferedStatus { discard, state, .. } = self.connection.process_tls_records(&mut rest);
            let mut done = false;
            match state {
                Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                    add(outgoing, bytes.len() + MESSAGE_BYTES, |room| match traffic.encrypt(bytes, room) {
                        Ok(length) => Ok(Ok(length)),
                        Err(EncryptError::InsufficientSize(needed)) => Ok(Err(needed)),
                        Err(error) => Err(Ending::new(EndingKind::Tls, error.to_string())),
                    })?;
                    done = true;
                }
                Ok(ConnectionState::EncodeTlsData(data)) => encode(data, outgoing)?,
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                Ok(_) => return Err(Ending::new(EndingKind::Lost, "the server closed the connection")),
                Err(error) => return Err(Ending::for_tls(&error)),
            }
            rest.drain(..discard);
            self.rest = rest;
            if done {
                return Ok(());
            }
        }
    }
}

/// Appends a handshake message or an alert.
fn encode(mut data: EncodeTlsData<'_, ClientConnectionData>, outgoing: &mut Vec<u8>) -> Result<(), Ending> {
    add(outgoing, MESSAGE_BYTES, |room| match data.encode(room) {
        Ok(length) => Ok(Ok(length)),
        Err(EncodeError::InsufficientSize(needed)) => Ok(Err(needed)),
        Err(error) => Err(Ending::new(EndingKind::Tls, error.to_string())),
    })
}

/// Has `write` fill space at the end of `outgoing`, and grows it if `write` needs more.
fn add(
    outgoing: &mut Vec<u8>,
    room: usize,
    mut write: impl FnMut(&mut [u8]) -> Result<Result<usize, InsufficientSizeError>, Ending>,
) -> Result<(), Ending> {
    let start = outgoing.len();
    outgoing.resize(start + room, 0);
    loop {
        match write(&mut outgoing[start..]) {
            Ok(Ok(length)) => {
                outgoing.truncate(start + length);
                return Ok(());
            }
            Ok(Err(needed)) if needed.required_size > outgoing.len() - start => {
                outgoing.resize(start + needed.required_size, 0);
            }
            Ok(Err(_)) => return Err(Ending::new(EndingKind::Tls, "TLS asks for room that it has")),
            Err(ending) => {
                outgoing.truncate(start);
                return Err(ending);
            }
        }
    }
}

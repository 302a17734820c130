//! TLS of a QUIC connection: what `quinn-proto` needs of rustls, and what results say of it.
//!
//! The library has a session of its own, which tells neither the cipher, nor whether an earlier session was resumed, nor why a
//! certificate was refused. Keys of packets and heads are the library's.

use crate::network::{ServerKey, TlsFailure};
use http3::quic::quinn_proto::crypto::{
    self, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey,
};
use http3::quic::quinn_proto::transport_parameters::TransportParameters;
use http3::quic::quinn_proto::{
    ConnectError, Connection, ConnectionId, Side, TransportError, TransportErrorCode,
};
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use rustls::pki_types::ServerName;
use rustls::quic::{ClientConnection, KeyChange, Secrets, Suite, Version};
use rustls::{CipherSuite, ClientConfig, Error, HandshakeKind};
use std::any::Any;
use std::sync::Arc;

use super::super::Security;
use super::super::tls::KnownKeys;

/// Version 1 of QUIC (RFC 9000).
const QUIC_V1: u32 = 1;
/// Length of the integrity tag of a Retry packet, bytes.
const RETRY_TAG_BYTES: usize = 16;
/// Key and nonce of that tag (RFC 9001, section 5.8).
const RETRY_KEY: [u8; 16] =
    [0xbe, 0x0c, 0x69, 0x0b, 0x9f, 0x66, 0x57, 0x5a, 0x1d, 0x76, 0x6b, 0x54, 0xe3, 0x68, 0xc8, 0x4e];
const RETRY_NONCE: [u8; 12] = [0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb];

/// TLS settings of a run's connections.
pub(super) struct QuicTls {
    config: Arc<ClientConfig>,
    /// Cipher of the first packets.
    initial: Suite,
}

/// The TLS session of one connection.
struct Session {
    connection: rustls::quic::Connection,
    initial: Suite,
    next_secrets: Option<Secrets>,
    /// Why the handshake failed.
    failure: Option<TlsFailure>,
    is_told: bool,
}

/// What a session tells of itself.
struct Outcome {
    cipher: Option<CipherSuite>,
    resumed: bool,
    failure: Option<TlsFailure>,
}

impl QuicTls {
    /// `None` if the settings lack TLS 1.3 or its mandatory cipher.
    pub(super) fn new(config: Arc<ClientConfig>) -> Option<Self> {
        let suites = &config.crypto_provider().cipher_suites;
        let initial = suites.iter().find_map(|suite| match suite.suite() {
            CipherSuite::TLS13_AES_128_GCM_SHA256 => suite.tls13()?.quic_suite(),
            _ => None,
        });
        Some(Self { initial: initial?, config })
    }
}

impl crypto::ClientConfig for QuicTls {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn crypto::Session>, ConnectError> {
        if version != QUIC_V1 {
            return Err(ConnectError::UnsupportedVersion);
        }
        let invalid = || ConnectError::InvalidServerName(server_name.to_owned());
        let name = ServerName::try_from(server_name).map_err(|_| invalid())?.to_owned();
        let mut parameters = Vec::new();
        params.write(&mut parameters);
        let connection = ClientConnection::new(Arc::clone(&self.config), Version::V1, name, parameters)
            .map_err(|_| invalid())?;
        Ok(Box::new(Session {
            connection: connection.into(),
            initial: self.initial,
            next_secrets: None,
            failure: None,
            is_told: false,
        }))
    }
}

impl crypto::Session for Session {
    fn initial_keys(&self, dst_cid: &ConnectionId, _: Side) -> Keys {
        keys(self.initial.keys(dst_cid, rustls::Side::Client, Version::V1))
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        let cipher = self.connection.negotiated_cipher_suite().map(|suite| suite.suite());
        let resumed = self.connection.handshake_kind() == Some(HandshakeKind::Resumed);
        Some(Box::new(Outcome { cipher, resumed, failure: self.failure }))
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        let certificate = self.connection.peer_certificates()?.first()?;
        Some(Box::new(certificate.clone().into_owned()))
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        if let Err(error) = self.connection.read_hs(bytes) {
            self.failure = Some(TlsFailure::from_error(&error, false));
            return Err(self.refusal(&error));
        }
        let is_ready = !self.is_told && !self.is_handshaking();
        self.is_told |= is_ready;
        Ok(is_ready)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let read = |mut bytes: &[u8]| TransportParameters::read(Side::Client, &mut bytes);
        Ok(self.connection.quic_transport_parameters().map(read).transpose()?)
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        match self.connection.write_hs(out)? {
            KeyChange::Handshake { keys: of_handshake } => Some(keys(of_handshake)),
            KeyChange::OneRtt { keys: of_data, next } => {
                self.next_secrets = Some(next);
                Some(keys(of_data))
            }
        }
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let next = self.next_secrets.as_mut()?.next_packet_keys();
        Some(KeyPair { local: Box::new(next.local), remote: Box::new(next.remote) })
    }

    fn is_valid_retry(&self, orig_dst_cid: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        let Some(tag_at) = payload.len().checked_sub(RETRY_TAG_BYTES) else { return false };
        let (payload, tag) = payload.split_at(tag_at);
        let length = [orig_dst_cid.len() as u8];
        let pseudo_packet = [&length[..], orig_dst_cid, header, payload].concat();
        let Ok(key) = UnboundKey::new(&AES_128_GCM, &RETRY_KEY) else { return false };
        let nonce = Nonce::assume_unique_for_key(RETRY_NONCE);
        LessSafeKey::new(key).open_in_place(nonce, Aad::from(pseudo_packet), &mut tag.to_vec()).is_ok()
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        let exported = self.connection.export_keying_material(output, label, Some(context));
        exported.map(|_| ()).map_err(|_| ExportKeyingMaterialError)
    }
}

impl Session {
    /// The error that tells the peer why the handshake failed.
    fn refusal(&self, error: &Error) -> TransportError {
        TransportError {
            code: self.connection.alert().map_or(TransportErrorCode::PROTOCOL_VIOLATION, |alert| {
                TransportErrorCode::crypto(alert.into())
            }),
            frame: None,
            reason: error.to_string(),
        }
    }
}

/// The library's form of these keys.
fn keys(keys: rustls::quic::Keys) -> Keys {
    let rustls::quic::Keys { local, remote } = keys;
    Keys {
        header: KeyPair { local: Box::new(local.header), remote: Box::new(remote.header) },
        packet: KeyPair { local: Box::new(local.packet), remote: Box::new(remote.packet) },
    }
}

fn outcome(connection: &Connection) -> Option<Box<Outcome>> {
    connection.crypto_session().handshake_data()?.downcast().ok()
}

/// Why the handshake of a connection failed on this side.
pub(super) fn failure(connection: &Connection) -> Option<TlsFailure> {
    outcome(connection)?.failure
}

/// What the handshake of a connection negotiated.
pub(super) fn security(connection: &Connection, known_keys: &mut KnownKeys) -> Option<Security> {
    let Outcome { cipher, resumed, .. } = *outcome(connection)?;
    let certificate = connection.crypto_session().peer_identity();
    let certificate = certificate.and_then(|certificate| certificate.downcast().ok());
    Some(Security {
        version: rustls::ProtocolVersion::TLSv1_3,
        cipher: cipher?,
        resumed,
        server_key: certificate.map_or(ServerKey::Other, |certificate| known_keys.key_of(&certificate)),
    })
}

//! TLS of one connection, without I/O: records in, plaintext out, and the other way round.

use super::failure::TlsFailure;
use super::outgoing::Outgoing;
use super::server_key::{KnownKeys, ServerKey};
use crate::error::ErrorKind;
use crate::network::Security;
use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::pki_types::ServerName;
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, EncryptError, InsufficientSizeError, ReadTraffic,
    UnbufferedStatus, WriteTraffic,
};
use rustls::{ClientConfig, Error, HandshakeKind};
use std::mem;
use std::sync::Arc;

type Traffic<'c> = WriteTraffic<'c, ClientConnectionData>;
type Written = Result<usize, EncryptError>;

/// Result of processing received records.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Step {
    /// All bytes are consumed; nothing to report.
    NeedsMore,
    /// The handshake is complete. There may be more to report.
    Established,
    /// Plaintext is at the start of the buffer.
    Received {
        /// Its length.
        length: usize,
        /// There is more to report at once.
        more: bool,
    },
    /// The peer has announced that it will send no more.
    Ended,
    /// The session is unusable.
    Failed(TlsFailure),
}

/// TLS session of one connection.
pub(super) struct Session {
    connection: UnbufferedClientConnection,
    /// The peer must select the offered protocol.
    needs_alpn: bool,
    established: bool,
    /// How the session ended; nothing is sent or received any more.
    over: Option<Step>,
    /// Received bytes not consumed yet: less than a complete record or handshake message.
    rest: Vec<u8>,
    /// Plaintext that had to be decrypted before something could be sent, and is not reported yet.
    untold: Vec<u8>,
}

impl Session {
    pub(super) fn new(config: &Arc<ClientConfig>, server_name: &ServerName<'static>) -> Result<Self, Error> {
        let connection = UnbufferedClientConnection::new(Arc::clone(config), server_name.clone())?;
        let needs_alpn = config.alpn_protocols.iter().any(|offered| offered == b"h2");
        Ok(Self {
            connection,
            needs_alpn,
            established: false,
            over: None,
            rest: Vec::new(),
            untold: Vec::new(),
        })
    }

    /// True if the peer selected a usable protocol. A peer without ALPN speaks HTTP/1.1.
    fn has_protocol(&self) -> bool {
        let chosen = self.connection.alpn_protocol();
        !self.needs_alpn || chosen.is_some()
    }

    /// What the handshake negotiated, once it is complete.
    pub(super) fn security(&self, known_keys: &mut KnownKeys) -> Option<Security> {
        let certificate = self.connection.peer_certificates().and_then(<[_]>::first);
        Some(Security {
            version: self.connection.protocol_version()?,
            cipher: self.connection.negotiated_cipher_suite()?.suite(),
            resumed: self.connection.handshake_kind() == Some(HandshakeKind::Resumed),
            server_key: certificate.map_or(ServerKey::Other, |certificate| known_keys.key_of(certificate)),
        })
    }

    /// True if the handshake is complete.
    pub(super) fn is_established(&self) -> bool {
        self.established
    }

    /// Consumes records up to the next result to report; without any, continues with what is there. Plaintext
    /// is written to `plain`, which must hold at least one record; output is appended to `outgoing`.
    pub(super) fn receive(&mut self, records: &mut [u8], outgoing: &mut Outgoing, plain: &mut [u8]) -> Step {
        if !self.untold.is_empty() {
            self.rest.extend_from_slice(records);
            let length = self.untold.len().min(plain.len());
            plain[..length].copy_from_slice(&self.untold[..length]);
            self.untold.drain(..length);
            let more = !self.untold.is_empty() || self.over.is_some() || holds_record(&self.rest);
            return Step::Received { length, more };
        }
        if self.rest.is_empty() {
            let (taken, step) = self.advance(records, outgoing, plain);
            self.rest.extend_from_slice(&records[taken..]);
            return step;
        }
        let mut rest = mem::take(&mut self.rest);
        rest.extend_from_slice(records);
        let (taken, step) = self.advance(&mut rest, outgoing, plain);
        rest.drain(..taken);
        self.rest = rest;
        step
    }

    /// Returns how many bytes of `records` are consumed, and the result to report.
    fn advance(&mut self, records: &mut [u8], outgoing: &mut Outgoing, plain: &mut [u8]) -> (usize, Step) {
        let (mut taken, mut filled) = (0, 0);
        let received = |length, more| Step::Received { length, more };
        while self.over.is_none() {
            let UnbufferedStatus { discard, state, .. } =
                self.connection.process_tls_records(&mut records[taken..]);
            taken += discard;
            match state {
                Ok(ConnectionState::ReadTraffic(traffic)) => {
                    if !read(traffic, plain, &mut filled) {
                        return (taken, received(filled, true));
                    }
                }
                Ok(ConnectionState::EncodeTlsData(data)) => encode(data, outgoing),
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                Ok(ConnectionState::WriteTraffic(_)) if !self.established => {
                    if !self.has_protocol() {
                        self.fail(TlsFailure(ErrorKind::AlpnRefused));
                        break;
                    }
                    self.established = true;
                    return (taken, Step::Established);
                }
                Ok(ConnectionState::PeerClosed) => self.over = Some(Step::Ended),
                Ok(_) => break,
                Err(error) => {
                    self.fail(TlsFailure::from_error(&error, self.established));
                    if !matches!(error, Error::AlertReceived(_)) {
                        self.tell_peer(&mut records[taken..], outgoing);
                    }
                }
            }
        }
        let step = match &self.over {
            _ if filled > 0 => received(filled, self.over.is_some()),
            Some(Step::Failed(failure)) => Step::Failed(*failure),
            Some(_) if !self.established => Step::Failed(TlsFailure(ErrorKind::TlsHandshake)),
            Some(_) => Step::Ended,
            None => Step::NeedsMore,
        };
        (taken, step)
    }

    /// Appends the alert for an error on our side. Call it once: the library accepts no more records after
    /// it.
    fn tell_peer(&mut self, records: &mut [u8], outgoing: &mut Outgoing) {
        if let Ok(ConnectionState::EncodeTlsData(data)) = self.connection.process_tls_records(records).state {
            encode(data, outgoing);
        }
    }

    /// Encrypts `bytes` and appends them to `outgoing`.
    pub(super) fn encrypt(&mut self, bytes: &[u8], outgoing: &mut Outgoing) -> Result<(), TlsFailure> {
        self.write(outgoing, |traffic, room| traffic.encrypt(bytes, room))
    }

    /// Appends a close_notify to `outgoing` if the peer can still receive one.
    pub(super) fn send_close_notify(&mut self, outgoing: &mut Outgoing) {
        if self.established && self.over.is_none() {
            // A session that cannot write a close_notify has failed in a way that is reported elsewhere.
            let _ = self.write(outgoing, |traffic, room| traffic.queue_close_notify(room));
        }
    }

    fn write(
        &mut self,
        outgoing: &mut Outgoing,
        mut write: impl FnMut(&mut Traffic<'_>, &mut [u8]) -> Written,
    ) -> Result<(), TlsFailure> {
        if let Some(Step::Failed(failure)) = self.over {
            return Err(failure);
        }
        loop {
            let UnbufferedStatus { discard, state, .. } = self.connection.process_tls_records(&mut self.rest);
            let written = match state {
                Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                    Some(outgoing.add(|room| write(&mut traffic, room).map_err(|error| room_needed(&error))))
                }
                Ok(ConnectionState::EncodeTlsData(data)) => {
                    encode(data, outgoing);
                    None
                }
                Ok(ConnectionState::TransmitTlsData(data)) => {
                    data.done();
                    None
                }
                // Records that came with those reported last: the caller may send after it has read the first
                // and before it gets the others.
                Ok(ConnectionState::ReadTraffic(traffic)) => {
                    keep(traffic, &mut self.untold);
                    None
                }
                Ok(ConnectionState::PeerClosed) => {
                    self.over = Some(Step::Ended);
                    None
                }
                Ok(_) => Some(false),
                Err(error) => return Err(self.fail(TlsFailure::from_error(&error, self.established))),
            };
            self.rest.drain(..discard);
            match written {
                Some(true) => return Ok(()),
                Some(false) => return Err(self.fail(TlsFailure(ErrorKind::TlsProtocol))),
                None => {}
            }
        }
    }

    /// Marks the session as failed: nothing is sent or received any more.
    fn fail(&mut self, failure: TlsFailure) -> TlsFailure {
        self.over = Some(Step::Failed(failure));
        failure
    }
}

/// Appends a handshake message or an alert to `outgoing`.
fn encode(mut data: EncodeTlsData<'_, ClientConnectionData>, outgoing: &mut Outgoing) {
    let encoded = outgoing.add(|room| {
        data.encode(room).map_err(|error| match error {
            EncodeError::InsufficientSize(needed) => Some(needed),
            EncodeError::AlreadyEncoded => None,
        })
    });
    assert!(encoded, "a message is encoded once, and has the room that it asks for");
}

fn room_needed(error: &EncryptError) -> Option<InsufficientSizeError> {
    match error {
        EncryptError::InsufficientSize(needed) => Some(*needed),
        EncryptError::EncryptExhausted => None,
    }
}

/// True if a whole record is at the start: its header ends with its length (RFC 8446, 5.1).
fn holds_record(records: &[u8]) -> bool {
    let Some(([.., high, low], rest)) = records.split_first_chunk::<5>() else { return false };
    rest.len() >= usize::from(u16::from_be_bytes([*high, *low]))
}

/// Moves decrypted data to `plain` as far as it fits. Returns true if all of it did.
fn read(
    mut traffic: ReadTraffic<'_, '_, ClientConnectionData>,
    plain: &mut [u8],
    filled: &mut usize,
) -> bool {
    while let Some(length) = traffic.peek_len() {
        if length.get() > plain.len() - *filled {
            assert!(*filled > 0, "the buffer has room for a record");
            return false;
        }
        if let Some(Ok(record)) = traffic.next_record() {
            plain[*filled..*filled + record.payload.len()].copy_from_slice(record.payload);
            *filled += record.payload.len();
        }
    }
    true
}

/// Appends decrypted data to `untold`.
fn keep(mut traffic: ReadTraffic<'_, '_, ClientConnectionData>, untold: &mut Vec<u8>) {
    while let Some(Ok(record)) = traffic.next_record() {
        untold.extend_from_slice(record.payload);
    }
}

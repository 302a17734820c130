//! One connection's TLS, without I/O: records in, plain bytes out, and the other way round.

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

/// How far received records brought a session.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Step {
    /// All is taken; nothing happened that anybody must know.
    NeedsMore,
    /// The handshake is complete. There may be more to tell.
    Established,
    /// Plain bytes stand at the start of the buffer.
    Received {
        /// How many.
        length: usize,
        /// There is more to tell at once.
        more: bool,
    },
    /// The peer has said that it will send no more.
    Ended,
    /// The session is of no more use.
    Failed(TlsFailure),
}

/// See the module.
pub(super) struct Session {
    connection: UnbufferedClientConnection,
    /// The peer must choose the protocol that it is offered.
    needs_alpn: bool,
    established: bool,
    /// How it ended; nothing is sent or taken any more.
    over: Option<Step>,
    /// Received and not taken: less than a whole record, or than a whole message of the handshake.
    rest: Vec<u8>,
    /// Plain bytes that had to be taken out before something could be sent, and are to be told yet.
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

    /// Whether the peer has chosen what can be spoken. One that knows nothing of such choices speaks HTTP/1.1.
    fn has_protocol(&self) -> bool {
        let chosen = self.connection.alpn_protocol();
        !self.needs_alpn || chosen.is_some()
    }

    /// What the handshake agreed on, once it is complete.
    pub(super) fn security(&self, known_keys: &mut KnownKeys) -> Option<Security> {
        let certificate = self.connection.peer_certificates().and_then(<[_]>::first);
        Some(Security {
            version: self.connection.protocol_version()?,
            cipher: self.connection.negotiated_cipher_suite()?.suite(),
            resumed: self.connection.handshake_kind() == Some(HandshakeKind::Resumed),
            server_key: certificate.map_or(ServerKey::Other, |certificate| known_keys.key_of(certificate)),
        })
    }

    /// Whether the handshake is complete.
    pub(super) fn is_established(&self) -> bool {
        self.established
    }

    /// Takes records (with none: goes on with what is there) up to the next thing to tell. Plain bytes are written to
    /// `plain`, which has room for a record at least; what is to be sent is added to `outgoing`.
    pub(super) fn receive(&mut self, records: &mut [u8], outgoing: &mut Outgoing, plain: &mut [u8]) -> Step {
        if !self.untold.is_empty() {
            self.rest.extend_from_slice(records);
            let length = self.untold.len().min(plain.len());
            plain[..length].copy_from_slice(&self.untold[..length]);
            self.untold.drain(..length);
            return Step::Received { length, more: true };
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

    /// Returns how many bytes of `records` are of no more use, and what there is to tell.
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
                    self.fail(TlsFailure::of(&error, self.established));
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

    /// Adds the alert that an error of our side brought. To be called once: the library takes no more records after it.
    fn tell_peer(&mut self, records: &mut [u8], outgoing: &mut Outgoing) {
        if let Ok(ConnectionState::EncodeTlsData(data)) = self.connection.process_tls_records(records).state {
            encode(data, outgoing);
        }
    }

    /// Adds `bytes`, encrypted, to `outgoing`.
    pub(super) fn encrypt(&mut self, bytes: &[u8], outgoing: &mut Outgoing) -> Result<(), TlsFailure> {
        self.write(outgoing, |traffic, room| traffic.encrypt(bytes, room))
    }

    /// Adds to `outgoing` that no more will be sent, where the peer can still hear it.
    pub(super) fn say_goodbye(&mut self, outgoing: &mut Outgoing) {
        if self.established && self.over.is_none() {
            // A session that cannot say it has failed in a way that is told elsewhere.
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
                // Records that came with those told last: who reads the first of them may send before it is told the others.
                Ok(ConnectionState::ReadTraffic(traffic)) => {
                    keep(traffic, &mut self.untold);
                    None
                }
                Ok(ConnectionState::PeerClosed) => {
                    self.over = Some(Step::Ended);
                    None
                }
                Ok(_) => Some(false),
                Err(error) => return Err(self.fail(TlsFailure::of(&error, self.established))),
            };
            self.rest.drain(..discard);
            match written {
                Some(true) => return Ok(()),
                Some(false) => return Err(self.fail(TlsFailure(ErrorKind::TlsProtocol))),
                None => {}
            }
        }
    }

    /// Nothing is sent or taken any more.
    fn fail(&mut self, failure: TlsFailure) -> TlsFailure {
        self.over = Some(Step::Failed(failure));
        failure
    }
}

/// Adds a message of the handshake, or an alert, to `outgoing`.
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

/// Moves what was decrypted to `plain`, as far as there is room. Returns whether all of it had.
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

/// Adds what was decrypted to `untold`.
fn keep(mut traffic: ReadTraffic<'_, '_, ClientConnectionData>, untold: &mut Vec<u8>) {
    while let Some(Ok(record)) = traffic.next_record() {
        untold.extend_from_slice(record.payload);
    }
}

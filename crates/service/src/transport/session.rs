//! TLS of one connection: records on the socket's side, plaintext on this side.

use super::link::Link;
use rustix::io::{self, Errno};
use rustls::{ServerConfig, ServerConnection};
use std::io::{BufRead as _, ErrorKind, IoSlice, Write as _};
use std::sync::Arc;

/// Maximum plaintext encrypted before the socket has to accept some; bounds the cost of a slow client.
const MAX_UNSENT_BYTES: usize = 64 * 1024;

/// The TLS session of a connection.
#[derive(Debug)]
pub(super) struct Session {
    connection: ServerConnection,
    /// It may still hold received bytes.
    may_hold_more: bool,
}

impl Session {
    pub(super) fn new(config: &Arc<ServerConfig>) -> Self {
        let mut connection = ServerConnection::new(Arc::clone(config))
            .expect("a configuration that was made with certificate and key can serve");
        connection.set_buffer_limit(Some(MAX_UNSENT_BYTES));
        Self { connection, may_hold_more: false }
    }

    pub(super) fn may_hold_more(&self) -> bool {
        self.may_hold_more
    }

    pub(super) fn has_agreed_on(&self, protocol: &[u8]) -> bool {
        self.connection.alpn_protocol() == Some(protocol)
    }

    /// Continues the handshake. Returns true if it is complete. If it fails, the client gets an alert.
    pub(super) fn handshake(&mut self, link: &mut Link) -> io::Result<bool> {
        while self.connection.is_handshaking() {
            match self.take_records(link)? {
                None => return Ok(false),
                Some(0) => return Err(Errno::CONNRESET),
                Some(_) => {}
            }
        }
        // Application data may have arrived with the end of the handshake.
        self.may_hold_more = true;
        Ok(true)
    }

    /// Passes plaintext to `take`, which returns how many bytes it took. Returns that number, 0 at the end of
    /// the stream, `None` if nothing is available.
    pub(super) fn receive(
        &mut self,
        link: &mut Link,
        take: impl FnOnce(&[u8]) -> usize,
    ) -> io::Result<Option<usize>> {
        loop {
            let mut reader = self.connection.reader();
            match reader.fill_buf() {
                Ok([]) => return Ok(Some(0)),
                Ok(plain) => {
                    let length = take(plain);
                    reader.consume(length);
                    self.may_hold_more = true;
                    return Ok(Some(length));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // The stream ended without a close_notify: the protocol above must detect truncation.
                Err(_) => return Ok(Some(0)),
            }
            match self.take_records(link)? {
                None => {
                    self.may_hold_more = false;
                    return Ok(None);
                }
                Some(0) => return Ok(Some(0)),
                Some(_) => {}
            }
        }
    }

    /// Reads records and replies to those that need it. Returns the number of bytes, 0 at the end of the
    /// stream.
    fn take_records(&mut self, link: &mut Link) -> io::Result<Option<usize>> {
        let length = match self.connection.read_tls(link) {
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(errno(&error)),
        };
        let processed = self.connection.process_new_packets();
        // Handshake messages, tickets, alerts: whatever stays unsent goes out with the next bytes.
        match self.flush(link) {
            Ok(()) | Err(Errno::AGAIN) => {}
            Err(error) => return Err(error),
        }
        processed.map(|_| Some(length)).map_err(|_| Errno::PROTO)
    }

    pub(super) fn send(&mut self, link: &mut Link, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match self.flush(link) {
            Ok(()) | Err(Errno::AGAIN) => {}
            Err(error) => return Err(error),
        }
        let taken = self.connection.writer().write_vectored(pieces).map_err(|error| errno(&error))?;
        match self.flush(link) {
            Ok(()) => {}
            Err(Errno::AGAIN) if taken == 0 => return Err(Errno::AGAIN),
            Err(Errno::AGAIN) => {}
            Err(error) => return Err(error),
        }
        Ok(taken)
    }

    pub(super) fn flush(&mut self, link: &mut Link) -> io::Result<()> {
        while self.connection.wants_write() {
            self.connection.write_tls(link).map_err(|error| errno(&error))?;
        }
        Ok(())
    }

    pub(super) fn send_close_notify(&mut self) {
        self.connection.send_close_notify();
    }
}

/// The kernel's error; the library's own errors are protocol errors.
fn errno(error: &std::io::Error) -> Errno {
    match error.kind() {
        ErrorKind::WouldBlock => Errno::AGAIN,
        _ => Errno::from_io_error(error).unwrap_or(Errno::PROTO),
    }
}

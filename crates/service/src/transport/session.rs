//! One connection's TLS: records on the socket's side, plain bytes on this side.

use super::link::Link;
use rustix::io::{self, Errno};
use rustls::{ServerConfig, ServerConnection};
use std::io::{BufRead as _, ErrorKind, IoSlice, Write as _};
use std::sync::Arc;

/// Most plain bytes that are encrypted before the socket has to take some: bounds what a slow client costs.
const UNSENT_MAX_BYTES: usize = 64 * 1024;

/// See the module.
#[derive(Debug)]
pub(super) struct Session {
    connection: ServerConnection,
    /// Received bytes may be left in it.
    may_hold_more: bool,
}

impl Session {
    pub(super) fn new(config: &Arc<ServerConfig>) -> Self {
        let mut connection = ServerConnection::new(Arc::clone(config))
            .expect("a configuration that was made with certificate and key can serve");
        connection.set_buffer_limit(Some(UNSENT_MAX_BYTES));
        Self { connection, may_hold_more: false }
    }

    pub(super) fn may_hold_more(&self) -> bool {
        self.may_hold_more
    }

    pub(super) fn has_agreed_on(&self, protocol: &[u8]) -> bool {
        self.connection.alpn_protocol() == Some(protocol)
    }

    /// Whether the handshake is complete. Where it fails, the client is told why.
    pub(super) fn shake_hands(&mut self, link: &mut Link) -> io::Result<bool> {
        while self.connection.is_handshaking() {
            match self.take_records(link)? {
                None => return Ok(false),
                Some(0) => return Err(Errno::CONNRESET),
                Some(_) => {}
            }
        }
        // Application data may have come with the end of the handshake.
        self.may_hold_more = true;
        Ok(true)
    }

    /// Gives plain bytes to `take`, which says how many it took: that many, 0 at the end of the stream, nothing where
    /// there is none now.
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
                // The stream ended without a farewell: what was cut off is for the protocol above to see.
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

    /// Reads records and answers those that want an answer: how many bytes, 0 at the end of the stream.
    fn take_records(&mut self, link: &mut Link) -> io::Result<Option<usize>> {
        let length = match self.connection.read_tls(link) {
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(errno(&error)),
        };
        let processed = self.connection.process_new_packets();
        // Handshake messages, tickets, alerts: what stays unsent goes with the next bytes.
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

    pub(super) fn say_goodbye(&mut self) {
        self.connection.send_close_notify();
    }
}

/// What the kernel said; the library's own errors are those of the protocol.
fn errno(error: &std::io::Error) -> Errno {
    match error.kind() {
        ErrorKind::WouldBlock => Errno::AGAIN,
        _ => Errno::from_io_error(error).unwrap_or(Errno::PROTO),
    }
}

//! A connection's socket together with the layers above it.

use super::ending::{Ending, EndingKind};
use super::http2::{Event, Http2, RequestHead};
use super::receive::{MAX_UNCERTAINTY, Stamp, enable_timestamps, receive};
use super::tls::TlsSession;
use super::turns::before_last_wait;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::io;
use std::mem;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;
use tokio::io::Interest;
use tokio::net::{TcpSocket, TcpStream};

/// Maximum bytes per read. It covers a few TLS records, so that a receive timestamp applies to bytes that
/// arrived together.
const MAX_READ_BYTES: usize = 64 * 1024;
/// Size of the buffer that [`Link::poll_receive`] takes.
pub(crate) const READ_BUFFER_BYTES: usize = MAX_READ_BYTES + MAX_REST_BYTES;
/// Maximum size of output that a server does not read. One that reads nothing is given up.
const MAX_UNSENT_BYTES: usize = 32 << 20;
/// Maximum size of kept data from earlier reads: an incomplete record or an unfinished handshake message.
const MAX_REST_BYTES: usize = 128 * 1024;

/// Target and security of a connection.
pub(crate) struct Route<'a> {
    pub(crate) address: SocketAddr,
    /// Local address; absent: any.
    pub(crate) source: Option<IpAddr>,
    pub(crate) server_name: &'a ServerName<'static>,
    /// Absent: plaintext.
    pub(crate) tls: Option<&'a Arc<ClientConfig>>,
}

/// A connection to a control plane.
pub(crate) struct Link {
    socket: TcpStream,
    tls: Option<Box<TlsSession>>,
    http2: Http2,
    /// Bytes to write to the socket.
    outgoing: Vec<u8>,
    written: usize,
    last_read: Option<LastRead>,
}

/// Properties of a read that bound the times of the next one.
#[derive(Clone, Copy, Debug)]
struct LastRead {
    received: Instant,
    /// Bytes with its timestamp arrived after this.
    after: Option<Instant>,
    /// True if it left nothing to read.
    is_drained: bool,
}

impl LastRead {
    /// Properties of a read with this stamp. The kernel merges unread packets under the timestamp of the last
    /// one, so bytes with a different timestamp than the previous bytes arrived after those.
    fn next(last: Option<Self>, stamp: &Stamp) -> Self {
        let after = match last {
            None => None,
            Some(last) if stamp.received <= last.received + MAX_UNCERTAINTY => last.after,
            Some(last) if last.is_drained => before_last_wait().max(Some(last.received)),
            Some(last) => Some(last.received),
        };
        Self { received: stamp.received, after, is_drained: !stamp.filled_buffer }
    }
}

impl Link {
    /// Connects. TLS and HTTP/2 start with the first [`Self::poll_receive`] and [`Self::poll_send`].
    pub(crate) async fn connect(route: &Route<'_>) -> Result<Self, Ending> {
        let socket = open_socket(route).await.map_err(|error| Ending::for_connect(&error))?;
        let mut outgoing = Vec::new();
        let tls = match route.tls {
            None => None,
            Some(config) => {
                let mut tls = Box::new(TlsSession::new(Arc::clone(config), route.server_name.clone())?);
                tls.receive(&mut [], &mut outgoing, &mut |_| Ok(()))?;
                Some(tls)
            }
        };
        Ok(Self { socket, tls, http2: Http2::new(), outgoing, written: 0, last_read: None })
    }

    pub(crate) fn open_stream(&mut self, head: &RequestHead<'_>) {
        self.http2.open(head);
    }

    /// Sends bytes of the request body.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), Ending> {
        self.http2.send(bytes);
        self.http2.check_pending()
    }

    /// Ends the request body.
    pub(crate) fn finish(&mut self) {
        self.http2.finish();
    }

    pub(crate) fn ping(&mut self) {
        self.http2.ping();
    }

    /// Resets the stream, as far as the socket accepts it without blocking.
    pub(crate) fn cancel(&mut self, context: &mut Context<'_>) {
        self.http2.cancel();
        // The connection is closed next anyway.
        let _ = self.poll_send(context);
    }

    /// Writes pending bytes. Ready once there are none.
    pub(crate) fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Ending>> {
        loop {
            self.encrypt_output()?;
            if self.written == self.outgoing.len() {
                self.outgoing = Vec::new();
                self.written = 0;
                return Poll::Ready(Ok(()));
            }
            match self.socket.try_write(&self.outgoing[self.written..]) {
                Ok(bytes) => self.written += bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let writable = ready!(self.socket.poll_write_ready(context));
                    writable.map_err(|error| self.http2.explain(Ending::for_io(&error)))?;
                }
                Err(error) => return Poll::Ready(Err(self.http2.explain(Ending::for_io(&error)))),
            }
        }
    }

    fn encrypt_output(&mut self) -> Result<(), Ending> {
        if !self.http2.has_output() {
            return Ok(());
        }
        if self.written > self.outgoing.len() / 2 {
            self.outgoing.drain(..mem::take(&mut self.written));
        }
        if self.outgoing.len() - self.written + self.http2.output_bytes() > MAX_UNSENT_BYTES {
            return Err(Ending::new(
                EndingKind::Http2Flood,
                "the server does not read what its frames cause",
            ));
        }
        match &mut self.tls {
            None if self.outgoing.is_empty() => self.outgoing = self.http2.take_output(),
            None => self.outgoing.extend(self.http2.take_output()),
            Some(tls) if tls.is_established() => {
                let bytes = self.http2.take_output();
                tls.encrypt(&bytes, &mut self.outgoing)?;
            }
            Some(_) => {}
        }
        Ok(())
    }

    /// Reads once and passes the events on with the receive timestamp. `buffer` has [`READ_BUFFER_BYTES`].
    pub(crate) fn poll_receive(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut [u8],
        take: &mut dyn FnMut(Event<'_>, &Stamp) -> Result<(), Ending>,
    ) -> Poll<Result<(), Ending>> {
        let (rest, length, stamp) = match ready!(self.poll_read(context, buffer)) {
            Ok(read) => read,
            Err(error) => return Poll::Ready(Err(self.http2.explain(Ending::for_io(&error)))),
        };
        if length == 0 {
            let ending = Ending::new(EndingKind::Lost, "the server closed the connection");
            return Poll::Ready(Err(self.http2.explain(ending)));
        }
        let http2 = &mut self.http2;
        let mut plain = |bytes: &[u8]| http2.receive(bytes, &mut |event| take(event, &stamp));
        let records = &mut buffer[..rest + length];
        let received = match &mut self.tls {
            None => plain(records),
            Some(tls) => tls.receive(records, &mut self.outgoing, &mut plain),
        };
        Poll::Ready(received.map_err(|ending| self.http2.explain(ending)))
    }

    /// Reads into the buffer after the kept start of a record. Returns the length of that start and of the
    /// bytes read.
    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<(usize, usize, Stamp)>> {
        loop {
            ready!(self.socket.poll_read_ready(context))?;
            let kept = self.tls.as_ref().map_or(0, |tls| tls.rest_length());
            if kept > MAX_REST_BYTES {
                return Poll::Ready(Err(io::Error::other("a TLS message is too large")));
            }
            let room = &mut buffer[kept..kept + MAX_READ_BYTES];
            let socket = &self.socket;
            match socket.try_io(Interest::READABLE, || receive(socket, room)) {
                Ok((length, mut stamp)) => {
                    let read = LastRead::next(self.last_read, &stamp);
                    stamp.after = read.after;
                    self.last_read = Some(read);
                    if read.is_drained {
                        // The socket is empty. Clearing its readiness, as tokio's own reads do, saves the
                        // read that would find nothing.
                        let _ = socket.try_io(Interest::READABLE, || {
                            Err::<(), _>(io::Error::from(io::ErrorKind::WouldBlock))
                        });
                    }
                    if let Some(tls) = &mut self.tls {
                        buffer[..kept].copy_from_slice(&tls.take_rest());
                    }
                    return Poll::Ready(Ok((kept, length, stamp)));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

/// Timestamps are enabled before the first packet. Small messages are sent at once.
async fn open_socket(route: &Route<'_>) -> io::Result<TcpStream> {
    let socket = if route.address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // Without kernel timestamps, times of reading are used, and the result reports that.
    let _ = enable_timestamps(&socket);
    socket.set_nodelay(true)?;
    if let Some(source) = route.source {
        socket.bind(SocketAddr::new(source, 0))?;
    }
    socket.connect(route.address).await
}

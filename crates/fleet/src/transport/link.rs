//! A connection's socket, and the layers above it in one piece.

use super::ending::{Ending, EndingKind};
use super::http2::{Event, Http2, RequestHead};
use super::receive::{MAX_UNCERTAINTY, Stamp, enable_timestamps, receive};
use super::tls::TlsSession;
use super::turns::before_last_wait;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;
use tokio::io::Interest;
use tokio::net::{TcpSocket, TcpStream};

/// Bytes per read at most: a few TLS records, so that a time of receipt is that of bytes which came together.
const MAX_READ_BYTES: usize = 64 * 1024;
/// Size of the buffer that [`Link::poll_receive`] takes.
pub(crate) const READ_BUFFER_BYTES: usize = MAX_READ_BYTES + MAX_REST_BYTES;
/// The start of a record that may be kept from the read before: less than a record, or an unfinished handshake message.
const MAX_REST_BYTES: usize = 128 * 1024;

/// Target and security of a connection.
pub(crate) struct Route<'a> {
    pub(crate) address: SocketAddr,
    /// The local address; absent: any.
    pub(crate) source: Option<IpAddr>,
    pub(crate) server_name: &'a ServerName<'static>,
    /// Absent: plain text.
    pub(crate) tls: Option<&'a Arc<ClientConfig>>,
}

/// See the module.
pub(crate) struct Link {
    socket: TcpStream,
    tls: Option<Box<TlsSession>>,
    http2: Http2,
    /// Bytes for the socket.
    outgoing: Vec<u8>,
    written: usize,
    last_read: Option<LastRead>,
}

/// Facts of a read that bound the times of the next.
#[derive(Clone, Copy, Debug)]
struct LastRead {
    received: Instant,
    /// Bytes with its time of receipt came after this.
    after: Option<Instant>,
    /// It left nothing to read.
    is_drained: bool,
}

impl LastRead {
    /// Facts of a read with this time. The kernel joins packets that nobody has read, under the time of the last: bytes with
    /// another time than those before came after those.
    fn next(last: Option<Self>, stamp: &Stamp) -> Self {
        let after = match last {
            None => None,
            Some(last) if stamp.received <= last.received + MAX_UNCERTAINTY => last.after,
            Some(last) if last.is_drained => before_last_wait().max(Some(last.received)),
            Some(last) => Some(last.received),
        };
        Self { received: stamp.received, after, is_drained: !stamp.is_cut }
    }
}

impl Link {
    /// Connects. TLS and HTTP/2 begin with the first [`Self::poll_receive`] and [`Self::poll_send`].
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

    /// Sends bytes of the request's body.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), Ending> {
        self.http2.send(bytes);
        self.http2.check_pending()
    }

    /// Ends the request's body.
    pub(crate) fn finish(&mut self) {
        self.http2.finish();
    }

    pub(crate) fn ping(&mut self) {
        self.http2.ping();
    }

    /// Resets the stream, as far as the socket takes that at once.
    pub(crate) fn cancel(&mut self, context: &mut Context<'_>) {
        self.http2.cancel();
        // The connection is closed next anyway.
        let _ = self.poll_send(context);
    }

    /// Writes what waits. Ready once nothing does.
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

    /// Reads once; passes on what came, with its time of receipt. `buffer` has [`READ_BUFFER_BYTES`].
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

    /// Reads behind the start of a record that was kept; returns that one's length and the bytes read.
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
                        // The socket is empty: its readiness is cleared as tokio's own reads do, which saves the read that
                        // would find nothing.
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

/// Receipt is stamped from before the first packet. Small messages are sent at once.
async fn open_socket(route: &Route<'_>) -> io::Result<TcpStream> {
    let socket = if route.address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // Where the kernel stamps nothing, times of reading are used and the result says so.
    let _ = enable_timestamps(&socket);
    socket.set_nodelay(true)?;
    if let Some(source) = route.source {
        socket.bind(SocketAddr::new(source, 0))?;
    }
    socket.connect(route.address).await
}

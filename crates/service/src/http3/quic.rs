//! The QUIC endpoint of a worker: its socket, and which connection a datagram is for.

use bytes::BytesMut;
use http3::quic::quinn_proto::crypto::rustls::QuicServerConfig;
use http3::quic::quinn_proto::{
    Connection, ConnectionEvent, ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig, Incoming,
    ServerConfig, Transmit,
};
use http3::quic::{Link, Received, Socket};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{self, Errno};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

/// Bytes of datagrams that one call receives.
const READ_BYTES: usize = 64 * 1024;
/// Receive windows for bodies, which are discarded as they arrive, and what a connection may send unacknowledged.
const STREAM_WINDOW_BYTES: u32 = 256 * 1024;
const WINDOW_BYTES: u32 = 1024 * 1024;
/// Maximum concurrent requests of a client on one connection.
const MAX_REQUESTS: u32 = 1024;

/// The settings of QUIC connections: `None` if those of TLS lack version 1.3.
pub(crate) fn config(tls: Arc<rustls::ServerConfig>) -> Option<Arc<ServerConfig>> {
    let tls = QuicServerConfig::try_from(tls).ok()?;
    let mut config = ServerConfig::with_crypto(Arc::new(tls));
    let mut transport = http3::quic::transport(STREAM_WINDOW_BYTES, WINDOW_BYTES, MAX_REQUESTS);
    transport.send_window(WINDOW_BYTES.into());
    config.transport_config(Arc::new(transport)).migration(false);
    Some(Arc::new(config))
}

/// Listens for datagrams. `is_shared`: with the sockets of other workers, among which the kernel divides clients.
pub(crate) fn listen(address: SocketAddr, is_shared: bool) -> io::Result<Socket> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let descriptor: OwnedFd = socket_with(family, SocketType::DGRAM, flags, None)?;
    if is_shared {
        sockopt::set_socket_reuseport(&descriptor, true)?;
    }
    bind(&descriptor, &address)?;
    Socket::new(descriptor, address.is_ipv4())
}

/// The endpoint of a worker.
pub(crate) struct Quic {
    socket: Socket,
    endpoint: Endpoint,
    /// Slots of the worker, by handle.
    owners: Vec<u32>,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
}

impl fmt::Debug for Quic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Quic").field("socket", &self.socket).finish_non_exhaustive()
    }
}

/// What a datagram is.
#[allow(clippy::large_enum_variant, reason = "it is handed on at once, and boxing would be per datagram")]
pub(crate) enum Arrival {
    /// For the connection in this slot.
    Event(u32, ConnectionHandle, ConnectionEvent),
    /// The first one of a client.
    Client(Box<Incoming>),
}

impl Quic {
    pub(crate) fn new(socket: Socket, config: Arc<ServerConfig>) -> Self {
        Self {
            socket,
            endpoint: Endpoint::new(Arc::new(EndpointConfig::default()), Some(config), true, None),
            owners: Vec::new(),
            incoming: vec![0; READ_BYTES],
            outgoing: Vec::new(),
        }
    }

    /// Receives once. `take` gets what is for a connection, or would be one. Returns the number of bytes, `None` if nothing has come.
    pub(crate) fn receive(&mut self, mut take: impl FnMut(&mut Self, Arrival)) -> Option<usize> {
        let Received { bytes, segment_bytes, from, .. } = match self.socket.receive(&mut self.incoming) {
            Ok(received) => received,
            // An error of an earlier datagram, whose client is gone.
            Err(error) => return (error != Errno::AGAIN).then_some(0),
        };
        let Some(from) = from else { return Some(bytes) };
        let incoming = std::mem::take(&mut self.incoming);
        let now = Instant::now();
        for datagram in incoming[..bytes].chunks(segment_bytes.max(1)) {
            self.outgoing.clear();
            let datagram = BytesMut::from(datagram);
            match self.endpoint.handle(now, from, None, None, datagram, &mut self.outgoing) {
                Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                    if let Some(slot) = self.owners.get(handle.0) {
                        take(self, Arrival::Event(*slot, handle, event));
                    }
                }
                Some(DatagramEvent::NewConnection(client)) => take(self, Arrival::Client(Box::new(client))),
                Some(DatagramEvent::Response(transmit)) => self.send(&transmit),
                None => {}
            }
        }
        self.incoming = incoming;
        Some(bytes)
    }

    /// Accepts a client into a slot.
    pub(crate) fn accept(&mut self, client: Incoming, slot: u32) -> Option<Link> {
        let (now, to) = (Instant::now(), client.remote_address());
        self.outgoing.clear();
        let accepted: Result<(ConnectionHandle, Connection), _> =
            self.endpoint.accept(client, now, &mut self.outgoing, None);
        match accepted {
            Ok(connection) => {
                let place = connection.0.0;
                self.owners.resize(self.owners.len().max(place + 1), u32::MAX);
                self.owners[place] = slot;
                Some(Link::new(connection, Some(to), 0))
            }
            Err(error) => {
                if let Some(transmit) = error.response {
                    self.send(&transmit);
                }
                None
            }
        }
    }

    /// Tells a client that there is no room for it.
    pub(crate) fn refuse(&mut self, client: Incoming) {
        self.outgoing.clear();
        let transmit = self.endpoint.refuse(client, &mut self.outgoing);
        self.send(&transmit);
    }

    fn send(&self, transmit: &Transmit) {
        let bytes = &self.outgoing[..transmit.size];
        // It is repeated if its loss matters.
        let _ =
            self.socket.send(bytes, transmit.segment_size.unwrap_or(bytes.len()), Some(transmit.destination));
    }

    /// Sends what a connection has to send, and settles what concerns the endpoint.
    pub(crate) fn proceed(&mut self, link: &mut Link) -> io::Result<()> {
        let sent = link.transmit(&self.socket, Instant::now(), &mut self.outgoing);
        link.settle(&mut self.endpoint);
        sent
    }

    /// Ends a connection.
    pub(crate) fn end(&mut self, mut link: Link, code: http3::ErrorCode) {
        link.close(code as u64, Instant::now());
        // Who is gone need not know.
        let _ = self.proceed(&mut link);
        link.forget(&mut self.endpoint);
    }
}

impl AsFd for Quic {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

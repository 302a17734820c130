//! A server of HTTP/3 whose streams a test writes.

use bytes::{Bytes, BytesMut};
use http3::quic::quinn_proto::crypto::rustls::QuicServerConfig;
use http3::quic::quinn_proto::{ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig, ServerConfig};
use http3::quic::{Happening, Link, Socket};
use http3::{control, frame, qpack};
use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

/// Interval at which the server looks for datagrams: it never blocks, so that it can stop.
const INTERVAL: Duration = Duration::from_micros(200);

/// What a server does with a connection.
pub trait Behaviour: Send + 'static {
    /// The handshake of a connection is complete.
    fn connected(&mut self, link: &mut Link) {
        begin_control(link);
    }

    /// The request on this stream is complete; `count` are the requests of the server so far, this one included.
    fn request(&mut self, link: &mut Link, id: u64, count: u64);
}

impl<F: FnMut(&mut Link, u64, u64) + Send + 'static> Behaviour for F {
    fn request(&mut self, link: &mut Link, id: u64, count: u64) {
        self(link, id, count);
    }
}

/// Opens the server's control stream. Returns its identifier.
pub fn begin_control(link: &mut Link) -> u64 {
    let id = link.open_unidirectional().expect("a client allows the streams that a server needs");
    let mut start = Vec::new();
    control::begin(65_536, &mut start);
    link.send(id, start.into(), false);
    id
}

/// The frames of a response with status 200.
pub fn ok(body: &[u8]) -> Bytes {
    let mut out = Vec::new();
    frame::push_fields(&mut out, |out| {
        qpack::begin(out);
        qpack::push(b":status", b"200", false, out);
        qpack::push(b"content-length", body.len().to_string().as_bytes(), false, out);
    });
    frame::push(frame::kind::DATA, body, &mut out);
    out.into()
}

/// A running server; stops when dropped, without a word to its clients.
pub struct Http3Server {
    pub address: SocketAddr,
    /// Complete requests.
    pub requests: Arc<AtomicU64>,
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Http3Server {
    pub fn start(mut tls: rustls::ServerConfig, most_requests: u32, behaviour: impl Behaviour) -> Self {
        if tls.alpn_protocols.is_empty() {
            tls.alpn_protocols = vec![http3::ALPN.to_vec()];
        }
        let crypto = QuicServerConfig::try_from(tls).expect("TLS 1.3");
        let mut config = ServerConfig::with_crypto(Arc::new(crypto));
        config.transport_config(Arc::new(http3::quic::transport(64 * 1024, 128 * 1024, most_requests)));
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        socket.set_nonblocking(true).expect("a socket");
        let address = socket.local_addr().expect("an address");
        let socket = Socket::new(socket.into(), true).expect("a socket for datagrams");
        let requests = Arc::new(AtomicU64::new(0));
        let stopping = Arc::new(AtomicBool::new(false));
        let mut serving = Serving {
            socket,
            endpoint: Endpoint::new(Arc::new(EndpointConfig::default()), Some(Arc::new(config)), true, None),
            links: HashMap::new(),
            requests: Arc::clone(&requests),
            behaviour,
        };
        let is_stopping = Arc::clone(&stopping);
        let thread = std::thread::spawn(move || {
            while !is_stopping.load(Ordering::SeqCst) {
                serving.turn();
                sleep(INTERVAL);
            }
        });
        Self { address, requests, stopping, thread: Some(thread) }
    }

    pub fn url(&self) -> String {
        format!("https://{}/", self.address)
    }
}

impl Drop for Http3Server {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        let ended = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            ended.expect("it runs").expect("it has not panicked");
        }
    }
}

struct Serving<B> {
    socket: Socket,
    endpoint: Endpoint,
    links: HashMap<ConnectionHandle, Link>,
    requests: Arc<AtomicU64>,
    behaviour: B,
}

impl<B: Behaviour> Serving<B> {
    fn turn(&mut self) {
        let (mut buffer, mut room) = (vec![0; 64 * 1024], Vec::new());
        while let Ok(received) = self.socket.receive(&mut buffer) {
            let from = received.from.expect("UDP has addresses");
            for datagram in buffer[..received.bytes].chunks(received.segment_bytes.max(1)) {
                self.take(BytesMut::from(datagram), from, &mut room);
            }
        }
        let now = Instant::now();
        for link in self.links.values_mut() {
            if link.timeout().is_some_and(|due| due <= now) {
                link.on_time(now);
            }
            let (mut is_connected, mut complete) = (false, Vec::new());
            link.happenings(&mut |happening| match happening {
                Happening::Connected => is_connected = true,
                Happening::End(id) if id % 4 == 0 => complete.push(id),
                _ => {}
            });
            if is_connected {
                self.behaviour.connected(link);
            }
            for id in complete {
                let count = self.requests.fetch_add(1, Ordering::SeqCst) + 1;
                self.behaviour.request(link, id, count);
            }
            // A client that is gone needs nothing.
            let _ = link.transmit(&self.socket, now, &mut room);
            link.settle(&mut self.endpoint);
        }
        self.links.retain(|_, link| !link.is_drained());
    }

    fn take(&mut self, datagram: BytesMut, from: SocketAddr, room: &mut Vec<u8>) {
        room.clear();
        let now = Instant::now();
        match self.endpoint.handle(now, from, None, None, datagram, room) {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(link) = self.links.get_mut(&handle) {
                    link.receive(event);
                }
            }
            Some(DatagramEvent::NewConnection(client)) => match self.endpoint.accept(client, now, room, None)
            {
                Ok(connection) => {
                    self.links.insert(connection.0, Link::new(connection, Some(from), 0));
                }
                // A client that speaks another protocol, say.
                Err(error) => {
                    let response = error.response.expect("clients are told");
                    self.socket
                        .send(&room[..response.size], response.size, Some(from))
                        .expect("room to send");
                }
            },
            Some(DatagramEvent::Response(_)) | None => {}
        }
    }
}

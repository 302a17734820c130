//! A connection of a worker, whatever its protocol.
//!
//! A worker gives it turns; each returns what the connection needs next. The protocol is known from the
//! listener, from the TLS handshake (ALPN), or from the first bytes. It changes at most twice: opening →
//! HTTP/1.1 → HTTP/2 or WebSocket.

use crate::counters::Tally;
use crate::http1::Http1;
use crate::http2::Http2;
use crate::opening::{Opened, Opening};
use crate::settings::Protocol;
use crate::shared::Shared;
use crate::tcp::Tcp;
use crate::transport::Transport;
use crate::turn::Turn;
use crate::websocket::WebSocket;
use rustix::fd::OwnedFd;
use rustls::ServerConfig;
use std::sync::Arc;

/// A connection.
#[derive(Debug)]
pub(crate) struct Connection {
    spoken: Spoken,
    /// Last activity, nanoseconds since the start of the server.
    pub active_ns: u64,
    /// Time of its entry in the worker's timers.
    pub timer_ns: Option<u64>,
    /// It is queued by the worker for another turn.
    pub queued: bool,
}

/// Protocol of a connection.
#[derive(Debug)]
enum Spoken {
    Opening(Opening),
    Http1(Http1),
    Http2(Http2),
    Tcp(Tcp),
    WebSocket(WebSocket),
    /// None: the connection is over.
    Nothing,
}

impl Connection {
    /// A newly accepted connection for `protocol`, over TLS if there is a configuration for it.
    pub(crate) fn new(
        socket: OwnedFd,
        protocol: Protocol,
        tls: Option<&Arc<ServerConfig>>,
        shared: &Shared,
    ) -> Self {
        let now_ns = shared.now_ns();
        let transport = Transport::new(socket, tls);
        let spoken = match protocol {
            _ if tls.is_some() => Spoken::Opening(Opening::new(transport, protocol, now_ns)),
            Protocol::Http => Spoken::Http1(Http1::new(transport)),
            Protocol::Tcp => Spoken::Tcp(Tcp::new(transport, shared)),
        };
        Self { spoken, active_ns: now_ns, timer_ns: None, queued: false }
    }

    /// Notes that the socket is readable.
    pub(crate) fn has_input(&mut self, half_closed: bool) {
        match &mut self.spoken {
            Spoken::Opening(opening) => opening.has_input(half_closed),
            Spoken::Http1(http1) => http1.has_input(half_closed),
            Spoken::Http2(http2) => http2.has_input(half_closed),
            Spoken::Tcp(tcp) => tcp.has_input(half_closed),
            Spoken::WebSocket(websocket) => websocket.has_input(half_closed),
            Spoken::Nothing => {}
        }
    }

    /// True if it waits for its own delayed response rather than for the client.
    pub(crate) fn is_delayed(&self) -> bool {
        match &self.spoken {
            Spoken::Http1(http1) => http1.is_delayed(),
            Spoken::Http2(http2) => http2.is_delayed(),
            Spoken::Tcp(tcp) => tcp.is_delayed(),
            Spoken::WebSocket(websocket) => websocket.is_delayed(),
            Spoken::Opening(_) | Spoken::Nothing => false,
        }
    }

    /// Bytes of memory held for unfinished requests.
    pub(crate) fn held_bytes(&self) -> usize {
        match &self.spoken {
            Spoken::Http1(http1) => http1.held_bytes(),
            Spoken::WebSocket(websocket) => websocket.held_bytes(),
            Spoken::Opening(_) | Spoken::Http2(_) | Spoken::Tcp(_) | Spoken::Nothing => 0,
        }
    }

    /// Runs one turn.
    pub(crate) fn turn(&mut self, shared: &mut Shared) -> Turn {
        shared.held_bytes -= self.held_bytes();
        let turn = loop {
            if let Some(turn) = self.step(shared) {
                break turn;
            }
            self.hand_on(shared);
        };
        shared.held_bytes += self.held_bytes();
        turn
    }

    /// `None` if the connection continues in another protocol.
    fn step(&mut self, shared: &mut Shared) -> Option<Turn> {
        match &mut self.spoken {
            Spoken::Opening(opening) => opening.turn(shared),
            Spoken::Http1(http1) => http1.turn(shared),
            Spoken::Http2(http2) => Some(http2.turn(shared)),
            Spoken::Tcp(tcp) => Some(tcp.turn(shared)),
            Spoken::WebSocket(websocket) => Some(websocket.turn(shared)),
            Spoken::Nothing => Some(Turn::Close),
        }
    }

    /// Switches to the protocol that was detected.
    fn hand_on(&mut self, shared: &mut Shared) {
        self.spoken = match std::mem::replace(&mut self.spoken, Spoken::Nothing) {
            Spoken::Opening(opening) => match opening.into_opened() {
                Opened::Http1(transport) => Spoken::Http1(Http1::new(transport)),
                Opened::Http2(transport) => Spoken::Http2(Http2::new(transport, Vec::new(), shared)),
                Opened::Tcp(transport) => Spoken::Tcp(Tcp::new(transport, shared)),
            },
            Spoken::Http1(http1) => {
                let (transport, received, websocket) = http1.into_parts();
                match websocket {
                    Some(answer) => Spoken::WebSocket(WebSocket::new(transport, received, answer, shared)),
                    None => Spoken::Http2(Http2::new(transport, received, shared)),
                }
            }
            ended => ended,
        };
    }

    /// Counts requests cut off by the end of the connection. HTTP/2 exchanges count themselves when dropped.
    pub(crate) fn count_end(&self, tally: &Tally) {
        match &self.spoken {
            Spoken::Http1(http1) => http1.count_end(tally),
            Spoken::Tcp(tcp) => tcp.count_end(tally),
            Spoken::WebSocket(websocket) => websocket.count_end(tally),
            Spoken::Opening(opening) => opening.count_end(tally),
            Spoken::Http2(_) | Spoken::Nothing => {}
        }
    }
}

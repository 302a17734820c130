//! HTTP/3 on one connection, in the worker's own event loop.
//!
//! A connection gets a turn when a datagram of it has come, and when its transport or a delayed response is due: [`Http3::turn`]. It reads
//! requests (`request`), hands each to the exchanges of HTTP/2, whose responses come back through its `stream`, and sends. The worker has
//! one socket and one endpoint for all of its connections (`quic`).
//!
//! Not supported: gRPC (its requests get the replies of plain ones), early data, migration of clients.

pub(crate) mod quic;
mod request;
mod stream;

use crate::http2::Woken;
use crate::http2::answer;
use crate::http2::context::Context;
use crate::http2::exchange::{Answering, Exchange, Kind};
use crate::http2::timers::Timers;
use crate::reply::Reply;
use crate::shared::Shared;
use crate::turn::{LINGER_NS, Turn};
use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, Stream as _};
use http::request::Parts;
use http3::ErrorCode;
use http3::control::{self, Control, PeerStreams};
use http3::qpack::Decoder;
use http3::quic::quinn_proto::{ConnectionEvent, ConnectionHandle};
use http3::quic::{Happening, Link};
use rand::SeedableRng as _;
use rand::rngs::SmallRng;
use request::{Arriving, Part, Refusal};
use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{self, Poll, Waker};
use std::time::{Duration, Instant};
use stream::{Change, Streams};

/// How often one turn polls futures that were woken in the meantime.
const ROUNDS_PER_TURN: usize = 8;
/// Set in identifiers of unidirectional streams.
const UNIDIRECTIONAL: u64 = 2;
/// Largest identifier of a request: a GOAWAY with it refuses none that is under way.
const LAST_REQUEST: u64 = (1 << 62) - 4;

/// An HTTP/3 connection.
pub(crate) struct Http3 {
    link: Link,
    requests: Requests,
    exchanges: FuturesUnordered<Answering>,
    /// This side's control stream, once it is open.
    control_stream: Option<u64>,
    woken: Arc<Woken>,
    waker: Waker,
}

impl fmt::Debug for Http3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http3").finish_non_exhaustive()
    }
}

/// What a connection's client asks for.
struct Requests {
    arriving: BTreeMap<u64, Arriving>,
    streams: Streams,
    peer: PeerStreams,
    decoder: Decoder,
    begun: u64,
    /// When the connection ends, after its last request.
    leaves_ns: Option<u64>,
    /// Heads that have arrived, with their streams.
    heads: Vec<(u64, Box<Parts>)>,
    /// Streams to give up, with the code that says why.
    refused: Vec<(u64, ErrorCode)>,
    is_connected: bool,
    /// The connection is over, with this code if it is this side that ends it.
    over: Option<ErrorCode>,
    timers: Timers,
    worker: Arc<Context>,
    random: SmallRng,
}

impl Http3 {
    /// A connection that was just accepted.
    pub(crate) fn new(link: Link, shared: &mut Shared) -> Self {
        let woken = Arc::new(Woken::default());
        Self {
            link,
            requests: Requests {
                arriving: BTreeMap::new(),
                streams: Streams::default(),
                peer: PeerStreams::new(true),
                decoder: Decoder::default(),
                begun: 0,
                leaves_ns: None,
                heads: Vec::new(),
                refused: Vec::new(),
                is_connected: false,
                over: None,
                timers: Timers::default(),
                worker: Arc::clone(&shared.http2),
                random: SmallRng::from_rng(&mut shared.random),
            },
            exchanges: FuturesUnordered::new(),
            control_stream: None,
            waker: Waker::from(Arc::clone(&woken)),
            woken,
        }
    }

    /// Takes a datagram, if it is for this connection.
    pub(crate) fn receive(&mut self, handle: ConnectionHandle, event: ConnectionEvent) {
        if self.link.handle() == handle {
            self.link.receive(event);
        }
    }

    /// True if any response is delayed.
    pub(crate) fn is_delayed(&self) -> bool {
        self.requests.timers.first_ns().is_some()
    }

    /// Runs one turn.
    pub(crate) fn turn(&mut self, shared: &mut Shared) -> Turn {
        let now = Instant::now();
        if self.link.timeout().is_some_and(|due| due <= now) {
            self.link.on_time(now);
        }
        self.requests.timers.wake(shared.now_ns());
        let waker = self.waker.clone();
        let mut context = task::Context::from_waker(&waker);
        for _ in 0..ROUNDS_PER_TURN {
            self.woken.0.store(false, Relaxed);
            let Self { link, requests, .. } = self;
            link.happenings(&mut |happening| requests.take(&happening));
            self.begin_control_stream();
            self.answer(&mut context);
            self.hand_over();
            if !self.woken.0.load(Relaxed) {
                break;
            }
        }
        let Some(quic) = &mut shared.quic else { return Turn::Close };
        if self.requests.over.is_some()
            || quic.proceed(&mut self.link).is_err()
            || self.is_finished(shared.now_ns())
        {
            return Turn::Close;
        }
        if self.woken.0.load(Relaxed) {
            return Turn::Again;
        }
        self.next_turn(shared)
    }

    /// When the transport or a delayed response is due.
    fn next_turn(&mut self, shared: &Shared) -> Turn {
        let now_ns = shared.now_ns();
        let left = |due: Instant| due.saturating_duration_since(Instant::now());
        let after_ns = |time: Duration| now_ns.saturating_add(time.as_nanos() as u64);
        let retry_ns = self.link.has_kept().then(|| after_ns(Duration::from_millis(1)));
        let transport_ns = self.link.timeout().map(|due| after_ns(left(due)));
        let leaves_ns = self.requests.leaves_ns.filter(|leaves_ns| *leaves_ns > now_ns);
        let due = [retry_ns, transport_ns, leaves_ns, self.requests.timers.first_ns()];
        due.into_iter().flatten().min().map_or(Turn::Wait, Turn::WaitUntil)
    }

    /// Opens this side's control stream once the handshake is complete.
    fn begin_control_stream(&mut self) {
        if self.control_stream.is_none() && self.requests.is_connected {
            self.control_stream = self.link.open_unidirectional();
            let mut start = Vec::new();
            control::begin(request::MAX_HEADERS_BYTES as u64, &mut start);
            match self.control_stream {
                Some(stream) => self.link.send(stream, start.into(), false),
                // A client must allow it.
                None => self.requests.over = Some(ErrorCode::StreamCreation),
            }
        }
    }

    /// Begins the exchanges of the requests that have come, and lets all proceed.
    fn answer(&mut self, context: &mut task::Context<'_>) {
        for (id, head) in std::mem::take(&mut self.requests.heads) {
            if let Some(mut answering) = self.requests.begin(id, &head)
                && answering.as_mut().poll(context).is_pending()
            {
                self.exchanges.push(answering);
            }
            if self.requests.is_last() {
                self.go_away();
            }
        }
        while let Poll::Ready(Some(())) = Pin::new(&mut self.exchanges).poll_next(context) {}
    }

    /// Announces that the connection takes no more requests. Those that come before the client knows are answered.
    fn go_away(&mut self) {
        let leaves_ns = self.requests.worker.now_ns().saturating_add(LINGER_NS);
        if self.requests.leaves_ns.replace(leaves_ns).is_none()
            && let Some(stream) = self.control_stream
        {
            let mut frame = Vec::new();
            control::push_goaway(LAST_REQUEST, &mut frame);
            self.link.send(stream, frame.into(), false);
        }
    }

    /// Hands what exchanges have sent to the transport.
    fn hand_over(&mut self) {
        for (id, code) in std::mem::take(&mut self.requests.refused) {
            self.link.reset(id, code as u64);
            self.link.stop(id, code as u64);
            self.requests.arriving.remove(&id);
            self.requests.streams.broken(id);
        }
        while let Some(change) = self.requests.streams.next_change() {
            let Change { id, frames, ends, is_abandoned, is_unread } = change;
            let count: u64 = frames.iter().map(|frame| frame.len() as u64).sum();
            self.requests.worker.tally.bytes_sent.add(count);
            let has_frames = !frames.is_empty();
            for frame in frames {
                self.link.send(id, frame, false);
            }
            if ends && has_frames {
                self.link.send(id, Bytes::new(), true);
            }
            if is_abandoned {
                self.link.reset(id, ErrorCode::RequestCancelled as u64);
            }
            if is_unread {
                self.link.stop(id, ErrorCode::None as u64);
                self.requests.arriving.remove(&id);
            }
            self.requests.streams.full(id, self.link.is_waiting(id));
        }
    }

    /// True if the last response has arrived, and the client had time to end the connection itself.
    fn is_finished(&mut self, now_ns: u64) -> bool {
        self.requests.leaves_ns.is_some_and(|leaves_ns| leaves_ns <= now_ns)
            && self.exchanges.is_empty()
            && self.requests.arriving.is_empty()
            && self.link.has_delivered_all_but(1)
    }

    /// Ends the connection. Exchanges that are not answered count themselves.
    pub(crate) fn end(self, shared: &mut Shared) {
        if !self.requests.is_connected {
            shared.tally.handshakes_failed.add(1);
        }
        let code = self.requests.over.unwrap_or(ErrorCode::None);
        if code != ErrorCode::None {
            shared.tally.rejected.add(1);
        }
        if let Some(quic) = &mut shared.quic {
            quic.end(self.link, code);
        }
    }
}

impl Requests {
    fn take(&mut self, happening: &Happening<'_>) {
        match *happening {
            Happening::Connected => {
                self.is_connected = true;
                self.worker.tally.handshakes.add(1);
                self.worker.tally.http3.connections.add(1);
            }
            Happening::Data(id, bytes) => {
                self.worker.tally.bytes_received.add(bytes.len() as u64);
                let outcome = if id & UNIDIRECTIONAL == 0 {
                    self.data(id, bytes)
                } else {
                    self.beside_requests(id, bytes)
                };
                self.heed(id, outcome);
            }
            Happening::End(id) if id & UNIDIRECTIONAL != 0 => {
                let outcome = self.peer.ended(id).map_err(Refusal::from);
                self.heed(id, outcome);
            }
            Happening::End(id) => {
                let outcome = self.arriving.remove(&id).map_or(Ok(()), |arriving| arriving.ended());
                self.heed(id, outcome);
                self.streams.whole(id);
            }
            Happening::Reset(id, _) if id & UNIDIRECTIONAL != 0 => {
                let outcome = self.peer.ended(id).map_err(Refusal::from);
                self.heed(id, outcome);
            }
            Happening::Reset(id, _) => {
                self.arriving.remove(&id);
                self.refused.push((id, ErrorCode::RequestIncomplete));
            }
            Happening::Stopped(id, _) if id & UNIDIRECTIONAL != 0 => {
                self.over = Some(ErrorCode::ClosedCriticalStream);
            }
            Happening::Stopped(id, _) => self.streams.broken(id),
            Happening::Written(id) => self.streams.full(id, false),
            Happening::Lost(_) => self.over = Some(ErrorCode::None),
            Happening::Room(_) | Happening::Limited(_) => {}
        }
    }

    /// Acts on a refusal of what came on a stream.
    fn heed(&mut self, id: u64, outcome: Result<(), Refusal>) {
        match outcome {
            Ok(()) => {}
            Err(Refusal::Request) => {
                self.worker.tally.rejected.add(1);
                self.refused.push((id, ErrorCode::Message));
            }
            Err(Refusal::Connection(code)) => self.over = self.over.or(Some(code)),
        }
    }

    fn data(&mut self, id: u64, bytes: &[u8]) -> Result<(), Refusal> {
        let Self { arriving, streams, peer, decoder, heads, .. } = self;
        arriving.entry(id).or_default().receive(bytes, decoder, peer, &mut |part| match part {
            Part::Head(head) => {
                streams.add(id);
                heads.push((id, head));
            }
            Part::Content(content) => streams.content(id, content),
        })
    }

    fn beside_requests(&mut self, id: u64, bytes: &[u8]) -> Result<(), Refusal> {
        let refused = &mut self.refused;
        self.peer.receive(id, bytes, &mut |said| {
            if said == Control::Refuse {
                refused.push((id, ErrorCode::StreamCreation));
            }
        })?;
        Ok(())
    }

    /// True if the connection answers no further request.
    fn is_last(&self) -> bool {
        self.worker.requests_per_connection.is_some_and(|limit| limit.get() <= self.begun)
    }

    /// Begins the exchange of a request; `None` if it is over at once.
    fn begin(&mut self, id: u64, head: &Parts) -> Option<Answering> {
        self.begun += 1;
        let (responder, body) = self.streams.ends(id);
        let reply = answer::reply_to(head, &self.worker);
        let kind = if reply == Reply::Counters { Kind::Uncounted } else { Kind::Http3 };
        let exchange = Exchange::new(responder, kind, &self.worker, &self.timers);
        answer::answer(exchange, head, body, reply, &mut self.random)
    }
}

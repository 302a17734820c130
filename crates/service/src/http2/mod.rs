//! HTTP/2 on one connection with the `h2` library, in the worker's own event loop.
//!
//! There is no runtime besides the loop: the library's connection and its exchanges are one future, and each
//! turn polls it ([`Http2::turn`]). Socket events arrive as turns, delays use the worker's timers (`timers`),
//! and bytes go through a `channel`. An `exchange` is one request and its response; all of a worker share a
//! `context`.
//!
//! Limits apply to concurrent streams, the size of header fields, windows, pieces of a response that wait to be
//! written (`outbox`), and the memory that all requests and responses of a worker hold. Bodies are discarded as
//! they arrive, except those of chat completions.

pub(crate) mod answer;
mod channel;
pub(crate) mod context;
pub(crate) mod exchange;
#[cfg(test)]
mod flow_tests;
pub(crate) mod outbox;
mod streaming;
pub(crate) mod timers;

use crate::grpc;
use crate::reply::Reply;
use crate::shared::Shared;
use crate::transport::Transport;
use crate::turn::{LINGER_NS, Turn};
use bytes::Bytes;
use channel::Channel;
use context::Context;
use exchange::{Answering, Exchange, Kind};
use futures_util::stream::{FuturesUnordered, Stream as _};
use h2::RecvStream;
use h2::server::{Builder, Connection, SendResponse};
use http::Request;
use rand::SeedableRng as _;
use rand::rngs::SmallRng;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{self, Poll, Wake, Waker};
use timers::Timers;

/// Maximum concurrent requests of a client on one connection.
const MAX_STREAMS: u32 = 1024;
/// Receive window for bodies, per stream and per connection. Bodies are discarded as they arrive.
const STREAM_WINDOW_BYTES: u32 = 256 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;
/// Maximum size of the decoded header fields, bytes.
const MAX_HEADERS_BYTES: u32 = 64 * 1024;
/// How often one turn polls futures that were woken in the meantime.
const ROUNDS_PER_TURN: usize = 8;

/// An HTTP/2 connection.
pub(crate) struct Http2 {
    serving: Pin<Box<dyn Future<Output = ()> + Send>>,
    channel: Channel,
    timers: Timers,
    woken: Arc<Woken>,
    waker: Waker,
}

impl fmt::Debug for Http2 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http2").finish_non_exhaustive()
    }
}

/// True if anything was woken since the last poll.
#[derive(Debug, Default)]
pub(crate) struct Woken(pub(crate) AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Relaxed);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.store(true, Relaxed);
    }
}

impl Http2 {
    /// A connection over a transport from which these bytes were already received.
    pub(crate) fn new(transport: Transport, received: Vec<u8>, shared: &mut Shared) -> Self {
        let worker = Arc::clone(&shared.http2);
        worker.tally.http2.connections.add(1);
        let channel = Channel::new(transport, received, &worker);
        let timers = Timers::default();
        let random = SmallRng::from_rng(&mut shared.random);
        let woken = Arc::new(Woken::default());
        Self {
            serving: Box::pin(serve(channel.clone(), timers.clone(), worker, random)),
            channel,
            timers,
            waker: Waker::from(Arc::clone(&woken)),
            woken,
        }
    }

    /// Notes that the socket is readable.
    pub(crate) fn has_input(&mut self, half_closed: bool) {
        self.channel.has_input(half_closed);
    }

    /// True if any response is delayed.
    pub(crate) fn is_delayed(&self) -> bool {
        self.timers.first_ns().is_some()
    }

    /// Runs one turn.
    pub(crate) fn turn(&mut self, shared: &mut Shared) -> Turn {
        self.timers.wake(shared.now_ns());
        self.channel.begin_turn();
        if self.channel.send().is_err() {
            return Turn::Close;
        }
        let mut context = task::Context::from_waker(&self.waker);
        for _ in 0..ROUNDS_PER_TURN {
            self.woken.0.store(false, Relaxed);
            if self.serving.as_mut().poll(&mut context).is_ready() {
                return Turn::Close;
            }
            if !self.woken.0.load(Relaxed) {
                break;
            }
        }
        let Ok(may_write) = self.channel.send() else { return Turn::Close };
        if may_write || self.woken.0.load(Relaxed) || self.channel.has_more_to_read() {
            return Turn::Again;
        }
        self.timers.first_ns().map_or(Turn::Wait, Turn::WaitUntil)
    }
}

/// Serves a connection to its end.
async fn serve(channel: Channel, timers: Timers, worker: Arc<Context>, random: SmallRng) {
    let mut builder = Builder::new();
    builder
        .max_concurrent_streams(MAX_STREAMS)
        .initial_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_header_list_size(MAX_HEADERS_BYTES);
    let served = match builder.handshake(channel.clone()).await {
        Ok(connection) => {
            let mut server = Server {
                connection,
                accepted: Vec::new(),
                exchanges: FuturesUnordered::new(),
                begun: 0,
                random,
                timers: timers.clone(),
                worker: Arc::clone(&worker),
            };
            poll_fn(|context| server.poll(context)).await
        }
        Err(error) => Err(error),
    };
    if served.is_err_and(|error| !error.is_io() && !error.is_remote()) {
        worker.tally.rejected.add(1);
    }
    // Leave the client time to read why the connection ends.
    let mut until = timers.wait(worker.now_ns(), LINGER_NS);
    poll_fn(|context| match channel.poll_end() {
        Poll::Ready(()) => Poll::Ready(()),
        Poll::Pending => Pin::new(&mut until).poll(context),
    })
    .await;
}

/// A connection and the exchanges on it.
struct Server {
    connection: Connection<Channel, Bytes>,
    /// Requests that arrived together: they are answered together, and their responses sent at once.
    accepted: Vec<(Request<RecvStream>, SendResponse<Bytes>)>,
    exchanges: FuturesUnordered<Answering>,
    begun: u64,
    random: SmallRng,
    timers: Timers,
    worker: Arc<Context>,
}

impl Server {
    /// Proceeds as far as possible without waiting. Ready once the connection has ended.
    fn poll(&mut self, context: &mut task::Context<'_>) -> Poll<Result<(), h2::Error>> {
        loop {
            loop {
                match self.connection.poll_accept(context) {
                    Poll::Ready(Some(Ok(request))) => self.accepted.push(request),
                    Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error)),
                    Poll::Ready(None) => return Poll::Ready(Ok(())),
                    Poll::Pending => break,
                }
            }
            let mut went_on = !self.accepted.is_empty();
            let mut accepted = std::mem::take(&mut self.accepted);
            for (request, respond) in accepted.drain(..) {
                self.begin(request, respond, context);
            }
            self.accepted = accepted;
            while let Poll::Ready(Some(())) = Pin::new(&mut self.exchanges).poll_next(context) {
                went_on = true;
            }
            if !went_on {
                return Poll::Pending;
            }
        }
    }

    fn begin(
        &mut self,
        request: Request<RecvStream>,
        respond: SendResponse<Bytes>,
        context: &mut task::Context<'_>,
    ) {
        self.begun += 1;
        if self.worker.requests_per_connection.is_some_and(|limit| limit.get() == self.begun) {
            self.connection.graceful_shutdown();
        }
        let (head, body) = request.into_parts();
        let Self { worker, timers, random, .. } = self;
        let answering = if grpc::is_call(&head) {
            let exchange = Exchange::new(respond, grpc::kind_of(&head), worker, timers);
            let fails = worker.answer.fails(random);
            Some(grpc::answer(exchange, &head, body, worker.answer, fails))
        } else {
            let reply = answer::reply_to(&head, worker);
            let kind = if reply == Reply::Counters { Kind::Uncounted } else { Kind::Http2 };
            answer::answer(Exchange::new(respond, kind, worker, timers), &head, body, reply, random)
        };
        // Most finish at once, and need no place among those that wait.
        if let Some(mut answering) = answering
            && answering.as_mut().poll(context).is_pending()
        {
            self.exchanges.push(answering);
        }
    }
}

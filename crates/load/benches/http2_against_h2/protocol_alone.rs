//! The protocol alone, on one thread without sockets: a turn of requests out, their responses in.
//!
//! Both sides get the same bytes, from the same server, and copy them once, as a read from a socket does. The `h2` crate is
//! polled as a loop of our own would poll it (as the synthetic service does), but without the cost of its wake-ups: every future
//! is polled when it is ready.

use crate::allocations::of_this_thread;
use crate::contest::{BODY_BYTES, Outcome};
use crate::h2_client::{builder, converted};
use crate::responses::{Fields, Kind, push_greeting, push_response, set_stream};
use bytes::Bytes;
use h2::RecvStream;
use h2::client::{Connection, ResponseFuture, SendRequest};
use http::{Request, StatusCode};
use load::http2::{CommonFields, Http2Connection, Http2Request, Parsed, Values};
use load::{GrpcCall, RequestTemplate, resolve};
use std::cell::RefCell;
use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Requests before those that are measured: tables and buffers have their sizes then.
const SETTLING: usize = 2000;
const MESSAGE_BYTES: usize = 100;
/// Prefix of a gRPC message.
const PREFIX_BYTES: usize = 5;
const TIMEOUT: Duration = Duration::from_secs(10);

/// A contender.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Side {
    Engine,
    H2,
}

/// Cost of a request with its response.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    pub ns: f64,
    pub allocations: f64,
}

/// Measures `requests` requests, of which `per_turn` are due together.
///
/// # Errors
/// Returns an error if a response is not understood.
pub fn measure(side: Side, kind: Kind, fields: Fields, per_turn: usize, requests: usize) -> Outcome<Cost> {
    let mut client = match side {
        Side::Engine => Client::Engine(Box::new(EngineSide::new(kind, per_turn)?)),
        Side::H2 => Client::H2(Box::new(H2Side::new(kind)?)),
    };
    client.turn(1, Server::new(kind, Fields::Added, 1, 1).responses())?;
    let mut server = Server::new(kind, fields, per_turn, 3);
    let mut run = |requests: usize| -> Outcome<Cost> {
        let turns = requests.div_ceil(per_turn);
        let (started, allocations) = (Instant::now(), of_this_thread());
        for _ in 0..turns {
            client.turn(per_turn, server.responses())?;
        }
        let requests = (turns * per_turn) as f64;
        Ok(Cost {
            ns: started.elapsed().as_nanos() as f64 / requests,
            allocations: (of_this_thread() - allocations) as f64 / requests,
        })
    };
    run(SETTLING.min(requests))?;
    run(requests)
}

/// Responses to one turn after another.
struct Server {
    bytes: Vec<u8>,
    response_bytes: usize,
    next_stream: u32,
}

impl Server {
    fn new(kind: Kind, fields: Fields, per_turn: usize, first_stream: u32) -> Self {
        let mut response = Vec::new();
        push_response(kind, fields, &mut response);
        Self { bytes: response.repeat(per_turn), response_bytes: response.len(), next_stream: first_stream }
    }

    fn responses(&mut self) -> &[u8] {
        for response in self.bytes.chunks_exact_mut(self.response_bytes) {
            set_stream(response, self.next_stream);
            self.next_stream += 2;
        }
        &self.bytes
    }
}

fn greeting() -> Vec<u8> {
    let mut greeting = Vec::new();
    push_greeting(&mut greeting);
    greeting
}

/// The engine's request.
fn request(kind: Kind) -> Outcome<load::Request> {
    let targets = resolve(&["http://127.0.0.1:8080/".to_owned()], &RequestTemplate::default())?;
    let mut request = targets.servers[0].requests[0].clone();
    if kind == Kind::Grpc {
        let call = GrpcCall::unary(&[vec![b'x'; MESSAGE_BYTES]], false)?;
        request.make_call("/shop.Cart/Add", call, TIMEOUT);
    }
    Ok(request)
}

enum Client {
    Engine(Box<EngineSide>),
    H2(Box<H2Side>),
}

impl Client {
    fn turn(&mut self, requests: usize, responses: &[u8]) -> Outcome<()> {
        let answered = match self {
            Self::Engine(engine) => engine.turn(requests, responses)?,
            Self::H2(h2) => h2.turn(requests, responses)?,
        };
        if answered != requests {
            return Err(format!("{answered} of {requests} responses are complete").into());
        }
        Ok(())
    }
}

struct EngineSide {
    connection: Http2Connection,
    request: Http2Request,
    out: Vec<u8>,
    /// Bytes of a read.
    input: Vec<u8>,
}

impl EngineSide {
    fn new(kind: Kind, per_turn: usize) -> Outcome<Self> {
        let request = request(kind)?;
        let common = CommonFields::from_requests([&request].into_iter());
        let mut connection = Http2Connection::new(per_turn, &common);
        let mut out = Vec::new();
        connection.open(&mut out);
        let request = Http2Request::new(&request, &common);
        let mut side = Self { connection, request, out, input: Vec::new() };
        side.receive(&greeting())?;
        Ok(side)
    }

    fn turn(&mut self, requests: usize, responses: &[u8]) -> Outcome<usize> {
        for _ in 0..requests {
            self.connection.begin(&self.request, Values::default(), &mut self.out);
        }
        // They are written.
        self.out.clear();
        self.receive(responses)
    }

    /// Number of responses that are complete and right.
    fn receive(&mut self, bytes: &[u8]) -> Outcome<usize> {
        self.input.clear();
        self.input.extend_from_slice(bytes);
        let (mut rest, mut answered) = (&self.input[..], 0);
        while !rest.is_empty() {
            let (taken, parsed) =
                self.connection.receive(rest, &mut self.out).map_err(|error| format!("{error:?}"))?;
            rest = &rest[taken..];
            if let Parsed::Response(end) = parsed {
                answered += usize::from(end.status == 200);
            }
        }
        self.out.clear();
        Ok(answered)
    }
}

/// Bytes to be read from a connection in memory. What is written to it is dropped.
#[derive(Default)]
struct Wire {
    input: Vec<u8>,
    taken: usize,
}

struct InMemory(Rc<RefCell<Wire>>);

impl AsyncRead for InMemory {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut wire = self.0.borrow_mut();
        let rest = &wire.input[wire.taken..];
        let length = rest.len().min(buffer.remaining());
        if length == 0 {
            return Poll::Pending;
        }
        buffer.put_slice(&rest[..length]);
        wire.taken += length;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for InMemory {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(parts.iter().map(|part| part.len()).sum()))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

struct H2Side {
    kind: Kind,
    wire: Rc<RefCell<Wire>>,
    connection: Connection<InMemory, Bytes>,
    sender: SendRequest<Bytes>,
    request: Request<()>,
    /// Framed; empty if requests have no body.
    message: Bytes,
    awaited: Vec<ResponseFuture>,
}

impl H2Side {
    fn new(kind: Kind) -> Outcome<Self> {
        let wire = Rc::new(RefCell::new(Wire::default()));
        let mut context = Context::from_waker(Waker::noop());
        let mut handshake = std::pin::pin!(builder().handshake(InMemory(Rc::clone(&wire))));
        let Poll::Ready(opened) = handshake.as_mut().poll(&mut context) else {
            return Err("the handshake waits".into());
        };
        let (sender, connection) = opened?;
        let message = match kind {
            Kind::Plain => Vec::new(),
            Kind::Grpc => [&[0, 0, 0, 0, MESSAGE_BYTES as u8][..], &[b'x'; MESSAGE_BYTES]].concat(),
        };
        let request = converted(&request(kind)?)?;
        let mut side =
            Self { kind, wire, connection, sender, request, message: message.into(), awaited: Vec::new() };
        side.receive(&greeting())?;
        Ok(side)
    }

    fn turn(&mut self, requests: usize, responses: &[u8]) -> Outcome<usize> {
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..requests {
            let Poll::Ready(ready) = self.sender.poll_ready(&mut context) else {
                return Err("the connection accepts no request".into());
            };
            ready?;
            let (response, mut body) =
                self.sender.send_request(self.request.clone(), self.message.is_empty())?;
            if !self.message.is_empty() {
                body.send_data(self.message.clone(), true)?;
            }
            self.awaited.push(response);
        }
        self.poll()?;
        self.receive(responses)
    }

    fn poll(&mut self) -> Outcome<()> {
        let mut context = Context::from_waker(Waker::noop());
        match Pin::new(&mut self.connection).poll(&mut context) {
            Poll::Pending => Ok(()),
            Poll::Ready(ended) => Err(format!("the connection has ended: {ended:?}").into()),
        }
    }

    /// Number of responses that are complete and right.
    fn receive(&mut self, bytes: &[u8]) -> Outcome<usize> {
        {
            let mut wire = self.wire.borrow_mut();
            wire.input.clear();
            wire.input.extend_from_slice(bytes);
            wire.taken = 0;
        }
        self.poll()?;
        let mut answered = 0;
        for response in self.awaited.drain(..) {
            answered += usize::from(is_right(response, self.kind)?);
        }
        Ok(answered)
    }
}

/// Reads a response that has arrived as a whole.
fn is_right(mut response: ResponseFuture, kind: Kind) -> Outcome<bool> {
    let mut context = Context::from_waker(Waker::noop());
    let Poll::Ready(response) = Pin::new(&mut response).poll(&mut context) else { return Ok(false) };
    let response = response?;
    let status = response.status();
    let mut body = response.into_body();
    let mut length = 0;
    while let Poll::Ready(Some(content)) = body.poll_data(&mut context) {
        let content = content?;
        length += content.len();
        body.flow_control().release_capacity(content.len())?;
    }
    let is_whole = match kind {
        Kind::Plain => body.is_end_stream() && length == BODY_BYTES,
        Kind::Grpc => is_status_ok(&mut body)? && length == PREFIX_BYTES + BODY_BYTES,
    };
    Ok(is_whole && status == StatusCode::OK)
}

fn is_status_ok(body: &mut RecvStream) -> Outcome<bool> {
    let Poll::Ready(trailers) = body.poll_trailers(&mut Context::from_waker(Waker::noop())) else {
        return Ok(false);
    };
    Ok(trailers?.is_some_and(|trailers| trailers.get("grpc-status").is_some_and(|status| status == "0")))
}

//! HTTP/1.1 requests: read, answered and written one after the other, within the task of their connection.
//!
//! A connection that starts with the HTTP/2 preface is handed over.

use super::application::Application;
use super::exchange::{Exchange, Kind};
use super::http2;
use super::outgoing::Outgoing;
use super::script::{Answer, PassedFields, execute};
use super::server::Stopping;
use super::stream::CountedStream;
use super::tally::Outcome;
use super::worker::Worker;
use crate::http1::{Body, Framing, HTTP2_PREFACE, Rejection, parse_with};
use crate::reply::path_of;
use crate::response::{CONTINUE, Frame, write_head, write_text};
use futures_util::future::{Either, select};
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Poll, ready};
use tokio::io::AsyncWriteExt as _;

/// Maximum bytes read beyond a request before its response is written.
const MAX_AHEAD_BYTES: usize = 16 * 1024;

/// Serves one connection to its end.
pub(crate) async fn serve(stream: CountedStream, worker: Rc<Worker>, mut stopping: Stopping) {
    let mut closing = pin!(stopping.closing());
    let mut connection = Connection::new(stream, Rc::clone(&worker));
    // On a connection error, the requests that it cut off are already counted.
    let is_http2 = connection.serve(closing.as_mut()).await.is_ok_and(|end| end == End::Http2);
    let Connection { mut stream, received, .. } = connection;
    if is_http2 {
        stream.give_back(received);
        http2::serve(stream, worker, closing).await;
    } else {
        let _ = stream.shutdown().await;
    }
}

/// Why a connection is no longer served.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum End {
    Closed,
    /// The client speaks HTTP/2.
    Http2,
}

/// The head of a request.
struct Head {
    target: Target,
    passed: PassedFields,
    framing: Framing,
    /// The method is HEAD: the response has no body.
    head_only: bool,
}

enum Target {
    /// Index of an endpoint.
    Endpoint(usize),
    /// A path that does not exist.
    Unknown(String),
}

impl Head {
    fn new(application: &Application, parsed: &httparse::Request<'_, '_>, framing: Framing) -> Self {
        let target = parsed.path.unwrap_or_default();
        let path = path_of(target.split(['?', '#']).next().unwrap_or_default());
        let endpoint = application.endpoints.iter().position(|offered| offered.endpoint.path == path);
        let fields = parsed.headers.iter().map(|field| (field.name, field.value));
        Self {
            target: endpoint.map_or_else(|| Target::Unknown(path.to_owned()), Target::Endpoint),
            passed: PassedFields::of_bytes(fields),
            framing,
            head_only: parsed.method == Some("HEAD"),
        }
    }
}

struct Connection {
    stream: CountedStream,
    worker: Rc<Worker>,
    /// Received bytes that belong to no request yet.
    received: Vec<u8>,
    outgoing: Outgoing,
    /// The first bytes were not the HTTP/2 preface.
    is_http1: bool,
}

impl Connection {
    fn new(stream: CountedStream, worker: Rc<Worker>) -> Self {
        Self { stream, worker, received: Vec::new(), outgoing: Outgoing::default(), is_http1: false }
    }

    async fn serve(&mut self, mut closing: Pin<&mut impl Future<Output = ()>>) -> io::Result<End> {
        loop {
            while !self.is_http1 || self.received.is_empty() {
                if HTTP2_PREFACE.starts_with(&self.received) && self.received.len() < HTTP2_PREFACE.len() {
                    if !self.receive_unless(closing.as_mut()).await? {
                        return Ok(End::Closed);
                    }
                } else if self.received.starts_with(HTTP2_PREFACE) && !self.is_http1 {
                    return Ok(End::Http2);
                } else if !self.is_http1 {
                    self.is_http1 = true;
                    Kind::Http1.tally(&self.worker.tally.inbound).connections.add(1);
                }
            }
            let application = &self.worker.application;
            let head = parse_with(&self.received, |parsed, framing| Head::new(application, parsed, framing));
            let stays = match head {
                Ok(Some((length, head))) => {
                    self.received.drain(..length);
                    self.answer(head).await?
                }
                Ok(None) => self.receive_unless(closing.as_mut()).await?,
                Err(rejection) => {
                    self.reject(&rejection).await?;
                    false
                }
            };
            if !stays {
                return Ok(End::Closed);
            }
        }
    }

    /// Receives more bytes between requests. Returns false if the connection has ended or should end.
    async fn receive_unless(&mut self, closing: Pin<&mut impl Future<Output = ()>>) -> io::Result<bool> {
        let Self { stream, received, .. } = self;
        match select(pin!(receive(stream, received)), closing).await {
            Either::Left((received, _)) => received,
            Either::Right(_) => Ok(false),
        }
    }

    /// Answers a request whose head was read. Returns false if it was the last one.
    async fn answer(&mut self, head: Head) -> io::Result<bool> {
        let worker = Rc::clone(&self.worker);
        let mut exchange = Exchange::new(&worker, Kind::Http1);
        if !head.framing.body.is_done() && !self.receive_body(&head).await? {
            return Ok(false);
        }
        exchange.received();
        match &head.target {
            Target::Unknown(path) => {
                exchange.decided(None, Outcome::Answered);
                self.compose_text(404, &format!("there is no endpoint {path}\n"), &head);
            }
            Target::Endpoint(index) => {
                let Some(answer) = self.execute(*index, &head.passed).await else { return Ok(false) };
                exchange.decided(Some(*index), answer.outcome);
                self.compose(&answer, &head);
                exchange.hold(answer.held);
            }
        }
        let stays = self.stays(&head);
        self.send().await?;
        exchange.answered();
        Ok(stays)
    }

    /// Reads and discards the body of a request. Returns false if it was incomplete.
    async fn receive_body(&mut self, head: &Head) -> io::Result<bool> {
        let mut body = head.framing.body;
        if head.framing.expects_continue {
            self.outgoing.begin().extend_from_slice(CONTINUE);
            self.send().await?;
        }
        loop {
            if let Err(rejection) = discard(&mut body, &mut self.received) {
                self.reject(&rejection).await?;
                return Ok(false);
            }
            if body.is_done() {
                return Ok(true);
            }
            if !receive(&mut self.stream, &mut self.received).await? {
                return Ok(false);
            }
        }
    }

    /// Runs the script of an endpoint. `None`: the client disconnected before its end.
    async fn execute(&mut self, endpoint: usize, passed: &PassedFields) -> Option<Answer> {
        let Self { stream, worker, received, .. } = self;
        let endpoint = &worker.application.endpoints[endpoint].endpoint;
        let mut answer = pin!(execute(worker, endpoint, passed));
        poll_fn(|context| {
            if let Poll::Ready(answer) = answer.as_mut().poll(context) {
                return Poll::Ready(Some(answer));
            }
            while received.len() < MAX_AHEAD_BYTES {
                match ready!(stream.poll_receive(context, |bytes| append(received, bytes))) {
                    Ok(true) => {}
                    Ok(false) | Err(_) => return Poll::Ready(None),
                }
            }
            Poll::Pending
        })
        .await
    }

    fn stays(&self, head: &Head) -> bool {
        head.framing.keep_alive && !self.worker.is_stopping.get()
    }

    fn frame(&self, head: &Head) -> Frame {
        Frame {
            keep_alive: self.stays(head),
            version_1_0: head.framing.version_1_0,
            head_only: head.head_only,
        }
    }

    fn compose(&mut self, answer: &Answer, head: &Head) {
        let status = match answer.outcome {
            Outcome::Answered => 200,
            Outcome::Injected => 500,
            Outcome::CalleeFailed => return self.compose_text(502, &format!("{}\n", answer.reason), head),
        };
        let frame = self.frame(head);
        write_head(self.outgoing.begin(), status, "text/plain", answer.response_bytes, frame);
        if !head.head_only {
            self.outgoing.fill(answer.response_bytes);
        }
    }

    fn compose_text(&mut self, status: u16, text: &str, head: &Head) {
        let frame = self.frame(head);
        write_text(self.outgoing.begin(), status, "text/plain", text, frame);
    }

    async fn reject(&mut self, rejection: &Rejection) -> io::Result<()> {
        self.worker.tally.inbound.rejected.add(1);
        let frame = Frame { keep_alive: false, version_1_0: false, head_only: false };
        let text = format!("{}\n", rejection.reason);
        write_text(self.outgoing.begin(), rejection.status, "text/plain", &text, frame);
        self.send().await
    }

    async fn send(&mut self) -> io::Result<()> {
        let Self { stream, outgoing, .. } = self;
        poll_fn(|context| outgoing.poll_send(stream, context)).await
    }
}

/// Receives once; returns false at the end of the stream.
async fn receive(stream: &mut CountedStream, received: &mut Vec<u8>) -> io::Result<bool> {
    poll_fn(|context| stream.poll_receive(context, |bytes| append(received, bytes))).await
}

/// Returns false if there were no bytes: the end of the stream.
fn append(received: &mut Vec<u8>, bytes: &[u8]) -> bool {
    received.extend_from_slice(bytes);
    !bytes.is_empty()
}

/// Discards the bytes that belong to a body.
fn discard(body: &mut Body, received: &mut Vec<u8>) -> Result<(), Rejection> {
    let length = body.discard(received)?;
    received.drain(..length);
    Ok(())
}

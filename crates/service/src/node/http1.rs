//! HTTP/1.1 requests: read, answered and written one after the other, within the task of their connection.
//!
//! A connection that starts with the HTTP/2 preface is handed over.

use super::exchange::{Exchange, Kind};
use super::http2;
use super::outgoing::Outgoing;
use super::passed_fields::PassedFields;
use super::script::{Answer, execute};
use super::stopping::Stopping;
use super::stream::CountedStream;
use super::tally::Outcome;
use super::worker::Worker;
use crate::http1::{Receiver, Step, TakeContent, is_http2};
use crate::reply::path_of;
use crate::response::{CONTINUE, Frame, write_head, write_line, write_rejection};
use ::http1::{Framing, Rejection};
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
    let Connection { mut stream, received, receiver, .. } = connection;
    // A request that is incomplete counts before the client can see the end.
    drop(receiver);
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

/// A request whose head was read.
#[derive(Debug)]
struct Head {
    exchange: Exchange,
    target: Target,
    passed: PassedFields,
    keep_alive: bool,
    version_1_0: bool,
    /// The method is HEAD: the response has no body.
    head_only: bool,
}

#[derive(Debug)]
enum Target {
    /// Index of an endpoint.
    Endpoint(usize),
    /// A path that does not exist.
    Unknown(String),
}

impl TakeContent for Head {}

impl Head {
    fn new(worker: &Rc<Worker>, parsed: &httparse::Request<'_, '_>, framing: &Framing) -> Self {
        let target = parsed.path.unwrap_or_default();
        let path = path_of(target.split(['?', '#']).next().unwrap_or_default());
        let mut offered = worker.application.endpoints.iter();
        let endpoint = offered.position(|offered| offered.endpoint.path == path);
        let fields = parsed.headers.iter().map(|field| (field.name, field.value));
        Self {
            exchange: Exchange::new(&worker.tally, Kind::Http1),
            target: endpoint.map_or_else(|| Target::Unknown(path.to_owned()), Target::Endpoint),
            passed: PassedFields::of_bytes(fields),
            keep_alive: framing.keep_alive,
            version_1_0: framing.version_1_0,
            head_only: parsed.method == Some("HEAD"),
        }
    }
}

struct Connection {
    stream: CountedStream,
    worker: Rc<Worker>,
    /// Received and unused bytes.
    received: Vec<u8>,
    receiver: Receiver<Head>,
    outgoing: Outgoing,
}

impl Connection {
    fn new(stream: CountedStream, worker: Rc<Worker>) -> Self {
        let (receiver, outgoing) = (Receiver::default(), Outgoing::default());
        Self { stream, worker, received: Vec::new(), receiver, outgoing }
    }

    async fn serve(&mut self, mut closing: Pin<&mut impl Future<Output = ()>>) -> io::Result<End> {
        loop {
            match is_http2(&self.received) {
                Some(true) => return Ok(End::Http2),
                Some(false) => break,
                None if self.receive_unless(closing.as_mut()).await? => {}
                None => return Ok(End::Closed),
            }
        }
        let worker = Rc::clone(&self.worker);
        Kind::Http1.tally(&worker.tally.inbound).connections.add(1);
        loop {
            let (used, step) = self
                .receiver
                .advance_with(&self.received, |parsed, framing| Head::new(&worker, parsed, framing));
            self.received.drain(..used);
            let stays = match step {
                Ok(Step::Request(head)) => self.answer(head).await?,
                Ok(Step::Continue) => {
                    self.outgoing.begin().extend_from_slice(CONTINUE);
                    self.send().await?;
                    true
                }
                Ok(Step::More) if self.receiver.is_within_request() => {
                    receive(&mut self.stream, &mut self.received).await?
                }
                Ok(Step::More) => self.receive_unless(closing.as_mut()).await?,
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

    /// Answers a request. Returns false if it was the last one.
    async fn answer(&mut self, mut head: Head) -> io::Result<bool> {
        head.exchange.received();
        match &head.target {
            Target::Unknown(path) => {
                head.exchange.decided(None, Outcome::Answered);
                let frame = self.frame(&head);
                write_line(self.outgoing.begin(), 404, &format!("there is no endpoint {path}"), frame);
            }
            Target::Endpoint(index) => {
                let Some(answer) = self.execute(*index, &head.passed).await else { return Ok(false) };
                head.exchange.decided(Some(*index), answer.outcome);
                self.compose(&answer, &head);
                head.exchange.hold(answer.held);
            }
        }
        let stays = self.stays(&head);
        self.send().await?;
        head.exchange.answered();
        Ok(stays)
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
        head.keep_alive && !self.worker.is_stopping.get()
    }

    fn frame(&self, head: &Head) -> Frame {
        Frame { keep_alive: self.stays(head), version_1_0: head.version_1_0, head_only: head.head_only }
    }

    fn compose(&mut self, answer: &Answer, head: &Head) {
        let frame = self.frame(head);
        let out = self.outgoing.begin();
        let status = match answer.outcome {
            Outcome::Answered => 200,
            Outcome::Injected => 500,
            Outcome::CalleeFailed => return write_line(out, 502, &answer.reason, frame),
        };
        write_head(out, status, "text/plain", answer.response_bytes, frame);
        if !head.head_only {
            self.outgoing.fill(answer.response_bytes);
        }
    }

    async fn reject(&mut self, rejection: &Rejection) -> io::Result<()> {
        self.worker.tally.inbound.rejected.add(1);
        write_rejection(self.outgoing.begin(), rejection);
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

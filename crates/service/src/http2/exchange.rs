//! One request in HTTP/2 and its answer, counted whatever becomes of it.

use super::{Context, Timers};
use crate::counters::ProtocolTally;
use crate::reply::Reply;
use crate::response::{COPIED_MAX_BYTES, FILLER, FILLER_BYTES, is_bodiless};
use crate::settings::Answer;
use bytes::Bytes;
use h2::server::SendResponse;
use h2::{RecvStream, SendStream};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HeaderValue};
use http::request::Parts;
use http::{HeaderMap, Method, Response, StatusCode};
use rand::rngs::SmallRng;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

/// Bytes of a body that wait for their way out at a time.
const WAITING_MAX_BYTES: usize = 64 * 1024;

/// An exchange's future: ready when it is over.
pub(super) type Answering = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The stream was reset or its connection ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Broken;

impl From<h2::Error> for Broken {
    fn from(_: h2::Error) -> Self {
        Self
    }
}

/// What is counted as which protocol.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Http,
    /// Nothing is counted: reading counters must not change them.
    Uncounted,
}

/// How far a request has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Progress {
    Receiving,
    Received,
    Answered,
}

/// A request and its answer. Dropped before it is answered, it counts as broken off.
pub(crate) struct Exchange {
    pub respond: SendResponse<Bytes>,
    pub worker: Arc<Context>,
    pub timers: Timers,
    kind: Kind,
    progress: Progress,
}

impl Exchange {
    pub(super) fn new(respond: SendResponse<Bytes>, worker: &Arc<Context>, timers: &Timers) -> Self {
        Self {
            respond,
            worker: Arc::clone(worker),
            timers: timers.clone(),
            kind: Kind::Http,
            progress: Progress::Receiving,
        }
    }

    /// Answers at once where that is possible, else gives the future that will.
    pub(super) fn answer(
        mut self,
        head: &Parts,
        body: RecvStream,
        random: &mut SmallRng,
    ) -> Option<Answering> {
        let target = head.uri.path_and_query().map_or("", http::uri::PathAndQuery::as_str);
        let reply = Reply::to(head.method.as_str(), target, &self.worker.answer);
        if reply == Reply::Counters {
            self.kind = Kind::Uncounted;
        }
        let head_only = head.method == Method::HEAD;
        let answer = Composed::new(reply, random, &self.worker);
        if body.is_end_stream() && answer.delay_ns == 0 {
            self.received();
            return self.send_at_once(answer, head_only);
        }
        let expects_continue = head.headers.get(EXPECT).is_some_and(|value| value == "100-continue");
        Some(Box::pin(async move {
            let _ = self.answer_later(answer, body, head_only, expects_continue).await;
        }))
    }

    /// A body that may go as a whole goes without a future.
    fn send_at_once(mut self, answer: Composed, head_only: bool) -> Option<Answering> {
        self.worker.tally.errors.add(u64::from(answer.fails));
        let (response, body) = answer.into_response(head_only);
        let ended = body.bytes() == 0;
        let Ok(mut stream) = self.respond.send_response(response, ended) else { return None };
        if ended {
            self.answered();
            return None;
        }
        if body.bytes() <= COPIED_MAX_BYTES {
            let length = body.bytes() as usize;
            stream.reserve_capacity(length);
            if stream.capacity() >= length {
                if stream.send_data(body.piece(0, length), true).is_ok() {
                    self.answered();
                }
                return None;
            }
        }
        Some(Box::pin(async move {
            if send_body(&mut stream, &body).await.is_ok() {
                self.answered();
            }
        }))
    }

    async fn answer_later(
        mut self,
        answer: Composed,
        mut body: RecvStream,
        head_only: bool,
        expects_continue: bool,
    ) -> Result<(), Broken> {
        if expects_continue && !body.is_end_stream() {
            let mut response = Response::new(());
            *response.status_mut() = StatusCode::CONTINUE;
            self.respond.send_informational(response)?;
        }
        while let Some(bytes) = body.data().await {
            let length = bytes?.len();
            body.flow_control().release_capacity(length)?;
        }
        body.trailers().await?;
        self.received();
        self.delay(answer.delay_ns).await?;
        self.worker.tally.errors.add(u64::from(answer.fails));
        let (response, body) = answer.into_response(head_only);
        let mut stream = self.respond.send_response(response, body.bytes() == 0)?;
        send_body(&mut stream, &body).await?;
        self.answered();
        Ok(())
    }

    /// Waits for this long, or until the client gives up.
    pub(crate) async fn delay(&mut self, delay_ns: u64) -> Result<(), Broken> {
        if delay_ns == 0 {
            return Ok(());
        }
        let mut wait = pin!(self.timers.wait(self.worker.now_ns(), delay_ns));
        poll_fn(|context| match self.respond.poll_reset(context) {
            Poll::Ready(_) => Poll::Ready(Err(Broken)),
            Poll::Pending => wait.as_mut().poll(context).map(Ok),
        })
        .await
    }

    /// Notes that the request was read whole.
    pub(crate) fn received(&mut self) {
        self.progress = Progress::Received;
        if let Some(tally) = self.tally() {
            tally.requests.add(1);
        }
    }

    /// Notes that the answer is on its way as a whole.
    pub(crate) fn answered(&mut self) {
        self.progress = Progress::Answered;
    }

    fn tally(&self) -> Option<&ProtocolTally> {
        match self.kind {
            Kind::Http => Some(&self.worker.tally.http2),
            Kind::Uncounted => None,
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if let Some(tally) = self.tally() {
            match self.progress {
                Progress::Receiving => tally.incomplete.add(1),
                Progress::Received => tally.failed.add(1),
                Progress::Answered => tally.answered.add(1),
            }
        }
    }
}

/// An answer, decided when its request began.
struct Composed {
    status: u16,
    media_type: &'static str,
    body: Body,
    delay_ns: u64,
    /// Chance made it an error.
    fails: bool,
}

impl Composed {
    fn new(reply: Reply, random: &mut SmallRng, worker: &Context) -> Self {
        let delay_ns = reply.delay_ns();
        let mut fails = false;
        let (status, media_type, body) = match reply {
            Reply::Filler(answer) => {
                fails = answer.fails(random);
                let Answer { status, body_bytes, .. } = answer;
                (if fails { 500 } else { status }, "text/plain", Body::Filler(body_bytes))
            }
            Reply::Counters => (200, "application/json", Body::Text(worker.counters().to_json().into())),
            Reply::Refused { status, reason } => {
                (status, "text/plain", Body::Text(format!("{reason}\n").into()))
            }
        };
        Self { status, media_type, body, delay_ns, fails }
    }

    /// The head of the response, and the body that is to be sent behind it.
    fn into_response(self, head_only: bool) -> (Response<()>, Body) {
        let mut response = Response::new(());
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or(StatusCode::OK);
        if is_bodiless(self.status) {
            return (response, Body::Filler(0));
        }
        let mut fields = HeaderMap::with_capacity(2);
        fields.insert(CONTENT_TYPE, HeaderValue::from_static(self.media_type));
        fields.insert(CONTENT_LENGTH, HeaderValue::from(self.body.bytes()));
        *response.headers_mut() = fields;
        (response, if head_only { Body::Filler(0) } else { self.body })
    }
}

/// What a body consists of.
enum Body {
    /// So many bytes of [`FILLER`].
    Filler(u64),
    Text(Bytes),
}

impl Body {
    fn bytes(&self) -> u64 {
        match self {
            Self::Filler(bytes) => *bytes,
            Self::Text(text) => text.len() as u64,
        }
    }

    /// At most `length` bytes from `at` on: less where the filler begins anew. None of it is copied.
    fn piece(&self, at: u64, length: usize) -> Bytes {
        match self {
            Self::Filler(_) => {
                let from = (at % FILLER_BYTES as u64) as usize;
                Bytes::from_static(&FILLER[from..FILLER_BYTES.min(from + length)])
            }
            Self::Text(text) => text.slice(at as usize..at as usize + length),
        }
    }
}

/// Sends a body as fast as the client opens its window.
async fn send_body(stream: &mut SendStream<Bytes>, body: &Body) -> Result<(), Broken> {
    let mut at = 0;
    while at < body.bytes() {
        let left = body.bytes() - at;
        let piece = body.piece(at, capacity(stream, left).await?);
        at += piece.len() as u64;
        stream.send_data(piece, at == body.bytes())?;
    }
    Ok(())
}

/// How many bytes of what is left may be sent now: one at least.
pub(crate) async fn capacity(stream: &mut SendStream<Bytes>, left: u64) -> Result<usize, Broken> {
    let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(WAITING_MAX_BYTES);
    stream.reserve_capacity(wanted);
    loop {
        let capacity = stream.capacity().min(wanted);
        if capacity > 0 {
            return Ok(capacity);
        }
        poll_fn(|context| stream.poll_capacity(context)).await.ok_or(Broken)??;
    }
}

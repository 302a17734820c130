//! Responses to plain HTTP requests over HTTP/2: the same as over HTTP/1.1.

use super::Context;
use super::exchange::{Answering, Broken, Exchange, capacity};
use crate::compute::compute;
use crate::reply::Reply;
use crate::response::{FILLER, FILLER_BYTES, MAX_COPIED_BYTES, is_bodiless};
use crate::settings::Answer;
use bytes::Bytes;
use h2::{RecvStream, SendStream};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HeaderValue};
use http::request::Parts;
use http::{HeaderMap, Method, Response, StatusCode};
use rand::rngs::SmallRng;
use std::time::Duration;

/// The reply that a request's head selects.
pub(super) fn reply_to(head: &Parts, worker: &Context) -> Reply {
    let target = head.uri.path_and_query().map_or("", http::uri::PathAndQuery::as_str);
    Reply::to(head.method.as_str(), target, &worker.answer)
}

/// Answers at once if possible, otherwise returns the future that will.
pub(super) fn answer(
    exchange: Exchange,
    head: &Parts,
    body: RecvStream,
    reply: Reply,
    random: &mut SmallRng,
) -> Option<Answering> {
    let head_only = head.method == Method::HEAD;
    let composed = Composed::new(reply, random, &exchange.worker);
    if body.is_end_stream() && composed.delay_ns == 0 {
        return answer_at_once(exchange, composed, head_only);
    }
    let expects_continue = head.headers.get(EXPECT).is_some_and(|value| value == "100-continue");
    Some(Box::pin(async move {
        // A broken exchange has already counted itself.
        let _ = answer_later(exchange, composed, body, head_only, expects_continue).await;
    }))
}

/// A body that can be sent at once needs no future.
fn answer_at_once(mut exchange: Exchange, composed: Composed, head_only: bool) -> Option<Answering> {
    exchange.received();
    let (response, body) = composed.into_response(head_only, &exchange.worker);
    let ended = body.bytes() == 0;
    let mut stream = exchange.respond.send_response(response, ended).ok()?;
    if ended {
        exchange.answered();
        return None;
    }
    if body.bytes() <= MAX_COPIED_BYTES {
        let length = body.bytes() as usize;
        stream.reserve_capacity(length);
        if stream.capacity() >= length {
            stream.send_data(body.piece(0, length), true).ok()?;
            exchange.answered();
            return None;
        }
    }
    Some(Box::pin(async move {
        if send_body(&mut stream, &body).await.is_ok() {
            exchange.answered();
        }
    }))
}

async fn answer_later(
    mut exchange: Exchange,
    composed: Composed,
    mut body: RecvStream,
    head_only: bool,
    expects_continue: bool,
) -> Result<(), Broken> {
    if expects_continue && !body.is_end_stream() {
        let mut response = Response::new(());
        *response.status_mut() = StatusCode::CONTINUE;
        exchange.respond.send_informational(response)?;
    }
    while let Some(bytes) = body.data().await {
        body.flow_control().release_capacity(bytes?.len())?;
    }
    body.trailers().await?;
    exchange.received();
    exchange.delay(composed.delay_ns, None).await?;
    let (response, body) = composed.into_response(head_only, &exchange.worker);
    let mut stream = exchange.respond.send_response(response, body.bytes() == 0)?;
    send_body(&mut stream, &body).await?;
    exchange.answered();
    Ok(())
}

/// A response, determined when its request began.
struct Composed {
    status: u16,
    media_type: &'static str,
    body: Body,
    delay_ns: u64,
    cpu_time: Duration,
    /// It is selected for an injected error.
    fails: bool,
}

impl Composed {
    fn new(reply: Reply, random: &mut SmallRng, worker: &Context) -> Self {
        let delay_ns = reply.delay_ns();
        let (mut fails, mut cpu_time) = (false, Duration::ZERO);
        let (status, media_type, body) = match reply {
            Reply::Filler(answer) => {
                fails = answer.fails(random);
                cpu_time = answer.cpu_time;
                let Answer { status, body_bytes, .. } = answer;
                (if fails { 500 } else { status }, "text/plain", Body::Filler(body_bytes))
            }
            Reply::Counters => (200, "application/json", Body::Text(worker.counters().to_json().into())),
            Reply::Refused { status, reason } => {
                (status, "text/plain", Body::Text(format!("{reason}\n").into()))
            }
        };
        Self { status, media_type, body, delay_ns, cpu_time, fails }
    }

    /// The head of the response, and its body.
    fn into_response(self, head_only: bool, worker: &Context) -> (Response<()>, Body) {
        compute(self.cpu_time);
        worker.tally.errors.add(u64::from(self.fails));
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

/// Content of a body.
enum Body {
    /// This many bytes of [`FILLER`].
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

    /// At most `length` bytes from `at` on, fewer at the end of the filler text. Nothing is copied.
    fn piece(&self, at: u64, length: usize) -> Bytes {
        match self {
            Self::Filler(_) => filler_piece(at, length),
            Self::Text(text) => text.slice(at as usize..at as usize + length),
        }
    }
}

/// At most `length` bytes of filler from `at` on, fewer at the end of the filler text.
pub(crate) fn filler_piece(at: u64, length: usize) -> Bytes {
    let from = (at % FILLER_BYTES as u64) as usize;
    Bytes::from_static(&FILLER[from..FILLER_BYTES.min(from + length)])
}

/// Sends a body as fast as the client's window allows.
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

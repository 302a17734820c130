//! Responses to plain HTTP requests over HTTP/2 and HTTP/3: the same as over HTTP/1.1.

use super::context::{Context, Held};
use super::exchange::{Answering, Broken, Exchange, Receiving, Respond, Sending, send_content};
use super::outbox::Outbox;
use super::streaming;
use crate::chat;
use crate::compute::compute;
use crate::content::{Content, MAX_COPIED_BYTES};
use crate::reply::Reply;
use crate::response::is_bodiless;
use crate::settings::Answer;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HeaderValue};
use http::request::Parts;
use http::{HeaderMap, Method, Response, StatusCode};
use rand::SeedableRng as _;
use rand::rngs::SmallRng;
use std::future::poll_fn;
use std::time::Duration;

/// The reply that a request's head selects.
pub(crate) fn reply_to(head: &Parts, worker: &Context) -> Reply {
    let target = head.uri.path_and_query().map_or("", http::uri::PathAndQuery::as_str);
    Reply::to(head.method.as_str(), target, &worker.answer)
}

/// Answers at once if possible, otherwise returns the future that will.
pub(crate) fn answer<R: Respond>(
    exchange: Exchange<R>,
    head: &Parts,
    body: impl Receiving,
    reply: Reply,
    random: &mut SmallRng,
) -> Option<Answering> {
    let head_only = head.method == Method::HEAD;
    let expects_continue = head.headers.get(EXPECT).is_some_and(|value| value == "100-continue");
    if matches!(reply, Reply::Chat(_) | Reply::Events(..)) {
        let random = SmallRng::from_rng(random);
        return Some(Box::pin(async move {
            // A broken exchange has already counted itself.
            let _ = answer_events(exchange, reply, body, (head_only, expects_continue), random).await;
        }));
    }
    let fails = reply.fails(random);
    let composed = Composed::new(reply, fails, &exchange.worker);
    if body.is_end() && composed.delay_ns == 0 {
        return answer_at_once(exchange, composed, head_only);
    }
    Some(Box::pin(async move {
        let _ = answer_later(exchange, composed, body, head_only, expects_continue).await;
    }))
}

/// A body that can be sent at once needs no future.
fn answer_at_once<R: Respond>(
    mut exchange: Exchange<R>,
    composed: Composed,
    head_only: bool,
) -> Option<Answering> {
    exchange.received();
    let (response, mut content) = composed.into_response(head_only, &exchange.worker);
    let ended = content.bytes() == 0;
    let mut stream = exchange.respond.send_response(response, ended).ok()?;
    if ended {
        exchange.answered();
        return None;
    }
    if content.bytes() <= MAX_COPIED_BYTES {
        let length = content.bytes() as usize;
        stream.reserve(length);
        if stream.capacity() >= length {
            stream.send_data(content.take(length), true).ok()?;
            exchange.answered();
            return None;
        }
    }
    Some(Box::pin(async move {
        if send_content(&mut stream, &Outbox::default(), content, true).await.is_ok() {
            exchange.answered();
        }
    }))
}

async fn answer_later<R: Respond>(
    mut exchange: Exchange<R>,
    composed: Composed,
    mut body: impl Receiving,
    head_only: bool,
    expects_continue: bool,
) -> Result<(), Broken> {
    receive(&mut exchange, &mut body, expects_continue, |_| {}).await?;
    send(exchange, composed, head_only).await
}

/// Answers with a stream of events, if that is what the request turns out to ask for.
async fn answer_events<R: Respond>(
    mut exchange: Exchange<R>,
    reply: Reply,
    mut body: impl Receiving,
    (head_only, expects_continue): (bool, bool),
    mut random: SmallRng,
) -> Result<(), Broken> {
    let mut held = Held::none(&exchange.worker);
    let is_chat = matches!(reply, Reply::Chat(_));
    let mut reply = hold(&mut held, reply, is_chat);
    let take_content = |content: &[u8]| {
        reply.take_content(content);
        if !held.resize(reply.held_bytes()) {
            reply = too_much_held(is_chat);
        }
    };
    receive(&mut exchange, &mut body, expects_continue, take_content).await?;
    let reply = hold(&mut held, reply.completed(&mut random), is_chat);
    let fails = reply.fails(&mut random);
    let reply = if fails { reply.failed() } else { reply };
    match reply {
        Reply::Events(answer, frames) if !fails && !is_bodiless(answer.status) => {
            streaming::send(exchange, &answer, (frames, held), head_only, &mut random).await
        }
        reply => {
            let mut composed = Composed::new(reply, fails, &exchange.worker);
            composed.content = composed.content.map_head(|head| held.until_gone(head));
            send(exchange, composed, head_only).await
        }
    }
}

/// Accounts for the memory of a reply, or refuses it.
fn hold(held: &mut Held, reply: Reply, is_chat: bool) -> Reply {
    if held.resize(reply.held_bytes()) { reply } else { too_much_held(is_chat) }
}

fn too_much_held(is_chat: bool) -> Reply {
    let reason = "too many unfinished requests and unsent answers";
    if is_chat {
        chat::refused(503, reason)
    } else {
        Reply::Refused { status: 503, reason: reason.to_owned() }
    }
}

/// Receives the rest of a request.
async fn receive<R: Respond>(
    exchange: &mut Exchange<R>,
    body: &mut impl Receiving,
    expects_continue: bool,
    mut content: impl FnMut(&[u8]),
) -> Result<(), Broken> {
    if expects_continue && !body.is_end() {
        let mut response = Response::new(());
        *response.status_mut() = StatusCode::CONTINUE;
        exchange.respond.send_informational(response)?;
    }
    while let Some(bytes) = poll_fn(|context| body.poll_data(context)).await {
        content(&bytes?);
    }
    exchange.received();
    Ok(())
}

async fn send<R: Respond>(
    mut exchange: Exchange<R>,
    composed: Composed,
    head_only: bool,
) -> Result<(), Broken> {
    exchange.delay(composed.delay_ns, None).await?;
    let (response, content) = composed.into_response(head_only, &exchange.worker);
    let mut stream = exchange.respond.send_response(response, content.bytes() == 0)?;
    send_content(&mut stream, &Outbox::default(), content, true).await?;
    exchange.answered();
    Ok(())
}

/// A response, determined before its delay.
struct Composed {
    status: u16,
    media_type: &'static str,
    content: Content,
    delay_ns: u64,
    cpu_time: Duration,
    /// It is selected for an injected error.
    fails: bool,
}

impl Composed {
    fn new(reply: Reply, fails: bool, worker: &Context) -> Self {
        let delay_ns = reply.delay_ns();
        let cpu_time = reply.answer().map_or(Duration::ZERO, |answer| answer.cpu_time);
        let (status, media_type, content) = match reply {
            Reply::Json { answer, json } => (answer.status, "application/json", Content::new(json, 0)),
            Reply::Filler(answer) | Reply::Events(answer, _) => {
                let Answer { status, body_bytes, .. } = answer;
                (if fails { 500 } else { status }, "text/plain", Content::filler(body_bytes))
            }
            // Replies are completed with their request.
            Reply::Chat(_) => (500, "text/plain", Content::default()),
            Reply::Counters => (200, "application/json", Content::new(worker.counters().to_json(), 0)),
            Reply::Refused { status, reason } => (status, "text/plain", Content::new(reason + "\n", 0)),
        };
        Self { status, media_type, content, delay_ns, cpu_time, fails }
    }

    /// The head of the response, and its content.
    fn into_response(self, head_only: bool, worker: &Context) -> (Response<()>, Content) {
        compute(self.cpu_time);
        worker.tally.errors.add(u64::from(self.fails));
        let mut response = Response::new(());
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or(StatusCode::OK);
        if is_bodiless(self.status) {
            return (response, Content::default());
        }
        let mut fields = HeaderMap::with_capacity(2);
        fields.insert(CONTENT_TYPE, HeaderValue::from_static(self.media_type));
        fields.insert(CONTENT_LENGTH, HeaderValue::from(self.content.bytes()));
        *response.headers_mut() = fields;
        (response, if head_only { Content::default() } else { self.content })
    }
}

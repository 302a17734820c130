//! HTTP/2 and gRPC requests, handled concurrently on their connection.

use super::application::Application;
use super::body::FilledBody;
use super::exchange::{Exchange, Kind};
use super::passed_fields::PassedFields;
use super::runtime::LocalExecutor;
use super::script::{Answer, execute};
use super::stream::CountedStream;
use super::tally::Outcome;
use super::worker::Worker;
use crate::content::Content;
use crate::grpc::{self, Code, PAYLOAD_FIELD, Status, message_with_filler};
use futures_util::future::{Either, select};
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::error::Error;
use std::pin::{Pin, pin};
use std::rc::Rc;

/// Maximum concurrent requests of a client on one HTTP/2 connection.
const MAX_STREAMS: u32 = 1024;

/// Serves one connection to its end.
pub(crate) async fn serve(
    stream: CountedStream,
    worker: Rc<Worker>,
    closing: Pin<&mut impl Future<Output = ()>>,
) {
    Kind::Http2.tally(&worker.tally.inbound).connections.add(1);
    let service =
        service_fn(|request: Request<Incoming>| answer(Rc::clone(&worker), kind(&request), request));
    let mut builder = Builder::new(LocalExecutor);
    builder.max_concurrent_streams(MAX_STREAMS);
    let connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let ended = match select(connection, closing).await {
        Either::Left((ended, _)) => ended,
        Either::Right(((), mut connection)) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if ended.is_err_and(|error| is_violation(&error)) {
        worker.tally.inbound.rejected.add(1);
    }
}

/// True if the client violated the protocol.
fn is_violation(error: &hyper::Error) -> bool {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<h2::Error>());
    error.is_parse() || cause.is_some_and(|cause| !cause.is_io() && !cause.is_remote())
}

fn kind(request: &Request<Incoming>) -> Kind {
    let media_type = request.headers().get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    if media_type.starts_with(b"application/grpc") { Kind::Grpc } else { Kind::Http2 }
}

/// Answers a request. An error ends its stream: the request was incomplete.
async fn answer(
    worker: Rc<Worker>,
    kind: Kind,
    request: Request<Incoming>,
) -> Result<Response<FilledBody>, Box<dyn Error + Send + Sync>> {
    let (head, mut body) = request.into_parts();
    let mut exchange = Exchange::new(&worker.tally, kind);
    while let Some(frame) = body.frame().await {
        frame?;
    }
    exchange.received();
    let endpoint = endpoint(&worker.application, kind, &head);
    let (response, body) = match endpoint {
        None => {
            exchange.decided(None, Outcome::Answered);
            unknown_endpoint(kind, &head)
        }
        Some(index) => {
            let endpoint = &worker.application.endpoints[index].endpoint;
            let answer = execute(&worker, endpoint, &PassedFields::from_headers(&head.headers)).await;
            exchange.decided(Some(index), answer.outcome);
            let response = if kind == Kind::Grpc { grpc_response(&answer) } else { http_response(&answer) };
            exchange.hold(answer.held);
            response
        }
    };
    if head.method == Method::HEAD {
        exchange.answered();
    }
    Ok(response.map(|()| body.answering(exchange)))
}

/// Index of a request's endpoint.
fn endpoint(application: &Application, kind: Kind, head: &Parts) -> Option<usize> {
    let path = head.uri.path();
    application.endpoints.iter().position(|offered| match kind {
        Kind::Grpc => offered.grpc_method == path,
        Kind::Http1 | Kind::Http2 | Kind::Tcp => offered.endpoint.path == path,
    })
}

type Reply = (Response<()>, FilledBody);

fn unknown_endpoint(kind: Kind, head: &Parts) -> Reply {
    let text = format!("there is no endpoint {}", head.uri.path());
    if kind == Kind::Grpc {
        return grpc_status(&Status::new(Code::Unimplemented, text));
    }
    text_response(StatusCode::NOT_FOUND, text)
}

fn http_response(answer: &Answer) -> Reply {
    let status = match answer.outcome {
        Outcome::Answered => StatusCode::OK,
        Outcome::Injected => StatusCode::INTERNAL_SERVER_ERROR,
        Outcome::CalleeFailed => return text_response(StatusCode::BAD_GATEWAY, answer.reason.clone()),
    };
    (text_head(status), FilledBody::new(Content::filler(answer.response_bytes)))
}

fn text_response(status: StatusCode, text: String) -> Reply {
    (text_head(status), FilledBody::new(Content::new(text + "\n", 0)))
}

fn text_head(status: StatusCode) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}

fn grpc_response(answer: &Answer) -> Reply {
    match answer.outcome {
        Outcome::Injected => return grpc_status(&Status::new(Code::Internal, "injected error")),
        Outcome::CalleeFailed => return grpc_status(&Status::new(Code::Unavailable, answer.reason.clone())),
        Outcome::Answered => {}
    }
    match message_with_filler(&(), Some((PAYLOAD_FIELD, answer.response_bytes))) {
        Some(message) => {
            let mut trailers = HeaderMap::with_capacity(1);
            Status::OK.write(&mut trailers);
            (grpc::head(), FilledBody::new(message).with_trailers(trailers))
        }
        None => grpc_status(&Status::new(Code::Internal, "no message can be so long")),
    }
}

/// A trailers-only response: its head carries the status.
fn grpc_status(status: &Status) -> Reply {
    let mut response = grpc::head();
    status.write(response.headers_mut());
    (response, FilledBody::default())
}

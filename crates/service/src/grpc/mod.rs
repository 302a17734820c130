//! gRPC over HTTP/2: the available methods, and how each call is answered.
//!
//! A call is an HTTP/2 exchange that carries messages (`call`) and ends with a status (`status`). `echo` is
//! the service that receives the load, described in `proto/meshmeter/v1/echo.proto`; `health` and
//! `reflection` are the standard services.
//!
//! Not supported: compression, and deadlines (`grpc-timeout`), which clients enforce themselves.

mod call;
mod echo;
mod health;
mod message;
mod reflection;
mod status;

pub(crate) use call::head;
pub(crate) use echo::PAYLOAD_FIELD;
pub use echo::PROTO as ECHO_PROTO;
pub(crate) use message::message_with_filler;
pub(crate) use status::{Code, Status};

use crate::http2::exchange::{Answering, Exchange, Kind};
use crate::settings::Answer;
use call::{Call, Failure};
use h2::RecvStream;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::request::Parts;
use http::{Response, StatusCode};

/// True if a request is a gRPC call, well-formed or not.
pub(crate) fn is_call(head: &Parts) -> bool {
    media_type(head).starts_with(b"application/grpc")
}

/// How a call is counted.
pub(crate) fn kind_of(head: &Parts) -> Kind {
    if Method::from_path(head.uri.path()) == Some(Method::Reflection) { Kind::Uncounted } else { Kind::Grpc }
}

/// The future that runs a call. `answer` holds the server's settings; `fails`: the call gets an injected
/// error.
pub(crate) fn answer(
    mut exchange: Exchange,
    head: &Parts,
    body: RecvStream,
    answer: Answer,
    fails: bool,
) -> Answering {
    if head.method != http::Method::POST || !matches!(media_type(head), PROTOBUF | PROTOBUF_IN_FULL) {
        return Box::pin(async move {
            let mut response = Response::new(());
            *response.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            if exchange.respond.send_response(response, true).is_ok() {
                exchange.answered();
            }
        });
    }
    let method = Method::from_path(head.uri.path());
    Box::pin(async move {
        let mut call = Call::new(exchange, body);
        let ended = match method {
            Some(Method::Echo(method)) => echo::answer(&mut call, method, answer, fails).await,
            Some(Method::Check) => health::check(&mut call).await,
            Some(Method::Watch) => health::watch(&mut call).await,
            Some(Method::Reflection) => reflection::answer(&mut call).await,
            None => Err(Failure::Status(Status::new(Code::Unimplemented, "there is no such method"))),
        };
        match ended {
            Ok(()) => call.end(&Status::OK),
            Err(Failure::Status(status)) => call.end(&status),
            // The exchange has counted itself.
            Err(Failure::Broken) => {}
        }
    })
}

/// A method of the services.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Method {
    Echo(echo::Method),
    Check,
    Watch,
    Reflection,
}

impl Method {
    /// Parses a path such as `/meshmeter.v1.Echo/Unary`.
    fn from_path(path: &str) -> Option<Self> {
        let (service, method) = path.strip_prefix('/')?.split_once('/')?;
        match (service, method) {
            (echo::SERVICE, _) => echo::Method::from_name(method).map(Self::Echo),
            (health::SERVICE, "Check") => Some(Self::Check),
            (health::SERVICE, "Watch") => Some(Self::Watch),
            (_, "ServerReflectionInfo") if reflection::SERVICES.contains(&service) => Some(Self::Reflection),
            _ => None,
        }
    }
}

/// The two names of the only supported message encoding.
const PROTOBUF: &[u8] = b"application/grpc";
const PROTOBUF_IN_FULL: &[u8] = b"application/grpc+proto";

/// The media type without its parameters; empty if there is none.
fn media_type(head: &Parts) -> &[u8] {
    let value = head.headers.get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    value.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii()
}

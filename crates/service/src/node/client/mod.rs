//! Calls to other services, over connections that are kept.

mod connect;
mod grpc_call;
mod http1;
mod http2;
mod response;
mod tcp;

use super::application::{Application, CalleeSpec};
use super::body::FillerBody;
use super::script::PassedFields;
use super::tally::{Attempt, CallTally, WorkerTally};
use ::http::header::HOST;
use ::http::{HeaderValue, Method, Request};
use experiment::protocol::Protocol;
use std::sync::Arc;

/// Why a call failed, in words for the response.
#[derive(Debug)]
pub(crate) struct CallFailure(pub String);

/// What a call sends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutgoingCall<'c> {
    pub endpoint: &'c str,
    pub request_bytes: u64,
    pub passed: &'c PassedFields,
    /// The same call has failed before.
    pub repeats: bool,
}

/// A service that is called, with one worker's connections to it.
pub(crate) struct Callee {
    application: Arc<Application>,
    tally: Arc<WorkerTally>,
    index: usize,
    /// `Host` of requests over HTTP/1.1.
    host: HeaderValue,
    connections: Connections,
}

enum Connections {
    Http1(http1::Pool),
    Http2(http2::Multiplexed),
    Tcp(tcp::Pool),
}

impl Callee {
    /// `index`: in the application's callees.
    pub(crate) fn new(index: usize, application: &Arc<Application>, tally: &Arc<WorkerTally>) -> Self {
        let spec = &application.callees[index];
        let connections = match spec.protocol {
            Protocol::Http1 => Connections::Http1(http1::Pool::default()),
            Protocol::Http2 | Protocol::Grpc => Connections::Http2(http2::Multiplexed::default()),
            Protocol::Tcp => Connections::Tcp(tcp::Pool::default()),
        };
        Self {
            host: HeaderValue::from_str(spec.place.authority.as_str())
                .expect("an authority is a field's value"),
            application: Arc::clone(application),
            tally: Arc::clone(tally),
            index,
            connections,
        }
    }

    /// Qualified name.
    pub(crate) fn name(&self) -> &str {
        &self.spec().name
    }

    /// Sends a request and receives the whole response. A request that meets a connection at its end is sent again on a
    /// new one, once.
    pub(crate) async fn call(&self, call: &OutgoingCall<'_>) -> Result<(), CallFailure> {
        let mut attempt = Attempt::new(self.calls(), call.repeats);
        let ended = match &self.connections {
            Connections::Http1(pool) => pool.call(self, call, &mut attempt).await,
            Connections::Http2(connection) => connection.call(self, call, &mut attempt).await,
            Connections::Tcp(pool) => pool.call(self, &mut attempt).await,
        };
        if ended.is_ok() {
            attempt.answered();
        }
        ended
    }

    fn spec(&self) -> &CalleeSpec {
        &self.application.callees[self.index]
    }

    fn calls(&self) -> &CallTally {
        &self.tally.calls[self.index]
    }

    /// A request over HTTP.
    fn request(&self, call: &OutgoingCall<'_>) -> Request<FillerBody> {
        let spec = self.spec();
        let target = spec.targets.iter().find(|(endpoint, _)| endpoint == call.endpoint);
        let (_, target) = target.expect("scripts name no other endpoint");
        let mut request = match (spec.protocol, call.request_bytes) {
            (Protocol::Grpc, bytes) => grpc_call::request(bytes),
            (_, 0) => Request::default(),
            (_, bytes) => {
                let mut request = Request::new(FillerBody::filler(bytes));
                *request.method_mut() = Method::POST;
                request
            }
        };
        *request.uri_mut() = target.clone();
        let fields = request.headers_mut();
        if spec.protocol == Protocol::Http1 {
            fields.insert(HOST, self.host.clone());
        }
        call.passed.write(fields);
        request
    }
}

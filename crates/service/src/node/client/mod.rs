//! Calls to other services, over persistent connections.

mod connect;
mod grpc_call;
mod http1;
mod http1_response;
mod http2;
mod pool;
mod response;
mod tcp;

pub use http1_response::check_response;

use super::application::{Application, CalleeSpec};
use super::body::FilledBody;
use super::script::PassedFields;
use super::tally::{Attempt, CallTally, WorkerTally};
use crate::content::Content;
use ::http::{Method, Request, Uri};
use experiment::protocol::Protocol;
use pool::Pool;
use std::sync::Arc;

/// Why a call failed, as text for the response.
#[derive(Debug)]
pub(crate) struct CallFailure(pub String);

/// Content of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutgoingCall<'c> {
    pub endpoint: &'c str,
    pub request_bytes: u64,
    pub passed: &'c PassedFields,
    /// The same call has failed before.
    pub repeats: bool,
}

/// A callee, with one worker's connections to it.
pub(crate) struct Callee {
    application: Arc<Application>,
    tally: Arc<WorkerTally>,
    index: usize,
    connections: Connections,
}

enum Connections {
    Http1(Pool),
    Http2(http2::Multiplexed),
    Tcp(Pool),
}

impl Callee {
    /// `index`: position among the application's callees.
    pub(crate) fn new(index: usize, application: &Arc<Application>, tally: &Arc<WorkerTally>) -> Self {
        let spec = &application.callees[index];
        let connections = match spec.protocol {
            Protocol::Http1 => Connections::Http1(Pool::default()),
            Protocol::Http2 | Protocol::Grpc => Connections::Http2(http2::Multiplexed::default()),
            Protocol::Tcp => Connections::Tcp(Pool::default()),
        };
        Self { application: Arc::clone(application), tally: Arc::clone(tally), index, connections }
    }

    /// Qualified name.
    pub(crate) fn name(&self) -> &str {
        &self.spec().name
    }

    /// Sends a request and receives the whole response. If the connection turns out to be closed, the request
    /// is resent once on a new one.
    pub(crate) async fn call(&self, call: &OutgoingCall<'_>) -> Result<(), CallFailure> {
        let mut attempt = Attempt::new(self.calls(), call.repeats);
        let ended = match &self.connections {
            Connections::Http1(pool) => http1::call(pool, self, call, &mut attempt).await,
            Connections::Http2(connection) => connection.call(self, call, &mut attempt).await,
            Connections::Tcp(pool) => tcp::call(pool, self, &mut attempt).await,
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

    /// Target of an HTTP request.
    fn target(&self, call: &OutgoingCall<'_>) -> &Uri {
        let target = self.spec().targets.iter().find(|(endpoint, _)| endpoint == call.endpoint);
        &target.expect("scripts name no other endpoint").1
    }

    /// An HTTP/2 request.
    fn http2_request(&self, call: &OutgoingCall<'_>) -> Request<FilledBody> {
        let mut request = match (self.spec().protocol, call.request_bytes) {
            (Protocol::Grpc, bytes) => grpc_call::request(bytes),
            (_, 0) => Request::default(),
            (_, bytes) => {
                let mut request = Request::new(FilledBody::new(Content::filler(bytes)));
                *request.method_mut() = Method::POST;
                request
            }
        };
        *request.uri_mut() = self.target(call).clone();
        call.passed.write(request.headers_mut());
        request
    }
}

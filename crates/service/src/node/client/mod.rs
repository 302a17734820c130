//! Calls to other services, over persistent connections.

mod callee;
mod connect;
mod grpc_call;
mod http1;
mod http1_response;
mod http2;
mod pool;
mod response;
mod tcp;

pub(crate) use callee::OutgoingCall;
pub use http1_response::check_response;

use super::application::Application;
use super::failure::StepFailure;
use super::tally::{Attempt, WorkerTally};
use callee::Callee;
use experiment::protocol::Protocol;
use pool::Pool;
use std::sync::Arc;

/// The client of one callee, with one worker's connections to it.
pub(crate) struct Client {
    callee: Callee,
    connections: Connections,
}

enum Connections {
    Http1(Pool),
    Http2(http2::Multiplexed),
    Tcp(Pool),
}

impl Client {
    /// `index`: position of the callee among the application's.
    pub(crate) fn new(index: usize, application: &Arc<Application>, tally: &Arc<WorkerTally>) -> Self {
        let spec = &application.callees[index];
        let connections = match spec.protocol {
            Protocol::Http1 => Connections::Http1(Pool::default()),
            Protocol::Http2 | Protocol::Grpc => Connections::Http2(http2::Multiplexed::default()),
            Protocol::Tcp => Connections::Tcp(Pool::default()),
        };
        let callee = Callee { application: Arc::clone(application), tally: Arc::clone(tally), index };
        Self { callee, connections }
    }

    /// Qualified name of the callee.
    pub(crate) fn name(&self) -> &str {
        &self.callee.spec().name
    }

    /// Sends a request and receives the whole response. If the connection turns out to be closed, the request
    /// is resent once on a new one.
    pub(crate) async fn call(&self, call: &OutgoingCall<'_>) -> Result<(), StepFailure> {
        let callee = &self.callee;
        let mut attempt = Attempt::new(callee.calls(), call.repeats);
        let ended = match &self.connections {
            Connections::Http1(pool) => http1::call(pool, callee, call, &mut attempt).await,
            Connections::Http2(connection) => connection.call(callee, call, &mut attempt).await,
            Connections::Tcp(pool) => tcp::call(pool, callee, &mut attempt).await,
        };
        if ended.is_ok() {
            attempt.answered();
        }
        ended
    }
}

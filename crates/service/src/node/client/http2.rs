//! HTTP/2 and gRPC: one connection that multiplexes all calls.

use super::callee::{Callee, OutgoingCall};
use super::connect::connect;
use super::grpc_call;
use super::response::{describe, receive};
use crate::content::Content;
use crate::node::body::FilledBody;
use crate::node::failure::StepFailure;
use crate::node::runtime::LocalExecutor;
use crate::node::tally::Attempt;
use experiment::protocol::Protocol;
use h2::Reason;
use http::{Method, Request};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::sync::Mutex;
use tokio::task::spawn_local;

type Connection = SendRequest<FilledBody>;

/// The connection to one callee. Calls wait for it while it is being opened.
#[derive(Default)]
pub(super) struct Multiplexed {
    connection: Mutex<Option<Connection>>,
}

impl Multiplexed {
    pub(super) async fn call(
        &self,
        callee: &Callee,
        call: &OutgoingCall<'_>,
        attempt: &mut Attempt<'_>,
    ) -> Result<(), StepFailure> {
        let mut is_second = false;
        loop {
            let mut connection = self.connection(callee).await?;
            attempt.sent();
            match connection.try_send_request(callee.http2_request(call)).await {
                Ok(response) => {
                    return receive(response, callee.spec().protocol == Protocol::Grpc, attempt).await;
                }
                Err(error) if error.message().is_some() => attempt.unwritten(),
                Err(error) if !is_second && is_refused(error.error()) => attempt.resent(),
                Err(error) => return Err(StepFailure(describe(error.error()))),
            }
            if is_second {
                return Err(StepFailure("the connection was closed at once".to_owned()));
            }
            is_second = true;
        }
    }

    async fn connection(&self, callee: &Callee) -> Result<Connection, StepFailure> {
        let mut open = self.connection.lock().await;
        if let Some(connection) = open.as_ref().filter(|connection| !connection.is_closed()) {
            return Ok(connection.clone());
        }
        let stream = connect(callee).await?;
        let failed = |error: hyper::Error| StepFailure(describe(&error));
        let (connection, driver) =
            Builder::new(LocalExecutor).handshake(TokioIo::new(stream)).await.map_err(failed)?;
        // Requests on the connection see how it ended.
        spawn_local(async { drop(driver.await) });
        Ok(open.insert(connection).clone())
    }
}

impl Callee {
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

/// True if the callee reports that it has not started to process the request.
fn is_refused(error: &hyper::Error) -> bool {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<h2::Error>());
    cause.is_some_and(|cause| {
        cause.is_remote() && (cause.is_go_away() || cause.reason() == Some(Reason::REFUSED_STREAM))
    })
}

//! HTTP/1.1: connections are opened on demand and never closed for idleness. The one used last is used next.

use super::connect::connect;
use super::response::{describe, receive};
use super::{CallFailure, Callee, OutgoingCall};
use crate::node::body::FillerBody;
use crate::node::tally::Attempt;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use std::cell::RefCell;
use tokio::task::spawn_local;

type Connection = SendRequest<FillerBody>;

/// Idle connections to one callee.
#[derive(Default)]
pub(super) struct Pool {
    idle: RefCell<Vec<Connection>>,
}

impl Pool {
    pub(super) async fn call(
        &self,
        callee: &Callee,
        call: &OutgoingCall<'_>,
        attempt: &mut Attempt<'_>,
    ) -> Result<(), CallFailure> {
        let mut reused = self.take_idle().await;
        loop {
            let is_reused = reused.is_some();
            let mut connection = match reused.take() {
                Some(connection) => connection,
                None => open(callee).await?,
            };
            attempt.sent();
            match connection.try_send_request(callee.request(call)).await {
                Ok(response) => {
                    let ended = receive(response, false).await;
                    if !connection.is_closed() {
                        self.idle.borrow_mut().push(connection);
                    }
                    return ended;
                }
                Err(error) if error.message().is_some() => attempt.unwritten(),
                Err(error) if is_reused && is_closed_by_peer(error.error()) => attempt.resent(),
                Err(error) => return Err(CallFailure(describe(error.error()))),
            }
            if !is_reused {
                return Err(CallFailure("the connection was closed at once".to_owned()));
            }
        }
    }

    async fn take_idle(&self) -> Option<Connection> {
        loop {
            let mut connection = self.idle.borrow_mut().pop()?;
            // It is about to be ready where its last response has just been read.
            if connection.ready().await.is_ok() {
                return Some(connection);
            }
        }
    }
}

async fn open(callee: &Callee) -> Result<Connection, CallFailure> {
    let stream = connect(callee).await?;
    let failed = |error: hyper::Error| CallFailure(describe(&error));
    let (connection, driver) = handshake(TokioIo::new(stream)).await.map_err(failed)?;
    // Requests on it learn how it ended.
    spawn_local(async { drop(driver.await) });
    Ok(connection)
}

/// The connection ended before anything of a response came.
fn is_closed_by_peer(error: &hyper::Error) -> bool {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<std::io::Error>());
    error.is_incomplete_message() || error.is_canceled() || error.is_closed() || cause.is_some()
}

//! HTTP/1.1: connections are opened on demand. The caller's own task writes the request and reads the
//! response.

use super::callee::{Callee, OutgoingCall};
use super::connect::connect;
use super::http1_response::Receiver;
use super::pool::Pool;
use crate::node::failure::StepFailure;
use crate::node::outgoing::Outgoing;
use crate::node::stream::CountedStream;
use crate::node::tally::Attempt;
use std::future::poll_fn;
use std::io::{self, Write as _};
use std::task::{Context, Poll, ready};

/// Initial buffer for a request head with the fields of one trace.
const HEAD_BYTES: usize = 512;

/// Sends a request and receives its response. If the connection turns out to be closed, the request is resent
/// on a new one.
pub(super) async fn call(
    pool: &Pool,
    callee: &Callee,
    call: &OutgoingCall<'_>,
    attempt: &mut Attempt<'_>,
) -> Result<(), StepFailure> {
    let mut reused = pool.take();
    loop {
        let is_reused = reused.is_some();
        let mut connection = match reused.take() {
            Some(connection) => connection,
            None => connect(callee).await?,
        };
        let mut exchange = Exchange::new(callee.http1_request(call));
        attempt.sent();
        match poll_fn(|context| exchange.poll(&mut connection, context)).await {
            Ok(()) => {
                attempt.received();
                if exchange.receiver.keeps_alive() && exchange.outgoing.is_done() {
                    pool.put(connection);
                }
                return match exchange.receiver.status() {
                    200..300 => Ok(()),
                    status => Err(StepFailure(format!("status {status}"))),
                };
            }
            Err(_) if !exchange.outgoing.is_begun() => attempt.unwritten(),
            Err(_) if is_reused && !exchange.receiver.is_begun() => attempt.resent(),
            Err(error) => return Err(StepFailure(error.to_string())),
        }
        if !is_reused {
            return Err(StepFailure("the connection was closed at once".to_owned()));
        }
    }
}

/// One request and its response.
struct Exchange {
    outgoing: Outgoing,
    /// Why the request was not written completely. The callee may still have responded.
    unsent: Option<io::Error>,
    receiver: Receiver,
}

impl Exchange {
    fn new(outgoing: Outgoing) -> Self {
        Self { outgoing, unsent: None, receiver: Receiver::default() }
    }

    /// Ready when the response is complete.
    fn poll(&mut self, connection: &mut CountedStream, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.unsent.is_none()
            && let Poll::Ready(Err(error)) = self.outgoing.poll_send(connection, context)
        {
            if !self.outgoing.is_begun() {
                return Poll::Ready(Err(error));
            }
            self.unsent = Some(error);
        }
        while !self.receiver.is_done() {
            let receiver = &mut self.receiver;
            match ready!(connection.poll_receive(context, |bytes| receiver.receive(bytes))).flatten() {
                Ok(()) => {}
                Err(error) => return Poll::Ready(Err(self.unsent.take().unwrap_or(error))),
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl Callee {
    fn http1_request(&self, call: &OutgoingCall<'_>) -> Outgoing {
        let mut request = Outgoing::default();
        let head = request.begin();
        head.reserve(HEAD_BYTES);
        let method = if call.request_bytes == 0 { "GET" } else { "POST" };
        // Writing to memory cannot fail.
        let _ = write!(
            head,
            "{method} {} HTTP/1.1\r\nhost: {}\r\n",
            self.target(call),
            self.spec().place.authority
        );
        for (name, value) in call.passed.iter() {
            for part in [name.as_bytes(), b": ", value, b"\r\n"] {
                head.extend_from_slice(part);
            }
        }
        if call.request_bytes > 0 {
            let _ = write!(head, "content-length: {}\r\n", call.request_bytes);
        }
        head.extend_from_slice(b"\r\n");
        request.fill(call.request_bytes);
        request
    }
}

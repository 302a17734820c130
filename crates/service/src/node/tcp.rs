//! Raw TCP: requests of a fixed size, each answered with a reply of a fixed size, as in the echo server.

use super::application::tcp_reply_bytes;
use super::exchange::{Exchange, Kind};
use super::outgoing::Outgoing;
use super::passed_fields::PassedFields;
use super::script::execute;
use super::stopping::Stopping;
use super::stream::CountedStream;
use super::tally::Outcome;
use super::worker::Worker;
use crate::content::Filler;
use crate::tcp::PATTERN;
use experiment::settings::service::TCP_REQUEST_BYTES;
use futures_util::future::{Either, select};
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Bytes per read.
const READ_BYTES: usize = 4 * 1024;

/// Serves one connection to its end. A script error closes it without a reply, because raw TCP has no other
/// way to report it.
pub(crate) async fn serve(mut stream: CountedStream, worker: Rc<Worker>, mut stopping: Stopping) {
    Kind::Tcp.tally(&worker.tally.inbound).connections.add(1);
    // The client disconnected: what that cut off has been counted.
    let _ = answer_all(&mut stream, &worker, &mut stopping).await;
    let _ = stream.shutdown().await;
}

async fn answer_all(
    stream: &mut CountedStream,
    worker: &Rc<Worker>,
    stopping: &mut Stopping,
) -> io::Result<()> {
    let mut room = [0; READ_BYTES];
    // Received bytes of requests that are not answered yet.
    let mut received = 0;
    loop {
        let request = (received > 0).then(|| Exchange::new(&worker.tally, Kind::Tcp));
        while received < TCP_REQUEST_BYTES {
            received += match &request {
                None => match select(pin!(stream.read(&mut room)), pin!(stopping.closing())).await {
                    Either::Left((read, _)) => read?,
                    Either::Right(_) => 0,
                },
                Some(_) => stream.read(&mut room).await?,
            } as u64;
            if received == 0 {
                return Ok(());
            }
        }
        let mut exchange = request.unwrap_or_else(|| Exchange::new(&worker.tally, Kind::Tcp));
        received -= TCP_REQUEST_BYTES;
        exchange.received();
        if !answer(stream, worker, exchange).await? {
            return Ok(());
        }
    }
}

/// Answers one request; returns false if the answer is to close the connection.
async fn answer(stream: &mut CountedStream, worker: &Rc<Worker>, mut exchange: Exchange) -> io::Result<bool> {
    let endpoint = &worker.application.endpoints[0].endpoint;
    let answer = execute(worker, endpoint, &PassedFields::default()).await;
    exchange.decided(Some(0), answer.outcome);
    if answer.outcome != Outcome::Answered {
        return Ok(false);
    }
    exchange.hold(answer.held);
    let mut reply = Outgoing::new(Filler::new(&PATTERN, tcp_reply_bytes(endpoint)));
    poll_fn(|context| reply.poll_send(stream, context)).await?;
    exchange.answered();
    Ok(true)
}

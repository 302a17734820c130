//! Raw TCP: both sides take the sizes of requests and replies from the topology.

use super::callee::Callee;
use super::connect::connect;
use super::pool::Pool;
use crate::content::FILLER;
use crate::node::failure::StepFailure;
use crate::node::stream::CountedStream;
use crate::node::tally::Attempt;
use experiment::settings::service::TCP_REQUEST_BYTES;
use std::io;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Maximum bytes of a reply per read.
const READ_BYTES: usize = 16 * 1024;

/// Sends a request and receives its reply. If the connection turns out to be closed, the request is resent on
/// a new one.
pub(super) async fn call(pool: &Pool, callee: &Callee, attempt: &mut Attempt<'_>) -> Result<(), StepFailure> {
    let mut reused = pool.take();
    loop {
        let is_reused = reused.is_some();
        let mut connection = match reused.take() {
            Some(connection) => connection,
            None => connect(callee).await?,
        };
        attempt.sent();
        match exchange(&mut connection, callee.spec().tcp_reply_bytes).await {
            Ok(()) => {
                pool.put(connection);
                return Ok(());
            }
            Err(Failure { received: 0, .. }) if is_reused => attempt.resent(),
            Err(Failure { received, error }) => {
                return Err(StepFailure(format!("{error} after {received} bytes of the reply")));
            }
        }
    }
}

struct Failure {
    received: u64,
    error: io::Error,
}

/// Sends a request and receives its reply.
async fn exchange(connection: &mut CountedStream, reply_bytes: u64) -> Result<(), Failure> {
    let failed = |received| move |error| Failure { received, error };
    connection.write_all(&FILLER[..TCP_REQUEST_BYTES as usize]).await.map_err(failed(0))?;
    let mut received = 0;
    // Buffer for one read, whatever the size of the reply.
    let mut room = vec![0; READ_BYTES.min(reply_bytes as usize)];
    while received < reply_bytes {
        let wanted = room.len().min((reply_bytes - received) as usize);
        match connection.read(&mut room[..wanted]).await.map_err(failed(received))? {
            0 => return Err(failed(received)(io::Error::other("the connection was closed"))),
            bytes => received += bytes as u64,
        }
    }
    Ok(())
}

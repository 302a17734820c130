//! One HTTP/2 request, counted whatever happens to it.

use super::context::Context;
use super::outbox::Outbox;
use super::timers::Timers;
use crate::content::Content;
use crate::counters::{Progress, ProtocolTally};
use bytes::Bytes;
use h2::SendStream;
use h2::server::SendResponse;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{self, Poll};

/// Maximum bytes queued for sending on one stream.
const MAX_WAITING_BYTES: usize = 64 * 1024;

/// Future of an exchange: ready when it is over.
pub(crate) type Answering = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The stream was reset or its connection ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Broken;

impl From<h2::Error> for Broken {
    fn from(_: h2::Error) -> Self {
        Self
    }
}

/// How a request is counted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Http,
    Grpc,
    /// Not at all: reading counters or service descriptions must not change them.
    Uncounted,
}

impl Kind {
    fn tally(self, worker: &Context) -> Option<&ProtocolTally> {
        match self {
            Self::Http => Some(&worker.tally.http2),
            Self::Grpc => Some(&worker.tally.grpc),
            Self::Uncounted => None,
        }
    }
}

/// A request and its response. If dropped before it is answered, it counts as failed.
pub(crate) struct Exchange {
    pub respond: SendResponse<Bytes>,
    pub worker: Arc<Context>,
    timers: Timers,
    kind: Kind,
    progress: Progress,
}

impl Exchange {
    pub(super) fn new(
        respond: SendResponse<Bytes>,
        kind: Kind,
        worker: &Arc<Context>,
        timers: &Timers,
    ) -> Self {
        Self {
            respond,
            worker: Arc::clone(worker),
            timers: timers.clone(),
            kind,
            progress: Progress::Receiving,
        }
    }

    /// Waits for this long, or until the client resets the response stream or the request.
    pub(crate) async fn delay(
        &mut self,
        delay_ns: u64,
        stream: Option<&mut SendStream<Bytes>>,
    ) -> Result<(), Broken> {
        if delay_ns == 0 {
            return Ok(());
        }
        let mut wait = pin!(self.timers.wait(self.worker.now_ns(), delay_ns));
        let respond = &mut self.respond;
        let mut stream = stream;
        poll_fn(|context| {
            let reset = match &mut stream {
                Some(stream) => stream.poll_reset(context),
                None => respond.poll_reset(context),
            };
            match reset {
                Poll::Ready(_) => Poll::Ready(Err(Broken)),
                Poll::Pending => wait.as_mut().poll(context).map(Ok),
            }
        })
        .await
    }

    /// The request was read completely.
    pub(crate) fn received(&mut self) {
        let Self { kind, worker, progress, .. } = self;
        if let Some(tally) = kind.tally(worker) {
            tally.received(progress);
        }
    }

    /// The whole response is being sent.
    pub(crate) fn answered(&mut self) {
        self.received();
        self.progress = Progress::Answered;
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if let Some(tally) = self.kind.tally(&self.worker) {
            tally.ended(self.progress);
        }
    }
}

/// Sends content as fast as the client's window allows. `ends`: the stream ends with it.
pub(crate) async fn send_content(
    stream: &mut SendStream<Bytes>,
    outbox: &Outbox,
    mut content: Content,
    ends: bool,
) -> Result<(), Broken> {
    while content.bytes() > 0 {
        poll_fn(|context| outbox.poll_room(context)).await;
        let piece = content.take(capacity(stream, content.bytes()).await?);
        stream.send_data(outbox.put(piece), ends && content.bytes() == 0)?;
    }
    Ok(())
}

/// How many of the remaining bytes may be sent now: at least one, once the client opens its window.
async fn capacity(stream: &mut SendStream<Bytes>, left: u64) -> Result<usize, Broken> {
    let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(MAX_WAITING_BYTES);
    stream.reserve_capacity(wanted);
    poll_fn(|context| poll_capacity(stream, wanted, context)).await
}

fn poll_capacity(
    stream: &mut SendStream<Bytes>,
    wanted: usize,
    context: &mut task::Context<'_>,
) -> Poll<Result<usize, Broken>> {
    loop {
        let capacity = stream.capacity().min(wanted);
        if capacity > 0 {
            return Poll::Ready(Ok(capacity));
        }
        match stream.poll_capacity(context) {
            Poll::Ready(Some(Ok(_))) => {}
            Poll::Ready(None | Some(Err(_))) => return Poll::Ready(Err(Broken)),
            Poll::Pending => return Poll::Pending,
        }
    }
}

//! One request of HTTP/2 or HTTP/3, counted whatever happens to it.

use super::context::Context;
use super::outbox::Outbox;
use super::timers::Timers;
use crate::content::Content;
use crate::counters::{Progress, ProtocolTally};
use bytes::Bytes;
use h2::server::SendResponse;
use h2::{RecvStream, SendStream};
use http::Response;
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

/// The response to a request, of whichever version.
pub(crate) trait Respond: Send + 'static {
    /// Its content.
    type Sending: Sending;

    /// Sends a head that the response's own follows.
    fn send_informational(&mut self, head: Response<()>) -> Result<(), Broken>;

    /// Sends the head. `ends`: there is no content.
    fn send_response(&mut self, head: Response<()>, ends: bool) -> Result<Self::Sending, Broken>;

    /// Ready once the client has given up the request.
    fn poll_reset(&mut self, context: &mut task::Context<'_>) -> Poll<()>;
}

/// The content of a response.
pub(crate) trait Sending: Send + 'static {
    /// Pieces are dropped when they are written: see [`Outbox`].
    const DROPS_WRITTEN: bool;

    /// Ready once the client has given up the response.
    fn poll_reset(&mut self, context: &mut task::Context<'_>) -> Poll<()>;

    /// Asks for room for this many bytes.
    fn reserve(&mut self, bytes: usize);

    /// Bytes that may be sent now.
    fn capacity(&self) -> usize;

    /// Ready once there is more room.
    fn poll_capacity(&mut self, context: &mut task::Context<'_>) -> Poll<Result<(), Broken>>;

    /// Sends a piece, for which there must be room.
    fn send_data(&mut self, piece: Bytes, ends: bool) -> Result<(), Broken>;
}

/// The content of a request.
pub(crate) trait Receiving: Send + 'static {
    /// True if nothing follows.
    fn is_end(&self) -> bool;

    /// The next piece, for which the client may send others; `None` at the end.
    fn poll_data(&mut self, context: &mut task::Context<'_>) -> Poll<Option<Result<Bytes, Broken>>>;
}

impl Respond for SendResponse<Bytes> {
    type Sending = SendStream<Bytes>;

    fn send_informational(&mut self, head: Response<()>) -> Result<(), Broken> {
        Ok(self.send_informational(head)?)
    }

    fn send_response(&mut self, head: Response<()>, ends: bool) -> Result<SendStream<Bytes>, Broken> {
        Ok(self.send_response(head, ends)?)
    }

    fn poll_reset(&mut self, context: &mut task::Context<'_>) -> Poll<()> {
        self.poll_reset(context).map(drop)
    }
}

impl Sending for SendStream<Bytes> {
    const DROPS_WRITTEN: bool = true;

    fn poll_reset(&mut self, context: &mut task::Context<'_>) -> Poll<()> {
        self.poll_reset(context).map(drop)
    }

    fn reserve(&mut self, bytes: usize) {
        self.reserve_capacity(bytes);
    }

    fn capacity(&self) -> usize {
        self.capacity()
    }

    fn poll_capacity(&mut self, context: &mut task::Context<'_>) -> Poll<Result<(), Broken>> {
        self.poll_capacity(context).map(|capacity| match capacity {
            Some(Ok(_)) => Ok(()),
            None | Some(Err(_)) => Err(Broken),
        })
    }

    fn send_data(&mut self, piece: Bytes, ends: bool) -> Result<(), Broken> {
        Ok(self.send_data(piece, ends)?)
    }
}

impl Receiving for RecvStream {
    fn is_end(&self) -> bool {
        self.is_end_stream()
    }

    fn poll_data(&mut self, context: &mut task::Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        match self.poll_data(context) {
            Poll::Ready(Some(Ok(bytes))) => {
                let released = self.flow_control().release_capacity(bytes.len());
                Poll::Ready(Some(released.map(|()| bytes).map_err(Broken::from)))
            }
            Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(error.into()))),
            Poll::Ready(None) => {
                self.poll_trailers(context).map(|trailers| trailers.err().map(|error| Err(error.into())))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

/// How a request is counted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Http2,
    Http3,
    Grpc,
    /// Not at all: reading counters or service descriptions must not change them.
    Uncounted,
}

impl Kind {
    fn tally(self, worker: &Context) -> Option<&ProtocolTally> {
        match self {
            Self::Http2 => Some(&worker.tally.http2),
            Self::Http3 => Some(&worker.tally.http3),
            Self::Grpc => Some(&worker.tally.grpc),
            Self::Uncounted => None,
        }
    }
}

/// A request and its response. If dropped before it is answered, it counts as failed.
pub(crate) struct Exchange<R = SendResponse<Bytes>> {
    pub respond: R,
    pub worker: Arc<Context>,
    timers: Timers,
    kind: Kind,
    progress: Progress,
}

impl<R: Respond> Exchange<R> {
    pub(crate) fn new(respond: R, kind: Kind, worker: &Arc<Context>, timers: &Timers) -> Self {
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
        stream: Option<&mut R::Sending>,
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
                Poll::Ready(()) => Poll::Ready(Err(Broken)),
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

impl<R> Drop for Exchange<R> {
    fn drop(&mut self) {
        if let Some(tally) = self.kind.tally(&self.worker) {
            tally.ended(self.progress);
        }
    }
}

/// Sends content as fast as the client's window allows. `ends`: the stream ends with it.
pub(crate) async fn send_content<S: Sending>(
    stream: &mut S,
    outbox: &Outbox,
    mut content: Content,
    ends: bool,
) -> Result<(), Broken> {
    while content.bytes() > 0 {
        poll_fn(|context| outbox.poll_room(context)).await;
        let piece = content.take(capacity(stream, content.bytes()).await?);
        let piece = if S::DROPS_WRITTEN { outbox.put(piece) } else { piece };
        stream.send_data(piece, ends && content.bytes() == 0)?;
    }
    Ok(())
}

/// How many of the remaining bytes may be sent now: at least one, once the client opens its window.
async fn capacity<S: Sending>(stream: &mut S, left: u64) -> Result<usize, Broken> {
    let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(MAX_WAITING_BYTES);
    stream.reserve(wanted);
    poll_fn(|context| poll_capacity(stream, wanted, context)).await
}

fn poll_capacity<S: Sending>(
    stream: &mut S,
    wanted: usize,
    context: &mut task::Context<'_>,
) -> Poll<Result<usize, Broken>> {
    loop {
        let capacity = stream.capacity().min(wanted);
        if capacity > 0 {
            return Poll::Ready(Ok(capacity));
        }
        match stream.poll_capacity(context) {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(broken)) => return Poll::Ready(Err(broken)),
            Poll::Pending => return Poll::Pending,
        }
    }
}

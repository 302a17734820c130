//! The streams of requests between a connection and its exchanges, which hold one end of each.

use crate::http2::exchange::{Broken, Receiving, Respond, Sending};
use bytes::Bytes;
use http::Response;
use http3::{frame, qpack};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Maximum bytes of a response that wait with its stream.
const MAX_WAITING_BYTES: usize = 64 * 1024;

/// The streams of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Streams(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    open: BTreeMap<u64, Stream>,
    /// Streams with something for the transport.
    changed: VecDeque<u64>,
}

#[derive(Debug, Default)]
struct Stream {
    /// Content of the request that is not taken yet.
    content: VecDeque<Bytes>,
    /// The request is complete.
    is_whole: bool,
    /// The client has given it up, or the connection is over.
    is_broken: bool,
    receiver: Option<Waker>,
    /// Frames for the transport, and whether the response ends with them.
    frames: Vec<Bytes>,
    frames_bytes: usize,
    ends: bool,
    /// The transport has no room for what it was given last.
    is_full: bool,
    sender: Option<Waker>,
    /// Its exchange is over.
    is_over: bool,
}

/// What a stream has for the transport.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) id: u64,
    pub(super) frames: Vec<Bytes>,
    /// The response ends with these frames.
    pub(super) ends: bool,
    /// The exchange is over without the end of the response.
    pub(super) is_abandoned: bool,
    /// The response is sent, but the request was not read to its end.
    pub(super) is_unread: bool,
}

impl Streams {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a stream, whose exchange is about to begin.
    pub(super) fn add(&self, id: u64) {
        self.inner().open.insert(id, Stream::default());
    }

    /// The ends of a stream for its exchange.
    pub(super) fn ends(&self, id: u64) -> (Responder, Body) {
        let (responder, body) = (self.clone(), self.clone());
        (Responder { streams: responder, id }, Body { streams: body, id })
    }

    /// Lets a stream that is still open change, and wakes its exchange.
    fn wake(&self, id: u64, change: impl FnOnce(&mut Stream)) {
        let wakers = self.inner().open.get_mut(&id).map(|stream| {
            change(stream);
            [stream.receiver.take(), stream.sender.take()]
        });
        wakers.into_iter().flatten().flatten().for_each(Waker::wake);
    }

    /// Content of a request.
    pub(super) fn content(&self, id: u64, content: &[u8]) {
        self.wake(id, |stream| stream.content.push_back(Bytes::copy_from_slice(content)));
    }

    /// A request is complete.
    pub(super) fn whole(&self, id: u64) {
        self.wake(id, |stream| stream.is_whole = true);
    }

    /// The client has given up a request.
    pub(super) fn broken(&self, id: u64) {
        self.wake(id, |stream| stream.is_broken = true);
    }

    /// The transport has, or has no, room for more of a stream.
    pub(super) fn full(&self, id: u64, is_full: bool) {
        if is_full {
            if let Some(stream) = self.inner().open.get_mut(&id) {
                stream.is_full = true;
            }
        } else {
            self.wake(id, |stream| stream.is_full = false);
        }
    }

    /// The next stream that has something for the transport.
    pub(super) fn next_change(&self) -> Option<Change> {
        let mut inner = self.inner();
        loop {
            let id = inner.changed.pop_front()?;
            let Some(stream) = inner.open.get_mut(&id) else { continue };
            let frames = std::mem::take(&mut stream.frames);
            stream.frames_bytes = 0;
            let Stream { ends, is_over, is_whole, is_broken, .. } = *stream;
            if is_over {
                inner.open.remove(&id);
            }
            return Some(Change {
                id,
                frames,
                ends,
                is_abandoned: is_over && !ends && !is_broken,
                is_unread: is_over && !is_whole && !is_broken,
            });
        }
    }

    fn push(&self, id: u64, frames: [Bytes; 2], ends: bool) -> Result<(), Broken> {
        let mut inner = self.inner();
        let stream = inner.open.get_mut(&id).filter(|stream| !stream.is_broken).ok_or(Broken)?;
        for frame in frames.into_iter().filter(|frame| !frame.is_empty()) {
            stream.frames_bytes += frame.len();
            stream.frames.push(frame);
        }
        stream.ends |= ends;
        inner.changed.push_back(id);
        Ok(())
    }
}

/// Answers a request.
#[derive(Debug)]
pub(super) struct Responder {
    streams: Streams,
    id: u64,
}

impl Drop for Responder {
    fn drop(&mut self) {
        let mut inner = self.streams.inner();
        if let Some(stream) = inner.open.get_mut(&self.id) {
            stream.is_over = true;
            inner.changed.push_back(self.id);
        }
    }
}

fn head(response: &Response<()>) -> Bytes {
    let mut out = Vec::with_capacity(64);
    frame::push_fields(&mut out, |out| {
        qpack::begin(out);
        qpack::push(b":status", response.status().as_str().as_bytes(), false, out);
        for (name, value) in response.headers() {
            qpack::push(name.as_str().as_bytes(), value.as_bytes(), false, out);
        }
    });
    out.into()
}

impl Respond for Responder {
    type Sending = Content;

    fn send_informational(&mut self, response: Response<()>) -> Result<(), Broken> {
        self.streams.push(self.id, [head(&response), Bytes::new()], false)
    }

    fn send_response(&mut self, response: Response<()>, ends: bool) -> Result<Content, Broken> {
        self.streams.push(self.id, [head(&response), Bytes::new()], ends)?;
        Ok(Content { streams: self.streams.clone(), id: self.id })
    }

    fn poll_reset(&mut self, context: &mut Context<'_>) -> Poll<()> {
        poll_reset(&self.streams, self.id, context)
    }
}

fn poll_reset(streams: &Streams, id: u64, context: &mut Context<'_>) -> Poll<()> {
    match streams.inner().open.get_mut(&id) {
        Some(stream) if !stream.is_broken => {
            stream.receiver = Some(context.waker().clone());
            Poll::Pending
        }
        _ => Poll::Ready(()),
    }
}

/// The content of a response.
#[derive(Debug)]
pub(super) struct Content {
    streams: Streams,
    id: u64,
}

impl Sending for Content {
    // The transport keeps them until they are acknowledged.
    const DROPS_WRITTEN: bool = false;

    fn poll_reset(&mut self, context: &mut Context<'_>) -> Poll<()> {
        poll_reset(&self.streams, self.id, context)
    }

    fn reserve(&mut self, _: usize) {}

    fn capacity(&self) -> usize {
        match self.streams.inner().open.get(&self.id) {
            Some(stream) if !stream.is_full => MAX_WAITING_BYTES.saturating_sub(stream.frames_bytes),
            _ => 0,
        }
    }

    fn poll_capacity(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        let mut inner = self.streams.inner();
        let Some(stream) = inner.open.get_mut(&self.id).filter(|stream| !stream.is_broken) else {
            return Poll::Ready(Err(Broken));
        };
        if !stream.is_full && stream.frames_bytes < MAX_WAITING_BYTES {
            return Poll::Ready(Ok(()));
        }
        stream.sender = Some(context.waker().clone());
        Poll::Pending
    }

    fn send_data(&mut self, piece: Bytes, ends: bool) -> Result<(), Broken> {
        let mut head = Vec::with_capacity(9);
        frame::push_head(frame::kind::DATA, piece.len() as u64, &mut head);
        self.streams.push(self.id, [head.into(), piece], ends)
    }
}

/// The content of a request.
#[derive(Debug)]
pub(super) struct Body {
    streams: Streams,
    id: u64,
}

impl Receiving for Body {
    fn is_end(&self) -> bool {
        let inner = self.streams.inner();
        inner.open.get(&self.id).is_some_and(|stream| stream.is_whole && stream.content.is_empty())
    }

    fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        let mut inner = self.streams.inner();
        match inner.open.get_mut(&self.id) {
            Some(stream) if !stream.is_broken => match stream.content.pop_front() {
                Some(content) => Poll::Ready(Some(Ok(content))),
                None if stream.is_whole => Poll::Ready(None),
                None => {
                    stream.receiver = Some(context.waker().clone());
                    Poll::Pending
                }
            },
            _ => Poll::Ready(Some(Err(Broken))),
        }
    }
}

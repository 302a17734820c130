//! Bodies of requests and responses over HTTP/2.

use super::exchange::Exchange;
use crate::content::Content;
use bytes::Bytes;
use http::HeaderMap;
use hyper::body::{Body, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A body: content, followed by trailers.
#[derive(Debug, Default)]
pub(crate) struct FilledBody {
    content: Content,
    trailers: Option<HeaderMap>,
    /// Of a response: the request, which counts as answered once everything is taken.
    exchange: Option<Exchange>,
}

impl FilledBody {
    pub(crate) fn new(content: Content) -> Self {
        Self { content, ..Self::default() }
    }

    pub(crate) fn with_trailers(self, trailers: HeaderMap) -> Self {
        Self { trailers: Some(trailers), ..self }
    }

    pub(crate) fn answering(self, exchange: Exchange) -> Self {
        let mut body = Self { exchange: Some(exchange), ..self };
        body.note_end();
        body
    }

    fn take(&mut self) -> Option<Frame<Bytes>> {
        if self.content.bytes() > 0 {
            return Some(Frame::data(self.content.take(usize::MAX)));
        }
        self.trailers.take().map(Frame::trailers)
    }

    fn note_end(&mut self) {
        if self.is_end_stream()
            && let Some(exchange) = &mut self.exchange
        {
            exchange.answered();
        }
    }
}

impl Body for FilledBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame = self.take();
        self.note_end();
        Poll::Ready(frame.map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.content.bytes() == 0 && self.trailers.is_none()
    }

    /// gRPC bodies, which end with trailers, do not announce their length.
    fn size_hint(&self) -> SizeHint {
        match self.trailers {
            Some(_) => SizeHint::default(),
            None => SizeHint::with_exact(self.content.bytes()),
        }
    }
}

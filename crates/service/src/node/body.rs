//! Filler bodies of requests and responses. Long ones are sent from a static text, not copied.

use super::exchange::Exchange;
use crate::grpc::FilledMessage;
use crate::http2::filler_piece;
use crate::response::FILLER_BYTES;
use bytes::Bytes;
use http::HeaderMap;
use hyper::body::{Body, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A body: bytes, followed by filler, followed by trailers.
#[derive(Debug, Default)]
pub(crate) struct FillerBody {
    head: Bytes,
    filler_at: u64,
    filler_left: u64,
    trailers: Option<HeaderMap>,
}

impl FillerBody {
    pub(crate) fn filler(length: u64) -> Self {
        Self { filler_left: length, ..Self::default() }
    }

    pub(crate) fn text(text: String) -> Self {
        Self { head: text.into(), ..Self::default() }
    }

    /// A gRPC message.
    pub(crate) fn message(message: FilledMessage) -> Self {
        let FilledMessage { head, filler_at, filler_left } = message;
        Self { head, filler_at, filler_left, ..Self::default() }
    }

    pub(crate) fn with_trailers(self, trailers: HeaderMap) -> Self {
        Self { trailers: Some(trailers), ..self }
    }

    pub(crate) fn answering(self, exchange: Exchange) -> ReplyBody {
        ReplyBody { body: self, exchange }
    }

    fn take(&mut self) -> Option<Frame<Bytes>> {
        if !self.head.is_empty() {
            return Some(Frame::data(std::mem::take(&mut self.head)));
        }
        if self.filler_left > 0 {
            let piece = filler_piece(self.filler_at, self.filler_left.min(FILLER_BYTES as u64) as usize);
            self.filler_at += piece.len() as u64;
            self.filler_left -= piece.len() as u64;
            return Some(Frame::data(piece));
        }
        self.trailers.take().map(Frame::trailers)
    }
}

impl Body for FillerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.take().map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.head.is_empty() && self.filler_left == 0 && self.trailers.is_none()
    }

    /// gRPC bodies, which end with trailers, do not announce their length.
    fn size_hint(&self) -> SizeHint {
        match self.trailers {
            Some(_) => SizeHint::default(),
            None => SizeHint::with_exact(self.head.len() as u64 + self.filler_left),
        }
    }
}

/// The body of a response. Its request counts as answered once everything is taken.
#[derive(Debug)]
pub(crate) struct ReplyBody {
    body: FillerBody,
    exchange: Exchange,
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for ReplyBody {
    fn drop(&mut self) {
        if self.body.is_end_stream() {
            self.exchange.answered();
        }
    }
}

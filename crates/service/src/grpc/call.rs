//! A gRPC call: messages in, messages out, a status at the end.
//!
//! Each message is preceded by five bytes: a compression flag and its length (grpc/grpc,
//! `doc/PROTOCOL-HTTP2.md`).

use super::message::{PREFIX_BYTES, message_with_filler};
use super::status::{Code, Status};
use crate::http2::context::Held;
use crate::http2::exchange::{Broken, Exchange, send_content};
use crate::http2::outbox::Outbox;
use bytes::{Buf as _, Bytes, BytesMut};
use h2::{RecvStream, SendStream};
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Response};
use prost::Message;
use std::future::poll_fn;

/// Maximum size of a received message, bytes.
const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// Why a call ended before its method was finished.
#[derive(Debug)]
pub(super) enum Failure {
    /// The client disconnected.
    Broken,
    /// The client gets this status.
    Status(Status),
}

impl From<Broken> for Failure {
    fn from(_: Broken) -> Self {
        Self::Broken
    }
}

impl From<h2::Error> for Failure {
    fn from(_: h2::Error) -> Self {
        Self::Broken
    }
}

/// A gRPC call in progress.
pub(super) struct Call {
    exchange: Exchange,
    body: RecvStream,
    /// Received and unused bytes: less than one message plus the bytes that came with its end.
    buffer: BytesMut,
    /// Memory accounted for the message being received.
    held: Held,
    stream: Option<SendStream<Bytes>>,
    outbox: Outbox,
}

impl Call {
    pub(super) fn new(exchange: Exchange, body: RecvStream) -> Self {
        let held = Held::none(&exchange.worker);
        Self { exchange, body, buffer: BytesMut::new(), held, stream: None, outbox: Outbox::default() }
    }

    /// The next message; `None` after the client's last one.
    pub(super) async fn receive<M: Message + Default>(&mut self) -> Result<Option<M>, Failure> {
        loop {
            if let Some(message) = self.take_message()? {
                return M::decode(message).map(Some).map_err(|error| {
                    Failure::Status(Status::new(Code::InvalidArgument, format!("the message: {error}")))
                });
            }
            match self.body.data().await {
                Some(bytes) => {
                    let bytes = bytes?;
                    self.body.flow_control().release_capacity(bytes.len())?;
                    self.buffer.extend_from_slice(&bytes);
                }
                None if self.buffer.is_empty() => {
                    self.body.trailers().await?;
                    self.exchange.received();
                    return Ok(None);
                }
                None => {
                    let status = Status::new(Code::InvalidArgument, "the last message is not whole");
                    return Err(Failure::Status(status));
                }
            }
        }
    }

    /// The only message, after which the client must not send another.
    pub(super) async fn receive_only<M: Message + Default>(&mut self) -> Result<M, Failure> {
        let expected_one = || Failure::Status(Status::new(Code::InvalidArgument, "expected one message"));
        let message = self.receive().await?.ok_or_else(expected_one)?;
        match self.receive::<M>().await? {
            None => Ok(message),
            Some(_) => Err(expected_one()),
        }
    }

    /// Takes a message from the buffer if it is complete. Memory is accounted only while a partial message is
    /// buffered.
    fn take_message(&mut self) -> Result<Option<Bytes>, Failure> {
        self.held.resize(0);
        let Some((prefix, rest)) = self.buffer.split_first_chunk::<PREFIX_BYTES>() else { return Ok(None) };
        let failed = |code, message: &'static str| Err(Failure::Status(Status::new(code, message)));
        if prefix[0] != 0 {
            return failed(Code::Unimplemented, "compressed messages are not read here");
        }
        let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]) as usize;
        if length > MAX_MESSAGE_BYTES {
            return failed(Code::ResourceExhausted, "a message is longer than 16 MiB");
        }
        if rest.len() >= length {
            self.buffer.advance(PREFIX_BYTES);
            return Ok(Some(self.buffer.split_to(length).freeze()));
        }
        if !self.held.resize(length) {
            return failed(Code::ResourceExhausted, "too many unfinished messages");
        }
        self.buffer.reserve(PREFIX_BYTES + length - self.buffer.len());
        Ok(None)
    }

    /// Waits for this long, or fails if the client disconnects.
    pub(super) async fn delay(&mut self, delay_ns: u64) -> Result<(), Failure> {
        Ok(self.exchange.delay(delay_ns, self.stream.as_mut()).await?)
    }

    /// Counts an injected error.
    pub(super) fn count_error(&self) {
        self.exchange.worker.tally.errors.add(1);
    }

    /// Sends a message.
    pub(super) async fn send(&mut self, message: &impl Message) -> Result<(), Failure> {
        self.send_with_filler(message, None).await
    }

    /// Sends a message followed by a bytes field of filler, given by its number and length. Long filler is
    /// not copied.
    pub(super) async fn send_with_filler(
        &mut self,
        message: &impl Message,
        filler: Option<(u32, u64)>,
    ) -> Result<(), Failure> {
        let Some(message) = message_with_filler(message, filler) else {
            let status = Status::new(Code::InvalidArgument, "no message can be so long");
            return Err(Failure::Status(status));
        };
        let outbox = self.outbox.clone();
        Ok(send_content(self.open()?, &outbox, message, false).await?)
    }

    /// Waits until the client resets the stream.
    pub(super) async fn wait_for_reset(&mut self) -> Failure {
        if let Ok(stream) = self.open() {
            let _ = poll_fn(|context| stream.poll_reset(context)).await;
        }
        Failure::Broken
    }

    /// The response stream, after its head.
    fn open(&mut self) -> Result<&mut SendStream<Bytes>, Failure> {
        if self.stream.is_none() {
            self.stream = Some(self.exchange.respond.send_response(head(), false)?);
        }
        Ok(self.stream.as_mut().expect("it was just put there"))
    }

    /// Ends the call with the status in trailers, or in the head if no message was sent.
    pub(super) fn end(mut self, status: &Status) {
        let sent = if let Some(stream) = &mut self.stream {
            let mut trailers = HeaderMap::with_capacity(2);
            status.write(&mut trailers);
            stream.send_trailers(trailers)
        } else {
            let mut response = head();
            status.write(response.headers_mut());
            self.exchange.respond.send_response(response, true).map(drop)
        };
        if sent.is_ok() {
            self.exchange.answered();
        }
    }
}

/// The head of a response.
pub(crate) fn head() -> Response<()> {
    let mut response = Response::new(());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    response
}

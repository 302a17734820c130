//! The service that receives the load: `proto/meshmeter/v1/echo.proto` describes each method.

use super::call::{Call, Failure};
use super::status::{Code, MAX_CODE, Status};
use crate::compute::compute;
use crate::settings::Answer;
use bytes::Bytes;

pub(super) const SERVICE: &str = "meshmeter.v1.Echo";
/// Number of the field `payload` in `EchoRequest` and `EchoReply`.
pub(crate) const PAYLOAD_FIELD: u32 = 1;

/// The `.proto` file that describes the service, for clients without reflection.
pub const PROTO: &str = include_str!("../../proto/meshmeter/v1/echo.proto");

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Method {
    Unary,
    ServerStreaming,
    ClientStreaming,
    BidiStreaming,
}

impl Method {
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "Unary" => Self::Unary,
            "ServerStreaming" => Self::ServerStreaming,
            "ClientStreaming" => Self::ClientStreaming,
            "BidiStreaming" => Self::BidiStreaming,
            _ => return None,
        })
    }
}

/// `meshmeter.v1.EchoRequest`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct EchoRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub payload: Bytes,
    #[prost(uint64, optional, tag = "2")]
    pub reply_bytes: Option<u64>,
    #[prost(uint32, optional, tag = "3")]
    pub replies: Option<u32>,
    #[prost(uint64, optional, tag = "4")]
    pub delay_us: Option<u64>,
    #[prost(uint32, optional, tag = "5")]
    pub status: Option<u32>,
}

/// `meshmeter.v1.EchoReply` without its payload, which is not copied if it is long.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct EchoReply {
    #[prost(uint64, tag = "2")]
    pub requests: u64,
    #[prost(uint64, tag = "3")]
    pub request_bytes: u64,
}

/// Runs a call to its end.
pub(super) async fn answer(
    call: &mut Call,
    method: Method,
    answer: Answer,
    fails: bool,
) -> Result<(), Failure> {
    let mut echo = Echo { call, defaults: answer, fails, reply: EchoReply::default() };
    match method {
        Method::Unary => {
            let request: EchoRequest = echo.call.receive_only().await?;
            echo.note(&request);
            echo.reply_once(&request).await
        }
        Method::ServerStreaming => {
            let request: EchoRequest = echo.call.receive_only().await?;
            echo.note(&request);
            echo.reply(&request).await?;
            echo.end(&request)
        }
        Method::ClientStreaming => {
            let mut last = EchoRequest::default();
            while let Some(request) = echo.call.receive().await? {
                echo.note(&request);
                last = request;
            }
            echo.reply_once(&last).await
        }
        Method::BidiStreaming => {
            let mut last = EchoRequest::default();
            while let Some(request) = echo.call.receive::<EchoRequest>().await? {
                echo.note(&request);
                echo.reply(&request).await?;
                if request.status.is_some_and(|status| status != 0) {
                    return echo.end(&request);
                }
                last = request;
            }
            echo.end(&last)
        }
    }
}

/// A call of this service.
struct Echo<'c> {
    call: &'c mut Call,
    defaults: Answer,
    /// The call is selected for an injected error; ignored if it requests a status of its own.
    fails: bool,
    reply: EchoReply,
}

impl Echo<'_> {
    fn note(&mut self, request: &EchoRequest) {
        self.reply.requests += 1;
        self.reply.request_bytes += request.payload.len() as u64;
    }

    /// Sends the only reply, or a status instead.
    async fn reply_once(&mut self, request: &EchoRequest) -> Result<(), Failure> {
        self.wait(request).await?;
        self.end(request)?;
        self.send(request).await
    }

    /// Sends all replies to a request of a server-streaming method.
    async fn reply(&mut self, request: &EchoRequest) -> Result<(), Failure> {
        for _ in 0..request.replies.unwrap_or(1) {
            self.wait(request).await?;
            self.send(request).await?;
        }
        Ok(())
    }

    async fn wait(&mut self, request: &EchoRequest) -> Result<(), Failure> {
        let delay_ns =
            request.delay_us.map_or(self.defaults.delay_ns(), |delay_us| delay_us.saturating_mul(1000));
        self.call.delay(delay_ns).await?;
        compute(self.defaults.cpu_time);
        Ok(())
    }

    async fn send(&mut self, request: &EchoRequest) -> Result<(), Failure> {
        let payload_bytes = request.reply_bytes.unwrap_or(self.defaults.body_bytes);
        self.call.send_with_filler(&self.reply, Some((PAYLOAD_FIELD, payload_bytes))).await
    }

    /// The final status of the call.
    fn end(&self, request: &EchoRequest) -> Result<(), Failure> {
        match request.status {
            None if self.fails => {
                self.call.count_error();
                Err(Failure::Status(Status::new(Code::Internal, "injected error")))
            }
            None | Some(0) => Ok(()),
            Some(code @ 1..=MAX_CODE) => Err(Failure::Status(Status::asked_for(code))),
            Some(code) => {
                let message = format!("expected a status from 0 to {MAX_CODE}, not {code}");
                Err(Failure::Status(Status::new(Code::InvalidArgument, message)))
            }
        }
    }
}

//! The load engine: sends requests on a schedule and measures the answers from the instant at which each was due.
//!
//! Read [`engine`] for the course of a run, then `worker` for the one loop that every thread runs: it is generic over
//! `schedule` (when is a request due?), `protocol` (what do bytes mean?) and `network` (how do bytes move?). The engine
//! never prints: it tells an [`Observer`] what happens and returns a [`experiment::schema::LoadResult`].
//!
//! Left out for now: HTTP/3.

mod clock;
mod engine;
mod error;
mod network;
mod pacing;
mod protocol;
mod recorder;
mod schedule;
mod second;
mod share;
mod spec;
mod start;
mod target;
mod tls;
mod usage;
mod verdict;
mod worker;

pub use engine::{Observer, Progress, run};
pub use error::{ErrorKind, LoadError};
pub use experiment::schema::Pacing;
pub use network::NetworkChoice;
pub use protocol::grpc::{CallError, GrpcCall};
pub use protocol::raw::{ExpectedReply, pattern};
pub use schedule::{Arrival, RateStage, ThinkTime, duration_of};
pub use second::{Second, SecondDetail};
pub use share::GeneratorShare;
pub use spec::{LoadSpec, Protocol, ScheduleSpec};
pub use start::{Start, StartSignal};
pub use target::{
    Choice, Family, Numbers, Order, RangeError, Request, RequestTemplate, ServerPer, Target, TargetError,
    Targets, Text, resolve,
};
pub use tls::{ClientIdentity, Handshakes, TlsClient, TlsError, TlsVersion, Verification};

/// Greatest rate that may be offered, requests a second.
pub const MAX_RATE: f64 = 10_000_000.0;
/// How late economical pacing may usually send a request, unless it is told otherwise.
pub const DEFAULT_LAG_TOLERANCE: std::time::Duration = std::time::Duration::from_micros(100);
/// Largest body of a request, bytes.
pub const MAX_BODY_BYTES: u64 = 64 * 1024 * 1024;

/// The parser of HTTP/1.1 responses, exposed to be fuzzed and benchmarked.
pub mod http1 {
    pub use crate::protocol::http1::ResponseParser;
    pub use crate::protocol::{Parsed, ProtocolError, ResponseEnd};
}

/// A client's side of HTTP/2 connections, exposed to be fuzzed.
pub mod http2 {
    pub use crate::protocol::http2::{CommonFields, Http2Connection, Http2Request};
    pub use crate::protocol::{Parsed, ProtocolError, ResponseEnd};
}

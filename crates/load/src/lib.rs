//! The load engine: sends requests on a schedule and measures each response from the instant at which its
//! request was due.
//!
//! Read [`engine`] for the phases of a run, then `worker` for the loop that every thread runs. It is generic
//! over `schedule` (when is a request due?), `protocol` (what do bytes mean?) and `network` (how do bytes
//! move?). The engine never prints: it reports progress to an [`Observer`] and returns a
//! [`results::LoadResult`].
//!
//! Not supported yet: HTTP/3.

mod clock;
mod engine;
mod error;
mod lookups;
mod network;
mod pacing;
mod protocol;
mod recorder;
mod recording;
mod schedule;
mod second;
mod share;
mod source;
mod spec;
mod start;
mod target;
mod tls;
mod usage;
mod verdict;
mod worker;

pub use engine::{Observer, Progress, run};
pub use error::{ErrorKind, LoadError};
pub use lookups::{LookUp, Lookups};
pub use network::{IoBackendChoice, ProxyProtocol};
pub use protocol::grpc::{CallError, GrpcCall};
pub use protocol::raw::{ExpectedReply, pattern};
pub use protocol::websocket::Replies;
pub use recording::{Recording, RecordingError};
pub use schedule::{Arrival, Bursts, ClientStage, RateStage, Replay, ThinkTime, duration_of};
pub use second::{Second, SecondDetail};
pub use share::GeneratorShare;
pub use source::{SourceError, Sources};
pub use spec::{LoadSpec, Opening, Protocol, ScheduleSpec};
pub use start::{Start, StartSignal};
pub use target::{
    Address, Body, Choice, Content, Expectation, Extract, Family, Header, HeaderError, Kind, Numbers, Order,
    Origin, Place, RangeError, Recorded, RecordedRequests, Request, RequestKind, RequestTemplate, Rows,
    ServerPer, SessionKind, Source, Step, Target, TargetError, Targets, Text, UnixSocketError, has_body,
    resolve, resolve_kinds, resolve_recording, shown_url,
};
pub use tls::{ClientIdentity, Handshakes, TlsClient, TlsError, TlsVersion, Verification};

/// Maximum offered rate, requests per second.
pub const MAX_RATE: f64 = 10_000_000.0;
/// Default lag tolerance: how late economical pacing may usually send a request.
pub const DEFAULT_LAG_TOLERANCE: std::time::Duration = std::time::Duration::from_micros(100);
/// Maximum size of a request body, bytes.
pub const MAX_BODY_BYTES: u64 = 64 * 1024 * 1024;

/// The HTTP/1.1 response parser, exposed for fuzzing and benchmarks.
pub mod http1 {
    pub use crate::protocol::http1::ResponseParser;
    pub use crate::protocol::{Parsed, ProtocolError, ResponseEnd};
}

/// The client side of HTTP/2 connections, exposed for fuzzing.
pub mod http2 {
    pub use crate::protocol::http2::{CommonFields, Http2Connection, Http2Request};
    pub use crate::protocol::{Parsed, ProtocolError, ResponseEnd};
    pub use crate::target::Values;
}

/// The client side of WebSocket connections, exposed for fuzzing.
pub mod websocket {
    pub use crate::protocol::websocket::check_connection;
}

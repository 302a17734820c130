//! Settings of a server: where it listens, what it answers, when it stalls, and its limits.

use crate::query::{self, QueryError};
use crate::tls::Tls;
use experiment::topology::distribution::Distribution;
use results::units::{UnitError, parse_duration};
use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::str::FromStr;
use std::time::Duration;

/// Status codes that a response may have: final ones.
pub const STATUSES: std::ops::RangeInclusive<u16> = 200..=599;
/// Maximum number of worker threads: anything greater is taken for a typo.
pub const MAX_THREADS: usize = 1024;

/// Settings of a server.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Addresses and protocols to listen on: at least one.
    pub listeners: Vec<Listener>,
    /// Certificate and key for the listeners with TLS; not needed otherwise.
    pub tls: Option<Tls>,
    /// HTTP/3 beside the one listener for HTTP with TLS: on the same port over UDP.
    pub http3: bool,
    /// Message sizes over raw TCP.
    pub tcp: TcpSizes,
    /// Default response, which the request's query may override.
    pub answer: Answer,
    /// Worker threads, each with its own event loop; the first is the caller of [`crate::Server::run`].
    pub threads: usize,
    /// Periodic stalls, during which nothing is answered.
    pub stall: Option<Stall>,
    /// Maximum number of concurrent connections; above it none is accepted until one ends. `None`: as many as
    /// the limit on open files allows, at most 65 536.
    pub max_connections: Option<usize>,
    /// Close each connection after this many responses.
    pub requests_per_connection: Option<NonZeroU64>,
    /// Close a connection without any activity for this long, unless it waits for a delayed response.
    pub idle_timeout: Duration,
    /// Seed of the choice of injected errors. `None`: a random seed.
    pub seed: Option<u64>,
}

impl Settings {
    /// Settings for an immediate 200 response with an empty body, on one thread, over plaintext HTTP.
    #[must_use]
    pub fn new(address: SocketAddr) -> Self {
        Self {
            listeners: vec![Listener { address, protocol: Protocol::Http, tls: false }],
            tls: None,
            http3: false,
            tcp: TcpSizes::default(),
            answer: Answer::default(),
            threads: 1,
            stall: None,
            max_connections: None,
            requests_per_connection: None,
            idle_timeout: Duration::from_secs(300),
            seed: None,
        }
    }
}

/// An address to listen on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Listener {
    /// Port 0 selects a free one.
    pub address: SocketAddr,
    /// Protocol of the listener.
    pub protocol: Protocol,
    /// Whether all of its connections use TLS.
    pub tls: bool,
}

/// The listener as a URL prefix, such as `http://127.0.0.1:8080`.
impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match (self.protocol, self.tls) {
            (Protocol::Http, false) => "http",
            (Protocol::Http, true) => "https",
            (Protocol::Tcp, false) => "tcp",
            (Protocol::Tcp, true) => "tls",
        };
        write!(f, "{scheme}://{}", self.address)
    }
}

/// Protocol of a listener.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Protocol {
    /// HTTP/1.1 or HTTP/2: with TLS as selected by ALPN, in plaintext by the connection's first bytes.
    Http,
    /// Requests and replies of fixed sizes: [`TcpSizes`].
    Tcp,
}

/// Message sizes over raw TCP. Each complete request gets a reply, of which byte `i` is `i` modulo
/// [`crate::TCP_REPLY_MODULUS`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TcpSizes {
    /// Size of a request, bytes.
    pub request_bytes: NonZeroU64,
    /// Size of a reply, bytes.
    pub reply_bytes: NonZeroU64,
}

impl Default for TcpSizes {
    /// Requests and replies of 1 KiB each.
    fn default() -> Self {
        const KIBIBYTE: NonZeroU64 = NonZeroU64::new(1024).unwrap();
        Self { request_bytes: KIBIBYTE, reply_bytes: KIBIBYTE }
    }
}

/// The response to a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    /// Status code, one of [`STATUSES`].
    pub status: u16,
    /// Size of the body, bytes. Status codes 204 and 304 never have one.
    pub body_bytes: u64,
    /// From the end of the request to the start of the response.
    pub delay: Duration,
    /// Additional CPU time per response, used after the delay. The thread serves no one else meanwhile.
    pub cpu_time: Duration,
    /// Fraction of requests, 0 to 1, that get status 500 instead, with the same delay and size.
    pub error_fraction: f64,
    /// A stream of events instead of the body, if it has any; it begins after the delay.
    pub events: EventSettings,
}

/// The events of a response.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EventSettings {
    /// Number of events; 0: the response is no stream.
    pub count: u64,
    /// From the beginning of the response to the first event, seconds.
    pub first: Distribution,
    /// From one event to the next, seconds. Event k is due after `first` and k gaps, however late the events before it were sent.
    pub gap: Distribution,
    /// Size of the data of an event, bytes.
    pub event_bytes: u64,
}

impl EventSettings {
    /// Maximum size of the data of an event.
    pub const MAX_EVENT_BYTES: u64 = 64 * 1024;
}

impl Default for EventSettings {
    /// No stream.
    fn default() -> Self {
        let none = Distribution::Fixed(0.0);
        Self { count: 0, first: none, gap: none, event_bytes: 16 }
    }
}

impl Default for Answer {
    fn default() -> Self {
        Self {
            status: 200,
            body_bytes: 0,
            delay: Duration::ZERO,
            cpu_time: Duration::ZERO,
            error_fraction: 0.0,
            events: EventSettings::default(),
        }
    }
}

impl Answer {
    /// This answer with the overrides of a request's query: `size`, `delay`, `cpu-time`, `error-rate`,
    /// `status`, and of a stream `events`, `first`, `gap`, `event-bytes`. Other keys are ignored; the last of several equal keys counts.
    ///
    /// # Errors
    /// Returns an error if a value is invalid for its key.
    pub fn with_query(self, query: &str) -> Result<Self, QueryError> {
        query::apply(query, self)
    }
}

/// A periodic time without responses: at the end of every period, counted from the start of the server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Stall {
    length: Duration,
    period: Duration,
}

impl Stall {
    /// A stall of `length` at the end of every `period`.
    ///
    /// # Errors
    /// Returns an error unless the length is above zero and below the period.
    pub fn new(length: Duration, period: Duration) -> Result<Self, StallError> {
        if length.is_zero() || length >= period {
            return Err(StallError::Lengths);
        }
        Ok(Self { length, period })
    }

    /// Remaining time of the stall, at this time after the start; `None` outside of a stall.
    #[must_use]
    pub fn time_left(&self, since_start: Duration) -> Option<Duration> {
        let period_ns = self.period.as_nanos();
        let left_ns = period_ns - since_start.as_nanos() % period_ns;
        (left_ns <= self.length.as_nanos())
            .then(|| Duration::from_nanos(u64::try_from(left_ns).unwrap_or(u64::MAX)))
    }
}

impl FromStr for Stall {
    type Err = StallError;

    /// Parses `1s/10s`: one second in every ten.
    fn from_str(text: &str) -> Result<Self, StallError> {
        let (length, period) = text.split_once('/').ok_or(StallError::Form)?;
        Self::new(parse_duration(length)?, parse_duration(period)?)
    }
}

/// Why a text is not a valid stall.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum StallError {
    /// The `/` is missing.
    #[error("expected a length and a period, for example `1s/10s`")]
    Form,
    /// Length and period do not fit together.
    #[error("expected a length above zero and below the period, for example `1s/10s`")]
    Lengths,
    /// One of the two is not a valid duration.
    #[error(transparent)]
    Duration(#[from] UnitError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stall_is_end_of_every_period() {
        let stall: Stall = "1s/10s".parse().unwrap();
        let ms = Duration::from_millis;
        for (at_ms, left_ms) in [
            (0, None),
            (8_999, None),
            (9_000, Some(1_000)),
            (9_999, Some(1)),
            (10_000, None),
            (19_500, Some(500)),
        ] {
            assert_eq!(stall.time_left(ms(at_ms)), left_ms.map(ms), "{at_ms} ms");
        }
    }

    #[test]
    fn invalid_stall_is_error() {
        assert_eq!("1s".parse::<Stall>(), Err(StallError::Form));
        assert_eq!("2s/2s".parse::<Stall>(), Err(StallError::Lengths));
        assert_eq!("0s/2s".parse::<Stall>(), Err(StallError::Lengths));
        assert!(matches!("1/2".parse::<Stall>(), Err(StallError::Duration(_))));
    }
}

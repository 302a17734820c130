//! What a server is asked for: where it listens, what it answers, when it stalls and what bounds it.

use crate::query::{self, QueryError};
use crate::tls::Tls;
use experiment::units::{UnitError, parse_duration};
use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::str::FromStr;
use std::time::Duration;

/// Statuses that an answer may have: final ones.
pub const STATUSES: std::ops::RangeInclusive<u16> = 200..=599;
/// Most worker threads: more than that is a slip of the pen.
pub const MOST_THREADS: usize = 1024;

/// Settings of a server.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where to listen, and for what: one at least.
    pub listeners: Vec<Listener>,
    /// Certificate and key for the listeners with TLS; nothing else needs it.
    pub tls: Option<Tls>,
    /// What is exchanged over raw TCP.
    pub tcp: TcpSizes,
    /// What to answer where the request's query does not say otherwise.
    pub answer: Answer,
    /// Worker threads, each with an event loop of its own; the first is the caller of [`crate::Server::run`].
    pub threads: usize,
    /// When to stop answering, for a while, again and again.
    pub stall: Option<Stall>,
    /// Most connections at a time, above which none is accepted until one ends. Absent: as many as the limit on open
    /// files allows, and at most 65 536.
    pub max_connections: Option<usize>,
    /// Close each connection after this many answers.
    pub requests_per_connection: Option<NonZeroU64>,
    /// Close a connection on which nothing has moved for this long, unless it waits for a delayed answer.
    pub idle_timeout: Duration,
    /// Seed of the choice of answers that are errors. Absent: another one each time.
    pub seed: Option<u64>,
}

impl Settings {
    /// Settings that answer 200 with an empty body, at once, from one thread, over HTTP in clear text.
    #[must_use]
    pub fn new(address: SocketAddr) -> Self {
        Self {
            listeners: vec![Listener { address, protocol: Protocol::Http, tls: false }],
            tls: None,
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

/// A place to listen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Listener {
    /// Port 0 takes any free one.
    pub address: SocketAddr,
    /// What is spoken there.
    pub protocol: Protocol,
    /// Whether it is spoken over TLS, and nothing without it.
    pub tls: bool,
}

/// The listener as the start of a URL, such as `http://127.0.0.1:8080`.
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

/// What is spoken on a listener.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Protocol {
    /// HTTP/1.1 or HTTP/2: over TLS as ALPN agrees, in clear text as the connection's first bytes say.
    Http,
    /// Requests and replies of fixed sizes: [`TcpSizes`].
    Tcp,
}

/// What is exchanged over raw TCP: after each whole request comes a reply, of which byte `i` is `i` modulo
/// [`crate::TCP_REPLY_MODULUS`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TcpSizes {
    /// Size of a request, bytes.
    pub request_bytes: NonZeroU64,
    /// Size of a reply, bytes.
    pub reply_bytes: NonZeroU64,
}

impl Default for TcpSizes {
    /// 1 KiB each.
    fn default() -> Self {
        const KIBIBYTE: NonZeroU64 = NonZeroU64::new(1024).unwrap();
        Self { request_bytes: KIBIBYTE, reply_bytes: KIBIBYTE }
    }
}

/// What to answer to a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    /// Status code, one of [`STATUSES`].
    pub status: u16,
    /// Size of the body, bytes. Statuses 204 and 304 have none all the same.
    pub body_bytes: u64,
    /// From the end of the request to the start of the answer.
    pub delay: Duration,
    /// CPU that the answer takes beyond its own, after the delay. The thread answers nobody else meanwhile.
    pub cpu_time: Duration,
    /// Fraction of requests, 0 to 1, that are answered with status 500 instead; delay and size stay.
    pub error_fraction: f64,
}

impl Default for Answer {
    fn default() -> Self {
        Self {
            status: 200,
            body_bytes: 0,
            delay: Duration::ZERO,
            cpu_time: Duration::ZERO,
            error_fraction: 0.0,
        }
    }
}

impl Answer {
    /// This answer with what a request's query asks for: `size`, `delay`, `cpu-time`, `error-rate`, `status`. Other keys are
    /// ignored; where a key comes twice, the last one counts.
    ///
    /// # Errors
    /// Where a value is not what its key expects.
    pub fn with_query(self, query: &str) -> Result<Self, QueryError> {
        query::apply(query, self)
    }
}

/// A time without answers, again and again: at the end of every period, counted from the start of the server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Stall {
    length: Duration,
    period: Duration,
}

impl Stall {
    /// A stall of `length` at the end of every `period`.
    ///
    /// # Errors
    /// Where the length is not above zero and below the period.
    pub fn new(length: Duration, period: Duration) -> Result<Self, StallError> {
        if length.is_zero() || length >= period {
            return Err(StallError::Lengths);
        }
        Ok(Self { length, period })
    }

    /// How long the stall still lasts, this long after the start; absent outside of a stall.
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

    /// Reads `1s/10s`: a second in every ten.
    fn from_str(text: &str) -> Result<Self, StallError> {
        let (length, period) = text.split_once('/').ok_or(StallError::Form)?;
        Self::new(parse_duration(length)?, parse_duration(period)?)
    }
}

/// Text that is no stall.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum StallError {
    /// There is no `/`.
    #[error("expected a length and a period, for example `1s/10s`")]
    Form,
    /// The two do not fit.
    #[error("expected a length above zero and below the period, for example `1s/10s`")]
    Lengths,
    /// One of the two is no duration.
    #[error(transparent)]
    Duration(#[from] UnitError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_is_the_end_of_every_period() {
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
    fn a_stall_that_makes_no_sense_is_an_error() {
        assert_eq!("1s".parse::<Stall>(), Err(StallError::Form));
        assert_eq!("2s/2s".parse::<Stall>(), Err(StallError::Lengths));
        assert_eq!("0s/2s".parse::<Stall>(), Err(StallError::Lengths));
        assert!(matches!("1/2".parse::<Stall>(), Err(StallError::Duration(_))));
    }
}

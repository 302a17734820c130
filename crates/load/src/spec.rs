//! The fully resolved specification of a run: the engine applies no defaults.

use crate::clock::{Nanos, SECOND, nanos};
use crate::lookups::Lookups;
use crate::network::{IoBackendChoice, ProxyProtocol};
use crate::protocol::raw::ExpectedReply;
use crate::protocol::websocket::Replies;
use crate::schedule::{Arrival, Bursts, ClientStage, RateProfile, RateStage, Replay, ThinkTime};
use crate::share::{GeneratorShare, part};
use crate::source::Sources;
use crate::start::Start;
use crate::target::{Assignment, Family, ServerPer, Targets};
use crate::tls::TlsClient;
use results::{Arrivals, BurstArrivals, ConnectionSettings, ExpectedStatuses, Pacing, SpokenProtocol};
use std::num::NonZeroU64;
use std::time::Duration;

/// Time allowed for opening a connection while others are opened, including the handshake.
const OPENING_TIME: Duration = Duration::from_millis(10);

/// One run of the generator. With a [`GeneratorShare`], rates, clients, connections and requests are totals
/// over all generators.
#[derive(Clone, Debug)]
pub struct LoadSpec {
    /// The URLs for the result, as [`crate::shown_url`] shows them.
    pub urls: Vec<String>,
    /// The servers and their requests.
    pub targets: Targets,
    /// Protocol on the connections.
    pub protocol: Protocol,
    /// Times at which requests are due.
    pub schedule: ScheduleSpec,
    /// Connections in total; at least one per thread of each generator. With fewer connections than servers,
    /// they are opened and closed on demand. With [`Opening::per_request`]: the maximum at a time.
    pub connections: usize,
    /// The part of the load that this process offers.
    pub share: GeneratorShare,
    /// The way in which connections are opened.
    pub opening: Opening,
    /// Each connection is closed after this many requests and opened again; `None`: never.
    pub requests_per_connection: Option<NonZeroU64>,
    /// Worker threads; at least 1.
    pub threads: usize,
    /// Load before the measured window.
    pub warmup: Duration,
    /// The measured window. Stages last at least as long; what lies beyond it is not run. A fixed number of
    /// requests of a closed loop may end it early.
    pub duration: Duration,
    /// Limit on opening a connection, including the TLS handshake, and on each request from its actual send.
    pub timeout: Duration,
    /// Statuses of responses that are not errors, over HTTP; absent: those below 400.
    pub expected_status: Option<ExpectedStatuses>,
    /// TLS client settings for targets with a server name: trusted roots and client certificate. Required if
    /// there are any.
    pub tls: Option<TlsClient>,
    /// Seed of arrivals and think times.
    pub seed: u64,
    /// Report the service time and schedule lag of each second, too: [`crate::Second::detail`].
    pub whole_seconds: bool,
    /// Measure each URL apart, too: [`results::LoadResult::per_url`]. Kinds of requests always are.
    pub per_url: bool,
    /// Way in which threads wait until something is due.
    pub pacing: Pacing,
    /// With [`Pacing::Economical`]: how late requests may usually be sent, so that several go out together.
    pub lag_tolerance: Duration,
    /// Opening of the measured window.
    pub start: Start,
    /// I/O interface of the connections.
    pub network: IoBackendChoice,
}

impl LoadSpec {
    /// Maximum time for opening the connections before the start: all addresses of a server but the last may
    /// be dead, and thousands of handshakes take a while on a busy machine.
    pub(crate) fn connecting(&self) -> Duration {
        let addresses = self.targets.servers.iter().map(|server| server.addresses.len()).max();
        let bounded = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let of_addresses = self.timeout.saturating_mul(bounded(addresses.unwrap_or(1)));
        of_addresses.saturating_add(OPENING_TIME.saturating_mul(bounded(self.own_connections())))
    }

    /// Settings of connections that are not opened in the usual way, in the form of the result schema.
    pub(crate) fn connection_settings(&self) -> Option<ConnectionSettings> {
        let settings = ConnectionSettings {
            unix_socket: self.targets.unix_socket().map(ToString::to_string),
            source: self.opening.sources.map(|sources| sources.to_string()),
            proxy_protocol: self.opening.proxy_protocol.map(ProxyProtocol::version),
            new_per_request: self.opening.per_request,
            lookups_every_s: self.opening.lookups.map(|lookups| lookups.every.as_secs_f64()),
            client_certificates: self.tls.as_ref().and_then(TlsClient::identities),
        };
        (settings != ConnectionSettings::default()).then_some(settings)
    }

    /// Protocol as named in results.
    pub(crate) fn spoken(&self) -> SpokenProtocol {
        match self.protocol {
            Protocol::Http1 => SpokenProtocol::Http1,
            Protocol::Http2 { .. } if self.targets.family == Family::Grpc => SpokenProtocol::Grpc,
            Protocol::Http2 { .. } => SpokenProtocol::Http2,
            Protocol::Raw(_) => SpokenProtocol::Raw,
            Protocol::WebSocket(_) => SpokenProtocol::WebSocket,
        }
    }
}

/// The way in which connections are opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Opening {
    /// Local addresses; `None`: as the kernel chooses.
    pub sources: Option<Sources>,
    /// Header that connections begin with.
    pub proxy_protocol: Option<ProxyProtocol>,
    /// Each request opens its own connection when it is due, and closes it after the response: its times include opening. Before
    /// the start, one connection to each server shows whether it can be reached. Servers are chosen per request, and a connection
    /// has one stream.
    pub per_request: bool,
    /// Names are looked up again during the run.
    pub lookups: Option<Lookups>,
}

/// Protocol on a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Protocol {
    /// HTTP/1.1 with keep-alive.
    Http1,
    /// HTTP/2: over TLS as selected by ALPN, otherwise by prior knowledge.
    Http2 {
        /// Maximum concurrent requests per connection, if the peer allows as many; at least 1.
        streams: usize,
    },
    /// Messages of fixed sizes, without a protocol.
    Raw(ExpectedReply),
    /// WebSocket over HTTP/1.1.
    WebSocket(Replies),
}

impl Protocol {
    /// Protocol to select by ALPN; `None` if nothing is offered.
    pub(crate) fn alpn(self) -> Option<&'static [u8]> {
        match self {
            Self::Http1 | Self::WebSocket(_) => Some(b"http/1.1"),
            Self::Http2 { .. } => Some(b"h2"),
            Self::Raw(_) => None,
        }
    }

    /// The protocol with one request at a time on a connection.
    #[must_use]
    pub fn with_one_stream(self) -> Self {
        match self {
            Self::Http2 { .. } => Self::Http2 { streams: 1 },
            Self::WebSocket(Replies::InOrder(_)) => Self::WebSocket(Replies::InOrder(1)),
            Self::Http1 | Self::Raw(_) | Self::WebSocket(_) => self,
        }
    }

    /// Maximum concurrent requests per connection.
    #[must_use]
    pub fn streams(self) -> usize {
        match self {
            Self::Http1 | Self::Raw(_) | Self::WebSocket(Replies::Pushed(_)) => 1,
            Self::Http2 { streams } | Self::WebSocket(Replies::InOrder(streams)) => streams,
        }
    }
}

/// Times at which requests are due.
#[derive(Clone, Debug, PartialEq)]
pub enum ScheduleSpec {
    /// Open loop: at given rates, whatever the target does. The warm-up runs at the first stage's start rate.
    Open {
        /// In sequence; not empty.
        stages: Vec<RateStage>,
        /// Distribution of requests at a given rate.
        arrival: Arrival,
    },
    /// Open loop: at the instants of a recording.
    Replay(Replay),
    /// Closed loop: each client sends its next request after a response and a think time.
    Closed {
        /// Number of clients; at least 1.
        clients: usize,
        /// Time between a response and the client's next request, which is due then.
        think_time: ThinkTime,
        /// The window ends with the responses to this many requests, unless its duration ends it earlier.
        requests: Option<u64>,
    },
    /// Closed loop whose number of clients changes. The warm-up has the first stage's number at its start.
    ClientStages {
        /// In sequence; not empty, with a client in one of them.
        stages: Vec<ClientStage>,
        /// Time between a response and the client's next request, which is due then.
        think_time: ThinkTime,
    },
}

impl LoadSpec {
    /// Requests of this generator that are due in a second of the window, counted from 0, of which this much is inside the
    /// window; `None` in closed loop, and for sessions, whose steps depend on responses.
    pub(crate) fn due_in_second(&self, index: u64, length: Nanos) -> Option<f64> {
        if !self.targets.sessions.is_empty() {
            return None;
        }
        let start = index.saturating_mul(SECOND);
        Some(self.due_until(start.saturating_add(length))? - self.due_until(start)?)
    }

    /// Requests, or sessions, of this generator that are due in the window until this time of it; `None` in closed loop.
    pub(crate) fn due_until(&self, since_start: Nanos) -> Option<f64> {
        Some(self.offered_until(since_start)? / self.share.of() as f64)
    }

    /// Requests of all generators that are due in the window until this time of it; `None` in closed loop.
    fn offered_until(&self, since_start: Nanos) -> Option<f64> {
        // The schedule may last longer than the window.
        let since_start = since_start.min(nanos(self.duration));
        match &self.schedule {
            ScheduleSpec::Open { stages, arrival } => {
                // Those of the window depend on the ones before it.
                let warmup = if let Arrival::Bursts(_) = arrival { self.warmup } else { Duration::ZERO };
                let (start, end) = (nanos(warmup), nanos(warmup + self.duration));
                let profile = RateProfile::planned(stages, *arrival, self.seed, warmup, end);
                Some(profile.requests_until(start + since_start) - profile.requests_until(start))
            }
            ScheduleSpec::Replay(replay) => {
                let start = nanos(self.warmup);
                Some((replay.due_before(start + since_start) - replay.due_before(start)) as f64)
            }
            ScheduleSpec::Closed { .. } | ScheduleSpec::ClientStages { .. } => None,
        }
    }

    /// Mean rate of all generators over the window, requests/s; `None` in closed loop.
    #[must_use]
    pub fn offered_rate(&self) -> Option<f64> {
        let requests = self.offered_until(nanos(self.duration))?;
        Some(if self.duration.is_zero() { 0.0 } else { requests / self.duration.as_secs_f64() })
    }

    /// Arrivals of an open loop for results; `None` for even intervals.
    pub(crate) fn arrivals(&self) -> Option<Arrivals> {
        match &self.schedule {
            ScheduleSpec::Open { arrival: Arrival::Poisson, .. } => Some(Arrivals::Poisson),
            ScheduleSpec::Open { arrival: Arrival::Bursts(bursts), .. } => {
                let Bursts { factor, share, length } = *bursts;
                let (start, end) = (nanos(self.warmup), nanos(self.warmup + self.duration));
                let (length_s, count) = (length.as_secs_f64(), bursts.count(self.seed, start, end));
                Some(Arrivals::Bursts(BurstArrivals { factor, share, length_s, count }))
            }
            ScheduleSpec::Replay(replay) => Some(Arrivals::Replay(replay.of.clone())),
            ScheduleSpec::Open { arrival: Arrival::Uniform, .. }
            | ScheduleSpec::Closed { .. }
            | ScheduleSpec::ClientStages { .. } => None,
        }
    }

    /// Number of connections of this generator before the start.
    #[must_use]
    pub fn own_connections(&self) -> usize {
        let threads = 0..self.threads;
        threads.map(|thread| self.assignment(thread).servers.len()).sum()
    }

    /// Number of servers without a connection from any generator, if connections keep to their server, and
    /// the number of all servers.
    pub(crate) fn servers_left_out(&self) -> Option<(usize, usize)> {
        let servers = self.targets.servers.len();
        let left_out = servers.saturating_sub(self.connections);
        (self.targets.server_per == ServerPer::Connection && left_out > 0).then_some((left_out, servers))
    }

    /// The part of the connections that one thread of all generators may have at a time.
    pub(crate) fn share_of_connections(&self, (worker, workers): (usize, usize)) -> usize {
        part(self.connections, worker, workers).max(1)
    }

    /// Connections of a thread of this generator before the start.
    pub(crate) fn assignment(&self, thread: usize) -> Assignment {
        if self.opening.per_request {
            return Assignment::new(&self.targets, self.targets.servers.len(), thread, self.threads);
        }
        let (worker, workers) = self.share.worker(thread, self.threads);
        Assignment::new(&self.targets, self.connections, worker, workers)
    }

    /// Number of clients of this generator, the highest if it changes; `None` in open loop.
    pub(crate) fn own_clients(&self) -> Option<usize> {
        match &self.schedule {
            ScheduleSpec::Closed { clients, .. } => Some(self.share.part(*clients)),
            ScheduleSpec::ClientStages { stages, .. } => Some(self.share.part(ClientStage::most(stages))),
            ScheduleSpec::Open { .. } | ScheduleSpec::Replay(_) => None,
        }
    }

    /// Requests, or sessions, of a closed loop after which this generator's window ends; `None` if only its duration ends
    /// it.
    pub(crate) fn own_requests(&self) -> Option<u64> {
        match self.schedule {
            ScheduleSpec::Closed { requests, .. } => {
                requests.map(|requests| self.share.part_of_requests(requests))
            }
            ScheduleSpec::Open { .. } | ScheduleSpec::Replay(_) | ScheduleSpec::ClientStages { .. } => None,
        }
    }

    /// Numbers of clients over time, of all generators, for results; empty if they do not change.
    pub(crate) fn client_stages(&self) -> Vec<results::ClientStage> {
        let ScheduleSpec::ClientStages { stages, .. } = &self.schedule else { return Vec::new() };
        let stage = |stage: &ClientStage| results::ClientStage {
            from: stage.from,
            to: stage.to,
            duration_s: stage.duration.as_secs_f64(),
        };
        stages.iter().map(stage).collect()
    }

    /// Rate offered by this generator, requests/s or sessions/s; `None` in closed loop.
    pub(crate) fn own_rate(&self) -> Option<f64> {
        Some(self.offered_rate()? / self.share.of() as f64)
    }
}

impl ScheduleSpec {
    /// Closed loop whose clients send without think time until the time is over.
    #[must_use]
    pub fn closed(clients: usize) -> Self {
        Self::Closed { clients, think_time: ThinkTime::NONE, requests: None }
    }
}

//! What a run is to do, fully decided: no defaults are left to the engine.

use crate::clock::{SECOND, nanos};
use crate::network::NetworkChoice;
use crate::protocol::raw::ExpectedReply;
use crate::schedule::{Arrival, RateProfile, RateStage, ThinkTime};
use crate::share::GeneratorShare;
use crate::start::Start;
use crate::target::{Assignment, Family, ServerPer, Targets};
use crate::tls::TlsClient;
use experiment::schema::{Pacing, SpokenProtocol};
use std::num::NonZeroU64;
use std::time::Duration;

/// Time that opening a connection may take beside others, a handshake included.
const OPENING_TIME: Duration = Duration::from_millis(10);

/// One run of the generator. With a [`GeneratorShare`], rates, clients, connections and requests are those of all generators
/// together.
#[derive(Clone, Debug)]
pub struct LoadSpec {
    /// The URLs as given, for the result.
    pub urls: Vec<String>,
    /// The servers and their requests.
    pub targets: Targets,
    /// What is spoken on the connections.
    pub protocol: Protocol,
    /// When requests are due.
    pub schedule: ScheduleSpec,
    /// Connections in total; at least one for each thread of each generator. Where they are fewer than servers, they are
    /// opened and closed as servers want one.
    pub connections: usize,
    /// The part of the load that this process offers.
    pub share: GeneratorShare,
    /// Each connection is closed after so many requests, and opened again; absent: never.
    pub requests_per_connection: Option<NonZeroU64>,
    /// Worker threads; at least 1.
    pub threads: usize,
    /// Load before the measured window.
    pub warmup: Duration,
    /// The measured window. Stages go on for as long at least; what they bring after it is left out. A fixed number of requests
    /// of a closed loop may end it before its time.
    pub duration: Duration,
    /// Bound on opening a connection, TLS handshake included, and on each request from its actual send.
    pub timeout: Duration,
    /// For targets with a server name: what their connections trust and show. Present where there is one.
    pub tls: Option<TlsClient>,
    /// Seed of arrivals and think times.
    pub seed: u64,
    /// Tell the service time and schedule lag of each second too: [`crate::Second::detail`].
    pub whole_seconds: bool,
    /// Measure each URL apart, too: [`experiment::schema::LoadResult::per_url`].
    pub per_url: bool,
    /// How threads wait until something is due.
    pub pacing: Pacing,
    /// With [`Pacing::Economical`]: how late requests may usually be sent, so that several go out at one wake.
    pub lag_tolerance: Duration,
    /// When the measured window opens.
    pub start: Start,
    /// What the connections stand on.
    pub network: NetworkChoice,
}

impl LoadSpec {
    /// How long opening the connections before the start may take: every address of a server may be dead but the last, and
    /// thousands of handshakes take their time on a busy machine.
    pub(crate) fn connecting(&self) -> Duration {
        let addresses = self.targets.servers.iter().map(|server| server.addresses.len()).max();
        let bounded = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let of_addresses = self.timeout.saturating_mul(bounded(addresses.unwrap_or(1)));
        of_addresses.saturating_add(OPENING_TIME.saturating_mul(bounded(self.own_connections())))
    }

    /// What is spoken, as results name it.
    pub(crate) fn spoken(&self) -> SpokenProtocol {
        match self.protocol {
            Protocol::Http1 => SpokenProtocol::Http1,
            Protocol::Http2 { .. } if self.targets.family == Family::Grpc => SpokenProtocol::Grpc,
            Protocol::Http2 { .. } => SpokenProtocol::Http2,
            Protocol::Raw(_) => SpokenProtocol::Raw,
        }
    }
}

/// What is spoken on a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Protocol {
    /// HTTP/1.1 with keep-alive.
    Http1,
    /// HTTP/2: over TLS as ALPN chooses it, else by prior knowledge.
    Http2 {
        /// The most requests at once on a connection, where its peer takes so many; at least 1.
        streams: usize,
    },
    /// Messages of given sizes, without any protocol.
    Raw(ExpectedReply),
}

impl Protocol {
    /// What ALPN is to choose; absent where nothing is offered.
    pub(crate) fn alpn(self) -> Option<&'static [u8]> {
        match self {
            Self::Http1 => Some(b"http/1.1"),
            Self::Http2 { .. } => Some(b"h2"),
            Self::Raw(_) => None,
        }
    }

    /// The most requests at once on a connection.
    #[must_use]
    pub fn streams(self) -> usize {
        match self {
            Self::Http1 | Self::Raw(_) => 1,
            Self::Http2 { streams } => streams,
        }
    }
}

/// When requests are due.
#[derive(Clone, Debug, PartialEq)]
pub enum ScheduleSpec {
    /// Open loop: at given rates, whatever the target does. The warm-up runs at the first stage's rate.
    Open {
        /// One after the other; not empty.
        stages: Vec<RateStage>,
        /// How requests are spread at a given rate.
        arrival: Arrival,
    },
    /// Closed loop: each client sends again when it has been answered and has thought.
    Closed {
        /// How many clients; at least 1.
        clients: usize,
        /// Between an answer and the client's next request, which is due then.
        think_time: ThinkTime,
        /// The window ends with the answers to so many requests, where its duration does not end it before.
        requests: Option<u64>,
    },
}

impl LoadSpec {
    /// Requests of this generator that are due in a second of the window, counted from 0; absent in closed loop.
    pub(crate) fn due_in_second(&self, index: u64) -> Option<f64> {
        match &self.schedule {
            ScheduleSpec::Open { stages, .. } => {
                let profile = RateProfile::new(stages, Duration::ZERO);
                let start = index.saturating_mul(SECOND);
                let due =
                    profile.requests_until(start.saturating_add(SECOND)) - profile.requests_until(start);
                Some(due / self.share.of() as f64)
            }
            ScheduleSpec::Closed { .. } => None,
        }
    }

    /// Connections of this generator.
    pub(crate) fn own_connections(&self) -> usize {
        let threads = 0..self.threads;
        threads.map(|thread| self.assignment(thread).servers.len()).sum()
    }

    /// Servers that no generator has a connection to, where connections keep to theirs, of all servers.
    pub(crate) fn servers_left_out(&self) -> Option<(usize, usize)> {
        let servers = self.targets.servers.len();
        let left_out = servers.saturating_sub(self.connections);
        (self.targets.server_per == ServerPer::Connection && left_out > 0).then_some((left_out, servers))
    }

    /// Connections of a thread of this generator.
    pub(crate) fn assignment(&self, thread: usize) -> Assignment {
        let (worker, workers) = self.share.worker(thread, self.threads);
        Assignment::new(&self.targets, self.connections, worker, workers)
    }

    /// Clients of this generator; absent in open loop.
    pub(crate) fn own_clients(&self) -> Option<usize> {
        match self.schedule {
            ScheduleSpec::Closed { clients, .. } => Some(self.share.part(clients)),
            ScheduleSpec::Open { .. } => None,
        }
    }

    /// Requests of a closed loop after which this generator's window ends; absent where its duration alone ends it.
    pub(crate) fn own_requests(&self) -> Option<u64> {
        match self.schedule {
            ScheduleSpec::Closed { requests, .. } => {
                requests.map(|requests| self.share.part_of_requests(requests))
            }
            ScheduleSpec::Open { .. } => None,
        }
    }

    /// Rate that this generator offers, requests/s; absent in closed loop.
    pub(crate) fn own_rate(&self) -> Option<f64> {
        Some(self.schedule.mean_rate(self.duration)? / self.share.of() as f64)
    }
}

impl ScheduleSpec {
    /// Closed loop whose clients send as soon as they are answered, until the time is over.
    #[must_use]
    pub fn closed(clients: usize) -> Self {
        Self::Closed { clients, think_time: ThinkTime::NONE, requests: None }
    }

    /// Open loop: the mean rate over a window of such a length, requests a second.
    #[must_use]
    pub fn mean_rate(&self, window: Duration) -> Option<f64> {
        let Self::Open { stages, .. } = self else { return None };
        let requests = RateProfile::new(stages, Duration::ZERO).requests_until(nanos(window));
        Some(if window.is_zero() { 0.0 } else { requests / window.as_secs_f64() })
    }
}

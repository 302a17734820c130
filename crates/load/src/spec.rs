//! What a run is to do, fully decided: no defaults are left to the engine.

use crate::clock::SECOND;
use crate::protocol::raw::ExpectedReply;
use crate::schedule::{Arrival, RateProfile, RateStage};
use crate::target::Target;
use crate::tls::TlsClient;
use std::num::NonZeroU64;
use std::time::Duration;

/// One run of the generator.
#[derive(Clone, Debug)]
pub struct LoadSpec {
    /// The URLs as given, for the result.
    pub urls: Vec<String>,
    /// The servers and their requests; not empty. Connections are spread over them evenly.
    pub targets: Vec<Target>,
    /// What is spoken on the connections.
    pub protocol: Protocol,
    /// When requests are due.
    pub schedule: ScheduleSpec,
    /// Connections kept open in total; at least one for each target and for each thread.
    pub connections: usize,
    /// Each connection is closed after so many requests, and opened again; absent: never.
    pub requests_per_connection: Option<NonZeroU64>,
    /// Worker threads; at least 1.
    pub threads: usize,
    /// Load before the measured window.
    pub warmup: Duration,
    /// The measured window. With stages, the sum of their durations.
    pub duration: Duration,
    /// Bound on opening a connection, TLS handshake included, and on each request from its actual send.
    pub timeout: Duration,
    /// For targets with a server name: what their connections trust and show. Present where there is one.
    pub tls: Option<TlsClient>,
    /// Seed of the arrivals.
    pub seed: u64,
    /// Tell the service time and schedule lag of each second too: [`crate::Second::detail`].
    pub whole_seconds: bool,
}

/// What is spoken on a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Protocol {
    /// HTTP/1.1 with keep-alive.
    Http1,
    /// Messages of given sizes, without any protocol.
    Raw(ExpectedReply),
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
    /// Closed loop: each client sends again as soon as it is answered.
    Closed {
        /// How many clients; at least 1.
        clients: usize,
    },
}

impl LoadSpec {
    /// Requests that are due in a second of the window, counted from 0; absent in closed loop.
    pub(crate) fn due_in_second(&self, index: u64) -> Option<f64> {
        match &self.schedule {
            ScheduleSpec::Open { stages, .. } => {
                let profile = RateProfile::new(stages, Duration::ZERO);
                let start = index.saturating_mul(SECOND);
                Some(profile.requests_until(start.saturating_add(SECOND)) - profile.requests_until(start))
            }
            ScheduleSpec::Closed { .. } => None,
        }
    }
}

impl ScheduleSpec {
    /// Open loop: the mean rate over all stages, requests a second.
    pub(crate) fn mean_rate(&self) -> Option<f64> {
        match self {
            Self::Open { stages, .. } => {
                let total_s: f64 = stages.iter().map(|stage| stage.duration.as_secs_f64()).sum();
                let requests: f64 =
                    stages.iter().map(|stage| stage.rate * stage.duration.as_secs_f64()).sum();
                Some(if total_s > 0.0 { requests / total_s } else { 0.0 })
            }
            Self::Closed { .. } => None,
        }
    }
}

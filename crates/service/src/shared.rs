//! State shared by the connections of one worker: settings, read and write buffers, random generator,
//! counters.

use crate::counters::{Counters, Tally};
use crate::http2::context::Context;
use crate::http3::quic::Quic;
use crate::response::Composer;
use crate::settings::{Answer, Settings, TcpSizes};
use rand::SeedableRng as _;
use rand::rngs::SmallRng;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// Size of the shared read buffer, bytes. A head of the maximum size fits.
const RECEIVED_BYTES: usize = 64 * 1024;

/// State shared by the connections of one worker.
#[derive(Debug)]
pub(crate) struct Shared {
    pub answer: Answer,
    pub requests_per_connection: Option<NonZeroU64>,
    pub composer: Composer,
    /// Buffer for what a connection reads in its turn.
    pub received: Vec<u8>,
    /// Output that a connection composes in its turn. Empty between turns.
    pub composed: Vec<u8>,
    pub random: SmallRng,
    /// Message sizes of raw TCP connections.
    pub tcp: TcpSizes,
    /// State shared by HTTP/2 connections.
    pub http2: Arc<Context>,
    /// The endpoint of HTTP/3 connections, if the worker serves any.
    pub quic: Option<Quic>,
    /// Memory that all connections together hold for unfinished requests, bytes.
    pub held_bytes: usize,
    pub tally: Arc<Tally>,
    tallies: Arc<[Arc<Tally>]>,
    started: Instant,
}

impl Shared {
    /// Above this much held memory, unfinished requests are rejected, so that slow clients cannot exhaust the
    /// memory.
    pub const MAX_HELD_BYTES: usize = 64 * 1024 * 1024;

    pub(crate) fn new(
        settings: &Settings,
        worker: usize,
        tallies: &Arc<[Arc<Tally>]>,
        started: Instant,
        quic: Option<Quic>,
    ) -> Self {
        let random = match settings.seed {
            Some(seed) => SmallRng::seed_from_u64(seed.wrapping_add(worker as u64)),
            None => rand::make_rng(),
        };
        Self {
            answer: settings.answer,
            requests_per_connection: settings.requests_per_connection,
            composer: Composer::new(&settings.answer),
            received: Vec::with_capacity(RECEIVED_BYTES),
            composed: Vec::new(),
            random,
            tcp: settings.tcp,
            http2: Arc::new(Context::new(settings, worker, tallies, started)),
            quic,
            held_bytes: 0,
            tally: Arc::clone(&tallies[worker]),
            tallies: Arc::clone(tallies),
            started,
        }
    }

    /// Nanoseconds since the start of the server.
    pub(crate) fn now_ns(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Open connections of all workers.
    pub(crate) fn connections_open(&self) -> usize {
        self.tallies.iter().map(|tally| tally.connections_open.load(Relaxed)).sum()
    }

    pub(crate) fn counters(&self) -> Counters {
        Counters::sum(&self.tallies)
    }
}

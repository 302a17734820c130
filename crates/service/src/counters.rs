//! Counters of a server.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Counters since the start of a server.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counters {
    /// Complete requests over all protocols, except those for the counters.
    pub requests: u64,
    /// Injected errors (`--error-rate`).
    pub errors: u64,
    /// Connections rejected because their bytes were not a valid request: answered with 4xx or 5xx (HTTP/2:
    /// GOAWAY) and closed.
    pub rejected: u64,
    /// Connections accepted.
    pub connections_accepted: u64,
    /// Connections open now.
    pub connections_open: u64,
    /// Bytes received on all connections. With TLS: the payload of its records.
    pub bytes_received: u64,
    /// Bytes sent on all connections, including heads and counter responses. With TLS: the payload of its
    /// records.
    pub bytes_sent: u64,
    /// HTTP/1.1.
    pub http1: ProtocolCounters,
    /// HTTP/2, without gRPC except for its connections.
    pub http2: ProtocolCounters,
    /// gRPC; its connections are counted under HTTP/2.
    pub grpc: ProtocolCounters,
    /// TCP.
    pub tcp: ProtocolCounters,
    /// Messages of WebSocket, whose connections are counted under HTTP/1.1, too.
    pub websocket: ProtocolCounters,
    /// TLS handshakes completed.
    pub tls_handshakes: u64,
    /// TLS handshakes that failed, were aborted by the client or took too long.
    pub tls_handshakes_failed: u64,
}

/// Counters of one protocol. Requests = answered + failed + those in progress.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ProtocolCounters {
    /// Connections with this protocol.
    pub connections: u64,
    /// Complete requests, except those for the counters.
    pub requests: u64,
    /// Answered requests: the whole response was handed to the connection.
    pub answered: u64,
    /// Failed requests: the client or its connection went away first.
    pub failed: u64,
    /// Requests that began but were never complete, because the stream or the connection ended.
    pub incomplete: u64,
}

impl Counters {
    /// The counters as a single-line JSON object keyed by field name; counters of a protocol are nested under
    /// its name.
    #[must_use]
    pub fn to_json(&self) -> String {
        format!("{{{}}}\n", self.json_fields())
    }

    /// The fields of [`Self::to_json`].
    pub(crate) fn json_fields(&self) -> String {
        let mut json = format!(
            "\"requests\":{},\"errors\":{},\"rejected\":{},\
             \"connections_accepted\":{},\"connections_open\":{},\
             \"bytes_received\":{},\"bytes_sent\":{},\"protocols\":{{",
            self.requests,
            self.errors,
            self.rejected,
            self.connections_accepted,
            self.connections_open,
            self.bytes_received,
            self.bytes_sent
        );
        let protocols = [
            ("http/1.1", self.http1),
            ("http/2", self.http2),
            ("grpc", self.grpc),
            ("tcp", self.tcp),
            ("websocket", self.websocket),
        ];
        for (index, (name, counts)) in protocols.into_iter().enumerate() {
            let ProtocolCounters { connections, requests, answered, failed, incomplete } = counts;
            let comma = if index == 0 { "" } else { "," };
            // Writing to memory cannot fail.
            let _ = write!(
                json,
                "{comma}\"{name}\":{{\"connections\":{connections},\"requests\":{requests},\
                 \"answered\":{answered},\"failed\":{failed},\"incomplete\":{incomplete}}}"
            );
        }
        let (handshakes, failed) = (self.tls_handshakes, self.tls_handshakes_failed);
        let _ = write!(json, "}},\"tls\":{{\"handshakes\":{handshakes},\"failed\":{failed}}}");
        json
    }

    /// The sum over all workers.
    pub(crate) fn sum(tallies: &[Arc<Tally>]) -> Self {
        let mut sum = Self::default();
        for tally in tallies {
            sum.errors += tally.errors.get();
            sum.rejected += tally.rejected.get();
            sum.connections_accepted += tally.connections_accepted.get();
            sum.connections_open += tally.connections_open.load(Relaxed) as u64;
            sum.bytes_received += tally.bytes_received.get();
            sum.bytes_sent += tally.bytes_sent.get();
            sum.tls_handshakes += tally.handshakes.get();
            sum.tls_handshakes_failed += tally.handshakes_failed.get();
            tally.http1.add_to(&mut sum.http1);
            tally.http2.add_to(&mut sum.http2);
            tally.grpc.add_to(&mut sum.grpc);
            tally.tcp.add_to(&mut sum.tcp);
            tally.websocket.add_to(&mut sum.websocket);
        }
        let protocols = [sum.http1, sum.http2, sum.grpc, sum.tcp, sum.websocket];
        sum.requests = protocols.iter().map(|counts| counts.requests).sum();
        sum
    }
}

/// Counters of one worker, on separate cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Tally {
    pub http1: ProtocolTally,
    pub errors: Count,
    pub rejected: Count,
    pub connections_accepted: Count,
    pub bytes_received: Count,
    pub bytes_sent: Count,
    pub http2: ProtocolTally,
    pub grpc: ProtocolTally,
    pub tcp: ProtocolTally,
    pub websocket: ProtocolTally,
    pub handshakes: Count,
    pub handshakes_failed: Count,
    /// Incremented by the accepting worker, decremented by the serving one.
    pub connections_open: AtomicUsize,
}

/// Counters of one protocol in one worker.
#[derive(Debug, Default)]
pub(crate) struct ProtocolTally {
    pub connections: Count,
    pub requests: Count,
    pub answered: Count,
    pub failed: Count,
    pub incomplete: Count,
}

/// Progress of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Progress {
    Receiving,
    Received,
    Answered,
}

impl ProtocolTally {
    /// A request was read completely.
    pub(crate) fn received(&self, progress: &mut Progress) {
        if *progress == Progress::Receiving {
            *progress = Progress::Received;
            self.requests.add(1);
        }
    }

    /// A request is over.
    pub(crate) fn ended(&self, progress: Progress) {
        let count = match progress {
            Progress::Receiving => &self.incomplete,
            Progress::Received => &self.failed,
            Progress::Answered => &self.answered,
        };
        count.add(1);
    }

    fn add_to(&self, sum: &mut ProtocolCounters) {
        sum.connections += self.connections.get();
        sum.requests += self.requests.get();
        sum.answered += self.answered.get();
        sum.failed += self.failed.get();
        sum.incomplete += self.incomplete.get();
    }
}

/// A counter that one thread writes and any thread reads.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    /// Decrements the counter by one that was counted too early.
    pub(crate) fn take_back(&self) {
        self.0.store(self.0.load(Relaxed) - 1, Relaxed);
    }

    /// Increments the counter. A load and a store are cheaper than an atomic addition, and suffice with a
    /// single writer.
    pub(crate) fn add(&self, amount: u64) {
        self.0.store(self.0.load(Relaxed) + amount, Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

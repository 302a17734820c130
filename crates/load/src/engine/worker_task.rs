//! The body of one thread of a run: combines schedule, network and protocol into a worker.

use super::messages::FromWorker;
use crate::clock::{Clock, nanos};
use crate::lookups::FoundAddresses;
use crate::network::{EpollNetwork, IoBackend, Network, QuicNetwork, TlsNetwork, UringNetwork};
use crate::pacing::SpareCpu;
use crate::protocol::Codec;
use crate::protocol::http1::{Http1, Http1Request};
use crate::protocol::http2::{CommonFields, Http2Connection, Http2Request};
use crate::protocol::http3::{Http3Connection, Http3Request};
use crate::protocol::raw::{Raw, RawRequest};
use crate::protocol::websocket::{WebSocket, WebSocketRequest};
use crate::schedule::{
    ClientStage, ClosedLoop, ClosedLoopSettings, OpenLoop, ReplaySchedule, Schedule, ThinkTime,
};
use crate::second::SecondCounts;
use crate::source::SourceTurns;
use crate::spec::{LoadSpec, Protocol, ScheduleSpec};
use crate::target::{Assignment, Request, Selector};
use crate::worker::{Plan, Timeline, Worker, WorkerOutcome};
use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::{Receiver, Sender};
use std::time::Instant;

/// Timer slack that the kernel may add to a sleep, nanoseconds: the minimum (prctl(2), PR_SET_TIMERSLACK).
const TIMER_SLACK_NS: NonZeroU64 = NonZeroU64::MIN;

/// One thread's part of a run.
pub(super) struct WorkerTask<'a> {
    pub spec: &'a LoadSpec,
    pub timeline: Timeline,
    pub thread: usize,
    pub addresses: &'a FoundAddresses,
    pub spare_cpu: &'a SpareCpu,
    pub stop: &'a AtomicBool,
    pub started: Receiver<Instant>,
    pub spares: Receiver<SecondCounts>,
    /// Requests of a closed loop that may still be started, if their number is fixed.
    pub quota: Option<Arc<AtomicU64>>,
    pub to_run: Sender<FromWorker>,
}

impl WorkerTask<'_> {
    /// Runs the thread's part to its end.
    pub fn work(&self, io_backend: IoBackend) -> io::Result<WorkerOutcome> {
        let Self { spec, timeline, .. } = self;
        let (worker, workers) = spec.share.worker(self.thread, spec.threads);
        match &spec.schedule {
            ScheduleSpec::Open { stages, arrival } => {
                let schedule =
                    OpenLoop::new(spec.profile(stages, *arrival), *arrival, spec.seed, worker, workers);
                self.follow(Box::new(schedule), io_backend)
            }
            ScheduleSpec::Replay(replay) => {
                let schedule = ReplaySchedule::new(replay.clone(), timeline.end, (worker, workers));
                self.follow(Box::new(schedule), io_backend)
            }
            ScheduleSpec::Closed { clients, think_time, .. } => {
                self.follow_clients((*clients, Vec::new()), *think_time, io_backend)
            }
            ScheduleSpec::ClientStages { stages, think_time } => {
                self.follow_clients((ClientStage::most(stages), stages.clone()), *think_time, io_backend)
            }
        }
    }

    fn follow_clients(
        &self,
        (clients, stages): (usize, Vec<ClientStage>),
        think_time: ThinkTime,
        io_backend: IoBackend,
    ) -> io::Result<WorkerOutcome> {
        let (worker, workers) = self.spec.share.worker(self.thread, self.spec.threads);
        let settings = ClosedLoopSettings {
            clients,
            stages,
            threads: workers,
            think_time,
            seed: self.spec.seed,
            window_start: self.timeline.window_start,
            end: self.timeline.end,
            quota: self.quota.clone(),
        };
        self.follow(Box::new(ClosedLoop::new(settings, worker)), io_backend)
    }

    fn follow(&self, schedule: Box<dyn Schedule>, io_backend: IoBackend) -> io::Result<WorkerOutcome> {
        rustix::thread::set_current_timer_slack(Some(TIMER_SLACK_NS))?;
        let spec = self.spec;
        let assignment = spec.assignment(self.thread);
        let slots = assignment.servers.len();
        let proxy_protocol = self.spec.opening.proxy_protocol;
        if let (Protocol::Http3 { streams }, Some(tls)) = (spec.protocol, &spec.tls) {
            let configs = tls.speaking(spec.protocol.alpn(), spec.share.worker(self.thread, spec.threads));
            let network = QuicNetwork::new(slots, configs, streams)?;
            let make_codec = || Http3Connection::new(streams);
            return self.speak(schedule, network, &assignment, Http3Request::new, make_codec);
        }
        match io_backend {
            IoBackend::IoUring(ring) => {
                self.follow_over(schedule, UringNetwork::new(*ring, slots, proxy_protocol)?, &assignment)
            }
            IoBackend::Epoll => {
                self.follow_over(schedule, EpollNetwork::new(slots, proxy_protocol)?, &assignment)
            }
        }
    }

    /// Adds a TLS layer if the run uses TLS.
    fn follow_over<N: Network>(
        &self,
        schedule: Box<dyn Schedule>,
        network: N,
        assignment: &Assignment,
    ) -> io::Result<WorkerOutcome> {
        let (spec, slots) = (self.spec, assignment.servers.len());
        match &spec.tls {
            None => self.follow_on(schedule, network, assignment),
            Some(tls) => {
                let configs =
                    tls.speaking(spec.protocol.alpn(), spec.share.worker(self.thread, spec.threads));
                let network = TlsNetwork::new(network, configs, slots);
                self.follow_on(schedule, network, assignment)
            }
        }
    }

    fn follow_on<N: Network>(
        &self,
        schedule: Box<dyn Schedule>,
        network: N,
        assignment: &Assignment,
    ) -> io::Result<WorkerOutcome> {
        match self.spec.protocol {
            Protocol::Http1 => self.speak(schedule, network, assignment, Http1Request::new, Http1::new),
            Protocol::Http2 { streams } => {
                let requests = self.spec.targets.servers.iter().flat_map(|server| &server.requests);
                let common = CommonFields::from_requests(requests);
                let make_request = |request: &Request| Http2Request::new(request, &common);
                self.speak(schedule, network, assignment, make_request, || {
                    Http2Connection::new(streams, &common)
                })
            }
            Protocol::Http3 { .. } => Err(io::Error::other("HTTP/3 without TLS settings")),
            Protocol::Raw(expected) => {
                self.speak(schedule, network, assignment, RawRequest::new, || Raw::new(expected))
            }
            Protocol::WebSocket(replies) => {
                let make_codec = || WebSocket::new(replies);
                self.speak(schedule, network, assignment, WebSocketRequest::new, make_codec)
            }
        }
    }

    /// Runs a worker whose connections each have a codec.
    fn speak<N: Network, C: Codec>(
        &self,
        schedule: Box<dyn Schedule>,
        network: N,
        assignment: &Assignment,
        make_request: impl Fn(&Request) -> C::Request,
        make_codec: impl Fn() -> C,
    ) -> io::Result<WorkerOutcome> {
        let spec = self.spec;
        let number = spec.share.worker(self.thread, spec.threads);
        let plan = Plan {
            timeline: self.timeline,
            targets: &spec.targets.servers,
            addresses: self.addresses,
            choices: &spec.targets.choices,
            sessions: (&spec.targets.sessions, spec.targets.steps()),
            seed: (spec.seed, number.0),
            server_per: spec.targets.server_per,
            sources: spec.opening.sources.map(|sources| SourceTurns::new(sources, number)),
            requests_per_connection: spec.requests_per_connection,
            most_per_request: spec.opening.per_request.then(|| spec.share_of_connections(number)),
            whole_seconds: spec.whole_seconds,
            urls: if spec.per_url || spec.targets.has_kinds() { spec.targets.choices.len() } else { 0 },
            pacing: spec.pacing,
            lag_tolerance: nanos(spec.lag_tolerance),
            spare_cpu: self.spare_cpu,
            stop: self.stop,
        };
        let selector = Selector::new(&spec.targets, spec.seed, number, assignment);
        let mut worker =
            Worker::new(plan, make_request, make_codec, (schedule, selector), network, assignment);
        let open = worker.connect(&Clock::starting_at(Instant::now()))?;
        // Sending fails only if the run has already ended; receiving reports that.
        let _ = self.to_run.send(FromWorker::Connected(open));
        match self.started.recv() {
            Ok(start) => worker.run(&Clock::starting_at(start), |second| {
                let _ = self.to_run.send(FromWorker::Second(self.thread, Box::new(second)));
                self.spares.try_recv().ok()
            }),
            Err(_) => Ok(worker.give_up()),
        }
    }
}

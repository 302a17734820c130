//! The measurements of a run as one result with its verdict.

use super::coordinator::Coordinator;
use crate::clock::{Nanos, SECOND};
use crate::pacing::Spent;
use crate::recorder::{EventRecord, GrpcRecord, Recorder};
use crate::spec::Protocol;
use crate::target::{Choice, Kind};
use crate::usage::cpus::usable_cpus;
use crate::usage::{ProcessCpu, Switches, memory_peak_bytes};
use crate::verdict::{self, RunContext};
use crate::worker::{Unreachable, WorkerOutcome};
use jiff::SignedDuration;
use results::{
    Backlog, Build, Bytes, GeneratorUsage, KindResult, LOAD_SCHEMA, LoadResult, Pacing, PacingUsage, Rates,
    RequestCounts, SeriesPoint, SessionResults, UrlResult,
};
use statistics::backlog::growth;
use std::sync::atomic::Ordering;

/// Measurements of the workers, and what the process used meanwhile.
pub(super) struct Measured {
    pub recorder: Recorder,
    pub series: Vec<SeriesPoint>,
    pub started_at: jiff::Timestamp,
    /// Agreed opening of the window, if any.
    pub agreed_start: Option<jiff::Timestamp>,
    /// Largest delay with which a thread began to follow the schedule.
    pub start_delay: Nanos,
    /// Amount by which the wall clock was set during the window.
    pub clock_moved: SignedDuration,
    /// End of the window, by the run's clock.
    pub stopped_at: Nanos,
    pub cpu: ProcessCpu,
    pub switches: Switches,
    pub busiest_thread_fraction: f64,
    pub waiting: Waiting,
}

/// Cost of waiting, over all threads.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting {
    /// Sum over all threads.
    spent: Spent,
    /// CPU time of one sleep, of the thread for which it was highest.
    sleep_cost: Nanos,
    /// Fraction of the window in which the busiest thread was on a CPU and not spinning.
    working_fraction: f64,
    /// Sum over all threads.
    connections: usize,
    /// Fewest requests that a server allowed at once on a connection, if fewer than asked for.
    peer_limit: Option<usize>,
    /// Connections that could not be opened, by server or of all together.
    unreachable: Vec<Unreachable>,
}

impl Waiting {
    pub fn add(&mut self, outcome: &WorkerOutcome) {
        self.spent.add(&outcome.spent);
        self.sleep_cost = self.sleep_cost.max(outcome.sleep_cost);
        self.working_fraction = self.working_fraction.max(outcome.working_fraction);
        self.connections += outcome.connections;
        self.peer_limit = self.peer_limit.into_iter().chain(outcome.peer_limit).min();
        let pools = self.unreachable.len().max(outcome.unreachable.len());
        self.unreachable.resize(pools, Unreachable::default());
        for (sum, own) in self.unreachable.iter_mut().zip(&outcome.unreachable) {
            sum.add(*own);
        }
    }

    /// The pool of connections that could not be opened for the longest part of a window, and that fraction.
    fn least_reached(&self, duration_s: f64) -> Option<(usize, f64)> {
        let shares = self.unreachable.iter().map(|pool| pool.share(duration_s)).enumerate();
        shares.max_by(|(_, one), (_, other)| one.total_cmp(other))
    }
}

impl Coordinator<'_> {
    fn pacing_usage(&self, waiting: &Waiting, duration_s: f64) -> PacingUsage {
        let fraction = |time: Nanos| {
            let whole_s = duration_s * self.spec.threads as f64;
            if whole_s > 0.0 { (time as f64 / SECOND as f64 / whole_s).min(1.0) } else { 0.0 }
        };
        PacingUsage {
            asked: self.spec.pacing,
            lag_tolerance_us: (self.spec.pacing == Pacing::Economical)
                .then_some(self.spec.lag_tolerance.as_secs_f64() * 1e6),
            spinning_fraction: fraction(waiting.spent.spun),
            unbounded_fraction: fraction(waiting.spent.unbounded),
            busiest_working_fraction: waiting.working_fraction,
            sleep_cpu_us: waiting.sleep_cost as f64 / 1e3,
            answers_timed_by_kernel: self.spec.targets.unix_socket().is_none(),
        }
    }

    fn generator_usage(&self, measured: &Measured, duration_s: f64) -> GeneratorUsage {
        let Measured { recorder, cpu, switches, waiting, .. } = measured;
        GeneratorUsage {
            cpu_user_s: cpu.user.as_secs_f64(),
            cpu_system_s: cpu.system.as_secs_f64(),
            cpu_us_per_request: cpu.total().as_secs_f64() * 1e6 / recorder.sent_in_window().max(1) as f64,
            busiest_thread_fraction: measured.busiest_thread_fraction,
            voluntary_switches: switches.voluntary,
            involuntary_switches: switches.involuntary,
            memory_peak_bytes: memory_peak_bytes(),
            network: Some(self.network),
            pacing: Some(self.pacing_usage(waiting, duration_s)),
            pauses: waiting.spent.pauses.usage(waiting.spent.spun),
        }
    }

    /// True if an open loop was measured for the whole window.
    fn has_whole_open_loop(&self, measured: &Measured) -> bool {
        self.spec.own_rate().is_some() && measured.stopped_at >= self.timeline.end
    }

    /// Facts that a verdict needs beside the result.
    fn context<'a>(
        &'a self,
        measured: &Measured,
        open: usize,
        duration_s: f64,
        backlog: Option<&Backlog>,
        (abandoned_addresses, failed_lookups): &'a (Vec<String>, Option<(String, u64)>),
    ) -> RunContext<'a> {
        let Measured { recorder, waiting, .. } = measured;
        let least_reached = waiting.least_reached(duration_s);
        let servers = &self.spec.targets.servers;
        RunContext {
            connections_at_start: (servers.len() <= self.spec.connections && !self.spec.opening.per_request)
                .then_some(open),
            without_warmup: self.spec.warmup.is_zero(),
            // Of sessions: their requests have other numbers.
            requests_wanted: self.spec.own_requests().filter(|_| self.spec.targets.sessions.is_empty()),
            start_at: measured.agreed_start,
            started_at: measured.started_at,
            clock_moved: measured.clock_moved,
            servers_left_out: self.spec.servers_left_out(),
            cpus: usable_cpus().unwrap_or(1.0),
            growth: backlog.and_then(growth),
            peer_limit: waiting.peer_limit,
            without_connection: least_reached.map_or(0.0, |(_, share)| share),
            least_reached: least_reached
                .filter(|_| waiting.unreachable.len() > 1)
                .map(|(server, _)| servers[server].authority.as_str()),
            fallbacks: recorder.fallbacks(),
            abandoned_addresses,
            failed_lookups: failed_lookups.as_ref().map(|(endpoint, times)| (endpoint.as_str(), *times)),
            crowded_out: recorder
                .most_crowded()
                .map(|(server, requests)| (servers[server].authority.as_str(), requests)),
        }
    }

    /// Each URL; empty if kinds of requests take their place.
    fn per_url(&self, recorder: &Recorder) -> Vec<UrlResult> {
        if self.spec.targets.has_kinds() { Vec::new() } else { recorder.url_results(&self.spec.urls) }
    }

    fn sessions(&self, recorder: &Recorder) -> Option<SessionResults> {
        let targets = &self.spec.targets;
        let steps: Vec<_> = targets.choices.iter().filter_map(Choice::name).collect();
        recorder.session_results(&targets.sessions, &steps)
    }

    /// Each kind of request; empty if there are none.
    fn kinds(&self, recorder: &Recorder) -> Vec<KindResult> {
        let base = self.spec.urls.first().map_or("", |url| url.trim_end_matches('/'));
        let kinds = || {
            self.spec
                .targets
                .choices
                .iter()
                .filter_map(|choice| Some((choice.kind.as_deref()?, choice.weight)))
        };
        let steps = self.spec.targets.steps();
        let session_weight = |kind: usize| Some(self.spec.targets.sessions[steps.get(kind)?.0].weight);
        let urls: Vec<String> = kinds().map(|(kind, _)| format!("{base}{}", kind.shown_path)).collect();
        let requests = if urls.is_empty() { Vec::new() } else { recorder.url_results(&urls) };
        let result = |(index, ((kind, weight), requests)): (usize, ((&Kind, u32), UrlResult))| KindResult {
            name: kind.name.clone(),
            weight: session_weight(index).unwrap_or(weight),
            requests,
        };
        kinds().zip(requests).enumerate().map(result).collect()
    }

    /// `open`: connections that were open at the start.
    pub fn result(&self, mut measured: Measured, open: usize) -> LoadResult {
        let window = measured.stopped_at.saturating_sub(self.timeline.window_start);
        let duration_s = window as f64 / SECOND as f64;
        let generator = self.generator_usage(&measured, duration_s);
        let series = std::mem::take(&mut measured.series);
        let recorder = &measured.recorder;
        let requests = self.requests(recorder);
        let per_second = |count: u64| if duration_s > 0.0 { count as f64 / duration_s } else { 0.0 };
        let (response_time_us, censored_above_us) = recorder.response_times();
        let episodes = recorder.slowest.episodes(&response_time_us);
        let events = recorder.events.as_deref();
        let slowest = recorder.slowest.to_requests(self.timeline.window_start);
        let is_per_request = self.spec.opening.per_request;
        let is_timed_by_kernel = self.spec.targets.unix_socket().is_none();
        let mut result = LoadResult {
            schema: LOAD_SCHEMA.to_owned(),
            version: Build::this().version.clone(),
            build: Some(Build::this().clone()),
            urls: self.spec.urls.clone(),
            started_at: measured.started_at.to_string(),
            start_delay_us: measured.agreed_start.map(|_| measured.start_delay as f64 / 1e3),
            duration_s,
            interrupted: self.stop.load(Ordering::Relaxed) && measured.stopped_at < self.timeline.end,
            threads: self.spec.threads,
            connections: if is_per_request {
                measured.waiting.connections
            } else {
                self.spec.own_connections()
            },
            protocol: self.spec.spoken(),
            streams: self.spec.protocol.streams(),
            connection_settings: self.spec.connection_settings(),
            idle_closes: recorder.idle_closes(),
            addresses: recorder.addresses(),
            tls_sessions: recorder.tls_sessions(),
            tls_server_keys: recorder.tls_server_keys(),
            clients: self.spec.own_clients(),
            client_stages: self.spec.client_stages(),
            arrivals: self.spec.arrivals(),
            expected_status: self.spec.expected_status.clone(),
            rate: Rates {
                offered: self.spec.own_rate(),
                sent: per_second(recorder.sent_in_window()),
                completed: per_second(recorder.answered_in_window()),
            },
            warmup: recorder.warmup_counts(),
            response_time_us,
            censored_above_us,
            unanswered_waits_us: recorder.unanswered_waits_us(),
            first_byte_us: events.map(|events| events.first_byte(recorder.unanswered())),
            first_event_us: events.map(|events| events.first_event(recorder.unanswered())),
            event_gap_us: events.and_then(EventRecord::gaps),
            events: events.map(EventRecord::counts),
            service_time_us: recorder.service_time.summary(),
            schedule_lag_us: recorder.schedule_lag.summary(),
            generator_lag_us: recorder.generator_lag.summary(),
            reading_lag_us: (is_timed_by_kernel && recorder.reading_lag.count() > 0)
                .then(|| recorder.reading_lag.summary()),
            arrival_uncertainty_us: (is_timed_by_kernel
                && matches!(self.spec.protocol, Protocol::Http2 { .. } | Protocol::WebSocket(_)))
            .then(|| recorder.arrival_uncertainty()),
            episodes,
            slowest: Some(slowest),
            backlog: self
                .has_whole_open_loop(&measured)
                .then(|| recorder.backlog(|at| self.spec.due_until(at).unwrap_or_default())),
            connect_time_us: recorder.connect_time.summary(),
            handshake_time_us: recorder.handshake_time.summary(),
            grpc: recorder.grpc.as_deref().map(GrpcRecord::messages),
            bytes: Bytes { sent: recorder.bytes_sent, received: recorder.response_sizes.sum },
            response_size_bytes: recorder.response_sizes.summary(),
            generator,
            requests,
            series,
            series_histograms: Vec::new(),
            per_url: self.per_url(recorder),
            sessions: self.sessions(recorder),
            kinds: self.kinds(recorder),
            verdict: Default::default(),
            objective: None,
            exports: Vec::new(),
            merged: None,
        };
        let of_names = (recorder.abandoned_addresses(), self.addresses.most_failed());
        let context = self.context(&measured, open, duration_s, result.backlog.as_ref(), &of_names);
        result.verdict = verdict::check(&result, context);
        result
    }

    /// Requests, with their statuses judged by what the load or its kinds of requests expect.
    fn requests(&self, recorder: &Recorder) -> RequestCounts {
        let mut requests = recorder.request_counts();
        if let Some(expected) = &self.spec.expected_status {
            requests.expect(expected);
        }
        if self.spec.targets.have_checks() {
            recorder.expect_statuses_of_kinds(&mut requests);
        }
        requests
    }
}

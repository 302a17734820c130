//! The course of a run: connect, warm up, measure, drain; then everything into one result.

use crate::clock::{Clock, Nanos, SECOND, nanos};
use crate::error::LoadError;
use crate::network::{EpollNetwork, Foundation, Network, TlsNetwork, UringNetwork, foundations};
use crate::pacing::{SpareCpu, SpareWatch, Spent};
use crate::protocol::Codec;
use crate::protocol::http1::{Http1, Http1Request};
use crate::protocol::http2::{CommonFields, Http2Connection, Http2Request};
use crate::protocol::raw::{Raw, RawRequest};
use crate::recorder::{GrpcRecord, Recorder};
use crate::schedule::{ClosedLoop, ClosedLoopSettings, OpenLoop, RateProfile, Schedule};
use crate::second::{Second, SecondCounts};
use crate::spec::{LoadSpec, Protocol, ScheduleSpec};
use crate::target::{Assignment, Request, Selector};
use crate::usage::{ProcessCpu, Switches, memory_peak_bytes};
use crate::verdict::{self, Circumstances};
use crate::worker::{Plan, Timeline, Worker, WorkerOutcome};
use experiment::schema::{
    Bytes, GeneratorNetwork, GeneratorUsage, LOAD_SCHEMA, LoadResult, Pacing, PacingUsage, Rates, SeriesPoint,
};
use jiff::SignedDuration;
use series::Series;
use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};
use window::{Edge, Window};

mod series;
mod start;
mod window;

/// Between the last connection's opening and the start of the schedule: time for every worker to get ready.
const START_DELAY: Duration = Duration::from_millis(2);
/// How often the run looks whether it is to stop.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// Time that the kernel may add to a sleep, nanoseconds: the least there is (prctl(2), PR_SET_TIMERSLACK).
const TIMER_SLACK_NS: NonZeroU64 = NonZeroU64::MIN;

/// What a run tells while it goes on.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// The agreed instant of the start is awaited.
    Waiting,
    /// Connections are being opened.
    Connecting,
    /// The schedule has started; nothing is measured yet.
    WarmingUp,
    /// The measured window has just opened.
    WindowOpened,
    /// A second is over. All that were measured are told, in their order; the last come after the window's end.
    Second(&'a Second),
    /// The measured window has just closed; answers to requests on their way are still awaited.
    WindowClosed,
}

/// Is told of the progress of a run, on the thread that called [`run`].
pub trait Observer {
    /// Something happened. Should return soon: the next event waits.
    fn progress(&mut self, progress: Progress<'_>);
}

enum FromWorker {
    Connected(usize),
    /// From which worker.
    Second(usize, Box<SecondCounts>),
    Done(usize, io::Result<Box<WorkerOutcome>>),
}

/// Runs the load to its end, or until `stop` is set, and returns what was measured until then.
///
/// A target that cannot be reached is no error of the engine: the result counts it and is not valid.
///
/// # Errors
/// Where the engine itself cannot run.
pub fn run(spec: &LoadSpec, stop: &AtomicBool, observer: &mut dyn Observer) -> Result<LoadResult, LoadError> {
    let timeline = Timeline {
        window_start: nanos(spec.warmup),
        end: nanos(spec.warmup) + nanos(spec.duration),
        timeout: nanos(spec.timeout),
        connecting: nanos(spec.connecting()),
    };
    let (network, foundations) =
        foundations(spec.network, spec.threads, matches!(spec.schedule, ScheduleSpec::Closed { .. }))?;
    if let Some(start) = spec.start_at {
        observer.progress(Progress::Waiting);
        start::await_connecting(start - spec.warmup, spec.connecting(), stop)?;
    }
    let quota = match &spec.schedule {
        ScheduleSpec::Closed { requests: Some(requests), .. } => Some(Arc::new(AtomicU64::new(*requests))),
        _ => None,
    };
    observer.progress(Progress::Connecting);
    let spare_cpu = SpareCpu::default();
    thread::scope(|scope| {
        let (to_run, from_workers) = channel();
        let mut workers = Vec::new();
        for (thread, foundation) in foundations.into_iter().enumerate() {
            let (start, started) = channel();
            let (spare, spares) = channel();
            workers.push(ToWorker { start, spare });
            let (quota, to_run) = (quota.clone(), to_run.clone());
            let spare_cpu = &spare_cpu;
            let share = Share { spec, timeline, thread, spare_cpu, stop, started, spares, quota, to_run };
            thread::Builder::new()
                .name(format!("load-{thread}"))
                .spawn_scoped(scope, move || {
                    let outcome = share.work(foundation);
                    // The run may have ended with an error of another worker.
                    let _ = share.to_run.send(FromWorker::Done(thread, outcome.map(Box::new)));
                })
                .map_err(LoadError::Thread)?;
        }
        drop(to_run);
        let course = Course { spec, timeline, spare_cpu: &spare_cpu, stop, observer, from_workers, network };
        course.follow(workers)
    })
}

/// The way to one worker.
struct ToWorker {
    /// When the schedule starts.
    start: Sender<Instant>,
    /// Seconds that are done with, empty.
    spare: Sender<SecondCounts>,
}

/// One thread's part of a run.
struct Share<'a> {
    spec: &'a LoadSpec,
    timeline: Timeline,
    thread: usize,
    spare_cpu: &'a SpareCpu,
    stop: &'a AtomicBool,
    started: Receiver<Instant>,
    spares: Receiver<SecondCounts>,
    /// How many requests of a closed loop may still be begun, where their number is fixed.
    quota: Option<Arc<AtomicU64>>,
    to_run: Sender<FromWorker>,
}

impl Share<'_> {
    /// What the thread does.
    fn work(&self, foundation: Foundation) -> io::Result<WorkerOutcome> {
        let Self { spec, timeline, thread, .. } = self;
        match &spec.schedule {
            ScheduleSpec::Open { stages, arrival } => {
                let profile = RateProfile::new(stages, spec.warmup).ending_at(timeline.end);
                let schedule = OpenLoop::new(profile, *arrival, spec.seed, *thread, spec.threads);
                self.follow(Box::new(schedule), foundation)
            }
            ScheduleSpec::Closed { clients, think_time, .. } => {
                let settings = ClosedLoopSettings {
                    clients: *clients,
                    threads: spec.threads,
                    think_time: *think_time,
                    seed: spec.seed,
                    window_start: timeline.window_start,
                    end: timeline.end,
                    quota: self.quota.clone(),
                };
                self.follow(Box::new(ClosedLoop::new(settings, *thread)), foundation)
            }
        }
    }

    fn follow(&self, schedule: Box<dyn Schedule>, foundation: Foundation) -> io::Result<WorkerOutcome> {
        rustix::thread::set_current_timer_slack(Some(TIMER_SLACK_NS))?;
        let spec = self.spec;
        let assignment = Assignment::new(&spec.targets, spec.connections, self.thread, spec.threads);
        let slots = assignment.servers.len();
        match foundation {
            Foundation::IoUring(ring) => {
                self.follow_over(schedule, UringNetwork::new(*ring, slots)?, &assignment)
            }
            Foundation::Epoll => self.follow_over(schedule, EpollNetwork::new(slots)?, &assignment),
        }
    }

    /// Puts TLS between where that is asked for.
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
                let network = TlsNetwork::new(network, tls.speaking(spec.protocol), slots);
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
                let common = CommonFields::of(requests);
                let make_request = |request: &Request| Http2Request::new(request, &common);
                self.speak(schedule, network, assignment, make_request, || {
                    Http2Connection::new(streams, &common)
                })
            }
            Protocol::Raw(expected) => {
                self.speak(schedule, network, assignment, RawRequest::new, || Raw::new(expected))
            }
        }
    }

    /// Runs a worker of which each connection has a codec.
    fn speak<N: Network, C: Codec>(
        &self,
        schedule: Box<dyn Schedule>,
        network: N,
        assignment: &Assignment,
        make_request: impl Fn(&Request) -> C::Request,
        make_codec: impl Fn() -> C,
    ) -> io::Result<WorkerOutcome> {
        let spec = self.spec;
        let plan = Plan {
            timeline: self.timeline,
            targets: &spec.targets.servers,
            requests_per_connection: spec.requests_per_connection,
            whole_seconds: spec.whole_seconds,
            pacing: spec.pacing,
            lag_tolerance: nanos(spec.lag_tolerance),
            spare_cpu: self.spare_cpu,
            stop: self.stop,
        };
        let selector = Selector::new(&spec.targets, spec.seed, self.thread, spec.threads);
        let mut worker =
            Worker::new(plan, make_request, make_codec, (schedule, selector), network, assignment);
        let open = worker.connect(&Clock::starting_at(Instant::now()))?;
        // Sending fails only where the run has ended already; receiving tells that.
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

/// A run as seen from the thread that directs it.
struct Course<'a> {
    spec: &'a LoadSpec,
    timeline: Timeline,
    spare_cpu: &'a SpareCpu,
    stop: &'a AtomicBool,
    observer: &'a mut dyn Observer,
    from_workers: Receiver<FromWorker>,
    network: GeneratorNetwork,
}

/// What the workers measured, and what the process used meanwhile.
struct Measured {
    recorder: Recorder,
    series: Vec<SeriesPoint>,
    started_at: jiff::Timestamp,
    /// By how much the wall clock was set during the window.
    clock_moved: SignedDuration,
    /// End of the window by the run's clock.
    stopped_at: Nanos,
    cpu: ProcessCpu,
    switches: Switches,
    busiest_thread_fraction: f64,
    waiting: Waiting,
}

/// What the threads spent on waiting.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    /// All together.
    spent: Spent,
    /// CPU of one sleep, of the thread where it was dearest.
    sleep_cost: Nanos,
    /// The share of the window for which the busiest thread was on a CPU and did not spin.
    working_fraction: f64,
    /// Answers were timed by when the kernel had them: the same for all threads.
    noted_arrivals: bool,
}

impl Waiting {
    fn add(&mut self, outcome: &WorkerOutcome) {
        self.spent.add(&outcome.spent);
        self.sleep_cost = self.sleep_cost.max(outcome.sleep_cost);
        self.working_fraction = self.working_fraction.max(outcome.working_fraction);
        self.noted_arrivals |= outcome.noted_arrivals;
    }
}

impl Course<'_> {
    fn follow(mut self, to_workers: Vec<ToWorker>) -> Result<LoadResult, LoadError> {
        let mut outcomes = Vec::new();
        let mut open = 0;
        for _ in &to_workers {
            match self.from_workers.recv() {
                Ok(FromWorker::Connected(connections)) => open += connections,
                Ok(FromWorker::Done(_, outcome)) => outcomes.push(outcome.map_err(LoadError::EventLoop)?),
                Ok(FromWorker::Second(..)) | Err(_) => {}
            }
        }
        let start = match self.spec.start_at {
            Some(start) if open > 0 => start::await_start(start - self.spec.warmup, self.stop)?,
            _ => Instant::now() + START_DELAY,
        };
        if open == 0 || self.stop.load(Ordering::Relaxed) {
            let workers = to_workers.len();
            // Tells the workers that their start will not come.
            drop(to_workers);
            return Ok(self.never_started(workers, open));
        }
        for worker in &to_workers {
            // A worker that is gone has said why.
            let _ = worker.start.send(start);
        }
        let measured = self.measure(start, &to_workers)?;
        Ok(self.result(measured, open))
    }

    /// Follows the workers from the start of the warm-up to the end of the drain.
    fn measure(&mut self, start: Instant, to_workers: &[ToWorker]) -> Result<Measured, LoadError> {
        let clock = Clock::starting_at(start);
        let planned_start =
            jiff::Timestamp::now() + (start.saturating_duration_since(Instant::now()) + self.spec.warmup);
        let mut recorder = Recorder::new(self.timeline.window_start, self.timeline.end, false);
        let window_seconds = nanos(self.spec.duration).div_ceil(SECOND);
        let mut series = Series::new(window_seconds, to_workers.len());
        let mut stopped_at = 0;
        let (mut busiest_thread_fraction, mut switches) = (0.0_f64, Switches::default());
        let mut waiting = Waiting::default();
        let mut window = Window::default();
        let mut watch = (self.spec.pacing == Pacing::Auto)
            .then(|| SpareWatch::new(self.spare_cpu, to_workers.len()))
            .flatten();
        if !self.spec.warmup.is_zero() {
            self.observer.progress(Progress::WarmingUp);
        }
        let mut done = 0;
        while done < to_workers.len() {
            self.pass_edges(&clock, &mut window);
            if let Some(watch) = &mut watch {
                watch.look();
            }
            self.tell_finished(
                &mut series,
                window.started_at(self.timeline.window_start).unwrap_or(planned_start),
            );
            match self.from_workers.recv_timeout(self.until_next_look(&clock, &window)) {
                Ok(FromWorker::Done(worker, outcome)) => {
                    let outcome = outcome.map_err(LoadError::EventLoop)?;
                    series.worker_done(worker);
                    recorder.merge(&outcome.recorder);
                    stopped_at = stopped_at.max(outcome.stopped_at);
                    busiest_thread_fraction = busiest_thread_fraction.max(outcome.busy_fraction);
                    switches.voluntary += outcome.switches.voluntary;
                    switches.involuntary += outcome.switches.involuntary;
                    waiting.add(&outcome);
                    done += 1;
                }
                Ok(FromWorker::Second(worker, mut second)) => {
                    series.add(worker, &second);
                    second.clear();
                    // A worker that is done needs no more.
                    let _ = to_workers[worker].spare.send(*second);
                }
                Ok(FromWorker::Connected(_)) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.close_window(&clock, &mut window);
        let started_at = window.started_at(self.timeline.window_start).unwrap_or(planned_start);
        self.tell_finished(&mut series, started_at);
        Ok(Measured {
            recorder,
            series: series.into_points(),
            started_at,
            clock_moved: window.clock_moved(),
            stopped_at,
            cpu: window.used(),
            switches,
            busiest_thread_fraction,
            waiting,
        })
    }

    fn tell_finished(&mut self, series: &mut Series, window_started_at: jiff::Timestamp) {
        while let Some(second) = series.next_finished() {
            let due = self.spec.due_in_second(second.index);
            let second = second.told(window_started_at, due);
            self.observer.progress(Progress::Second(&second));
        }
    }

    /// Opens and closes the window when it is time.
    fn pass_edges(&mut self, clock: &Clock, window: &mut Window) {
        let now = clock.now();
        if window.opened.is_none() && now >= self.timeline.window_start {
            window.opened = Some(Edge::now(clock));
            self.observer.progress(Progress::WindowOpened);
        }
        if now >= self.timeline.end || self.stop.load(Ordering::Relaxed) {
            self.close_window(clock, window);
        }
    }

    fn close_window(&mut self, clock: &Clock, window: &mut Window) {
        if window.opened.is_some() && window.closed.is_none() {
            window.closed = Some(Edge::now(clock));
            self.observer.progress(Progress::WindowClosed);
        }
    }

    fn until_next_look(&self, clock: &Clock, window: &Window) -> Duration {
        let now = clock.now();
        let edge = if window.opened.is_none() { self.timeline.window_start } else { self.timeline.end };
        let until_edge = if window.closed.is_none() && edge > now { edge - now } else { u64::MAX };
        LOOK_INTERVAL.min(Duration::from_nanos(until_edge))
    }

    /// No connection could be opened, or the user did not wait for it.
    fn never_started(self, workers: usize, open: usize) -> LoadResult {
        let mut recorder = Recorder::new(self.timeline.window_start, self.timeline.end, false);
        let mut done = 0;
        while done < workers {
            match self.from_workers.recv() {
                Ok(FromWorker::Done(_, outcome)) => {
                    done += 1;
                    if let Ok(outcome) = outcome {
                        recorder.merge(&outcome.recorder);
                    }
                }
                Ok(_) => {}
                Err(_) => break,
            }
        }
        let measured = Measured {
            recorder,
            series: Vec::new(),
            started_at: jiff::Timestamp::now(),
            clock_moved: SignedDuration::ZERO,
            stopped_at: self.timeline.window_start,
            cpu: ProcessCpu::default(),
            switches: Switches::default(),
            busiest_thread_fraction: 0.0,
            waiting: Waiting::default(),
        };
        self.result(measured, open)
    }

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
            answers_timed_by_kernel: waiting.noted_arrivals,
        }
    }

    /// `open`: connections that were open at the start.
    fn result(&self, measured: Measured, open: usize) -> LoadResult {
        let Measured {
            recorder,
            series,
            started_at,
            clock_moved,
            stopped_at,
            cpu,
            switches,
            busiest_thread_fraction,
            waiting,
        } = measured;
        let duration_s = stopped_at.saturating_sub(self.timeline.window_start) as f64 / SECOND as f64;
        let requests = recorder.request_counts();
        let per_second = |count: u64| if duration_s > 0.0 { count as f64 / duration_s } else { 0.0 };
        let mut result = LoadResult {
            schema: LOAD_SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            urls: self.spec.urls.clone(),
            started_at: started_at.to_string(),
            duration_s,
            threads: self.spec.threads,
            connections: self.spec.connections,
            protocol: self.spec.spoken(),
            streams: self.spec.protocol.streams(),
            tls_sessions: recorder.tls_sessions(),
            clients: match self.spec.schedule {
                ScheduleSpec::Closed { clients, .. } => Some(clients),
                ScheduleSpec::Open { .. } => None,
            },
            rate: Rates {
                offered: self.spec.schedule.mean_rate(self.spec.duration),
                sent: per_second(requests.sent),
                completed: per_second(requests.completed),
            },
            warmup: recorder.warmup,
            response_time_us: recorder.response_time.summary(),
            service_time_us: recorder.service_time.summary(),
            schedule_lag_us: recorder.schedule_lag.summary(),
            generator_lag_us: recorder.generator_lag.summary(),
            connect_time_us: recorder.connect_time.summary(),
            handshake_time_us: recorder.handshake_time.summary(),
            grpc: recorder.grpc.as_deref().map(GrpcRecord::messages),
            bytes: Bytes { sent: recorder.bytes_sent, received: recorder.bytes_received },
            response_size_bytes: recorder.response_sizes(),
            generator: GeneratorUsage {
                cpu_user_s: cpu.user.as_secs_f64(),
                cpu_system_s: cpu.system.as_secs_f64(),
                cpu_us_per_request: cpu.total().as_secs_f64() * 1e6 / requests.sent.max(1) as f64,
                busiest_thread_fraction,
                voluntary_switches: switches.voluntary,
                involuntary_switches: switches.involuntary,
                memory_peak_bytes: memory_peak_bytes(),
                network: Some(self.network),
                pacing: Some(self.pacing_usage(&waiting, duration_s)),
            },
            requests,
            series,
            series_histograms: Vec::new(),
            verdict: Default::default(),
            objective: None,
            merged: None,
        };
        let circumstances = Circumstances {
            interrupted: stopped_at < self.timeline.end && self.stop.load(Ordering::Relaxed),
            connections_at_start: (self.spec.targets.servers.len() <= self.spec.connections).then_some(open),
            requests_wanted: match self.spec.schedule {
                ScheduleSpec::Closed { requests, .. } => requests,
                ScheduleSpec::Open { .. } => None,
            },
            start_at: self.spec.start_at,
            started_at,
            clock_moved,
            crowded_out: recorder
                .most_crowded()
                .map(|(server, requests)| (self.spec.targets.servers[server].authority.as_str(), requests)),
        };
        result.verdict = verdict::judge(&result, circumstances);
        result
    }
}

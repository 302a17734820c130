//! The thread that directs a run: waits for connections, starts the workers, follows the window.

use super::messages::{FromWorker, ToWorker};
use super::progress::{Observer, Progress};
use super::result::{Measured, Waiting};
use super::series::Series;
use super::start::{self, POLL_INTERVAL};
use super::window::{Edge, Window};
use crate::clock::{Clock, SECOND, nanos};
use crate::error::LoadError;
use crate::lookups::FoundAddresses;
use crate::pacing::{SpareCpu, SpareWatch};
use crate::recorder::Recorder;
use crate::spec::LoadSpec;
use crate::start::Start;
use crate::usage::{ProcessCpu, Switches};
use crate::worker::Timeline;
use jiff::{SignedDuration, Timestamp};
use results::{GeneratorNetwork, LoadResult, Pacing};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Between opening the last connection and the start of the schedule: time for every worker to get ready.
const START_DELAY: Duration = Duration::from_millis(2);

/// State of the directing thread.
pub(super) struct Coordinator<'a> {
    pub spec: &'a LoadSpec,
    pub timeline: Timeline,
    pub addresses: &'a FoundAddresses,
    pub spare_cpu: &'a SpareCpu,
    pub stop: &'a AtomicBool,
    pub observer: &'a mut dyn Observer,
    pub from_workers: Receiver<FromWorker>,
    pub network: GeneratorNetwork,
}

impl Coordinator<'_> {
    pub fn follow(mut self, to_workers: Vec<ToWorker>) -> Result<LoadResult, LoadError> {
        let mut outcomes = Vec::new();
        let mut open = 0;
        for _ in &to_workers {
            match self.from_workers.recv() {
                Ok(FromWorker::Connected(connections)) => open += connections,
                Ok(FromWorker::Done(_, outcome)) => outcomes.push(outcome.map_err(LoadError::EventLoop)?),
                Ok(FromWorker::Second(..)) | Err(_) => {}
            }
        }
        let started = self.await_start(open > 0);
        if let Err(LoadError::StartMissed(_)) = &started {
            self.observer.progress(Progress::StartMissed);
        }
        let (agreed_start, start) = started?;
        if open == 0 || self.stop.load(Ordering::Relaxed) {
            let workers = to_workers.len();
            // Closed channels tell the workers that the run does not start.
            drop(to_workers);
            return Ok(self.never_started(workers, open, agreed_start));
        }
        for worker in &to_workers {
            // A worker that is gone has already reported why.
            let _ = worker.start.send(start);
        }
        let measured = Measured { agreed_start, ..self.measure(start, &to_workers)? };
        Ok(self.result(measured, open))
    }

    /// Waits for the start of the schedule. Returns the agreed opening of the window, if any, and the start.
    fn await_start(&mut self, is_open: bool) -> Result<(Option<Timestamp>, Instant), LoadError> {
        let agreed = if is_open { self.agreed_start()? } else { None };
        let start = match agreed {
            Some(start) => start::await_start(start - self.spec.warmup, self.stop)?,
            None => Instant::now() + START_DELAY,
        };
        Ok((agreed, start))
    }

    /// The instant at which the window should open; `None` if no start is agreed on or the run is stopped
    /// before it.
    fn agreed_start(&mut self) -> Result<Option<Timestamp>, LoadError> {
        match &self.spec.start {
            Start::AtOnce => Ok(None),
            Start::At(start) => Ok(Some(*start)),
            Start::OnSignal(signal) => {
                self.observer.progress(Progress::Ready);
                start::await_signal(signal, self.spec.warmup, self.stop)
            }
        }
    }

    /// Follows the workers from the warm-up to the end of the drain.
    fn measure(&mut self, start: Instant, to_workers: &[ToWorker]) -> Result<Measured, LoadError> {
        let clock = Clock::starting_at(start);
        let planned_start =
            Timestamp::now() + (start.saturating_duration_since(Instant::now()) + self.spec.warmup);
        let mut recorder = Recorder::new(self.timeline.window_start, self.timeline.end, false);
        let window_seconds = nanos(self.spec.duration).div_ceil(SECOND);
        let mut series = Series::new(window_seconds, to_workers.len());
        let mut stopped_at = 0;
        let (mut busiest_thread_fraction, mut switches) = (0.0_f64, Switches::default());
        let mut start_delay = 0;
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
                    start_delay = start_delay.max(outcome.start_delay);
                    busiest_thread_fraction = busiest_thread_fraction.max(outcome.busy_fraction);
                    switches.voluntary += outcome.switches.voluntary;
                    switches.involuntary += outcome.switches.involuntary;
                    waiting.add(&outcome);
                    done += 1;
                }
                Ok(FromWorker::Second(worker, mut second)) => {
                    series.add(worker, &second);
                    second.clear();
                    // A worker that is done needs no spare buffer.
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
            agreed_start: None,
            start_delay,
            clock_moved: window.clock_moved(),
            stopped_at,
            cpu: window.used(),
            switches,
            busiest_thread_fraction,
            waiting,
        })
    }

    fn tell_finished(&mut self, series: &mut Series, window_started_at: Timestamp) {
        while let Some(second) = series.next_finished() {
            let due = self.spec.due_in_second(second.index, second.length);
            let second = second.told(window_started_at, due);
            self.observer.progress(Progress::Second(&second));
        }
    }

    /// Opens and closes the window on time. Before its origin the clock reads 0, which may equal the window's
    /// start.
    fn pass_edges(&mut self, clock: &Clock, window: &mut Window) {
        let now = clock.now();
        if !clock.until_origin().is_zero() {
            return;
        }
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
        let until_origin = clock.until_origin();
        if window.closed.is_some() || (edge <= now && until_origin.is_zero()) {
            return POLL_INTERVAL;
        }
        POLL_INTERVAL.min(until_origin + Duration::from_nanos(edge.saturating_sub(now)))
    }

    /// Result of a run that never started: no connection could be opened, or the user interrupted it.
    fn never_started(self, workers: usize, open: usize, agreed_start: Option<Timestamp>) -> LoadResult {
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
            started_at: Timestamp::now(),
            agreed_start,
            start_delay: 0,
            clock_moved: SignedDuration::ZERO,
            stopped_at: self.timeline.window_start,
            cpu: ProcessCpu::default(),
            switches: Switches::default(),
            busiest_thread_fraction: 0.0,
            waiting: Waiting::default(),
        };
        self.result(measured, open)
    }
}

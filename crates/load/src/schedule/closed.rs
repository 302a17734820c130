//! Closed loop: each client sends its next request after a response and a think time.

use super::clients::{ClientStage, presence};
use super::{Schedule, exponential};
use crate::clock::{Nanos, nanos};
use rand::SeedableRng as _;
use rand::rngs::ChaCha8Rng;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Clients without a think time start spread over this time, so that they do not all fire at once.
const START_SPREAD: Nanos = 1_000_000;

/// How long a client of a closed loop waits between a response and its next request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ThinkTime {
    /// Constant; zero: no wait.
    Constant(Duration),
    /// Random with this mean, as with people: exponentially distributed.
    Exponential(Duration),
}

impl ThinkTime {
    /// No think time.
    pub const NONE: Self = Self::Constant(Duration::ZERO);

    /// Mean think time.
    #[must_use]
    pub fn mean(self) -> Duration {
        match self {
            Self::Constant(time) | Self::Exponential(time) => time,
        }
    }
}

/// Settings shared by all clients of all threads.
#[derive(Clone, Debug)]
pub(crate) struct ClosedLoopSettings {
    /// Clients of all threads together; with stages, their highest number.
    pub(crate) clients: usize,
    /// Numbers of clients over time after the warm-up; empty if the number does not change.
    pub(crate) stages: Vec<ClientStage>,
    pub(crate) threads: usize,
    pub(crate) think_time: ThinkTime,
    pub(crate) seed: u64,
    pub(crate) window_start: Nanos,
    pub(crate) end: Nanos,
    /// How many requests of the window may still be started; `None`: unlimited.
    pub(crate) quota: Option<Arc<AtomicU64>>,
}

/// The clients of one thread.
pub(crate) struct ClosedLoop {
    settings: ClosedLoopSettings,
    /// When each waiting client sends next, earliest first; at most one entry per client. Entries in the
    /// window have already taken their request from the quota.
    ready: BinaryHeap<Reverse<Nanos>>,
    /// Times at which a client leaves, whichever it is, in order.
    departures: VecDeque<Nanos>,
    random: Box<ChaCha8Rng>,
    last_ended: Nanos,
}

impl ClosedLoop {
    /// The clients assigned to `thread`. They are dealt out round-robin, and start one after the other,
    /// spread over the mean think time or a millisecond, whichever is longer, and so do those that come later at one instant.
    pub(crate) fn new(settings: ClosedLoopSettings, thread: usize) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(settings.seed);
        random.set_stream(thread as u64);
        let (clients, threads) = (settings.clients, settings.threads);
        let spread = nanos(settings.think_time.mean()).max(START_SPREAD);
        let mut schedule = Self {
            settings,
            ready: BinaryHeap::new(),
            departures: VecDeque::new(),
            random: Box::new(random),
            last_ended: 0,
        };
        let mut departures = Vec::new();
        for client in (thread..clients).step_by(threads) {
            let offset = (u128::from(spread) * client as u128 / clients as u128) as Nanos;
            let ClosedLoopSettings { stages, window_start, .. } = &schedule.settings;
            if stages.is_empty() {
                schedule.add(offset);
                continue;
            }
            let times = presence(stages, Duration::from_nanos(*window_start), client);
            departures.extend(times.iter().map(|time| time.end));
            times.iter().for_each(|time| schedule.ready.push(Reverse(time.start + offset)));
        }
        departures.sort_unstable();
        schedule.departures = departures.into();
        schedule
    }

    /// Schedules a client's next request at `due`, if the quota allows it.
    fn add(&mut self, due: Nanos) {
        if due < self.settings.window_start || self.take_from_quota() {
            self.ready.push(Reverse(due));
        }
    }

    fn take_from_quota(&self) -> bool {
        let Some(quota) = &self.settings.quota else { return true };
        quota.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |requests| requests.checked_sub(1)).is_ok()
    }

    fn think(&mut self) -> Nanos {
        match self.settings.think_time {
            ThinkTime::Constant(time) => nanos(time),
            ThinkTime::Exponential(mean) => {
                exponential(&mut self.random, nanos(mean) as f64).round() as Nanos
            }
        }
    }
}

impl Schedule for ClosedLoop {
    fn is_open(&self) -> bool {
        false
    }

    fn next_due(&self) -> Option<Nanos> {
        self.ready.peek().map(|Reverse(due)| *due).filter(|due| *due < self.settings.end)
    }

    fn take(&mut self) {
        self.ready.pop();
    }

    fn request_ended(&mut self, at: Nanos) {
        self.last_ended = at;
        let due = at.saturating_add(self.think());
        if self.departures.pop_front_if(|departure| *departure <= due).is_none() {
            self.add(due);
        }
    }

    fn skip_until(&mut self, at: Nanos) -> u64 {
        let mut overdue = 0;
        while self.ready.peek().is_some_and(|Reverse(due)| *due < at) {
            self.ready.pop();
            overdue += 1;
        }
        overdue
    }

    fn used_up_since(&self) -> Option<Nanos> {
        let quota = self.settings.quota.as_ref()?.load(Ordering::Relaxed);
        (quota == 0 && self.ready.is_empty()).then_some(self.last_ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(clients: usize, threads: usize) -> ClosedLoopSettings {
        ClosedLoopSettings {
            clients,
            stages: Vec::new(),
            threads,
            think_time: ThinkTime::NONE,
            seed: 1,
            window_start: 0,
            end: 100_000_000,
            quota: None,
        }
    }

    fn all_due(schedule: &mut ClosedLoop) -> Vec<Nanos> {
        std::iter::from_fn(|| schedule.next_due().inspect(|_| schedule.take())).collect()
    }

    #[test]
    fn client_is_due_again_after_response_but_not_after_end() {
        let mut schedule = ClosedLoop::new(ClosedLoopSettings { end: 600_000, ..settings(2, 1) }, 0);
        assert_eq!(schedule.next_due(), Some(0));
        schedule.take();
        schedule.request_ended(70);
        schedule.take();
        assert_eq!(schedule.next_due(), Some(500_000));
        schedule.take();
        assert_eq!(schedule.next_due(), None);
        schedule.request_ended(600_000);
        assert_eq!(schedule.next_due(), None);
    }

    #[test]
    fn clients_of_all_threads_start_at_different_times() {
        for (think_time, spread) in
            [(ThinkTime::NONE, START_SPREAD), (ThinkTime::Constant(Duration::from_millis(20)), 20_000_000)]
        {
            let settings = ClosedLoopSettings { think_time, ..settings(10, 3) };
            let mut starts: Vec<Nanos> =
                (0..3).flat_map(|thread| all_due(&mut ClosedLoop::new(settings.clone(), thread))).collect();
            starts.sort_unstable();
            let expected: Vec<Nanos> = (0..10).map(|client| client * spread / 10).collect();
            assert_eq!(starts, expected);
        }
    }

    /// Requests of one client each take a millisecond: their number in each part of the run.
    fn requests_by_part(stages: &[ClientStage], part: Nanos, parts: usize) -> Vec<usize> {
        let settings = ClosedLoopSettings {
            stages: stages.to_vec(),
            window_start: part,
            end: part * parts as u64,
            ..settings(ClientStage::most(stages), 3)
        };
        let mut requests = vec![0; parts];
        for thread in 0..3 {
            let mut schedule = ClosedLoop::new(settings.clone(), thread);
            let mut responses = BinaryHeap::new();
            loop {
                let due = schedule.next_due();
                match responses.peek() {
                    Some(Reverse(at)) if due.is_none_or(|due| *at <= due) => {
                        schedule.request_ended(*at);
                        responses.pop();
                    }
                    _ => {
                        let Some(due) = due else { break };
                        requests[(due / part) as usize] += 1;
                        schedule.take();
                        responses.push(Reverse(due + 1_000_000));
                    }
                }
            }
        }
        requests
    }

    #[test]
    fn clients_of_stages_come_and_go() {
        let stage = |from, to, ms| ClientStage { from, to, duration: Duration::from_millis(ms) };
        let stages = [stage(2, 8, 200), stage(8, 4, 100), stage(0, 0, 100), stage(6, 6, 200)];
        let requests = requests_by_part(&stages, 100_000_000, 7);
        // In the warm-up two clients, then by the mean number of each part; each sends a thousand requests per second.
        for (requests, expected) in requests.into_iter().zip([200, 350, 650, 600, 0, 600, 600]) {
            assert!(usize::abs_diff(requests, expected) <= 15, "{requests}, expected {expected}");
        }
    }

    #[test]
    fn client_thinks_after_response() {
        let think_time = ThinkTime::Constant(Duration::from_millis(10));
        let mut schedule = ClosedLoop::new(ClosedLoopSettings { think_time, ..settings(1, 1) }, 0);
        schedule.take();
        schedule.request_ended(3_000_000);
        assert_eq!(schedule.next_due(), Some(13_000_000));
    }

    #[test]
    fn random_think_times_have_given_mean_and_follow_seed() {
        let think_time = ThinkTime::Exponential(Duration::from_millis(10));
        let times = |seed, thread| {
            let settings = ClosedLoopSettings {
                think_time,
                seed,
                end: u64::MAX,
                clients: 2,
                threads: 2,
                ..settings(2, 2)
            };
            let mut schedule = ClosedLoop::new(settings, thread);
            schedule.take();
            let think = |_| {
                schedule.request_ended(0);
                schedule.next_due().inspect(|_| schedule.take()).expect("it thinks for some time")
            };
            (0..20_000).map(think).collect::<Vec<Nanos>>()
        };
        let first = times(7, 0);
        let mean = first.iter().sum::<u64>() as f64 / first.len() as f64;
        assert!((mean / 1e7 - 1.0).abs() < 0.03, "{mean}");
        assert_eq!(first, times(7, 0));
        assert_ne!(first, times(8, 0));
        assert_ne!(first, times(7, 1));
    }

    #[test]
    fn threads_together_start_requested_number_of_requests() {
        let quota = Some(Arc::new(AtomicU64::new(7)));
        let settings = ClosedLoopSettings { quota, window_start: 1000, ..settings(4, 2) };
        let mut threads = [0, 1].map(|thread| ClosedLoop::new(settings.clone(), thread));
        // The first client is due in the warm-up, which does not count towards the quota.
        threads[0].take();
        threads[0].request_ended(999);
        threads[0].take();
        let mut begun = 0;
        while threads.iter().any(|schedule| schedule.used_up_since().is_none()) {
            for schedule in &mut threads {
                if schedule.next_due().is_some() {
                    schedule.take();
                    begun += 1;
                }
                schedule.request_ended(2000 + begun);
            }
        }
        assert_eq!(begun, 7);
    }
}

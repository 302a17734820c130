//! Queues of known capacity, simulated: how often a backlog is found that there is not, and missed that there is.

use super::*;
use crate::clock::SECOND;
use results::random::SplitMix64;
use statistics::backlog::{Growth, JUDGED, backlog_after, growth};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Random numbers. Without optimisation, other generators take most of the time.
pub(crate) struct Random(pub(crate) SplitMix64);

impl Random {
    /// From 0 to below 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.0.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }

    pub(crate) fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[(self.unit() * choices.len() as f64) as usize]
    }
}

/// Times at which requests are due.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Arrivals {
    Even,
    Poisson,
    /// At stages of 1.8 times and 0.2 times the rate, a pair of them this often in the window, at random within each.
    Stages(f64),
}

/// Distribution of service times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Service {
    Same,
    /// From half to one and a half times as long.
    Even,
    Exponential,
}

/// A queue before servers, behind connections of which each carries one request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queue {
    pub(crate) arrivals: Arrivals,
    pub(crate) service: Service,
    pub(crate) servers: usize,
    pub(crate) connections: usize,
    /// Servers take any request of those sent, not the first.
    pub(crate) overtakes: bool,
    pub(crate) window_s: f64,
    pub(crate) warmup_s: f64,
    /// Offered in the window, on average.
    pub(crate) requests: f64,
    /// The same as a part of what the servers can answer.
    pub(crate) load: f64,
}

/// Outcome of a window.
pub(crate) struct Window {
    pub(crate) growth: Option<Growth>,
    /// Requests by which the backlog grew in the judged part of it.
    pub(crate) grown: f64,
    /// Share of the requests that were never sent.
    pub(crate) unsent: f64,
}

/// A run in progress.
struct Run<'a> {
    queue: &'a Queue,
    random: &'a mut Random,
    trend: Trend,
    /// Due and not sent.
    unsent: VecDeque<Nanos>,
    /// Sent and not begun.
    waiting: Vec<Nanos>,
    /// Those begun: times at which they end, and at which they were due.
    begun: BinaryHeap<Reverse<(Nanos, Nanos)>>,
}

impl Queue {
    fn nanos(seconds: f64) -> Nanos {
        (seconds * SECOND as f64) as Nanos
    }

    /// Requests offered until a time after the start of the window, in units of the mean rate.
    fn shape(&self, at_s: f64) -> f64 {
        let Arrivals::Stages(pairs) = self.arrivals else { return at_s };
        let period = self.window_s / pairs;
        let (whole, rest) = ((at_s / period).floor(), (at_s / period).rem_euclid(1.0));
        period * (whole + 1.8 * rest.min(0.5) + 0.2 * (rest - 0.5).max(0.0))
    }

    /// The inverse of [`Self::shape`].
    fn instant(&self, requests: f64) -> f64 {
        let Arrivals::Stages(pairs) = self.arrivals else { return requests };
        let period = self.window_s / pairs;
        let (whole, rest) = ((requests / period).floor(), (requests / period).rem_euclid(1.0));
        period * (whole + if rest < 0.9 { rest / 1.8 } else { 0.5 + (rest - 0.9) / 0.2 })
    }

    /// One window.
    pub(crate) fn run(&self, random: &mut Random) -> Window {
        let (start, end) = (Self::nanos(self.warmup_s), Self::nanos(self.warmup_s + self.window_s));
        let rate = self.requests / self.window_s;
        let mut run = Run {
            queue: self,
            random,
            trend: Trend::new(start, end),
            unsent: VecDeque::new(),
            waiting: Vec::new(),
            begun: BinaryHeap::new(),
        };
        let mut position = -self.shape(-self.warmup_s).abs() * rate;
        let mut has_begun = false;
        loop {
            position += if self.arrivals == Arrivals::Even { 1.0 } else { run.random.exponential() };
            let due = Self::nanos((self.warmup_s + self.instant(position / rate)).max(0.0));
            if due >= end {
                break;
            }
            run.work_until(due);
            if due >= start && !std::mem::replace(&mut has_begun, true) {
                run.unsent.clear();
            }
            run.unsent.push_back(due);
            run.serve(due);
        }
        run.work_until(end);
        // A backlog of over a tenth of the window is given up.
        let is_given_up = run.unsent.front().is_some_and(|due| end - due > (end - start) / 10);
        let given_up = if is_given_up { std::mem::take(&mut run.unsent) } else { VecDeque::new() };
        given_up.iter().for_each(|due| run.trend.took(*due, end - due, 1));
        run.work_until(Nanos::MAX);
        let shape = |at: Nanos| self.shape(at as f64 / SECOND as f64);
        let backlog = run.trend.backlog(|from, until| (shape(until) - shape(from)) * rate);
        let [from, to] = [JUDGED.start, SLICES].map(|end| backlog_after(&backlog, end) as f64);
        let due: u64 = backlog.slices.iter().map(|slice| slice.due).sum();
        Window {
            growth: growth(&backlog),
            grown: to - from,
            unsent: given_up.len() as f64 / due.max(1) as f64,
        }
    }
}

impl Run<'_> {
    fn work_until(&mut self, until: Nanos) {
        while let Some(Reverse((at, due))) = self.begun.peek().copied().filter(|begun| begun.0.0 <= until) {
            self.begun.pop();
            self.trend.ended(due, at);
            self.serve(at);
        }
    }

    /// Sends as far as connections are free, and begins as far as servers are.
    fn serve(&mut self, at: Nanos) {
        while self.waiting.len() + self.begun.len() < self.queue.connections
            && let Some(due) = self.unsent.pop_front()
        {
            self.waiting.push(due);
        }
        while self.begun.len() < self.queue.servers && !self.waiting.is_empty() {
            let due = if self.queue.overtakes {
                let index = (self.random.unit() * self.waiting.len() as f64) as usize;
                self.waiting.swap_remove(index)
            } else {
                self.waiting.remove(0)
            };
            let factor = match self.queue.service {
                Service::Same => 1.0,
                Service::Even => 0.5 + self.random.unit(),
                Service::Exponential => self.random.exponential(),
            };
            let Queue { load, window_s, requests, servers, .. } = self.queue;
            let time_s = factor * load * window_s / requests * *servers as f64;
            self.begun.push(Reverse((at + Queue::nanos(time_s), due)));
        }
    }
}

/// A queue at this part of its capacity: from a tenth of a second's requests to a minute's, on 1 to 256 connections, after no
/// warm-up or one as long as the window.
pub(crate) fn any(random: &mut Random, load: f64, arrivals: Arrivals, service: Service) -> Queue {
    let connections = random.one_of(&[1, 2, 4, 8, 16, 32, 64, 128, 256]);
    let window_s = random.one_of(&[2.0, 5.0, 10.0, 30.0, 60.0]);
    Queue {
        arrivals,
        service,
        servers: random.one_of(&[1, 2, 8, 32, 128, 256]).min(connections),
        connections,
        overtakes: random.unit() < 0.5,
        window_s,
        warmup_s: window_s * random.one_of(&[0.0, 0.1, 0.3, 1.0]),
        requests: 60.0 * 50_f64.powf(random.unit()),
        load,
    }
}

const ARRIVALS: [Arrivals; 6] = [
    Arrivals::Even,
    Arrivals::Poisson,
    Arrivals::Stages(1.0),
    Arrivals::Stages(3.0),
    Arrivals::Stages(7.0),
    Arrivals::Stages(30.0),
];
const SERVICES: [Service; 3] = [Service::Same, Service::Even, Service::Exponential];

#[test]
fn target_that_keeps_up_is_taken_for_saturated_at_most_once_in_a_thousand_windows() {
    let mut random = Random(SplitMix64::new(1));
    for load in [0.5, 0.75, 0.9, 0.95] {
        let windows = 2000;
        let is_found = |_: &usize| {
            let (arrivals, service) = (random.one_of(&ARRIVALS), random.one_of(&SERVICES));
            any(&mut random, load, arrivals, service).run(&mut random).growth.is_some()
        };
        let found = (0..windows).filter(is_found).count();
        assert!(found * 1000 <= windows, "{found} of {windows} windows at {load}");
    }
}

#[test]
fn chance_makes_the_longest_backlogs_of_one_server_and_they_are_found_as_rarely() {
    let mut random = Random(SplitMix64::new(3));
    let windows = 4000;
    let is_found = |_: &usize| {
        let arrivals = random.one_of(&[Arrivals::Even, Arrivals::Poisson]);
        let queue = Queue { servers: 1, ..any(&mut random, 0.95, arrivals, Service::Exponential) };
        queue.run(&mut random).growth.is_some()
    };
    let found = (0..windows).filter(is_found).count();
    assert!(found * 1000 <= windows, "{found} of {windows} windows");
}

#[test]
fn backlog_that_nearly_fits_into_the_connections_is_found() {
    // 54/s to a service that answers 49.5/s, for 10 s: a backlog of 45 requests, of which 32 are under way.
    let queue = Queue {
        arrivals: Arrivals::Even,
        service: Service::Same,
        servers: 1,
        connections: 32,
        overtakes: true,
        window_s: 10.0,
        warmup_s: 3.0,
        requests: 540.0,
        load: 54.0 / 49.5,
    };
    let mut random = Random(SplitMix64::new(4));
    for _ in 0..100 {
        let window = queue.run(&mut random);
        let Growth { requests: [from, to], .. } = window.growth.expect("a growing backlog");
        assert!(window.unsent == 0.0 && to > from + 25, "{from} to {to}");
    }
}

impl Queue {
    /// True if the backlog grows by more than chance makes it, and more than it is at the beginning: by 20 requests, six times
    /// the scatter of the answers, one and a half times that of the arrivals, what is under way if nothing waits, and what the
    /// warm-up has left. That many are to be expected, too: requests that come close together by chance are worked off later.
    pub(crate) fn is_beyond_chance(&self, grown: f64) -> bool {
        let scatter = match self.service {
            Service::Same => 0.0,
            Service::Even => 12_f64.sqrt().recip(),
            Service::Exponential => 1.0,
        };
        let of_arrivals = if self.arrivals == Arrivals::Even { 0.0 } else { 1.0 };
        let full = self.requests * (1.0 - self.load.recip());
        let of_warmup = (full * self.warmup_s / self.window_s).min(self.connections as f64);
        let by_chance = (f64::max(6.0 * scatter, 1.5 * of_arrivals) * self.requests.sqrt()).max(20.0);
        let expected = full * JUDGED.len() as f64 / SLICES as f64;
        grown.min(expected) > by_chance.max(self.servers as f64 + of_warmup)
    }
}

#[test]
fn target_that_does_not_keep_up_is_found_once_its_backlog_is_beyond_chance() {
    let mut random = Random(SplitMix64::new(2));
    for load in [1.01, 1.04, 1.08, 1.15, 1.5] {
        let (mut windows, mut found) = (0, 0);
        for _ in 0..1000 {
            let arrivals = random.one_of(&[Arrivals::Even, Arrivals::Poisson]);
            let service = random.one_of(&SERVICES);
            let mut queue = any(&mut random, load, arrivals, service);
            queue.requests *= 3.0;
            let window = queue.run(&mut random);
            if queue.is_beyond_chance(window.grown) {
                windows += 1;
                // Of a backlog of over a tenth of the window, the rest is never sent: that is saturation by itself.
                found += usize::from(window.growth.is_some() || window.unsent > 0.01);
            }
        }
        assert!(windows > 20 && found * 100 >= windows * 99, "{found} of {windows} windows at {load}");
    }
}

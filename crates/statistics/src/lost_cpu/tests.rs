//! A queue beside others, simulated: figures that stay usable were moved by no more than the rule allows.

use super::*;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use results::{GeneratorUsage, PacingUsage, Rates, TopProcess};
use std::time::Duration;

/// Mean time that a request takes of the CPU, microseconds.
const WORK_US: f64 = 200.0;
const REQUESTS: usize = 15_000;
/// Shares of the CPU that others take.
const LOST: [f64; 4] = [0.03, 0.08, 0.15, 0.28];
/// Length of a turn of others relative to a request's work: from interrupts to whole turns of the scheduler.
const TURNS: [f64; 4] = [0.05, 1.0, 10.0, 100.0];

/// CPU time of requests: half as long to half as long again, or exponentially distributed.
#[derive(Clone, Copy, Debug)]
enum Work {
    Even,
    Exponential,
}

fn exponential(random: &mut StdRng, mean: f64) -> f64 {
    -mean * (1.0 - random.random::<f64>()).ln()
}

/// Requests of one queue, first come, first served.
struct Queue {
    /// Arrival and work of each, microseconds.
    requests: Vec<(f64, f64)>,
    /// Response times without others.
    alone: HistogramSummary,
}

impl Queue {
    fn new(random: &mut StdRng, used: f64, work: Work) -> Self {
        let mut at = 0.0;
        let requests = (0..REQUESTS).map(|_| {
            at += exponential(random, WORK_US / used);
            let work = match work {
                Work::Even => WORK_US * (0.5 + random.random::<f64>()),
                Work::Exponential => exponential(random, WORK_US),
            };
            (at, work)
        });
        let queue = Self { requests: requests.collect(), alone: HistogramSummary::default() };
        Self { alone: queue.beside(&[]), ..queue }
    }

    /// Response times beside others that always go first: the worst that a scheduler can do.
    fn beside(&self, turns: &[(f64, f64)]) -> HistogramSummary {
        let mut times = LatencyHistogram::new();
        let (mut free, mut next) = (0.0_f64, 0);
        for (arrival, work) in &self.requests {
            let (mut now, mut left) = (free.max(*arrival), *work);
            loop {
                while turns.get(next).is_some_and(|(_, end)| *end <= now) {
                    next += 1;
                }
                let (begin, end) = turns.get(next).copied().unwrap_or((f64::INFINITY, f64::INFINITY));
                let until = begin.max(now);
                if now + left <= until {
                    break;
                }
                left -= until - now;
                now = end;
            }
            free = now + left;
            times.record(Duration::from_secs_f64((free - arrival) / 1e6));
        }
        times.summary()
    }

    /// Share of the time from the first request to the last that these turns took.
    fn taken(&self, turns: &[(f64, f64)]) -> f64 {
        let end = self.requests.last().map_or(0.0, |(arrival, _)| *arrival);
        turns.iter().map(|(from, to)| (to.min(end) - from).max(0.0)).sum::<f64>() / end
    }

    /// Turns of others, not overlapping, that take a share of the CPU.
    fn turns(&self, random: &mut StdRng, lost: f64, length_us: f64) -> Vec<(f64, f64)> {
        let (mut turns, mut free) = (Vec::new(), 0.0);
        let end = self.requests.last().map_or(0.0, |(arrival, _)| arrival * 1.5);
        while free < end {
            let begin = free + exponential(random, length_us * (1.0 - lost) / lost);
            free = begin + length_us;
            turns.push((begin, free));
        }
        turns
    }
}

fn result(offered: Option<f64>, times: HistogramSummary) -> LoadResult {
    LoadResult {
        rate: Rates { offered, sent: 0.0, completed: 0.0 },
        response_time_us: times,
        ..LoadResult::default()
    }
}

/// A machine of one CPU.
fn machine(used: f64, lost: f64) -> MachineUsage {
    let busy_cores = used + lost;
    MachineUsage { cpus: 1, busy_cores, other_processes_cores: lost, ..MachineUsage::default() }
}

fn spoiled(used: f64, lost: f64, times: &HistogramSummary) -> Figures {
    let result = result(Some(1.0), times.clone());
    LostCpu::new(lost, &machine(used, lost), Some(&result)).spoiled(Some(times))
}

/// Growth of each time beside others, and whether the rule leaves it usable.
struct Beside {
    name: String,
    grown: Vec<(Figure, f64)>,
    spoiled: Figures,
}

impl Beside {
    fn new(random: &mut StdRng, queue: &Queue, [used, lost, turn]: [f64; 3]) -> Self {
        let turns = queue.turns(random, lost, turn * WORK_US);
        let (alone, beside) = (&queue.alone, queue.beside(&turns));
        // Higher percentiles have their own rule: a smaller share of requests lies beyond them.
        let times = [Figure::P50, Figure::P75];
        let grown = |figure| Some((figure, beside.figure(figure)? / alone.figure(figure)? - 1.0));
        let lost = queue.taken(&turns);
        Self {
            name: format!("{lost:.3} lost beside {used}, turns of {turn}"),
            grown: times.into_iter().filter_map(grown).collect(),
            spoiled: spoiled(used, lost, &beside),
        }
    }
}

/// Chance moves these quantiles by this much.
const BY_CHANCE: f64 = 0.05;

#[test]
fn figures_that_stay_usable_beside_others_moved_no_more_than_allowed() {
    let random = &mut StdRng::seed_from_u64(30);
    let mut usable_medians = 0;
    for work in [Work::Even, Work::Exponential] {
        for used in [0.1, 0.3, 0.5, 0.7] {
            let queue = Queue::new(random, used, work);
            for (lost, turn) in LOST.into_iter().flat_map(|lost| TURNS.map(|turn| (lost, turn))) {
                let Beside { name, grown, spoiled } = Beside::new(random, &queue, [used, lost, turn]);
                for (figure, grown) in grown.into_iter().filter(|(figure, _)| !spoiled.contains(*figure)) {
                    let allowed = if figure == Figure::P50 { MOVED_SHARE_P50 } else { MOVED_SHARE };
                    assert!(
                        grown < allowed + BY_CHANCE,
                        "{work:?}, {name}: {} grew by {grown:.2}",
                        figure.name()
                    );
                }
                usable_medians += usize::from(!spoiled.contains(Figure::P50));
            }
        }
    }
    assert!(usable_medians >= 20, "{usable_medians} medians stay usable: where little was lost");
}

#[test]
fn median_of_a_queue_at_half_load_is_spoiled_long_before_a_third_is_lost() {
    let random = &mut StdRng::seed_from_u64(31);
    let queue = Queue::new(random, 0.5, Work::Exponential);
    let Beside { grown, spoiled, .. } = Beside::new(random, &queue, [0.5, 0.28, TURNS[0]]);
    assert!((grown[0].1 - 1.3).abs() < 0.3, "2.3 times as slow: {grown:?}");
    assert!(spoiled.contains(Figure::P50) && spoiled.contains(Figure::Throughput));
    assert!(Beside::new(random, &queue, [0.5, 0.08, TURNS[0]]).spoiled.contains(Figure::P50));
    assert!(!Beside::new(random, &queue, [0.5, 0.03, TURNS[0]]).spoiled.contains(Figure::P50));
}

#[test]
fn clients_that_wait_and_threads_that_spin_leave_cpu_time() {
    let times = HistogramSummary::default();
    let share = |result: &LoadResult| LostCpu::new(0.1, &machine(0.8, 0.1), Some(result)).share();
    let open = result(Some(1.0), times.clone());
    assert!((share(&open) - 0.5).abs() < 1e-9);
    assert!((share(&result(None, times)) - 0.1).abs() < 1e-9);
    let pacing = PacingUsage { spinning_fraction: 0.6, ..PacingUsage::default() };
    let spinning = GeneratorUsage { pacing: Some(pacing), ..open.generator };
    assert!((share(&LoadResult { threads: 1, generator: spinning, ..open.clone() }) - 0.125).abs() < 1e-9);
    // More than there was to take: nothing is known of an open loop.
    assert_eq!(LostCpu::new(0.3, &machine(0.8, 0.3), Some(&open)).share(), 1.0);
}

#[test]
fn programs_that_took_more_than_a_tenth_of_what_was_left_are_named() {
    let machine = |other_processes_cores: f64| MachineUsage {
        cpus: 2,
        busy_cores: 1.0 + other_processes_cores,
        other_processes_cores,
        top_other_processes: vec![TopProcess { name: "cc".to_owned(), cpu_cores: other_processes_cores }],
        ..MachineUsage::default()
    };
    // The experiment leaves one of two CPUs.
    assert_eq!(other_processes(&machine(0.09), None), None);
    let (reason, figures) = other_processes(&machine(0.2), None).unwrap();
    assert_eq!(reason, "other-processes: others took 0.20 cores (cc 0.20)");
    assert!(figures.contains(Figure::Throughput) && !figures.contains(Figure::Cpu));
}

//! Recorded instants at which requests are due.

use super::Schedule;
use crate::clock::Nanos;
use results::ReplayArrivals;
use std::sync::Arc;

/// Requests of a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// Due times since the start of the run, of which the warm-up is the first part; nanoseconds, in order.
    pub instants: Arc<[u64]>,
    /// The recording, for results.
    pub of: ReplayArrivals,
}

impl Replay {
    /// Requests that are due before a time of the run.
    pub(crate) fn due_before(&self, at: Nanos) -> usize {
        self.instants.partition_point(|instant| *instant < at)
    }
}

/// The instants of one thread of several: each takes its turns.
pub(crate) struct ReplaySchedule {
    replay: Replay,
    /// Instants before the end of the run.
    count: usize,
    next: usize,
    threads: usize,
}

impl ReplaySchedule {
    /// The turns of `thread` among `threads`, in a run until `end`.
    pub(crate) fn new(replay: Replay, end: Nanos, (thread, threads): (usize, usize)) -> Self {
        Self { count: replay.due_before(end), replay, next: thread, threads }
    }
}

impl Schedule for ReplaySchedule {
    fn is_open(&self) -> bool {
        true
    }

    fn next_due(&self) -> Option<Nanos> {
        self.replay.instants[..self.count].get(self.next).copied()
    }

    fn take(&mut self) {
        self.next += self.threads;
    }

    fn request_ended(&mut self, _at: Nanos) {}

    fn skip_until(&mut self, at: Nanos) -> u64 {
        let before = self.replay.due_before(at).min(self.count);
        let skipped = before.saturating_sub(self.next).div_ceil(self.threads);
        self.next += skipped * self.threads;
        skipped as u64
    }

    /// All are due within the window, which ends the run.
    fn used_up_since(&self) -> Option<Nanos> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::share::GeneratorShare;
    use results::RecordingFormat;

    fn replay(instants: &[Nanos]) -> Replay {
        let of = ReplayArrivals {
            file: "instants.txt".to_owned(),
            format: RecordingFormat::Instants,
            requests: instants.len() as u64,
            speed: 1.0,
            ignored: 0,
            out_of_order: 0,
        };
        Replay { instants: instants.into(), of }
    }

    fn due(schedule: &mut ReplaySchedule) -> Vec<Nanos> {
        std::iter::from_fn(|| schedule.next_due().inspect(|_| schedule.take())).collect()
    }

    #[test]
    fn threads_of_generators_take_turns_until_the_end() {
        let instants: Vec<Nanos> = (0..100).map(|number| number * number).collect();
        let replay = replay(&instants);
        let of_generator = |index: usize, threads: usize| -> Vec<Nanos> {
            let share = GeneratorShare::new(index, 3).unwrap();
            let workers = (0..threads).map(|thread| share.worker(thread, threads));
            workers.flat_map(|worker| due(&mut ReplaySchedule::new(replay.clone(), 6400, worker))).collect()
        };
        assert_eq!(of_generator(1, 1)[..3], [1, 16, 49]);
        let mut all = [of_generator(0, 1), of_generator(1, 4), of_generator(2, 2)].concat();
        all.sort_unstable();
        assert_eq!(all, instants[..80]);
    }

    #[test]
    fn skipping_leaves_same_instants_as_taking() {
        let instants = [0, 5, 5, 5, 8, 13, 13, 21, 34, 55];
        for at in [0, 5, 6, 13, 14, 55, 56, Nanos::MAX] {
            for thread in 0..3 {
                let mut taking = ReplaySchedule::new(replay(&instants), 50, (thread, 3));
                let mut skipping = ReplaySchedule::new(replay(&instants), 50, (thread, 3));
                let mut taken = 0;
                while taking.next_due().is_some_and(|due| due < at) {
                    taking.take();
                    taken += 1;
                }
                assert_eq!(skipping.skip_until(at), taken, "{at}");
                assert_eq!(skipping.next_due(), taking.next_due(), "{at}");
            }
        }
    }
}

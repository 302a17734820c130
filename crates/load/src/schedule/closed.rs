//! Closed loop: each client sends again as soon as it is answered.

use super::Schedule;
use crate::clock::Nanos;
use std::collections::VecDeque;

/// Clients start over this time, so that they do not all fire together.
const START_SPREAD: Nanos = 1_000_000;

/// The clients of one thread.
pub(crate) struct ClosedLoop {
    /// When each waiting client became ready, the earliest first: at most one entry a client.
    ready: VecDeque<Nanos>,
    end: Nanos,
}

impl ClosedLoop {
    /// `clients` of this thread, sending until `end`.
    pub(crate) fn new(clients: usize, end: Nanos) -> Self {
        let ready = (0..clients as u64).map(|client| client * START_SPREAD / clients.max(1) as u64).collect();
        Self { ready, end }
    }
}

impl Schedule for ClosedLoop {
    fn next_due(&self) -> Option<Nanos> {
        self.ready.front().copied().filter(|due| *due < self.end)
    }

    fn take(&mut self) {
        self.ready.pop_front();
    }

    fn request_ended(&mut self, at: Nanos) {
        self.ready.push_back(at);
    }

    /// Clients do not go away: what was due is due again at `at`. None is given up, unless `at` is the end.
    fn skip_until(&mut self, at: Nanos) -> u64 {
        if at >= self.end {
            let waiting = self.ready.iter().filter(|due| **due < self.end).count() as u64;
            self.ready.clear();
            return waiting;
        }
        for due in &mut self.ready {
            *due = (*due).max(at);
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_due_again_when_it_is_answered_and_not_after_the_end() {
        let mut schedule = ClosedLoop::new(2, 1000);
        assert_eq!(schedule.next_due(), Some(0));
        schedule.take();
        schedule.skip_until(0);
        schedule.request_ended(70);
        schedule.take();
        assert_eq!(schedule.next_due(), Some(70));
        schedule.take();
        assert_eq!(schedule.next_due(), None);
        schedule.request_ended(1000);
        assert_eq!(schedule.next_due(), None);
    }
}

//! When the transport of which connection wants to know the time.

use std::collections::BTreeSet;
use std::time::Instant;

/// Deadlines by slot. A deadline that moves into the future is corrected when it would have come: connections move theirs with each packet.
#[derive(Debug, Default)]
pub(super) struct Timers {
    queue: BTreeSet<(Instant, usize)>,
    by_slot: Vec<Option<Instant>>,
}

impl Timers {
    /// The slot's deadline is this; it may be told earlier.
    pub(super) fn set(&mut self, slot: usize, due: Instant) {
        if self.by_slot.len() <= slot {
            self.by_slot.resize(slot + 1, None);
        }
        if self.by_slot[slot].is_some_and(|earlier| earlier <= due) {
            return;
        }
        self.clear(slot);
        self.by_slot[slot] = Some(due);
        self.queue.insert((due, slot));
    }

    pub(super) fn clear(&mut self, slot: usize) {
        if let Some(due) = self.by_slot.get_mut(slot).and_then(Option::take) {
            self.queue.remove(&(due, slot));
        }
    }

    pub(super) fn first(&self) -> Option<Instant> {
        self.queue.first().map(|(due, _)| *due)
    }

    /// Takes a deadline that has come. Returns its slot.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<usize> {
        let (_, slot) = *self.queue.first().filter(|(due, _)| *due <= now)?;
        self.clear(slot);
        Some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn only_earlier_deadlines_replace_one() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut timers = Timers::default();
        timers.set(1, at(20));
        timers.set(0, at(30));
        timers.set(1, at(40));
        assert_eq!(timers.first(), Some(at(20)));
        timers.set(0, at(10));
        assert_eq!((timers.first(), timers.take_due(at(5))), (Some(at(10)), None));
        assert_eq!((timers.take_due(at(25)), timers.take_due(at(25))), (Some(0), Some(1)));
        timers.set(1, at(50));
        timers.clear(1);
        assert_eq!((timers.first(), timers.take_due(at(90))), (None, None));
    }
}

//! Whether requests that are due wait to be sent, and how much of that waiting the generator itself has caused.

use crate::clock::Nanos;

/// A thread that is later than this by itself has caused a backlog that it finds: more than it is usually late.
const LATE: Nanos = 100_000;

/// Requests that are due and wait, and who let it come to that.
///
/// A thread that was away for a while finds more due than its connections can carry at once; those that then wait for a
/// connection wait because of the thread. But no request waits for longer because of an absence than the absence lasted:
/// a target that stalls while the backlog is worked off is to blame for the rest.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Backlog {
    #[default]
    None,
    OfTarget,
    OfGenerator(Absence),
}

/// How long the thread was away since the backlog began, all times together.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Absence {
    length: Nanos,
    /// What was before is counted.
    counted_until: Nanos,
}

impl Backlog {
    /// A request is due, and every connection is busy.
    pub(super) fn connections_are_busy(&mut self) {
        if *self == Self::None {
            *self = Self::OfTarget;
        }
    }

    /// The thread did at `until` what it meant to do at `since`. What came first decides whose backlog it is, until it is
    /// worked off.
    pub(super) fn thread_was_away(&mut self, since: Nanos, until: Nanos) {
        if until.saturating_sub(since) <= LATE {
            return;
        }
        if *self == Self::None {
            *self = Self::OfGenerator(Absence::default());
        }
        if let Self::OfGenerator(absence) = self {
            absence.length += until.saturating_sub(since.max(absence.counted_until));
            absence.counted_until = absence.counted_until.max(until);
        }
    }

    /// Nothing that is due waits any more.
    pub(super) fn is_worked_off(&mut self) {
        *self = Self::None;
    }

    /// When a request that was due at `due`, on a connection that was free since `free_since`, and went out at `sent` could have
    /// been sent if the thread had never been away.
    pub(super) fn could_send(&self, due: Nanos, free_since: Nanos, sent: Nanos) -> Nanos {
        let could_send = due.max(free_since);
        match self {
            Self::None | Self::OfTarget => could_send,
            Self::OfGenerator(absence) => could_send.min(due.max(sent.saturating_sub(absence.length))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    #[test]
    fn who_waits_for_a_busy_connection_waits_for_the_target() {
        let mut backlog = Backlog::default();
        backlog.connections_are_busy();
        // The thread comes late to a backlog that was there already.
        backlog.thread_was_away(10 * MS, 15 * MS);
        assert_eq!(backlog.could_send(10 * MS, 20 * MS, 20 * MS), 20 * MS);
        backlog.is_worked_off();
        assert_eq!(backlog, Backlog::None);
    }

    #[test]
    fn who_waits_for_a_connection_after_an_absence_waits_for_the_thread() {
        let mut backlog = Backlog::default();
        backlog.thread_was_away(10 * MS, 160 * MS);
        // Due early in the absence, sent right after it; then one that had to wait for an answer besides.
        assert_eq!(backlog.could_send(11 * MS, 0, 160 * MS), 11 * MS);
        assert_eq!(backlog.could_send(12 * MS, 163 * MS, 163 * MS), 13 * MS);
    }

    #[test]
    fn a_target_that_stalls_after_an_absence_has_the_stall_to_itself() {
        let mut backlog = Backlog::default();
        backlog.thread_was_away(10 * MS, 12 * MS);
        assert_eq!(backlog.could_send(13 * MS, 310 * MS, 310 * MS), 308 * MS);
    }

    #[test]
    fn absences_add_up_and_none_counts_twice() {
        let mut backlog = Backlog::default();
        backlog.thread_was_away(10 * MS, 12 * MS);
        // The first request sent says the same once more.
        backlog.thread_was_away(11 * MS, 12 * MS);
        backlog.thread_was_away(20 * MS, 23 * MS);
        assert_eq!(backlog.could_send(10 * MS, 40 * MS, 40 * MS), 35 * MS);
    }

    #[test]
    fn a_little_late_is_no_absence() {
        let mut backlog = Backlog::default();
        backlog.thread_was_away(10 * MS, 10 * MS + LATE);
        assert_eq!(backlog, Backlog::None);
        assert_eq!(backlog.could_send(10 * MS, 0, 10 * MS + LATE), 10 * MS);
    }
}

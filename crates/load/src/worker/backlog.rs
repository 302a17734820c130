//! Tracks whether due requests wait to be sent, and how much of that waiting the generator itself has caused.

use crate::clock::Nanos;

/// A thread later than this has itself caused the backlog that it finds: more than the usual lateness.
const LATE: Nanos = 100_000;

/// The backlog of due requests, and who caused it.
///
/// A thread that stalled for a while finds more requests due than its connections can carry at once. Those
/// that then wait for a connection wait because of the thread. But a stall delays no request by more than its
/// own length: if the target stalls while the backlog is worked off, it is to blame for the rest.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Backlog {
    #[default]
    None,
    OfTarget,
    OfGenerator(GeneratorStall),
}

/// Total time for which the thread stalled since the backlog began.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct GeneratorStall {
    length: Nanos,
    /// Time until which stalls are already counted.
    counted_until: Nanos,
}

impl Backlog {
    /// A request is due, and every connection is busy.
    pub(super) fn connections_are_busy(&mut self) {
        if *self == Self::None {
            *self = Self::OfTarget;
        }
    }

    /// The thread did at `until` what it meant to do at `since`. The first cause determines the owner of the
    /// backlog until it is worked off.
    pub(super) fn thread_stalled(&mut self, since: Nanos, until: Nanos) {
        if until.saturating_sub(since) <= LATE {
            return;
        }
        if *self == Self::None {
            *self = Self::OfGenerator(GeneratorStall::default());
        }
        if let Self::OfGenerator(stall) = self {
            stall.length += until.saturating_sub(since.max(stall.counted_until));
            stall.counted_until = stall.counted_until.max(until);
        }
    }

    /// No due request is left waiting.
    pub(super) fn is_worked_off(&mut self) {
        *self = Self::None;
    }

    /// When a request could have been sent if the thread had never stalled. It was due at `due`, on a
    /// connection free since `free_since`, and went out at `sent`.
    pub(super) fn sendable_at(&self, due: Nanos, free_since: Nanos, sent: Nanos) -> Nanos {
        let sendable_at = due.max(free_since);
        match self {
            Self::None | Self::OfTarget => sendable_at,
            Self::OfGenerator(stall) => sendable_at.min(due.max(sent.saturating_sub(stall.length))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    #[test]
    fn wait_for_busy_connection_is_blamed_on_target() {
        let mut backlog = Backlog::default();
        backlog.connections_are_busy();
        // The thread comes late to an existing backlog.
        backlog.thread_stalled(10 * MS, 15 * MS);
        assert_eq!(backlog.sendable_at(10 * MS, 20 * MS, 20 * MS), 20 * MS);
        backlog.is_worked_off();
        assert_eq!(backlog, Backlog::None);
    }

    #[test]
    fn wait_for_connection_after_stall_is_blamed_on_thread() {
        let mut backlog = Backlog::default();
        backlog.thread_stalled(10 * MS, 160 * MS);
        // Due early in the stall, sent right after it; then one that also had to wait for a response.
        assert_eq!(backlog.sendable_at(11 * MS, 0, 160 * MS), 11 * MS);
        assert_eq!(backlog.sendable_at(12 * MS, 163 * MS, 163 * MS), 13 * MS);
    }

    #[test]
    fn target_stall_after_thread_stall_is_blamed_on_target() {
        let mut backlog = Backlog::default();
        backlog.thread_stalled(10 * MS, 12 * MS);
        assert_eq!(backlog.sendable_at(13 * MS, 310 * MS, 310 * MS), 308 * MS);
    }

    #[test]
    fn thread_stalls_add_up_and_count_once() {
        let mut backlog = Backlog::default();
        backlog.thread_stalled(10 * MS, 12 * MS);
        // The first request sent reports the same stall again.
        backlog.thread_stalled(11 * MS, 12 * MS);
        backlog.thread_stalled(20 * MS, 23 * MS);
        assert_eq!(backlog.sendable_at(10 * MS, 40 * MS, 40 * MS), 35 * MS);
    }

    #[test]
    fn slight_lateness_is_not_a_stall() {
        let mut backlog = Backlog::default();
        backlog.thread_stalled(10 * MS, 10 * MS + LATE);
        assert_eq!(backlog, Backlog::None);
        assert_eq!(backlog.sendable_at(10 * MS, 0, 10 * MS + LATE), 10 * MS);
    }
}

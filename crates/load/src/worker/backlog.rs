//! Tracks whether due requests wait to be sent, and how much of that waiting the generator itself has caused.

use crate::clock::Nanos;

/// A thread later than this has itself caused the backlog that it finds: more than the usual lateness.
const LATE: Nanos = 100_000;
/// A stall of the thread longer than this, and longer than the target's backlog is old, has caused most of the
/// waiting: more than a thread's lateness adds up to while requests wait.
const LONG: Nanos = 10_000_000;

/// The backlog of due requests, and who caused it.
///
/// A thread that stalled for a while finds more requests due than its connections can carry at once. Those
/// that then wait for a connection wait because of the thread. But a stall delays no request by more than its
/// own length: if the target stalls while the backlog is worked off, it is to blame for the rest. Requests that
/// waited briefly for the target before a long stall of the thread don't make it the target's.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Backlog {
    #[default]
    None,
    OfTarget {
        /// Time at which the first request of the backlog was due.
        since: Nanos,
    },
    OfGenerator(GeneratorStall),
}

/// Total time for which the thread stalled since the backlog began.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct GeneratorStall {
    length: Nanos,
    /// Time until which stalls are already counted.
    counted_until: Nanos,
}

/// A backlog per pool of connections: requests that wait for one server say nothing about another.
#[derive(Debug)]
pub(super) struct Backlogs {
    of: Vec<Backlog>,
    /// Pools with a backlog.
    behind: Vec<usize>,
}

impl Backlogs {
    pub(super) fn new(pools: usize) -> Self {
        Self { of: vec![Backlog::None; pools], behind: Vec::new() }
    }

    pub(super) fn of(&self, pool: usize) -> &Backlog {
        &self.of[pool]
    }

    /// A request is due since `due`, and every connection of this pool is busy.
    pub(super) fn connections_are_busy(&mut self, pool: usize, due: Nanos) {
        self.change(pool, |backlog| backlog.connections_are_busy(due));
    }

    /// The thread did at `until` what it meant to do for this pool at `since`.
    pub(super) fn thread_stalled(&mut self, pool: usize, since: Nanos, until: Nanos) {
        self.change(pool, |backlog| backlog.thread_stalled(since, until));
    }

    /// The thread did at `until` what it meant to do at `since`, for all of them. Threads that spin ask at every turn.
    pub(super) fn all_stalled(&mut self, since: Nanos, until: Nanos) {
        if until.saturating_sub(since) > LATE {
            (0..self.of.len()).for_each(|pool| self.thread_stalled(pool, since, until));
        }
    }

    /// No request is due any more but those that wait for a connection.
    pub(super) fn work_off(&mut self, is_empty: impl Fn(usize) -> bool) {
        let of = &mut self.of;
        self.behind.retain(|pool| {
            let is_left = !is_empty(*pool);
            if !is_left {
                of[*pool].is_worked_off();
            }
            is_left
        });
    }

    fn change(&mut self, pool: usize, change: impl FnOnce(&mut Backlog)) {
        let backlog = &mut self.of[pool];
        let was_none = *backlog == Backlog::None;
        change(backlog);
        if was_none && *backlog != Backlog::None {
            self.behind.push(pool);
        }
    }
}

impl Backlog {
    /// A request is due since `due`, and every connection is busy.
    pub(super) fn connections_are_busy(&mut self, due: Nanos) {
        if *self == Self::None {
            *self = Self::OfTarget { since: due };
        }
    }

    /// The thread did at `until` what it meant to do at `since`. The first cause determines the owner of the
    /// backlog until it is worked off, unless the thread's stall is the larger one.
    pub(super) fn thread_stalled(&mut self, since: Nanos, until: Nanos) {
        let length = until.saturating_sub(since);
        if length <= LATE {
            return;
        }
        match self {
            Self::OfGenerator(_) => {}
            Self::OfTarget { since: due } if length <= LONG.max(since.saturating_sub(*due)) => return,
            Self::None | Self::OfTarget { .. } => *self = Self::OfGenerator(GeneratorStall::default()),
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
            Self::None | Self::OfTarget { .. } => sendable_at,
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
        backlog.connections_are_busy(0);
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
    fn long_stall_is_blamed_on_thread_though_a_request_waited_before_it() {
        let stalled = |due, since, until| {
            let mut backlog = Backlog::default();
            backlog.connections_are_busy(due);
            backlog.thread_stalled(since, until);
            backlog.sendable_at(due, until, until)
        };
        // Two seconds away: the response for which the request waited came after a millisecond.
        assert_eq!(stalled(100 * MS, 101 * MS, 2100 * MS), 101 * MS);
        // The target's backlog is older than the stall is long, or the stall is short.
        assert_eq!(stalled(100 * MS, 2200 * MS, 4200 * MS), 4200 * MS);
        assert_eq!(stalled(100 * MS, 101 * MS, 111 * MS), 111 * MS);
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
    fn each_server_has_a_backlog_of_its_own() {
        let mut backlogs = Backlogs::new(2);
        backlogs.connections_are_busy(0, 0);
        backlogs.all_stalled(510 * MS, 660 * MS);
        // The first server was behind long before; requests for the second wait because the thread was away.
        backlogs.connections_are_busy(1, 520 * MS);
        let sendable_at =
            |backlogs: &Backlogs, server| backlogs.of(server).sendable_at(520 * MS, 800 * MS, 800 * MS);
        assert_eq!([0, 1].map(|server| sendable_at(&backlogs, server)), [800 * MS, 650 * MS]);
        backlogs.work_off(|server| server == 0);
        backlogs.all_stalled(900 * MS, 1000 * MS);
        assert_eq!(
            sendable_at(&backlogs, 0),
            700 * MS,
            "its backlog was worked off: this one is the thread's"
        );
        assert_eq!(sendable_at(&backlogs, 1), 550 * MS, "requests still wait: the stalls add up");
    }

    #[test]
    fn slight_lateness_is_not_a_stall() {
        let mut backlog = Backlog::default();
        backlog.thread_stalled(10 * MS, 10 * MS + LATE);
        assert_eq!(backlog, Backlog::None);
        assert_eq!(backlog.sendable_at(10 * MS, 0, 10 * MS + LATE), 10 * MS);
    }
}

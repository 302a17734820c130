//! Which connections are free for which server, and the requests that wait for one.
//!
//! With one server, requests that find no free connection stay in the schedule. With several, a request is for the server
//! that was chosen for it, whichever connection is free: it waits here, and those for other servers go on. Where there are
//! fewer connections than servers, connections roam: the one idle longest is closed for a server that wants one.

use crate::clock::Nanos;
use crate::target::Chosen;
use std::collections::VecDeque;

/// Requests that wait at once in an open loop, over all servers of one thread. Beyond it a server for which more than its even
/// share of these wait gets no more, so that memory is bounded and a dead one does not hold up the others: at most twice as
/// many wait. A stall of all servers is measured as long as it is no longer than so many requests.
const MOST_WAITING: usize = 65_536;
/// Entries of the list of idle connections for each connection, beyond which it is cleared of those that are outdated.
const IDLE_ENTRIES_A_CONNECTION: usize = 4;

/// See the module.
pub(super) struct Pools {
    pools: Vec<Pool>,
    /// Connections that one server may have at a time, where connections roam.
    pub(super) roaming: Option<usize>,
    /// Servers with requests that wait and a connection that is free for them.
    ready: Vec<usize>,
    /// Requests that wait for a free connection.
    waiting: usize,
    /// Connections that may be closed for another server, the longest idle first, with the time since when. Outdated where
    /// the connection has been used since.
    idle: VecDeque<(usize, Nanos)>,
    /// How many connections there are.
    connections: usize,
    /// Connections that have no server.
    unassigned: Vec<usize>,
    /// Servers that want a connection, in the order in which they came to want it.
    wanting: VecDeque<usize>,
    /// Before this time none of them may have one.
    next_retry: Nanos,
}

/// A server's part.
#[derive(Default)]
struct Pool {
    /// Connections that may take a request, the longest idle first. An entry may be outdated.
    free: VecDeque<usize>,
    waiting: VecDeque<Waiting>,
    connections: usize,
    wants: bool,
    /// After an attempt in vain: when the next connection may be opened.
    retry_at: Nanos,
    attempts: Attempts,
}

/// How connections to a server fared; goes with the server where connections roam.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Attempts {
    /// Which of its addresses is next.
    pub(super) address: usize,
    /// Attempts in a row that brought no response.
    pub(super) failures: u32,
}

/// A request that waits for a connection.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) due: Nanos,
    pub(super) chosen: Chosen,
}

impl Pools {
    /// Pools of so many servers. `connections`: the server of each.
    pub(super) fn new(servers: usize, connections: &[usize], roaming: Option<usize>) -> Self {
        let mut pools: Vec<Pool> = (0..servers).map(|_| Pool::default()).collect();
        for server in connections {
            pools[*server].connections += 1;
        }
        Self {
            pools,
            roaming,
            ready: Vec::new(),
            waiting: 0,
            idle: VecDeque::new(),
            connections: connections.len(),
            unassigned: Vec::new(),
            wanting: VecDeque::new(),
            next_retry: 0,
        }
    }

    /// There is one server: nothing ever waits here.
    pub(super) fn is_one(&self) -> bool {
        self.pools.len() == 1
    }

    /// Whether a request that is due can be taken from the schedule: sent or made to wait here.
    pub(super) fn takes_requests(&self) -> bool {
        !self.is_one() || !self.pools[0].free.is_empty()
    }

    /// A connection may take requests for `server`.
    pub(super) fn add_free(&mut self, server: usize, slot: usize) {
        let pool = &mut self.pools[server];
        pool.free.push_back(slot);
        if !pool.waiting.is_empty() {
            self.ready.push(server);
        }
    }

    /// Where connections roam: this one has no unanswered request any more. `is_idle`: see [`Self::next_assignment`].
    pub(super) fn add_idle(
        &mut self,
        slot: usize,
        since: Nanos,
        is_idle: impl Fn(usize, Nanos) -> Option<usize>,
    ) {
        self.idle.push_back((slot, since));
        if self.idle.len() > IDLE_ENTRIES_A_CONNECTION * self.connections {
            self.idle.retain(|(slot, since)| is_idle(*slot, *since).is_some());
        }
    }

    /// The next entry of connections that were free for `server`.
    pub(super) fn next_free(&mut self, server: usize) -> Option<usize> {
        self.pools[server].free.pop_front()
    }

    /// A request waits for a connection to its server.
    pub(super) fn wait(&mut self, waiting: Waiting) {
        let server = waiting.chosen.server;
        self.pools[server].waiting.push_back(waiting);
        self.waiting += 1;
        self.want(server);
    }

    /// Whether so many requests wait, and of them so many for `server`, that no more for it can be kept.
    pub(super) fn is_crowded_by(&self, server: usize) -> bool {
        let share = (MOST_WAITING / self.pools.len()).max(1);
        self.waiting >= MOST_WAITING && self.pools[server].waiting.len() >= share
    }

    /// A server with requests that may be sent now, if there is one; to be asked again until there is none.
    pub(super) fn next_ready(&mut self) -> Option<usize> {
        self.ready.pop()
    }

    /// Whether requests wait for a connection to `server`.
    pub(super) fn has_waiting(&self, server: usize) -> bool {
        !self.pools[server].waiting.is_empty()
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// The request that has waited longest for `server`.
    pub(super) fn take_waiting(&mut self, server: usize) -> Option<Waiting> {
        let waiting = self.pools[server].waiting.pop_front()?;
        self.waiting -= 1;
        Some(waiting)
    }

    /// When the request that has waited longest was due.
    pub(super) fn oldest_due(&self) -> Option<Nanos> {
        if self.is_empty() {
            return None;
        }
        self.pools.iter().filter_map(|pool| pool.waiting.front()).map(|waiting| waiting.due).min()
    }

    /// Gives up all requests that wait and were due before `at`; returns how many.
    pub(super) fn give_up(&mut self, at: Nanos) -> u64 {
        let mut given_up = 0;
        for pool in &mut self.pools {
            while pool.waiting.front().is_some_and(|waiting| waiting.due < at) {
                pool.waiting.pop_front();
                given_up += 1;
            }
        }
        self.waiting -= given_up;
        given_up as u64
    }

    /// Times begin anew: see `Worker::restart_times`.
    pub(super) fn restart_times(&mut self) {
        self.idle.iter_mut().for_each(|(_, since)| *since = 0);
        self.pools.iter_mut().for_each(|pool| pool.retry_at = 0);
        self.next_retry = 0;
    }

    /// A roaming connection has lost its server.
    pub(super) fn release(&mut self, server: usize, slot: usize, retry_at: Nanos, attempts: Attempts) {
        let pool = &mut self.pools[server];
        pool.connections -= 1;
        (pool.retry_at, pool.attempts) = (retry_at, attempts);
        self.unassigned.push(slot);
        self.want(server);
    }

    /// Before a run, where connections roam and none could be opened: connections without a server are for servers that
    /// have an address left, of `addresses`, that was not tried. Returns whether there are any.
    pub(super) fn try_others(&mut self, addresses: impl Fn(usize) -> usize) -> bool {
        let is_untried = |server: &usize| {
            let pool = &self.pools[*server];
            !pool.wants && pool.connections == 0 && (pool.attempts.failures as usize) < addresses(*server)
        };
        let untried = (0..self.pools.len()).filter(is_untried).take(self.unassigned.len());
        let untried: Vec<usize> = untried.collect();
        untried.iter().for_each(|server| self.add_wanting(*server));
        !untried.is_empty()
    }

    /// How connections to a server fared until one of them was taken away.
    pub(super) fn set_attempts(&mut self, server: usize, attempts: Attempts) {
        self.pools[server].attempts = attempts;
    }

    /// How connections to a server fared.
    pub(super) fn attempts(&self, server: usize) -> Attempts {
        self.pools[server].attempts
    }

    /// Where connections roam: a connection for the server that has wanted one for longest. `is_idle` tells whether an entry of
    /// the list of idle connections is still so, and its server. Returns the connection, the server that it loses, and the
    /// server that it is for; to be asked again until there is none.
    pub(super) fn next_assignment(
        &mut self,
        now: Nanos,
        is_idle: impl Fn(usize, Nanos) -> Option<usize>,
    ) -> Option<(usize, Option<usize>, usize)> {
        let place = self.first_wanting(now)?;
        let (slot, loser) = match self.unassigned.pop() {
            Some(slot) => (slot, None),
            None => {
                let (slot, loser) = self.take_idle(&is_idle)?;
                self.pools[loser].connections -= 1;
                (slot, Some(loser))
            }
        };
        let server = self.wanting.remove(place)?;
        let pool = &mut self.pools[server];
        pool.wants = false;
        pool.connections += 1;
        if let Some(loser) = loser {
            self.want(loser);
        }
        Some((slot, loser, server))
    }

    /// The place of the server that has wanted a connection for longest, among those that may have one now.
    fn first_wanting(&mut self, now: Nanos) -> Option<usize> {
        if now < self.next_retry {
            return None;
        }
        let retry_at = |server: &usize| self.pools[*server].retry_at;
        let place = self.wanting.iter().position(|server| retry_at(server) <= now);
        if place.is_none() {
            self.next_retry = self.wanting.iter().map(retry_at).min().unwrap_or(Nanos::MAX);
        }
        place
    }

    fn take_idle(&mut self, is_idle: impl Fn(usize, Nanos) -> Option<usize>) -> Option<(usize, usize)> {
        while let Some((slot, since)) = self.idle.pop_front() {
            if let Some(server) = is_idle(slot, since) {
                return Some((slot, server));
            }
        }
        None
    }

    /// Where connections roam, and requests wait for `server`: it wants another one, unless it has as many as it may.
    fn want(&mut self, server: usize) {
        let pool = &mut self.pools[server];
        let may_have_more = self.roaming.is_some_and(|most| pool.connections < most);
        if may_have_more && !pool.wants && !pool.waiting.is_empty() {
            self.add_wanting(server);
        }
    }

    fn add_wanting(&mut self, server: usize) {
        let pool = &mut self.pools[server];
        pool.wants = true;
        self.next_retry = self.next_retry.min(pool.retry_at);
        self.wanting.push_back(server);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(server: usize, due: Nanos) -> Waiting {
        Waiting { due, chosen: Chosen { choice: 0, server, request: 0, numbers: Vec::new() } }
    }

    #[test]
    fn a_request_waits_for_its_own_server_and_is_told_when_that_is_free() {
        let mut pools = Pools::new(2, &[0, 1], None);
        pools.wait(waiting(0, 5));
        pools.add_free(1, 1);
        assert_eq!(pools.next_ready(), None);
        pools.add_free(0, 0);
        assert_eq!(pools.next_ready(), Some(0));
        assert_eq!((pools.oldest_due(), pools.next_free(0)), (Some(5), Some(0)));
        assert_eq!(pools.take_waiting(0).map(|waiting| waiting.due), Some(5));
        assert!(pools.is_empty() && !pools.has_waiting(0));
    }

    #[test]
    fn roaming_connections_go_from_the_longest_idle_to_the_longest_wanting() {
        let mut pools = Pools::new(4, &[0, 1], Some(1));
        let idle = |slot: usize, _: Nanos| Some(slot);
        pools.add_idle(0, 10, idle);
        pools.add_idle(1, 20, idle);
        pools.wait(waiting(3, 30));
        pools.wait(waiting(2, 31));
        pools.wait(waiting(3, 32));
        assert_eq!(pools.next_assignment(40, idle), Some((0, Some(0), 3)));
        assert_eq!(pools.next_assignment(40, idle), Some((1, Some(1), 2)));
        // One connection each is all they may have.
        assert_eq!(pools.next_assignment(40, idle), None);
        pools.release(3, 0, 100, Attempts { address: 1, failures: 1 });
        assert_eq!(pools.next_assignment(99, idle), None, "a server that failed is tried again later");
        assert_eq!(pools.attempts(3).failures, 1);
        assert_eq!(pools.next_assignment(100, idle), Some((0, None, 3)));
    }

    #[test]
    fn connections_that_were_used_since_are_not_idle() {
        let mut pools = Pools::new(3, &[0, 1], Some(1));
        let used = |slot: usize, since: Nanos| (since > 10).then_some(slot);
        pools.add_idle(0, 10, used);
        pools.add_idle(1, 20, used);
        pools.wait(waiting(2, 30));
        assert_eq!(pools.next_assignment(40, used), Some((1, Some(1), 2)));
    }

    #[test]
    fn the_list_of_idle_connections_does_not_grow_with_requests() {
        let mut pools = Pools::new(3, &[0, 1], Some(1));
        for now in 0..1000 {
            pools.add_idle(now as usize % 2, now, |slot, since| (since + 2 > now).then_some(slot));
        }
        assert!(pools.idle.len() <= 2 * IDLE_ENTRIES_A_CONNECTION + 1, "{}", pools.idle.len());
    }

    #[test]
    fn a_server_whose_connection_is_taken_from_waiting_requests_wants_another() {
        let mut pools = Pools::new(2, &[0], Some(1));
        let idle = |slot: usize, _: Nanos| Some(slot);
        pools.add_idle(0, 10, idle);
        pools.wait(waiting(0, 11));
        pools.wait(waiting(1, 12));
        assert_eq!(pools.next_assignment(20, idle), Some((0, Some(0), 1)));
        pools.add_idle(0, 30, |_, _| Some(1));
        assert_eq!(pools.next_assignment(40, |_, _| Some(1)), Some((0, Some(1), 0)));
    }

    #[test]
    fn of_too_many_that_wait_only_those_of_the_server_that_is_behind_are_not_kept() {
        let mut pools = Pools::new(3, &[0, 1, 2], None);
        (0..MOST_WAITING - 1).for_each(|due| pools.wait(waiting(0, due as Nanos)));
        assert!(!pools.is_crowded_by(0), "while there is room it is for any");
        pools.wait(waiting(1, 0));
        assert!(pools.is_crowded_by(0) && !pools.is_crowded_by(1) && !pools.is_crowded_by(2));
        (1..MOST_WAITING / 3).for_each(|due| pools.wait(waiting(1, due as Nanos)));
        assert!(pools.is_crowded_by(1) && !pools.is_crowded_by(2), "its share is full too");
        pools.give_up(Nanos::MAX);
        assert!(!pools.is_crowded_by(0));
    }

    #[test]
    fn what_waited_in_vain_is_counted() {
        let mut pools = Pools::new(2, &[0, 1], None);
        (0..10).for_each(|due| pools.wait(waiting(due as usize % 2, due)));
        assert_eq!(pools.give_up(4), 4);
        assert_eq!(pools.give_up(Nanos::MAX), 6);
        assert!(pools.is_empty());
    }
}

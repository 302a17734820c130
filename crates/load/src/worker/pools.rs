//! Free connections per server, and the requests that wait for one.
//!
//! With one server, requests without a free connection stay in the schedule. With several, a request is for
//! the server selected for it, whichever connection is free: it waits here, and those for other servers
//! proceed. With fewer connections than servers, connections roam: the longest-idle one is closed for a
//! server that needs one.

use crate::clock::Nanos;
use crate::target::Chosen;
use std::collections::VecDeque;

/// Maximum waiting requests in an open loop, over all servers of one thread. Beyond it, a server with more
/// than its even share of them gets no more. This bounds memory (at most twice as many wait), and a dead
/// server does not hold up the others. A stall of all servers is measured as long as it lasts no longer than
/// this many requests.
const MAX_WAITING: usize = 65_536;
/// Entries per connection in the list of idle connections, beyond which outdated ones are removed.
const IDLE_ENTRIES_PER_CONNECTION: usize = 4;

/// The pools of a thread's servers.
pub(super) struct Pools {
    pools: Vec<Pool>,
    /// With roaming: connections that one server may have at a time.
    pub(super) roaming: Option<usize>,
    /// Servers with waiting requests and a free connection.
    ready: Vec<usize>,
    /// Requests that wait for a free connection.
    waiting: usize,
    /// Connections that may be closed for another server, the longest idle first, with the time since when.
    /// An entry is outdated if the connection has been used since.
    idle: VecDeque<(usize, Nanos)>,
    /// Total number of connections.
    connections: usize,
    /// Connections without a server.
    unassigned: Vec<usize>,
    /// Servers that need a connection, in the order in which the need arose.
    wanting: VecDeque<usize>,
    /// Before this time none of them may get one.
    next_retry: Nanos,
}

/// State of one server.
#[derive(Default)]
struct Pool {
    /// Connections that may accept a request, the longest idle first. Entries may be outdated.
    free: VecDeque<usize>,
    waiting: VecDeque<Waiting>,
    connections: usize,
    wants: bool,
    /// After a failed attempt: when the next connection may be opened.
    retry_at: Nanos,
    attempts: Attempts,
}

/// Recent attempts to connect to a server; with roaming, they stay with the server.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Attempts {
    /// Index of the address to try next.
    pub(super) address: usize,
    /// Consecutive attempts without a response.
    pub(super) failures: u32,
}

/// A request that waits for a connection.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) due: Nanos,
    pub(super) chosen: Chosen,
}

impl Pools {
    /// Creates pools for this many servers. `connections`: the server of each.
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

    /// Number of servers, or 1 if all connections share a pool.
    pub(super) fn len(&self) -> usize {
        self.pools.len()
    }

    /// True if there is only one server: nothing ever waits here.
    pub(super) fn is_one(&self) -> bool {
        self.pools.len() == 1
    }

    /// True if a due request can be taken from the schedule: to be sent, or to wait here.
    pub(super) fn takes_requests(&self) -> bool {
        !self.is_one() || !self.pools[0].free.is_empty()
    }

    /// A connection may accept requests for `server`.
    pub(super) fn add_free(&mut self, server: usize, slot: usize) {
        let pool = &mut self.pools[server];
        pool.free.push_back(slot);
        if !pool.waiting.is_empty() {
            self.ready.push(server);
        }
    }

    /// With roaming: this connection has no unanswered requests left. `is_idle`: see
    /// [`Self::next_assignment`].
    pub(super) fn add_idle(
        &mut self,
        slot: usize,
        since: Nanos,
        is_idle: impl Fn(usize, Nanos) -> Option<usize>,
    ) {
        self.idle.push_back((slot, since));
        if self.idle.len() > IDLE_ENTRIES_PER_CONNECTION * self.connections {
            self.idle.retain(|(slot, since)| is_idle(*slot, *since).is_some());
        }
    }

    /// Next entry of the free connections for `server`.
    pub(super) fn next_free(&mut self, server: usize) -> Option<usize> {
        self.pools[server].free.pop_front()
    }

    /// Lets a request wait for a connection to its server.
    pub(super) fn wait(&mut self, waiting: Waiting) {
        let server = waiting.chosen.server;
        self.pools[server].waiting.push_back(waiting);
        self.waiting += 1;
        self.want(server);
    }

    /// True if so many requests wait, and so many of them for `server`, that no more for it can be kept.
    pub(super) fn is_crowded_by(&self, server: usize) -> bool {
        let share = (MAX_WAITING / self.pools.len()).max(1);
        self.waiting >= MAX_WAITING && self.pools[server].waiting.len() >= share
    }

    /// Next server with requests that can be sent now. Call it again until there is none.
    pub(super) fn next_ready(&mut self) -> Option<usize> {
        self.ready.pop()
    }

    /// True if requests wait for a connection to `server`.
    pub(super) fn has_waiting(&self, server: usize) -> bool {
        !self.pools[server].waiting.is_empty()
    }

    /// True if nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Takes the request that has waited longest for `server`.
    pub(super) fn take_waiting(&mut self, server: usize) -> Option<Waiting> {
        let waiting = self.pools[server].waiting.pop_front()?;
        self.waiting -= 1;
        Some(waiting)
    }

    /// When the longest-waiting request was due.
    pub(super) fn oldest_due(&self) -> Option<Nanos> {
        if self.is_empty() {
            return None;
        }
        self.pools.iter().filter_map(|pool| pool.waiting.front()).map(|waiting| waiting.due).min()
    }

    /// Takes all waiting requests that were due before `at`: they are given up.
    pub(super) fn give_up(&mut self, at: Nanos) -> Vec<Waiting> {
        let mut given_up = Vec::new();
        for pool in &mut self.pools {
            while let Some(waiting) = pool.waiting.pop_front_if(|waiting| waiting.due < at) {
                given_up.push(waiting);
            }
        }
        self.waiting -= given_up.len();
        given_up
    }

    /// Resets all times: see `Worker::restart_times`.
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

    /// Before a run, with roaming, if no connection could be opened: lets connections without a server try
    /// servers with untried addresses. `addresses` returns a server's number of addresses. Returns true if
    /// there are any.
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

    /// Stores the recent attempts of a server when one of its connections is taken away.
    pub(super) fn set_attempts(&mut self, server: usize, attempts: Attempts) {
        self.pools[server].attempts = attempts;
    }

    /// Recent attempts to connect to a server, for its next connection. The one after that goes to the next of so many addresses.
    pub(super) fn next_attempts(&mut self, server: usize, spread: usize) -> Attempts {
        let kept = &mut self.pools[server].attempts;
        let attempts = *kept;
        kept.address = (attempts.address + 1) % spread;
        attempts
    }

    /// With roaming: finds a connection for the server that has needed one longest. `is_idle` checks whether
    /// an entry of the idle list is still valid, and returns its server. Returns the connection, the server
    /// that loses it, and the server that gets it. Call it again until there is none.
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

    /// Position of the server that has needed a connection longest, among those that may get one now.
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

    /// With roaming: if requests wait for `server`, it needs another connection, unless it has the maximum.
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
    fn request_waits_for_its_own_server_until_that_is_free() {
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
    fn roaming_connections_go_from_longest_idle_to_longest_waiting() {
        let mut pools = Pools::new(4, &[0, 1], Some(1));
        let idle = |slot: usize, _: Nanos| Some(slot);
        pools.add_idle(0, 10, idle);
        pools.add_idle(1, 20, idle);
        pools.wait(waiting(3, 30));
        pools.wait(waiting(2, 31));
        pools.wait(waiting(3, 32));
        assert_eq!(pools.next_assignment(40, idle), Some((0, Some(0), 3)));
        assert_eq!(pools.next_assignment(40, idle), Some((1, Some(1), 2)));
        // One connection each is the limit.
        assert_eq!(pools.next_assignment(40, idle), None);
        pools.release(3, 0, 100, Attempts { address: 1, failures: 1 });
        assert_eq!(pools.next_assignment(99, idle), None, "a server that failed is tried again later");
        assert_eq!(pools.next_attempts(3, 2), Attempts { address: 1, failures: 1 });
        assert_eq!(pools.next_attempts(3, 2).address, 0, "the next of its two addresses");
        assert_eq!(pools.next_assignment(100, idle), Some((0, None, 3)));
    }

    #[test]
    fn connections_used_since_are_not_idle() {
        let mut pools = Pools::new(3, &[0, 1], Some(1));
        let used = |slot: usize, since: Nanos| (since > 10).then_some(slot);
        pools.add_idle(0, 10, used);
        pools.add_idle(1, 20, used);
        pools.wait(waiting(2, 30));
        assert_eq!(pools.next_assignment(40, used), Some((1, Some(1), 2)));
    }

    #[test]
    fn idle_list_does_not_grow_with_requests() {
        let mut pools = Pools::new(3, &[0, 1], Some(1));
        for now in 0..1000 {
            pools.add_idle(now as usize % 2, now, |slot, since| (since + 2 > now).then_some(slot));
        }
        assert!(pools.idle.len() <= 2 * IDLE_ENTRIES_PER_CONNECTION + 1, "{}", pools.idle.len());
    }

    #[test]
    fn server_losing_connection_with_waiting_requests_needs_another() {
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
    fn excess_waiting_requests_are_dropped_only_for_crowded_server() {
        let mut pools = Pools::new(3, &[0, 1, 2], None);
        (0..MAX_WAITING - 1).for_each(|due| pools.wait(waiting(0, due as Nanos)));
        assert!(!pools.is_crowded_by(0), "while there is room it is for any");
        pools.wait(waiting(1, 0));
        assert!(pools.is_crowded_by(0) && !pools.is_crowded_by(1) && !pools.is_crowded_by(2));
        (1..MAX_WAITING / 3).for_each(|due| pools.wait(waiting(1, due as Nanos)));
        assert!(pools.is_crowded_by(1) && !pools.is_crowded_by(2), "its share is full too");
        pools.give_up(Nanos::MAX);
        assert!(!pools.is_crowded_by(0));
    }

    #[test]
    fn dropped_waiting_requests_are_counted() {
        let mut pools = Pools::new(2, &[0, 1], None);
        (0..10).for_each(|due| pools.wait(waiting(due as usize % 2, due)));
        assert_eq!(pools.give_up(4).len(), 4);
        assert_eq!(pools.give_up(Nanos::MAX).len(), 6);
        assert!(pools.is_empty());
    }
}

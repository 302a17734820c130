//! Free connections per server, and the requests that wait for one.
//!
//! With one server, requests without a free connection stay in the schedule. With several, a request is for
//! the server selected for it, whichever connection is free: it waits here, and those for other servers
//! proceed. With fewer connections than servers, connections roam between them: see [`Roaming`].

use super::roaming::{Attempts, Reassignment, Roaming};
use crate::clock::Nanos;
use crate::target::Chosen;
use std::collections::VecDeque;

/// Maximum waiting requests in an open loop, over all servers of one thread. Beyond it, a server with more
/// than its even share of them gets no more. This bounds memory (at most twice as many wait), and a dead
/// server does not hold up the others. A stall of all servers is measured as long as it lasts no longer than
/// this many requests.
const MAX_WAITING: usize = 65_536;

/// The pools of a thread's servers.
pub(super) struct Pools {
    pools: Vec<Pool>,
    pub(super) roaming: Option<Roaming>,
    /// Servers with waiting requests and a free connection.
    ready: Vec<usize>,
    /// Requests that wait for a free connection.
    waiting: usize,
}

/// State of one server.
#[derive(Default)]
struct Pool {
    /// Connections that may accept a request, the longest idle first. Entries may be outdated.
    free: VecDeque<usize>,
    waiting: VecDeque<Waiting>,
}

/// A request that waits for a connection.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) due: Nanos,
    pub(super) chosen: Chosen,
}

impl Pools {
    /// Creates pools for this many servers. `connections`: the server of each. `roaming`: connections that one server
    /// may have at a time, if they roam.
    pub(super) fn new(servers: usize, connections: &[usize], roaming: Option<usize>) -> Self {
        Self {
            pools: (0..servers).map(|_| Pool::default()).collect(),
            roaming: roaming.map(|most| Roaming::new(servers, connections, most)),
            ready: Vec::new(),
            waiting: 0,
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

    /// Next server that may have requests that can be sent now. Call it again until there is none.
    pub(super) fn next_ready(&mut self) -> Option<usize> {
        self.ready.pop()
    }

    /// The server may have more requests that can be sent now.
    pub(super) fn stays_ready(&mut self, server: usize) {
        self.ready.push(server);
    }

    /// True if there may be requests that waited and can be sent now.
    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
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

    /// With roaming: a connection has lost its server, which may be tried again at `retry_at`.
    pub(super) fn release(
        &mut self,
        server: usize,
        slot: usize,
        retry_at: Nanos,
        attempts: Attempts,
        failing_since: Option<Nanos>,
    ) {
        if let Some(roaming) = &mut self.roaming {
            roaming.release(server, slot, retry_at, attempts, failing_since);
        }
        self.want(server);
    }

    /// With roaming: finds a connection for the server that has needed one longest; see
    /// [`Roaming::next_assignment`].
    pub(super) fn next_assignment(
        &mut self,
        now: Nanos,
        is_idle: impl Fn(usize, Nanos) -> Option<usize>,
    ) -> Option<Reassignment> {
        let assignment = self.roaming.as_mut()?.next_assignment(now, is_idle)?;
        if let Some(loser) = assignment.loser {
            self.want(loser);
        }
        Some(assignment)
    }

    /// With roaming: a server for which requests wait needs another connection.
    fn want(&mut self, server: usize) {
        if let Some(roaming) = &mut self.roaming
            && !self.pools[server].waiting.is_empty()
        {
            roaming.want(server);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::worker) fn waiting(server: usize, due: Nanos) -> Waiting {
        let chosen = Chosen {
            choice: 0,
            option: 0,
            server,
            request: 0,
            step: None,
            numbers: Vec::new(),
            lacks_data: false,
        };
        Waiting { due, chosen }
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

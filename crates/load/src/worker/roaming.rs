//! Roaming: with fewer connections than servers, the longest-idle connection is closed for a server that needs one.

use super::retries::RETRY_PAUSE;
use crate::clock::Nanos;
use std::collections::VecDeque;

/// Entries per connection in the list of idle connections, beyond which outdated ones are removed.
const IDLE_ENTRIES_PER_CONNECTION: usize = 4;

/// The connections of a thread that roam between its servers.
pub(super) struct Roaming {
    /// Connections that one server may have at a time.
    most: usize,
    servers: Vec<Server>,
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

/// Connections of one server.
#[derive(Clone, Default)]
struct Server {
    connections: usize,
    wants: bool,
    /// After a failed attempt: when the next connection may be opened.
    retry_at: Nanos,
    attempts: Attempts,
    /// Since when no connection to it can be opened.
    failing_since: Option<Nanos>,
}

/// Recent attempts to connect to a server; with roaming, they stay with the server.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Attempts {
    /// Index of the address to try next.
    pub(super) address: usize,
    /// Consecutive attempts without a response.
    pub(super) failures: u32,
}

/// A connection for a server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Reassignment {
    pub(super) slot: usize,
    /// The server that loses it.
    pub(super) loser: Option<usize>,
    pub(super) server: usize,
}

impl Roaming {
    /// `connections`: the server of each. `most`: connections that one server may have at a time.
    pub(super) fn new(servers: usize, connections: &[usize], most: usize) -> Self {
        let mut servers = vec![Server::default(); servers];
        for server in connections {
            servers[*server].connections += 1;
        }
        Self {
            most,
            servers,
            idle: VecDeque::new(),
            connections: connections.len(),
            unassigned: Vec::new(),
            wanting: VecDeque::new(),
            next_retry: 0,
        }
    }

    /// Resets all times: see `Worker::restart_times`.
    pub(super) fn restart_times(&mut self) {
        self.idle.iter_mut().for_each(|(_, since)| *since = 0);
        for server in &mut self.servers {
            server.retry_at = 0;
            server.failing_since = server.failing_since.map(|_| 0);
        }
        self.next_retry = 0;
    }

    /// This connection has no unanswered requests left. `is_idle`: see [`Self::next_assignment`].
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

    /// A connection has lost its server. `failing_since`: since when it cannot be opened.
    pub(super) fn release(
        &mut self,
        server: usize,
        slot: usize,
        retry_at: Nanos,
        attempts: Attempts,
        failing_since: Option<Nanos>,
    ) {
        let server = &mut self.servers[server];
        server.connections -= 1;
        (server.retry_at, server.attempts) = (retry_at, attempts);
        // Others may be open.
        if server.connections == 0 {
            server.failing_since = server.failing_since.or(failing_since);
        }
        self.unassigned.push(slot);
    }

    /// A connection to the server is open. Returns since when none could be opened, if attempts had failed.
    pub(super) fn take_failing_since(&mut self, server: usize) -> Option<Nanos> {
        self.servers[server].failing_since.take()
    }

    /// Since when no connection to each server can be opened.
    pub(super) fn failing_since(&self) -> impl Iterator<Item = Option<Nanos>> {
        self.servers.iter().map(|server| server.failing_since)
    }

    /// Before a run, if no connection could be opened: lets connections without a server try servers with untried
    /// addresses. `addresses` returns a server's number of addresses. Returns true if there are any.
    pub(super) fn try_others(&mut self, addresses: impl Fn(usize) -> usize) -> bool {
        let is_untried = |index: &usize| {
            let server = &self.servers[*index];
            !server.wants
                && server.connections == 0
                && (server.attempts.failures as usize) < addresses(*index)
        };
        let untried = (0..self.servers.len()).filter(is_untried).take(self.unassigned.len());
        let untried: Vec<usize> = untried.collect();
        untried.iter().for_each(|server| self.add_wanting(*server));
        !untried.is_empty()
    }

    /// Stores the recent attempts of a server when one of its connections is taken away.
    pub(super) fn set_attempts(&mut self, server: usize, attempts: Attempts) {
        self.servers[server].attempts = attempts;
    }

    /// Recent attempts to connect to a server, for its next connection. The one after that goes to the next of
    /// `spread` addresses.
    pub(super) fn next_attempts(&mut self, server: usize, spread: usize) -> Attempts {
        let kept = &mut self.servers[server].attempts;
        let attempts = *kept;
        kept.address = (attempts.address + 1) % spread;
        attempts
    }

    /// Finds a connection for the server that has needed one longest. `is_idle` checks whether an entry of the
    /// idle list is still valid, and returns its server. Call it again until there is none.
    pub(super) fn next_assignment(
        &mut self,
        now: Nanos,
        is_idle: impl Fn(usize, Nanos) -> Option<usize>,
    ) -> Option<Reassignment> {
        let place = self.first_wanting(now)?;
        let (slot, loser) = match self.unassigned.pop() {
            Some(slot) => (slot, None),
            None => {
                let (slot, loser) = self.take_idle(&is_idle)?;
                self.servers[loser].connections -= 1;
                (slot, Some(loser))
            }
        };
        let server = self.wanting.remove(place)?;
        self.servers[server].wants = false;
        self.servers[server].connections += 1;
        Some(Reassignment { slot, loser, server })
    }

    /// Position of the server that has needed a connection longest, among those that may get one now.
    fn first_wanting(&mut self, now: Nanos) -> Option<usize> {
        if now < self.next_retry {
            return None;
        }
        let retry_at = |server: &usize| self.servers[*server].retry_at;
        let place = self.wanting.iter().position(|server| retry_at(server) <= now);
        if place.is_none() {
            self.next_retry = self.wanting.iter().map(retry_at).min().unwrap_or(Nanos::MAX);
        }
        place
    }

    /// When to look again for a server that may get a connection. If one may get it already, it waits until another loses its own.
    pub(super) fn next_turn(&self, now: Nanos) -> Nanos {
        if self.next_retry > now { self.next_retry } else { now + RETRY_PAUSE }
    }

    /// The servers that `is_there` selects answer again: their connections may be opened now. Returns when the last of the others may.
    pub(super) fn retry_at_once(&mut self, is_there: impl Fn(usize) -> bool, now: Nanos) -> Nanos {
        let mut last_turn = now;
        for (index, server) in self.servers.iter_mut().enumerate() {
            server.retry_at = if is_there(index) { now.min(server.retry_at) } else { server.retry_at };
            last_turn = last_turn.max(server.retry_at);
        }
        self.next_retry = self.next_retry.min(now);
        last_turn
    }

    fn take_idle(&mut self, is_idle: impl Fn(usize, Nanos) -> Option<usize>) -> Option<(usize, usize)> {
        while let Some((slot, since)) = self.idle.pop_front() {
            if let Some(server) = is_idle(slot, since) {
                return Some((slot, server));
            }
        }
        None
    }

    /// Requests wait for this server: it needs another connection, unless it has the maximum.
    pub(super) fn want(&mut self, server: usize) {
        let Server { connections, wants, .. } = self.servers[server];
        if connections < self.most && !wants {
            self.add_wanting(server);
        }
    }

    fn add_wanting(&mut self, index: usize) {
        let server = &mut self.servers[index];
        server.wants = true;
        self.next_retry = self.next_retry.min(server.retry_at);
        self.wanting.push_back(index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::pools::Pools;
    use crate::worker::pools::tests::waiting;

    fn roaming(pools: &mut Pools) -> &mut Roaming {
        pools.roaming.as_mut().expect("connections roam")
    }

    #[test]
    fn roaming_connections_go_from_longest_idle_to_longest_waiting() {
        let mut pools = Pools::new(4, &[0, 1], Some(1));
        let idle = |slot: usize, _: Nanos| Some(slot);
        roaming(&mut pools).add_idle(0, 10, idle);
        roaming(&mut pools).add_idle(1, 20, idle);
        pools.wait(waiting(3, 30));
        pools.wait(waiting(2, 31));
        pools.wait(waiting(3, 32));
        assert_eq!(
            pools.next_assignment(40, idle),
            Some(Reassignment { slot: 0, loser: Some(0), server: 3 })
        );
        assert_eq!(
            pools.next_assignment(40, idle),
            Some(Reassignment { slot: 1, loser: Some(1), server: 2 })
        );
        // One connection each is the limit.
        assert_eq!(pools.next_assignment(40, idle), None);
        pools.release(3, 0, 100, Attempts { address: 1, failures: 1 }, Some(40));
        assert_eq!(pools.next_assignment(99, idle), None, "a server that failed is tried again later");
        assert_eq!(roaming(&mut pools).next_attempts(3, 2), Attempts { address: 1, failures: 1 });
        assert_eq!(roaming(&mut pools).next_attempts(3, 2).address, 0, "the next of its two addresses");
        assert_eq!(pools.next_assignment(100, idle), Some(Reassignment { slot: 0, loser: None, server: 3 }));
    }

    #[test]
    fn server_is_unreachable_from_its_first_failed_attempt_until_a_connection_is_open() {
        let mut roaming = Roaming::new(3, &[0, 0, 1], 2);
        let failed = |failures| Attempts { address: 0, failures };
        roaming.release(0, 0, 20, failed(1), Some(10));
        assert_eq!(roaming.failing_since().collect::<Vec<_>>(), [None; 3], "another one is open");
        roaming.release(0, 1, 30, failed(2), Some(20));
        for retry_at in [40, 50] {
            roaming.add_wanting(0);
            let assigned = roaming.next_assignment(retry_at, |_, _| None).expect("it is the server's turn");
            roaming.release(0, assigned.slot, retry_at + 10, failed(3), Some(retry_at));
        }
        // The end of a connection that had served its server is no failure.
        roaming.release(1, 2, 20, failed(0), None);
        assert_eq!(roaming.failing_since().collect::<Vec<_>>(), [Some(20), None, None]);
        assert_eq!([(); 2].map(|()| roaming.take_failing_since(0)), [Some(20), None]);
    }

    #[test]
    fn connections_used_since_are_not_idle() {
        let mut pools = Pools::new(3, &[0, 1], Some(1));
        let used = |slot: usize, since: Nanos| (since > 10).then_some(slot);
        roaming(&mut pools).add_idle(0, 10, used);
        roaming(&mut pools).add_idle(1, 20, used);
        pools.wait(waiting(2, 30));
        assert_eq!(
            pools.next_assignment(40, used),
            Some(Reassignment { slot: 1, loser: Some(1), server: 2 })
        );
    }

    #[test]
    fn idle_list_does_not_grow_with_requests() {
        let mut pools = Pools::new(3, &[0, 1], Some(1));
        for now in 0..1000 {
            roaming(&mut pools)
                .add_idle(now as usize % 2, now, |slot, since| (since + 2 > now).then_some(slot));
        }
        assert!(
            roaming(&mut pools).idle.len() <= 2 * IDLE_ENTRIES_PER_CONNECTION + 1,
            "{}",
            roaming(&mut pools).idle.len()
        );
    }

    #[test]
    fn server_losing_connection_with_waiting_requests_needs_another() {
        let mut pools = Pools::new(2, &[0], Some(1));
        let idle = |slot: usize, _: Nanos| Some(slot);
        roaming(&mut pools).add_idle(0, 10, idle);
        pools.wait(waiting(0, 11));
        pools.wait(waiting(1, 12));
        assert_eq!(
            pools.next_assignment(20, idle),
            Some(Reassignment { slot: 0, loser: Some(0), server: 1 })
        );
        roaming(&mut pools).add_idle(0, 30, |_, _| Some(1));
        assert_eq!(
            pools.next_assignment(40, |_, _| Some(1)),
            Some(Reassignment { slot: 0, loser: Some(1), server: 0 })
        );
    }
}

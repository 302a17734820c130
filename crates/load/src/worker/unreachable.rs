//! Time of the window for which connections could not be opened.
//!
//! It is added up by server, since a closed loop comes to a halt with one of its servers: sooner or later each client's next request
//! is for that one. Roaming connections are opened where they are needed, so that it is the server that cannot be reached, and none of
//! its connections. A request whose own connection cannot be opened has failed.

use super::connection::State;
use super::{Timeline, Worker};
use crate::clock::{Nanos, SECOND};
use crate::network::Network;
use crate::protocol::Codec;

/// Connections that could not be opened, to one server or to all of them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Unreachable {
    /// Number of its connections; 1 per thread whose connections roam.
    pub(crate) connections: usize,
    /// Time for which they could not be opened, added up.
    pub(crate) time: Nanos,
}

impl Unreachable {
    pub(crate) fn add(&mut self, other: Self) {
        self.connections += other.connections;
        self.time += other.time;
    }

    /// The fraction of the connections' time in a window.
    pub(crate) fn share(&self, duration_s: f64) -> f64 {
        let whole_s = duration_s * self.connections as f64;
        if whole_s > 0.0 { self.time as f64 / SECOND as f64 / whole_s } else { 0.0 }
    }
}

impl<C: Codec, N: Network> Worker<'_, C, N> {
    /// The connection accepts requests.
    pub(super) fn is_reached(&mut self, slot: usize, now: Nanos) {
        let connection = &mut self.connections[slot];
        let of_server =
            self.pools.roaming.as_mut().and_then(|roaming| roaming.take_failing_since(connection.target));
        if let Some(since) = of_server.or(connection.take_failing_since()) {
            let pool = self.pool_of(slot);
            self.unreachable[pool] += self.in_window(since, now);
        }
    }

    /// The part of a period that lies in the window.
    fn in_window(&self, since: Nanos, until: Nanos) -> Nanos {
        let Timeline { window_start, end, .. } = self.timeline;
        until.min(end).saturating_sub(since.max(window_start))
    }

    /// Connections that could not be opened until `stopped_at`.
    pub(super) fn unreachable_until(&self, stopped_at: Nanos) -> Vec<Unreachable> {
        if self.per_request.is_some() {
            return Vec::new();
        }
        let mut pools: Vec<Unreachable> =
            self.unreachable.iter().map(|time| Unreachable { connections: 0, time: *time }).collect();
        let mut add = |pool: usize, since: Option<Nanos>| {
            let time = since.map_or(0, |since| self.in_window(since, stopped_at));
            pools[pool].add(Unreachable { connections: 1, time });
        };
        let since = self.connections.iter().map(|one| one.without_since(self.slowest_opening, stopped_at));
        let Some(roaming) = &self.pools.roaming else {
            since.enumerate().for_each(|(slot, since)| add(self.pool_of(slot), since));
            return pools;
        };
        let mut of_servers: Vec<Option<Nanos>> = roaming.failing_since().collect();
        for (connection, since) in self.connections.iter().zip(since) {
            let of_server = &mut of_servers[connection.target];
            *of_server = of_server.or(since);
        }
        // An attempt beside an open connection is one for more of them.
        for connection in self.connections.iter().filter(|connection| connection.state == State::Open) {
            of_servers[connection.target] = None;
        }
        of_servers.into_iter().enumerate().for_each(|(server, since)| add(server, since));
        pools
    }
}

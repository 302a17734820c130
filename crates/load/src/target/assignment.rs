//! Assignment of a thread's connections to servers.

use super::{ServerPer, Targets};
use crate::share::part;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Resolution, in parts of a connection, for comparing servers' distances from their shares.
const PARTS: f64 = 1e6;

/// The connections of one thread.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Assignment {
    /// The initial server of each connection.
    pub(crate) servers: Vec<usize>,
    /// The place of each connection among all of its server, those of other threads and generators included.
    pub(crate) places: Vec<usize>,
    /// Present if the thread lacks a connection to some server: connections go where they are needed, at most
    /// this many of this thread to one server. `None`: each keeps its server, as always with
    /// [`ServerPer::Connection`].
    pub(crate) roaming: Option<usize>,
}

impl Assignment {
    /// The part of `thread` among `threads`: of each server's connections, which are distributed by the
    /// servers' shares of the requests, at least one each.
    pub(crate) fn new(targets: &Targets, connections: usize, thread: usize, threads: usize) -> Self {
        let counts = targets.connections_per_server(connections);
        let (mut servers, mut places) = (Vec::new(), Vec::new());
        let mut first_thread = 0;
        for (server, count) in counts.iter().enumerate() {
            // The remainder of one server goes to other threads than that of the server before.
            let turn = (thread + threads - first_thread % threads) % threads;
            let own = part(*count, turn, threads);
            servers.extend(std::iter::repeat_n(server, own));
            places.extend((0..own).map(|number| turn + number * threads));
            first_thread += count % threads;
        }
        let keeps_servers = targets.server_per == ServerPer::Connection;
        let covered = (0..counts.len()).all(|server| servers.binary_search(&server).is_ok());
        let limit = match targets.connections_per_server {
            // All threads together stay within the limit.
            Some(most) => (most / threads).max(1),
            None if connections < counts.len() => 1,
            None => usize::MAX,
        };
        Self { roaming: (!covered && !keeps_servers).then_some(limit), servers, places }
    }
}

impl Targets {
    /// Initial number of connections of each server.
    fn connections_per_server(&self, connections: usize) -> Vec<usize> {
        let most = self.connections_per_server.unwrap_or(usize::MAX);
        let servers = self.servers.len();
        if connections < servers && self.server_per == ServerPer::Connection {
            // The others get no requests.
            let mut counts = vec![0; servers];
            (0..connections).for_each(|connection| counts[connection * servers / connections] = 1);
            return counts;
        }
        if connections < servers {
            return (0..servers).map(|server| usize::from(server < connections)).collect();
        }
        let ideal: Vec<f64> = self.shares().iter().map(|share| share * connections as f64).collect();
        let mut counts: Vec<usize> = ideal.iter().map(|ideal| (*ideal as usize).clamp(1, most)).collect();
        let excess =
            |counts: &[usize], server: usize| ((counts[server] as f64 - ideal[server]) * PARTS) as i64;
        let (mut total, all) = (counts.iter().sum::<usize>(), 0..servers);
        // The server furthest below its share gets the next one; the one furthest above gives one up.
        let mut under: BinaryHeap<_> =
            all.clone().map(|server| Reverse((excess(&counts, server), server))).collect();
        while total < connections
            && let Some(Reverse((_, server))) = under.pop()
        {
            if counts[server] < most {
                (counts[server], total) = (counts[server] + 1, total + 1);
                under.push(Reverse((excess(&counts, server), server)));
            }
        }
        let mut above: BinaryHeap<_> = all.map(|server| (excess(&counts, server), server)).collect();
        while total > connections
            && let Some((_, server)) = above.pop()
        {
            if counts[server] > 1 {
                (counts[server], total) = (counts[server] - 1, total - 1);
                above.push((excess(&counts, server), server));
            }
        }
        counts
    }

    /// Each server's share of the requests; they sum to 1.
    fn shares(&self) -> Vec<f64> {
        let mut shares = vec![0.0; self.servers.len()];
        let total = self.total_weight() as f64;
        for choice in &self.choices {
            for (server, _) in &choice.options {
                shares[*server] += f64::from(choice.weight) / total / choice.options.len() as f64;
            }
        }
        shares
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{RequestTemplate, resolve};

    fn targets(urls: &[&str]) -> Targets {
        let urls: Vec<String> = urls.iter().map(|url| (*url).to_owned()).collect();
        resolve(&urls, &RequestTemplate::default()).unwrap()
    }

    /// Connections per server over all threads, connections per thread, and whether any thread's connections
    /// roam.
    fn spread(targets: &Targets, connections: usize, threads: usize) -> (Vec<usize>, Vec<usize>, bool) {
        let all: Vec<_> =
            (0..threads).map(|thread| Assignment::new(targets, connections, thread, threads)).collect();
        let of_server =
            |server| all.iter().map(|one| one.servers.iter().filter(|given| **given == server).count()).sum();
        (
            (0..targets.servers.len()).map(of_server).collect(),
            all.iter().map(|one| one.servers.len()).collect(),
            all.iter().any(|one| one.roaming.is_some()),
        )
    }

    #[test]
    fn places_number_the_connections_of_a_server_over_all_threads() {
        let two = targets(&["3=http://127.0.0.1:1/", "2=http://127.0.0.1:2/"]);
        for threads in 1..=4 {
            let all = (0..threads).map(|thread| Assignment::new(&two, 10, thread, threads));
            let mut numbered: Vec<(usize, usize)> =
                all.flat_map(|one| one.servers.into_iter().zip(one.places)).collect();
            numbered.sort_unstable();
            let expected: Vec<(usize, usize)> = [(0, 6), (1, 4)]
                .into_iter()
                .flat_map(|(server, count)| (0..count).map(move |place| (server, place)))
                .collect();
            assert_eq!(numbered, expected, "{threads} threads");
        }
    }

    #[test]
    fn connections_follow_server_shares_evenly_over_threads() {
        let two = targets(&["http://127.0.0.1:1/", "http://127.0.0.1:2/"]);
        assert_eq!(spread(&two, 4, 2), (vec![2, 2], vec![2, 2], false));
        assert_eq!(spread(&two, 10, 4), (vec![5, 5], vec![3, 3, 2, 2], false));
        let weighted = targets(&["9=http://127.0.0.1:1/", "1=http://127.0.0.1:2/"]);
        assert_eq!(spread(&weighted, 10, 1), (vec![9, 1], vec![10], false));
        assert_eq!(spread(&weighted, 2, 1), (vec![1, 1], vec![2], false));
        let one = targets(&["http://127.0.0.1:1/a", "http://127.0.0.1:1/b"]);
        assert_eq!(spread(&one, 7, 3), (vec![7], vec![3, 2, 2], false));
    }

    #[test]
    fn fewer_pinned_connections_sample_servers_evenly() {
        let all = targets(&["http://127.0.0.{1..200}/"]);
        let keeping = Targets { server_per: ServerPer::Connection, ..all };
        let (servers, threads, roam) = spread(&keeping, 4, 2);
        let used: Vec<usize> = (0..200).filter(|server| servers[*server] > 0).collect();
        assert_eq!((used, threads, roam), (vec![0, 50, 100, 150], vec![2, 2], false));
    }

    #[test]
    fn limit_per_server_is_kept() {
        let mut two = targets(&["http://127.0.0.1:1/", "http://127.0.0.1:2/"]);
        two.connections_per_server = Some(3);
        assert_eq!(spread(&two, 100, 1), (vec![3, 3], vec![6], false));
        // Connections beyond the limit go to the others.
        let mut weighted = targets(&["9=http://127.0.0.1:1/", "1=http://127.0.0.1:2/"]);
        weighted.connections_per_server = Some(6);
        assert_eq!(spread(&weighted, 10, 1), (vec![6, 4], vec![10], false));
    }

    #[test]
    fn roaming_connections_stay_within_limit_over_all_threads() {
        let mut three = targets(&["http://127.0.0.1:1/", "http://127.0.0.1:2/", "http://127.0.0.1:3/"]);
        let limits = |targets: &Targets, connections, threads| -> Vec<_> {
            let limit = |thread| Assignment::new(targets, connections, thread, threads).roaming;
            (0..threads).map(limit).collect()
        };
        assert_eq!(limits(&three, 2, 2), [Some(1), Some(1)]);
        // At least as many connections as servers: no limit was requested.
        assert_eq!(limits(&three, 3, 2), [Some(usize::MAX), Some(usize::MAX)]);
        three.connections_per_server = Some(3);
        assert_eq!(limits(&three, 2, 2), [Some(1), Some(1)]);
        three.connections_per_server = Some(5);
        assert_eq!(limits(&three, 2, 2), [Some(2), Some(2)]);
    }

    #[test]
    fn connections_spread_over_many_servers() {
        let many = targets(&["http://127.0.0.1:{1..9000}/", "1000=http://127.0.0.1:9001/"]);
        let counts = many.connections_per_server(100_000);
        assert_eq!(counts.iter().sum::<usize>(), 100_000);
        assert!(counts[..9000].iter().all(|count| *count == 1) && counts[9000] == 91_000, "{}", counts[9000]);
    }

    #[test]
    fn fewer_pinned_connections_spread_over_servers() {
        let ten = targets(&["http://127.0.0.1:{1..10}/"]);
        let ten = Targets { server_per: ServerPer::Connection, ..ten };
        assert_eq!(ten.connections_per_server(4), [1, 0, 1, 0, 0, 1, 0, 1, 0, 0]);
        assert_eq!(spread(&ten, 4, 2), (vec![1, 0, 1, 0, 0, 1, 0, 1, 0, 0], vec![2, 2], false));
    }

    #[test]
    fn fewer_connections_than_servers_roam() {
        let three = targets(&["http://127.0.0.1:1/", "http://127.0.0.1:2/", "http://127.0.0.1:3/"]);
        assert_eq!(spread(&three, 2, 1), (vec![1, 1, 0], vec![2], true));
        // Neither thread has a connection to every server.
        assert_eq!(spread(&three, 3, 2), (vec![1, 1, 1], vec![2, 1], true));
    }
}

//! Which servers a thread's connections are for.

use super::Targets;

/// The connections of one thread.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Assignment {
    /// The server of each connection, at first.
    pub(crate) servers: Vec<usize>,
    /// There are fewer connections than servers: connections go where they are wanted, at most so many of this thread to
    /// one server. Absent: each keeps its server.
    pub(crate) roaming: Option<usize>,
}

impl Assignment {
    /// The share of `thread` among `threads`: of each server's connections, which are spread by the servers' shares of the
    /// requests, at least one each.
    pub(crate) fn new(targets: &Targets, connections: usize, thread: usize, threads: usize) -> Self {
        let counts = targets.connections_per_server(connections);
        let mut servers = Vec::new();
        let mut first_thread = 0;
        for (server, count) in counts.iter().enumerate() {
            // The odd ones of one server go to other threads than those of the server before.
            let turn = (thread + threads - first_thread % threads) % threads;
            servers.extend(std::iter::repeat_n(server, part(*count, turn, threads)));
            first_thread += count % threads;
        }
        let covered = (0..counts.len()).all(|server| servers.binary_search(&server).is_ok());
        let limit = targets.connections_per_server.unwrap_or(threads).div_ceil(threads);
        Self { roaming: (!covered).then_some(limit), servers }
    }
}

impl Targets {
    /// How many of `connections` each server has at first.
    fn connections_per_server(&self, connections: usize) -> Vec<usize> {
        let most = self.connections_per_server.unwrap_or(usize::MAX);
        let servers = self.servers.len();
        if connections < servers {
            return (0..servers).map(|server| usize::from(server < connections)).collect();
        }
        let shares = self.shares();
        let ideal: Vec<f64> = shares.iter().map(|share| share * connections as f64).collect();
        let mut counts: Vec<usize> = ideal.iter().map(|ideal| (*ideal as usize).max(1)).collect();
        // Whoever is furthest under its share gets the next one, whoever is furthest above it gives one up.
        let over = |counts: &[usize], server: usize| counts[server] as f64 - ideal[server];
        while counts.iter().sum::<usize>() != connections {
            let too_few = counts.iter().sum::<usize>() < connections;
            let candidates = (0..servers).filter(|server| too_few || counts[*server] > 1);
            let by_excess = |a: &usize, b: &usize| over(&counts, *a).total_cmp(&over(&counts, *b));
            let server = if too_few { candidates.min_by(by_excess) } else { candidates.max_by(by_excess) };
            let Some(server) = server else { break };
            if too_few { counts[server] += 1 } else { counts[server] -= 1 }
        }
        counts.iter().map(|count| (*count).min(most)).collect()
    }

    /// Each server's share of the requests; together 1.
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

/// The part of `total` that falls to one of `parts`.
fn part(total: usize, index: usize, parts: usize) -> usize {
    total / parts + usize::from(index < total % parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{RequestTemplate, resolve};

    fn targets(urls: &[&str]) -> Targets {
        let urls: Vec<String> = urls.iter().map(|url| (*url).to_owned()).collect();
        resolve(&urls, &RequestTemplate::default()).unwrap()
    }

    /// Connections of each server over all threads, those of each thread, and whether any thread's roam.
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
    fn connections_follow_the_shares_of_the_servers_and_the_threads_have_equally_many() {
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
    fn a_limit_for_each_server_is_kept() {
        let mut two = targets(&["http://127.0.0.1:1/", "http://127.0.0.1:2/"]);
        two.connections_per_server = Some(3);
        assert_eq!(spread(&two, 100, 1), (vec![3, 3], vec![6], false));
    }

    #[test]
    fn where_servers_are_more_than_connections_these_roam() {
        let three = targets(&["http://127.0.0.1:1/", "http://127.0.0.1:2/", "http://127.0.0.1:3/"]);
        assert_eq!(spread(&three, 2, 1), (vec![1, 1, 0], vec![2], true));
        // Neither thread has a connection to each server.
        assert_eq!(spread(&three, 3, 2), (vec![1, 1, 1], vec![2, 1], true));
    }
}

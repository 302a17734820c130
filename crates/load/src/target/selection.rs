//! Selects the request for each slot of the schedule. Only the seed and the slot decide, never which
//! connection happens to be free, so that a slow server gets its share.

use super::{Assignment, Choice, Order, ServerPer, Targets};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};

/// Streams of the random generator from here on are for requests; lower ones are for arrivals.
const FIRST_STREAM: u64 = 1 << 32;

/// A selected request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Chosen {
    /// Index of its URL among those given.
    pub(crate) choice: usize,
    /// Index of the server.
    pub(crate) server: usize,
    /// Index among the server's requests.
    pub(crate) request: usize,
    /// The numbers for its placeholders.
    pub(crate) numbers: Vec<u64>,
}

/// Selects the requests of one thread.
pub(crate) struct Selector<'a> {
    targets: &'a Targets,
    way: Way,
}

enum Way {
    /// There is only one request, and it has no numbers.
    Only,
    Random {
        random: Box<ChaCha8Rng>,
        total_weight: u64,
    },
    Turn {
        turns: Vec<Turn>,
        thread: u64,
        threads: u64,
    },
    /// See [`ServerPer::Connection`].
    Connection {
        random: Box<ChaCha8Rng>,
        /// The server of each connection of the thread.
        servers: Vec<usize>,
        /// Possible requests per server.
        requests: Vec<Vec<ServerRequest>>,
    },
}

/// A possible request to a server.
struct ServerRequest {
    choice: usize,
    request: usize,
    /// Sum of the weights up to and including its own.
    cumulative_weight: f64,
}

/// State of a choice in the round robin.
#[derive(Clone, Copy)]
struct Turn {
    /// How far it is behind its share, in units of the total weight (smooth weighted round robin).
    credit: i64,
    /// How often this thread has selected it.
    taken: u64,
}

impl<'a> Selector<'a> {
    /// The selector of `thread` among `threads`, which has these connections.
    pub(crate) fn new(
        targets: &'a Targets,
        seed: u64,
        (thread, threads): (usize, usize),
        connections: &Assignment,
    ) -> Self {
        let only = matches!(&targets.choices[..], [choice] if choice.options.len() == 1)
            && targets.choices[0].places(targets).next().is_none();
        let random = || {
            let mut random = Box::new(ChaCha8Rng::seed_from_u64(seed));
            random.set_stream(FIRST_STREAM + thread as u64);
            random
        };
        let way = match targets.order {
            _ if only => Way::Only,
            _ if targets.server_per == ServerPer::Connection => Way::Connection {
                random: random(),
                servers: connections.servers.clone(),
                requests: requests_by_server(targets),
            },
            Order::Random => Way::Random { random: random(), total_weight: targets.total_weight() },
            Order::Turn => {
                let turns = vec![Turn { credit: 0, taken: 0 }; targets.choices.len()];
                Way::Turn { turns, thread: thread as u64, threads: threads as u64 }
            }
        };
        let mut selector = Self { targets, way };
        // Threads start at different positions of the round.
        if let Way::Turn { turns, .. } = &mut selector.way {
            (0..thread % targets.choices.len()).for_each(|_| _ = next_turn(&targets.choices, turns));
        }
        selector
    }

    /// Selects the request of the next slot.
    pub(crate) fn choose(&mut self) -> Chosen {
        let targets = self.targets;
        match &mut self.way {
            Way::Only => {
                let (server, request) = targets.choices[0].options[0];
                Chosen { choice: 0, server, request, numbers: Vec::new() }
            }
            Way::Random { random, total_weight } => {
                let index = choice_at(&targets.choices, random.random_range(0..*total_weight));
                let choice = &targets.choices[index];
                let (server, request) = choice.options[random.random_range(0..choice.options.len())];
                let places = choice.places(targets);
                let numbers = places.map(|place| random.random_range(place.first..=place.last)).collect();
                Chosen { choice: index, server, request, numbers }
            }
            Way::Turn { turns, thread, threads } => {
                let index = next_turn(&targets.choices, turns);
                let choice = &targets.choices[index];
                let taken = turns[index].taken;
                turns[index].taken += 1;
                // Every thread covers every server; passes over all servers are dealt out to the threads in
                // turn.
                let options = choice.options.len() as u64;
                let (server, request) = choice.options[((taken + *thread) % options) as usize];
                let mut rest = taken / options * *threads + *thread;
                let numbers = choice.places(targets).map(|place| {
                    let number = place.first + rest % place.count();
                    rest /= place.count();
                    number
                });
                Chosen { choice: index, server, request, numbers: numbers.collect() }
            }
            Way::Connection { random, servers, .. } => {
                let server = servers[random.random_range(0..servers.len())];
                self.choose_of(server)
            }
        }
    }

    /// Selects the request of the next slot for `server`, which the connection has determined.
    pub(crate) fn choose_of(&mut self, server: usize) -> Chosen {
        let targets = self.targets;
        let Way::Connection { random, requests, .. } = &mut self.way else { return self.choose() };
        let options = &requests[server];
        let total = options.last().map_or(0.0, |last| last.cumulative_weight);
        let point = random.random_range(0.0..total);
        let drawn = options.partition_point(|option| option.cumulative_weight <= point);
        let ServerRequest { choice, request, .. } = options[drawn.min(options.len() - 1)];
        let places = targets.choices[choice].places(targets);
        let numbers = places.map(|place| random.random_range(place.first..=place.last)).collect();
        Chosen { choice, server, request, numbers }
    }
}

/// Possible requests per server. A choice with several servers contributes an equal part of its weight to
/// each.
fn requests_by_server(targets: &Targets) -> Vec<Vec<ServerRequest>> {
    let mut requests: Vec<Vec<ServerRequest>> = targets.servers.iter().map(|_| Vec::new()).collect();
    for (number, choice) in targets.choices.iter().enumerate() {
        let weight = f64::from(choice.weight) / choice.options.len() as f64;
        for (server, request) in &choice.options {
            let before = requests[*server].last().map_or(0.0, |last| last.cumulative_weight);
            let cumulative_weight = before + weight;
            requests[*server].push(ServerRequest { choice: number, request: *request, cumulative_weight });
        }
    }
    requests
}

/// Index of the choice whose part of the weights contains `point`.
fn choice_at(choices: &[Choice], mut point: u64) -> usize {
    let within = |choice: &Choice| match point.checked_sub(u64::from(choice.weight)) {
        None => true,
        Some(rest) => {
            point = rest;
            false
        }
    };
    choices.iter().position(within).expect("the point lies below the sum of the weights")
}

/// Selects the choice that is furthest behind its share.
fn next_turn(choices: &[Choice], turns: &mut [Turn]) -> usize {
    let mut total = 0;
    for (turn, choice) in turns.iter_mut().zip(choices) {
        turn.credit += i64::from(choice.weight);
        total += i64::from(choice.weight);
    }
    let index = (0..turns.len()).max_by_key(|index| (turns[*index].credit, usize::MAX - index)).unwrap_or(0);
    turns[index].credit -= total;
    index
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{RequestTemplate, resolve};
    use std::collections::{BTreeMap, BTreeSet};

    fn targets(urls: &[&str], order: Order) -> Targets {
        let urls: Vec<String> = urls.iter().map(|url| (*url).to_owned()).collect();
        let template = RequestTemplate { connect_to: Some("127.0.0.1:9".into()), ..Default::default() };
        Targets { order, ..resolve(&urls, &template).unwrap() }
    }

    /// How often each request was selected, by host and path.
    fn counts(targets: &Targets, seed: u64, slots: usize) -> BTreeMap<String, usize> {
        let mut selector = Selector::new(targets, seed, (0, 1), &Assignment::new(targets, 1, 0, 1));
        let mut counts = BTreeMap::new();
        for _ in 0..slots {
            let Chosen { server, request, numbers, .. } = selector.choose();
            let request = &targets.servers[server].requests[request];
            let mut path = Vec::new();
            request.path.write(&numbers, &mut path);
            *counts.entry(request.authority.clone() + &String::from_utf8(path).unwrap()).or_insert(0) += 1;
        }
        counts
    }

    /// The selector of one of two threads, which have four connections.
    fn selector(targets: &Targets, seed: u64, thread: usize) -> Selector<'_> {
        Selector::new(targets, seed, (thread, 2), &Assignment::new(targets, 4, thread, 2))
    }

    #[test]
    fn server_per_connection_uses_own_servers_and_draws_paths() {
        let targets = targets(&["https://d{1..4}.example/get/{1..50}"], Order::Random);
        let targets = Targets { server_per: ServerPer::Connection, ..targets };
        let mut servers_seen = BTreeSet::new();
        for thread in 0..2 {
            let own: BTreeSet<usize> = Assignment::new(&targets, 4, thread, 2).servers.into_iter().collect();
            let (mut open, mut paths) = (selector(&targets, 1, thread), BTreeSet::new());
            let drawn: Vec<Chosen> = (0..2000).map(|_| open.choose()).collect();
            let drawn_servers: BTreeSet<usize> = drawn.iter().map(|chosen| chosen.server).collect();
            assert_eq!(drawn_servers, own, "no other server, and each of them");
            let mut closed = selector(&targets, 1, thread);
            for server in own.iter().cycle().take(2000) {
                let chosen = closed.choose_of(*server);
                assert_eq!(chosen.server, *server);
                paths.extend(chosen.numbers);
            }
            assert_eq!(paths, (1..=50).collect(), "every path is drawn sooner or later");
            servers_seen.extend(own);
        }
        assert_eq!(servers_seen.len(), 4);
    }

    #[test]
    fn round_robin_selects_every_combination_equally_often() {
        let targets = targets(&["https://shop-{1..3}.example/{1..4}/{0..1}"], Order::Turn);
        let counts = counts(&targets, 1, 3 * 4 * 2 * 5);
        assert_eq!(counts.len(), 24);
        assert!(counts.values().all(|count| *count == 5), "{counts:?}");
        assert!(counts.contains_key("shop-3.example/4/0"), "{counts:?}");
    }

    #[test]
    fn weights_are_exact_in_round_robin_and_approximate_at_random() {
        let urls = ["3=http://a/x", "1=http://a/y", "http://b/z"];
        let counted = counts(&targets(&urls, Order::Turn), 1, 500);
        assert_eq!((counted["a/x"], counted["a/y"], counted["b/z"]), (300, 100, 100));
        let counted = counts(&targets(&urls, Order::Random), 1, 50_000);
        for (name, share) in [("a/x", 0.6), ("a/y", 0.2), ("b/z", 0.2)] {
            // Five standard deviations of a binomial count.
            let expected: f64 = 50_000.0 * share;
            let deviation = (expected * (1.0 - share)).sqrt();
            assert!((counted[name] as f64 - expected).abs() < 5.0 * deviation, "{counted:?}");
        }
    }

    #[test]
    fn requests_depend_on_seed_and_thread() {
        let targets = targets(&["http://a/{1..1000000}"], Order::Random);
        let drawn = |seed, thread| {
            let mut selector = selector(&targets, seed, thread);
            (0..20).map(|_| selector.choose().numbers[0]).collect::<Vec<_>>()
        };
        assert_eq!(drawn(1, 0), drawn(1, 0));
        assert_ne!(drawn(1, 0), drawn(2, 0));
        assert_ne!(drawn(1, 0), drawn(1, 1));
    }

    #[test]
    fn threads_share_rounds() {
        let targets = targets(&["http://a/{1..6}"], Order::Turn);
        let drawn = |thread| {
            let mut selector = selector(&targets, 1, thread);
            (0..3).map(|_| selector.choose().numbers[0]).collect::<Vec<_>>()
        };
        assert_eq!((drawn(0), drawn(1)), (vec![1, 3, 5], vec![2, 4, 6]));
    }

    #[test]
    fn round_robin_threads_cover_all_servers_and_combinations() {
        let targets = targets(&["https://shop-{1..4}.example/{1..6}"], Order::Turn);
        let mut combinations = BTreeMap::new();
        for thread in 0..2 {
            let mut selector = selector(&targets, 1, thread);
            let drawn: Vec<_> = (0..12).map(|_| selector.choose()).collect();
            let first: BTreeSet<_> = drawn[..4].iter().map(|chosen| chosen.server).collect();
            assert_eq!(first.len(), 4, "thread {thread} has connections to all of them");
            for Chosen { server, numbers, .. } in drawn {
                *combinations.entry((server, numbers)).or_insert(0) += 1;
            }
        }
        assert_eq!(combinations.len(), 24);
    }
}

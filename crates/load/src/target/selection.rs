//! Selects the request for each slot of the schedule. Only the seed and the slot decide, never which
//! connection happens to be free, so that a slow server gets its share.

use super::data::Draws;
use super::{Assignment, Choice, Numbers, Order, Place, Recorded, ServerPer, Targets};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeSet, BinaryHeap};
use std::ops::Range;

/// Streams of the random generator from here on are for requests; lower ones are for arrivals.
const FIRST_STREAM: u64 = 1 << 32;

/// A selected request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Chosen {
    /// Index of its URL among those given, or of its kind.
    pub(crate) choice: usize,
    /// Index among the options of the choice.
    pub(crate) option: usize,
    /// Index of the server.
    pub(crate) server: usize,
    /// Index among the server's requests.
    pub(crate) request: usize,
    /// Its place in a session, if it belongs to one.
    pub(crate) step: Option<SessionStep>,
    /// The numbers for its placeholders.
    pub(crate) numbers: Vec<u64>,
    /// Data for it have ended: it cannot be sent.
    pub(crate) lacks_data: bool,
}

/// Place of a request in a session.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct SessionStep {
    /// Number of the session in its thread.
    pub(crate) session: u32,
    /// The request arrived with its session; the others follow from responses.
    pub(crate) is_first: bool,
}

/// Selects the requests of one thread.
pub(crate) struct Selector<'a> {
    targets: &'a Targets,
    way: Way<'a>,
    filling: Filling,
}

/// Fills placeholders.
struct Filling {
    /// Placeholders of each choice.
    places: Vec<Vec<Place>>,
    draws: Draws,
    /// Numbers of a request that was sent, for reuse.
    spare: Vec<u64>,
}

enum Way<'a> {
    /// There is only one request, and it has no numbers.
    Only,
    Random {
        random: Box<ChaCha8Rng>,
        /// Sum of the weights up to and including that of each choice.
        cumulative_weights: Vec<u64>,
    },
    Turn {
        turns: Turns,
        /// Selections of each choice by this thread.
        taken: Vec<u64>,
        thread: u64,
        threads: u64,
    },
    /// The turns of one thread of several in a recorded sequence.
    Recorded {
        sequence: &'a Recorded,
        next: usize,
        threads: usize,
        /// For ranges.
        random: Box<ChaCha8Rng>,
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

/// Weighted round robin. The turns of a choice are evenly spread over a round: those of a weight of 2 come at 1/4 and 3/4 of it.
struct Turns(BinaryHeap<Reverse<Turn>>);

/// The next turn of a choice.
#[derive(Clone, Copy, Eq, PartialEq)]
struct Turn {
    /// Twice its number, plus one: it comes when half of this, divided by the weight, rounds have passed.
    position: u64,
    weight: u32,
    choice: usize,
}

impl Ord for Turn {
    fn cmp(&self, other: &Self) -> Ordering {
        let parts = |turn: &Self, other: &Self| u128::from(turn.position) * u128::from(other.weight);
        parts(self, other).cmp(&parts(other, self)).then(self.choice.cmp(&other.choice))
    }
}

impl PartialOrd for Turn {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Turns {
    fn new(choices: &[Choice]) -> Self {
        let weights = choices.iter().map(|choice| choice.weight).enumerate();
        Self(weights.map(|(choice, weight)| Reverse(Turn { position: 1, weight, choice })).collect())
    }

    /// Selects the choice whose turn it is.
    fn next(&mut self) -> usize {
        let mut first = self.0.peek_mut().expect("there are choices");
        first.0.position += 2;
        first.0.choice
    }
}

impl Filling {
    fn new(targets: &Targets, seed: u64, number: (usize, usize)) -> Self {
        Self {
            places: targets.choices.iter().map(|choice| choice.places(targets).collect()).collect(),
            draws: Draws::new(&targets.sources, seed, number),
            spare: Vec::new(),
        }
    }

    /// A request with its placeholders filled. `of_range` returns the number for a range.
    fn fill(
        &mut self,
        choice: usize,
        (option, server, request): (usize, usize, usize),
        mut of_range: impl FnMut(&Numbers) -> u64,
    ) -> Chosen {
        let mut numbers = std::mem::take(&mut self.spare);
        numbers.clear();
        self.draws.begin();
        let mut lacks_data = false;
        for place in &self.places[choice] {
            let value = match place {
                Place::Range(range) => Some(of_range(range)),
                Place::Data(source) => self.draws.take(*source),
            };
            lacks_data |= value.is_none();
            numbers.push(value.unwrap_or_default());
        }
        Chosen { choice, option, server, request, step: None, numbers, lacks_data }
    }
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
            && targets.choices[0].places(targets).next().is_none()
            && targets.sessions.is_empty();
        let random = || {
            let mut random = Box::new(ChaCha8Rng::seed_from_u64(seed));
            random.set_stream(FIRST_STREAM + thread as u64);
            random
        };
        let way = match (&targets.recorded, targets.order) {
            (Some(sequence), _) => Way::Recorded { sequence, next: thread, threads, random: random() },
            _ if only => Way::Only,
            _ if targets.server_per == ServerPer::Connection => Way::Connection {
                random: random(),
                servers: connections.servers.clone(),
                requests: requests_by_server(targets),
            },
            (None, Order::Random) => {
                Way::Random { random: random(), cumulative_weights: cumulative(&targets.choices) }
            }
            (None, Order::Turn) => {
                let mut turns = Turns::new(&targets.choices);
                // Threads start at different positions of the round.
                (0..thread % targets.choices.len()).for_each(|_| _ = turns.next());
                let taken = vec![0; targets.choices.len()];
                Way::Turn { turns, taken, thread: thread as u64, threads: threads as u64 }
            }
        };
        Self { targets, way, filling: Filling::new(targets, seed, (thread, threads)) }
    }

    /// The next slots of the schedule are dropped.
    pub(crate) fn skip(&mut self, slots: u64) {
        if let Way::Recorded { next, threads, .. } = &mut self.way {
            *next += slots as usize * *threads;
        }
    }

    /// Takes back a request that was sent.
    pub(crate) fn reuse(&mut self, sent: Chosen) {
        self.filling.spare = sent.numbers;
    }

    /// Selects the request of the next slot.
    pub(crate) fn choose(&mut self) -> Chosen {
        let targets = self.targets;
        match &mut self.way {
            Way::Only => {
                let (server, request) = targets.choices[0].options[0];
                Chosen {
                    choice: 0,
                    option: 0,
                    server,
                    request,
                    step: None,
                    numbers: Vec::new(),
                    lacks_data: false,
                }
            }
            Way::Random { random, cumulative_weights } => {
                let total = cumulative_weights.last().copied().unwrap_or_default();
                let point = random.random_range(0..total);
                let index = cumulative_weights.partition_point(|end| *end <= point);
                let choice = &targets.choices[index];
                let option = random.random_range(0..choice.options.len());
                self.filling
                    .fill(index, choice.option(option), |range| random.random_range(range.first..=range.last))
            }
            Way::Turn { turns, taken, thread, threads } => {
                let index = turns.next();
                let choice = &targets.choices[index];
                let number = taken[index];
                taken[index] += 1;
                // Every thread covers every server; passes over all servers are dealt out to the threads in
                // turn.
                let options = choice.options.len() as u64;
                let option = ((number + *thread) % options) as usize;
                let mut rest = number / options * *threads + *thread;
                self.filling.fill(index, choice.option(option), |range| {
                    let number = range.first + rest % range.count();
                    rest /= range.count();
                    number
                })
            }
            Way::Recorded { sequence, next, threads, random } => {
                let (index, row) = sequence.at(*next);
                *next += *threads;
                let option = targets.choices[index].option(0);
                let of_range = |range: &Numbers| random.random_range(range.first..=range.last);
                let mut chosen = self.filling.fill(index, option, of_range);
                // A recorded path is the first placeholder.
                chosen.numbers[0] = row;
                chosen
            }
            Way::Connection { random, servers, .. } => {
                let server = servers[random.random_range(0..servers.len())];
                self.choose_of(server)
            }
        }
    }

    /// Sources of the data of these choices.
    pub(crate) fn sources(&self, choices: Range<usize>) -> Vec<usize> {
        let places = self.filling.places[choices].iter().flatten();
        let sources = places.filter_map(|place| match place {
            Place::Data(source) => Some(*source),
            Place::Range(_) => None,
        });
        sources.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The values of a session whose first request was chosen last, by source; `None` if one of these sources has ended. The others
    /// have none.
    pub(crate) fn session_values(&mut self, sources: &[usize]) -> Option<Vec<u64>> {
        let mut values = vec![0; self.targets.sources.len()];
        for source in sources {
            values[*source] = self.filling.draws.take(*source)?;
        }
        Some(values)
    }

    /// A later request of a session, with the values of the session.
    pub(crate) fn choose_step(&mut self, choice: usize, option: usize, values: &[u64]) -> Chosen {
        let mut numbers = std::mem::take(&mut self.filling.spare);
        numbers.clear();
        for place in &self.filling.places[choice] {
            numbers.push(match place {
                Place::Range(range) => self.filling.draws.number_in(range),
                Place::Data(source) => values[*source],
            });
        }
        let (option, server, request) = self.targets.choices[choice].option(option);
        Chosen { choice, option, server, request, step: None, numbers, lacks_data: false }
    }

    /// Selects the request of the next slot for `server`, which the connection has determined.
    pub(crate) fn choose_of(&mut self, server: usize) -> Chosen {
        let Way::Connection { random, requests, .. } = &mut self.way else { return self.choose() };
        let options = &requests[server];
        let total = options.last().map_or(0.0, |last| last.cumulative_weight);
        let point = random.random_range(0.0..total);
        let drawn = options.partition_point(|option| option.cumulative_weight <= point);
        let ServerRequest { choice, request, .. } = options[drawn.min(options.len() - 1)];
        let of_range = |range: &Numbers| random.random_range(range.first..=range.last);
        self.filling.fill(choice, (0, server, request), of_range)
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

/// Sum of the weights up to and including that of each choice.
fn cumulative(choices: &[Choice]) -> Vec<u64> {
    let mut sum = 0;
    let mut add = |choice: &Choice| {
        sum += u64::from(choice.weight);
        sum
    };
    choices.iter().map(&mut add).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{
        Body, Content, Kind, RequestKind, RequestTemplate, Source, Text, resolve, resolve_kinds,
    };
    use proptest::prelude::*;
    use std::collections::BTreeMap;

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
    fn value_of_a_source_is_the_same_throughout_a_request() {
        let of_data = |before: &str| {
            let mut text = Text::from(before.to_owned());
            text.push_data(0, Content::Number);
            text
        };
        let template = RequestTemplate { body: Body::of_text(of_data("id=")), ..RequestTemplate::default() };
        let kind = |name: &str| Kind { name: name.to_owned(), ..Kind::default() };
        let plain = RequestTemplate::default();
        let kinds = [
            RequestKind { weight: 1, path: of_data("/"), template, kind: kind("buy") },
            RequestKind { weight: 3, path: Text::from("/".to_owned()), template: plain, kind: kind("list") },
        ];
        let source = Source { first: 100, count: Some(4), order: Order::Turn, stops: true };
        let targets = resolve_kinds("http://127.0.0.1:9/", &kinds, vec![source]).unwrap();
        let targets = Targets { order: Order::Turn, ..targets };
        let mut selector = Selector::new(&targets, 1, (0, 1), &Assignment::new(&targets, 1, 0, 1));
        let mut bought = Vec::new();
        for _ in 0..24 {
            let chosen = selector.choose();
            if chosen.choice == 0 {
                bought.push((chosen.numbers.clone(), chosen.lacks_data));
            }
            selector.reuse(chosen);
        }
        let value = |number: u64| (vec![number; 2], false);
        let none = (vec![0; 2], true);
        assert_eq!(bought, [value(100), value(101), value(102), value(103), none.clone(), none]);
    }

    proptest! {
        #[test]
        fn each_choice_has_its_share_of_every_round(weights in prop::collection::vec(1_u32..40, 1..12)) {
            let choice = |weight: &u32| Choice { weight: *weight, options: Vec::new(), kind: None };
            let mut turns = Turns::new(&weights.iter().map(choice).collect::<Vec<_>>());
            let round: u32 = weights.iter().sum();
            for _ in 0..3 {
                let mut counts = vec![0; weights.len()];
                (0..round).for_each(|_| counts[turns.next()] += 1);
                prop_assert_eq!(&counts, &weights);
            }
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

//! Data of requests: sources of values by row or number, and the values that each request takes.

use super::{Numbers, Order};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};
use results::percent_encode_except;
use std::fmt;

/// Streams of the random generator from here on are for data; lower ones are for requests and arrivals.
const FIRST_STREAM: u64 = 1 << 33;

/// Numbers, or rows of a table, of which each request takes one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Source {
    /// First number; 0 for rows.
    pub first: u64,
    /// Number of values, at least 1. `None`: without end.
    pub count: Option<u64>,
    /// Order in which they are taken.
    pub order: Order,
    /// In turn, nothing follows the last one; otherwise the first one does.
    pub stops: bool,
}

/// The texts of a placeholder, one per row of its source.
#[derive(Clone, Default, Eq, PartialEq)]
pub struct Rows {
    bytes: Vec<u8>,
    /// End of each in `bytes`.
    ends: Vec<usize>,
}

impl Rows {
    /// In the order of the rows.
    pub fn new<'r>(rows: impl IntoIterator<Item = &'r str>) -> Self {
        let mut all = Self::default();
        rows.into_iter().for_each(|row| all.push(row.as_bytes()));
        all
    }

    fn push(&mut self, row: &[u8]) {
        self.bytes.extend_from_slice(row);
        self.ends.push(self.bytes.len());
    }

    /// The texts as a path or query can have them.
    #[must_use]
    pub fn in_path(&self) -> Self {
        let mut encoded = Self::default();
        for row in 0..self.ends.len() as u64 {
            encoded.push(path_text(self.get(row)).as_bytes());
        }
        encoded
    }

    /// The text of a row; empty beyond the last one.
    #[must_use]
    pub fn get(&self, row: u64) -> &[u8] {
        let row = usize::try_from(row).unwrap_or(usize::MAX);
        let end = self.ends.get(row).copied().unwrap_or(0);
        let start = row.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.bytes.get(start..end).unwrap_or_default()
    }
}

/// Text as a path or query can have it: bytes that no URL has are percent-encoded. Delimiters such as `/`, `?`, `&` and `%` stay.
pub(crate) fn path_text(text: &[u8]) -> String {
    percent_encode_except(text, |byte| byte.is_ascii_graphic() && !b"\"#<>\\^`{|}".contains(&byte))
}

/// Values may be secrets.
impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").field("count", &self.ends.len()).finish_non_exhaustive()
    }
}

/// Values that the requests of one thread take.
pub(super) struct Draws {
    of: Vec<Draw>,
    random: Box<ChaCha8Rng>,
    thread: u64,
    threads: u64,
    /// Number of the request that draws.
    request: u64,
}

struct Draw {
    source: Source,
    /// Number of the thread's requests that have taken a value.
    taken: u64,
    /// The last request that has taken one.
    request: u64,
    /// Value of that request; `None` after the end.
    value: Option<u64>,
}

impl Draws {
    /// The threads divide the values of a source in turn: together they take each of them once.
    pub(super) fn new(sources: &[Source], seed: u64, (thread, threads): (usize, usize)) -> Self {
        let mut random = Box::new(ChaCha8Rng::seed_from_u64(seed));
        random.set_stream(FIRST_STREAM + thread as u64);
        let of = sources.iter().map(|source| Draw { source: *source, taken: 0, request: 0, value: None });
        Self { of: of.collect(), random, thread: thread as u64, threads: threads as u64, request: 0 }
    }

    /// The next request draws.
    pub(super) fn begin(&mut self) {
        self.request += 1;
    }

    /// A number of a range, drawn at random.
    pub(super) fn number_in(&mut self, range: &Numbers) -> u64 {
        self.random.random_range(range.first..=range.last)
    }

    /// The request's value of a source, the same however often it is asked for; `None` if the source has ended.
    pub(super) fn take(&mut self, source: usize) -> Option<u64> {
        let Draw { source, taken, request, value } = &mut self.of[source];
        if *request != self.request {
            let turn = *taken * self.threads + self.thread;
            let index = match source.count {
                Some(count) if source.order == Order::Random => Some(self.random.random_range(0..count)),
                Some(count) if source.stops => Some(turn).filter(|turn| *turn < count),
                Some(count) => Some(turn % count),
                None => Some(turn),
            };
            (*request, *taken) = (self.request, *taken + 1);
            *value = index.map(|index| source.first.wrapping_add(index));
        }
        *value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const ROWS: Source = Source { first: 0, count: Some(5), order: Order::Turn, stops: false };

    fn taken(source: Source, seed: u64, thread: usize, requests: usize) -> Vec<Option<u64>> {
        let mut draws = Draws::new(&[source], seed, (thread, 2));
        let mut next = || {
            draws.begin();
            let value = draws.take(0);
            assert_eq!(draws.take(0), value, "a request has one value");
            value
        };
        (0..requests).map(|_| next()).collect()
    }

    #[test]
    fn threads_divide_values_and_begin_again_or_stop() {
        let values = |values: &[u64]| values.iter().copied().map(Some).collect::<Vec<_>>();
        assert_eq!(taken(ROWS, 1, 0, 4), values(&[0, 2, 4, 1]));
        assert_eq!(taken(ROWS, 1, 1, 4), values(&[1, 3, 0, 2]));
        let once = Source { stops: true, ..ROWS };
        assert_eq!(taken(once, 1, 0, 4), [Some(0), Some(2), Some(4), None]);
        assert_eq!(taken(once, 1, 1, 3), [Some(1), Some(3), None]);
    }

    #[test]
    fn unique_numbers_differ_between_threads() {
        let unique = Source { first: 1000, count: None, ..ROWS };
        let all: Vec<u64> =
            [0, 1].iter().flat_map(|thread| taken(unique, 1, *thread, 100)).flatten().collect();
        assert_eq!(all.iter().copied().collect::<BTreeSet<_>>(), (1000..1200).collect());
    }

    #[test]
    fn random_values_depend_on_seed_and_thread_and_cover_all() {
        let random = Source { first: 7, order: Order::Random, ..ROWS };
        let drawn = |seed, thread| taken(random, seed, thread, 200);
        assert_eq!(drawn(1, 0), drawn(1, 0));
        assert_ne!(drawn(1, 0), drawn(2, 0));
        assert_ne!(drawn(1, 0), drawn(1, 1));
        let all: BTreeSet<u64> = drawn(1, 0).into_iter().flatten().collect();
        assert_eq!(all, (7..12).collect());
    }

    #[test]
    fn rows_are_encoded_in_paths_as_far_as_they_must_be() {
        let rows = Rows::new(["", "a/b?c=d&e=%20", "é \r\n{#}"]);
        let text = |rows: &Rows, row| String::from_utf8(rows.get(row).to_vec()).unwrap();
        assert_eq!([0, 1, 2, 3].map(|row| text(&rows, row)), ["", "a/b?c=d&e=%20", "é \r\n{#}", ""]);
        let encoded = rows.in_path();
        assert_eq!(
            [0, 1, 2].map(|row| text(&encoded, row)),
            ["", "a/b?c=d&e=%20", "%C3%A9%20%0D%0A%7B%23%7D"]
        );
        assert!(!format!("{rows:?}").contains("a/b"));
    }
}

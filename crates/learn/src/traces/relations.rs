//! Pairs of calls in the requests of an endpoint: which overlap, and which begins first.
//!
//! Calls have positions in the order in which requests first made them. Only calls whose positions are near are compared, so that
//! work and memory grow with the number of calls and not with its square. All calls of an endpoint with at most [`NEAR`] are
//! compared. Of other pairs, mean times decide ([`super::merge`]).

use super::tally::Place;
use std::collections::BTreeMap;

/// Number of successive positions whose calls are all compared.
const NEAR: u32 = 64;
/// Maximum number of calls of an endpoint that have a place in its order.
pub(super) const MAX_ORDERED: usize = 1000;
/// Maximum number of pairs of all endpoints.
const MAX_PAIRS: usize = 1_000_000;

/// Two calls in the requests that made both.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Relation {
    pub(super) both: u64,
    pub(super) overlap: u64,
    pub(super) before: u64,
}

impl Relation {
    pub(super) fn merge(&mut self, other: Self) {
        self.both += other.both;
        self.overlap += other.overlap;
        self.before += other.before;
    }

    /// The same of the two calls in the other order.
    pub(super) fn reversed(self) -> Self {
        Self { before: self.both - self.before, ..self }
    }
}

/// A call in the order of its request. Times are nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timed {
    pub(super) place: Place,
    pub(super) start: i64,
    pub(super) end: i64,
}

/// Pairs of an endpoint's calls.
#[derive(Clone, Debug, Default)]
pub(super) struct Relations {
    positions: BTreeMap<Place, u32>,
    /// By position.
    places: Vec<Place>,
    /// By positions, the lower first.
    pairs: BTreeMap<(u32, u32), Relation>,
}

impl Relations {
    /// True if not all calls were compared.
    pub(super) fn are_partial(&self) -> bool {
        self.places.len() > NEAR as usize
    }

    /// All compared pairs.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (Place, Place, Relation)> {
        let place = |position: u32| self.places[position as usize];
        self.pairs.iter().map(move |((one, other), relation)| (place(*one), place(*other), *relation))
    }

    /// Adds the calls of a request, sorted by start. `number` is that of the pairs of all endpoints.
    pub(super) fn add(&mut self, calls: &[Timed], number: &mut usize) {
        let mut placed: Vec<(u32, &Timed)> =
            calls.iter().filter_map(|call| Some((self.position(call.place)?, call))).collect();
        placed.sort_unstable_by_key(|(position, _)| *position);
        for (index, (one, first)) in placed.iter().enumerate() {
            let near = placed[index + 1..].iter().take_while(|(other, _)| other - one < NEAR);
            for (other, second) in near {
                if *number >= MAX_PAIRS && !self.pairs.contains_key(&(*one, *other)) {
                    continue;
                }
                let relation = self.pairs.entry((*one, *other)).or_insert_with(|| {
                    *number += 1;
                    Relation::default()
                });
                // Of calls that begin at the same time, the order is that of their places.
                let is_before =
                    first.start < second.start || first.start == second.start && first.place > second.place;
                relation.both += 1;
                relation.overlap += u64::from(first.start < second.end && second.start < first.end);
                relation.before += u64::from(is_before);
            }
        }
    }

    /// Position of a call; absent for those beyond the maximum.
    fn position(&mut self, place: Place) -> Option<u32> {
        if let Some(position) = self.positions.get(&place) {
            return Some(*position);
        }
        let position = self.places.len();
        (position < MAX_ORDERED).then(|| {
            self.places.push(place);
            self.positions.insert(place, position as u32);
            position as u32
        })
    }
}

/// True for each of the calls, sorted by start, that overlaps another one.
pub(super) fn overlapping(calls: &[Timed]) -> impl Iterator<Item = bool> {
    let mut until = i64::MIN;
    calls.iter().enumerate().map(move |(index, call)| {
        let with_earlier = call.start < until;
        until = until.max(call.end);
        with_earlier || calls.get(index + 1).is_some_and(|next| next.start < call.end)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parties::{Callee, UNKNOWN};

    fn calls(count: usize, length: i64) -> Vec<Timed> {
        let place = |number: usize| ((Callee::Host(UNKNOWN), UNKNOWN), number as u8);
        let call = |number: usize| {
            let start = number as i64 * 10;
            Timed { place: place(number), start, end: start + length }
        };
        (0..count).map(call).collect()
    }

    #[test]
    fn few_calls_are_all_compared() {
        let (mut relations, mut number) = (Relations::default(), 0);
        relations.add(&calls(64, 15), &mut number);
        assert!(!relations.are_partial());
        assert_eq!((number, relations.pairs().count()), (64 * 63 / 2, 64 * 63 / 2));
        let overlaps = relations.pairs().filter(|(.., relation)| relation.overlap == 1);
        assert!(overlaps.map(|(one, other, _)| other.1 - one.1).eq([1; 63]));
        relations.add(&calls(66, 15), &mut number);
        assert!(relations.are_partial());
        assert_eq!(number, 66 * 65 / 2 - 3, "the first and the last two are not near");
    }

    #[test]
    fn call_overlaps_one_before_or_after_it() {
        let shown = |times: &[(i64, i64)]| {
            let calls = calls(times.len(), 0);
            let calls: Vec<Timed> = calls
                .iter()
                .zip(times)
                .map(|(call, (start, end))| Timed { start: *start, end: *end, ..*call })
                .collect();
            overlapping(&calls).collect::<Vec<_>>()
        };
        assert_eq!(shown(&[(0, 10), (10, 20), (20, 30)]), [false; 3]);
        assert_eq!(shown(&[(0, 10), (5, 6), (7, 8), (10, 20)]), [true, true, true, false]);
    }
}

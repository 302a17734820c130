//! When connections that could not be opened are tried again.
//!
//! They take turns. Turns are dense, so that some connection meets the end of an outage soon, and they don't become denser with the
//! number of connections. The first one that is answered lets all others go at once.

use crate::clock::Nanos;
use crate::target::Address;
use std::collections::HashMap;

/// Pause before a connection is retried. It does not grow: the end of an outage would be seen later by as much, and the load's
/// own pauses would be in its response times.
pub(super) const RETRY_PAUSE: Nanos = 10_000_000;
/// Turns of a thread in that time; more connections than that wait longer.
const TURNS_PER_PAUSE: Nanos = 64;

/// The turns of a thread's connections.
#[derive(Default)]
pub(super) struct Retries {
    last_turn: Nanos,
    /// When the waits for an address were last ended.
    ended: HashMap<Address, Nanos>,
}

impl Retries {
    /// The turn of a connection that has failed now.
    pub(super) fn next_turn(&mut self, now: Nanos) -> Nanos {
        self.last_turn = (self.last_turn + RETRY_PAUSE / TURNS_PER_PAUSE).max(now + RETRY_PAUSE);
        self.last_turn
    }

    /// An address answers that could not be reached. Returns true if the waits for it are to be ended: every one of ten thousand
    /// connections that had failed says so, and going over all of them once per pause is enough.
    pub(super) fn is_back(&mut self, address: &Address, now: Nanos) -> bool {
        let ended = self.ended.get(address).copied();
        let is_news = ended.is_none_or(|ended| now >= ended + RETRY_PAUSE);
        if is_news {
            self.ended.insert(address.clone(), now);
        }
        is_news
    }

    /// The connections that still wait have turns until this time.
    pub(super) fn taken_until(&mut self, last_turn: Nanos) {
        self.last_turn = last_turn;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    const MS: Nanos = 1_000_000;

    #[test]
    fn turns_are_dense_and_bounded_for_any_number_of_connections() {
        for connections in [1, 2, 64, 65, 1000] {
            let mut retries = Retries::default();
            // All are cut at once, and fail whenever they are tried.
            let mut turns: BinaryHeap<Reverse<Nanos>> =
                (0..connections).map(|_| Reverse(retries.next_turn(5 * MS))).collect();
            let mut tried = Vec::new();
            while let Some(Reverse(turn)) = turns.pop().filter(|Reverse(turn)| *turn < 2000 * MS) {
                tried.push(turn);
                turns.push(Reverse(retries.next_turn(turn)));
            }
            let longest = tried.windows(2).map(|pair| pair[1] - pair[0]).max();
            assert!(tried[0] <= 15 * MS && longest <= Some(RETRY_PAUSE), "{connections}: {longest:?}");
            let is_bounded = tried.windows(65).all(|turns| turns[64] - turns[0] >= RETRY_PAUSE);
            assert!(is_bounded, "{connections}");
        }
    }

    #[test]
    fn turns_begin_anew_when_no_connection_waits() {
        let mut retries = Retries::default();
        (0..1000).for_each(|_| _ = retries.next_turn(0));
        assert!(retries.next_turn(20 * MS) > 150 * MS);
        retries.taken_until(20 * MS);
        assert_eq!(retries.next_turn(20 * MS), 30 * MS);
    }

    #[test]
    fn waits_for_an_address_are_ended_once_per_pause() {
        let mut retries = Retries::default();
        let [first, second] = [1, 2].map(|port| Address::Ip(([127, 0, 0, 1], port).into()));
        let is_back = |(address, at)| retries.is_back(address, at);
        let said =
            [(&first, 5), (&first, 6), (&second, 6), (&first, 4 + RETRY_PAUSE), (&first, 5 + RETRY_PAUSE)];
        assert_eq!(said.map(is_back), [true, false, true, false, true]);
    }
}

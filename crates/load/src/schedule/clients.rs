//! Numbers of clients over time in a closed loop.

use crate::clock::{Nanos, nanos};
use std::ops::Range;
use std::time::Duration;

/// A stage of a closed loop: a constant number of clients, or a number that grows or falls evenly.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ClientStage {
    /// Clients at its start.
    pub from: usize,
    /// Clients at its end.
    pub to: usize,
    /// Its length.
    pub duration: Duration,
}

impl ClientStage {
    /// Highest number of clients in these stages.
    #[must_use]
    pub fn most(stages: &[Self]) -> usize {
        stages.iter().map(|stage| stage.from.max(stage.to)).max().unwrap_or_default()
    }

    /// Time in the stage at which the number passes between `client` and one more; `None` if it does not.
    fn crossing(&self, client: usize) -> Option<Nanos> {
        let (low, high) = (self.from.min(self.to), self.from.max(self.to));
        let fraction = (client as f64 + 0.5 - self.from as f64) / (self.to as f64 - self.from as f64);
        (low..high).contains(&client).then(|| (nanos(self.duration) as f64 * fraction) as Nanos)
    }
}

/// Times in which a client is there, by its number from 0, in a run that begins with a warm-up with the first number of clients. The
/// last one ends with the last stage.
pub(super) fn presence(stages: &[ClientStage], warmup: Duration, client: usize) -> Vec<Range<Nanos>> {
    let mut times = Vec::new();
    let mut since = stages.first().filter(|first| first.from > client).map(|_| 0);
    let mut at = nanos(warmup);
    for stage in stages {
        let change =
            |is_there: bool, at: Nanos, since: &mut Option<Nanos>, times: &mut Vec<Range<Nanos>>| match (
                since.take(),
                is_there,
            ) {
                (None, true) => *since = Some(at),
                (Some(start), false) => times.push(start..at),
                (unchanged, _) => *since = unchanged,
            };
        change(stage.from > client, at, &mut since, &mut times);
        if let Some(crossing) = stage.crossing(client) {
            change(stage.to > client, at + crossing, &mut since, &mut times);
        }
        at += nanos(stage.duration);
    }
    times.extend(since.map(|start| start..at));
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = 1_000_000_000;

    fn stage(from: usize, to: usize, seconds: u64) -> ClientStage {
        ClientStage { from, to, duration: Duration::from_secs(seconds) }
    }

    #[test]
    fn clients_come_and_go_at_even_times() {
        let up_and_down = [stage(1, 5, 4), stage(5, 5, 2), stage(5, 1, 8), stage(3, 3, 1)];
        let of = |client| {
            let times = presence(&up_and_down, Duration::from_secs(10), client).into_iter();
            times.map(|time| (time.start, time.end)).collect::<Vec<_>>()
        };
        let half = SECOND / 2;
        assert_eq!(of(0), [(0, 25 * SECOND)]);
        assert_eq!(of(1), [(10 * SECOND + half, 23 * SECOND), (24 * SECOND, 25 * SECOND)]);
        assert_eq!(of(4), [(13 * SECOND + half, 17 * SECOND)]);
        assert_eq!(of(5), []);
        assert_eq!(ClientStage::most(&up_and_down), 5);
    }

    #[test]
    fn number_of_clients_is_the_nearest_to_the_line() {
        let stages = [stage(10, 210, 50), stage(210, 0, 21)];
        let all: Vec<Vec<Range<Nanos>>> =
            (0..210).map(|client| presence(&stages, Duration::ZERO, client)).collect();
        for (at_s, expected) in
            [(0.01, 10), (12.51, 60), (49.99, 210), (50.01, 210), (60.51, 105), (70.99, 0)]
        {
            let at = (at_s * SECOND as f64) as Nanos;
            let there = all.iter().flatten().filter(|time| time.contains(&at)).count();
            assert!(usize::abs_diff(there, expected) <= 1, "{there} at {at_s} s");
        }
    }
}

//! Change points of a series: E-divisive on ranks (D. S. Matteson and N. A. James, J. Am. Stat. Assoc. 109 (2014), 334-345).
//!
//! A series is split where the energy distance between both sides is greatest, if it is greater than among 99 of 100 random orders
//! of the same values (permutation test), and both parts are searched again. Ranks in place of values bound the weight of an outlier,
//! and make the distribution of the statistic the same for all series of a length, so that one table of random orders serves all
//! figures. Random orders are drawn from a fixed seed: the same history always has the same changes.

use super::tables::Bounds;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};

/// Fewest runs on each side of a change: fewer do not show how far runs differ.
const MIN_SEGMENT: usize = 4;
const SEED: u64 = 1;

/// Greatest energy of random orders, divided by their length.
static BOUNDS: Bounds = Bounds::new(SEED, |length, random| {
    let mut order: Vec<usize> = (0..length).collect();
    order.shuffle(random);
    greatest(&order).1 / length as f64
});

/// Positions of the first values after each change, ascending.
pub(super) fn change_points(values: &[f64]) -> Vec<usize> {
    let mut changes = Vec::new();
    let mut parts = vec![(0, values.len())];
    while let Some((from, to)) = parts.pop() {
        let Some(at) = split(&values[from..to]) else { continue };
        changes.push(from + at);
        parts.push((from, from + at));
        parts.push((from + at, to));
    }
    changes.sort_unstable();
    changes
}

/// Position of the greatest change, if there is one.
fn split(values: &[f64]) -> Option<usize> {
    if values.len() < 2 * MIN_SEGMENT {
        return None;
    }
    let (at, energy) = greatest(&ranks(values));
    (energy / values.len() as f64 > BOUNDS.of(values.len())).then_some(at)
}

/// Rank of each value, from 0. Equal values are ranked in a random order, as if they differed by a little.
fn ranks(values: &[f64]) -> Vec<usize> {
    let mut random = StdRng::seed_from_u64(SEED);
    let mut order: Vec<(f64, u64, usize)> =
        values.iter().enumerate().map(|(position, value)| (*value, random.random(), position)).collect();
    order.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    let mut ranks = vec![0; values.len()];
    for (rank, (.., position)) in order.into_iter().enumerate() {
        ranks[position] = rank;
    }
    ranks
}

/// Position and size of the greatest energy distance between the values before it and the others.
fn greatest(ranks: &[usize]) -> (usize, f64) {
    let length = ranks.len();
    let before = distances_within(ranks.iter().copied(), length);
    let mut after = distances_within(ranks.iter().rev().copied(), length);
    after.reverse();
    let all = before[length - 1];
    let energy = |at: usize| {
        let (left, right) = (at as f64, (length - at) as f64);
        // Sums over pairs within each side; the rest of all pairs is between the sides.
        let (within_left, within_right) = (before[at - 1], after[at]);
        let between = all - within_left - within_right;
        left * right / (left + right)
            * (2.0 * between / (left * right)
                - 2.0 * within_left / (left * (left - 1.0))
                - 2.0 * within_right / (right * (right - 1.0)))
    };
    let places = MIN_SEGMENT..=length - MIN_SEGMENT;
    let best = places.map(|at| (at, energy(at))).max_by(|one, other| one.1.total_cmp(&other.1));
    best.unwrap_or((0, f64::NEG_INFINITY))
}

/// Sum of the distances between all pairs of the first ranks, for each number of them.
fn distances_within(ranks: impl Iterator<Item = usize>, length: usize) -> Vec<f64> {
    let mut sums = Prefixes::new(length);
    let (mut count, mut total, mut distance) = (0.0, 0.0, 0.0);
    ranks
        .map(|rank| {
            let value = rank as f64;
            let (below, sum_below) = sums.up_to(rank);
            distance += value * below - sum_below + (total - sum_below) - value * (count - below);
            sums.add(rank);
            count += 1.0;
            total += value;
            distance
        })
        .collect()
}

/// Number and sum of the ranks so far below any rank (P. M. Fenwick, Softw. Pract. Exp. 24 (1994), 327-336).
struct Prefixes {
    tree: Vec<(f64, f64)>,
}

impl Prefixes {
    fn new(length: usize) -> Self {
        Self { tree: vec![(0.0, 0.0); length + 1] }
    }

    fn add(&mut self, rank: usize) {
        let mut node = rank + 1;
        while node < self.tree.len() {
            self.tree[node].0 += 1.0;
            self.tree[node].1 += rank as f64;
            node += node & node.wrapping_neg();
        }
    }

    /// Number and sum of the ranks below this one.
    fn up_to(&self, rank: usize) -> (f64, f64) {
        let (mut node, mut count, mut sum) = (rank, 0.0, 0.0);
        while node > 0 {
            count += self.tree[node].0;
            sum += self.tree[node].1;
            node -= node & node.wrapping_neg();
        }
        (count, sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use noise::normal::normal;

    fn noise(seed: u64, length: usize, mean: impl Fn(usize) -> f64) -> Vec<f64> {
        let mut random = StdRng::seed_from_u64(seed);
        (0..length).map(|position| mean(position) + normal(&mut random)).collect()
    }

    #[test]
    fn energies_are_those_of_all_pairs() {
        let ranks = [3_usize, 0, 7, 1, 9, 4, 8, 2, 6, 5];
        let distance = |one: &[usize], other: &[usize]| -> f64 {
            let pairs = one.iter().flat_map(|a| other.iter().map(move |b| a.abs_diff(*b) as f64));
            pairs.sum::<f64>()
        };
        let energy = |at: usize| {
            let (left, right) = ranks.split_at(at);
            let (n, m) = (left.len() as f64, right.len() as f64);
            n * m / (n + m)
                * (2.0 * distance(left, right) / (n * m)
                    - distance(left, left) / (n * (n - 1.0))
                    - distance(right, right) / (m * (m - 1.0)))
        };
        let expected =
            (4..=6).map(|at| (at, energy(at))).max_by(|one, other| one.1.total_cmp(&other.1)).unwrap();
        let found = greatest(&ranks);
        assert_eq!(found.0, expected.0);
        assert!((found.1 - expected.1).abs() < 1e-9, "{found:?} {expected:?}");
    }

    #[test]
    fn steps_are_found_at_their_place_and_noise_has_none() {
        let found = change_points(&noise(3, 60, |at| {
            if at < 20 {
                0.0
            } else if at < 45 {
                5.0
            } else {
                2.0
            }
        }));
        assert_eq!(found, [20, 45]);
        let false_alarms =
            (0..100).filter(|seed| !change_points(&noise(*seed, 30, |_| 0.0)).is_empty()).count();
        assert!(false_alarms <= 4, "{false_alarms}");
        let step = |at: usize| if at < 12 { 0.0 } else { 3.0 };
        let found = (0..100).filter(|seed| !change_points(&noise(*seed, 24, step)).is_empty()).count();
        assert!(found >= 95, "{found}");
    }

    #[test]
    fn equal_and_few_values_have_no_change() {
        assert!(change_points(&[1.0; 50]).is_empty());
        assert!(change_points(&[]).is_empty());
        assert!(change_points(&[1.0, 1.0, 1.0, 9.0, 9.0, 9.0, 9.0]).is_empty(), "a side has three values");
        assert_eq!(change_points(&[[1.0; 10], [2.0; 10]].concat()), [10]);
    }
}

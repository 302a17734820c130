//! Precision answers "How exactly will a run with these settings know a difference?" before it starts.

use crate::figure_table::FigureTable;
use noise::normal::normal;
use noise::{Place, Values};
use rand::SeedableRng as _;
use rand::rngs::StdRng;

/// Simulated runs of up to three cells, and of many cells. Their median half-width varies by 5 to 10 percent with the seed, with
/// many cells by as much: these share their noise, so that each run says more (and takes longer).
const RUNS: usize = 51;
const RUNS_OF_MANY: usize = 15;
/// Standard deviation of a trial's value, as a fraction: small enough for half-widths to be proportional to it.
const DEVIATION: f64 = 0.02;

/// Half-width of the interval of a difference between two cells, in standard deviations of a trial: the median of
/// simulated runs with this many modes, conditions (combinations of factors and load) and repeats. With one cell,
/// that of its mean. `None` with one repeat, which has no interval.
#[must_use]
pub fn half_width_in_deviations(modes: usize, conditions: usize, repeats: usize) -> Option<f64> {
    let runs = (3 * RUNS / (modes * conditions).max(3)).max(RUNS_OF_MANY);
    let mut random = StdRng::seed_from_u64(1);
    let mut halves: Vec<f64> =
        (0..runs).filter_map(|_| half_width(modes, conditions, repeats, &mut random)).collect();
    halves.sort_by(f64::total_cmp);
    halves.get(halves.len() / 2).map(|half| half / DEVIATION)
}

fn half_width(modes: usize, conditions: usize, repeats: usize, random: &mut StdRng) -> Option<f64> {
    let places =
        (0..modes).flat_map(|mode| (0..conditions).map(move |conditions| Place { mode, conditions }));
    let mut values =
        || -> Values { (0..repeats).map(|repeat| (repeat, 1.0 + DEVIATION * normal(random))).collect() };
    let table = FigureTable::new(places.map(|place| (place, values())).collect());
    // The first cell against that of the next mode, or of the next conditions.
    let other = if modes > 1 { conditions } else { 1 };
    let estimate = match modes * conditions {
        0 => return None,
        1 => table.mean(0, 0.0)?,
        _ => table.difference(0, other, 0.0)?.estimate,
    };
    Some((estimate.high? - estimate.low?) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_cells_use_students_t_of_their_pairs() {
        // Two repeats have one degree of freedom: t is 12.71, and the median of |N(0, 1)| 0.674.
        let half = half_width_in_deviations(2, 1, 2).unwrap();
        assert!((6.0..15.0).contains(&half), "{half}");
        // t of 9 degrees is 2.26, times the allowance, of a difference of means of ten: √(2/10).
        let half = half_width_in_deviations(2, 1, 10).unwrap();
        assert!((0.9..1.3).contains(&half), "{half}");
    }

    #[test]
    fn repeats_and_cells_that_share_noise_make_it_narrower() {
        let by_repeats = [2, 3, 5, 10].map(|repeats| half_width_in_deviations(3, 2, repeats).unwrap());
        assert!(by_repeats.is_sorted_by(|one, other| one > other), "{by_repeats:?}");
        let [alone, among_others] =
            [1, 8].map(|conditions| half_width_in_deviations(2, conditions, 2).unwrap());
        assert!(among_others < alone / 2.0, "{among_others} and {alone}");
    }

    #[test]
    fn one_repeat_has_no_interval() {
        assert_eq!(half_width_in_deviations(2, 1, 1), None);
        assert!(half_width_in_deviations(1, 1, 3).is_some());
        assert_eq!(half_width_in_deviations(0, 0, 3), None);
    }
}

//! Which differences of a run are significant, given everything that the run tests.
//!
//! A run compares many pairs of modes under many loads at several figures. A single 95 % confidence interval
//! is wrong once in twenty. Taken together, they would "show" something in every third run without any
//! effect. The error budget of a run, 5 %, is shared among the figures; within a figure Hochberg's step-up procedure
//! (Y. Hochberg, 1988) decides. A figure of which everything is shown leaves its share to the others, as in Holm's
//! procedure (S. Holm, 1979): docs/decisions/0017-families.md.

/// Familywise error rate: the chance of any false statement in a run.
const LEVEL: f64 = 0.05;

/// The differences of one figure that a run tests, and the figure's share of the error budget.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub share: f64,
    pub p_values: Vec<f64>,
}

/// Outcome of a group.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outcome {
    /// True for each test whose difference is shown.
    pub shown: Vec<bool>,
    /// Level of the tests whose difference is not shown: their intervals of one less this level hold together, and include
    /// zero (as in K. Strassburger and F. Bretz, 2008, for Holm's procedure).
    pub level: f64,
}

/// Outcome of each group.
pub(crate) fn decide(groups: &[Group]) -> Vec<Outcome> {
    let nothing = |group: &Group| Outcome { shown: vec![false; group.p_values.len()], level: LEVEL };
    let mut outcomes: Vec<Outcome> = groups.iter().map(nothing).collect();
    let mut open: Vec<usize> =
        (0..groups.len()).filter(|group| !groups[*group].p_values.is_empty()).collect();
    loop {
        let shares: f64 = open.iter().map(|group| groups[*group].share).sum();
        for group in &open {
            let level = LEVEL * groups[*group].share / shares;
            let shown = step_up(&groups[*group].p_values, level);
            let rest = shown.iter().filter(|shown| !**shown).count().max(1);
            outcomes[*group] = Outcome { shown, level: level / rest as f64 };
        }
        let before = open.len();
        open.retain(|group| outcomes[*group].shown.contains(&false));
        if open.len() == before {
            return outcomes;
        }
    }
}

/// Hochberg's procedure: the greatest k of which the k smallest p-values are all at most the level, divided by the
/// number of tests that are left with the k-th.
fn step_up(p_values: &[f64], level: f64) -> Vec<bool> {
    let mut ascending = p_values.to_vec();
    ascending.sort_by(f64::total_cmp);
    let count = ascending.len();
    let is_small = |index: &usize| ascending[*index] <= level / (count - *index) as f64;
    let greatest = (0..count).rev().find(is_small).map(|index| ascending[index]);
    p_values.iter().map(|p_value| greatest.is_some_and(|greatest| *p_value <= greatest)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(groups: &[Group]) -> Vec<Vec<bool>> {
        decide(groups).into_iter().map(|outcome| outcome.shown).collect()
    }

    #[test]
    fn tests_that_are_not_shown_miss_the_level_of_their_intervals() {
        for p_values in [&[0.06, 0.04][..], &[0.02, 0.01, 0.9], &[0.001, 0.03, 0.04, 0.2], &[0.051]] {
            let outcome = decide(&[Group { share: 1.0, p_values: p_values.to_vec() }]).remove(0);
            let rest = p_values.iter().zip(&outcome.shown).filter(|(_, shown)| !**shown);
            for (p_value, _) in rest {
                assert!(*p_value > outcome.level, "{p_value} of {p_values:?}: {outcome:?}");
            }
        }
    }

    fn alone(p_values: &[f64]) -> Vec<bool> {
        shown(&[Group { share: 2.0, p_values: p_values.to_vec() }]).remove(0)
    }

    #[test]
    fn each_shown_test_leaves_more_error_budget_to_the_rest() {
        assert_eq!(alone(&[0.04]), [true]);
        assert_eq!(alone(&[0.06, 0.04]), [false, false]);
        assert_eq!(alone(&[0.06, 0.02]), [false, true]);
        assert_eq!(alone(&[0.02, 0.01, 0.9]), [true, true, false]);
        assert_eq!(alone(&[0.06, 0.026, 0.027]), [false, false, false]);
        assert_eq!(alone(&[]), Vec::<bool>::new());
    }

    #[test]
    fn tests_that_all_hold_the_level_are_all_shown() {
        assert_eq!(alone(&[0.04, 0.05, 0.03]), [true, true, true]);
        assert_eq!(alone(&[0.04, 0.051, 0.03]), [false, false, false]);
    }

    #[test]
    fn share_is_spent_by_its_figure_and_passed_on_once_all_of_it_is_shown() {
        let shown = |one: &[f64], other: &[f64]| {
            let group = |share, p_values: &[f64]| Group { share, p_values: p_values.to_vec() };
            shown(&[group(3.0, one), group(1.0, other), group(2.0, &[])])
        };
        assert_eq!(shown(&[0.03], &[0.03]), [vec![true], vec![true], vec![]]);
        assert_eq!(shown(&[0.9], &[0.03]), [vec![false], vec![false], vec![]]);
        assert_eq!(shown(&[0.9], &[0.01]), [vec![false], vec![true], vec![]]);
        assert_eq!(shown(&[0.001, 0.9], &[0.03]), [vec![true, false], vec![false], vec![]]);
    }
}

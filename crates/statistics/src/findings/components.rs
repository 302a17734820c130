//! Comparison of mesh versions and programs: the headline of a run that compares them.

use super::headline::compared;
use super::run::{Run, distance_from_reference, nearest};
use super::word_factors::{headline_change, of_change, reported};
use results::finding::{Headline, ValuesHeadline};
use results::{FactorDifference, Finding, FindingVerdict, is_of_components};

/// Maximum number of differences in the headline.
const MAX_STATED: usize = 3;

/// Headline for the first factor that is a version or a program: its shown differences, the largest first,
/// one per figure. If none is shown, the difference nearest to the reference load. If the experiment chooses a figure, differences
/// in this figure alone. `of` is the number of differences between the two values.
pub(super) fn headline(run: &Run<'_>) -> Vec<Finding> {
    let all = &run.summary.factor_differences;
    let Some(first) = all.iter().find(|difference| is_of_components(&difference.factor)) else {
        return Vec::new();
    };
    let of_factor: Vec<&FactorDifference> =
        all.iter().filter(|difference| difference.factor == first.factor).collect();
    let Some(to) = value_that_differs_most(&of_factor) else { return Vec::new() };
    let between: Vec<&FactorDifference> =
        of_factor.into_iter().filter(|difference| difference.to == to.to).collect();
    let stated_change = |difference: &FactorDifference| match run.experiment.headline {
        None => reported(difference),
        chosen if difference.figure != compared(chosen, &difference.load) => None,
        Some(_) => headline_change(difference.figure, difference.estimate, difference.relative),
    };
    let mut shown: Vec<&FactorDifference> = between.iter().copied().filter(is_shown).collect();
    shown.sort_by(|one, other| size(other).total_cmp(&size(one)));
    let mut stated: Vec<&FactorDifference> = Vec::new();
    for difference in shown.iter().copied().filter(|difference| stated_change(difference).is_some()) {
        let is_stated = |known: &&FactorDifference| known.figure == difference.figure;
        if stated.len() < MAX_STATED && !stated.iter().any(is_stated) {
            stated.push(difference);
        }
    }
    if stated.is_empty() {
        let others = between.iter().copied().filter(|difference| stated_change(difference).is_some());
        stated.extend(nearest(others, |difference| distance_from_reference(&difference.load)));
    }
    let headline = |difference: &FactorDifference| {
        let (figure, change) = stated_change(difference)?;
        let mut difference = of_change(difference, figure, &change);
        difference.n = shown.len();
        Some(Finding::Headline(Headline::Values(ValuesHeadline { difference, of: between.len() })))
    };
    stated.into_iter().filter_map(headline).collect()
}

fn is_shown(difference: &&FactorDifference) -> bool {
    difference.verdict == FindingVerdict::Shown
}

/// Size of the relative change, in either direction.
fn size(difference: &FactorDifference) -> f64 {
    difference.relative.map_or(0.0, |relative| (1.0 + relative.estimate).max(f64::MIN_POSITIVE).ln().abs())
}

/// The value with the most shown differences; the first of several equal ones.
fn value_that_differs_most<'a>(of_factor: &[&'a FactorDifference]) -> Option<&'a FactorDifference> {
    let shown = |value: &FactorDifference| {
        of_factor.iter().filter(|other| other.to == value.to && is_shown(other)).count()
    };
    of_factor.iter().copied().reduce(|most, one| if shown(one) > shown(most) { one } else { most })
}

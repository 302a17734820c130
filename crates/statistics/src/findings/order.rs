//! Order of the modes: in an open loop and of streams by the median, in a closed loop by throughput.
//!
//! The order follows the estimates. A claim about two modes rests on the interval of their difference: each
//! mode is compared with the nearest better one from which it differs, and the modes between are named.

use super::run::{Run, most_measured};
use results::finding::{Measured, OfCell, Standing, Step};
use results::{Cell, Conditions, Estimate, Figure, Finding, FindingVerdict, Metric, Mode, ModeComparison};
use std::collections::HashSet;

/// A mode's cell, the better mode, and their difference if there is one.
type Pair<'a> = (&'a Cell, Mode, Option<Judged>);

/// A difference, and whether it is shown.
pub(super) type Judged = (Estimate, FindingVerdict);

/// The order of the modes that lead to one server, with the evidence for it.
pub(super) fn order(run: &Run<'_>) -> Vec<Finding> {
    let floors = [Mode::None, Mode::EgressBypass].into_iter();
    floors.flat_map(|floor| of_floor(run, floor)).map(Finding::Order).collect()
}

fn of_floor(run: &Run<'_>, floor: Mode) -> Vec<Standing> {
    let measured = |at: &Conditions<'_>| ranked(run, floor, *at).len();
    let reference = most_measured(all_conditions(run, floor), measured, |at| at.load);
    let Some(at) = reference else { return Vec::new() };
    let ranked = ranked(run, floor, at);
    let steps: Vec<Vec<Pair<'_>>> = (1..ranked.len()).map(|index| step(run, at, &ranked, index)).collect();
    let shown: Vec<(Mode, Mode)> = steps
        .iter()
        .flatten()
        .filter(|(.., by)| by.is_some_and(|by| is_worse(at, &by)))
        .map(|(cell, than, _)| (cell.mode, *than))
        .collect();
    // Fewer than two steps do not make an order: other findings already cover them.
    if shown.len() < 2 {
        return Vec::new();
    }
    let mut standings = vec![Standing::Alone(alone(at, ranked[0]))];
    for (cell, pairs) in ranked[1..].iter().zip(steps) {
        if pairs.is_empty() {
            standings.push(Standing::Alone(alone(at, cell)));
        }
        standings.extend(pairs.into_iter().map(|pair| against(at, pair)));
    }
    let others = all_conditions(run, floor).into_iter().filter(|other| *other != at);
    for other in others {
        let measured = self::ranked(run, floor, other);
        if measured.is_empty() {
            continue;
        }
        standings.extend(shown.iter().map(
            |(mode, than)| match measured.iter().find(|cell| cell.mode == *mode) {
                Some(cell) => against(other, (cell, *than, difference(run, other, *mode, *than))),
                None => Standing::Against(Step {
                    place: other.cell(*mode).into(),
                    trials: None,
                    figure: None,
                    value: None,
                    against: *than,
                    difference: None,
                    verdict: FindingVerdict::CannotTell,
                }),
            },
        ));
    }
    standings
}

/// A mode with the figure that it is ranked by.
fn alone(at: Conditions<'_>, cell: &Cell) -> OfCell<Option<Measured>> {
    let (figure, estimate) = if cell.load.is_closed_loop() {
        (Metric::RateCompleted, cell.rate_completed)
    } else {
        (Metric::ResponseTimeP50Us.under(&cell.load), cell.leading_times().and_then(|times| times.p50))
    };
    let alone = OfCell::under(at, cell, estimate.map(|estimate| Measured::new(figure, &estimate)));
    match estimate {
        Some(estimate) => alone.resting_on(&estimate),
        None => alone,
    }
}

fn against(at: Conditions<'_>, (cell, than, by): Pair<'_>) -> Standing {
    let mut alone = alone(at, cell);
    if let Some((difference, _)) = by {
        alone = alone.resting_on(&difference);
    }
    let OfCell { place, trials, content: of_mode } = alone;
    let of_median = of_mode.map(|measured| measured.figure);
    Standing::Against(Step {
        place,
        trials: Some(trials),
        figure: if at.load.is_closed_loop() { Some(Metric::RateCompletedChange) } else { of_median },
        value: of_mode.map(|measured| measured.value),
        against: than,
        difference: by.map(|(difference, _)| difference),
        verdict: match by {
            None => FindingVerdict::CannotTell,
            Some((_, verdict)) => verdict,
        },
    })
}

/// Conditions of the cells and comparisons of the modes with this baseline that name the most factors: under them each mode
/// has one cell at most.
fn all_conditions<'a>(run: &Run<'a>, floor: Mode) -> Vec<Conditions<'a>> {
    let cells = run.summary.cells.iter().filter(|cell| cell.mode.compares_with(floor));
    let comparisons = run.summary.comparisons.iter().filter(|one| one.mode.compares_with(floor));
    let mut all: Vec<Conditions<'_>> =
        cells.map(Cell::conditions).chain(comparisons.map(ModeComparison::conditions)).collect();
    let most = all.iter().map(|at| at.factors.len()).max().unwrap_or(0);
    let mut known = HashSet::new();
    all.retain(|at| at.factors.len() == most && known.insert(*at));
    all
}

/// The measured cells of the modes with this baseline under these conditions, best first.
fn ranked<'a>(run: &Run<'a>, floor: Mode, at: Conditions<'_>) -> Vec<&'a Cell> {
    let mut cells: Vec<&Cell> = run
        .summary
        .cells
        .iter()
        .filter(|cell| {
            cell.mode.compares_with(floor) && cell.leading_times().is_some() && cell.conditions().covers(at)
        })
        .collect();
    let badness = |cell: &Cell| {
        if at.load.is_closed_loop() {
            -cell.rate_completed.map_or(0.0, |rate| rate.estimate)
        } else {
            cell.leading_times().and_then(|times| times.p50).map_or(f64::INFINITY, |median| median.estimate)
        }
    };
    cells.sort_by(|one, other| badness(one).total_cmp(&badness(other)));
    cells
}

/// The pairs of a mode with each better mode, up to the nearest one from which it is shown to differ. Empty
/// if it is not shown to differ from any.
fn step<'a>(run: &Run<'_>, at: Conditions<'_>, ranked: &[&'a Cell], index: usize) -> Vec<Pair<'a>> {
    let cell = ranked[index];
    let mut pairs = Vec::new();
    for better in ranked[..index].iter().rev() {
        let by = difference(run, at, cell.mode, better.mode);
        pairs.push((cell, better.mode, by));
        if by.is_some_and(|by| is_worse(at, &by)) {
            return pairs;
        }
    }
    Vec::new()
}

/// The difference between two modes: microseconds of the median, or the change in throughput as a fraction.
pub(super) fn difference(run: &Run<'_>, at: Conditions<'_>, mode: Mode, than: Mode) -> Option<Judged> {
    let figure = |comparison: &ModeComparison| {
        if at.load.is_closed_loop() {
            comparison.judged_throughput()
        } else {
            comparison.leading_times().judged(Figure::P50)
        }
    };
    let mut comparisons =
        run.summary.comparisons.iter().filter(|comparison| comparison.conditions().covers(at));
    let ((difference, verdict), straight) = comparisons.find_map(|comparison| {
        let pair = (comparison.mode, comparison.than);
        let straight = pair == (mode, than);
        (straight || pair == (than, mode)).then(|| Some((figure(comparison)?, straight)))?
    })?;
    let difference = match (straight, at.load.is_closed_loop()) {
        (true, _) => difference,
        (false, true) => crate::published::inverted(&difference),
        (false, false) => difference.map_reversed(std::ops::Neg::neg),
    };
    Some((difference, verdict))
}

/// True if the difference shows that the mode is worse.
pub(super) fn is_worse(at: Conditions<'_>, (difference, verdict): &Judged) -> bool {
    let is_worse =
        if at.load.is_closed_loop() { difference.estimate < 0.0 } else { difference.estimate > 0.0 };
    is_worse && *verdict == FindingVerdict::Shown
}

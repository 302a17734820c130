//! Sentences on how the modes stand to each other: in an open loop by the median, in a closed loop by throughput.
//!
//! The order is that of the estimates. What is claimed of two modes is what the interval of their difference shows: each
//! mode is held against the nearest better one from which it can be told, and what stands between is named.

use super::run::{Run, distance_from_reference};
use super::words;
use experiment::Mode;
use experiment::schema::{Cell, Conditions, Estimate, LoadPoint, ModeComparison};

/// One mode is shown to be worse than another.
#[derive(Clone, Debug, PartialEq)]
struct Step {
    mode: Mode,
    /// The nearest better mode from which it can be told.
    than: Mode,
    /// By how much, with its interval.
    by: Estimate,
    /// Better modes that it cannot be told from, though they are nearer.
    alike: Vec<Mode>,
}

/// The order of the modes that lead to one server, with the evidence for it.
pub(super) fn order(run: &Run<'_>) -> Vec<String> {
    [Mode::None, Mode::EgressBypass].into_iter().filter_map(|floor| sentence(run, floor)).collect()
}

fn sentence(run: &Run<'_>, floor: Mode) -> Option<String> {
    let at = reference_conditions(run, floor)?;
    let ranked = ranked(run, floor, at);
    let steps: Vec<Step> = (1..ranked.len()).filter_map(|index| step(run, at, &ranked, index)).collect();
    // Fewer than two steps are no order: other sentences say them already.
    if steps.len() < 2 {
        return None;
    }
    let best = ranked.first()?;
    let what = if is_closed(at.load) { "throughput" } else { "the median" };
    let clauses: Vec<String> = ranked[1..].iter().map(|cell| clause(cell, &steps, at)).collect();
    let cell_word = words::under(best);
    let first = words::mode(best.mode);
    let first = if is_closed(at.load) { format!("{first} ({})", completed(best)) } else { first.to_owned() };
    Some(format!(
        "Order in {what} {cell_word}: {first}, then {}.{}",
        clauses.join(", then "),
        elsewhere(run, floor, at, &steps)
    ))
}

fn clause(cell: &Cell, steps: &[Step], at: Conditions<'_>) -> String {
    let mode = words::mode(cell.mode);
    let Some(step) = steps.iter().find(|step| step.mode == cell.mode) else {
        return format!("{mode} (not shown to differ from a better one)");
    };
    let by = if is_closed(at.load) {
        format!("{} below {}", words::change(&less(&step.by)), words::mode(step.than))
    } else {
        format!("{} above {}", words::latency(&step.by), words::mode(step.than))
    };
    let alike: Vec<String> = step.alike.iter().map(|mode| words::mode(*mode).to_owned()).collect();
    if alike.is_empty() {
        format!("{mode}, {by}")
    } else {
        format!("{mode}, {by} (none shown to {})", words::list(&alike))
    }
}

/// Whether the other loads show the same steps.
fn elsewhere(run: &Run<'_>, floor: Mode, reference: Conditions<'_>, steps: &[Step]) -> String {
    let others: Vec<Conditions<'_>> = all_conditions(run)
        .into_iter()
        .filter(|at| *at != reference && !ranked(run, floor, *at).is_empty())
        .collect();
    let preposition = if is_closed(reference.load) { "with" } else { "at" };
    let (mut same, mut lacking) = (Vec::new(), Vec::new());
    for at in &others {
        let missing: Vec<String> = steps
            .iter()
            .filter(|step| worse_by(run, *at, step.mode, step.than).is_none())
            .map(|step| format!("{} against {}", words::mode(step.mode), words::mode(step.than)))
            .collect();
        let offered = words::described(*at);
        if missing.is_empty() {
            same.push(offered);
        } else {
            lacking.push(format!("{preposition} {offered}: {}", words::list(&missing)));
        }
    }
    let same = match same.as_slice() {
        [] => String::new(),
        _ if lacking.is_empty() && same.len() > 1 => if reference.factors.is_empty() {
            " The same steps are shown under all other loads."
        } else {
            " The same steps are shown in all other cells."
        }
        .into(),
        _ => format!(" The same steps are shown {preposition} {}.", words::list(&same)),
    };
    let lacking =
        if lacking.is_empty() { String::new() } else { format!(" Not shown {}.", lacking.join("; ")) };
    same + &lacking
}

/// The conditions with most of the modes measured; of those the load nearest to the reference.
fn reference_conditions<'a>(run: &Run<'a>, floor: Mode) -> Option<Conditions<'a>> {
    let distance = |at: &Conditions<'_>| distance_from_reference(at.load);
    all_conditions(run).into_iter().min_by(|one, other| {
        let measured = |at: &Conditions<'_>| ranked(run, floor, *at).len();
        measured(other).cmp(&measured(one)).then(distance(one).total_cmp(&distance(other)))
    })
}

fn all_conditions<'a>(run: &Run<'a>) -> Vec<Conditions<'a>> {
    let mut conditions: Vec<Conditions<'_>> = run.summary.cells.iter().map(Cell::conditions).collect();
    conditions.dedup();
    conditions
}

/// The measured cells of the modes with this floor under these conditions, the best first.
fn ranked<'a>(run: &Run<'a>, floor: Mode, at: Conditions<'_>) -> Vec<&'a Cell> {
    let mut cells: Vec<&Cell> = run
        .summary
        .cells
        .iter()
        .filter(|cell| {
            cell.conditions() == at && cell.mode.compares_with(floor) && cell.response_time_us.is_some()
        })
        .collect();
    let badness = |cell: &Cell| {
        if is_closed(at.load) {
            -cell.rate_completed.map_or(0.0, |rate| rate.estimate)
        } else {
            cell.response_time_us.and_then(|times| times.p50).map_or(f64::INFINITY, |median| median.estimate)
        }
    };
    cells.sort_by(|one, other| badness(one).total_cmp(&badness(other)));
    cells
}

fn step(run: &Run<'_>, at: Conditions<'_>, ranked: &[&Cell], index: usize) -> Option<Step> {
    let mode = ranked[index].mode;
    let mut alike = Vec::new();
    for better in ranked[..index].iter().rev() {
        if let Some(by) = worse_by(run, at, mode, better.mode) {
            return Some(Step { mode, than: better.mode, by, alike });
        }
        alike.push(better.mode);
    }
    None
}

/// By how much a mode is shown to be worse than another: microseconds of the median, or a fraction of the throughput.
/// Nothing where that is not shown.
pub(super) fn worse_by(run: &Run<'_>, at: Conditions<'_>, mode: Mode, than: Mode) -> Option<Estimate> {
    let figure = |comparison: &ModeComparison| {
        if is_closed(at.load) { comparison.throughput } else { comparison.response_time_us.p50 }
    };
    let mut comparisons = run.summary.comparisons.iter().filter(|comparison| comparison.conditions() == at);
    let (difference, straight) = comparisons.find_map(|comparison| {
        let pair = (comparison.mode, comparison.than);
        let straight = pair == (mode, than);
        (straight || pair == (than, mode)).then(|| Some((figure(comparison)?, straight)))?
    })?;
    let difference = match (straight, is_closed(at.load)) {
        (true, _) => difference,
        (false, true) => crate::published::turned_round(&difference),
        (false, false) => turned(&difference),
    };
    let is_worse = if is_closed(at.load) {
        difference.high.is_some_and(|high| high < 0.0)
    } else {
        difference.low.is_some_and(|low| low > 0.0)
    };
    is_worse.then_some(difference)
}

/// A loss as an amount: −0.1 as 0.1.
pub(super) fn less(change: &Estimate) -> Estimate {
    turned(change)
}

/// The same difference seen from the other side.
fn turned(difference: &Estimate) -> Estimate {
    difference.map_reversed(std::ops::Neg::neg)
}

pub(super) fn is_closed(load: &LoadPoint) -> bool {
    load.rate.is_none()
}

fn completed(cell: &Cell) -> String {
    words::rate(cell.rate_completed.map_or(0.0, |rate| rate.estimate))
}

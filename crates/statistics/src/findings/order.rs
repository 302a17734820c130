//! Sentences on how the modes stand to each other: in an open loop by the median, in a closed loop by throughput.
//!
//! The order is that of the estimates. What is claimed of two modes is what the interval of their difference shows: each
//! mode is held against the nearest better one from which it can be told, and what stands between is named.

use super::{Run, distance_from_reference, words};
use experiment::Mode;
use experiment::schema::{Cell, Estimate, LoadPoint, ModeComparison};

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
    let load = reference_load(run, floor)?;
    let ranked = ranked(run, floor, load);
    let steps: Vec<Step> = (1..ranked.len()).filter_map(|index| step(run, load, &ranked, index)).collect();
    // Fewer than two steps are no order: other sentences say them already.
    if steps.len() < 2 {
        return None;
    }
    let best = ranked.first()?;
    let what = if is_closed(load) { "throughput" } else { "the median" };
    let clauses: Vec<String> = ranked[1..].iter().map(|cell| clause(cell, &steps, load)).collect();
    let cell_word = words::under(best);
    let first = words::mode(best.mode);
    let first = if is_closed(load) { format!("{first} ({})", completed(best)) } else { first.to_owned() };
    Some(format!(
        "Order in {what} {cell_word}: {first}, then {}.{}",
        clauses.join(", then "),
        elsewhere(run, floor, load, &steps)
    ))
}

fn clause(cell: &Cell, steps: &[Step], load: &LoadPoint) -> String {
    let mode = words::mode(cell.mode);
    let Some(step) = steps.iter().find(|step| step.mode == cell.mode) else {
        return format!("{mode} (not shown to differ from a better one)");
    };
    let by = if is_closed(load) {
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
fn elsewhere(run: &Run<'_>, floor: Mode, reference: &LoadPoint, steps: &[Step]) -> String {
    let others: Vec<&LoadPoint> = loads(run)
        .into_iter()
        .filter(|load| *load != reference && !ranked(run, floor, load).is_empty())
        .collect();
    let preposition = if is_closed(reference) { "with" } else { "at" };
    let (mut same, mut lacking) = (Vec::new(), Vec::new());
    for load in &others {
        let missing: Vec<String> = steps
            .iter()
            .filter(|step| worse_by(run, load, step.mode, step.than).is_none())
            .map(|step| format!("{} against {}", words::mode(step.mode), words::mode(step.than)))
            .collect();
        let offered = words::offered(load);
        if missing.is_empty() {
            same.push(offered);
        } else {
            lacking.push(format!("{preposition} {offered}: {}", words::list(&missing)));
        }
    }
    let same = match same.as_slice() {
        [] => String::new(),
        _ if lacking.is_empty() && same.len() > 1 => {
            " The same steps are shown under all other loads.".into()
        }
        _ => format!(" The same steps are shown {preposition} {}.", words::list(&same)),
    };
    let lacking =
        if lacking.is_empty() { String::new() } else { format!(" Not shown {}.", lacking.join("; ")) };
    same + &lacking
}

/// The load with most of the modes measured; of those the one nearest to the reference.
fn reference_load<'a>(run: &Run<'a>, floor: Mode) -> Option<&'a LoadPoint> {
    let distance = distance_from_reference;
    loads(run).into_iter().min_by(|one, other| {
        let measured = |load| ranked(run, floor, load).len();
        measured(other).cmp(&measured(one)).then(distance(one).total_cmp(&distance(other)))
    })
}

fn loads<'a>(run: &Run<'a>) -> Vec<&'a LoadPoint> {
    let mut loads: Vec<&LoadPoint> = run.summary.cells.iter().map(|cell| &cell.load).collect();
    loads.dedup();
    loads
}

/// The measured cells of the modes with this floor under a load, the best first.
fn ranked<'a>(run: &Run<'a>, floor: Mode, load: &LoadPoint) -> Vec<&'a Cell> {
    let mut cells: Vec<&Cell> = run
        .summary
        .cells
        .iter()
        .filter(|cell| {
            cell.load == *load && cell.mode.compares_with(floor) && cell.response_time_us.is_some()
        })
        .collect();
    let badness = |cell: &Cell| {
        if is_closed(load) {
            -cell.rate_completed.map_or(0.0, |rate| rate.estimate)
        } else {
            cell.response_time_us.map_or(0.0, |times| times.p50.estimate)
        }
    };
    cells.sort_by(|one, other| badness(one).total_cmp(&badness(other)));
    cells
}

fn step(run: &Run<'_>, load: &LoadPoint, ranked: &[&Cell], index: usize) -> Option<Step> {
    let mode = ranked[index].mode;
    let mut alike = Vec::new();
    for better in ranked[..index].iter().rev() {
        if let Some(by) = worse_by(run, load, mode, better.mode) {
            return Some(Step { mode, than: better.mode, by, alike });
        }
        alike.push(better.mode);
    }
    None
}

/// By how much a mode is shown to be worse than another: microseconds of the median, or a fraction of the throughput.
/// Nothing where that is not shown.
pub(super) fn worse_by(run: &Run<'_>, load: &LoadPoint, mode: Mode, than: Mode) -> Option<Estimate> {
    let figure = |comparison: &ModeComparison| {
        if is_closed(load) { comparison.throughput } else { Some(comparison.response_time_us.p50) }
    };
    let mut comparisons = run.summary.comparisons.iter().filter(|comparison| comparison.load == *load);
    let (difference, straight) = comparisons.find_map(|comparison| {
        let pair = (comparison.mode, comparison.than);
        let straight = pair == (mode, than);
        (straight || pair == (than, mode)).then(|| Some((figure(comparison)?, straight)))?
    })?;
    let difference = match (straight, is_closed(load)) {
        (true, _) => difference,
        (false, true) => crate::published::turned_round(&difference),
        (false, false) => turned(&difference),
    };
    let is_worse = if is_closed(load) {
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

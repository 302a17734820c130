//! What one replica carries: requests per second with an interval.
//!
//! - Closed loop with an objective: the greatest throughput of the numbers of clients that meet it. If that is
//!   the highest such number, the truth lies between it and the throughput at the next level that misses the
//!   objective. The estimate is where the interpolated figure crosses its bound, if more is carried there.
//! - Closed loop without an objective: the maximum throughput.
//! - Open loop with an objective: the truth lies between the highest rate that meets it and the next that
//!   misses it, each by its own interval. The estimate is where the interpolated figure crosses its bound.
//!   The interval is not interpolated between measured rates, since response times rise ever more steeply.
//! - Open loop without an objective: responses per second at the lowest rate that the target did not keep up
//!   with, but at least the highest rate that it kept up with.
//!
//! A rate of an open loop is not carried if the throughput falls short of it, whatever the response times of so
//! short a window were.
//!
//! If the highest rate is carried, the capacity has no upper end, and its lower end is one-sided. The same holds for the
//! highest number of clients, unless they use all of the replica's CPU. Where more clients carry less, throughput has its peak
//! within the sweep, and the capacity has an upper end.

use super::groups::{MeasuredCell, Sized};
use super::reasons;
use crate::words;
use experiment::Objective;
use results::{
    BindingResource, Capacity, CapacityBasis, Cell, DriverObjective, Estimate, Metric, Rates, SizeNote,
    SizeNoteKind,
};

/// A component at this fraction of its limit counts as full.
const FULL: f64 = 0.9;

/// A one-sided lower end over a two-sided one of the same confidence, in half-widths: that of the normal
/// distribution. Student's t has a smaller one, so this one errs towards more replicas.
const ONE_SIDED: f64 = 0.84;

/// What a replica of a size carries, and the cell that shows it.
pub(super) struct Found<'a> {
    pub capacity: Capacity,
    /// The one-sided lower end of the capacity; `None` without an interval.
    pub certain_rps: Option<f64>,
    pub binds: BindingResource,
    /// The cell with the carried load that the capacity rests on.
    pub carried: &'a MeasuredCell<'a>,
    /// The cell above that shows what limits the capacity: it is not carried, or carries less.
    limiting: Option<&'a MeasuredCell<'a>>,
    /// True if more clients than those of `carried` carry less.
    is_peak: bool,
    pub notes: Vec<SizeNote>,
}

/// Whether a load is carried.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Status {
    Carried,
    Missed,
    NotShown,
}

/// The capacity of a size, or why there is none.
pub(super) fn capacity<'a>(objective: &Objective, sized: &'a Sized<'a>) -> Result<Found<'a>, SizeNote> {
    let measured: Vec<&MeasuredCell<'_>> =
        sized.cells.iter().filter(|cell| cell.cell.valid > 0 || cell.cell.saturated_trials > 0).collect();
    if measured.is_empty() {
        let trials: Vec<_> = sized.cells.iter().flat_map(|cell| cell.trials.iter().copied()).collect();
        return Err(SizeNote::naming(SizeNoteKind::NoValidTrial, reasons(&trials)));
    }
    let mut found = match (sized.is_closed_loop(), objective.is_empty()) {
        (true, true) => greatest_throughput(&measured)?,
        (true, false) => throughput_at_objective(objective, sized, &measured)?,
        (false, true) => saturation(&measured)?,
        (false, false) => rate_at_objective(objective, &measured)?,
    };
    if objective.is_empty() {
        found.notes.push(SizeNote::new(SizeNoteKind::NoObjective));
    }
    found.binds = binding(sized, &found);
    found.capacity.lower_bound = is_lower_bound(&found);
    if found.capacity.rps.high.is_none() {
        found.capacity.rps.low = found.certain_rps.or(found.capacity.rps.low);
    }
    let limiting = found.limiting.unwrap_or(found.carried);
    if limiting.limited_by_generator {
        found.notes.push(SizeNote::new(SizeNoteKind::GeneratorLimited));
    } else if limiting.fills_machine && found.binds == BindingResource::Machine {
        found.notes.push(SizeNote::new(SizeNoteKind::MachineFull));
    }
    if found.capacity.rps.low.is_none() {
        found.notes.push(SizeNote::new(SizeNoteKind::SingleTrial));
    }
    Ok(found)
}

/// True if the load ended, or the generator or the machine was full, before the replica was.
fn is_lower_bound(found: &Found<'_>) -> bool {
    let sweep_ended = found.notes.iter().any(|note| note.kind == SizeNoteKind::SweepEnded);
    let of_others = [BindingResource::Load, BindingResource::Generator, BindingResource::Machine];
    sweep_ended || of_others.contains(&found.binds)
}

/// True if a load is shown to meet an objective, or there is none: a replica carries nothing else.
#[must_use]
pub fn is_shown_to_meet(objective: &Objective, cell: &Cell) -> bool {
    objective.is_empty() || cell.objective == Some(DriverObjective::Met)
}

fn status(objective: &Objective, measured: &MeasuredCell<'_>) -> Status {
    let cell = measured.cell;
    // The generator's own limit says nothing about the proxy.
    let saturated = if measured.limited_by_generator { Status::NotShown } else { Status::Missed };
    if falls_short(cell) {
        return saturated;
    }
    if objective.is_empty() {
        return match cell.saturated_trials {
            0 if cell.valid > 0 => Status::Carried,
            0 => Status::NotShown,
            _ => saturated,
        };
    }
    match cell.objective {
        _ if is_shown_to_meet(objective, cell) => Status::Carried,
        Some(DriverObjective::Missed) if cell.saturated_trials > 0 => saturated,
        Some(DriverObjective::Missed) => Status::Missed,
        _ => Status::NotShown,
    }
}

/// True if the throughput, by its interval, is below the offered rate. Responses to requests of the warm-up are part of it, late
/// ones are not: only a backlog that grows lowers it.
fn falls_short(cell: &Cell) -> bool {
    let highest = cell.rate_completed.and_then(|rate| rate.high);
    cell.load.rate.zip(highest).is_some_and(|(offered, highest)| highest < Rates::ACHIEVED_FRACTION * offered)
}

fn no_throughput(measured: &[&MeasuredCell<'_>]) -> SizeNote {
    let trials: Vec<_> = measured.iter().flat_map(|cell| cell.trials.iter().copied()).collect();
    SizeNote::naming(SizeNoteKind::NoValidTrial, reasons(&trials))
}

fn found<'a>(carried: &'a MeasuredCell<'a>, rps: Estimate, basis: CapacityBasis) -> Found<'a> {
    let capacity = Capacity {
        rps,
        lower_bound: false,
        basis,
        carried_rps: carried.cell.load.rate,
        missed_rps: None,
        clients: carried.cell.load.clients,
        missed_clients: None,
    };
    Found {
        certain_rps: one_sided(&capacity.rps),
        capacity,
        binds: BindingResource::Unknown,
        carried,
        limiting: None,
        is_peak: false,
        notes: Vec::new(),
    }
}

/// The one-sided lower end of a figure, on the logarithm.
fn one_sided(figure: &Estimate) -> Option<f64> {
    let low = figure.low.filter(|low| *low > 0.0)?;
    Some(figure.estimate * (low / figure.estimate).powf(ONE_SIDED))
}

fn throughput(measured: &MeasuredCell<'_>) -> Option<Estimate> {
    measured.cell.rate_completed.filter(|rate| rate.estimate > 0.0)
}

/// Index of the load with the greatest throughput, of those at these places.
fn greatest(
    measured: &[&MeasuredCell<'_>],
    places: impl Iterator<Item = usize>,
) -> Option<(usize, Estimate)> {
    let rates = places.filter_map(|place| Some((place, throughput(measured[place])?)));
    // Of equal ones, the one with fewer clients.
    rates.reduce(|best, other| if other.1.estimate > best.1.estimate { other } else { best })
}

/// The loads above a carried one that have a throughput.
fn above<'a>(
    measured: &[&'a MeasuredCell<'a>],
    carried: usize,
) -> impl DoubleEndedIterator<Item = (&'a MeasuredCell<'a>, Estimate)> {
    measured[carried + 1..].iter().filter_map(|cell| Some((*cell, throughput(cell)?)))
}

/// Sets the level above the greatest throughput as the limiting one. It is a peak if no level above carries
/// more. If the generator or the machine is full there, the decline says nothing about the replica.
fn set_peak<'a>(found: &mut Found<'a>, measured: &[&'a MeasuredCell<'a>], best: usize) {
    let greatest = throughput(measured[best]).map_or(0.0, |rate| rate.estimate);
    found.limiting = above(measured, best).next().map(|(cell, _)| cell);
    found.is_peak = above(measured, best).all(|(_, rate)| rate.estimate <= greatest)
        && found.limiting.is_some_and(|cell| !cell.limited_by_generator && !cell.fills_machine);
    found.notes.extend(carries_less(measured, best));
}

/// Note that the most clients that are shown to carry less than the best number do so.
fn carries_less<'a>(measured: &[&'a MeasuredCell<'a>], best: usize) -> Option<SizeNote> {
    let rate = throughput(measured[best])?;
    let is_less = |other: &Estimate| other.high.zip(rate.low).is_some_and(|(high, low)| high < low);
    let mut others = above(measured, best).rev().filter(|(cell, _)| !cell.limited_by_generator);
    let (less, other) = others.find(|(_, other)| is_less(other))?;
    let clients = |cell: &MeasuredCell<'_>| cell.cell.load.clients.map(words::clients);
    let detail = format!(
        "{} with {}, {} with {}",
        words::rate(other.estimate),
        clients(less)?,
        words::rate(rate.estimate),
        clients(measured[best])?
    );
    Some(SizeNote::naming(SizeNoteKind::MoreClientsCarryLess, detail))
}

fn greatest_throughput<'a>(measured: &[&'a MeasuredCell<'a>]) -> Result<Found<'a>, SizeNote> {
    let (best, rate) = greatest(measured, 0..measured.len()).ok_or_else(|| no_throughput(measured))?;
    let mut found = found(measured[best], rate, CapacityBasis::ClosedLoop);
    set_peak(&mut found, measured, best);
    Ok(found)
}

fn throughput_at_objective<'a>(
    objective: &Objective,
    sized: &Sized<'_>,
    measured: &[&'a MeasuredCell<'a>],
) -> Result<Found<'a>, SizeNote> {
    let highest = highest_carried(objective, measured)?;
    let is_met = |place: &usize| status(objective, measured[*place]) == Status::Carried;
    let (best, rate) = greatest(measured, (0..=highest).filter(is_met))
        .ok_or_else(|| no_throughput(&measured[highest..=highest]))?;
    let missed = first_missed(objective, measured, highest);
    let mut found = found(measured[best], rate, CapacityBasis::ClosedLoopObjective);
    match missed.filter(|_| best == highest) {
        Some(place) => {
            found.limiting = Some(measured[place]);
            found.capacity.missed_clients = measured[place].cell.load.clients;
            found.notes.extend(carries_less(measured, best));
        }
        None => set_peak(&mut found, measured, best),
    }
    let considered = &measured[..=missed.unwrap_or(measured.len() - 1)];
    // More clients gain nothing once the CPU is full.
    let is_bounded =
        missed.is_some() || found.is_peak || considered[best..].iter().any(|cell| fills_cpu(sized, cell));
    if !is_bounded {
        found.notes.push(SizeNote::new(SizeNoteKind::SweepEnded));
    }
    let high = considered.iter().filter_map(|cell| throughput(cell)?.high).fold(f64::NEG_INFINITY, f64::max);
    let at_level = |cell: &MeasuredCell<'_>| throughput(cell).map_or(0.0, |rate| rate.estimate);
    let crossed = crossing(objective, &measured[highest..=missed.unwrap_or(highest)], at_level);
    found.capacity.rps = Estimate {
        estimate: rate.estimate.max(crossed),
        high: rate.high.map(|own| own.max(high)).filter(|_| is_bounded),
        ..rate
    };
    found.notes.extend(not_monotone(objective, &measured[..highest]));
    Ok(found)
}

/// Index of the lowest load above the carried one that misses the objective.
fn first_missed(objective: &Objective, measured: &[&MeasuredCell<'_>], carried: usize) -> Option<usize> {
    (carried + 1..measured.len()).find(|place| status(objective, measured[*place]) == Status::Missed)
}

/// Index of the highest load that meets the objective.
fn highest_carried(objective: &Objective, measured: &[&MeasuredCell<'_>]) -> Result<usize, SizeNote> {
    let is = |wanted: Status| move |cell: &&&MeasuredCell<'_>| status(objective, cell) == wanted;
    let carried = measured.iter().rposition(|cell| status(objective, cell) == Status::Carried);
    carried.ok_or_else(|| {
        let kind = match measured.iter().filter(is(Status::Missed)).count() {
            missed if missed == measured.len() => SizeNoteKind::ObjectiveNeverMet,
            _ => SizeNoteKind::ObjectiveNotShown,
        };
        SizeNote::naming(kind, format!("objective {objective}"))
    })
}

fn not_monotone(objective: &Objective, below: &[&MeasuredCell<'_>]) -> Option<SizeNote> {
    let missed = below.iter().find(|cell| status(objective, cell) == Status::Missed)?;
    let load = &missed.cell.load;
    let level =
        load.rate.map(|rate| format!("{rate}/s")).or(load.clients.map(|count| format!("{count} clients")));
    Some(SizeNote::naming(SizeNoteKind::NotMonotone, level.unwrap_or_default()))
}

fn rate_at_objective<'a>(
    objective: &Objective,
    measured: &[&'a MeasuredCell<'a>],
) -> Result<Found<'a>, SizeNote> {
    let carried = highest_carried(objective, measured)?;
    let rate = |cell: &MeasuredCell<'_>| cell.cell.load.rate.unwrap_or(0.0);
    let missed = first_missed(objective, measured, carried);
    let cell = measured[carried];
    let bracket = &measured[carried..=missed.unwrap_or(carried)];
    let rps = Estimate {
        estimate: crossing(objective, bracket, rate),
        low: Some(rate(cell)),
        high: missed.map(|place| rate(measured[place])),
        n: cell.cell.valid,
        alone: None,
    };
    let basis = if missed.is_some() { CapacityBasis::Objective } else { CapacityBasis::HighestRate };
    let mut found = found(cell, rps, basis);
    // The carried rate is a measured load, not the end of a distribution.
    found.certain_rps = rps.low;
    found.capacity.missed_rps = rps.high;
    found.limiting = missed.map(|place| measured[place]);
    if missed.is_none() {
        found.notes.push(SizeNote::new(SizeNoteKind::SweepEnded));
    }
    found.notes.extend(not_monotone(objective, &measured[..carried]));
    Ok(found)
}

/// The rate at which the first bounded figure crosses its bound. Interpolated between measured loads on the
/// logarithm of the figure. If a figure above is unknown, it is the carried rate.
fn crossing(
    objective: &Objective,
    bracket: &[&MeasuredCell<'_>],
    rate: impl Fn(&MeasuredCell<'_>) -> f64,
) -> f64 {
    let first = rate(bracket[0]);
    let of_figure = |metric: Metric, bound_us: f64| {
        let value = |cell: &MeasuredCell<'_>| cell.cell.times(metric.clock()?)?.figure(metric.spoiled_by());
        for pair in bracket.windows(2) {
            let (Some(from), Some(to)) = (value(pair[0]), value(pair[1])) else { return rate(pair[0]) };
            if to.estimate > bound_us && from.estimate > 0.0 && to.estimate > from.estimate {
                let share = (bound_us / from.estimate).ln() / (to.estimate / from.estimate).ln();
                return rate(pair[0]) + share.clamp(0.0, 1.0) * (rate(pair[1]) - rate(pair[0]));
            }
        }
        // The bound is missed for another reason, such as errors: nothing to interpolate.
        first
    };
    let crossings = objective.times().map(|(metric, bound)| of_figure(metric, bound.as_secs_f64() * 1e6));
    let least = crossings.fold(f64::INFINITY, f64::min);
    if least.is_finite() { least.max(first) } else { first }
}

fn saturation<'a>(measured: &[&'a MeasuredCell<'a>]) -> Result<Found<'a>, SizeNote> {
    let none = Objective::default();
    let is = |place: &usize, wanted: Status| status(&none, measured[*place]) == wanted;
    let carried = (0..measured.len()).rfind(|place| is(place, Status::Carried));
    let above = carried.map_or(0, |place| place + 1);
    let missed = (above..measured.len()).find(|place| is(place, Status::Missed));
    let rate = |place: usize| measured[place].cell.load.rate.unwrap_or(0.0);
    let saturated = missed.and_then(|place| Some((place, throughput(measured[place])?)));
    match (carried, saturated) {
        (_, Some((place, completed))) => {
            let least = carried.map_or(0.0, rate);
            let rps = completed.map(|rate| rate.max(least));
            let mut found = found(measured[carried.unwrap_or(place)], rps, CapacityBasis::Saturation);
            found.certain_rps = found.certain_rps.map(|rps| rps.max(least));
            found.capacity.carried_rps = carried.map(rate);
            found.capacity.missed_rps = Some(rate(place));
            found.limiting = Some(measured[place]);
            Ok(found)
        }
        (Some(place), None) => {
            let rps = Estimate {
                low: Some(rate(place)),
                n: measured[place].cell.valid,
                ..Estimate::single(rate(place))
            };
            let mut found = found(measured[place], rps, CapacityBasis::HighestRate);
            found.notes.push(SizeNote::new(SizeNoteKind::SweepEnded));
            Ok(found)
        }
        (None, None) => Err(no_throughput(measured)),
    }
}

/// True if a load uses all of a replica's CPU: its limit, or that of its workers if it has none.
fn fills_cpu(sized: &Sized<'_>, cell: &MeasuredCell<'_>) -> bool {
    let cores = sized.limits.cpu_cores.unwrap_or(sized.limits.workers as f64);
    cell.usage.is_some_and(|usage| usage.throttled || usage.cpu_cores.estimate >= FULL * cores)
}

/// Resource that keeps a replica from carrying more, judged by the cell above the carried one that shows it, or else
/// by the carried one.
fn binding(sized: &Sized<'_>, found: &Found<'_>) -> BindingResource {
    let cell = found.limiting.unwrap_or(found.carried);
    let basis = found.capacity.basis;
    let sweep_ended = found.notes.iter().any(|note| note.kind == SizeNoteKind::SweepEnded);
    let memory = cell.usage.and_then(|usage| usage.working_set_bytes).zip(sized.limits.memory_bytes);
    if cell.limited_by_generator {
        BindingResource::Generator
    } else if fills_cpu(sized, cell) || found.is_peak && fills_cpu(sized, found.carried) {
        BindingResource::Cpu
    } else if memory.is_some_and(|(used, limit)| used.estimate >= FULL * limit as f64) {
        BindingResource::Memory
    } else if cell.fills_machine {
        BindingResource::Machine
    } else if found.is_peak {
        BindingResource::Contention
    } else if sweep_ended || basis == CapacityBasis::ClosedLoop {
        BindingResource::Load
    } else if basis == CapacityBasis::Saturation || cell.cell.saturated_trials > 0 {
        BindingResource::Unknown
    } else {
        BindingResource::Objective
    }
}

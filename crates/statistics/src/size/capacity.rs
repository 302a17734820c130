//! What one replica carries: requests per second with an interval.
//!
//! - Closed loop with an objective: the truth lies between the throughput at the highest number of clients
//!   that meets it, and that at the next level that misses it. The estimate is where the interpolated figure
//!   crosses its bound.
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
//! If the highest rate is carried, the capacity has no upper end. The same holds for the highest number of
//! clients, unless they use all of the replica's CPU.

use super::groups::{MeasuredCell, Sized, level};
use super::reasons;
use experiment::Objective;
use results::{
    BindingResource, Capacity, CapacityBasis, Cell, DriverObjective, Estimate, Rates, SizeNote, SizeNoteKind,
};

/// A component at this fraction of its limit counts as full.
const FULL: f64 = 0.9;

/// What a replica of a size carries, and the cell that shows it.
pub(super) struct Found<'a> {
    pub capacity: Capacity,
    pub binds: BindingResource,
    /// The cell with the highest carried load.
    pub carried: &'a MeasuredCell<'a>,
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
    let missed = found.capacity.missed_level();
    let missed = measured.iter().find(|cell| missed == Some(level(&cell.cell.load)));
    let limiting = missed.copied().unwrap_or(found.carried);
    let sweep_ended = found.notes.iter().any(|note| note.kind == SizeNoteKind::SweepEnded);
    found.binds = binding(sized, limiting, found.capacity.basis, sweep_ended);
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
        Some(DriverObjective::Met) => Status::Carried,
        Some(DriverObjective::Missed) if cell.saturated_trials > 0 => saturated,
        Some(DriverObjective::Missed) => Status::Missed,
        Some(DriverObjective::NotShown) | None => Status::NotShown,
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
        basis,
        carried_rps: carried.cell.load.rate,
        missed_rps: None,
        clients: carried.cell.load.clients,
        missed_clients: None,
    };
    Found { capacity, binds: BindingResource::Unknown, carried, notes: Vec::new() }
}

fn throughput(measured: &MeasuredCell<'_>) -> Option<Estimate> {
    measured.cell.rate_completed.filter(|rate| rate.estimate > 0.0)
}

fn greatest_throughput<'a>(measured: &[&'a MeasuredCell<'a>]) -> Result<Found<'a>, SizeNote> {
    let rates = measured.iter().filter_map(|cell| Some((*cell, throughput(cell)?)));
    let greatest = rates.max_by(|(_, one), (_, other)| one.estimate.total_cmp(&other.estimate));
    let (cell, rate) = greatest.ok_or_else(|| no_throughput(measured))?;
    Ok(found(cell, rate, CapacityBasis::ClosedLoop))
}

fn throughput_at_objective<'a>(
    objective: &Objective,
    sized: &Sized<'_>,
    measured: &[&'a MeasuredCell<'a>],
) -> Result<Found<'a>, SizeNote> {
    let carried = highest_carried(objective, measured)?;
    let cell = measured[carried];
    let rate = throughput(cell).ok_or_else(|| no_throughput(&measured[carried..=carried]))?;
    let missed = first_missed(objective, measured, carried);
    let bracket = &measured[carried..=missed.unwrap_or(measured.len() - 1)];
    let highest = bracket.iter().filter_map(|cell| throughput(cell)?.high).fold(f64::NEG_INFINITY, f64::max);
    // More clients gain nothing once the CPU is full.
    let is_bounded = missed.is_some() || bracket.iter().any(|cell| fills_cpu(sized, cell));
    let at_level = |cell: &MeasuredCell<'_>| throughput(cell).map_or(0.0, |rate| rate.estimate);
    let rps = Estimate {
        estimate: crossing(objective, if missed.is_some() { bracket } else { &bracket[..1] }, at_level),
        high: rate.high.map(|high| high.max(highest)).filter(|_| is_bounded),
        ..rate
    };
    let mut found = found(cell, rps, CapacityBasis::ClosedLoopObjective);
    found.capacity.missed_clients = missed.and_then(|place| measured[place].cell.load.clients);
    if missed.is_none() {
        found.notes.push(SizeNote::new(SizeNoteKind::SweepEnded));
    }
    found.notes.extend(not_monotone(objective, &measured[..carried]));
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
    };
    let basis = if missed.is_some() { CapacityBasis::Objective } else { CapacityBasis::HighestRate };
    let mut found = found(cell, rps, basis);
    found.capacity.missed_rps = rps.high;
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
    let of_figure = |figure, bound_us: f64| {
        let value = |cell: &MeasuredCell<'_>| cell.cell.response_time_us?.figure(figure);
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
    let crossings = objective.times().map(|(figure, bound)| of_figure(figure, bound.as_secs_f64() * 1e6));
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
            found.capacity.carried_rps = carried.map(rate);
            found.capacity.missed_rps = Some(rate(place));
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

/// What keeps a replica from carrying more, judged by the first cell that it does not carry, or else by the
/// last one that it does.
fn binding(
    sized: &Sized<'_>,
    cell: &MeasuredCell<'_>,
    basis: CapacityBasis,
    sweep_ended: bool,
) -> BindingResource {
    let memory = cell.usage.and_then(|usage| usage.working_set_bytes).zip(sized.limits.memory_bytes);
    if cell.limited_by_generator {
        BindingResource::Generator
    } else if fills_cpu(sized, cell) {
        BindingResource::Cpu
    } else if memory.is_some_and(|(used, limit)| used.estimate >= FULL * limit as f64) {
        BindingResource::Memory
    } else if cell.fills_machine {
        BindingResource::Machine
    } else if sweep_ended || basis == CapacityBasis::ClosedLoop {
        BindingResource::Load
    } else if basis == CapacityBasis::Saturation || cell.cell.saturated_trials > 0 {
        BindingResource::Unknown
    } else {
        BindingResource::Objective
    }
}

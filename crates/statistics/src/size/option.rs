//! One size of replica: how many are needed, what they use, what they cost, and what remains without one.
//!
//! The plan has the number of replicas that suffices by the one-sided lower end of the capacity. The number by
//! the estimate is too low in every other run whose capacity needs nearly a whole number of replicas.
//!
//! The cheapest size is that of the least expected cost: of the replicas needed at each capacity that the interval
//! allows, weighted. The costs at the estimate and of the plan both jump where a whole number of replicas is just
//! enough, so that either is often decided by chance.

use super::groups::{Group, MeasuredCell, Sized};
use super::settings::differing_sections;
use super::{Asked, SECONDS_PER_DAY, capacity, next_run, usage};
use crate::interval;
use results::{
    Capacity, Estimate, Metric, Prices, ReplicaCount, Role, SizeMeasurement, SizeNote, SizeNoteKind,
    SizeOption, SizePlan, SizeQuestion, WithoutOne, factor_texts,
};
use std::collections::BTreeMap;

/// The option, or why this size is not one.
pub(super) fn option(
    asked: &Asked<'_>,
    group: &Group<'_>,
    sized: &Sized<'_>,
    directory: &str,
) -> Result<SizeOption, SizeNote> {
    let found = capacity::capacity(&asked.objective, sized)?;
    let (target, headroom) = (asked.question.target_rps, asked.question.headroom);
    let rps = found.capacity.rps;
    let replicas = replicas(asked.question, &rps);
    let mut notes = found.notes;
    let count = replicas.estimate as f64;
    let replica_memory = usage::memory(sized, &found.capacity);
    let used = used_by(asked, sized, &found.capacity, &replicas, replica_memory.as_ref(), &mut notes);
    if replica_memory.is_none() {
        notes.push(SizeNote::new(SizeNoteKind::MemoryNotMeasured));
    }
    let planned = plan(asked, sized, &found.capacity, found.certain_rps, replica_memory.as_ref());
    let measured = measurement(asked, found.carried);
    let [expected_cpu_cores, expected_monthly_cost] =
        expected(asked, sized, &found.capacity, found.certain_rps, replica_memory.as_ref());
    if group.component.ends_with("ztunnel") {
        notes.push(SizeNote::new(SizeNoteKind::SharedPerNode));
    }
    let is_bound = found.capacity.lower_bound;
    let next_run = is_bound.then(|| next_run::command(group, sized, found.binds, directory)).flatten();
    Ok(SizeOption {
        run: sized.run,
        further_runs: sized.further_runs.clone(),
        size: sized.size.clone(),
        cpu_limit_cores: sized.limits.cpu_cores,
        memory_limit_bytes: sized.limits.memory_bytes,
        capacity: found.capacity,
        measured,
        binds: found.binds,
        replicas,
        planned,
        replica_cpu_cores: used.replica_cpu_cores,
        replica_memory_bytes: replica_memory,
        cpu_cores: used.cpu_cores,
        memory_bytes: used.memory_bytes,
        monthly_cost: used.monthly_cost,
        expected_cpu_cores,
        expected_monthly_cost,
        capacity_per_day: rps.map(|rps| rps * (1.0 - headroom) * count * SECONDS_PER_DAY),
        utilisation: target / (count * rps.estimate),
        without_one: without_one(asked, replicas.estimate, rps.estimate),
        next_run,
        notes,
    })
}

/// The load that a capacity rests on, as measured.
fn measurement(asked: &Asked<'_>, carried: &MeasuredCell<'_>) -> SizeMeasurement {
    let (cell, usage) = (carried.cell, carried.usage);
    let bounded = asked.objective.times().map(|(metric, _)| metric);
    let usual = [Metric::ResponseTimeP50Us, Metric::ResponseTimeP99Us].map(|metric| metric.under(&cell.load));
    let figures = usual.into_iter().chain(bounded);
    let time = |metric: Metric| {
        let times = cell.times(metric.clock()?)?;
        Some((metric.bound_name()?.to_owned(), times.figure(metric.spoiled_by())?))
    };
    SizeMeasurement {
        offered_rps: cell.load.rate,
        clients: cell.load.clients,
        trials: cell.valid,
        rate_completed: cell.rate_completed,
        response_time_us: figures.filter_map(time).collect(),
        cpu_cores: usage.map(|usage| usage.cpu_cores),
        rps_per_core: usage.and_then(|usage| interval::requests_per_core(&usage.cpu_cores_per_1000_rps)),
        memory_working_set_bytes: usage.and_then(|usage| usage.working_set_bytes),
        memory_bytes: usage.and_then(|usage| usage.memory_bytes),
    }
}

/// CPU, memory and monthly cost of replicas.
struct Used {
    replica_cpu_cores: Option<Estimate>,
    cpu_cores: Option<Estimate>,
    memory_bytes: Option<Estimate>,
    monthly_cost: Option<Estimate>,
}

fn used_by(
    asked: &Asked<'_>,
    sized: &Sized<'_>,
    capacity: &Capacity,
    replicas: &ReplicaCount,
    replica_memory: Option<&Estimate>,
    notes: &mut Vec<SizeNote>,
) -> Used {
    let (replica_cpu_cores, cpu_cores) = cpu(asked, sized, capacity, replicas, notes);
    let memory_bytes = replica_memory.map(|memory| multiplied(replicas, memory));
    let prices = asked.question.prices.as_ref().zip(cpu_cores);
    let cost = |(prices, cores)| monthly_cost(prices, replicas, &cores, memory_bytes.as_ref());
    Used { replica_cpu_cores, cpu_cores, memory_bytes, monthly_cost: prices.map(cost) }
}

/// The same of a fixed number of replicas: intervals are of these figures alone.
fn used_by_fixed(
    asked: &Asked<'_>,
    sized: &Sized<'_>,
    capacity: &Capacity,
    count: u64,
    replica_memory: Option<&Estimate>,
) -> Used {
    let fixed = ReplicaCount { estimate: count, low: Some(count), high: Some(count) };
    used_by(asked, sized, capacity, &fixed, replica_memory, &mut Vec::new())
}

/// The planned number of replicas, and what that number uses and leaves.
fn plan(
    asked: &Asked<'_>,
    sized: &Sized<'_>,
    capacity: &Capacity,
    certain_rps: Option<f64>,
    replica_memory: Option<&Estimate>,
) -> SizePlan {
    let replica_rps = certain_rps.unwrap_or(capacity.rps.estimate);
    // Of a capacity that the runs did not reach, the lower end alone is known.
    let remaining_rps = if capacity.lower_bound { replica_rps } else { capacity.rps.estimate };
    let planned = needed(asked.question, replica_rps);
    let used = used_by_fixed(asked, sized, capacity, planned, replica_memory);
    SizePlan {
        replicas: planned,
        upper_bound: capacity.lower_bound,
        replica_rps,
        cpu_cores: used.cpu_cores,
        memory_bytes: used.memory_bytes,
        monthly_cost: used.monthly_cost,
        utilisation: asked.question.target_rps / (planned as f64 * capacity.rps.estimate),
        without_one: without_one(asked, planned, remaining_rps),
    }
}

/// Points of the standard normal distribution over which costs are averaged, and its quantile at the certain end.
const POINTS: std::ops::RangeInclusive<i32> = -8..=8;
const POINTS_PER_DEVIATION: f64 = 4.0;
const CERTAIN_QUANTILE: f64 = 1.645;

/// CPU and monthly cost of the replicas needed, averaged over the capacity: its logarithm is taken to be normal.
fn expected(
    asked: &Asked<'_>,
    sized: &Sized<'_>,
    capacity: &Capacity,
    certain_rps: Option<f64>,
    replica_memory: Option<&Estimate>,
) -> [Option<f64>; 2] {
    let estimate = capacity.rps.estimate;
    let deviation = certain_rps.map_or(0.0, |certain| (estimate / certain).ln().max(0.0) / CERTAIN_QUANTILE);
    let mut weights: BTreeMap<u64, f64> = BTreeMap::new();
    for point in POINTS {
        let z = f64::from(point) / POINTS_PER_DEVIATION;
        let count = needed(asked.question, estimate * (z * deviation).exp());
        *weights.entry(count).or_default() += (-z * z / 2.0).exp();
    }
    let total: f64 = weights.values().sum();
    let (mut cores, mut cost) = (Some(0.0), Some(0.0));
    for (count, weight) in weights {
        let used = used_by_fixed(asked, sized, capacity, count, replica_memory);
        let add = |sum: Option<f64>, part: Option<Estimate>| Some(sum? + part?.estimate * weight / total);
        (cores, cost) = (add(cores, used.cpu_cores), add(cost, used.monthly_cost));
    }
    [cores, cost]
}

/// Capacity that remains of a number of replicas if one fails.
fn without_one(asked: &Asked<'_>, replicas: u64, rps: f64) -> WithoutOne {
    let (target, headroom) = (asked.question.target_rps, asked.question.headroom);
    let remaining_rps = (replicas as f64 - 1.0) * rps;
    let remaining_rps_with_headroom = remaining_rps * (1.0 - headroom);
    WithoutOne {
        lost: 1.0 / replicas as f64,
        remaining_rps,
        remaining_rps_with_headroom,
        carries_target: remaining_rps >= target,
        carries_target_with_headroom: remaining_rps_with_headroom >= target,
        replicas_with_spare: replicas + 1,
    }
}

/// Replicas of a capacity that carry the target with headroom.
fn needed(question: &SizeQuestion, rps: f64) -> u64 {
    // A target that is a multiple of the capacity must not need another replica because of float rounding.
    let exact = question.target_rps / (rps * (1.0 - question.headroom));
    (exact * (1.0 - 1e-9)).ceil().max(1.0) as u64
}

/// Replicas for the target, at the estimate and at each end of the capacity's interval.
fn replicas(question: &SizeQuestion, rps: &Estimate) -> ReplicaCount {
    let needed = |rps: f64| needed(question, rps);
    let has_interval = rps.low.is_some() || rps.high.is_some();
    ReplicaCount {
        estimate: needed(rps.estimate),
        low: rps.high.map(needed).or(has_interval.then_some(1)),
        high: rps.low.filter(|low| *low > 0.0).map(needed),
    }
}

/// CPU of a replica and of all replicas: the limit, or without one the usage at a replica's share of the
/// target, plus headroom.
fn cpu(
    asked: &Asked<'_>,
    sized: &Sized<'_>,
    capacity: &Capacity,
    replicas: &ReplicaCount,
    notes: &mut Vec<SizeNote>,
) -> (Option<Estimate>, Option<Estimate>) {
    if let Some(limit) = sized.limits.cpu_cores {
        let limit = Estimate { low: Some(limit), high: Some(limit), ..Estimate::single(limit) };
        return (Some(limit), Some(multiplied(replicas, &limit)));
    }
    let (target, headroom) = (asked.question.target_rps, asked.question.headroom);
    let count = replicas.estimate as f64;
    let Some(cpu) = usage::cpu_at(sized, capacity, target / count) else {
        notes.push(SizeNote::new(SizeNoteKind::CpuNotMeasured));
        return (None, None);
    };
    if cpu.is_below_sweep {
        notes.push(SizeNote::new(SizeNoteKind::BelowSweep));
    }
    // The share per replica is as uncertain as their number.
    let others = [replicas.low, replicas.high].into_iter().flatten();
    let others = others.filter_map(|count| usage::cpu_at(sized, capacity, target / count as f64));
    let per_1000_rps = others
        .filter(|other| other.is_measured)
        .fold(cpu.cores_per_1000_rps, |all, other| usage::hull(all, other.cores_per_1000_rps));
    let all = per_1000_rps.map(|cores| cores * target / 1000.0 / (1.0 - headroom));
    (Some(all.map(|cores| cores / count)), Some(all))
}

/// A figure per replica multiplied by their number; an end is set if both have one.
fn multiplied(replicas: &ReplicaCount, each: &Estimate) -> Estimate {
    let ends = |count: Option<u64>, each: Option<f64>| Some(count? as f64 * each?);
    Estimate {
        estimate: replicas.estimate as f64 * each.estimate,
        low: ends(replicas.low, each.low),
        high: ends(replicas.high, each.high),
        n: each.n,
        alone: None,
    }
}

fn monthly_cost(
    prices: &Prices,
    replicas: &ReplicaCount,
    cpu: &Estimate,
    memory: Option<&Estimate>,
) -> Estimate {
    let cost = |cores: f64, bytes: f64, replicas: u64| prices.per_month(cores, bytes, replicas as f64);
    let end = |cores: Option<f64>, bytes: Option<Option<f64>>, count: Option<u64>| {
        Some(cost(cores?, bytes.unwrap_or(Some(0.0))?, count?))
    };
    Estimate {
        estimate: cost(cpu.estimate, memory.map_or(0.0, |memory| memory.estimate), replicas.estimate),
        low: end(cpu.low, memory.map(|memory| memory.low), replicas.low),
        high: end(cpu.high, memory.map(|memory| memory.high), replicas.high),
        n: cpu.n,
        alone: None,
    }
}

/// The option with the least expected cost. Without prices it is the one with the least expected CPU, without
/// CPU the one with the fewest replicas.
pub(super) fn cheapest(options: &[SizeOption]) -> Option<usize> {
    let cost = |option: &SizeOption| {
        option.expected_monthly_cost.or(option.expected_cpu_cores).unwrap_or(f64::INFINITY)
    };
    let by_cost = |one: &usize, other: &usize| {
        let (one, other) = (&options[*one], &options[*other]);
        cost(one).total_cmp(&cost(other)).then(one.planned.replicas.cmp(&other.planned.replicas))
    };
    (0..options.len()).min_by(by_cost)
}

/// Note that the plan of another size costs less than that of the recommended one.
pub(super) fn other_plan_cheaper(options: &[SizeOption], recommended: usize) -> Option<SizeNote> {
    let cost = |option: &SizeOption| {
        let planned = &option.planned;
        planned.monthly_cost.or(planned.cpu_cores).map_or(f64::INFINITY, |cost| cost.estimate)
    };
    let other = options.iter().min_by(|one, other| cost(one).total_cmp(&cost(other)))?;
    let detail = format!("{} of {}", other.planned.replicas, factor_texts(&other.size).join(", "));
    let is_cheaper = cost(other) < cost(&options[recommended]);
    is_cheaper.then(|| SizeNote::naming(SizeNoteKind::OtherPlanCheaper, detail))
}

/// Services that the proxy's filters called, with the CPU of each under the heaviest load that has it.
fn filter_services(group: &Group<'_>) -> Vec<String> {
    let cells = group.options.iter().flat_map(|option| &option.cells).rev();
    let used = cells.flat_map(|cell| &cell.cell.components);
    let mut named: BTreeMap<&str, f64> = BTreeMap::new();
    for service in used.filter(|component| component.role == Role::FilterService) {
        named.entry(&service.name).or_insert(service.cpu_cores_per_1000_rps.estimate);
    }
    let words = |(name, cores): (&str, f64)| format!("{name} ({cores:.2} cores per 1000 requests/s)");
    named.into_iter().map(words).collect()
}

/// Notes that apply to all options of an answer.
pub(super) fn notes_of_all(asked: &Asked<'_>, group: &Group<'_>, options: &[SizeOption]) -> Vec<SizeNote> {
    let mut notes = Vec::new();
    let cells = group.options.iter().flat_map(|option| &option.cells);
    let measured = cells.filter_map(|cell| Some(cell.cell.rate_completed?.estimate)).fold(0.0, f64::max);
    if options.iter().any(|option| option.replicas.estimate > 1) && asked.question.target_rps > measured {
        notes.push(SizeNote::naming(SizeNoteKind::TargetBeyondSweep, format!("{measured:.0}")));
    }
    let mut differing: Vec<&str> = group
        .options
        .iter()
        .filter(|option| option.run != group.options[0].run)
        .flat_map(|option| differing_sections(group.options[0].experiment, option.experiment))
        .collect();
    differing.sort_unstable();
    differing.dedup();
    if !differing.is_empty() {
        notes.push(SizeNote::naming(SizeNoteKind::MixedSettings, differing.join(", ")));
    }
    if asked.question.prices.as_ref().is_some_and(|prices| prices.currency.is_empty()) {
        notes.push(SizeNote::new(SizeNoteKind::NoCurrency));
    }
    let filter_services = filter_services(group);
    if !filter_services.is_empty() {
        notes.push(SizeNote::naming(SizeNoteKind::FilterServices, filter_services.join(", ")));
    }
    if group.has_several_services {
        notes.push(SizeNote::new(SizeNoteKind::SeveralServices));
    }
    notes
}

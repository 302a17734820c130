//! One size of replica: how many are needed, what they use, what they cost, and what remains without one.

use super::groups::{Group, Sized};
use super::settings::differing_sections;
use super::{Asked, SECONDS_PER_DAY, capacity, usage};
use results::{Estimate, Prices, ReplicaCount, Role, SizeNote, SizeNoteKind, SizeOption, WithoutOne};
use std::collections::BTreeMap;

/// Hours per month: 365 days of 24 hours, over twelve.
pub(crate) const HOURS_PER_MONTH: f64 = 730.0;

/// The option, or why this size is not one.
pub(super) fn option(
    asked: &Asked<'_>,
    group: &Group<'_>,
    sized: &Sized<'_>,
) -> Result<SizeOption, SizeNote> {
    let found = capacity::capacity(&asked.objective, sized)?;
    let (target, headroom) = (asked.question.target_rps, asked.question.headroom);
    let rps = found.capacity.rps;
    let replicas = replicas(target, &rps, headroom);
    let mut notes = found.notes;
    let count = replicas.estimate as f64;
    let (replica_cpu, cpu) = cpu(asked, sized, &replicas, &mut notes);
    let replica_memory = usage::memory(sized, &found.capacity);
    if replica_memory.is_none() {
        notes.push(SizeNote::new(SizeNoteKind::MemoryNotMeasured));
    }
    let memory = replica_memory.map(|memory| multiplied(&replicas, &memory));
    let cost = asked.question.prices.as_ref();
    let cost = cost.and_then(|prices| Some(monthly_cost(prices, &replicas, &cpu?, memory.as_ref())));
    let remaining_rps = (count - 1.0) * rps.estimate;
    if group.component.ends_with("ztunnel") {
        notes.push(SizeNote::new(SizeNoteKind::SharedPerNode));
    }
    Ok(SizeOption {
        run: sized.run,
        further_runs: sized.further_runs.clone(),
        size: sized.size.clone(),
        cpu_limit_cores: sized.limits.cpu_cores,
        memory_limit_bytes: sized.limits.memory_bytes,
        capacity: found.capacity,
        binds: found.binds,
        replicas,
        replica_cpu_cores: replica_cpu,
        replica_memory_bytes: replica_memory,
        cpu_cores: cpu,
        memory_bytes: memory,
        monthly_cost: cost,
        capacity_per_day: rps.map(|rps| rps * (1.0 - headroom) * count * SECONDS_PER_DAY),
        utilisation: target / (count * rps.estimate),
        without_one: WithoutOne {
            lost: 1.0 / count,
            remaining_rps,
            carries_target: remaining_rps >= target,
            replicas_with_spare: replicas.estimate + 1,
        },
        notes,
    })
}

/// Replicas for a target rate, rounded up at the estimate and at each end of the capacity's interval.
fn replicas(target: f64, rps: &Estimate, headroom: f64) -> ReplicaCount {
    let needed = |rps: f64| {
        // A target that is a multiple of the capacity must not need another replica because of float
        // rounding.
        let exact = target / (rps * (1.0 - headroom));
        (exact * (1.0 - 1e-9)).ceil().max(1.0) as u64
    };
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
    replicas: &ReplicaCount,
    notes: &mut Vec<SizeNote>,
) -> (Option<Estimate>, Option<Estimate>) {
    if let Some(limit) = sized.limits.cpu_cores {
        let limit = Estimate { low: Some(limit), high: Some(limit), ..Estimate::single(limit) };
        return (Some(limit), Some(multiplied(replicas, &limit)));
    }
    let (target, headroom) = (asked.question.target_rps, asked.question.headroom);
    let count = replicas.estimate as f64;
    let Some(cpu) = usage::cpu_at(sized, target / count) else {
        notes.push(SizeNote::new(SizeNoteKind::CpuNotMeasured));
        return (None, None);
    };
    if cpu.is_below_sweep {
        notes.push(SizeNote::new(SizeNoteKind::BelowSweep));
    }
    // The share per replica is as uncertain as their number.
    let others = [replicas.low, replicas.high].into_iter().flatten();
    let others = others.filter_map(|count| usage::cpu_at(sized, target / count as f64));
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
    }
}

fn monthly_cost(
    prices: &Prices,
    replicas: &ReplicaCount,
    cpu: &Estimate,
    memory: Option<&Estimate>,
) -> Estimate {
    let cost = |cores: f64, bytes: f64, replicas: u64| {
        let per_hour = cores * prices.cpu_hour
            + bytes / 1e9 * prices.gb_hour
            + replicas as f64 * prices.per_replica_hour;
        per_hour * HOURS_PER_MONTH
    };
    let end = |cores: Option<f64>, bytes: Option<Option<f64>>, count: Option<u64>| {
        Some(cost(cores?, bytes.unwrap_or(Some(0.0))?, count?))
    };
    Estimate {
        estimate: cost(cpu.estimate, memory.map_or(0.0, |memory| memory.estimate), replicas.estimate),
        low: end(cpu.low, memory.map(|memory| memory.low), replicas.low),
        high: end(cpu.high, memory.map(|memory| memory.high), replicas.high),
        n: cpu.n,
    }
}

/// The cheapest option. Without prices it is the one with the least CPU, without CPU the one with the fewest
/// replicas.
pub(super) fn cheapest(options: &[SizeOption]) -> Option<usize> {
    let figure = |option: &SizeOption| {
        let cost = option.monthly_cost.or(option.cpu_cores).map(|estimate| estimate.estimate);
        (cost.unwrap_or(f64::INFINITY), option.replicas.estimate)
    };
    let by_figure = |one: &usize, other: &usize| {
        let (one, other) = (figure(&options[*one]), figure(&options[*other]));
        one.0.total_cmp(&other.0).then(one.1.cmp(&other.1))
    };
    (0..options.len()).min_by(by_figure)
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
    let filter_services = filter_services(group);
    if !filter_services.is_empty() {
        notes.push(SizeNote::naming(SizeNoteKind::FilterServices, filter_services.join(", ")));
    }
    if group.has_several_services {
        notes.push(SizeNote::new(SizeNoteKind::SeveralServices));
    }
    notes
}

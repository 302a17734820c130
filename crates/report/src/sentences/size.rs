//! Text of the answer of `meshmeter size`: its formula, what it rests on, and what the runs do not support.

use crate::format::{self, SizeUnit};
use crate::size::figure;
use results::{
    BindingResource, CapacityBasis, Clock, ComponentVersion, Estimate, Prices, PublishedFigure, SizeAnswer,
    SizeMachine, SizeMeasurement, SizeNote, SizeNoteKind, SizeOption, SizeQuestion, SizeResult, factor_texts,
    with_factors,
};
use statistics::words;

/// The formula, one line per figure. Every input is in the result.
const FORMULA: [&str; 9] = [
    "replicas = ⌈target ÷ (capacity of a replica × (1 − headroom))⌉; its interval has the capacity's upper end, then its lower end",
    "planned replicas = ⌈target ÷ (one-sided 95 % lower end of the capacity × (1 − headroom))⌉; tables and costs are of the plan; an upper bound where the runs did not reach the capacity",
    "cheapest = least expected cost: of the replicas needed, averaged over the interval of the capacity",
    "CPU of a replica = its CPU limit; without one CPU per request at its share of the target × that share ÷ (1 − headroom)",
    "memory of a replica = measured working set at its capacity; its interval reaches to the first load that is not carried",
    "CPU, memory = replicas × that of a replica",
    "requests per day = target × 86 400 s",
    "monthly cost = (CPU × cpu-hour + memory in GB of 10⁹ bytes × gb-hour + replicas × per-replica-hour) × 730 h",
    "without one replica = (replicas − 1) × capacity of a replica, or its lower end where the runs did not reach it; with headroom × (1 − headroom)",
];

/// Kinds of noise that `--accept-noise` accepts.
const NOISE: [&str; 3] = ["other-processes", "steal", "schedule-lag"];

/// Sets the texts of a result.
pub fn fill_size(result: &mut SizeResult) {
    result.formula = FORMULA.map(str::to_owned).to_vec();
    for answer in &mut result.answers {
        answer.counted = counted(answer);
    }
    let asked = result.asked.clone();
    let notes = result.refusals.iter_mut().chain(result.answers.iter_mut().flat_map(|answer| {
        let of_options = answer.options.iter_mut().flat_map(|option| &mut option.notes);
        answer.notes.iter_mut().chain(of_options)
    }));
    for note in notes.chain(&mut result.notes) {
        note.text = text(note, &asked);
    }
    let is_of_noise = |refusal: &&mut SizeNote| {
        let detail = refusal.detail.as_deref().unwrap_or_default();
        refusal.kind == SizeNoteKind::NoValidTrial && NOISE.iter().any(|kind| detail.contains(kind))
    };
    for refusal in result.refusals.iter_mut().filter(is_of_noise).filter(|_| !asked.accept_noise) {
        refusal.text += " `--accept-noise` also uses trials that noise of the machine disturbed.";
    }
}

pub(crate) fn text(note: &SizeNote, asked: &SizeQuestion) -> String {
    let detail = note.detail.as_deref().unwrap_or_default();
    let target = words::rate(asked.target_rps);
    match note.kind {
        SizeNoteKind::MixedMachines => {
            format!("The runs are of different machines, and a capacity holds for one machine: {detail}.")
        }
        SizeNoteKind::CutShort => cut_short(detail),
        SizeNoteKind::NoiseAccepted => noise_accepted(detail),
        SizeNoteKind::NotMeasured => format!("The runs did not measure {detail}."),
        SizeNoteKind::NoValidTrial => format!("No trial can be used: {detail}."),
        SizeNoteKind::ObjectiveNeverMet => {
            format!("The objective is missed at every measured load: {detail}.")
        }
        SizeNoteKind::ObjectiveNotShown => format!(
            "No measured load is shown to meet the objective: {detail}. More repeats make intervals narrower, lower loads may meet it."
        ),
        SizeNoteKind::TargetBeyondSweep => format!(
            "Target beyond the sweep: the run measured at most {detail} requests/s in all, not {target}. N replicas are \
             assumed to carry N times what one carries; load balancing and shared resources were not measured."
        ),
        SizeNoteKind::SweepEnded => {
            "The highest measured load is carried: a replica may carry more, which the run does not show.".to_owned()
        }
        SizeNoteKind::BelowSweep => {
            "Each replica's share of the target is under the lowest measured rate: its CPU per request is that of the lowest."
                .to_owned()
        }
        SizeNoteKind::NoObjective => {
            "No objective: the capacity is throughput alone, at any response time (--objective p99=20ms bounds it)."
                .to_owned()
        }
        SizeNoteKind::NotMonotone => {
            format!("The objective is missed at {detail} and met at a higher load: response times vary for another reason.")
        }
        SizeNoteKind::MoreClientsCarryLess => {
            format!("More clients carry less ({detail}): the capacity is the greatest throughput, not that of most clients.")
        }
        SizeNoteKind::PublishedDiffers => format!(
            "Warning: {detail}. Compare programs, filters and load with those of the source before relying on this answer."
        ),
        SizeNoteKind::OtherPlanCheaper => {
            format!("The plan of another size costs less: {detail}. The recommended one costs less on average over the intervals.")
        }
        SizeNoteKind::NoCurrency => {
            "The prices name no currency (--currency, or `currency` in the file of --prices).".to_owned()
        }
        SizeNoteKind::GeneratorLimited => {
            "The generator limits the throughput: a replica may carry more.".to_owned()
        }
        SizeNoteKind::MachineFull => {
            "All CPUs of the machine were busy: generator, service and proxies share them, and a replica of its own may carry more."
                .to_owned()
        }
        SizeNoteKind::SingleTrial => "One valid trial alone: no interval.".to_owned(),
        SizeNoteKind::CpuNotMeasured => "CPU was not measured, and the run sets no limit.".to_owned(),
        SizeNoteKind::MemoryNotMeasured => "Memory was not measured: it is in no figure.".to_owned(),
        SizeNoteKind::SharedPerNode => {
            "A ztunnel serves all pods of a node: each node has one, and here one carried both sides of each request.".to_owned()
        }
        SizeNoteKind::SeveralServices => {
            "Requests are those of the drivers; each becomes calls between several services.".to_owned()
        }
        SizeNoteKind::FilterServices => {
            format!("Services that its filters call use CPU of their own and are in no figure: {detail}.")
        }
        SizeNoteKind::MixedComponents => format!("The runs have different versions of components: {detail}."),
        SizeNoteKind::MixedSettings => format!(
            "The runs have different settings ({detail}): each size holds for those of its own run, which --json names."
        ),
        SizeNoteKind::SizeLeftOut => format!("Left out: {detail}."),
        SizeNoteKind::NotPriced => format!(
            "Mode {detail} has other proxies than those of pods, nodes and namespaces: `meshmeter size` answers for them."
        ),
        SizeNoteKind::FarBeyondMeasured => format!(
            "Warning: the answer is far beyond what was measured, and its intervals do not cover the way there: {detail}. \
             Runs at two larger scales bring it nearer."
        ),
    }
}

/// Note on runs that lack planned trials.
pub(super) fn cut_short(detail: &str) -> String {
    format!("Run cut short: {detail}. The answer is from the recorded trials alone.")
}

/// Note on trials that the machine disturbed and that count all the same.
pub(super) fn noise_accepted(detail: &str) -> String {
    format!("Noise accepted: figures include trials that noise of the machine disturbed, {detail}.")
}

/// The question that the answer is about, and its scope.
#[must_use]
pub fn size_opening(result: &SizeResult) -> String {
    let asked = &result.asked;
    let objective = match &asked.objective {
        Some(objective) if asked.objective_of_experiment => format!("objective of the run {objective}"),
        Some(objective) => format!("objective {objective}"),
        None => "no objective".to_owned(),
    };
    format!(
        "{} ({} requests per day), {objective}, headroom {}.{}",
        words::rate(asked.target_rps),
        large(result.requests_per_day),
        format::percent(asked.headroom),
        measured_on(result.machine.as_ref())
    )
}

/// Sentence on the machine of all runs, after a space; empty if it is not known.
pub(crate) fn measured_on(machine: Option<&SizeMachine>) -> String {
    machine.map_or_else(String::new, |machine| {
        let (model, cpus, kernel) = (&machine.cpu_model, machine.cpus, &machine.kernel);
        format!(" Measured on {model}, {cpus} CPUs, Linux {kernel}.")
    })
}

/// Example: `4.32 billion`.
fn large(number: f64) -> String {
    let (unit, size) = match number {
        1e9.. => (" billion", 1e9),
        1e6.. => (" million", 1e6),
        _ => ("", 1.0),
    };
    format!("{}{unit}", format::digits(number / size))
}

/// Component, mode and load of an answer: `gateway in mode ingress, ingress.scenario waf: HTTP/1.1, 1 KiB
/// responses, 50 connections`. In a closed loop each number of clients has connections of its own.
#[must_use]
pub fn size_place(answer: &SizeAnswer) -> String {
    let proxies = if answer.proxies > 1 { format!(" ({})", answer.proxies) } else { String::new() };
    let is_closed_loop = answer.options.iter().all(|option| option.measured.clients.is_some());
    let connections = match is_closed_loop {
        true => String::new(),
        false => format!(", {}", format::counted(answer.connections as u64, "connection", "connections")),
    };
    let place =
        with_factors(format!("{}{proxies} in mode {}", answer.component, answer.mode), &answer.factors);
    format!("{place}: {}, {} responses{connections}", answer.protocol, format::payload(answer.payload_bytes))
}

/// A size as text: `gateway.cpu 2`, or `no limit`.
#[must_use]
pub fn size_name(option: &SizeOption) -> String {
    let values = factor_texts(&option.size);
    if !values.is_empty() {
        return values.join(", ");
    }
    option.cpu_limit_cores.map_or_else(|| "no limit".to_owned(), format::cores)
}

/// The binding resource, as a word for a table.
#[must_use]
pub fn binding(option: &SizeOption) -> &'static str {
    match option.binds {
        BindingResource::Cpu => "CPU",
        BindingResource::Memory => "memory",
        BindingResource::Objective => "objective",
        BindingResource::Generator => "generator",
        BindingResource::Machine => "machine",
        BindingResource::Load if option.capacity.basis == CapacityBasis::HighestRate => "rates measured",
        BindingResource::Load => "clients",
        BindingResource::Contention => "contention",
        BindingResource::Unknown => "not shown",
    }
}

/// Sentence about the recommended option: the planned number, what it uses and costs.
#[must_use]
pub fn size_recommendation(result: &SizeResult, answer: &SizeAnswer) -> Option<String> {
    let option = answer.recommendation()?;
    let planned = &option.planned;
    let at_most = if planned.upper_bound { "at most " } else { "" };
    let replicas = format!("{at_most}{}", format::counted(planned.replicas, "replica", "replicas"));
    let size = if option.size.is_empty() { String::new() } else { format!(" of {}", size_name(option)) };
    let estimate = format::count(option.replicas.estimate);
    let range = match (option.replicas.low, option.replicas.high) {
        _ if planned.upper_bound => {
            format!(" (the runs did not reach what a replica carries: {} or more)", rate(planned.replica_rps))
        }
        (Some(low), Some(high)) if low != high => {
            format!(" ({estimate} by the estimate, {low}–{high} by its interval)")
        }
        _ => String::new(),
    };
    let mut uses = Vec::new();
    uses.extend(planned.cpu_cores.as_ref().map(|cores| with_unit(cores, 1.0, "cores")));
    uses.extend(planned.memory_bytes.as_ref().map(|memory| {
        let unit = SizeUnit::for_sizes([memory.estimate]);
        with_unit(memory, unit.bytes(), unit.symbol())
    }));
    uses.extend(planned.monthly_cost.as_ref().map(|cost| {
        let currency = currency(result.asked.prices.as_ref(), "");
        let no_currency = if currency.is_empty() { " (no currency given)" } else { "" };
        format!("{} per month{no_currency}", with_unit(cost, 1.0, &currency))
    }));
    let uses = if uses.is_empty() { String::new() } else { format!(": {}", uses.join(", ")) };
    let choice = match (answer.options.len(), planned.monthly_cost.is_some()) {
        (1, _) => "Needed",
        (_, true) => "Cheapest",
        (_, false) => "Least CPU",
    };
    Some(format!("{choice}: {replicas}{size}{range}{uses}."))
}

/// A figure with its unit before the interval: `77.1 MB (75.8–78.4)`.
fn with_unit(estimate: &Estimate, unit_size: f64, unit: &str) -> String {
    let text = figure(Some(estimate), unit_size);
    let (value, range) = text.split_at(text.find(" (").unwrap_or(text.len()));
    let space = if unit.is_empty() { "" } else { " " };
    format!("{value}{space}{unit}{range}")
}

/// Rate that the planned replicas of the recommended option carry without one of them, and whether it is enough: by the lower
/// end of the capacity, or else by the estimate.
#[must_use]
pub fn size_without_one(result: &SizeResult, answer: &SizeAnswer) -> Option<String> {
    let planned = &answer.recommendation()?.planned;
    let without = &planned.without_one;
    let headroom = result.asked.headroom;
    if planned.replicas == 1 {
        return Some("Without it, nothing is left.".to_owned());
    }
    let remaining = planned.replicas - 1;
    let carry = if remaining == 1 { "carries" } else { "carry" };
    let kept = if headroom > 0.0 {
        let kept = beside(without.remaining_rps_with_headroom, result.asked.target_rps);
        format!(", {kept} with headroom {}", format::percent(headroom))
    } else {
        String::new()
    };
    let is_certain = remaining as f64 * planned.replica_rps >= result.asked.target_rps;
    let target = match (without.carries_target, without.carries_target_with_headroom) {
        (false, _) if planned.upper_bound => "not shown to be enough for the target",
        (false, _) => "less than the target",
        _ if !is_certain => "enough for the target by the estimate alone",
        (true, true) => "enough for the target",
        (true, false) => "enough for the target without headroom",
    };
    let or_more = if planned.upper_bound { " or more" } else { "" };
    Some(format!(
        "Without one, {} {carry} {}{or_more}{kept}: {target}.",
        format::count(remaining),
        beside(without.remaining_rps, result.asked.target_rps)
    ))
}

/// Advice on the run that finds what a replica carries, if the given ones did not reach it.
#[must_use]
pub fn size_next_run(answer: &SizeAnswer) -> Option<String> {
    let option = answer.recommendation().filter(|option| option.planned.upper_bound)?;
    Some(match &option.next_run {
        Some(command) => format!("To find what a replica carries: `{command}`"),
        None => "To find what a replica carries, measure on a machine with more CPUs.".to_owned(),
    })
}

/// A rate beside the target, rounded only as far as what is said of both stays true.
fn beside(rps: f64, target_rps: f64) -> String {
    format!("{} requests/s", beside_number(rps, target_rps))
}

/// A rate without its unit: [`beside`].
pub(crate) fn beside_number(rps: f64, target_rps: f64) -> String {
    let text = format::digits(rps);
    let shown: f64 = text.parse().unwrap_or(rps);
    match (rps < target_rps, shown < target_rps.round()) {
        (true, true) | (false, false) => text,
        (true, false) => format!("{:.0}", rps.floor()),
        (false, true) => format!("{:.0}", rps.ceil()),
    }
}

/// A rate with the digits that tables have.
fn rate(rate: f64) -> String {
    format!("{} requests/s", format::digits(rate))
}

/// The currency of the prices after a separator; empty without a currency or prices.
#[must_use]
pub fn currency(prices: Option<&Prices>, separator: &str) -> String {
    match prices {
        Some(prices) if !prices.currency.is_empty() => format!("{separator}{}", prices.currency),
        _ => String::new(),
    }
}

/// CPU and memory that an answer counts.
fn counted(answer: &SizeAnswer) -> String {
    let whose = match answer.proxies {
        1 => format!("the {} alone", answer.component),
        proxies => format!("the {proxies} proxies of a replica"),
    };
    let has_limit = answer.options.iter().all(|option| option.cpu_limit_cores.is_some());
    let cpu = if has_limit { "CPU is the limit" } else { "CPU is the usage at the share of the target" };
    let of_working_set = |option: &SizeOption| option.measured.memory_working_set_bytes.is_some();
    let memory = if answer.options.iter().all(of_working_set) {
        "the working set (of its cgroup, without inactive pages of files)"
    } else {
        "resident memory"
    };
    format!("{cpu} and memory {memory}, of {whose}: no generator, service, control plane or other proxy.")
}

/// Basis of the recommended option: measurement, counted resources, programs and filters, published figures.
#[must_use]
pub fn size_basis(result: &SizeResult, answer: &SizeAnswer) -> Vec<String> {
    let rests_on = answer.recommendation().map(|option| {
        let runs = option.further_runs.iter().copied().chain([option.run]);
        let runs: Vec<String> =
            runs.filter_map(|run| Some(result.runs.get(run)?.directory.clone())).collect();
        let missed = option.capacity.missed_clients.map(words::clients);
        let missed = missed.or(option.capacity.missed_rps.map(words::rate));
        let missed = missed.map(|load| format!("; {load}: not carried")).unwrap_or_default();
        let completed = option.measured.rate_completed.map_or(f64::INFINITY, |rate| rate.estimate);
        let between = match option.capacity.rps.estimate > completed * (1.0 + 1e-9) && !missed.is_empty() {
            true => "; the estimate is interpolated between them",
            false => "",
        };
        format!(
            "Rests on {} ({}, {}){missed}{between}.",
            measurement(&option.measured),
            format::counted(option.measured.trials as u64, "valid trial", "valid trials"),
            runs.join(", ")
        )
    });
    let programs: Vec<String> = answer.programs.iter().map(program).collect();
    let filters = match answer.filters.is_empty() {
        true => String::new(),
        false => format!(" Filters and settings: {}.", answer.filters.join(", ")),
    };
    let mut basis: Vec<String> = rests_on.into_iter().collect();
    basis.push(format!("Counted: {}", answer.counted));
    if !programs.is_empty() {
        basis.push(format!("Programs: {}.{filters}", programs.join(", ")));
    }
    basis.extend(answer.published.chunk_by(|one, other| one.source == other.source).map(published));
    basis
}

/// A measured load with the figures under it.
fn measurement(measured: &SizeMeasurement) -> String {
    let offered = measured.offered_rps.map(|rate| format!("{} offered", words::rate(rate)));
    let mut parts: Vec<String> = offered.or(measured.clients.map(words::clients)).into_iter().collect();
    parts.extend(
        measured.rate_completed.as_ref().map(|rate| format!("{} completed", words::rate_interval(rate))),
    );
    let times = Clock::BOUNDED.into_iter().filter_map(Clock::bound_names).flatten().filter_map(|name| {
        let time = measured.response_time_us.get(name)?;
        Some(format!("{name} {}", words::latency(time)))
    });
    parts.extend(times);
    parts.extend(measured.cpu_cores.as_ref().map(words::cores));
    parts.extend(
        measured.rps_per_core.as_ref().map(|rate| format!("{} per core", words::rate_interval(rate))),
    );
    parts.extend(
        measured.memory_working_set_bytes.as_ref().map(|set| format!("working set {}", words::memory(set))),
    );
    parts.extend(measured.memory_bytes.as_ref().map(|bytes| format!("resident {}", words::memory(bytes))));
    parts.join(", ")
}

fn program(version: &ComponentVersion) -> String {
    let digest = version.sha256.as_deref().map(|digest| format!(" ({})", format::shortened_digest(digest)));
    format!("{} {}{}", version.name, version.version, digest.unwrap_or_default())
}

/// Figures of one source beside those of the run.
fn published(figures: &[PublishedFigure]) -> String {
    let beside = figures.iter().map(|figure| {
        let here = figure.measured.as_deref().unwrap_or(format::ABSENT);
        let ratio = figure.ratio.map(|ratio| format!(", {} times", format::digits(ratio)));
        format!("{}: {}, here {here}{}", figure.what, figure.value, ratio.unwrap_or_default())
    });
    let beside = beside.collect::<Vec<_>>().join("; ");
    let differs = figures[0].differs.trim_end_matches('.');
    let differs = if differs.is_empty() { String::new() } else { format!(" Differences: {differs}.") };
    format!("Published ({}): {beside}.{differs}", figures[0].source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_without_a_usable_trial_are_refused_with_the_reason() {
        let said = |detail: &str| {
            text(&SizeNote::naming(SizeNoteKind::NoValidTrial, detail), &SizeQuestion::default())
        };
        assert_eq!(said("no trial was recorded"), "No trial can be used: no trial was recorded.");
        assert_eq!(
            said("a sidecar in mode sidecar: other-processes"),
            "No trial can be used: a sidecar in mode sidecar: other-processes."
        );
    }

    #[test]
    fn units_are_before_intervals() {
        let figure = Estimate { estimate: 77.1e6, low: Some(75.8e6), high: Some(78.4e6), n: 2, alone: None };
        assert_eq!(with_unit(&figure, 1e6, "MB"), "77.1 MB (75.8–78.4)");
        assert_eq!(with_unit(&figure, 1e6, ""), "77.1 (75.8–78.4)");
        assert_eq!(with_unit(&Estimate::single(1.5), 1.0, "cores"), "1.50 cores");
    }

    #[test]
    fn rates_beside_a_target_are_rounded_only_as_far_as_the_comparison_stays_true() {
        let shown = |rps: f64| beside_number(rps, 50_000.0);
        assert_eq!(shown(49_950.0), "49950");
        assert_eq!(shown(49_999.6), "49999");
        assert_eq!(shown(50_049.0), "50000");
        assert_eq!(shown(48_321.0), "48300");
        assert_eq!(beside_number(49_960.0, 49_955.0), "50000");
        assert_eq!(beside_number(74_960.0, 74_980.0), "74960");
        assert_eq!(beside_number(74_940.0, 74_930.0), "74940");
    }
}

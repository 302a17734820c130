//! Text of the answer of `meshmeter size`: its formula, and what the runs do not support.

use crate::format;
use results::{
    BindingResource, CapacityBasis, SizeAnswer, SizeNote, SizeNoteKind, SizeOption, SizeQuestion, SizeResult,
};
use statistics::words;

/// The formula, one line per figure. Every input is in the result.
const FORMULA: [&str; 7] = [
    "replicas = ⌈target ÷ (capacity of a replica × (1 − headroom))⌉; its interval has the capacity's upper end, then its lower end",
    "CPU of a replica = its CPU limit; without one CPU per request at its share of the target × that share ÷ (1 − headroom)",
    "memory of a replica = measured working set at its capacity; its interval reaches to the first load that is not carried",
    "CPU, memory = replicas × that of a replica",
    "requests per day = target × 86 400 s",
    "monthly cost = (CPU × cpu-hour + memory in GB of 10⁹ bytes × gb-hour + replicas × per-replica-hour) × 730 h",
    "without one replica = (replicas − 1) × capacity of a replica, no headroom kept",
];

/// Sets the texts of a result.
pub fn fill_size(result: &mut SizeResult) {
    result.formula = FORMULA.map(str::to_owned).to_vec();
    let asked = result.asked.clone();
    let notes = result.refusals.iter_mut().chain(result.answers.iter_mut().flat_map(|answer| {
        let of_options = answer.options.iter_mut().flat_map(|option| &mut option.notes);
        answer.notes.iter_mut().chain(of_options)
    }));
    for note in notes {
        note.text = text(note, &asked);
    }
}

fn text(note: &SizeNote, asked: &SizeQuestion) -> String {
    let detail = note.detail.as_deref().unwrap_or_default();
    let target = words::rate(asked.target_rps);
    match note.kind {
        SizeNoteKind::MixedMachines => {
            format!("The runs are of different machines, and a capacity holds on its own: {detail}.")
        }
        SizeNoteKind::NotMeasured => format!("The runs did not measure {detail}."),
        SizeNoteKind::NoValidTrial => format!("No trial can be used for {detail}."),
        SizeNoteKind::ObjectiveNeverMet => {
            format!("The objective is missed at every measured load: {detail}.")
        }
        SizeNoteKind::ObjectiveNotShown => format!(
            "No measured load is shown to meet the objective: {detail}. More repeats make intervals narrower, lower loads may meet it."
        ),
        SizeNoteKind::TargetBeyondSweep => format!(
            "Target beyond the sweep: the run measured at most {detail} requests/s in all, not {target}. Replicas are taken to \
             carry N times what one does; load balancing, and what they share, was not measured."
        ),
        SizeNoteKind::SweepEnded => {
            "The highest measured load is carried: a replica may carry more, which the run does not show.".to_owned()
        }
        SizeNoteKind::BelowSweep => {
            "Each replica's share of the target is under the lowest measured rate: its CPU per request is that of the lowest."
                .to_owned()
        }
        SizeNoteKind::NoObjective => {
            "No objective: the capacity is throughput alone, at whatever response time (--objective p99=20ms bounds it)."
                .to_owned()
        }
        SizeNoteKind::NotMonotone => {
            format!("The objective is missed at {detail} and met at a higher load: response times vary for another reason.")
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
            format!("Services that its filters ask are in no figure, and take CPU of their own: {detail}.")
        }
        SizeNoteKind::MixedComponents => format!("The runs have different versions of components: {detail}."),
        SizeNoteKind::MixedSettings => format!(
            "The runs have different settings ({detail}): each size holds for those of its own run, named at it in --json."
        ),
        SizeNoteKind::SizeLeftOut => format!("Left out: {detail}."),
    }
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
    let machine = result.machine.as_ref().map_or_else(String::new, |machine| {
        let (model, cpus, kernel) = (&machine.cpu_model, machine.cpus, &machine.kernel);
        format!(" Measured on {model}, {cpus} CPUs, Linux {kernel}.")
    });
    format!(
        "{} ({} requests per day), {objective}, headroom {}.{machine}",
        words::rate(asked.target_rps),
        large(result.requests_per_day),
        format::percent(asked.headroom)
    )
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
/// responses, 50 connections`.
#[must_use]
pub fn size_place(answer: &SizeAnswer) -> String {
    let factors = answer.factors.iter().map(|(key, value)| format!(", {key} {value}")).collect::<String>();
    let proxies = if answer.proxies > 1 { format!(" ({})", answer.proxies) } else { String::new() };
    format!(
        "{}{proxies} in mode {}{factors}: {}, {} responses, {}",
        answer.component,
        answer.mode,
        answer.protocol,
        format::payload(answer.payload_bytes),
        format::counted(answer.connections as u64, "connection", "connections")
    )
}

/// A size as text: `gateway.cpu 2`, or `no limit`.
#[must_use]
pub fn size_name(option: &SizeOption) -> String {
    let values: Vec<String> = option.size.iter().map(|(key, value)| format!("{key} {value}")).collect();
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
        BindingResource::Unknown => "not shown",
    }
}

/// Sentence about the recommended option.
#[must_use]
pub fn size_recommendation(result: &SizeResult, answer: &SizeAnswer) -> Option<String> {
    let option = answer.recommendation()?;
    let replicas = format::counted(option.replicas.estimate, "replica", "replicas");
    let range = match (option.replicas.low, option.replicas.high) {
        (Some(low), Some(high)) if low != high => format!(" ({low}–{high})"),
        _ => String::new(),
    };
    let size = if option.size.is_empty() { String::new() } else { format!(" of {}", size_name(option)) };
    let mut uses = Vec::new();
    uses.extend(option.cpu_cores.as_ref().map(words::cores));
    uses.extend(option.memory_bytes.as_ref().map(words::memory));
    let uses = if uses.is_empty() { String::new() } else { format!(", {}", uses.join(", ")) };
    let cost = option.monthly_cost.map(|cost| format!(", {} per month", money(result, &cost)));
    let choice = match (answer.options.len(), option.monthly_cost.is_some()) {
        (1, _) => "Needed",
        (_, true) => "Cheapest",
        (_, false) => "Least CPU",
    };
    let lost = format::percent(option.without_one.lost);
    let without_one = match option.without_one.carries_target {
        _ if option.replicas.estimate == 1 => "without it nothing is left".to_owned(),
        true => format!("one fewer is {lost} of the capacity, and carries the target"),
        false => format!("one fewer is {lost} of the capacity, and does not carry the target"),
    };
    Some(format!("{choice}: {replicas}{range}{size}{uses}{}; {without_one}.", cost.unwrap_or_default()))
}

/// An amount with its interval and currency.
#[must_use]
pub fn money(result: &SizeResult, amount: &results::Estimate) -> String {
    let currency = result.asked.prices.as_ref().map(|prices| prices.currency.as_str()).unwrap_or_default();
    format::Interval::new(amount).text_with_unit(currency)
}

/// How the answer varies with the size of a replica; `None` if only one size was measured.
#[must_use]
pub fn size_comparison(result: &SizeResult, answer: &SizeAnswer) -> Option<String> {
    let (smallest, largest) = (answer.options.first()?, answer.options.last()?);
    if answer.options.len() < 2 {
        return None;
    }
    let told = |option: &SizeOption| {
        let cost = option.monthly_cost.map(|cost| format!(", {} per month", money(result, &cost)));
        let cores = option.cpu_cores.map(|cores| format!(", {}", format::cores(cores.estimate)));
        format!(
            "{} of {}{}{} (one is {} of the capacity)",
            format::count(option.replicas.estimate),
            size_name(option),
            cores.unwrap_or_default(),
            cost.unwrap_or_default(),
            format::percent(option.without_one.lost)
        )
    };
    Some(format!("Many small or few big: {}; {}.", told(smallest), told(largest)))
}

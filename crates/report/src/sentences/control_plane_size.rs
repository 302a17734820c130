//! Text of the answer of `meshmeter size --control-plane`.

use super::control_plane_model::bytes;
use crate::format::{self, Interval, SizeUnit};
use results::{
    AskedChange, ControlPlaneAnswer, ControlPlaneNote, ControlPlaneNoteKind, ControlPlaneQuestion,
    ControlPlaneSize, Estimate, IstiodCount, with_factors,
};

/// The formula, one line per figure. The coefficients are in a run's `summary.json`, under
/// `control_plane_model`.
const FORMULA: [&str; 7] = [
    "configuration of a proxy = constant + per visible service + per visible pod; with scoping a namespace's share is visible",
    "bytes and pushes of a change, per affected proxy = as measured for its kind: of endpoints constant + per pod of a service, of others constant + per byte of configuration",
    "CPU = constant + per byte/s × bytes/s + per push/s × pushes/s; both = sum over the kinds of changes/s × affected proxies × those of a change",
    "memory = constant + per service × services + per byte × proxies × configuration of a proxy",
    "CPU of first configurations = constant + per byte × proxies × configuration of a proxy + per connection × proxies",
    "istiods = ⌈part that istiods share ÷ (size of an istiod × (1 − headroom) − part that each has)⌉, of CPU or memory the greater",
    "monthly cost = (CPU × cpu-hour + memory in GB of 10⁹ bytes × gb-hour + istiods × per-replica-hour) × 730 h; CPU and memory are the sizes of all istiods, without a size what one uses ÷ (1 − headroom)",
];

/// Published figures of control planes.
const PUBLISHED: [&str; 2] = [
    "Istio 1.24 (reference): 1 vCPU and 1.5 GB for an istiod of 1000 services, 2000 pods and 70 000 requests/s in the mesh.",
    "AKS (one istiod, 16 vCPU): 25 000 sidecars in 32 GB without churn, 15 000 in 22 to 25 GB with 25 and 50 % churn; CPU 15 to 16.",
];

/// Sets the texts of a result.
pub fn fill_control_plane_size(result: &mut ControlPlaneSize) {
    result.formula = FORMULA.map(str::to_owned).to_vec();
    result.published = PUBLISHED.map(str::to_owned).to_vec();
    let kind = result.asked.kind.clone();
    let of_answers = result.answers.iter_mut().flat_map(|answer| &mut answer.notes);
    for note in result.refusals.iter_mut().chain(of_answers).chain(&mut result.notes) {
        note.text = text(note, kind.as_deref());
    }
}

fn text(note: &ControlPlaneNote, kind: Option<&str>) -> String {
    let detail = note.detail.as_deref().unwrap_or_default();
    match note.kind {
        ControlPlaneNoteKind::MixedMachines => {
            format!("The runs are of different machines, and costs hold for one machine: {detail}.")
        }
        ControlPlaneNoteKind::CutShort => super::size::cut_short(detail),
        ControlPlaneNoteKind::NoiseAccepted => super::size::noise_accepted(detail),
        ControlPlaneNoteKind::NotMeasured => match kind.filter(|_| !detail.is_empty()) {
            Some(kind) => format!("The runs have no fleet of {kind}; measured: {detail}."),
            None => "The runs have no fleet: `meshmeter run control-plane` measures one.".to_owned(),
        },
        ControlPlaneNoteKind::NoValidTrial => "No trial of a fleet can be used.".to_owned(),
        ControlPlaneNoteKind::Unresolved => format!("Not resolved: {detail}."),
        ControlPlaneNoteKind::IstiodTooSmall => format!(
            "Istiods of this size are too small in any number: each needs more {} than it has for what it does not share.",
            if detail == "cpu" { "CPU" } else { detail }
        ),
        ControlPlaneNoteKind::Extrapolated => {
            format!("Extrapolated: {detail}. The laws are measured inside these ranges alone.")
        }
        ControlPlaneNoteKind::NoInterval => "Fewer than two whole repeats: no intervals.".to_owned(),
        ControlPlaneNoteKind::LackOfFit => {
            format!("The laws miss what was measured: {detail}. Costs in between are uncertain by as much.")
        }
        ControlPlaneNoteKind::MixedComponents => {
            format!("The runs have different versions of components: {detail}.")
        }
    }
}

/// The question that the answer is about, and its scope.
#[must_use]
pub fn control_plane_opening(result: &ControlPlaneSize) -> String {
    let asked = &result.asked;
    format!("{}.{}", mesh(asked), super::size::measured_on(result.machine.as_ref()))
}

fn mesh(asked: &ControlPlaneQuestion) -> String {
    let scope = match asked.scope {
        true => format!(", scoped to {}", format::counted(asked.namespaces, "namespace", "namespaces")),
        false => String::new(),
    };
    let other = asked.other_changes_per_s.iter().filter(|(_, per_s)| **per_s > 0.0);
    let other = other.map(|(kind, per_s)| rate(*per_s, &format!("changes {kind}")));
    let churn = (asked.changes_per_s > 0.0).then(|| rate(asked.changes_per_s, "changes"));
    let changes: Vec<String> = churn.into_iter().chain(other).collect();
    let changes = if changes.is_empty() { "no changes".to_owned() } else { changes.join(", ") };
    format!(
        "{}, {}, {}{scope}, {changes}",
        format::counted(asked.services, "service", "services"),
        format::counted(asked.pods, "pod", "pods"),
        format::counted(asked.proxies, "proxy", "proxies"),
    )
}

fn rate(per_s: f64, what: &str) -> String {
    match per_s {
        rate if rate * 60.0 < 1.0 => format!("{} {what} per hour", format::tick(rate * 3600.0)),
        rate if rate < 1.0 => format!("{} {what} per minute", format::tick(rate * 60.0)),
        rate => format!("{} {what} per second", format::tick(rate)),
    }
}

/// The kinds of an answer, with its fixed factors.
#[must_use]
pub fn control_plane_place(answer: &ControlPlaneAnswer) -> String {
    with_factors(format!("Fleet of {}", answer.kinds), &answer.factors)
}

/// The answer, one sentence per figure.
#[must_use]
pub fn control_plane_sentences(result: &ControlPlaneSize, answer: &ControlPlaneAnswer) -> Vec<String> {
    let size = |estimate: &Estimate| {
        let unit = SizeUnit::for_sizes([estimate.estimate]);
        Interval::scaled(estimate, 1.0 / unit.bytes()).text_with_unit(unit.symbol())
    };
    let figures = [
        answer.cpu_cores.map(|cores| ("CPU", Interval::new(&cores).text_with_unit("cores"))),
        answer.memory_bytes.map(|bytes| ("memory", size(&bytes))),
        answer.connecting_cpu_s.map(|cpu_s| {
            (
                "first configurations of all proxies",
                format!("{} of CPU", Interval::new(&cpu_s).text_with_unit("s")),
            )
        }),
        answer.configuration_bytes.map(|bytes| ("configuration of a proxy", size(&bytes))),
    ];
    let mut sentences: Vec<String> = figures
        .into_iter()
        .flatten()
        .map(|(what, figure)| format!("One istiod for all, {what}: {figure}."))
        .collect();
    sentences.extend(answer.changes.iter().filter_map(change));
    sentences.extend(answer.istiods.as_ref().map(|count| istiods(result, count)));
    sentences.extend(answer.monthly_cost.as_ref().map(|cost| monthly_cost(result, cost)));
    sentences
}

/// What istiod sends per change, and which measured kind of change that is based on.
fn change(asked: &AskedChange) -> Option<String> {
    let bytes = bytes(asked.bytes.as_ref()?);
    let pushes = Interval::new(asked.pushes.as_ref()?).text();
    let kind = if asked.kind == asked.measured_as {
        asked.kind.clone()
    } else {
        format!("{} (as {} was measured)", asked.kind, asked.measured_as)
    };
    let proxies = format::counted(asked.affected_proxies.round() as u64, "proxy", "proxies");
    Some(format!("A change {kind} sends {bytes} in {pushes} pushes to each of {proxies}."))
}

fn monthly_cost(result: &ControlPlaneSize, cost: &Estimate) -> String {
    let currency = result.asked.prices.as_ref().map(|prices| prices.currency.as_str()).unwrap_or_default();
    let amount = Interval::new(cost).text_with_unit(currency);
    let what = if result.asked.istiod_cpu_cores.or(result.asked.istiod_memory_bytes).is_some() {
        "istiods of this size"
    } else {
        "one istiod for all"
    };
    format!("Cost of {what}: {} per month.", amount.trim())
}

fn istiods(result: &ControlPlaneSize, count: &IstiodCount) -> String {
    let asked = &result.asked;
    let cpu = asked.istiod_cpu_cores.map(|cores| format!("{} of CPU", format::cores(cores)));
    let memory = asked.istiod_memory_bytes.map(|bytes| format!("{} of memory", format::size(bytes)));
    let size = [cpu, memory].into_iter().flatten().collect::<Vec<_>>().join(" and ");
    let range = match (count.low, count.high) {
        (Some(low), Some(high)) if low != high => format!(" ({low}–{high})"),
        _ => String::new(),
    };
    let binds = if count.binds == "cpu" { "CPU" } else { &count.binds };
    format!(
        "With {size} each and a headroom of {}: {}{range} {}, by {binds}.",
        format::percent(asked.headroom),
        count.estimate,
        if count.estimate == 1 { "istiod" } else { "istiods" },
    )
}

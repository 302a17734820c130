//! Resources of a control plane for a mesh that was not measured.
//!
//! Each repeat has its own laws and so yields its own answer; the interval is over these answers. Values
//! outside the measured ranges are extrapolated, and a note says so.

mod asked;

use super::linear::{FittedLaw, Unresolved, over_repeats};
use super::{Group, Laws, groups};
use crate::size::{MeasuredRun, described, mixed_components, one_machine};
use asked::Changes;
use results::{
    CONTROL_PLANE_SIZE_SCHEMA, ControlPlaneAnswer, ControlPlaneNote, ControlPlaneNoteKind,
    ControlPlaneQuestion, ControlPlaneSize, Estimate, IstiodCount, MeasuredRange, SizeNote, SizeNoteKind,
};
use std::collections::BTreeSet;

const CONFIDENCE: f64 = 0.95;
/// A cell that deviates from a law by more than this fraction is noted.
const LACK_OF_FIT: f64 = 0.25;
/// A value that exceeds the measured range by up to this fraction does not count as extrapolated.
const RANGE_TOLERANCE: f64 = 0.01;

/// Answers a question from runs of one machine.
#[must_use]
pub fn size_control_plane(question: &ControlPlaneQuestion, runs: &[MeasuredRun]) -> ControlPlaneSize {
    let (described, notes) = described(runs);
    let mut result = ControlPlaneSize {
        schema: CONTROL_PLANE_SIZE_SCHEMA.to_owned(),
        asked: question.clone(),
        confidence: CONFIDENCE,
        runs: described,
        notes: notes.into_iter().map(of_whole_answer).collect(),
        ..ControlPlaneSize::default()
    };
    match one_machine(runs) {
        Ok(machine) => result.machine = machine,
        Err(note) => {
            result.refusals.push(ControlPlaneNote::new(ControlPlaneNoteKind::MixedMachines, note.detail));
            return result;
        }
    }
    let all = groups(&runs.iter().map(|run| (&run.experiment, run.trials.as_slice())).collect::<Vec<_>>());
    if all.is_empty() {
        let kind = if runs.iter().any(|run| run.experiment.fleet.is_some()) {
            ControlPlaneNoteKind::NoValidTrial
        } else {
            ControlPlaneNoteKind::NotMeasured
        };
        result.refusals.push(ControlPlaneNote::new(kind, None));
        return result;
    }
    let is_asked = |group: &&Group| question.kind.as_ref().is_none_or(|kind| *kind == group.kinds);
    let asked: Vec<&Group> = all.iter().filter(is_asked).collect();
    if asked.is_empty() {
        let kinds: BTreeSet<&str> = all.iter().map(|group| group.kinds.as_str()).collect();
        let kinds = kinds.into_iter().collect::<Vec<_>>().join(", ");
        result.refusals.push(ControlPlaneNote::new(ControlPlaneNoteKind::NotMeasured, Some(kinds)));
        return result;
    }
    let mixed = mixed_components(runs)
        .map(|note| ControlPlaneNote::new(ControlPlaneNoteKind::MixedComponents, note.detail));
    for group in asked {
        match answer(question, group) {
            Ok(mut answer) => {
                answer.notes.extend(mixed.clone());
                result.answers.push(answer);
            }
            Err(refusals) => result.refusals.extend(refusals),
        }
    }
    result
}

fn of_whole_answer(note: SizeNote) -> ControlPlaneNote {
    let kind = match note.kind {
        SizeNoteKind::NoiseAccepted => ControlPlaneNoteKind::NoiseAccepted,
        _ => ControlPlaneNoteKind::CutShort,
    };
    ControlPlaneNote::new(kind, note.detail)
}

/// The values of the laws' variables for the mesh in question.
struct Mesh {
    services: f64,
    visible_services: f64,
    visible_pods: f64,
    proxies: f64,
    /// The fraction of the mesh that a proxy sees.
    visible: f64,
    pods_per_service: f64,
}

impl Mesh {
    fn new(question: &ControlPlaneQuestion) -> Self {
        let visible = if question.scope { 1.0 / question.namespaces.max(1) as f64 } else { 1.0 };
        Self {
            services: question.services as f64,
            visible_services: question.services as f64 * visible,
            visible_pods: question.pods as f64 * visible,
            proxies: question.proxies as f64,
            visible,
            pods_per_service: question.pods as f64 / question.services.max(1) as f64,
        }
    }

    fn of_configuration(&self) -> [f64; 2] {
        [self.visible_services, self.visible_pods]
    }
}

/// A cost split into the part that each istiod has and the part that istiods share.
#[derive(Clone, Copy)]
struct Parts {
    constant: f64,
    shared: f64,
}

/// A note that a law is not resolved.
fn unresolved(what: &str, reason: &str) -> ControlPlaneNote {
    ControlPlaneNote::new(ControlPlaneNoteKind::Unresolved, Some(format!("{what}: {reason}")))
}

fn answer(
    question: &ControlPlaneQuestion,
    group: &Group,
) -> Result<ControlPlaneAnswer, Vec<ControlPlaneNote>> {
    let (mesh, laws, istiods) = (Mesh::new(question), group.laws(), group.istiods() as f64);
    let configuration = laws.configuration.as_ref();
    let configuration =
        configuration.map_err(|reason| vec![unresolved("configuration of a proxy", reason)])?;
    configuration
        .check(&mesh.of_configuration())
        .map_err(|reason| vec![unresolved("configuration of a proxy", &reason)])?;
    let bytes = |repeat: Option<usize>| configuration.cost(repeat, &mesh.of_configuration()).max(0.0);
    let mut notes = Vec::new();
    let mut holds = |law: &Result<FittedLaw, Unresolved>, name: &str, at: &[f64]| match usable(law, at) {
        Ok(()) => true,
        Err(reason) => {
            notes.push(unresolved(name, &reason));
            false
        }
    };
    let held = mesh.proxies * bytes(None);
    let has_connecting = holds(&laws.connecting, "CPU of first configurations", &[held, mesh.proxies]);
    let has_memory = holds(&laws.memory, "memory", &[held, mesh.services]);
    let changes = Changes::new(question, &mesh, &laws, bytes(None));
    let has_changing = match &changes {
        Ok(changes) if changes.is_empty() => holds(&laws.changing, "CPU under changes", &[]),
        Ok(changes) => holds(&laws.changing, "CPU under changes", &changes.rates(None, bytes(None))),
        Err(_) => false,
    };
    let changes = match changes {
        Ok(changes) => changes,
        Err(reason) => {
            notes.push(unresolved("CPU under changes", &reason));
            Changes::default()
        }
    };
    let changing = laws.changing.as_ref().ok().filter(|_| has_changing);
    let connecting = laws.connecting.as_ref().ok().filter(|_| has_connecting);
    let memory = laws.memory.as_ref().ok().filter(|_| has_memory);
    // Repeats that all laws have coefficients for.
    let mut repeats: BTreeSet<usize> = configuration.repeats().collect();
    for law in [changing, connecting, memory].into_iter().flatten().chain(changes.laws()) {
        let own: BTreeSet<usize> = law.repeats().collect();
        repeats.retain(|repeat| own.contains(repeat));
    }
    let each = |value: &dyn Fn(Option<usize>) -> f64| over(&repeats, value);
    let cpu_parts = |repeat: Option<usize>| {
        let law = changing?;
        let constant = law.cost(repeat, &[0.0, 0.0]) / istiods;
        let shared = law.cost(repeat, &changes.rates(repeat, bytes(repeat))) - constant * istiods;
        Some(Parts { constant, shared })
    };
    let memory_parts = |repeat: Option<usize>| {
        let law = memory?;
        let at = [mesh.proxies * bytes(repeat), mesh.services];
        let constant = law.cost_without(repeat, &at, &[0]) / istiods;
        Some(Parts { constant, shared: law.cost(repeat, &at) - constant * istiods })
    };
    let whole = |parts: &dyn Fn(Option<usize>) -> Option<Parts>| {
        parts(None)?;
        Some(each(&|repeat| parts(repeat).map_or(0.0, |parts| parts.constant + parts.shared)))
    };
    let (cpu_cores, memory_bytes) = (whole(&cpu_parts), whole(&memory_parts));
    if cpu_cores.is_none() && memory_bytes.is_none() {
        return Err(notes);
    }
    let connecting_cpu_s =
        connecting.map(|law| each(&|repeat| law.cost(repeat, &[mesh.proxies * bytes(repeat), mesh.proxies])));
    let limits = [
        ("cpu", question.istiod_cpu_cores, cpu_parts(None), cpu_cores),
        ("memory", question.istiod_memory_bytes, memory_parts(None), memory_bytes),
    ];
    let istiods = istiods_for(question.headroom, &limits).map_err(|note| vec![note])?;
    notes.extend(extrapolated(group, question, each(&bytes).estimate, &changes));
    if repeats.len() < 2 {
        notes.push(ControlPlaneNote::new(ControlPlaneNoteKind::NoInterval, None));
    }
    notes.extend(lack_of_fit(&laws, &changes));
    Ok(ControlPlaneAnswer {
        kinds: group.kinds.clone(),
        factors: group.factors.clone(),
        configuration_bytes: Some(each(&bytes)),
        monthly_cost: monthly_cost(question, cpu_cores.zip(memory_bytes), istiods.as_ref()),
        cpu_cores,
        memory_bytes,
        connecting_cpu_s,
        changes: changes.described(&repeats, &bytes),
        istiods,
        notes,
    })
}

/// Checks that a law was fitted and holds for these values. Without values only its constant is needed.
fn usable(law: &Result<FittedLaw, Unresolved>, at: &[f64]) -> Result<(), Unresolved> {
    let law = law.as_ref().map_err(Clone::clone)?;
    if at.is_empty() { Ok(()) } else { law.check(at) }
}

/// Monthly cost of the istiods: of those of the given size, or of one that uses what it needs plus headroom.
/// The interval's ends follow from those of CPU and memory.
fn monthly_cost(
    question: &ControlPlaneQuestion,
    used: Option<(Estimate, Estimate)>,
    istiods: Option<&IstiodCount>,
) -> Option<Estimate> {
    let (prices, (cpu, memory)) = (question.prices.as_ref()?, used?);
    let cost = |count: f64, cores: f64, bytes: f64| {
        let cores =
            question.istiod_cpu_cores.map_or(cores / (1.0 - question.headroom), |limit| count * limit);
        let bytes =
            question.istiod_memory_bytes.map_or(bytes / (1.0 - question.headroom), |limit| count * limit);
        prices.per_month(cores, bytes, count)
    };
    let end = |count: Option<Option<u64>>, cores: Option<f64>, bytes: Option<f64>| {
        Some(cost(count.unwrap_or(Some(1))? as f64, cores?, bytes?))
    };
    Some(Estimate {
        estimate: cost(istiods.map_or(1, |count| count.estimate) as f64, cpu.estimate, memory.estimate),
        low: end(istiods.map(|count| count.low), cpu.low, memory.low),
        high: end(istiods.map(|count| count.high), cpu.high, memory.high),
        n: cpu.n,
        alone: None,
    })
}

/// A value by the laws of each repeat, or of all trials together if `repeats` is empty; never negative.
pub(crate) fn over(repeats: &BTreeSet<usize>, value: &dyn Fn(Option<usize>) -> f64) -> Estimate {
    let values: Vec<f64> = repeats.iter().map(|repeat| value(Some(*repeat))).collect();
    let estimate = over_repeats(&values).unwrap_or_else(|| Estimate::single(value(None)));
    estimate.map(|value| value.max(0.0))
}

type Limit<'a> = (&'a str, Option<f64>, Option<Parts>, Option<Estimate>);

/// Number of istiods of the given size. The resource that needs the most istiods binds. The interval comes
/// from the shared part of the cost.
fn istiods_for(headroom: f64, limits: &[Limit<'_>]) -> Result<Option<IstiodCount>, ControlPlaneNote> {
    let mut most: Option<IstiodCount> = None;
    for (name, limit, parts, whole) in limits {
        let (Some(limit), Some(parts), Some(whole)) = (limit, parts, whole) else { continue };
        let room = limit * (1.0 - headroom) - parts.constant.max(0.0);
        if room <= 0.0 {
            return Err(ControlPlaneNote::new(
                ControlPlaneNoteKind::IstiodTooSmall,
                Some((*name).to_owned()),
            ));
        }
        let count = |whole: f64| ((whole - parts.constant.max(0.0)).max(0.0) / room).ceil().max(1.0) as u64;
        let found = IstiodCount {
            estimate: count(whole.estimate),
            low: whole.low.map(count),
            high: whole.high.map(count),
            binds: (*name).to_owned(),
        };
        if most.as_ref().is_none_or(|known| found.estimate > known.estimate) {
            most = Some(found);
        }
    }
    Ok(most)
}

/// A note of all variables of the mesh in question that lie outside the measured ranges.
fn extrapolated(
    group: &Group,
    question: &ControlPlaneQuestion,
    bytes: f64,
    changes: &Changes<'_>,
) -> Option<ControlPlaneNote> {
    let ranges = group.ranges();
    let pods_per_service = question.pods as f64 / question.services.max(1) as f64;
    let asked = [
        ("services", question.services as f64, "services", 1.0),
        ("pods", question.pods as f64, "pods", 1.0),
        ("pods_per_service", pods_per_service, "pods per service", 1.0),
        ("proxies", question.proxies as f64, "proxies", 1.0),
        ("configuration_bytes", bytes, "MB of configuration per proxy", 1e6),
    ];
    let of_mesh =
        asked.iter().filter_map(|(key, value, name, unit)| beyond(*value, ranges.get(*key)?, name, *unit));
    let of_changes = changes.iter().filter_map(|change| {
        beyond(change.per_s, change.laws.per_s.as_ref()?, &format!("{} changes/s", change.measured_as), 1.0)
    });
    let beyond: Vec<String> = of_mesh.chain(of_changes).collect();
    (!beyond.is_empty())
        .then(|| ControlPlaneNote::new(ControlPlaneNoteKind::Extrapolated, Some(beyond.join(", "))))
}

/// Describes a value outside a measured range; `None` if it is inside.
fn beyond(value: f64, range: &MeasuredRange, name: &str, unit: f64) -> Option<String> {
    let (from, to) = (range.from * (1.0 - RANGE_TOLERANCE), range.to * (1.0 + RANGE_TOLERANCE));
    let digits = |value: f64| {
        let value = value / unit;
        if value < 10.0 && value.fract() != 0.0 { format!("{value:.2}") } else { format!("{value:.0}") }
    };
    (!(from..=to).contains(&value)).then(|| {
        format!("{} {name} (measured: {} to {})", digits(value), digits(range.from), digits(range.to))
    })
}

fn lack_of_fit(laws: &Laws, changes: &Changes<'_>) -> Option<ControlPlaneNote> {
    let Laws { configuration, connecting, changing, memory, changes: _ } = laws;
    let named = [
        ("configuration", configuration),
        ("CPU of first configurations", connecting),
        ("CPU under changes", changing),
        ("memory", memory),
    ];
    let named = named.into_iter().filter_map(|(name, law)| Some((name.to_owned(), law.as_ref().ok()?)));
    let of_changes = changes.iter().flat_map(|change| {
        let name = |what: &str| format!("{what} of {}", change.measured_as);
        [(name("pushes"), change.pushes), (name("bytes"), change.bytes)]
    });
    let far = named.chain(of_changes).filter_map(|(name, law)| {
        let residual = law.described().greatest_residual()?;
        (residual > LACK_OF_FIT).then(|| format!("{name} by up to {:.0} %", residual * 100.0))
    });
    let far: Vec<String> = far.collect();
    (!far.is_empty()).then(|| ControlPlaneNote::new(ControlPlaneNoteKind::LackOfFit, Some(far.join(", "))))
}

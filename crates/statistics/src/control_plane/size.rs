//! What a control plane takes for a mesh that was not measured.
//!
//! Each repeat has laws of its own, and so an answer; the interval is that of the answers. What lies outside the measured ranges
//! is extrapolated and said.

use super::linear::over_repeats;
use super::{Group, Laws, groups};
use crate::size::{MeasuredRun, described, mixed_components, one_machine};
use experiment::schema::{
    CONTROL_PLANE_SIZE_SCHEMA, ControlPlaneAnswer, ControlPlaneNote, ControlPlaneNoteKind,
    ControlPlaneQuestion, ControlPlaneSize, Estimate, IstiodCount,
};
use std::collections::BTreeSet;

const CONFIDENCE: f64 = 0.95;
/// A cell this far from a law, as a fraction, is said.
const LACK_OF_FIT: f64 = 0.25;
/// What is within this fraction beyond the measured range is not called extrapolated.
const RANGE_TOLERANCE: f64 = 0.01;

/// Answers a question from runs of one machine.
#[must_use]
pub fn size_control_plane(question: &ControlPlaneQuestion, runs: &[MeasuredRun]) -> ControlPlaneSize {
    let mut result = ControlPlaneSize {
        schema: CONTROL_PLANE_SIZE_SCHEMA.to_owned(),
        asked: question.clone(),
        confidence: CONFIDENCE,
        runs: runs.iter().map(described).collect(),
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

/// The values of the laws' variables for the asked mesh.
struct Mesh {
    services: f64,
    visible_services: f64,
    visible_pods: f64,
    proxies: f64,
    /// Arrivals of changes at proxies, per second.
    arrivals_per_s: f64,
}

impl Mesh {
    fn new(question: &ControlPlaneQuestion) -> Self {
        let share = if question.scope { 1.0 / question.namespaces.max(1) as f64 } else { 1.0 };
        let proxies = question.proxies as f64;
        Self {
            services: question.services as f64,
            visible_services: question.services as f64 * share,
            visible_pods: question.pods as f64 * share,
            proxies,
            arrivals_per_s: question.changes_per_s * proxies * share,
        }
    }

    fn of_configuration(&self) -> [f64; 2] {
        [self.visible_services, self.visible_pods]
    }
}

/// A cost of one istiod: the part that each has, and the part that istiods share.
#[derive(Clone, Copy)]
struct Parts {
    constant: f64,
    shared: f64,
}

fn answer(
    question: &ControlPlaneQuestion,
    group: &Group,
) -> Result<ControlPlaneAnswer, Vec<ControlPlaneNote>> {
    let (mesh, laws, istiods) = (Mesh::new(question), group.laws(), group.istiods() as f64);
    let unresolved = |what: &str, reason: &str| {
        ControlPlaneNote::new(ControlPlaneNoteKind::Unresolved, Some(format!("{what}: {reason}")))
    };
    let Laws { configuration, connecting, changing, memory } = &laws;
    let configuration = match configuration {
        Ok(law) => law,
        Err(reason) => return Err(vec![unresolved("configuration of a proxy", reason)]),
    };
    configuration
        .check(&mesh.of_configuration())
        .map_err(|reason| vec![unresolved("configuration of a proxy", &reason)])?;
    let mut notes = Vec::new();
    let bytes = |repeat: Option<usize>| configuration.cost(repeat, &mesh.of_configuration()).max(0.0);
    let fitted = [connecting, changing, memory];
    let names = ["CPU of first configurations", "CPU under changes", "memory"];
    for (law, name) in fitted.iter().zip(names) {
        if let Err(reason) = law {
            notes.push(unresolved(name, reason));
        }
    }
    // Repeats that every law has.
    let mut repeats: BTreeSet<usize> = configuration.repeats().collect();
    for law in fitted.iter().filter_map(|law| law.as_ref().ok()) {
        let own: BTreeSet<usize> = law.repeats().collect();
        repeats.retain(|repeat| own.contains(repeat));
    }
    let each = |value: &dyn Fn(Option<usize>) -> f64| {
        let values: Vec<f64> = repeats.iter().map(|repeat| value(Some(*repeat))).collect();
        not_negative(over_repeats(&values).unwrap_or_else(|| Estimate::single(value(None))))
    };
    let cpu_parts = |repeat: Option<usize>| {
        let law = changing.as_ref().ok()?;
        let constant = law.cost(repeat, &[0.0]) / istiods;
        let shared = law.cost(repeat, &[mesh.arrivals_per_s * bytes(repeat)]) - constant * istiods;
        Some(Parts { constant, shared })
    };
    let memory_law = match memory {
        Ok(law) => match law.check(&[mesh.proxies * bytes(None), mesh.services]) {
            Ok(()) => Some(law),
            Err(reason) => {
                notes.push(unresolved("memory", &reason));
                None
            }
        },
        Err(_) => None,
    };
    let memory_parts = |repeat: Option<usize>| {
        let law = memory_law?;
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
        connecting.as_ref().ok().map(|law| each(&|repeat| law.cost(repeat, &[mesh.proxies * bytes(repeat)])));
    let limits = [
        ("cpu", question.istiod_cpu_cores, cpu_parts(None), cpu_cores),
        ("memory", question.istiod_memory_bytes, memory_parts(None), memory_bytes),
    ];
    let istiods = istiods_for(question.headroom, &limits).map_err(|note| vec![note])?;
    notes.extend(extrapolated(group, question, each(&bytes).estimate));
    if repeats.len() < 2 {
        notes.push(ControlPlaneNote::new(ControlPlaneNoteKind::NoInterval, None));
    }
    notes.extend(lack_of_fit(&laws));
    Ok(ControlPlaneAnswer {
        kinds: group.kinds.clone(),
        factors: group.factors.clone(),
        configuration_bytes: Some(each(&bytes)),
        cpu_cores,
        memory_bytes,
        connecting_cpu_s,
        istiods,
        notes,
    })
}

/// A cost is nothing at least.
fn not_negative(estimate: Estimate) -> Estimate {
    estimate.map(|value| value.max(0.0))
}

type Limit<'a> = (&'a str, Option<f64>, Option<Parts>, Option<Estimate>);

/// Istiods of the asked size: the resource that asks for most binds. The interval of a cost is that of its shared part.
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

/// A note of all variables of the asked mesh that lie outside what was measured.
fn extrapolated(group: &Group, question: &ControlPlaneQuestion, bytes: f64) -> Option<ControlPlaneNote> {
    let ranges = group.ranges();
    let asked = [
        ("services", question.services as f64),
        ("pods", question.pods as f64),
        ("proxies", question.proxies as f64),
        ("changes_per_s", question.changes_per_s),
        ("configuration_bytes", bytes),
    ];
    let beyond = asked.iter().filter_map(|(name, value)| {
        let range = ranges.get(*name)?;
        let (from, to) = (range.from * (1.0 - RANGE_TOLERANCE), range.to * (1.0 + RANGE_TOLERANCE));
        let (name, unit) = match *name {
            "changes_per_s" => ("changes/s", 1.0),
            "configuration_bytes" => ("MB of configuration per proxy", 1e6),
            other => (other, 1.0),
        };
        let digits = |value: f64| {
            let value = value / unit;
            if value < 10.0 && value.fract() != 0.0 { format!("{value:.2}") } else { format!("{value:.0}") }
        };
        (!(from..=to).contains(value)).then(|| {
            format!("{} {name} (measured: {} to {})", digits(*value), digits(range.from), digits(range.to))
        })
    });
    let beyond: Vec<String> = beyond.collect();
    (!beyond.is_empty())
        .then(|| ControlPlaneNote::new(ControlPlaneNoteKind::Extrapolated, Some(beyond.join(", "))))
}

fn lack_of_fit(laws: &Laws) -> Option<ControlPlaneNote> {
    let Laws { configuration, connecting, changing, memory } = laws;
    let named = [
        ("configuration", configuration),
        ("CPU of first configurations", connecting),
        ("CPU under changes", changing),
        ("memory", memory),
    ];
    let far = named.into_iter().filter_map(|(name, law)| {
        let residual = law.as_ref().ok()?.described().greatest_residual()?;
        (residual > LACK_OF_FIT).then(|| format!("{name} by up to {:.0} %", residual * 100.0))
    });
    let far: Vec<String> = far.collect();
    (!far.is_empty()).then(|| ControlPlaneNote::new(ControlPlaneNoteKind::LackOfFit, Some(far.join(", "))))
}

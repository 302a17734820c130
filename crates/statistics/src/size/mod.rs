//! Sizing answers "How many gateways do I need for my load, how large, and what do they cost?"
//!
//! Pure logic: measurements of runs and a question become a [`SizeResult`], which the `report` crate turns
//! into sentences. [`groups`] sorts cells into answers and sizes, [`settings`] decides which runs make one
//! sweep. [`capacity`] computes what one replica carries, [`usage`] what it uses, and [`option`] multiplies.
//! [`next_run`] finds a capacity that the runs did not reach. [`basis`] has the programs and filters that were there, and
//! published figures. [`price`] prices all proxies of a mesh.
//! Nothing is extrapolated: rates are interpolated only between measured ones, and everything else that an
//! answer relies on is in its notes.
//!
//! The CPU limit is the size in question, so a proxy that is throttled by its own limit is not a fault of the
//! trial.

mod basis;
mod capacity;
mod groups;
mod next_run;
mod option;
pub mod price;
mod settings;
mod usage;

pub use capacity::is_shown_to_meet;

use crate::disturbance::{self, summarize_accepting_noise};
use crate::summary::summarize;
use crate::trials::{is_throttled, kind_of};
use experiment::{Experiment, Objective, Plan};
use groups::Group;
use results::{
    CellKey, Figure, Host, Role, SIZE_SCHEMA, SizeAnswer, SizeMachine, SizeNote, SizeNoteKind, SizeOption,
    SizeQuestion, SizeResult, SizeRun, Summary, TrialOutcome, TrialRecord, Verdict,
};
use std::collections::HashSet;

/// Confidence level of every interval.
const CONFIDENCE: f64 = 0.95;
const SECONDS_PER_DAY: f64 = 86_400.0;

/// A run as read from its directory.
#[derive(Clone, Debug)]
pub struct MeasuredRun {
    /// Path as given by the user.
    pub directory: String,
    /// The experiment, without modes that could not run.
    pub experiment: Experiment,
    /// The machine and the component versions.
    pub host: Host,
    /// The recorded trials.
    pub trials: Vec<TrialRecord>,
}

/// Answers a question from runs of one machine. Without `objective`, the objective of the first run's
/// experiment applies.
#[must_use]
pub fn size(question: &SizeQuestion, objective: Option<Objective>, runs: &[MeasuredRun]) -> SizeResult {
    let of_experiment = runs.first().map(|run| bounds_of_responses(run.experiment.objective));
    let holds = objective.or(of_experiment).filter(|objective| !objective.is_empty());
    let (described, notes) = described(runs);
    let mut result = SizeResult {
        schema: SIZE_SCHEMA.to_owned(),
        asked: SizeQuestion {
            objective: holds.map(|objective| objective.to_string()),
            objective_of_experiment: objective.is_none() && holds.is_some(),
            ..question.clone()
        },
        requests_per_day: question.target_rps * SECONDS_PER_DAY,
        confidence: CONFIDENCE,
        formula: Vec::new(),
        machine: None,
        runs: described,
        notes,
        answers: Vec::new(),
        refusals: Vec::new(),
    };
    match one_machine(runs).and_then(|machine| with_times_of(holds, runs).map(|()| machine)) {
        Ok(machine) => result.machine = machine,
        Err(refusal) => {
            result.refusals.push(refusal);
            return result;
        }
    }
    let sized = |run| SizedRun::new(run, holds.unwrap_or_default(), question.accept_noise);
    let sized: Vec<SizedRun> = runs.iter().map(sized).collect();
    result.notes.extend(accepted_noise(&sized));
    let asked = Asked { question, objective: holds.unwrap_or_default() };
    let (groups, refusals) = groups::groups(question, &sized);
    result.refusals = refusals;
    let mixed = mixed_components(runs);
    for group in &groups {
        match answer(&asked, group, &sized) {
            Ok(mut answer) => {
                answer.notes.extend(mixed.clone());
                result.answers.push(answer);
            }
            Err(refusal) => result.refusals.push(refusal),
        }
    }
    result
}

/// Refuses an objective of streams of events if responses of a run are not streams.
fn with_times_of(objective: Option<Objective>, runs: &[MeasuredRun]) -> Result<(), SizeNote> {
    let Some(name) = objective.and_then(|objective| objective.of_streams()) else { return Ok(()) };
    match runs.iter().find(|run| !run.experiment.load.stream.declared) {
        Some(run) => {
            let detail = format!("{name}: responses of {} are not streams (`load.stream`)", run.directory);
            Err(SizeNote::naming(SizeNoteKind::NotMeasured, detail))
        }
        None => Ok(()),
    }
}

/// The bounds that can be checked at a given rate: those of times and errors.
fn bounds_of_responses(objective: Objective) -> Objective {
    Objective { rate: None, achieved: None, ..objective }
}

/// The question, and the objective that applies to it.
struct Asked<'a> {
    question: &'a SizeQuestion,
    objective: Objective,
}

/// Note on disturbed trials in the answer; `None` if there are none.
fn accepted_noise(sized: &[SizedRun]) -> Option<SizeNote> {
    let of_run = |run: &SizedRun| {
        let noise = run.summary.noise_accepted.as_ref().filter(|noise| noise.trials > 0)?;
        Some(format!("{} of {} in {}", noise.trials, noise.of, run.directory))
    };
    let of_runs: Vec<String> = sized.iter().filter_map(of_run).collect();
    (!of_runs.is_empty()).then(|| SizeNote::naming(SizeNoteKind::NoiseAccepted, of_runs.join(", ")))
}

/// A run prepared for sizing: with the objective of the question, without reasons for throttling by a proxy's own CPU
/// limit, and with noise of the machine accepted if the question says so.
struct SizedRun {
    directory: String,
    experiment: Experiment,
    trials: Vec<TrialRecord>,
    summary: Summary,
}

impl SizedRun {
    fn new(run: &MeasuredRun, objective: Objective, accept_noise: bool) -> Self {
        let experiment = Experiment { objective, ..run.experiment.clone() };
        let trials: Vec<TrialRecord> = run.trials.iter().map(without_own_throttling).collect();
        let seed = experiment.seed.unwrap_or_default();
        let (planned, host) = (trials.len(), &run.host);
        let (summary, trials) = match accept_noise {
            true => summarize_accepting_noise(&experiment, seed, planned, host, &trials),
            false => (summarize(&experiment, seed, planned, host, &trials), trials),
        };
        Self { directory: run.directory.clone(), experiment, trials, summary }
    }
}

/// A trial without the reasons that one of its proxies was throttled by its CPU limit.
fn without_own_throttling(trial: &TrialRecord) -> TrialRecord {
    let without_allowed = |verdict: &Verdict| {
        let is_kept = |reason: &String| !is_throttled(trial, reason, Role::Proxy);
        let keeps: Vec<bool> = verdict.reasons.iter().map(is_kept).collect();
        let kept = |index: usize| keeps.get(index).copied().unwrap_or(true);
        let mut index = 0;
        let mut verdict = verdict.clone();
        verdict.spoiled.retain(|_| {
            index += 1;
            kept(index - 1)
        });
        verdict.reasons.retain(is_kept);
        let is_without_figures = verdict.spoiled.len() < verdict.reasons.len();
        let spoils_median = verdict.spoiled.iter().any(|one| one.figures.contains(Figure::P50));
        if keeps.contains(&false) {
            verdict.valid = !is_without_figures && !spoils_median;
        }
        verdict
    };
    let mut sized = trial.clone();
    sized.verdict = without_allowed(&trial.verdict);
    for driver in &mut sized.drivers {
        driver.verdict = without_allowed(&driver.verdict);
    }
    sized
}

/// Every run, and notes on those that were cut short or have accepted noise.
pub(crate) fn described(runs: &[MeasuredRun]) -> (Vec<SizeRun>, Vec<SizeNote>) {
    let described: Vec<SizeRun> = runs.iter().map(description).collect();
    let pairs = runs.iter().zip(&described);
    let short = pairs.filter_map(|(run, described)| cut_short(run, described));
    let notes = short.chain(runs.iter().filter_map(noise_accepted)).collect();
    (described, notes)
}

fn description(run: &MeasuredRun) -> SizeRun {
    SizeRun {
        directory: run.directory.clone(),
        name: run.experiment.name.clone(),
        trials: run.trials.len(),
        planned: Plan::new(&run.experiment, run.experiment.seed.unwrap_or_default()).trials.len(),
    }
}

/// Note on a run whose figures are also those of trials that noise of the machine disturbed.
fn noise_accepted(run: &MeasuredRun) -> Option<SizeNote> {
    let accepted = disturbance::accepted(&run.trials);
    let detail = || format!("{accepted} of {} in {}", run.trials.len(), run.directory);
    (accepted > 0).then(|| SizeNote::naming(SizeNoteKind::NoiseAccepted, detail()))
}

/// Note on a run that lacks planned trials, or that the user interrupted in a trial.
fn cut_short(run: &MeasuredRun, described: &SizeRun) -> Option<SizeNote> {
    let (directory, planned) = (&described.directory, described.planned);
    let places: HashSet<(CellKey<'_>, usize)> =
        run.trials.iter().map(|trial| (trial.cell(), trial.repeat)).collect();
    let is_interrupted = |trial: &&TrialRecord| trial.outcome == TrialOutcome::Interrupted;
    let interrupted = run.trials.iter().filter(is_interrupted).count();
    let recorded = format!("{directory} has {} of {planned} planned trials", places.len());
    let detail = match interrupted {
        0 if places.len() >= planned => return None,
        0 => recorded,
        1 => format!("{recorded}, one of them interrupted"),
        several => format!("{recorded}, {several} of them interrupted"),
    };
    Some(SizeNote::naming(SizeNoteKind::CutShort, detail))
}

fn machine(host: &Host) -> SizeMachine {
    let version = host.versions.iter().find(|version| version.name == "meshmeter");
    SizeMachine {
        cpu_model: host.cpu_model.clone(),
        cpus: host.cpus,
        threads_per_core: host.threads_per_core,
        memory_bytes: host.memory_bytes,
        kernel: host.kernel.clone(),
        meshmeter: version.map(|version| version.version.clone()).unwrap_or_default(),
    }
}

/// Kernels of the same release reserve slightly different amounts of memory from boot to boot.
const MEMORY_TOLERANCE: f64 = 0.05;

fn is_same_machine(one: &SizeMachine, other: &SizeMachine) -> bool {
    let (memory, others) = (one.memory_bytes as f64, other.memory_bytes as f64);
    (memory - others).abs() <= MEMORY_TOLERANCE * memory.max(others)
        && *one == SizeMachine { memory_bytes: one.memory_bytes, ..other.clone() }
}

/// The machine of all runs, or a note on how they differ.
pub(crate) fn one_machine(runs: &[MeasuredRun]) -> Result<Option<SizeMachine>, SizeNote> {
    let mut machines: Vec<(SizeMachine, &str)> = Vec::new();
    for run in runs {
        let machine = machine(&run.host);
        if machines.iter().all(|(known, _)| !is_same_machine(known, &machine)) {
            machines.push((machine, &run.directory));
        }
    }
    if machines.len() < 2 {
        return Ok(machines.pop().map(|(machine, _)| machine));
    }
    let named = machines.iter().map(|(machine, directory)| {
        let SizeMachine { cpu_model, cpus, threads_per_core, memory_bytes, kernel, meshmeter } = machine;
        let memory_gb = *memory_bytes as f64 / 1e9;
        format!(
            "{directory}: {cpu_model}, {cpus} CPUs ({threads_per_core} per core), {memory_gb:.0} GB, Linux {kernel}, meshmeter {meshmeter}"
        )
    });
    Err(SizeNote::naming(SizeNoteKind::MixedMachines, named.collect::<Vec<_>>().join("; ")))
}

/// Components whose versions differ between the runs.
pub(crate) fn mixed_components(runs: &[MeasuredRun]) -> Option<SizeNote> {
    let versions = |name: &str| {
        let of_runs = runs.iter().flat_map(|run| &run.host.versions).filter(|version| version.name == name);
        let mut versions: Vec<&str> = of_runs.map(|version| version.version.as_str()).collect();
        versions.sort_unstable();
        versions.dedup();
        versions
    };
    let mut names: Vec<&str> =
        runs.iter().flat_map(|run| &run.host.versions).map(|version| version.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let mixed = names.into_iter().filter_map(|name| {
        let versions = versions(name);
        (versions.len() > 1).then(|| format!("{name} {}", versions.join(" and ")))
    });
    let mixed = mixed.collect::<Vec<_>>().join(", ");
    (!mixed.is_empty()).then(|| SizeNote::naming(SizeNoteKind::MixedComponents, mixed))
}

/// The answer for one proxy in one mode, or why there is none.
fn answer(asked: &Asked<'_>, group: &Group<'_>, runs: &[SizedRun]) -> Result<SizeAnswer, SizeNote> {
    let (mut options, mut left_out): (Vec<SizeOption>, Vec<(String, SizeNote)>) = (Vec::new(), Vec::new());
    for sized in &group.options {
        match option::option(asked, group, sized, &runs[sized.run].directory) {
            Ok(option) => options.push(option),
            Err(refusal) => left_out.push((sized.name(), refusal)),
        }
    }
    if options.is_empty() {
        return Err(common_refusal(group, &left_out));
    }
    let (published, mut notes) = basis::published(group, runs);
    notes.extend(left_out.into_iter().map(|(size, refusal)| left_out_note(&size, refusal)));
    notes.extend(option::notes_of_all(asked, group, &options));
    let recommended = option::cheapest(&options);
    notes.extend(recommended.and_then(|index| option::other_plan_cheaper(&options, index)));
    let load = group.heaviest_load();
    Ok(SizeAnswer {
        mode: group.mode,
        component: group.component.clone(),
        proxies: group.proxies,
        factors: group.factors.clone(),
        protocol: load.protocol.clone(),
        payload_bytes: load.payload_bytes,
        connections: load.connections,
        options,
        recommended,
        counted: String::new(),
        programs: basis::programs(group, runs),
        filters: basis::filters(group),
        published,
        notes,
    })
}

/// Note on why a size is not among the options.
fn left_out_note(size: &str, refusal: SizeNote) -> SizeNote {
    let why = match refusal.kind {
        SizeNoteKind::ObjectiveNeverMet => "the objective is missed at every load".to_owned(),
        SizeNoteKind::ObjectiveNotShown => "no load is shown to meet the objective".to_owned(),
        _ => format!("no valid trial{}", refusal.detail.map(|why| format!(" ({why})")).unwrap_or_default()),
    };
    SizeNote::naming(SizeNoteKind::SizeLeftOut, format!("{size}: {why}"))
}

/// Why no size is an option, with mode and component. Several reasons are possible with an objective alone: then that is said
/// which is true of all sizes, that no load is shown to meet it.
fn common_refusal(group: &Group<'_>, left_out: &[(String, SizeNote)]) -> SizeNote {
    let place = group.place();
    let refusals = || left_out.iter().map(|(_, refusal)| refusal);
    let names_objective = |refusal: &&SizeNote| refusal.kind != SizeNoteKind::NoValidTrial;
    let Some(named) = refusals().find(names_objective).or_else(|| refusals().next()) else {
        return SizeNote::naming(SizeNoteKind::NoValidTrial, place);
    };
    let is_common = refusals().all(|other| other.kind == named.kind);
    let kind = if is_common { named.kind } else { SizeNoteKind::ObjectiveNotShown };
    let detail = named.detail.as_ref().map_or_else(|| place.clone(), |detail| format!("{place}: {detail}"));
    SizeNote::naming(kind, detail)
}

/// Distinct kinds of the trials' reasons.
fn reasons(trials: &[&TrialRecord]) -> String {
    let mut kinds: Vec<&str> =
        trials.iter().flat_map(|trial| &trial.verdict.reasons).map(|reason| kind_of(reason)).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds.join(", ")
}

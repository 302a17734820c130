//! Which trials are rerun.
//!
//! The rule is fixed before the run. It depends on the reasons of verdicts and on how busy the CPUs were. A
//! trial is rerun if its cell and repeat lack a figure, and only other processes or the generator's own
//! lateness spoiled it. What the mesh itself does is a result, and stays one: a rate that it does not keep up
//! with, errors, a path that is not proven, a component that dies, all CPUs filled by the experiment itself.
//! The reasons are in docs/decisions/0012-retakes.md.

use crate::trials::{TrialsByCell, is_usable, kind_of};
use results::{
    CellKey, Conditions, Factors, Figure, Figures, LoadPoint, MachineUsage, Mode, Retake, RetakeSummary,
    TrialOutcome, TrialRecord,
};

/// The figures that a repeat should have for each cell. Percentiles beyond the 99th need longer trials than
/// most; no trial is rerun for them.
const WANTED: [Figure; 6] =
    [Figure::P50, Figure::P90, Figure::P99, Figure::Throughput, Figure::Cpu, Figure::Memory];

/// True if only the machine spoiled a trial: other processes took the CPU, or the generator was late although
/// CPU was available.
fn is_disturbed(trial: &TrialRecord) -> bool {
    let spoiling = || trial.verdict.reasons_with_figures().filter(|(_, figures)| !figures.is_empty());
    let kinds = || spoiling().map(|(reason, _)| kind_of(reason));
    let of_the_machine = |kind: &str| kind == OTHER_PROCESSES || is_lateness(kind);
    trial.outcome == TrialOutcome::Finished
        && kinds().next().is_some()
        && kinds().all(of_the_machine)
        && is_late_by_machine(trial)
}

/// Kind of the reason that other programs took CPU.
pub(crate) const OTHER_PROCESSES: &str = "other-processes";

/// True if lateness of the generator is the machine's: others took CPU, or the experiment itself left some.
pub(crate) fn is_late_by_machine(trial: &TrialRecord) -> bool {
    let mut kinds = trial.verdict.reasons.iter().map(|reason| kind_of(reason));
    kinds.any(|kind| kind == OTHER_PROCESSES)
        || trial.machine.as_ref().is_some_and(|machine| !is_full_of_the_experiment(machine))
}

/// True if the generator or a fleet was itself late, in sending or in reading.
pub(crate) fn is_lateness(kind: &str) -> bool {
    matches!(kind, "schedule-lag" | "reading-lag" | "fleet-late")
}

/// Busy share of the machine's CPUs above which no CPU is left.
pub(crate) const FULL_MACHINE: f64 = 0.9;

/// True if all CPUs of the machine were busy, on average over trials.
pub(crate) fn fills_machine<'a>(trials: impl IntoIterator<Item = &'a TrialRecord>) -> bool {
    busy_share(trials).is_some_and(|share| share >= FULL_MACHINE)
}

/// Busy share of the machine's CPUs, on average over trials; `None` if no trial reports it.
pub(crate) fn busy_share<'a>(trials: impl IntoIterator<Item = &'a TrialRecord>) -> Option<f64> {
    let machines = trials.into_iter().filter_map(|trial| trial.machine.as_ref());
    let shares: Vec<f64> = machines
        .filter(|machine| machine.cpus > 0)
        .map(|machine| machine.busy_cores / machine.cpus as f64)
        .collect();
    (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
}

/// True if the generator was late in a trial for any reason but other processes.
pub(crate) fn is_late(trial: &TrialRecord) -> bool {
    let reasons = || trial.verdict.reasons.iter().map(|reason| kind_of(reason));
    reasons().any(is_lateness) && reasons().all(|kind| kind != OTHER_PROCESSES)
}

/// True if the experiment itself left no CPU to the generator.
fn is_full_of_the_experiment(machine: &MachineUsage) -> bool {
    machine.busy_cores - machine.other_processes_cores >= FULL_MACHINE * machine.cpus as f64
}

/// The recorded properties of a take.
#[derive(Clone, Debug)]
struct Take {
    index: usize,
    repeat: usize,
    mode: Mode,
    factors: Factors,
    load: LoadPoint,
    take: usize,
    disturbed: bool,
    /// Usable figures among [`WANTED`].
    usable: Figures,
    reasons: Vec<String>,
}

impl Take {
    fn new(trial: &TrialRecord) -> Self {
        Self {
            index: trial.index,
            repeat: trial.repeat,
            mode: trial.mode,
            factors: trial.factors.clone(),
            load: trial.load.clone(),
            take: trial.take(),
            disturbed: is_disturbed(trial),
            usable: WANTED.into_iter().filter(|figure| is_usable(trial, *figure)).collect(),
            reasons: trial.verdict.reasons.clone(),
        }
    }

    fn cell(&self) -> CellKey<'_> {
        Conditions { factors: &self.factors, load: &self.load }.cell(self.mode)
    }

    /// True if both are takes of the same cell and repeat.
    fn is_of_same(&self, other: &Self) -> bool {
        self.repeat == other.repeat && self.cell() == other.cell()
    }
}

/// A trial to rerun.
#[derive(Clone, Debug, PartialEq)]
pub struct DueRetake {
    /// Deployment mode.
    pub mode: Mode,
    /// Values of the factors.
    pub factors: Factors,
    /// Load of the trial.
    pub load: LoadPoint,
    /// Number of the new take, the trial that it replaces, and the reason.
    pub retake: Retake,
}

impl DueRetake {
    /// The cell that the trial belongs to.
    #[must_use]
    pub fn cell(&self) -> CellKey<'_> {
        Conditions { factors: &self.factors, load: &self.load }.cell(self.mode)
    }
}

/// The takes of a run so far; decides which trials are rerun.
#[derive(Clone, Debug)]
pub struct Retakes {
    of_each: usize,
    most: usize,
    takes: Vec<Take>,
}

impl Retakes {
    /// For a run that reruns each trial at most `of_each` times, and `most` trials in all.
    #[must_use]
    pub fn new(of_each: usize, most: usize) -> Self {
        Self { of_each, most, takes: Vec::new() }
    }

    /// Records a finished trial.
    pub fn note(&mut self, trial: &TrialRecord) {
        self.takes.push(Take::new(trial));
    }

    /// Trials of a repeat that are due for a rerun. Those that lack the median come first; otherwise they
    /// keep the order in which they ran. Limited to the reruns that the run has left.
    #[must_use]
    pub fn due(&self, repeat: usize) -> Vec<DueRetake> {
        let mut takes: Vec<&Take> = self.wanted().filter(|take| take.repeat == repeat).collect();
        takes.sort_by_key(|take| !self.missing(take).contains(Figure::P50));
        let mut due: Vec<DueRetake> = takes.into_iter().map(retake).collect();
        due.truncate(self.most.saturating_sub(self.taken()));
        due
    }

    /// True if trials would need a rerun but the run has used up its reruns.
    #[must_use]
    pub fn too_noisy(&self) -> bool {
        self.of_each > 0 && self.taken() >= self.most && self.wanted().next().is_some()
    }

    /// Number of reruns so far.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.takes.iter().filter(|take| take.take > 1).count()
    }

    /// The wanted figures that no take of the same cell and repeat has.
    fn missing(&self, take: &Take) -> Figures {
        let takes = self.takes.iter().filter(|other| other.is_of_same(take));
        let usable = takes.fold(Figures::none(), |all, other| all.union(other.usable));
        WANTED.into_iter().filter(|figure| !usable.contains(*figure)).collect()
    }

    /// The last takes of their cells and repeats, if another take may have the missing figures and the trial
    /// has reruns left.
    fn wanted(&self) -> impl Iterator<Item = &Take> {
        self.takes.iter().filter(|take| {
            let is_later = |other: &Take| other.is_of_same(take) && other.take > take.take;
            take.disturbed
                && take.take <= self.of_each
                && !self.takes.iter().any(is_later)
                && !self.missing(take).is_empty()
        })
    }
}

fn retake(take: &Take) -> DueRetake {
    DueRetake {
        mode: take.mode,
        factors: take.factors.clone(),
        load: take.load.clone(),
        retake: Retake { take: take.take + 1, of: take.index, because: take.reasons.clone() },
    }
}

/// True if an earlier take of the same repeat was recorded; lines of `trials.jsonl` may be lost. `trials` are
/// those of the cell.
pub(crate) fn is_another_take(trial: &TrialRecord, trials: &[&TrialRecord]) -> bool {
    let is_earlier = |other: &&TrialRecord| other.take() < trial.take() && other.repeat == trial.repeat;
    trial.take() > 1 && trials.iter().any(is_earlier)
}

/// True if a take has a figure that no earlier take of its repeat has.
fn adds_a_figure(trial: &TrialRecord, trials: &TrialsByCell<'_>) -> bool {
    let takes = trials.of(trial.cell()).iter().filter(|other| other.repeat == trial.repeat);
    let earlier: Vec<&&TrialRecord> = takes.filter(|other| other.take() < trial.take()).collect();
    WANTED
        .into_iter()
        .any(|figure| is_usable(trial, figure) && !earlier.iter().any(|earlier| is_usable(earlier, figure)))
}

/// Outcome of the trials that the machine disturbed; `None` if the run allows no reruns and has none.
pub(crate) fn summary(of_each: usize, most: usize, trials: &TrialsByCell<'_>) -> Option<RetakeSummary> {
    let mut all = Retakes::new(of_each, most);
    trials.all().iter().for_each(|trial| all.note(trial));
    let is_again = |trial: &&TrialRecord| is_another_take(trial, trials.of(trial.cell()));
    let taken = trials.all().iter().filter(is_again).count();
    let valid = trials.all().iter().filter(is_again).filter(|trial| adds_a_figure(trial, trials)).count();
    (of_each > 0 || taken > 0).then(|| RetakeSummary {
        of_each,
        most,
        taken,
        valid,
        too_noisy: all.too_noisy(),
    })
}

#[cfg(test)]
pub(crate) mod tests;

//! Which trials are taken again, and which takes enter the estimates.
//!
//! The rule is fixed before the run and goes by the reasons of verdicts and how full the CPUs were: a trial is taken again only where nothing but
//! other processes or the generator's own lateness made it invalid. What the mesh itself does (a rate that it does not
//! keep up with, errors, a path that is not proven, a component that dies, all CPUs filled by the experiment itself) is a
//! result, and stays one. So is lateness that comes again and again with a mode under a load: see [`Retakes::is_habitual`].
//!
//! [`Retakes`] decides while a run goes; [`settle`] says of a run's trials which are in no estimate
//! for what other takes show. The reasons are in docs/decisions/0012-retakes.md.

use crate::trials::{TrialsByCell, is_valid, kind_of};
use experiment::Mode;
use experiment::schema::{
    CellKey, Conditions, Factors, LoadPoint, MachineUsage, Retake, RetakeSummary, TrialOutcome, TrialRecord,
};

/// How a take stands to the machine.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Standing {
    /// Its figures may be used.
    Valid,
    /// Others took the CPU, and nothing else is held against it.
    Disturbed,
    /// The generator was late, and nothing else is held against it: the machine's doing, unless it is the rule.
    Late,
    /// Whatever else made it invalid is a result.
    Result,
}

impl Standing {
    fn of(trial: &TrialRecord) -> Self {
        if is_valid(trial) {
            return Self::Valid;
        }
        let reasons = &trial.verdict.reasons;
        let among = |kind: &str| reasons.iter().any(|reason| kind_of(reason) == kind);
        let of_the_machine = |reason: &String| matches!(kind_of(reason), "other-processes" | "schedule-lag");
        if trial.outcome != TrialOutcome::Finished
            || reasons.is_empty()
            || !reasons.iter().all(of_the_machine)
        {
            Self::Result
        } else if among("other-processes") {
            Self::Disturbed
        } else if trial.machine.as_ref().is_none_or(is_full_of_the_experiment) {
            Self::Result
        } else {
            Self::Late
        }
    }
}

/// Share of the machine's CPUs: above it no CPU was left.
pub(crate) const FULL_MACHINE: f64 = 0.9;

/// Whether the generator was late in a trial, for whatever reason but other processes.
pub(crate) fn is_late(trial: &TrialRecord) -> bool {
    let reasons = || trial.verdict.reasons.iter().map(|reason| kind_of(reason));
    reasons().any(|kind| kind == "schedule-lag") && reasons().all(|kind| kind != "other-processes")
}

/// Whether the experiment itself left no CPU to the generator.
fn is_full_of_the_experiment(machine: &MachineUsage) -> bool {
    machine.busy_cores - machine.other_processes_cores >= FULL_MACHINE * machine.cpus as f64
}

/// What is remembered of a take.
#[derive(Clone, Debug)]
struct Take {
    index: usize,
    repeat: usize,
    mode: Mode,
    factors: Factors,
    load: LoadPoint,
    take: usize,
    standing: Standing,
    interrupted: bool,
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
            standing: Standing::of(trial),
            interrupted: trial.outcome == TrialOutcome::Interrupted,
            reasons: trial.verdict.reasons.clone(),
        }
    }

    fn cell(&self) -> CellKey<'_> {
        Conditions { factors: &self.factors, load: &self.load }.cell(self.mode)
    }
}

/// A trial to take again.
#[derive(Clone, Debug, PartialEq)]
pub struct DueRetake {
    /// The arrangement of proxies.
    pub mode: Mode,
    /// Values of the factors.
    pub factors: Factors,
    /// The load.
    pub load: LoadPoint,
    /// Which take it will be, of which trial, and why.
    pub retake: Retake,
}

impl DueRetake {
    /// The cell that it is a trial of.
    #[must_use]
    pub fn cell(&self) -> CellKey<'_> {
        Conditions { factors: &self.factors, load: &self.load }.cell(self.mode)
    }
}

/// The takes of a run so far, and which are to follow.
#[derive(Clone, Debug)]
pub struct Retakes {
    of_each: usize,
    most: usize,
    takes: Vec<Take>,
}

impl Retakes {
    /// For a run of which each trial is taken again at most `of_each` times, and `most` in all.
    #[must_use]
    pub fn new(of_each: usize, most: usize) -> Self {
        Self { of_each, most, takes: Vec::new() }
    }

    /// Notes a trial that has ended.
    pub fn note(&mut self, trial: &TrialRecord) {
        self.takes.push(Take::new(trial));
    }

    /// Those of a repeat that are to be taken again, in the order in which they were taken; no more than the run may have.
    #[must_use]
    pub fn due(&self, repeat: usize) -> Vec<DueRetake> {
        let mut due: Vec<DueRetake> =
            self.wanted().filter(|take| take.repeat == repeat).map(retake).collect();
        due.truncate(self.most.saturating_sub(self.taken()));
        due
    }

    /// Trials would have to be taken again, and the run has had as many as it may.
    #[must_use]
    pub fn too_noisy(&self) -> bool {
        self.of_each > 0 && self.taken() >= self.most && self.wanted().next().is_some()
    }

    /// How many trials were taken again.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.takes.iter().filter(|take| take.take > 1).count()
    }

    /// Whether a mode is seldom valid under a load, other processes left aside: more than half of its first takes are not,
    /// two at least. That is what it does here, and takes that went well in spite of it would be the lucky ones.
    #[must_use]
    pub fn is_habitual(&self, cell: CellKey<'_>) -> bool {
        self.habit(cell).is_some()
    }

    /// How many first takes were not valid of how many, where it is a habit.
    fn habit(&self, cell: CellKey<'_>) -> Option<(usize, usize)> {
        let first: Vec<&Take> = self
            .takes
            .iter()
            .filter(|take| take.cell() == cell && take.take == 1 && !take.interrupted)
            .collect();
        let not_by_others = |take: &&&Take| matches!(take.standing, Standing::Late | Standing::Result);
        let invalid = first.iter().filter(not_by_others).count();
        (invalid >= 2 && 2 * invalid > first.len()).then_some((invalid, first.len()))
    }

    /// The last takes of their places, where another one may be better and is allowed to each.
    fn wanted(&self) -> impl Iterator<Item = &Take> {
        self.takes.iter().filter(|take| {
            let later = |other: &&Take| {
                other.repeat == take.repeat && other.cell() == take.cell() && other.take > take.take
            };
            matches!(take.standing, Standing::Late | Standing::Disturbed)
                && take.take <= self.of_each
                && !self.takes.iter().any(|other| later(&other))
                && !self.is_habitual(take.cell())
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

/// The trials of a run as they enter the estimates: a later take of what is seldom valid is in none, nor is one beside an
/// earlier take that is valid. The reason is added to its verdict; nothing else is changed.
#[must_use]
pub fn settle(mut trials: Vec<TrialRecord>) -> Vec<TrialRecord> {
    let mut all = Retakes::new(0, 0);
    trials.iter().for_each(|trial| all.note(trial));
    for trial in trials.iter_mut().filter(|trial| trial.take() > 1) {
        let earlier = all.takes.iter().filter(|take| {
            take.repeat == trial.repeat && take.cell() == trial.cell() && take.take < trial.take()
        });
        if let Some((invalid, of)) = all.habit(trial.cell()) {
            leave_out(
                trial,
                &format!(
                    "not-by-chance: {invalid} of {of} first takes of this mode under this load are not valid, and not for other \
                     processes: this one was lucky, and stands for nothing"
                ),
            );
        } else if let Some(valid) = earlier.into_iter().find(|take| take.standing == Standing::Valid) {
            leave_out(trial, &format!("superfluous: trial {} is valid", valid.index + 1));
        }
    }
    trials
}

/// The trial and each of its drivers, which may be valid where others of the same trial are not.
fn leave_out(trial: &mut TrialRecord, reason: &str) {
    let drivers = trial.drivers.iter_mut().map(|driver| &mut driver.verdict);
    for verdict in drivers.chain([&mut trial.verdict]).filter(|verdict| verdict.valid) {
        verdict.valid = false;
        verdict.reasons.push(reason.to_owned());
    }
}

/// Whether an earlier take of the same repeat was recorded; lines of `trials.jsonl` may be lost. `trials` are those of the
/// cell.
pub(crate) fn is_another_take(trial: &TrialRecord, trials: &[&TrialRecord]) -> bool {
    let is_earlier = |other: &&TrialRecord| other.take() < trial.take() && other.repeat == trial.repeat;
    trial.take() > 1 && trials.iter().any(is_earlier)
}

/// What became of the trials that the machine disturbed; absent where none was to be taken again and none was.
pub(crate) fn summary(of_each: usize, most: usize, trials: &TrialsByCell<'_>) -> Option<RetakeSummary> {
    let mut all = Retakes::new(of_each, most);
    trials.all().iter().for_each(|trial| all.note(trial));
    let again = || trials.all().iter().filter(|trial| is_another_take(trial, trials.of(trial.cell())));
    let (taken, valid) = (again().count(), again().filter(|trial| is_valid(trial)).count());
    (of_each > 0 || taken > 0).then(|| RetakeSummary {
        of_each,
        most,
        taken,
        valid,
        too_noisy: all.too_noisy(),
    })
}

#[cfg(test)]
mod tests;

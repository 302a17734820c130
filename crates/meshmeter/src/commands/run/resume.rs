//! Continues a run that ended before its last trial: what is there stays, and the plan goes on.

use crate::commands::report::folder_failure;
use crate::failure::Failure;
use experiment::schema::{Build, Host, Resumption, Retake, TrialOutcome, TrialRecord, UnavailableMode};
use experiment::{Experiment, PlannedTrial};
use report::folder::{EXPERIMENT_FILE, RawRun, RunFolder, read_experiment};
use std::path::Path;

/// Reads the experiment of a run, as it was resolved when the run began.
pub(super) fn experiment(folder: &Path) -> Result<Experiment, Failure> {
    let yaml = read_experiment(folder).map_err(folder_failure)?;
    let file = folder.join(EXPERIMENT_FILE);
    let experiment = Experiment::parse(&yaml, &file.to_string_lossy())
        .map_err(|error| Failure::usage(error.render(false)))?;
    match experiment.seed {
        Some(_) => Ok(experiment),
        None => Err(Failure::usage(format!("{} does not say which seed ordered the trials", file.display()))),
    }
}

/// Opens the run's directory for more trials.
pub(super) fn open(folder: &Path) -> Result<(RunFolder, RawRun), Failure> {
    RunFolder::resume(folder).map_err(folder_failure)
}

/// The record of the machine for the rest of a run, which has this many trials: that of its beginning, with a line on
/// the interruption.
///
/// # Errors
/// Returns an error if trials would not be comparable: another machine, other programs, other modes.
pub(super) fn host(
    mut earlier: Host,
    after_trials: usize,
    now: &Host,
    unavailable: &[UnavailableMode],
) -> Result<Host, Failure> {
    let differences = differences(&earlier, now, unavailable);
    if !differences.is_empty() {
        let text =
            format!("the run cannot go on, since its trials would not be alike: {}", differences.join("; "));
        return Err(Failure::usage(text)
            .with_hint("`meshmeter report` shows what was measured; measure anew with --out"));
    }
    earlier.resumed.push(Resumption { at: jiff::Timestamp::now().to_string(), after_trials });
    Ok(earlier)
}

/// Differences between the machine at the beginning of a run and now, as text.
fn differences(then: &Host, now: &Host, unavailable: &[UnavailableMode]) -> Vec<String> {
    let cpus = |host: &Host| format!("{} x {}", host.cpus, host.cpu_model);
    let commit = |build: Option<&Build>| build.map_or_else(|| "unknown".to_owned(), Build::describe);
    let modes = |modes: &[UnavailableMode]| {
        let names: Vec<&str> = modes.iter().map(|mode| mode.mode.name()).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    let facts = [
        ("CPUs", cpus(then), cpus(now)),
        ("kernel", then.kernel.clone(), now.kernel.clone()),
        ("cgroups", then.cgroups.clone(), now.cgroups.clone()),
        ("privileges", then.privileges.clone(), now.privileges.clone()),
        ("build of Meshmeter", commit(then.build.as_ref()), commit(now.build.as_ref())),
        ("modes that cannot run", modes(&then.refused_modes), modes(unavailable)),
    ];
    let facts = facts.into_iter().filter(|(_, then, now)| then != now);
    let of_programs = then.versions.iter().filter_map(|then| {
        let now = now.versions.iter().find(|now| now.name == then.name)?;
        let is_same = now.version == then.version && now.sha256 == then.sha256;
        (!is_same).then(|| format!("{} was {} and is {}", then.name, then.version, now.version))
    });
    facts.map(|(what, then, now)| format!("{what}: {then}, now {now}")).chain(of_programs).collect()
}

/// A planned trial that is still due: `Some(None)` if it has not run, a retake if its last take was cut short.
pub(super) fn due(planned: &PlannedTrial, recorded: &[TrialRecord]) -> Option<Option<Retake>> {
    let takes =
        recorded.iter().filter(|trial| trial.repeat == planned.repeat && trial.cell() == planned.cell());
    let Some(last) = takes.max_by_key(|trial| trial.take()) else { return Some(None) };
    (last.outcome == TrialOutcome::Interrupted).then(|| {
        Some(Retake { take: last.take() + 1, of: last.index, because: last.verdict.reasons.clone() })
    })
}

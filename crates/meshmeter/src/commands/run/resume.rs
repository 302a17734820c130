//! Continues a run that ended before its last trial: what is there stays, and the plan goes on.

use crate::commands::report::folder_failure;
use crate::failure::Failure;
use experiment::{Experiment, PlannedTrial};
use report::folder::{EXPERIMENT_FILE, RawRun, RunFolder, read_experiment};
use results::{Build, ClusterPlace, Host, Resumption, Retake, TrialOutcome, TrialRecord, UnavailableMode};
use std::path::Path;

/// Reads the experiment of a run, as it was resolved when the run began.
pub(super) fn experiment(folder: &Path) -> Result<Experiment, Failure> {
    let yaml = read_experiment(folder).map_err(folder_failure)?;
    parse(&folder.join(EXPERIMENT_FILE), &yaml)
}

/// Parses an experiment that a run or a comparison has resolved.
pub(super) fn parse(file: &Path, yaml: &str) -> Result<Experiment, Failure> {
    let experiment = Experiment::parse(yaml, &file.to_string_lossy())
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
            format!("the run cannot continue, since its trials would differ: {}", differences.join("; "));
        let hint = match (&earlier.cluster, &now.cluster) {
            (Some(_), None) => {
                "a run on a cluster goes on with --on cluster and the options of its beginning"
            }
            _ => "`meshmeter report` shows what was measured; measure anew with --out",
        };
        return Err(Failure::usage(text).with_hint(hint));
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
    let facts = facts.into_iter().chain(facts_of_clusters(then.cluster.as_ref(), now.cluster.as_ref()));
    let facts = facts.filter(|(_, then, now)| then != now);
    let of_programs = then.versions.iter().filter_map(|then| {
        // Nodes of a cluster may have several versions of one program.
        let mut own = now.versions.iter().filter(|now| now.name == then.name).peekable();
        let first = *own.peek()?;
        let is_there = own.any(|now| now.version == then.version && now.sha256 == then.sha256);
        (!is_there).then(|| format!("{} was {} and is {}", then.name, then.version, first.version))
    });
    facts.map(|(what, then, now)| format!("{what}: {then}, now {now}")).chain(of_programs).collect()
}

/// Facts that decide the figures of a run on a cluster, then and now. Other options, such as the namespace, change no figure.
fn facts_of_clusters(
    then: Option<&ClusterPlace>,
    now: Option<&ClusterPlace>,
) -> Vec<(&'static str, String, String)> {
    let (Some(then), Some(now)) = (then, now) else {
        let place = |cluster: Option<&ClusterPlace>| cluster.map_or("a lab", |_| "a cluster").to_owned();
        return vec![("place", place(then), place(now))];
    };
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "none named".to_owned());
    let of_place = |what, of: fn(&ClusterPlace) -> String| (what, of(then), of(now));
    let mut facts = vec![
        of_place("image", |place| place.image.clone()),
        ("revision of Istio", text(&then.revision), text(&now.revision)),
        ("nodes of generators", text(&then.generator_nodes), text(&now.generator_nodes)),
        of_place("source of usage", |place| place.usage_source.clone()),
    ];
    if let (Some(then), Some(now)) = (&then.uid, &now.uid) {
        facts.push(("cluster", then.clone(), now.clone()));
    }
    facts
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

#[cfg(test)]
mod tests {
    use super::*;
    use results::ComponentVersion;

    fn on_cluster(change: impl FnOnce(&mut ClusterPlace)) -> Host {
        let mut place = ClusterPlace {
            uid: Some("7f3b".to_owned()),
            image: "meshmeter:1".to_owned(),
            usage_source: "kubelets".to_owned(),
            ..ClusterPlace::default()
        };
        change(&mut place);
        Host { cluster: Some(place), ..Host::default() }
    }

    #[test]
    fn run_goes_on_only_where_and_as_it_began() {
        let then = on_cluster(|_| ());
        let differing = |now: &Host| differences(&then, now, &[]).join("; ");
        assert_eq!(differing(&then), "");
        assert_eq!(differing(&on_cluster(|place| place.uid = None)), "", "it may no longer be readable");
        assert_eq!(differing(&Host::default()), "place: a cluster, now a lab");
        assert_eq!(differences(&Host::default(), &then, &[]), ["place: a lab, now a cluster"]);
        let changed = on_cluster(|place| {
            place.uid = Some("90ac".to_owned());
            place.image = "meshmeter:2".to_owned();
            place.revision = Some("canary".to_owned());
            place.generator_nodes = Some("load=true".to_owned());
            place.usage_source = "none".to_owned();
        });
        assert_eq!(
            differing(&changed),
            "image: meshmeter:1, now meshmeter:2; \
             revision of Istio: none named, now canary; nodes of generators: none named, now load=true; \
             source of usage: kubelets, now none; cluster: 7f3b, now 90ac"
        );
    }

    #[test]
    fn programs_with_several_versions_on_nodes_are_compared_as_a_set() {
        let kernels = |versions: &[&str]| Host {
            versions: versions
                .iter()
                .map(|version| ComponentVersion {
                    name: "linux".to_owned(),
                    version: (*version).to_owned(),
                    ..ComponentVersion::default()
                })
                .collect(),
            ..Host::default()
        };
        let then = kernels(&["6.1", "6.6"]);
        assert_eq!(differences(&then, &kernels(&["6.1", "6.6"]), &[]), Vec::<String>::new());
        assert_eq!(differences(&then, &kernels(&["6.1", "6.8"]), &[]), ["linux was 6.6 and is 6.1"]);
    }
}

//! Whether a trial's figures may be used: the generator's own verdict, and what the environment saw.
//! docs/method.md gives each bound with its reason.

use experiment::environment::Observation;
use experiment::schema::{LoadResult, MachineUsage, Verdict};

/// Processes outside the experiment may take this share of all CPUs.
const OTHER_PROCESSES_SHARE: f64 = 0.10;
/// Time stolen by the hypervisor is mentioned from this share of all CPUs on.
const STEAL_SHARE: f64 = 0.02;

/// How a trial ended.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) enum Ending {
    /// The generator ran its whole time.
    #[default]
    Finished,
    /// The user stopped the run.
    Interrupted,
    /// Something failed: what, in words.
    Failed(String),
}

/// Judges a trial.
pub(super) fn judge(ending: &Ending, result: Option<&LoadResult>, observation: &Observation) -> Verdict {
    let mut verdict = result.map(|result| result.verdict.clone()).unwrap_or_default();
    if result.is_some() {
        judge_observation(observation, &mut verdict);
    }
    // First: all other reasons may follow from a trial that was cut short, saturation too.
    let cut_short = match ending {
        Ending::Finished => None,
        Ending::Interrupted => Some("interrupted: the run was stopped during this trial".to_owned()),
        Ending::Failed(what) => Some(format!("failed: {what}")),
    };
    if let Some(reason) = cut_short {
        verdict.reasons.insert(0, reason);
        verdict.saturated = false;
    }
    verdict.valid = result.is_some() && verdict.reasons.is_empty();
    verdict
}

fn judge_observation(observation: &Observation, verdict: &mut Verdict) {
    if !observation.path.proven {
        verdict.reasons.push(format!("path-not-proven: {}", observation.path.reasons.join("; ")));
    }
    for component in &observation.components {
        if let Some(throttling) = component.throttling.filter(|throttling| throttling.periods > 0) {
            let (name, periods, ms) = (&component.name, throttling.periods, throttling.time_s * 1000.0);
            verdict
                .reasons
                .push(format!("throttled: {name}, in {periods} periods for {ms:.0} ms by its CPU limit"));
        }
    }
    match &observation.machine {
        Some(machine) => judge_machine(machine, verdict),
        None => verdict
            .reasons
            .push("not-observed: the components were not read at both ends of the window".to_owned()),
    }
}

fn judge_machine(machine: &MachineUsage, verdict: &mut Verdict) {
    let cpus = machine.cpus as f64;
    if machine.other_processes_cores > OTHER_PROCESSES_SHARE * cpus {
        let names: Vec<String> = machine
            .top_other_processes
            .iter()
            .map(|process| format!("{} {:.2}", process.name, process.cpu_cores))
            .collect();
        // First: where others took the CPU, all other reasons follow from it.
        let cores = machine.other_processes_cores;
        verdict
            .reasons
            .insert(0, format!("other-processes: others took {cores:.2} cores ({})", names.join(", ")));
    }
    if machine.steal_cores > STEAL_SHARE * cpus {
        verdict.notes.push(format!("steal: the hypervisor took {:.2} cores away", machine.steal_cores));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::schema::{ComponentUsage, PathProof, Role, Throttling, TopProcess};

    fn observation() -> Observation {
        Observation {
            path: PathProof { proven: true, ..PathProof::default() },
            machine: Some(MachineUsage { cpus: 2, ..MachineUsage::default() }),
            ..Observation::default()
        }
    }

    fn result() -> LoadResult {
        let text = include_str!("../../../tests/load-result.json");
        let result: LoadResult = serde_json::from_str(text).expect("a result as the generator writes it");
        LoadResult { verdict: Verdict { valid: true, ..Verdict::default() }, ..result }
    }

    fn reasons(ending: &Ending, observation: &Observation) -> Vec<String> {
        let verdict = judge(ending, Some(&result()), observation);
        assert_eq!(verdict.valid, verdict.reasons.is_empty());
        verdict.reasons.iter().map(|reason| reason.split(':').next().unwrap_or_default().to_owned()).collect()
    }

    #[test]
    fn nothing_against_it_is_valid() {
        assert!(reasons(&Ending::Finished, &observation()).is_empty());
    }

    #[test]
    fn each_cause_has_its_reason() {
        let mut unproven = observation();
        unproven.path.proven = false;
        assert_eq!(reasons(&Ending::Finished, &unproven), ["path-not-proven"]);

        let mut busy = observation();
        let machine = busy.machine.as_mut().unwrap();
        machine.other_processes_cores = 0.5;
        machine.top_other_processes = vec![TopProcess { name: "rustc".into(), cpu_cores: 0.5 }];
        assert_eq!(reasons(&Ending::Finished, &busy), ["other-processes"]);

        let mut throttled = observation();
        throttled.components = vec![ComponentUsage {
            throttling: Some(Throttling { periods: 3, time_s: 0.1 }),
            ..ComponentUsage::of("client-proxy", Role::Proxy, 1.0)
        }];
        assert_eq!(reasons(&Ending::Finished, &throttled), ["throttled"]);

        assert_eq!(reasons(&Ending::Interrupted, &observation()), ["interrupted"]);
        assert_eq!(reasons(&Ending::Failed("server died".into()), &observation()), ["failed"]);
        assert_eq!(
            reasons(&Ending::Finished, &Observation { machine: None, ..observation() }),
            ["not-observed"]
        );
    }

    #[test]
    fn a_trial_that_was_cut_short_says_so_first_and_nothing_of_the_target() {
        let mut result = result();
        result.verdict = Verdict {
            saturated: true,
            reasons: vec!["saturated: 1/s completed of 500/s offered".to_owned()],
            ..Verdict::default()
        };
        let mut busy = observation();
        busy.machine.as_mut().unwrap().other_processes_cores = 0.5;
        for (ending, first) in
            [(Ending::Interrupted, "interrupted:"), (Ending::Failed("x".into()), "failed: x")]
        {
            let verdict = judge(&ending, Some(&result), &busy);
            assert!(verdict.reasons[0].starts_with(first), "{:?}", verdict.reasons);
            assert!(!verdict.saturated && !verdict.valid);
        }
    }

    #[test]
    fn without_a_result_nothing_is_valid() {
        let verdict = judge(&Ending::Failed("no proxy".into()), None, &Observation::default());
        assert!(!verdict.valid);
        assert_eq!(verdict.reasons, ["failed: no proxy"]);
    }
}

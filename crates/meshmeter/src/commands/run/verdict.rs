//! Decides which of a trial's figures may be used, from the drivers' own verdicts and what the environment
//! observed. docs/method.md explains each bound.

mod scenario;

use super::drivers::DriverRun;
use super::fleet;
use experiment::environment::{Scenario, WindowUsage, error_chain};
use results::{Figure, Figures, LoadResult, MachineUsage, PathProof, Role, Verdict};
use statistics::lost_cpu::{LostCpu, other_processes};
use statistics::merge::MergeError;

/// Maximum share of the CPU time left by the experiment that the hypervisor stole …
const MAX_STEAL_SHARE: f64 = 0.05;
/// … and the share from which it is noted.
const NOTED_STEAL_SHARE: f64 = 0.02;

/// How a trial ended.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) enum Ending {
    /// All drivers ran for their whole time.
    #[default]
    Finished,
    /// The user stopped the run.
    Interrupted,
    /// Something failed; the text says what.
    Failed(String),
    /// One of the generators that share a load was lost; the text says which, and how. The others offered
    /// less than the load.
    GeneratorLost(String),
}

/// Observations of a trial, other than the results of its drivers.
pub(super) struct Observed<'a> {
    pub ending: &'a Ending,
    pub path: &'a PathProof,
    /// What a gateway does with the load; `None` without a gateway on the path.
    pub scenario: Option<Scenario>,
    /// Usage in the window; `None` if it was not read at both ends.
    pub usage: Option<&'a WindowUsage>,
    /// Gateways and istiods with their own CPU limit: such a run is meant to reach it.
    pub limited: &'a [String],
}

/// Verdict of a whole trial. With several drivers, a reason from one of them names it after the kind of
/// reason.
pub(super) fn check_trial(
    observed: &Observed<'_>,
    drivers: &[DriverRun],
    merged: &Result<Option<LoadResult>, MergeError>,
) -> Verdict {
    let fleet = drivers.iter().find_map(DriverRun::fleet);
    let mut verdict = match merged {
        Ok(None) => fleet.map(fleet::verdict).unwrap_or_default(),
        Ok(Some(result)) => result.verdict.clone(),
        Err(error) => {
            let mut verdict = Verdict::usable();
            verdict.spoil(format!("not-merged: {}", error_chain(error)), Figures::all());
            verdict
        }
    };
    if drivers.len() > 1 {
        // Drivers differ by design, and their seconds are stored.
        verdict.notes.retain(|note| !note.starts_with("settings: ") && !note.starts_with("series: "));
    }
    if drivers.iter().any(|driver| driver.result.is_ok()) {
        check_environment(observed, None, merged.as_ref().ok().and_then(Option::as_ref), &mut verdict);
    }
    drivers.iter().for_each(|driver| check_scenario(observed, driver, &mut verdict));
    check_ending(observed.ending, &mut verdict);
    require_results(drivers, verdict)
}

/// Verdict of one of several drivers, without reasons that concern only other drivers.
pub(super) fn check_driver(observed: &Observed<'_>, driver: &DriverRun) -> Verdict {
    let mut verdict = driver.result().map(|result| result.verdict.clone()).unwrap_or_default();
    if driver.result().is_some() {
        check_environment(observed, Some(driver), driver.result(), &mut verdict);
    }
    check_scenario(observed, driver, &mut verdict);
    check_ending(observed.ending, &mut verdict);
    require_results(std::slice::from_ref(driver), verdict)
}

/// Without the result of every driver, nothing is usable.
fn require_results(drivers: &[DriverRun], mut verdict: Verdict) -> Verdict {
    let without = drivers.iter().find(|driver| driver.result.is_err());
    if let Some(driver) = without.filter(|_| verdict.valid) {
        verdict.spoil(format!("failed: {} has no result", driver.name), Figures::all());
    }
    verdict
}

fn check_scenario(observed: &Observed<'_>, driver: &DriverRun, verdict: &mut Verdict) {
    let Some((scenario, result)) = observed.scenario.zip(driver.result()) else { return };
    if let Some(what) = scenario::contradiction(scenario, result) {
        let reason = format!("scenario-not-proven: {}: {what}", driver.name);
        verdict.spoil(reason, Figures::all());
    }
}

fn check_ending(ending: &Ending, verdict: &mut Verdict) {
    let reason = match ending {
        Ending::Finished => return,
        Ending::Interrupted => "interrupted: the run was stopped during this trial".to_owned(),
        Ending::Failed(what) => format!("failed: {what}"),
        Ending::GeneratorLost(what) => format!("generator-lost: {what}"),
    };
    // Comes first: all other reasons, including saturation, may follow from a trial that was cut short.
    verdict.spoil_first(reason, Figures::all());
    verdict.saturated = false;
}

/// Adds what the environment observed. For a single driver, throttling of other generators is ignored.
fn check_environment(
    observed: &Observed<'_>,
    driver: Option<&DriverRun>,
    result: Option<&LoadResult>,
    verdict: &mut Verdict,
) {
    if !observed.path.proven {
        verdict.spoil_by_path(&observed.path.reasons.join("; "));
    }
    let Some(usage) = observed.usage else {
        let reason = "not-observed: the components were not read at both ends of the window";
        verdict.spoil(reason, [Figure::Cpu, Figure::Memory, Figure::Network].into_iter().collect());
        return;
    };
    for component in &usage.components {
        let is_of_other = driver.is_some_and(|driver| !driver.has_generator(&component.name));
        if component.role == Role::Generator && is_of_other {
            continue;
        }
        if observed.limited.contains(&component.name) {
            continue;
        }
        if let Some(throttling) = component.throttling.filter(|throttling| throttling.periods > 0) {
            let (name, periods, ms) = (&component.name, throttling.periods, throttling.time_s * 1000.0);
            let reason = format!("throttled: {name}, in {periods} periods for {ms:.0} ms by its CPU limit");
            verdict.spoil(reason, Figures::times().with(Figure::Throughput));
        }
    }
    if let Some(machine) = &usage.machine {
        check_machine(machine, result, verdict);
    }
}

fn check_machine(machine: &MachineUsage, result: Option<&LoadResult>, verdict: &mut Verdict) {
    let times = result.map(|result| &result.response_time_us);
    if let Some((reason, spoiled)) = other_processes(machine, result) {
        // Comes first: if other processes took CPU time, all other reasons may follow from it.
        verdict.spoil_first(reason, spoiled);
    }
    let stolen = LostCpu::new(machine.steal_cores, machine, result);
    let reason = format!("steal: the hypervisor took {:.2} cores away", machine.steal_cores);
    if stolen.share() > MAX_STEAL_SHARE {
        verdict.spoil(reason, stolen.spoiled(times));
    } else if stolen.share() > NOTED_STEAL_SHARE {
        verdict.notes.push(reason);
    }
}

#[cfg(test)]
mod tests;

//! Unavailable modes: those that cannot run here, at all or with some components. They are left out, with the
//! reason; no other mode replaces them.

use super::ExperimentSource;
use crate::failure::Failure;
use crate::output::tell;
use experiment::environment::{ComponentsSettings, EnvironmentError, error_chain};
use experiment::{Experiment, MeshKind, Override};
use results::{Factors, Mode, UnavailableMode, factor_texts, is_of_components};
use std::error::Error as _;

/// Leaves the unavailable modes out of an experiment and returns them.
///
/// # Errors
/// Returns an error if no mode would be left, or only the baseline; if only one of several compared
/// components would be left; or if the user requires all modes.
pub(in crate::commands) fn leave_out(
    experiment: &mut Experiment,
    all_required: bool,
    check_mode: impl Fn(Mode, &ComponentsSettings) -> Result<(), EnvironmentError>,
) -> Result<Vec<UnavailableMode>, EnvironmentError> {
    let choices = choices(experiment);
    let mut unavailable = Vec::new();
    let mut first_error = None;
    for mode in &experiment.modes {
        let checked = choices.iter().map(|(factors, components)| (factors, check_mode(*mode, components)));
        let failed: Vec<(&Factors, EnvironmentError)> =
            checked.filter_map(|(factors, result)| Some((factors, result.err()?))).collect();
        let never_runs = failed.len() == choices.len();
        let stated = if never_runs { 1 } else { failed.len() };
        for (factors, error) in failed.into_iter().take(stated) {
            // The message already says that the mode cannot run; only the cause is needed.
            let reason = error.source().map_or_else(|| error.to_string(), error_chain);
            let factors = if never_runs { Factors::new() } else { factors.clone() };
            unavailable.push(UnavailableMode { mode: *mode, factors, reason, hint: error.hint.clone() });
            first_error.get_or_insert(error);
        }
    }
    let Some(error) = first_error else { return Ok(unavailable) };
    if all_required {
        return Err(error);
    }
    experiment.leave_out(&unavailable);
    let runs = |factors: &Factors| {
        let mut modes = experiment.modes.iter().filter(|mode| **mode != Mode::None);
        modes.any(|mode| experiment.has_cell(*mode, factors))
    };
    let answers = choices.iter().filter(|(factors, _)| runs(factors)).count();
    if answers < choices.len().min(2) {
        return Err(error);
    }
    Ok(unavailable)
}

/// Sets the mesh of an experiment that is read with these overrides, and leaves out the modes that this mesh lacks, if
/// it has others of them.
///
/// # Errors
/// Returns an error if the experiment cannot be read without the mesh, or if the user requires all modes.
pub(in crate::commands) fn take_mesh(
    experiment: &ExperimentSource<'_>,
    overrides: &mut Vec<Override>,
    mesh: MeshKind,
    all_required: bool,
) -> Result<(), Failure> {
    let read = experiment.parse(overrides)?;
    overrides.push(Override::set(format!("mesh={mesh}")));
    let (made, lacking): (Vec<Mode>, Vec<Mode>) = read.modes.iter().partition(|mode| mesh.makes(**mode));
    if made.is_empty() || lacking.is_empty() {
        return Ok(());
    }
    let reason = format!("mesh {mesh} has no such mode");
    if all_required {
        return Err(EnvironmentError::new(format!("run mode {}", lacking[0]), reason).into());
    }
    let made: Vec<&str> = made.into_iter().map(Mode::name).collect();
    overrides.push(Override::set(format!("modes=[{}]", made.join(","))));
    for mode in lacking {
        let left_out = UnavailableMode { mode, factors: Factors::new(), reason: reason.clone(), hint: None };
        tell!("{}", sentence(&left_out));
    }
    Ok(())
}

/// Every combination of components that the experiment compares; if it compares none, its own.
fn choices(experiment: &Experiment) -> Vec<(Factors, ComponentsSettings)> {
    let mut choices: Vec<(Factors, ComponentsSettings)> = Vec::new();
    for (factors, one) in experiment.each_combination() {
        let factors: Factors = factors.into_iter().filter(|(key, _)| is_of_components(key)).collect();
        if !choices.iter().any(|(known, _)| *known == factors) {
            choices.push((factors, one.components.clone()));
        }
    }
    choices
}

/// One line about an unavailable mode.
pub(in crate::commands) fn sentence(left_out: &UnavailableMode) -> String {
    let UnavailableMode { mode, factors, reason, .. } = left_out;
    format!("mode {mode}{} is unavailable here: {reason}", with(factors))
}

/// For example ` with components.istio 1.30.1`; empty without factors.
pub(super) fn with(factors: &Factors) -> String {
    let factors = factor_texts(factors);
    if factors.is_empty() { String::new() } else { format!(" with {}", factors.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODES: &str = "{name: x, mesh: istio, modes: [none, sidecar, ambient], load: {rate: 1000}}";
    const VERSIONS: &str = "{name: x, mesh: istio, modes: [none, sidecar, ambient], load: {rate: 1000}, \
                            components: {istio: [1.28.0, 1.29.4, 1.30.1]}}";

    fn left(
        text: &str,
        missing: &[(Mode, Option<&str>)],
        all_required: bool,
    ) -> (Result<Vec<UnavailableMode>, EnvironmentError>, Experiment) {
        let mut experiment = Experiment::parse(text, "test").unwrap();
        let unavailable = leave_out(&mut experiment, all_required, |mode, components| {
            let lacks = |version: &Option<&str>| version.is_none() || *version == components.istio.as_deref();
            if missing.iter().any(|(missing, version)| *missing == mode && lacks(version)) {
                let error = EnvironmentError::new(format!("run mode {mode}"), "there is no ztunnel");
                Err(error.with_hint("name one with --ztunnel"))
            } else {
                Ok(())
            }
        });
        (unavailable, experiment)
    }

    fn lacks_ztunnel(mode: Mode, version: Option<&str>) -> UnavailableMode {
        let version = version
            .map(|version| ("components.istio".to_owned(), results::FactorValue::Text(version.into())));
        UnavailableMode {
            mode,
            factors: version.into_iter().collect(),
            reason: "there is no ztunnel".into(),
            hint: Some("name one with --ztunnel".into()),
        }
    }

    #[test]
    fn available_modes_are_kept() {
        let (unavailable, experiment) = left(MODES, &[(Mode::Ambient, None)], false);
        assert_eq!(experiment.modes, [Mode::None, Mode::Sidecar]);
        assert_eq!(unavailable.unwrap(), [lacks_ztunnel(Mode::Ambient, None)]);
        assert!(left(MODES, &[], true).0.unwrap().is_empty());
    }

    #[test]
    fn mode_missing_in_one_version_stays_for_others() {
        let missing = [(Mode::Ambient, Some("1.28.0"))];
        let (unavailable, experiment) = left(VERSIONS, &missing, false);
        assert_eq!(unavailable.unwrap(), [lacks_ztunnel(Mode::Ambient, Some("1.28.0"))]);
        assert_eq!(experiment.modes.len(), 3);
        let cells = experiment::plan::cells(&experiment);
        let ambient = cells.iter().filter(|cell| cell.mode == Mode::Ambient);
        let versions: Vec<String> =
            ambient.map(|cell| cell.factors["components.istio"].to_string()).collect();
        assert_eq!(versions, ["1.29.4", "1.30.1"]);
        let plan = experiment::Plan::new(&experiment, 1);
        assert_eq!(plan.trials.len(), cells.len() * experiment.repeats);
        assert!(plan.trials.iter().enumerate().all(|(index, trial)| trial.index == index));
    }

    #[test]
    fn first_reason_is_the_error_if_no_comparison_is_left() {
        let of_all = |version| [(Mode::Sidecar, Some(version)), (Mode::Ambient, Some(version))];
        for (text, missing, all_required) in [
            (MODES, vec![(Mode::Sidecar, None), (Mode::Ambient, None)], false),
            (MODES, vec![(Mode::None, None), (Mode::Sidecar, None), (Mode::Ambient, None)], false),
            (MODES, vec![(Mode::Ambient, None)], true),
            (VERSIONS, [of_all("1.28.0"), of_all("1.29.4")].concat(), false),
            (VERSIONS, of_all("1.30.1").to_vec(), true),
        ] {
            let failure = left(text, &missing, all_required).0.unwrap_err();
            assert!(format!("{failure:?}").contains("there is no ztunnel"), "{failure:?}");
        }
        assert_eq!(left(VERSIONS, &of_all("1.30.1"), false).0.unwrap().len(), 2);
    }
}

//! Modes that are unavailable here: left out, with what they lack. Nothing stands in for them.

use crate::failure::Failure;
use experiment::environment::{EnvironmentError, in_one_line};
use experiment::schema::UnavailableMode;
use experiment::{Experiment, Mode};
use std::error::Error as _;

/// Leaves the unavailable modes out of an experiment, and returns them.
///
/// # Errors
/// No mode would be left, or only the baseline; or the user requires all modes.
pub(super) fn leave_out(
    experiment: &mut Experiment,
    all_required: bool,
    check_mode: impl Fn(Mode) -> Result<(), EnvironmentError>,
) -> Result<Vec<UnavailableMode>, Failure> {
    let mut unavailable = Vec::new();
    let mut first_error = None;
    for mode in &experiment.modes {
        if let Err(error) = check_mode(*mode) {
            // That the mode cannot run is known: why.
            let reason = error.source().map_or_else(|| error.to_string(), in_one_line);
            unavailable.push(UnavailableMode { mode: *mode, reason, hint: error.hint.clone() });
            first_error.get_or_insert(error);
        }
    }
    let Some(error) = first_error else { return Ok(unavailable) };
    if all_required {
        return Err(error.into());
    }
    experiment.modes.retain(|mode| unavailable.iter().all(|unavailable| unavailable.mode != *mode));
    if experiment.modes.iter().all(|mode| *mode == Mode::None) {
        return Err(error.into());
    }
    Ok(unavailable)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lacks(missing: &[Mode]) -> impl Fn(Mode) -> Result<(), EnvironmentError> + '_ {
        move |mode| {
            if missing.contains(&mode) {
                let error = EnvironmentError::new(format!("run mode {mode}"), "there is no ztunnel");
                Err(error.with_hint("name one with --ztunnel"))
            } else {
                Ok(())
            }
        }
    }

    fn left(missing: &[Mode], all_required: bool) -> (Result<Vec<UnavailableMode>, Failure>, Vec<Mode>) {
        let text = "{name: x, mesh: istio, modes: [none, sidecar, ambient], load: {rate: 1000}}";
        let mut experiment = Experiment::parse(text, "test").unwrap();
        let unavailable = leave_out(&mut experiment, all_required, lacks(missing));
        (unavailable, experiment.modes)
    }

    #[test]
    fn modes_that_can_run_do() {
        let (unavailable, modes) = left(&[Mode::Ambient], false);
        assert_eq!(modes, [Mode::None, Mode::Sidecar]);
        let expected = UnavailableMode {
            mode: Mode::Ambient,
            reason: "there is no ztunnel".into(),
            hint: Some("name one with --ztunnel".into()),
        };
        assert_eq!(unavailable.unwrap(), [expected]);
        assert!(left(&[], true).0.unwrap().is_empty());
    }

    #[test]
    fn where_no_answer_is_left_the_first_reason_is_the_error() {
        for (missing, all_required) in [
            (&[Mode::Sidecar, Mode::Ambient][..], false),
            (&[Mode::None, Mode::Sidecar, Mode::Ambient][..], false),
            (&[Mode::Ambient][..], true),
        ] {
            let failure = left(missing, all_required).0.unwrap_err();
            assert!(format!("{failure:?}").contains("there is no ztunnel"), "{failure:?}");
        }
    }
}

//! Modes that cannot run here: named, with what they lack, and left out. Nothing stands in for them.

use crate::failure::Failure;
use experiment::environment::{EnvironmentError, in_one_line};
use experiment::schema::RefusedMode;
use experiment::{Experiment, Mode};
use std::error::Error as _;

/// Leaves the modes that cannot run out of an experiment, and gives them.
///
/// An error where no answer would be left: no mode, or the floor without anything to compare it with; and where the user
/// wants all modes or none.
pub(super) fn leave_out_refused(
    experiment: &mut Experiment,
    all_required: bool,
    can_run: impl Fn(Mode) -> Result<(), EnvironmentError>,
) -> Result<Vec<RefusedMode>, Failure> {
    let mut refused = Vec::new();
    let mut first_error = None;
    for mode in &experiment.modes {
        if let Err(error) = can_run(*mode) {
            // That the mode cannot run is known: why.
            let reason = error.source().map_or_else(|| error.to_string(), in_one_line);
            refused.push(RefusedMode { mode: *mode, reason, hint: error.hint.clone() });
            first_error.get_or_insert(error);
        }
    }
    let Some(error) = first_error else { return Ok(refused) };
    if all_required {
        return Err(error.into());
    }
    experiment.modes.retain(|mode| refused.iter().all(|refused| refused.mode != *mode));
    if experiment.modes.iter().all(|mode| *mode == Mode::None) {
        return Err(error.into());
    }
    Ok(refused)
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

    fn left(missing: &[Mode], all_required: bool) -> (Result<Vec<RefusedMode>, Failure>, Vec<Mode>) {
        let text = "{name: x, mesh: istio, modes: [none, sidecar, ambient], load: {rate: 1000}}";
        let mut experiment = Experiment::parse(text, "test").unwrap();
        let refused = leave_out_refused(&mut experiment, all_required, lacks(missing));
        (refused, experiment.modes)
    }

    #[test]
    fn modes_that_can_run_do() {
        let (refused, modes) = left(&[Mode::Ambient], false);
        assert_eq!(modes, [Mode::None, Mode::Sidecar]);
        let expected = RefusedMode {
            mode: Mode::Ambient,
            reason: "there is no ztunnel".into(),
            hint: Some("name one with --ztunnel".into()),
        };
        assert_eq!(refused.unwrap(), [expected]);
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
